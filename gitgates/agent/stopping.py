"""The end of an agent's work: what the session changed is checked before it may stop."""

from __future__ import annotations

from gitgates.agent.changed import (
    blocks_elsewhere,
    is_unchanged,
    keep_base,
    session_changes,
    snapshot_now,
)
from gitgates.types import BLOCK, POLICY_GATES, STOP, Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.checks import Check
    from gitgates.agent.place import Place
    from gitgates.agent.replay import Turns
    from gitgates.git.snapshot import Snapshot
    from gitgates.policies.session import Session
    from gitgates.types import Config, Hook

_MOST_DEFERRED = 3  # a prompt


def answer_stop(
    place: Place, config: Config, hook: Hook, sessions: tuple[Session, Session]
) -> Answer:
    """Return whether the agent may stop, and why not."""
    before, session = sessions
    if _is_none_of_ours(place) or _defer(place, session):
        if place.payload.mode == "plan" and _asks_for_review(place, config, hook):
            now = snapshot_now(place)
            _note_turn(place, config, now)
            _note_rest(place, now, Answer())
        return Answer()
    now = snapshot_now(place)
    if not session.base:
        session = keep_base(place, session, now)
    is_asked = _asks_for_review(place, config, hook)
    if is_asked:
        _note_turn(place, config, now)
    answer = Answer()
    if not is_unchanged(session, now) or (is_asked and _has_committed(place)):
        answer = _answer_changed(place, (config, hook), (before, session), now)
    elif session.warnings:  # of what has been undone
        place.journal.append({"what": "told"})
    if is_asked:
        _note_rest(place, now, answer)
    return answer


def _note_turn(place: Place, config: Config, now: Snapshot) -> None:
    """Note what is there at the end of a turn, and which files of it are the session's own."""
    from gitgates.agent.scenes import is_shell_running, own_now  # most want no reviews
    from gitgates.policies.needs import hears_all
    from gitgates.store.files import length_of

    if now.tree:
        own = own_now(place, place.journal.read(), hears_all=hears_all(config))
        fact = {"what": "snapshot", "tree": now.tree, "head": now.head, "own": own}
        length = length_of(place.payload.transcript_abs)
        running = is_shell_running(place.payload)
        place.journal.append(fact | {"transcript": length, "running": running})


def _note_rest(place: Place, now: Snapshot, answer: Answer) -> None:
    """Note where the agent has nothing to do from now on: what changes next, others change.

    A server that it has left running is no work of its own.
    """
    from gitgates.store.files import length_of  # who wants no reviews need not load it

    lets_go = answer.verdict < BLOCK and answer.as_before is None
    is_end = place.payload.kind == "turn-end"  # a sub-agent's is none of the others' work
    if is_end and now.tree and lets_go and not _at_work(place):
        length = length_of(place.payload.transcript_abs)
        place.journal.append({"what": "rest", "tree": now.tree, "transcript": length})


def _has_committed(place: Place) -> bool:
    """Tell whether anything was committed, or checked out, since the session began.

    What was committed to a branch that has been left again is a change all the same.
    """
    from gitgates.git import reflog
    from gitgates.policies.evidence import fold  # where nothing else has changed

    base = fold(place.journal.read()).base
    return base is not None and bool(reflog.since(reflog.read(place.repo.git_dir_abs), base))


def _asks_for_review(place: Place, config: Config, hook: Hook) -> bool:
    """Tell whether this end asks for a review; that of an agent which reviews does not."""
    if not any(name in POLICY_GATES for name in hook.gates):
        return False
    from gitgates.agent.watching import is_watched  # who wants no reviews need not load it

    return not is_watched(config.review, place.payload)


def _answer_changed(
    place: Place, settings: tuple[Config, Hook], sessions: tuple[Session, Session], now: Snapshot
) -> Answer:
    # Cold: most often, nothing has changed.
    from gitgates.agent.replay import Turns
    from gitgates.engine.hooks import host_limit_s
    from gitgates.policies.needs import more_s

    config, hook = settings
    before, session = sessions
    session = session._replace(elsewhere=blocks_elsewhere(place))
    check, note = None, ""
    has_gates = any(name not in POLICY_GATES for name in hook.gates)
    if has_gates and not is_unchanged(session, now):
        # What runs gates takes as long to load as git takes to tell what has changed.
        from gitgates.agent.checks import make_check

        changes = session_changes(place, session, now.tree)
        if not (changes.paths or session.base):
            return Answer()  # there is nothing that anybody could have changed
        check, note = make_check(place, config, hook, changes), changes.note
    is_asked = _asks_for_review(place, config, hook)
    if check is None and not is_asked:
        return Answer()
    with Turns(place, host_limit_s(config, hook) + more_s(config, place.payload.kind)) as turns:
        tree = now.tree if now.provable else ""
        if (given := turns.given(before.last, tree)) is not None:
            return given
        session = turns.session()._replace(elsewhere=session.elsewhere)
        gated = Answer()
        if check is not None:
            known = (session, before.last, tree)
            gated = _answer_gates(place, check, known, (turns, note, now.tree))
        ends_here = gated.verdict == STOP or (
            gated.verdict == BLOCK and hook.strategy == "sequence"
        )
        if is_asked and not ends_here:
            from gitgates.agent.reviewing import answer_review

            seen = snapshot_now(place) if _may_have_written(check) else now
            return answer_review(place, config, seen, (turns.session(), turns, gated))
    return gated


def _answer_gates(
    place: Place,
    check: Check,
    known: tuple[Session, str, str],
    around: tuple[Turns, str, str],
) -> Answer:
    from gitgates.agent.attempt import Attempt

    session, last_before, tree = known
    turns, note, seen = around
    attempt = Attempt(place, check, session, tree)
    if attempt.has_passed():
        return Answer()
    if last := attempt.stands(last_before):
        answer, fact, more = attempt.repeat(last)
    else:
        answer, fact, more = attempt.run(note, seen)
    turns.keep(answer, fact, tuple(more))
    return answer


def _may_have_written(check: Check | None) -> bool:
    """Tell whether a gate has run that changes files."""
    return check is not None and any(s.gate.writes and not s.skip for s in check.plan.steps)


def _is_none_of_ours(place: Place) -> bool:
    """Tell whether this is not the end of any work: the summary of a conversation, or a plan."""
    payload = place.payload
    is_summary = payload.kind == "subagent-end" and not payload.agent_type
    return is_summary or payload.mode == "plan"


def _at_work(place: Place) -> bool:
    """Tell whether sub-agents are still at work."""
    return any(t.kind == "subagent" and t.status == "running" for t in place.payload.background)


def _defer(place: Place, session: Session) -> bool:
    """Tell whether sub-agents are still at work: a later stop comes when they have ended."""
    payload = place.payload
    prompt = session.prompt_of(payload.prompt_id)
    if payload.kind != "turn-end" or not _at_work(place):
        return False
    if session.deferred.count(prompt) >= _MOST_DEFERRED:
        return False
    place.journal.append({"what": "deferred", "prompt": prompt})
    return True
