"""Find checks removed from CI and recipes, and those whose failure is ignored. Pure.

Programs are counted, all over the change: one that another file runs now has only moved, and one in
whose place another check has come was replaced. And: files hidden from diffs, hooks bypassed.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections import Counter

from gitgates.record import Record
from gitgates.weakening.finding import (
    BYPASSED,
    CI,
    HIDDEN,
    RECIPE,
    Weakening,
    alternatives,
    pattern,
    patterns,
)
from gitgates.weakening.source import is_test_name, read_side

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.weakening.finding import Pair

_LONGEST = 2000  # characters of a line; what is longer is no command that a person wrote
_PREFIX = re.compile(r"^[@+-]+\s*")  # of a recipe of make
_DASH = re.compile(r"[@+]*-[@+-]*\s*")  # before a command whose failure make ignores
_STOPS = re.compile(r"^set\s+(?:-o\s+errexit|-\w*e)")
_YAML = re.compile(r"\.ya?ml$")
_KEY = re.compile(r"^(?:-\s+)?(?!(?:run|uses|script|command|entry|sh)\s*:)[\w.-]+\s*:(?:\s|$)")
_RUN = re.compile(
    r"^(?:-\s+)?(?:(?:run|uses|script|command|entry|sh)\s*:\s*(?:[|>][+-]?\s*)?)?(.*)$"
)


class CheckCommand(Record):
    """One line that runs a check."""

    program: str
    command: str
    line: str
    number: int
    relaxed: bool  # its failure has no effect
    is_known: bool  # a tool that checks, and no target or script that is named as if it did


def find_in_commands(pairs: tuple[Pair, ...]) -> Iterable[Weakening]:
    """Yield the checks that are gone or without effect, and what keeps others from being seen."""
    stock = _moved(pairs)
    for pair in pairs:
        what = _kind(pair.path) or _kind(pair.old_path)
        if what:
            yield from _compare(pair, what, stock)
        if what == CI:
            yield from _new_lines(pair, "relaxed_ci", CI)
            yield from _triggers(pair)
        if posixpath.basename(pair.path) == ".gitattributes":
            yield from _new_lines(pair, "hidden", HIDDEN)
        elif _matches("scripts", pair.path) and not is_test_name(pair.path):
            yield from _new_lines(pair, "bypass", BYPASSED)


def _matches(key: str, text: str) -> bool:
    return bool(pattern("commands", key).search(text))


def _kind(path: str) -> str:
    """Return what is said of a file that runs checks; empty for one that does not."""
    if _matches("ci", path):
        return CI
    is_recipe = _matches("make", path) or _matches("recipes", path)
    return RECIPE if is_recipe and not is_test_name(path) else ""


# steps


@functools.cache
def _check() -> re.Pattern[str]:
    tools, generic = (alternatives(patterns()["commands"][key]) for key in ("tools", "generic"))
    return re.compile(rf"(?<![\w.-])(?:(?P<tool>{tools})|{generic})(?![\w./-]*/)(?![\w-])")


def _moved(pairs: tuple[Pair, ...]) -> Counter[str]:
    """Return how many runs of each program are gone, all over the change."""
    total: Counter[str] = Counter()
    for pair in pairs:
        for content, path, sign in ((pair.before, pair.old_path, 1), (pair.after, pair.path, -1)):
            if _kind(path) or _matches("beside", path):
                for step in _steps(content, path):
                    total[step.program] += 0 if step.relaxed else sign
    return total


def _lines(content: bytes | None) -> list[str]:
    """Return the lines of a file without comments."""
    text = read_side((content or b"").decode("utf-8", "replace"), "hash").text
    return [" ".join(line[:_LONGEST].split()) for line in text.split("\n")]


def _steps(content: bytes | None, path: str) -> Iterable[CheckCommand]:
    """Yield the lines that run a check."""
    is_make, is_yaml = _matches("make", path), bool(_YAML.search(path))
    for number, line in enumerate(_lines(content), start=1):
        if is_yaml and _KEY.match(line):
            continue
        command = _command(line, is_make=is_make, is_yaml=is_yaml)
        # Behind `||` is what is run when it fails.
        is_check = not _matches("no_check", re.split(r"\|\||;", command)[0])
        found = _check().search(command) if is_check else None
        if found and (found["tool"] or not command.endswith(":")):  # the head of a recipe
            rest = command[found.start() :]
            yield CheckCommand(
                program=" ".join(found.group().split()) if found["tool"] else command,
                command=command,
                line=line,
                number=number,
                relaxed=_matches("relaxed", rest) or (is_make and bool(_DASH.match(line))),
                is_known=bool(found["tool"]),
            )


def _command(line: str, *, is_make: bool, is_yaml: bool) -> str:
    """Return the command on a line, of an action its name without a version."""
    if is_make:
        return _PREFIX.sub("", line)
    run = _RUN.match(line) if is_yaml else None
    if not run:
        return line
    return run[1].partition("@")[0] if re.match(r"(?:-\s+)?uses\s*:", line) else run[1]


# comparing


def _compare(pair: Pair, what: str, stock: Counter[str]) -> Iterable[Weakening]:
    before, after = [*_steps(pair.before, pair.old_path)], [*_steps(pair.after, pair.path)]
    old_lines = {step.line for step in before}
    gone, came = _counts(before) - _counts(after), _counts(after) - _counts(before)
    for step in after:
        if step.relaxed and step.line not in old_lines and gone[step.program]:
            gone[step.program] -= 1
            stock[step.program] -= 1
            if what == RECIPE:  # of CI, each line that lets more pass is a finding by itself
                yield Weakening(pair.path, what, step.line, step.number)
    lost = [*_lost(before, gone, stock, came.total(), every=what == CI)]
    if lost and pair.after is None and what == CI:
        yield Weakening(pair.path, what, f"deleted, and with it: {', '.join(lost[:3])}")
    else:
        yield from (Weakening(pair.path, what, f"gone: `{command}`") for command in lost)
    for one, other in _fewer_options(before, after):
        detail = f"`{one.command}` is now `{other.command}`"
        yield Weakening(pair.path, what, detail, other.number)
    if what == RECIPE and any(step.is_known for step in after):
        yield from _ignored_failures(pair)


def _counts(steps: list[CheckCommand]) -> Counter[str]:
    return Counter(step.program for step in steps if not step.relaxed)


def _lost(
    before: list[CheckCommand],
    gone: Counter[str],
    stock: Counter[str],
    replaced: int,
    *,
    every: bool,
) -> Iterable[str]:
    """Yield commands that nothing runs any more, less those that others have come for.

    `every`: also those that only look as if they checked.
    """
    for step in before:
        if min(gone[step.program], stock[step.program]) <= 0 or not (step.is_known or every):
            continue
        gone[step.program] -= 1
        if replaced > 0:
            replaced -= 1
        else:
            stock[step.program] -= 1
            yield step.command


def _fewer_options(
    before: list[CheckCommand], after: list[CheckCommand]
) -> Iterable[tuple[CheckCommand, CheckCommand]]:
    """Yield where one line of a program has taken another's place, and checks less."""
    strict, loose = (pattern("commands", f"{way}_options").findall for way in ("strict", "loose"))
    kept = {step.command for step in before} & {step.command for step in after}
    for program in sorted({step.program for step in before if step.is_known}):
        lost = [one for one in before if one.program == program and one.command not in kept]
        came = [one for one in after if one.program == program and one.command not in kept]
        if len(lost) == 1 == len(came) and not came[0].relaxed:
            old, new = lost[0].command, came[0].command
            if set(strict(old)) - set(strict(new)) or set(loose(new)) - set(loose(old)):
                yield lost[0], came[0]


