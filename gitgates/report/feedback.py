"""What an agent, and the person, are told of gates that did not pass."""

from __future__ import annotations

from gitgates.engine.decide import describe
from gitgates.engine.failures import Change, Failure
from gitgates.record import Record
from gitgates.types import GateResult


class Finding(Record):
    """One gate that did not pass."""

    result: GateResult
    description: str = ""
    change: Change | None = None
    known: tuple[Failure, ...] = ()
    note: str = ""
    cannot_fix: str = ""


class Situation(Record):
    """Everything that is to be said of one event."""

    hook: str
    root_abs: str
    attempt: int
    attempts: int
    findings: tuple[Finding, ...]
    passed: tuple[str, ...] = ()
    not_run: tuple[tuple[str, str], ...] = ()
    observed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    changed_paths: tuple[str, ...] = ()
    repeated: bool = False


def feedback(situation: Situation, limit: int = 10_000) -> str:
    """Return what the agent is told."""
    lines = [f"{len(situation.findings)} gates did not pass."]
    for one in situation.findings:
        lines.append(f"`{one.result.gate}` {describe(one.result)}")
        lines.append(one.result.output[-2000:].decode("utf-8", "replace"))
        lines += [f"gone: {gone.title}" for gone in (one.change or Change()).gone]
        lines += [f"there before this session: {old.title}" for old in one.known]
        lines += [one.note] if one.note else []
        if situation.attempt:
            lines.append(f'Way out: gitgates cannot-fix {one.result.gate} --reason "…"')
    if situation.attempt:
        lines.append(f"attempt {situation.attempt} of {situation.attempts}")
    lines += [*situation.notes, *situation.observed]
    lines += [f"`{name}` was not run: {why}" for name, why in situation.not_run]
    lines += [f"read `{path}` again before the next edit" for path in situation.changed_paths]
    return "\n".join(lines)[:limit]


def stop_text(situation: Situation) -> str:
    """Return why everything ends."""
    return f"gitgates stops: {_names(situation)}"


def person_text(situation: Situation, how: str) -> str:
    """Return what the person is told of an agent that was let go."""
    return f"gitgates: {_names(situation)}; the agent was let go {how}."


def _names(situation: Situation) -> str:
    return "; ".join(f"`{one.result.gate}` {describe(one.result)}" for one in situation.findings)
