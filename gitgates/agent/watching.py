"""What the gate `review` learns from an event, and what it answers where no gate has to run.

Most events have nothing for it; what costs anything is loaded for the others alone.
"""

from __future__ import annotations

from gitgates.engine.hooks import matches_agent
from gitgates.types import WARN, Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.place import Place
    from gitgates.agent_types import Payload
    from gitgates.policies.session import Fact
    from gitgates.types import Config, Review

_OURS = "gitgates"
_FAR = 200  # characters: further in, a prefix is not at the start


def is_reviewer(review: Review, agent_type: str) -> bool:
    """Tell whether an agent is the one whose decision counts in the strict form."""
    return matches_agent((review.reviewer,), agent_type)


def watch(place: Place, config: Config, facts: list[Fact]) -> Answer | None:
    """Learn from an event before its gates run; return an answer that stands instead of theirs.

    `facts` are those of the journal, with those of this event.

    Raises: GitgatesError for each expected failure; OSError where the journal cannot be written.
    """
    payload, review = place.payload, config.review
    match payload.kind:
        case "before-tool":
            return _before_tool(place, config, facts)
        case "after-tool":
            _after_tool(place, review, facts)
        case "prompt" if payload.automatic:
            return _ignore_prefix(payload, review)
        case "prompt":
            return _heed_prompt(place, config, facts)
        case "prompt-expansion" if matches_agent(review.skills, payload.skill):
            _mark(place, review, facts, ("command", payload.skill))
        case "subagent-start" if is_watched(review, payload):
            from gitgates.agent.reviewers import begin

            return begin(place, config)
        case "subagent-end" if is_reviewer(review, payload.agent_type):
            from gitgates.agent.reviewers import end

            return end(place, config, facts)
    return None


def watch_end(place: Place, config: Config, facts: list[Fact]) -> None:
    """Learn from a sub-agent that is let go: one that reviews has done so."""
    payload = place.payload
    if is_watched(config.review, payload):
        _mark(place, config.review, facts, ("agent", payload.agent_type))


def is_watched(review: Review, payload: Payload) -> bool:
    """Tell whether an event is of a sub-agent that reviews."""
    return matches_agent((*review.agents, review.reviewer), payload.agent_type)


def _before_tool(place: Place, config: Config, facts: list[Fact]) -> Answer | None:
    payload = place.payload
    if is_reviewer(config.review, payload.agent_type):
        from gitgates.agent.reviewers import hold

        if refused := hold(place, config, facts):
            return refused
    if payload.tool_kind == "shell" and _OURS in payload.command:
        return _name_caller(place)
    return None


def _name_caller(place: Place) -> Answer | None:
    """Have a command of ours say which agent it is of, and keep that."""
    from gitgates.policies.tokens import caller_fact, with_caller  # most commands are not ours

    payload = place.payload
    fact = caller_fact(payload.session, payload.agent_id, payload.agent_type, payload.tool_use_id)
    command = with_caller(payload.command, fact["nonce"])
    if not command:
        return None
    place.journal.append(fact)
    return Answer(command=command)


def _after_tool(place: Place, review: Review, facts: list[Fact]) -> None:
    payload = place.payload
    if payload.failed:
        return
    if payload.tool_kind == "report":
        _mark(place, review, facts, ("findings", ""))
    elif payload.tool_kind == "skill" and matches_agent(review.skills, payload.skill):
        _mark(place, review, facts, ("skill", payload.skill))


def _mark(place: Place, review: Review, facts: list[Fact], told: tuple[str, str]) -> None:
    from gitgates.agent.marking import mark  # takes a snapshot

    mark(place, review, facts, told)


def _ignore_prefix(payload: Payload, review: Review) -> Answer | None:
    """Tell the person where a prompt asks for something, and is none of theirs."""
    prefix = review.prefix
    if not prefix or prefix[:1] not in payload.prompt[:_FAR]:
        return None
    from gitgates.policies.reviewer_commands import asked_for

    if not asked_for(payload.prompt, prefix):
        return None
    return Answer(
        WARN,
        to_person=f"gitgates: a prompt that the agent has scheduled begins with `{prefix}`, which "
        "counts only in a prompt of yours. If it is yours, word it otherwise, and submit it again",
    )


def _heed_prompt(place: Place, config: Config, facts: list[Fact]) -> Answer | None:
    prompt, prefix = place.payload.prompt, config.review.prefix
    if not prefix or prefix[:1] not in prompt[:_FAR]:
        return None
    from gitgates.policies.reviewer_commands import ON, asked_for, is_near

    asked = asked_for(prompt, prefix)
    if asked:
        from gitgates.agent.reviewers import turn

        return turn(place, config, facts, on=asked == ON)
    if is_near(prompt, prefix):
        text = f"gitgates: a prompt asks for a review where it begins with `{prefix}` and a blank"
        return Answer(WARN, to_person=text)
    return None
