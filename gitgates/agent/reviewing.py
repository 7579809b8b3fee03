"""The gate `review`: it tells, where an agent wants to stop, whether its change was reviewed."""

from __future__ import annotations

from gitgates.agent.changed import blocks_elsewhere
from gitgates.agent.marking import marker
from gitgates.agent.place import is_elsewhere, note
from gitgates.agent.review_report import message_of, passed_text, record
from gitgates.agent.scenes import evidence_of, is_strict_here, scene_of
from gitgates.agent_types import Point
from gitgates.environ import skipped_gates
from gitgates.errors import GitError
from gitgates.policies.asking import MOST_BLOCKS
from gitgates.policies.change import StopRequest, decide
from gitgates.policies.evidence import GATE
from gitgates.policies.retry import BREAKER, PASSED
from gitgates.policies.review_text import (
    Asked,
    installed,
    installed_reviewer,
    let_go,
    reminder,
    strict,
)
from gitgates.types import ALLOW, BLOCK, WARN, Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.place import Place
    from gitgates.agent.replay import Turns
    from gitgates.git.snapshot import Snapshot
    from gitgates.policies.asking import Facts, Ruling
    from gitgates.policies.change import Assessment
    from gitgates.policies.session import Fact, Session
    from gitgates.types import Config


class Look:
    """One look at whether the agent may stop, as far as reviews go."""

    def __init__(self, place: Place, config: Config, now: Snapshot) -> None:
        self._place = place
        self._config = config
        self._evidence = evidence_of(place, place.journal.read())
        self._strict = is_strict_here(place, config.review, self._evidence)
        point = Point(tree=now.tree, head=now.head)
        self._scene, began = scene_of(place, config.review, self._evidence, point)
        self._notes = (began,) if began else ()

    def answer(self, session: Session) -> tuple[Answer, Fact | None]:
        """Return whether a review is missing, and what the journal keeps of that.

        Raises: GitError where git cannot compare.
        """
        skips = skipped_gates(self._place.env)
        if GATE in skips and not self._config.review.required:
            return self._skipped(skips[GATE]), None
        if not self._strict and self._config.review.mode == "off":
            return Answer(), None
        if not (self._scene.now.tree and self._scene.base.tree):
            text = "gitgates: review: nothing was decided, because there is no snapshot"
            return Answer(WARN, to_person=text), None
        payload = self._place.payload
        prompt = session.prompt_of(payload.prompt_id)
        request = StopRequest(
            strict=self._strict,
            session=payload.session,
            prompt=prompt,
            blocks=(session.blocks(prompt), session.blocks()),
            limits=self._config.breaker,
            transcript_abs=payload.transcript_abs,
            agent=payload.agent_id,
        )
        decided = decide(self._scene, self._evidence, request)
        if decided.told:
            how = {"how": "transcript", "name": decided.told[1] or decided.told[0]}
            self._place.journal.append({**marker(self._place, self._scene, decided.told), **how})
        if decided.ruling.outcome == PASSED:
            return self._passed(decided.facts, decided.ruling), None
        return self._refuse(decided.found, decided.ruling, prompt)

    def _skipped(self, by: str) -> Answer:
        record(self._place, "skip", {"gates": [GATE], "by": by})
        if not self._strict:
            return Answer()
        text = f"gitgates: review: a reviewer was asked for, and {by} has skipped that"
        return Answer(WARN, to_person=text)

    def _passed(self, facts: Facts, ruling: Ruling) -> Answer:
        if ruling.resets and self._config.review.mode != "require":
            self._place.journal.append({"what": "review-off", "why": "COMPLETE"})
        text = passed_text(self._place, facts)
        return Answer(WARN if text else ALLOW, to_person=text)

    def _refuse(self, found: Assessment, ruling: Ruling, prompt: str) -> tuple[Answer, Fact]:
        asked = self._asked(found, ruling, prompt)
        payload = self._place.payload
        fact = {
            "hook": payload.event,
            "agent": payload.agent_id,
            "prompt": prompt,
            "gates": GATE,
            "outcome": ruling.outcome,
            "strict": self._strict,
            "why": ruling.why,
            "how": ruling.how,
            "tree": self._scene.now.tree,
        }
        if ruling.outcome == BREAKER:
            record(self._place, "review-breaker", {"session": payload.session, "how": ruling.how})
            return Answer(WARN, to_person=let_go(asked, ruling.how)), fact
        text = strict(asked) if self._strict else reminder(asked)
        return Answer(BLOCK, to_agent=text), fact

    def _asked(self, found: Assessment, ruling: Ruling, prompt: str) -> Asked:
        decision, review = found.decision, self._config.review
        agents, skills = installed(review, self._place.repo.root_abs, self._place.env)
        return Asked(
            review=review,
            change=found.change,
            why=ruling.why,
            by_prompt=self._config.review.mode != "require",
            standings=found.standings,
            decision=decision.decision if decision else "",
            message=message_of(self._place, decision.message) if decision else "",
            root_abs=self._place.repo.root_abs if is_elsewhere(self._place) else "",
            notes=self._notes,
            agents=agents,
            skills=skills,
            reviewer=installed_reviewer(review, self._place.repo.root_abs, self._place.env),
            number=dict(self._evidence.blocks).get(prompt, 0) + 1,
            most=MOST_BLOCKS,
        )


def answer_review(
    place: Place, config: Config, now: Snapshot, known: tuple[Session, Turns, Answer]
) -> Answer:
    """Return what the agent is answered: what its gates say, and whether a review is missing.

    Raises: OSError where a block cannot be counted.
    """
    session, turns, gated = known
    try:
        look = Look(place, config, now)
        session = session._replace(elsewhere=blocks_elsewhere(place))
        own, fact = look.answer(session)
    except GitError as error:
        text = f"gitgates: review: nothing was decided, because git cannot compare: {error.message}"
        note(place, text)
        own, fact = Answer(WARN, to_person=text), None
    answer = _join(gated, own)
    if fact:
        turns.keep(answer, fact)
    return answer


def _join(one: Answer, other: Answer) -> Answer:
    """Return one answer that says both."""
    return Answer(
        max(one.verdict, other.verdict),
        to_agent="\n\n---\n\n".join(text for text in (one.to_agent, other.to_agent) if text),
        to_person="\n".join(text for text in (one.to_person, other.to_person) if text),
    )
