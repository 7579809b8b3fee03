"""Constraints on what a run may change and use, checked before the gates of each attempt."""

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
    """Return a message for each violation; tokens that a client does not report do not count."""
    found = []
    if limits.max_files and len(paths) > limits.max_files:
        found.append(
            f"max_files: {counted(len(paths), 'file')} changed, at most {limits.max_files}"
        )
    if limits.max_lines and lines > limits.max_lines:
        found.append(f"max_lines: {counted(lines, 'line')} changed, at most {limits.max_lines}")
    if limits.max_tokens and tokens is not None and tokens > limits.max_tokens:
        found.append(f"max_tokens: {tokens:,} used, at most {limits.max_tokens:,}")
    if limits.allow is not None:
        outside = _not_allowed(paths, limits.allow)
        if outside:
            found.append(f"allow: only {', '.join(limits.allow)} may change, not {_some(outside)}")
    if denied := denied_paths(limits, paths):
        found.append(f"deny: must not change: {_some(denied)}")
    return tuple(found)


def denied_paths(limits: Headless, paths: tuple[str, ...]) -> list[str]:
    """Return the changed paths that `deny` matches."""
    patterns = [parse(line) for line in limits.deny]
    return [path for path in paths if matches(path, patterns)] if patterns else []


def _not_allowed(paths: tuple[str, ...], allow: tuple[str, ...]) -> list[str]:
    patterns = [parse(line) for line in allow]
    return [path for path in paths if not matches(path, patterns)]


def _some(paths: list[str]) -> str:
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return ", ".join(paths[:_MOST_NAMED]) + more


def told(found: tuple[str, ...]) -> str:
    """Return the prompt for the agent."""
    lines = "\n".join(f"- {one}" for one in found)
    return (
        f"Your change violates the constraints of this run:\n{lines}\n\n"
        "The gates have not run. Undo what is not allowed, or do the task with a smaller change, "
        "then end your turn."
    )
