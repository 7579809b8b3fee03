"""What each event of an agent can be answered with, and what becomes of a verdict that it cannot.

Source: recorded from Claude Code 2.1.329; its hook reference where that says more.
"""

from __future__ import annotations

from gitgates.record import Record
from gitgates.types import BLOCK, STOP, WARN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.types import Verdict


class Channels(Record):
    """What one event offers. A word to the person is possible with each of them."""

    deny: bool = False  # refuse a tool call, before it is made
    block: bool = False  # refuse, or keep the agent at work, and give it a reason
    stop: bool = False  # end the agent's turn
    context: bool = False  # tell the agent something without refusing anything


NOTHING = Channels()
CLAUDE: dict[str, Channels] = {
    "SessionStart": Channels(context=True),
    "UserPromptSubmit": Channels(block=True, stop=True, context=True),
    "UserPromptExpansion": Channels(block=True, stop=True, context=True),
    "PreToolUse": Channels(deny=True, stop=True, context=True),
    "PostToolUse": Channels(block=True, stop=True, context=True),
    "PostToolUseFailure": Channels(context=True),
    "SubagentStart": Channels(context=True),
    # It ignores a stop, and loses a block that stands beside one.
    "SubagentStop": Channels(block=True),
    "Stop": Channels(block=True, stop=True),
    "StopFailure": NOTHING,
    "PreCompact": Channels(block=True),
    "PostCompact": NOTHING,
    "SessionEnd": NOTHING,
}


def express(event: str, verdict: Verdict) -> tuple[Verdict, str]:
    """Return the verdict that an event can express, and why it is another one than asked for."""
    has = CLAUDE.get(event, NOTHING)
    if verdict == STOP and not has.stop:
        lower, _why = express(event, BLOCK)
        return lower, f"{event} cannot stop the agent"
    if verdict == BLOCK and not (has.block or has.deny):
        return WARN, f"{event} cannot block"
    return verdict, ""


def reaches_agent(event: str, verdict: Verdict) -> bool:
    """Tell whether what is said with a verdict reaches the agent itself, and not only the person.

    The reason of a prompt that is refused goes to the person who wrote it.
    """
    has = CLAUDE.get(event, NOTHING)
    match verdict:
        case 0 | 1:
            return has.context
        case 2:
            return (has.block or has.deny) and not event.startswith("UserPrompt")
        case _:
            return False
