"""Limit how often an agent is blocked: the attempts of a cycle, and the circuit breaker.

Nothing here relies on the host: its own cap is reset by any tool call, and `stop_hook_active` shows
only that some hook has blocked before. What counts is in the session's journal.

Policies that tell the agent how often it was blocked ask `rule` or `reached` themselves, and write
their own `round`. `decide` counts blocks without one, and ends them.
"""

from __future__ import annotations

from gitgates.core.lifecycle import kind_of
from gitgates.core.record import Record
from gitgates.core.types import ALLOW, BLOCK, STOP, WARN, Verdict
from gitgates.journal.entries import ANY, NO_RESULT, RoundEntry, StopEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gitgates.core.types import Hook, Level
    from gitgates.drivers.call import Call
    from gitgates.journal.entries import Round, Session

# Outcomes of a round, for the journal and for artifacts.
PASSED = "passed"
BLOCKED = "blocked"
STOPPED = "stopped"
BREAKER = "breaker"
EXHAUSTED = "exhausted"
NOT_CONVERGING = "not-converging"
CANNOT_FIX = "cannot-fix"
COULD_NOT_RUN = "could-not-run"
_USED_UP = (EXHAUSTED, NOT_CONVERGING)


class Attempt(Record):
    """The results of gates, and their position in the session."""

    prompt: str
    agent: str
    gates: str  # the set of gates, as it is listed
    verdict: Level
    deciding: tuple[tuple[str, str], ...]  # gate and status of each that asks for the verdict
    diverges: str = ""  # why the failures seem not to go away; empty: they may yet
    given_up: Mapping[str, str] = {}  # gate → why the agent cannot fix it, and `ANY`
    waits: bool = False  # a command of the agent runs in the background


class Ruling(Record):
    """The verdict on an attempt, and the reason."""

    verdict: Level
    outcome: str
    attempt: int = 0  # how often failures have gone back in this cycle, this time included
    how: str = ""  # of an agent that is let go: why


def rule(
    session: Session,
    attempt: Attempt,
    hook: Hook,
    *,
    blocks: tuple[int, int],
    breaker: tuple[int, int],
) -> Ruling:
    """Return the ruling on an attempt to stop: pass, block, allow in spite of failures, or stop.

    `blocks`, and the most of them: in this prompt, and in the session.
    """
    if attempt.verdict < BLOCK:
        return Ruling(attempt.verdict, PASSED)
    if attempt.verdict == STOP:
        return Ruling(STOP, STOPPED)
    before = session.rounds_of(hook.name, attempt.agent, attempt.prompt, attempt.gates)
    blocked = [round_ for round_ in before if round_.outcome == BLOCKED]
    given_up = attempt.given_up or session.reasons_not_to_fix(attempt.prompt)
    most = hook.max_retries
    if how := _why_given_up(attempt, given_up):
        outcome = CANNOT_FIX
    elif how := reached(blocks, breaker):
        outcome = BREAKER
    elif most == 0:
        outcome, how = EXHAUSTED, "at once, because max_retries is 0"
    elif is_reported_unable(attempt.deciding, blocked):
        outcome, how = COULD_NOT_RUN, "because it was already told once what is missing"
    elif len(blocked) >= most:
        outcome, how = EXHAUSTED, f"after {hook.attempts} attempts"
    elif attempt.diverges:
        outcome, how = NOT_CONVERGING, f"because {attempt.diverges}"
    else:
        return Ruling(BLOCK, BLOCKED, len(blocked) + 1)
    # Nothing stops a sub-agent but a block, and it may ignore that: it is told once to end.
    was_told = kind_of(hook.name) == "subagent-end" and any(
        round_.outcome in _USED_UP for round_ in before
    )
    stops = hook.on_exhausted == "stop" and outcome in _USED_UP and not was_told
    return Ruling(STOP if stops else ALLOW, outcome, len(blocked), how)


def _why_given_up(attempt: Attempt, given_up: Mapping[str, str]) -> str:
    """Return why an agent may end its turn by its own report; empty if it may not."""
    if question := given_up.get(ANY):
        return f"because it has a question: {question}"
    if ANY in given_up and attempt.waits:
        return "because it waits for a command in the background"
    if attempt.deciding and all(gate in given_up for gate, _status in attempt.deciding):
        return "because it reported that it cannot fix this"
    return ""


def is_reported_unable(deciding: tuple[tuple[str, str], ...], rounds: Iterable[Round]) -> bool:
    """Return whether only gates block that cannot run, all of them reported before."""
    reported = {
        gate for round_ in rounds for gate, status in round_.statuses if status in NO_RESULT
    }
    return bool(deciding) and all(
        status in NO_RESULT and gate in reported for gate, status in deciding
    )


def reached(blocks: tuple[int, int], limits: tuple[int, int]) -> str:
    """Return which limit is reached, in words; empty if none is.

    Both in one prompt, and in the session.
    """
    for count, limit, scope in zip(blocks, limits, ("prompt", "session"), strict=True):
        if count >= limit:
            return f"after {limit} blocks in this {scope}, the maximum"
    return ""


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Count a block that no policy has counted yet; allow the stop if there were too many."""
    if so_far.level != BLOCK or any(map(_is_counted, so_far.entries)):
        return so_far
    how = reached(call.blocks, call.config.breaker)
    gates = ", ".join(so_far.blocked_by)
    entry = call.round(gates, BREAKER if how else BLOCKED, tree=call.tree)
    entries = (*so_far.entries, entry)
    if not how:
        return so_far._replace(entries=entries)
    text = f"gitgates let the agent stop {how}. {so_far.to_agent}"
    to_person = "\n".join(part for part in (so_far.to_person, text) if part)
    return Verdict(WARN, to_person=to_person, entries=entries)


def _is_counted(entry: object) -> bool:
    """Return whether an entry counts the block, or marks it as the last one."""
    is_block = isinstance(entry, RoundEntry) and entry.outcome == BLOCKED
    return is_block or isinstance(entry, StopEntry)
