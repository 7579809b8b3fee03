"""The strict form: asked for by a prompt; the reviewer begins, is held, and ends."""

from __future__ import annotations

import json

from gitgates.agent.replay import Turns
from gitgates.agent.scenes import is_strict_here, point_now, scene_of
from gitgates.agent.tampering import is_another_reviewer, reviewers
from gitgates.agent.telling import event_key
from gitgates.engine.hooks import least_limit_s
from gitgates.lifecycle import kind_of
from gitgates.policies.asking import MOST_SENT_BACK
from gitgates.policies.change import still_holds
from gitgates.policies.evidence import GATE, fold
from gitgates.policies.needs import more_s
from gitgates.policies.retry import BLOCKED, BREAKER
from gitgates.policies.review_text import installed_reviewer, reviewer_task, sent_back, strict_began
from gitgates.policies.reviewer_commands import refuse_tool
from gitgates.policies.tokens import MASK, new_token
from gitgates.types import BLOCK, WARN, Answer, Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.place import Place
    from gitgates.agent_types import Point
    from gitgates.policies.evidence import Decision, Evidence
    from gitgates.policies.session import Fact
    from gitgates.types import Config, Review


def turn(place: Place, config: Config, facts: list[Fact], *, on: bool) -> Answer:
    """Turn the strict form on or off, as a prompt asks."""
    key = event_key(place.payload)
    what = "review-on" if on else "review-off"
    if not any(fact.get("what") == what and fact.get("key") == key for fact in facts):
        place.journal.append({"what": what, "key": key})
    review = config.review
    if not on:
        return _turned_off(review)
    if not any(GATE in hook.gates for hook in config.hooks if kind_of(hook.name) == "turn-end"):
        text = "gitgates: the hook Stop does not list `review`; no reviewer is waited for"
        return Answer(WARN, to_person=text)
    person = (
        f"gitgates: an independent review is asked for: this work ends when `{review.reviewer}` "
        f"has posted COMPLETE. A prompt that begins with {review.prefix}:stop ends that."
    )
    there = installed_reviewer(review, place.repo.root_abs, place.env)
    return Answer(WARN, to_agent=strict_began(review, there), to_person=person)


def _turned_off(review: Review) -> Answer:
    if review.mode == "require":
        text = "This repository requires an independent review, whatever a prompt says."
        return Answer(WARN, to_person=f"gitgates: {text[:1].lower()}{text[1:]}")
    return Answer(
        WARN,
        to_agent="The person has ended the wish for an independent review.",
        to_person="gitgates: the wish for an independent review is ended.",
    )


def begin(place: Place, config: Config) -> Answer | None:
    """Note what a sub-agent that reviews will see, and hand the reviewer its token, once."""
    with _turn_of(place, config):
        facts = place.journal.read()
        now = point_now(place)
        agent, key = place.payload.agent_id, event_key(place.payload)
        began = {"what": "review-began", "agent": agent, "tree": now.tree, "head": now.head}
        was_told = any(f.get("what") == "token" and f.get("key") == key for f in facts)
        if not agent or was_told or not _is_held(place, config, fold(facts)):
            place.journal.append(began)
            return None
        if is_another_reviewer(
            facts, reviewers(config.review, place.repo.root_abs, place.env)
        ):  # even if it is put back before it posts
            place.journal.append({"what": "reviewer-changed"})
        token, fact = new_token(agent, key)
        place.journal.append(began, fact)
        return Answer(WARN, to_agent=reviewer_task(config.review, token))


def _turn_of(place: Place, config: Config) -> Turns:
    event = place.payload.event
    return Turns(place, least_limit_s(Hook(name=event)) + more_s(config, place.payload.kind))


def hold(place: Place, config: Config, facts: list[Fact]) -> Answer | None:
    """Refuse what the reviewer may not do, while its decision is wanted."""
    if not _is_held(place, config, fold(facts)):
        return None
    payload = place.payload
    allowed = config.review.reviewer_commands
    refused = refuse_tool(payload.tool_kind, payload.tool, payload.command, allowed)
    return Answer(BLOCK, to_agent=refused) if refused else None


def end(place: Place, config: Config, facts: list[Fact]) -> Answer | None:
    """Send a reviewer back that leaves without a decision; None where the strict form is off."""
    if not place.payload.agent_id or not _is_held(place, config, fold(facts)):
        return None
    with _turn_of(place, config) as turns:
        if (given := turns.given("")) is not None:
            return _with_token(place, given)
        evidence = fold(place.journal.read())
        return _answer_end(place, config, evidence, turns)


def _with_token(place: Place, given: Answer) -> Answer:
    """Return an answer that was given already, with a token of its own in place of the mask."""
    text = json.loads(given.as_before or "{}").get("reason", "")
    if MASK not in text:
        return given
    token, fact = new_token(place.payload.agent_id, "")
    place.journal.append(fact)
    return Answer(BLOCK, to_agent=text.replace(f"--token {MASK}", f"--token {token}"))


def _answer_end(place: Place, config: Config, evidence: Evidence, turns: Turns) -> Answer:
    agent = place.payload.agent_id
    mine = [one for one in evidence.decisions if one.counts and one.agent == agent]
    now = point_now(place)
    if mine and _is_of_now(place, config, evidence, (mine[-1], now)):
        return Answer()
    times = dict(evidence.sent_back).get(agent, 0)
    fact: Fact = {
        "hook": place.payload.event,
        "agent": agent,
        "prompt": "",
        "gates": GATE,
        "sent_back": True,
        "tree": now.tree,
    }
    if times >= MOST_SENT_BACK:
        text = (
            f"gitgates: review: `{place.payload.agent_type}` ended without a decision on the "
            f"change as it is, though it was sent back {times} times"
        )
        answer = Answer(WARN, to_person=text)
        turns.keep(answer, fact | {"outcome": BREAKER})
        return answer
    why = (
        "You posted your decision, but the change is another one by now."
        if mine
        else "You have not posted a decision yet, so that you cannot end."
    )
    token, known = new_token(agent, "")
    # What is kept of it, for a second delivery, is without the token.
    kept = Answer(BLOCK, to_agent=sent_back(MASK, why))
    turns.keep(kept, fact | {"outcome": BLOCKED}, (known,))
    return kept._replace(to_agent=sent_back(token, why))


def _is_of_now(
    place: Place, config: Config, evidence: Evidence, compared: tuple[Decision, Point]
) -> bool:
    decision, now = compared
    scene, _note = scene_of(place, config.review, evidence, now)
    return still_holds(scene, decision.point, decision.patch, strict=True)[0]


def _is_held(place: Place, config: Config, evidence: Evidence) -> bool:
    """Tell whether a sub-agent's decision is wanted: it is the reviewer, in the strict form."""
    from gitgates.agent.watching import is_reviewer

    return is_reviewer(config.review, place.payload.agent_type) and is_strict_here(
        place, config.review, evidence
    )
