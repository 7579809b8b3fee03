"""How often failures go back to an agent, and when it is let go. Pure.

Nothing here relies on the host: its own cap is reset by any tool call, and `stop_hook_active` tells
only that some hook has blocked before. What counts is in the session's journal.
"""

from __future__ import annotations

from gitgates.lifecycle import kind_of
from gitgates.policies.breaker import BLOCKED, BREAKER, PASSED, reached
from gitgates.policies.session import NO_RESULT
from gitgates.record import Record
from gitgates.types import ALLOW, BLOCK, STOP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.policies.session import Round, Session
    from gitgates.types import Level

# Outcomes of a round, beside those of policies/breaker.py.
STOPPED = "stopped"
EXHAUSTED = "exhausted"
NOT_CONVERGING = "not-converging"
CANNOT_FIX = "cannot-fix"
COULD_NOT_RUN = "could-not-run"
LET_GO = (EXHAUSTED, BREAKER, NOT_CONVERGING, CANNOT_FIX, COULD_NOT_RUN)
_USED_UP = (EXHAUSTED, NOT_CONVERGING)


class Limits(Record):
    """How often failures may go back."""

    retries: int  # in one cycle
    per_prompt: int
    per_session: int
    stops: bool = False  # the agent, when that is used up; otherwise it is let go


class Try(Record):
    """What gates have just said, and where in the session that was."""

    hook: str
    prompt: str
    agent: str
    gates: str  # the set of gates, as it is listed
    verdict: Level
    deciding: tuple[tuple[str, str], ...]  # gate and status of each that asks for the verdict
    diverges: str = ""  # why the failures seem not to go away; empty: they may yet


class Ruling(Record):
    """What becomes of it."""

    verdict: Level
    outcome: str
    attempt: int = 0  # how often failures have gone back in this cycle, this time included
    attempts: int = 0  # how often they may
    how: str = ""  # of an agent that is let go: why


def rule(session: Session, one: Try, limits: Limits) -> Ruling:
    """Return what a try at stopping leads to: pass, block, let go or stop."""
    if one.verdict < BLOCK:
        return Ruling(one.verdict, PASSED)
    if one.verdict == STOP:
        return Ruling(STOP, STOPPED)
    before = session.rounds_of(one.hook, one.agent, one.prompt, one.gates)
    blocked = tuple(round_ for round_ in before if round_.outcome == BLOCKED)
    let_go = _let_go(session, one, limits, blocked)
    if let_go is None:
        return Ruling(BLOCK, BLOCKED, len(blocked) + 1, limits.retries)
    outcome, how = let_go
    stops = limits.stops and outcome in _USED_UP and not _was_told_to_end(one, before)
    return Ruling(STOP if stops else ALLOW, outcome, len(blocked), limits.retries, how)


def _was_told_to_end(one: Try, before: tuple[Round, ...]) -> bool:
    """Return whether a sub-agent has been told to end already.

    Nothing stops it but a block, and it may do as it likes: to say so each time would never end.
    """
    return kind_of(one.hook) == "subagent-end" and any(
        round_.outcome in _USED_UP for round_ in before
    )


def _let_go(
    session: Session, one: Try, limits: Limits, blocked: tuple[Round, ...]
) -> tuple[str, str] | None:
    """Return why the agent is let go, though gates block; None if it is not."""
    given_up = session.reasons_not_to_fix(one.prompt)
    if one.deciding and all(gate in given_up for gate, _status in one.deciding):
        return CANNOT_FIX, "because it says that it cannot fix this"
    blocks = session.blocks(one.prompt), session.blocks()
    if how := reached(blocks, (limits.per_prompt, limits.per_session)):
        return BREAKER, how
    if limits.retries == 0:
        return EXHAUSTED, "at once, because max_retries is 0"
    if _only_said_already(one, blocked):
        return COULD_NOT_RUN, "because what is missing was said once already"
    if len(blocked) >= limits.retries:
        return EXHAUSTED, f"after {limits.retries} attempt{'s' if limits.retries > 1 else ''}"
    if one.diverges:
        return NOT_CONVERGING, f"because {one.diverges}"
    return None


def _only_said_already(one: Try, blocked: tuple[Round, ...]) -> bool:
    """Return whether nothing but gates that cannot run block, and the agent knows of each."""
    told = {gate for round_ in blocked for gate, status in round_.statuses if status in NO_RESULT}
    return bool(one.deciding) and all(
        status in NO_RESULT and gate in told for gate, status in one.deciding
    )
