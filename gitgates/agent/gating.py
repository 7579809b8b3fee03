"""The gates of an event that is not the end of the agent's work, such as a tool call."""

from __future__ import annotations

from gitgates.agent.checks import Changes, deciding, make_check, remember, run_check, situation
from gitgates.agent.place import edited_paths
from gitgates.agent.replay import Turns
from gitgates.config.load import FILES
from gitgates.engine.hooks import host_limit_s
from gitgates.hosts.capabilities import express
from gitgates.policies.retry import BLOCKED, NO_RESULT, PASSED, STOPPED
from gitgates.report.feedback import feedback, stop_text
from gitgates.report.result import outcome_of
from gitgates.types import ALLOW, BLOCK, STOP, WARN, Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.checks import Check
    from gitgates.agent.place import Place
    from gitgates.policies.session import Session
    from gitgates.types import Config, Decision, Hook

_FINE = ("passed", "skipped")
_OUTCOMES = {ALLOW: PASSED, WARN: PASSED, BLOCK: BLOCKED, STOP: STOPPED}


def answer_event(
    place: Place, config: Config, hook: Hook, sessions: tuple[Session, Session]
) -> Answer:
    """Run the gates of an event and return what they mean for it."""
    paths = edited_paths(place)
    check = make_check(place, config, hook, Changes(paths))
    if check is None:
        return Answer()
    with Turns(place, host_limit_s(config, hook)) as turns:
        if (given := turns.given(sessions[0].last)) is not None:
            return given
        decision = run_check(place, check, {})
        decision = _let_mend(place, decision, paths)
        answer = _answer(place, check, decision, sessions[1])
        fact = remember(place, check, deciding(decision), _prompt(place, sessions[1]))
        if decision.verdict or any(v.result.status not in _FINE for v in decision.visits):
            from gitgates.agent.saving import Came, save_attempt  # an edit that is fine leaves none

            save_attempt(place, check, answer, Came(decision, outcome_of(decision)))
        turns.keep(answer, fact | {"outcome": _OUTCOMES[answer.verdict]})
    return answer


def _answer(place: Place, check: Check, decision: Decision, session: Session) -> Answer:
    said = situation(place, check, decision)
    leads_to, why = express(place.payload, decision.verdict)
    said = said._replace(leads_to=leads_to)
    if why:
        place.say(f"{why}: {decision.reason}")
        said = said._replace(notes=(*said.notes, f"{why}."))
    person = "\n".join(said.observed)
    if decision.verdict == STOP:
        return Answer(STOP, to_agent=feedback(said), to_person=stop_text(said))
    if decision.verdict == BLOCK and _was_said(place, session, deciding(decision)):
        # A tool that is missing must not lock the agent out of everything.
        said = said._replace(leads_to=WARN)
        return Answer(WARN, to_agent=feedback(said), to_person=f"gitgates: {decision.reason}")
    if decision.verdict >= WARN or said.changed_paths:
        level = max(decision.verdict, WARN)
        return Answer(level, to_agent=feedback(said), to_person=person)
    return Answer(to_person=person)


def _was_said(place: Place, session: Session, asked: tuple[tuple[str, str], ...]) -> bool:
    """Tell whether only gates that cannot run block, and that was said in this prompt already."""
    prompt = _prompt(place, session)
    told = {
        gate
        for one in session.rounds
        if one.prompt == prompt and one.hook == place.payload.event
        for gate, status in one.statuses
        if status in NO_RESULT
    }
    return bool(asked) and all(status in NO_RESULT and gate in told for gate, status in asked)


def _let_mend(place: Place, decision: Decision, paths: tuple[str, ...] | None) -> Decision:
    """Let an edit of the configuration through where only a mistake in it is in the way."""
    is_fault = decision.verdict == STOP and all(
        visit.result.status == "not-started" for visit in decision.visits if visit.verdict == STOP
    )
    if place.payload.kind == "before-tool" and is_fault and set(paths or ()) & set(FILES):
        return decision._replace(verdict=WARN)
    return decision


def _prompt(place: Place, session: Session) -> str:
    return session.prompt_of(place.payload.prompt_id)
