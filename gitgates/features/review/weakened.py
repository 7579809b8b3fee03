"""Find what weakens the checks in a change: signs in its files, and weaker settings.

The signs are data, in `signs.py`. Files are compared as text, without a parser: a sign in a string
counts, and a weaker assertion is not detected.
"""

from __future__ import annotations

import functools
import os
import re
from collections import Counter

from gitgates.config import LOCAL_FILE
from gitgates.core.clean import plain_line, visible_line
from gitgates.core.errors import ConfigError
from gitgates.core.record import Record
from gitgates.core.types import Config
from gitgates.features.review.config import weighting_of
from gitgates.features.review.significance import kinds_of
from gitgates.features.review.signs import SHARED, SIGNS
from gitgates.git.object_store import read_blobs, reading_git
from gitgates.git.settings import parsed, settings_in
from gitgates.hosts import AGENTS, agent_settings
from gitgates.hosts.settings.base import HookSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator
    from typing import TypeAlias

    from gitgates.core.agent_types import FileDifference
    from gitgates.features.review.config import Weighting
    from gitgates.git.diff import Trees
    from gitgates.git.repo import Git

    Content: TypeAlias = tuple[FileDifference, bytes | None, bytes | None]

_LARGEST = 1 << 20  # bytes; a larger file is not written by hand
_LONGEST = 120  # shown characters of a line
# A longer line is not written by hand, and the expressions would take minutes for it.
_LONG_LINE = re.compile(r"^.{500,}$", re.MULTILINE)
_MOST_FILES = 3  # in one line
_ENTRY = re.compile(r"[\w*][^,\n]*")
_TEST_REMOVED, _ASSERTIONS_REMOVED = "test removed", "assertions removed"  # as in the table
_PLUGIN_HOOKS = "hooks/hooks.json"  # the only agents' settings outside hidden folders
GATE = "gate relaxed"
AGENT_HOOKS = "agent's hooks relaxed"


class Weakening(Record):
    """One thing that weakens the checks."""

    path: str
    what: str
    detail: str
    line: int = 0  # in the current file; 0: it concerns no line


class Pair(Record):
    """A changed file: its text before and after."""

    path: str
    before: str
    after: str
    old_path: str = ""  # before it was renamed


class Sign(Record):
    """One row in the table."""

    what: str
    way: str  # added, removed, lowered, raised
    files: str  # an expression, compiled only if needed, because compiling all takes too long
    patterns: tuple[str, ...]
    stands_in: (
        str  # what replaces a match that is gone: one in the same file, or before the same line
    )


class Occurrence(Record):
    """A match of a sign in a file."""

    path: str
    name: str  # what is compared
    line: int
    text: str  # that line
    number: float
    next_line: str


def find_weakened(
    trees: Trees, files: tuple[FileDifference, ...], weighting: Weighting
) -> tuple[Weakening, ...]:
    """Return what weakens the checks in a change of some files, sorted by path and line.

    Raises: GitError if one of the trees does not exist.
    """
    git = reading_git(trees.repo)
    old_settings, new_settings = settings_in(git, (trees.before, trees.after))
    has_local = os.path.lexists(f"{trees.repo.root_abs}/{LOCAL_FILE}")
    before: Config | ConfigError = Config()
    after: Config | ConfigError = before
    if old_settings != new_settings or has_local:  # parsing them takes longer than everything else
        before, after = parsed((old_settings, new_settings))
        if not isinstance(before, ConfigError):
            weighting = weighting_of(before)  # the session cannot exempt its own changes
    contents = _contents(git, trees, files, weighting)
    pairs = tuple(
        Pair(path=file.path, before=_text(old), after=_text(new), old_path=file.was)
        for file, old, new in contents
    )
    findings = [*find(pairs), *_weaker_gates(before, after)]
    for file, old, new in contents:
        findings += find_in_agent_settings(file.path, old, new)
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: finding[:1] + finding[3:]))


