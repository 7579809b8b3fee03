"""What a run may change, and use, at most: checked before the gates of each attempt."""

from __future__ import annotations

from gitgates.clean import counted
from gitgates.engine.match import matches, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.types import Headless

_MOST_NAMED = 10


def violations(
    limits: Headless, *, paths: tuple[str, ...], lines: int, tokens: int | None
) -> tuple[str, ...]:
    """Return what was not kept to, in words; what a client does not report is not counted."""
    found = []
    if limits.max_files and len(paths) > limits.max_files:
        found.append(f"max_files: {counted(len(paths), 'file')} changed, {limits.max_files} may be")
    if limits.max_lines and lines > limits.max_lines:
        found.append(f"max_lines: {counted(lines, 'line')} changed, {limits.max_lines} may be")
    if limits.max_tokens and tokens is not None and tokens > limits.max_tokens:
        found.append(f"max_tokens: {tokens:,} used, {limits.max_tokens:,} may be")
    if limits.allow is not None:
        outside = _not_allowed(paths, limits.allow)
        if outside:
            found.append(f"allow: outside of {', '.join(limits.allow)}: {_some(outside)}")
    if denied := denied_paths(limits, paths):
        found.append(f"deny: may not be changed: {_some(denied)}")
    return tuple(found)


def denied_paths(limits: Headless, paths: tuple[str, ...]) -> list[str]:
    """Return the paths that must not be changed."""
    patterns = [parse(line) for line in limits.deny]
    return [path for path in paths if matches(path, patterns)] if patterns else []


def _not_allowed(paths: tuple[str, ...], allow: tuple[str, ...]) -> list[str]:
    patterns = [parse(line) for line in allow]
    return [path for path in paths if not matches(path, patterns)]


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(paths[:_MOST_NAMED]) + more


def told(found: tuple[str, ...]) -> str:
    """Return what the agent is told of violations."""
    lines = "\n".join(f"- {one}" for one in found)
    return (
        f"What this run may do has limits, and your change does not keep to them:\n{lines}\n\n"
        "The gates have not run. Undo what is too much, or do the task with less, then end your "
        "turn again."
    )
