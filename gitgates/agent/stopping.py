"""The end of an agent's work: what the session changed is checked before it may stop."""

from __future__ import annotations

from gitgates.agent.changed import (
    blocks_elsewhere,
    first_tree,
    is_unchanged,
    session_changes,
    snapshot_now,
)
from gitgates.types import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.place import Place
    from gitgates.policies.session import Session
    from gitgates.types import Config, Hook

_MOST_DEFERRED = 3  # a prompt


def answer_stop(
    place: Place, config: Config, hook: Hook, sessions: tuple[Session, Session]
) -> Answer:
    """Return whether the agent may stop, and why not."""
    before, session = sessions
    if _is_none_of_ours(place) or _defer(place, session):
        return Answer()
    now = snapshot_now(place)
    if not session.base:
        session = session._replace(base=first_tree(place, session), not_seen=now.not_seen)
    if is_unchanged(session, now):
        if session.warnings:  # of what has been undone
            place.journal.append({"what": "told"})
        return Answer()
    # What runs gates takes longer to load than git to tell that nothing has changed.
    from gitgates.agent.attempt import Attempt
    from gitgates.agent.checks import make_check
    from gitgates.agent.replay import Turns
    from gitgates.engine.limits import host_limit_s

    session = session._replace(elsewhere=blocks_elsewhere(place))
    changes = session_changes(place, session, now.tree)
    if not (changes.paths or session.base):
        return Answer()  # there is nothing that anybody could have changed
    check = make_check(place, config, hook, changes)
    if check is None:
        return Answer()
    with Turns(place, host_limit_s(config, hook)) as turns:
        tree = now.tree if now.provable else ""
        if (given := turns.given(before.last, tree)) is not None:
            return given
        session = turns.session()._replace(
            base=session.base, not_seen=session.not_seen, elsewhere=session.elsewhere
        )
        attempt = Attempt(place, check, session, tree)
        if attempt.has_passed():
            return Answer()
        if last := attempt.stands(before.last):
            answer, fact, more = attempt.repeat(last)
        else:
            answer, fact, more = attempt.run(changes.note)
        turns.keep(answer, fact, tuple(more))
    return answer


def _is_none_of_ours(place: Place) -> bool:
    """Tell whether this is not the end of any work: the summary of a conversation, or a plan."""
    payload = place.payload
    is_summary = payload.event == "SubagentStop" and not payload.agent_type
    return is_summary or payload.mode == "plan"


def _defer(place: Place, session: Session) -> bool:
    """Tell whether sub-agents are still at work: a later stop comes when they have ended."""
    payload = place.payload
    at_work = [t for t in payload.background if t.kind == "subagent" and t.status == "running"]
    prompt = session.prompt_of(payload.prompt_id)
    if payload.event != "Stop" or not at_work:
        return False
    if session.deferred.count(prompt) >= _MOST_DEFERRED:
        return False
    place.journal.append({"what": "deferred", "prompt": prompt})
    return True