def in_one_line(findings: Iterable[Weakening]) -> str:
    """Return the findings by file, as the end of a sentence."""
    by_path: dict[str, Counter[str]] = {}
    for finding in findings:
        by_path.setdefault(plain_line(finding.path), Counter())[finding.what] += 1
    parts = []
    for path, whats in by_path.items():
        names = [f"{what} ({count})" if count > 1 else what for what, count in whats.items()]
        parts.append(f"{path}: {', '.join(names)}")
    more = [f"and {len(parts) - _MOST_FILES} more files"] if len(parts) > _MOST_FILES else []
    return "; ".join([*parts[:_MOST_FILES], *more])


def weakened_lines(findings: Iterable[Weakening]) -> list[str]:
    """Return the findings, one per line."""
    return [
        f"{visible_line(finding.path)}{f':{finding.line}' if finding.line else ''}: "
        f"{finding.what}: {visible_line(finding.detail)}"
        for finding in findings
    ]


def find(pairs: tuple[Pair, ...]) -> list[Weakening]:
    """Return the signs of weaker checks in changed files. Pure."""
    findings: list[Weakening] = []
    for sign in _signs():
        before: list[Occurrence] = []
        after: list[Occurrence] = []
        for pair in pairs:
            before += _occurrences(sign, pair.old_path or pair.path, pair.before)
            after += _occurrences(sign, pair.path, pair.after)
        findings += _compare(sign, before, after)
    # Assertions in a removed test need no lines of their own.
    shorter = {finding.path for finding in findings if finding.what == _TEST_REMOVED}
    return [
        finding
        for finding in dict.fromkeys(findings)
        if finding.what != _ASSERTIONS_REMOVED or finding.path not in shorter
    ]


@functools.cache
def _signs() -> tuple[Sign, ...]:
    reference = re.compile("|".join(rf"(?<![A-Z]){name}(?![A-Z])" for name in SHARED))

    def whole(text: str) -> str:
        return reference.sub(lambda name: SHARED[name.group()], text)

    return tuple(
        Sign(what, way, whole(files), tuple(map(whole, expressions)), stands_in)
        for what, way, files, expressions, stands_in in SIGNS
    )


@functools.cache
def _compiled(expression: str) -> re.Pattern[str]:
    return re.compile(expression, re.MULTILINE)


@functools.cache
def _may_have(files: str, path: str) -> bool:
    """Return whether a file is searched; many signs share the same expression for files."""
    return _compiled(files).search(path) is not None


def _occurrences(sign: Sign, path: str, text: str) -> Iterator[Occurrence]:
    if not text or not _may_have(sign.files, path):
        return
    text = _LONG_LINE.sub("", text)
    lines = text.split("\n")
    for expression in sign.patterns:
        line = end = 0
        for match in _compiled(expression).finditer(text):
            groups = match.groupdict()
            line += text.count("\n", end, match.end())
            end = match.end()
            yield Occurrence(
                path=path,
                name=" ".join((groups.get("name") or match.group()).split()),
                line=line + 1,
                text=" ".join(lines[line].split())[:_LONGEST],
                number=_number(groups.get("number") or "0"),
                next_line=_next_line(lines, line),
            )


def _next_line(lines: list[str], line: int) -> str:
    """Return the text of the next line that is not blank; empty if there is none."""
    return next((text for at in range(line + 1, len(lines)) if (text := lines[at].strip())), "")


def _number(text: str) -> float:
    """Return a number, or the number of a list's entries."""
    return float(text) if text[0].isdigit() else len(_ENTRY.findall(text))


def _compare(sign: Sign, before: list[Occurrence], after: list[Occurrence]) -> Iterator[Weakening]:
    same, lost, new = _paired(before, after, lambda place: (place.path, place.name))
    if sign.way in ("lowered", "raised"):
        for old, now in same:
            if now.number < old.number if sign.way == "lowered" else now.number > old.number:
                detail = f"{now.name}: {old.number:g} → {now.number:g}"
                yield Weakening(now.path, sign.what, detail, now.line)
        return
    _moved, lost, new = _paired(lost, new, lambda place: place.name)
    if sign.stands_in != "nothing":
        field = sign.stands_in.replace(" ", "_")
        _replaced, lost, new = _paired(lost, new, lambda place: getattr(place, field))
    if sign.way == "added":
        yield from (Weakening(place.path, sign.what, place.text, place.line) for place in new)
    else:
        yield from (Weakening(place.path, sign.what, place.name) for place in lost)