def _ignored_failures(pair: Pair) -> Iterable[Weakening]:
    """Yield where a failure does not end a recipe any more."""
    stops = [sum(1 for line in _lines(one) if _STOPS.match(line)) for one in pair[1:3]]
    if stops[0] > stops[1]:
        yield Weakening(pair.path, RECIPE, "`set -e` is gone: a failure ends it no more")
    yield from _new_lines(pair, "relaxed_recipe", RECIPE)


def _new_lines(pair: Pair, key: str, what: str) -> Iterable[Weakening]:
    """Yield lines with a match that were not there, nor another one in their place."""
    old = Counter(line for line in _lines(pair.before) if _matches(key, line))
    numbered = [
        (number, line)
        for number, line in enumerate(_lines(pair.after), start=1)
        if _matches(key, line)
    ]
    gone = (old - Counter(line for _, line in numbered)).total()
    for number, line in numbered:
        if old[line]:
            old[line] -= 1
        elif gone:
            gone -= 1
        else:
            yield Weakening(pair.path, what, line, number)


def _triggers(pair: Pair) -> Iterable[Weakening]:
    """Yield events that a workflow hears of no more."""
    if pair.before in (None, pair.after) or pair.after is None or not _YAML.search(pair.path):
        return
    try:
        after = _events(pair.after)
    except ValueError as error:
        yield Weakening(pair.path, CI, f"cannot be read as YAML, and was not compared: {error}")
        return
    try:
        before = _events(pair.before or b"")
    except ValueError:
        yield Weakening(pair.path, CI, "could not be read as YAML before, and was not compared")
        return
    for event in sorted(before - after):
        yield Weakening(pair.path, CI, f"does not run on `{event}` any more")


def _events(content: bytes) -> set[str]:
    from gitgates.yaml_load import load_texts

    table = load_texts(content.decode("utf-8", "replace"))
    events = table.get("on", "") if isinstance(table, dict) else ""
    return {events} - {""} if isinstance(events, str) else {e for e in events if isinstance(e, str)}
