"""Replace verdicts that an agent's event cannot express, and shorten texts for it."""

from __future__ import annotations

from gitgates.core.types import BLOCK, STOP, WARN, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.agent_types import Channels, Payload
    from gitgates.core.types import Level

_LONGEST = 10_000  # of a text; a client may write a longer one into a file
_CUT = " […]"


def express(payload: Payload, verdict: Level) -> tuple[Level, str]:
    """Return the verdict that an event can express, and why it differs from the actual one."""
    can = payload.can
    if verdict == STOP and not can.stop:
        return express(payload, BLOCK)[0], f"{payload.event} cannot stop the agent"
    if verdict == BLOCK and not (can.block or can.deny):
        return WARN, f"{payload.event} cannot block"
    return verdict, ""


def refuse_unasked(payload: Payload, verdict: Verdict) -> Verdict:
    """Return the verdict, or a block instead of a question that nobody can answer."""
    if not verdict.ask or verdict.level >= BLOCK or (payload.can.ask and payload.agent.attended):
        return verdict
    why = "this session has no person to ask" if payload.can.ask else "it cannot be asked"
    text = f"{verdict.to_agent}\n\nThis requires a person's permission, but {why}: it is refused."
    return verdict._replace(level=BLOCK, ask=False, to_agent=text.strip())


def reaches_agent(can: Channels, verdict: Level) -> bool:
    """Return whether the agent, and not only the person, gets a verdict's text."""
    match verdict:
        case 0 | 1:
            return can.context
        case 2:
            return (can.block or can.deny) and not can.reason_to_person
        case _:
            return False


def cut(text: str) -> str:
    """Return a text, shortened to what clients accept: they count as JavaScript does."""
    if not text:
        return ""
    from gitgates.core.clean import plain  # most events are answered with nothing

    text = plain(text.encode("utf-8", "replace"))  # a file's name need not be text
    if len(text) <= _LONGEST // 2:
        return text
    units = text.encode("utf-16-le", "replace")  # two bytes for each unit that JavaScript counts
    if len(units) <= _LONGEST * 2:
        return text
    return units[: (_LONGEST - len(_CUT)) * 2].decode("utf-16-le", "ignore") + _CUT