def _paired(
    before: Iterable[Occurrence], after: Iterable[Occurrence], key: Callable[[Occurrence], Hashable]
) -> tuple[list[tuple[Occurrence, Occurrence]], list[Occurrence], list[Occurrence]]:
    """Pair occurrences with equal keys; return the pairs, and the rest of both."""
    waiting: dict[Hashable, list[Occurrence]] = {}
    for place in after:
        waiting.setdefault(key(place), []).append(place)
    pairs, lost = [], []
    for place in before:
        if candidates := waiting.get(key(place)):
            pairs.append((place, candidates.pop(0)))
        else:
            lost.append(place)
    return pairs, lost, [place for places in waiting.values() for place in places]


def _contents(
    git: Git, trees: Trees, files: tuple[FileDifference, ...], weighting: Weighting
) -> list[Content]:
    """Return each changed file written by hand, with its text before and after."""
    kinds = kinds_of([file.path for file in files], weighting._replace(ignore=(), critical=()))
    read = [
        file
        for file in files
        if not (file.submodule or kinds[file.path].left_out)
        and "\n" not in file.path + file.was  # git reads names one per line
    ]
    names = {
        file.path: (
            f"{trees.before}:{file.was or file.path}" if file.status != "A" else "",
            f"{trees.after}:{file.path}" if file.status != "D" else "",
        )
        for file in read
    }
    blobs = read_blobs(git, [name for both in names.values() for name in both if name], _LARGEST)
    return [
        (file, blobs.get(before), blobs.get(after))
        for file, (before, after) in zip(read, names.values(), strict=True)
    ]


def _text(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", "replace").replace("\r\n", "\n")


def _weaker_gates(before: Config | ConfigError, after: Config | ConfigError) -> Iterator[Weakening]:
    if isinstance(before, ConfigError) or not before.sources:
        return
    path = before.sources[0]
    if isinstance(after, ConfigError):
        yield Weakening(path, GATE, f"the settings can no longer be read: {after.message}")
    elif not after.sources:
        yield Weakening(path, GATE, "all gitgates settings were removed")
    else:
        from gitgates.config.weaker import weaker  # most sessions do not change the gates

        yield from (Weakening(path, GATE, text) for text in weaker(before, after))


def find_in_agent_settings(
    path: str, before: bytes | None, after: bytes | None
) -> Iterator[Weakening]:
    """Yield hooks that were removed from an agent's settings, or switched off there. Pure."""
    # Looking for each agent's files would load all agents' modules.
    may_be = "/." in f"/{path}" or path.endswith(_PLUGIN_HOOKS)
    for agent in AGENTS if may_be else ():
        if not agent_settings(agent).SETTINGS_PATH.search(path):
            continue
        old, new = _hook_settings(agent, before), _hook_settings(agent, after)
        if new.off and not old.off:
            yield Weakening(path, AGENT_HOOKS, "all hooks are switched off")
        # Another path to our program is the same hook, unless the agent does not wait for it.
        old_hooks, new_hooks = (
            Counter(
                (hook.event, "" if hook.is_ours else hook.command)
                for hook in side.hooks
                if not (hook.is_ours and hook.loose)
            )
            for side in (old, new)
        )
        for event, command in old_hooks - new_hooks:
            text = f"{event}: `{command or f'gitgates agent-hook {agent}'}` was removed"
            yield Weakening(path, AGENT_HOOKS, text)


def _hook_settings(agent: str, content: bytes | None) -> HookSettings:
    try:
        return agent_settings(agent).read(_text(content), "")
    except ConfigError:
        return HookSettings()  # the client cannot read it, either
