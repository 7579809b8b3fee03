"""Constraints on what a run may change and use, checked before the gates of each attempt."""

from __future__ import annotations

from gitgates.config.load import table_of
from gitgates.core.clean import counted, first_few
from gitgates.core.record import Record
from gitgates.engine.plan.match import matches, parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from gitgates.core.types import Config

_MOST_NAMED = 10


class Headless(Record):
    """How a headless run works, and the limits on what it may change and use."""

    agent: str
    agent_args: tuple[str, ...]
    max_files: int  # 0: any number, also in the next two
    max_lines: int
    max_tokens: int
    max_cost: float  # in US dollars; 0: any amount
    client_retries: int  # of a turn whose client failed for a temporary reason
    retry_wait_s: float  # before the first retry
    allow: tuple[str, ...] | None  # patterns; None: everything
    deny: tuple[str, ...]


def settings_of(config: Config) -> Headless:
    """Return the settings of headless runs."""
    return table_of(config, "headless", Headless)


def violations(
    limits: Headless,
    *,
    paths: Collection[str],
    denied: Collection[str],
    lines: int,
    tokens: int,
) -> tuple[str, ...]:
    """Return a message for each violation; 0 tokens if the client reports none.

    `denied`: the changed paths that `deny` matches, ignored ones included.
    """
    may, patterns = ", ".join(limits.allow or ()), limits.allow
    outside = [] if patterns is None else sorted({*paths}.difference(matching(patterns, paths)))
    files, changed_lines = counted(len(paths), "file"), counted(lines, "line")
    checks = (
        (
            0 < limits.max_files < len(paths),
            f"max_files: {files} changed, at most {limits.max_files}",
        ),
        (
            0 < limits.max_lines < lines,
            f"max_lines: {changed_lines} changed, at most {limits.max_lines}",
        ),
        (
            0 < limits.max_tokens < tokens,
            f"max_tokens: {tokens:,} used, at most {limits.max_tokens:,}",
        ),
        (outside, f"allow: only {may} may change, not {first_few(outside, _MOST_NAMED)}"),
        (denied, f"deny: must not change: {first_few(sorted(denied), _MOST_NAMED)}"),
    )
    return tuple(message for is_violated, message in checks if is_violated)


def misplaced(head_ref: str, expected: str, start: str) -> tuple[str, ...]:
    """Return a message if HEAD names a ref other than the one that the commit belongs to."""
    if head_ref == expected:
        return ()
    back = expected.removeprefix("refs/heads/") or f"--detach {start}"
    message = (
        f"HEAD is {head_ref or 'detached'}, and the commit belongs to {expected or 'no branch'}: "
        f"go back (git switch {back}), and cherry-pick your commits (git cherry-pick)"
    )
    return (message,)


def matching(lines: tuple[str, ...], paths: Collection[str]) -> list[str]:
    """Return the paths that patterns match."""
    patterns = [parse(line) for line in lines]
    return [path for path in paths if matches(path, patterns)] if patterns else []


def prompt_for(messages: tuple[str, ...], start: str) -> str:
    """Return the prompt for the agent; `start`: the run's first commit, if others followed it."""
    lines = "\n".join(f"- {message}" for message in messages)
    commits = (
        "Each commit counts, even if a later one reverts it. "
        f"`git reset --soft {start}` undoes yours and keeps the files. "
    )
    return (
        f"Your change violates the constraints of this run:\n{lines}\n\n"
        "The gates have not run. Undo what is not allowed, or do the task with a smaller change, "
        f"then end your turn. {commits if start else ''}".rstrip()
    )


def cost_usd(turns: Iterable[dict[str, Any]]) -> float | None:
    """Return the cost of all turns; None if the client has reported none."""
    costs = [turn["cost_usd"] for turn in turns if "cost_usd" in turn]
    return sum(costs) if costs else None


def over_cost(turns: list[dict[str, Any]], most_usd: float) -> str:
    """Return what the turns cost and may cost; empty if they cost no more than that."""
    cost = cost_usd(turns) or 0.0
    is_over = 0 < most_usd < cost
    return f"max_cost: ${cost:.2f} used, at most ${most_usd:.2f}" if is_over else ""
