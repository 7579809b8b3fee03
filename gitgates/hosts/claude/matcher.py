"""Matchers in Claude Code's settings: written for what a hook is about, read as the client does.

The client takes names joined by `|` as they are, whole and by letter; whatever has another sign in
it is an expression that is searched for, so that ours are anchored. Recorded from 2.1.329.

A pattern with `!` in front leaves a tool out, and means all others; what is named beside it is not
left out.
"""

from __future__ import annotations

import re

from gitgates.hosts.claude import FORMER_NAMES, TOOL_NAMES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.types import ToolKind

_PLAIN = re.compile(r"[A-Za-z0-9_\-]+")
_LIST = re.compile(r"[A-Za-z0-9_\- ,|]+")
_ALL = (None, "", "*")
_PLUGIN = "(.*:)?"  # a plugin's agent is named `plugin:agent`, and its bare name means it, too
_BUT = "!"
_ANY_NAMES = ("Edit", "Bash", "mcp__any__tool", "any-agent")


def is_heard(patterns: tuple[str, ...] | None) -> bool:
    """Tell whether any name fits: no patterns mean all, and an empty list none."""
    return patterns is None or bool(_parts(patterns))


def tool_patterns(
    patterns: tuple[str, ...] | None, kinds: tuple[ToolKind, ...], *, but_reads: bool
) -> tuple[str, ...] | None:
    """Return patterns for tools that are named, of some kinds, or (`but_reads`) all but readers."""
    if patterns is None:
        return None
    named = [*patterns, *(name for kind in kinds for name in TOOL_NAMES[kind])]
    left_out = [f"{_BUT}{name}" for name in TOOL_NAMES["reads"] if but_reads]
    return tuple(dict.fromkeys((*named, *left_out)))


def tool_matcher(patterns: tuple[str, ...] | None) -> str | None:
    """Return the matcher that lets these tools through (names, `A|B`, globs, `!A`); None: all."""
    parts = _parts(patterns or ())
    if patterns is None or "*" in parts:
        return None
    if any(part.startswith(_BUT) for part in parts):
        left_out = _left_out(parts)
        return f"^(?!(?:{'|'.join(map(_expression, left_out))})$)" if left_out else None
    if all(_PLAIN.fullmatch(part) for part in parts):
        return "|".join(parts)
    return f"^({'|'.join(map(_expression, parts))})$"


def agent_matcher(patterns: tuple[str, ...] | None) -> str | None:
    """Return the matcher that lets these agents through, those of plugins as well; None: all."""
    parts = _parts(patterns or ())
    if patterns is None or "*" in parts:
        return None
    return f"^{_PLUGIN}({'|'.join(map(_expression, parts))})$"


def lets_through(matcher: str | None, name: str) -> bool:
    """Tell whether the client calls a hook with this matcher for a name."""
    if matcher in _ALL:
        return True
    text = matcher or ""
    if _LIST.fullmatch(text):
        listed = [part.strip() for part in re.split(r"[|,]", text)]
        return name in listed or FORMER_NAMES.get(name) in listed
    try:
        return re.search(text, name) is not None
    except re.error:
        return False


def samples(patterns: tuple[str, ...] | None) -> tuple[str, ...]:
    """Return names that fit the patterns: one for each, or any names at all where all do."""
    if patterns is None:
        return _ANY_NAMES
    parts = _parts(patterns)
    named = [part for part in parts if not part.startswith(_BUT)]
    if named != parts:
        left_out = _left_out(parts)
        named += [n for n in _ANY_NAMES if not any(_fits(part, n) for part in left_out)]
    return tuple(dict.fromkeys(part.replace("*", "x").replace("?", "x") for part in named))


def _parts(patterns: tuple[str, ...]) -> list[str]:
    parts = [part.strip() for pattern in patterns for part in pattern.split("|")]
    return list(dict.fromkeys(part for part in parts if part))


def _left_out(parts: list[str]) -> list[str]:
    """Return what is left out in the end: not what is named as well."""
    named = [part for part in parts if not part.startswith(_BUT)]
    but = [part.removeprefix(_BUT) for part in parts if part.startswith(_BUT)]
    return [name for name in but if not any(_fits(part, name) for part in named)]


def _fits(part: str, name: str) -> bool:
    return re.fullmatch(_expression(part), name) is not None


def _expression(part: str) -> str:
    return "".join({"*": ".*", "?": "."}.get(sign, re.escape(sign)) for sign in part)
