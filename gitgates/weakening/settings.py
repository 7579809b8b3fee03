"""Settings of linters, type checkers and tests that have become weaker. Pure.

Where a setting's name tells which way is weaker, only that way counts: a rule that is switched on
is no finding, nor is a threshold that is raised. Of the others, each change of what was there is.
"""

from __future__ import annotations

import re
from collections import Counter

from gitgates.record import Record
from gitgates.weakening.finding import SETTING, Finding
from gitgates.weakening.tools import read_lines, read_settings, tool_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.weakening.finding import Pair
    from gitgates.weakening.tools import Settings, Tool

_SHOWN = 3  # entries of a list, or lines, in one finding
_LONGEST = 100  # characters of a value
_LOOSE_WORDS = (
    "ignore ignores ignored ignoring exclude excludes excluded exclusions omit disable "
    "disabled skip skips allow allowed allowlist whitelist deselect norecursedirs suppress "
    "suppressions baseline implicit legacy exempt lenient"
)
_LOOSE = frozenset(_LOOSE_WORDS.split())
_TIGHT_WORDS = (
    "select enable enabled include includes testpaths source files paths plugins fail id "
    "hooks rules extends deny forbid strict disallow warn warnings check no branch error "
    "require report enforce treat force exact use commands run envlist contracts forbidden "
    "layers"
)
_TIGHT = frozenset(_TIGHT_WORDS.split())
_LOWER_IS_WEAKER_WORDS = (
    "under threshold thresholds min minimum coverage branches functions lines statements "
    "score target level confidence severity"
)
_LOWER_IS_WEAKER = frozenset(_LOWER_IS_WEAKER_WORDS.split())
_NO_MATTER_WORDS = (
    "fixable unfixable target-version python_version python-version cache-dir cache_dir rev "
    "version src additional_dependencies $schema minversion pythonpath mypy_path "
    "default_language_version name description repo language log_cli log_level "
    "show_error_codes pretty color output-format deps passenv setenv basepython"
)
_NO_MATTER = frozenset(_NO_MATTER_WORDS.split())
_RANKS = {
    **dict.fromkeys(("off", "none", "allow", "ignore", "disabled"), 0),
    **dict.fromkeys(("info", "information", "hint", "note"), 1),
    **dict.fromkeys(("warn", "warning"), 2),
    **dict.fromkeys(("error", "deny"), 3),
    "forbid": 4,
}
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?%?$")


class _Change(Record):
    """One setting, before and after. None: it was not there."""

    key: str
    old: str | tuple[str, ...] | None
    new: str | tuple[str, ...] | None
    is_new_section: bool  # nothing of this tool was set before


def find_in_settings(pair: Pair) -> list[Finding]:
    """Return what has become weaker in one file that configures a tool."""
    tool = tool_of(pair.path) or tool_of(pair.old_path)
    if tool is None or pair.before == pair.after:
        return []
    if pair.after is None or tool_of(pair.path) is None:
        return [_finding(pair, "deleted" if pair.after is None else f"{pair.was} renamed")]
    before = None if pair.before is None else pair.before.decode("utf-8", "replace")
    after = pair.after.decode("utf-8", "replace")
    if tool.kind in ("lines", "ignored"):
        return _find_in_lines(pair, tool, before, after)
    kind, old = tool.kind.upper(), {}
    try:
        old = read_settings(before, tool) if before is not None else {}
    except (ValueError, RecursionError):
        before = None
        unread = f"could not be read as {kind} before, and was not compared"
    else:
        unread = ""
    try:
        new = read_settings(after, tool)
    except (ValueError, RecursionError) as error:
        again = " any more" if before is not None else ""
        return [_finding(pair, f"cannot be read as {kind}{again}, and was not compared: {error}")]
    if unread:
        return [_finding(pair, unread)]
    return [_finding(pair, text) for text in _compare(old, new)]


def _finding(pair: Pair, detail: str) -> Finding:
    return Finding(pair.path, SETTING, detail)


