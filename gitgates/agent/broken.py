"""What an agent is answered while the configuration cannot be read.

It cannot stop before that is mended, within bounds, where its session may have caused that; and
nothing keeps it from mending it. Otherwise the person is told, who may be in the middle of an edit.
"""

from __future__ import annotations

import os

from gitgates.agent.changed import is_unchanged, snapshot_now
from gitgates.agent.replay import Turns
from gitgates.agent.telling import new_facts, what_is_there, with_source
from gitgates.config.load import FILES, LOCAL_FILE
from gitgates.git.object_store import reading_git
from gitgates.lifecycle import ENDINGS
from gitgates.policies.retry import BLOCKED, Limits, Try, rule
from gitgates.policies.session import fold
from gitgates.types import BLOCK, WARN, Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.place import Place
    from gitgates.errors import ConfigError
    from gitgates.policies.session import Fact

_GATES = "the configuration"
_TURN_S = 10.0
# With no configuration to ask, the defaults of the keys max_retries and breaker.
_LIMITS = Limits(retries=3, per_prompt=10, per_session=30)


def answer_broken(place: Place, error: ConfigError, key: str) -> Answer:
    """Return the answer to an event of a repository whose configuration cannot be read."""
    payload = place.payload
    place.say(str(error))
    try:
        known = place.journal.read()
        place = with_source(place, known)
        facts = [*new_facts(place, key), *what_is_there(place, fold(known))]
        place.journal.append(*facts)
        if payload.kind in ENDINGS and payload.mode != "plan":
            return _answer_ending(place, str(error))
    except OSError as lost:
        place.say(f"{place.journal.path_abs}: {lost.strerror}")
        return Answer()
    is_ours = any(path.endswith(FILES) for path in payload.paths)
    if payload.kind == "after-tool" and is_ours:
        return Answer(WARN, to_agent=f"The configuration of gitgates has a problem now.\n\n{error}")
    return Answer()


def _answer_ending(place: Place, message: str) -> Answer:
    payload = place.payload
    if payload.kind == "subagent-end" and not payload.agent_type:
        return Answer()
    with Turns(place, _TURN_S) as turns:
        given = turns.given("")
        return given if given is not None else _answer_in_turn(place, message, turns)


def _answer_in_turn(place: Place, message: str, turns: Turns) -> Answer:
    payload = place.payload
    facts = place.journal.read()
    session = fold(facts)
    now = snapshot_now(place)
    if session.base and is_unchanged(session, now):
        return Answer()
    if _is_somebody_elses(place, facts, session.base, now.tree):
        # What an earlier turn has caused, it was sent back for.
        text = "gitgates checked nothing; this turn has not caused the problem that is in the way"
        return Answer(WARN, to_person=f"{text}. {message}")
    prompt = session.prompt_of(payload.prompt_id)
    broken = (("configuration", "failed"),)
    one = Try(payload.event, prompt, payload.agent_id, _GATES, BLOCK, broken)
    ruling = rule(session, one, _LIMITS)
    if ruling.outcome == BLOCKED:
        text = (
            "The quality gates could not be read, so that nothing was checked "
            f"(attempt {ruling.attempt} of {ruling.attempts}).\n\n{message}\n\n"
            "Mend that place of the file, and check it with: gitgates check\n"
            "If somebody else is editing it at this moment, leave the file as it is, and end your "
            "turn again: after the last attempt you are let go, and the person is told."
        )
        answer = Answer(BLOCK, to_agent=text)
    else:
        text = f"gitgates checked nothing; the agent was let go {ruling.how}. {message}"
        answer = Answer(WARN, to_person=text)
    fact: Fact = {
        "hook": payload.event,
        "agent": payload.agent_id,
        "prompt": prompt,
        "gates": _GATES,
        "outcome": ruling.outcome,
        "statuses": list(broken),
    }
    turns.keep(answer, fact)
    return answer


def _is_somebody_elses(place: Place, facts: list[Fact], base: str, now: str) -> bool:
    """Tell whether the session has not touched the configuration, as far as that is known.

    Either it used no tool that may write any file, or the files are as they were when it began.
    """
    from gitgates.agent.scenes import own_now  # cold, as all of this
    from gitgates.agent.tampering import knows_review

    # What the gate `review` hears of is known only from what it has noted.
    hears_all = knows_review(facts)
    own = own_now(place, facts, hears_all=hears_all)
    if own is not None:
        return not set(own).intersection(FILES)
    if not (base and now) or os.path.exists(f"{place.repo.root_abs}/{LOCAL_FILE}"):
        return False  # git may ignore that one: then it is in no snapshot
    git = reading_git(place.repo)
    compared = git.ask("diff-tree", "--quiet", base, now, "--", *FILES)
    return compared.exit_status == 0
