"""Find checks removed from CI and recipes, and those whose failure is ignored. Pure.

Programs are counted, all over the change: one that another file runs now has only moved, and one in
whose place another check has come was replaced. And: files hidden from diffs, hooks bypassed.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections import Counter
from collections.abc import Iterable

from gitgates.core.record import Record
from gitgates.core.yaml_load import load_texts
from gitgates.features.review.significance import is_test_name
from gitgates.features.review.weakening.finding import (
    BYPASSED,
    CI,
    HIDDEN,
    RECIPE,
    Pair,
    Weakening,
    alternatives,
    pattern,
    patterns,
)
from gitgates.features.review.weakening.source import read_side

_PREFIX = re.compile(r"^[@+-]+\s*")  # of a recipe of make
_DASH = re.compile(r"[@+]*-[@+-]*\s*")  # before a command whose failure make ignores
_YAML = re.compile(r"\.ya?ml$")
_KEY = re.compile(r"^(?:-\s+)?(?!(?:run|uses|script|command|entry|sh)\s*:)[\w.-]+\s*:(?:\s|$)")
_RUN = re.compile(
    r"^(?:-\s+)?(?:(?:run|uses|script|command|entry|sh)\s*:\s*(?:[|>][+-]?\s*)?)?(.*)$"
)
_USES = re.compile(r"(?:-\s+)?uses\s*:")


class CheckCommand(Record):
    """One line that runs a check."""

    program: str
    command: str
    line: str
    number: int
    relaxed: bool  # its failure has no effect
    is_known: bool  # a tool that checks, and no target or script that is named as if it did


def find_in_commands(pairs: tuple[Pair, ...]) -> Iterable[Weakening]:
    """Yield removed checks, checks without effect, and ignored failures."""
    stock: Counter[str] = Counter()  # how many runs of each program are gone
    for pair in pairs:
        for text, path, sign in zip(pair.texts, (pair.old_path, pair.path), (1, -1), strict=True):
            if _kind(path) or _matches("beside", path):
                for step in _steps(text, path):
                    stock[step.program] += 0 if step.relaxed else sign
    for pair in pairs:
        what = _kind(pair.path) or _kind(pair.old_path)
        if what:
            yield from _compare(pair, what, stock)
        if what == CI:
            yield from _new_lines(pair, "relaxed_ci", CI)
            yield from (Weakening(pair.path, CI, detail) for detail in _triggers(pair))
        if posixpath.basename(pair.path) == ".gitattributes":
            yield from _new_lines(pair, "hidden", HIDDEN)
        elif _matches("scripts", pair.path) and not is_test_name(pair.path):
            yield from _new_lines(pair, "bypass", BYPASSED)


def _matches(key: str, text: str) -> bool:
    return bool(pattern("commands", key).search(text))


def _kind(path: str) -> str:
    """Return what a finding in a file that runs checks is called; empty if it runs none."""
    if _matches("ci", path):
        return CI
    is_recipe = _matches("make", path) or _matches("recipes", path)
    return RECIPE if is_recipe and not is_test_name(path) else ""


# steps


@functools.cache
def _check() -> re.Pattern[str]:
    tools, generic = (alternatives(patterns()["commands"][key]) for key in ("tools", "generic"))
    return re.compile(rf"(?<![\w.-])(?:(?P<tool>{tools})|{generic})(?![\w./-]*/)(?![\w-])")


def _lines(text: str | None) -> tuple[str, ...]:
    """Return the lines of a file without comments."""
    return read_side(text or "", "hash").lines


def _steps(text: str | None, path: str) -> Iterable[CheckCommand]:
    """Yield the lines that run a check."""
    is_make, is_yaml = _matches("make", path), bool(_YAML.search(path))
    for number, line in enumerate(_lines(text), start=1):
        if is_yaml and _KEY.match(line):
            continue
        command = _PREFIX.sub("", line) if is_make else line
        if is_yaml and (run := _RUN.match(line)):
            command = run[1].partition("@")[0] if _USES.match(line) else run[1]
        # After `||` comes what runs when it fails.
        is_check = not _matches("no_check", re.split(r"\|\||;", command)[0])
        match = _check().search(command) if is_check else None
        if match and (match["tool"] or not command.endswith(":")):  # the head of a recipe
            is_soft = _matches("relaxed", command[match.start() :])
            yield CheckCommand(
                program=" ".join(match.group().split()) if match["tool"] else command,
                command=command,
                line=line,
                number=number,
                relaxed=is_soft or (is_make and bool(_DASH.match(line))),
                is_known=bool(match["tool"]),
            )


# comparing


def _compare(pair: Pair, what: str, stock: Counter[str]) -> Iterable[Weakening]:
    before, after = [*_steps(pair.texts[0], pair.old_path)], [*_steps(pair.texts[1], pair.path)]
    old, new = (Counter(s.program for s in side if not s.relaxed) for side in (before, after))
    old_lines = {step.line for step in before}
    removed, replaced = old - new, (new - old).total()
    for step in after:
        if step.relaxed and step.line not in old_lines and removed[step.program]:
            removed[step.program] -= 1
            stock[step.program] -= 1
            if what == RECIPE:  # of CI, each line that lets more pass is a finding by itself
                yield Weakening(pair.path, what, step.line, step.number)
    lost = []
    for step in before:
        is_gone = min(removed[step.program], stock[step.program]) > 0
        if is_gone and (step.is_known or what == CI):
            removed[step.program] -= 1
            if replaced > 0:
                replaced -= 1
            else:
                stock[step.program] -= 1
                lost.append(step.command)
    if lost and pair.after is None and what == CI:
        yield Weakening(pair.path, what, f"deleted, together with: {', '.join(lost[:3])}")
    else:
        yield from (Weakening(pair.path, what, f"gone: `{command}`") for command in lost)
    for previous, current in _fewer_options(before, after):
        detail = f"`{previous.command}` is now `{current.command}`"
        yield Weakening(pair.path, what, detail, current.number)
    if what == RECIPE and any(step.is_known for step in after):
        yield from _new_lines(pair, "relaxed_recipe", RECIPE)


def _fewer_options(
    before: list[CheckCommand], after: list[CheckCommand]
) -> Iterable[tuple[CheckCommand, CheckCommand]]:
    """Yield commands whose options were changed so that they check less."""
    strict, loose = (pattern("commands", f"{way}_options").findall for way in ("strict", "loose"))
    unchanged = {step.command for step in before} & {step.command for step in after}
    for program in sorted({step.program for step in before if step.is_known}):
        removed = [
            step for step in before if step.program == program and step.command not in unchanged
        ]
        added = [
            step for step in after if step.program == program and step.command not in unchanged
        ]
        if len(removed) == 1 == len(added) and not added[0].relaxed:
            old, new = removed[0].command, added[0].command
            if set(strict(old)) - set(strict(new)) or set(loose(new)) - set(loose(old)):
                yield removed[0], added[0]


def _new_lines(pair: Pair, key: str, what: str) -> Iterable[Weakening]:
    """Yield new lines with a match, unless they replace another one."""
    before, after = pair.texts
    old = Counter(line for line in _lines(before) if _matches(key, line))
    new = [(n, line) for n, line in enumerate(_lines(after), start=1) if _matches(key, line)]
    removed = (old - Counter(line for _, line in new)).total()
    for number, line in new:
        if old[line]:
            old[line] -= 1
        elif removed:
            removed -= 1
        else:
            yield Weakening(pair.path, what, line, number)


def _triggers(pair: Pair) -> Iterable[str]:
    """Yield triggers that were removed from a workflow."""
    before, after = pair.texts
    if before in (None, after) or after is None or not _YAML.search(pair.path):
        return
    try:
        removed = _events(before or "") - _events(after)
        yield from sorted(f"no longer runs on `{event}`" for event in removed)
    except ValueError as error:
        yield f"cannot be parsed as YAML, and was not compared: {error}"


def _events(text: str) -> set[str]:
    table = load_texts(text)
    events = table.get("on", "") if isinstance(table, dict) else ""
    return {events} - {""} if isinstance(events, str) else {e for e in events if isinstance(e, str)}