def _find_in_lines(pair: Pair, tool: Tool, before: str | None, after: str) -> list[Finding]:
    old, new = Counter(read_lines(before or "")), Counter(read_lines(after))
    added, gone = list((new - old).elements()), list((old - new).elements())
    if tool.kind == "ignored":
        return [_finding(pair, f"not checked any more: {_few(added)}")] if added else []
    if before is None or not (added or gone):
        return []
    parts = [f"- {_few(gone)}"] if gone else []
    return [_finding(pair, "; ".join([*parts, f"+ {_few(added)}"] if added else parts))]


def _compare(old: Settings, new: Settings) -> list[str]:
    """Return in words what has become weaker."""
    found = []
    whole = {_section(key) for key in old} - {_section(key) for key in new}
    found += [f"{section}: removed" for section in sorted(whole)]
    sections = {_section(key) for key in old}
    for key in sorted(old.keys() | new.keys()):
        if _section(key) in whole or old.get(key) == new.get(key):
            continue
        change = _Change(key, old.get(key), new.get(key), _section(key) not in sections)
        if key.rpartition(".")[2].rstrip("[]") not in _NO_MATTER and (text := _judge(change)):
            found.append(f"{key}: {text}")
    return found


def _section(key: str) -> str:
    """Return the tool that a key is of."""
    parts = key.split(".")
    return ".".join(parts[:2]) if parts[0] == "tool" else parts[0] if len(parts) > 1 else ""


def _judge(change: _Change) -> str:
    """Return what has become weaker; empty where nothing has."""
    way = _way(change.key)
    old, new = change.old, change.new
    if isinstance(old, tuple) or isinstance(new, tuple):
        return _judge_list(change, way)
    if (text := _judge_rank(old, new)) is not None:
        return text
    if (text := _judge_flag(old, new, way)) is not None:
        return text
    if old is not None and new is not None and _NUMBER.match(old) and _NUMBER.match(new):
        return _judge_number(change.key, old, new)
    if old is None and (change.is_new_section or way == "tight"):
        return ""
    return _arrow(old, new)


def _way(key: str) -> str:
    """Tell which way a key is weaker: with more in it (loose), with less (tight); or nothing."""
    for part in reversed(key.replace("[]", "").split(".")):
        words = [word.lower() for word in _WORD.findall(part)]
        for word in words:
            if word in _TIGHT:
                return "tight"
            if word in _LOOSE:
                return "loose"
    return ""


def _judge_list(change: _Change, way: str) -> str:
    old, new = Counter(_listed(change.old)), Counter(_listed(change.new))
    added, gone = list((new - old).elements()), list((old - new).elements())
    parts = []
    if gone and way != "loose":
        parts.append(f"- {_few(gone)}")
    if added and (way == "loose" or (not way and not change.is_new_section)):
        parts.append(f"+ {_few(added)}")
    return "; ".join(parts)


def _listed(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value


def _judge_rank(old: str | None, new: str | None) -> str | None:
    """Compare how severe a rule is; None where that is not what this is about."""
    was, now = _RANKS.get(old or "", -1), _RANKS.get(new or "", -1)
    if was < 0 and now < 0:
        return None
    if old is None:
        return _arrow(old, new) if now == 0 else ""
    return _arrow(old, new) if now < was or was < 0 else ""


def _judge_flag(old: str | None, new: str | None, way: str) -> str | None:
    if not {old, new} <= {None, *_TRUE, *_FALSE, "True", "False"}:
        return None
    is_on = (new or "false").lower() in _TRUE
    if way == "loose":
        return _arrow(old, new) if is_on else ""
    if way == "tight":
        return "" if is_on else _arrow(old, new)
    return _arrow(old, new)


def _judge_number(key: str, old: str, new: str) -> str:
    was, now = float(old.rstrip("%")), float(new.rstrip("%"))
    words = {word.lower() for word in _WORD.findall(key)}
    if words & {"max", "maximum", "length", "complexity"}:
        return _arrow(old, new) if now > was else ""
    if words & _LOWER_IS_WEAKER:
        return _arrow(old, new) if now < was else ""
    return _arrow(old, new)


def _arrow(old: str | None, new: str | None) -> str:
    return f"{_cut(old)} → {_cut(new)}"


def _cut(value: str | None) -> str:
    if value is None:
        return "(not set)"
    text = " ".join(value.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _few(values: list[str]) -> str:
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return ", ".join(_cut(value) for value in values[:_SHOWN]) + more
