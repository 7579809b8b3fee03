"""Handle one event of an agent, from its bytes to the bytes of the answer.

Whatever goes wrong on our side lets the agent pass, and is said: on standard error, for the host's
debug log, and in the session's journal.
"""

from __future__ import annotations

import os

from gitgates.agent.place import Place, end_within, find_places, note
from gitgates.agent.telling import (
    end_main_thread,
    event_key,
    new_facts,
    tell,
    what_is_there,
    with_source,
)
from gitgates.agent_types import Payload
from gitgates.config.load import load
from gitgates.engine.hooks import least_limit_s, matches_hook
from gitgates.errors import ConfigError, GitError, GitgatesError
from gitgates.hosts import DEFAULT_AGENT, BadPayload, agent_host
from gitgates.hosts.capabilities import express
from gitgates.lifecycle import ENDINGS
from gitgates.policies.needs import hears_all, is_review_on, more_s, needs
from gitgates.policies.session import Session, fold
from gitgates.proc.alarm import stop_alarm
from gitgates.proc.call import OutOfTime
from gitgates.types import BLOCK, WARN, Answer, Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.hosts import AgentHost
    from gitgates.policies.session import Fact
    from gitgates.types import Config

_UNCHECKED = "nothing is checked"
_NO_SETTINGS = f"there is no [tool.gitgates] here; {_UNCHECKED}"


def respond(
    raw: bytes, env: Mapping[str, str], say: Callable[[str], None], host: str = DEFAULT_AGENT
) -> bytes:
    """Return the answer to one event of a host: what it receives, or nothing. Raises nothing."""
    where: list[Place] = []
    try:
        return _respond(raw, env, say, where, host=agent_host(host))
    except BadPayload as bad:
        trouble = f"the payload cannot be read: {bad}"
    except KeyboardInterrupt:
        trouble = "interrupted; nothing was decided"
    except BaseException as error:  # noqa: BLE001 - whatever it is, the agent is to go on
        trouble = f"a bug of ours, please report it: {_trace(error)}"
    _report(trouble, where, env, say)
    return b""


def _respond(
    raw: bytes,
    env: Mapping[str, str],
    say: Callable[[str], None],
    where: list[Place],
    *,
    host: AgentHost,
) -> bytes:
    payload = host.decode(raw, env)
    if not payload.kind:
        return b""
    try:
        where += find_places(payload, raw, env, say)
    except GitError as error:
        say(error.message)
        return host.encode(payload, _without_repository(payload, error))
    if any(_is_of_a_gate(place) for place in where):
        return b""  # a gate started this agent: to gate it, too, would never end
    return host.encode(payload, _answer_all(where))


def _without_repository(payload: Payload, error: GitError) -> Answer:
    """Tell the person, as a session begins, where gates are configured and none can run."""
    if payload.kind == "turn-end":
        from gitgates.agent.tampering import answer_lost  # seldom needed

        return answer_lost(payload, error.message)
    if payload.kind != "session-start":
        return Answer()
    try:
        if load(payload.cwd_abs) is None:
            return Answer()
    except ConfigError:
        pass  # which is a configuration all the same
    text = f"gitgates: {error.message}, so that {_UNCHECKED} in this session. {error.hint}"
    return Answer(WARN, to_person=text.rstrip())


def _report(
    text: str, where: list[Place], env: Mapping[str, str], say: Callable[[str], None]
) -> None:
    """Say what went wrong, and keep it in a journal if there is any place for one."""
    try:
        note(where[0] if where else find_places(Payload(), b"", env, say)[0], text)
    except Exception as error:  # noqa: BLE001 - there is nowhere left to tell of it
        say(f"{text} ({error})")


def _trace(error: BaseException) -> str:
    import traceback  # only a bug pays for it

    return "".join(traceback.format_exception(error))


def _answer_all(where: list[Place]) -> Answer:
    """Return the answer of the first place that refuses; otherwise what all have to say."""
    answers = []
    for place in where:
        answer = _answer(place)
        if express(place.payload, answer.verdict)[0] >= BLOCK or answer.as_before:
            return answer
        answers.append(answer)
    if len(answers) == 1:
        return answers[0]
    return Answer(
        max(answer.verdict for answer in answers),
        to_agent="\n\n".join(dict.fromkeys(one.to_agent for one in answers if one.to_agent)),
        to_person="\n".join(dict.fromkeys(one.to_person for one in answers if one.to_person)),
        command=next((one.command for one in answers if one.command), ""),
    )


def _answer(place: Place) -> Answer:
    """Return the answer to an event of a repository."""
    try:
        config = load(place.repo.root_abs, f"{place.repo.state_abs}/config.marshal")
    except ConfigError as error:
        from gitgates.agent.broken import answer_broken

        return answer_broken(place, error, event_key(place.payload))
    if config is None or not needs(config):
        return _without_settings(place, config)
    event = place.payload.event
    # No hook stands in for one of an agent's, so that the plan need not be loaded to find it.
    hook = next((hook for hook in config.hooks if hook.name == event), Hook(name=event))
    end_within(place, least_limit_s(hook) + more_s(config, place.payload.kind))
    try:
        _heal(place)
        answer = _answer_configured(place, config, hook)
        return _with_changes(place, config, answer) if place.payload.kind == "turn-end" else answer
    except OutOfTime:
        text = f"gitgates: {event} was not checked: that took longer than the host waits"
        note(place, text)
        return Answer(WARN, to_person=text)
    except OSError as error:
        # Without the journal nothing is counted, and a gate could block for ever.
        where = error.filename or place.journal.path_abs
        text = f"gitgates: {where}: {error.strerror}; so nothing that gates of {event} say counts"
        place.say(text)
        return Answer(WARN, to_person=text)
    except GitgatesError as error:
        text = f"gitgates: {event} was not checked: {error}"
        note(place, text)
        return Answer(WARN, to_person=text)
    finally:
        stop_alarm()


def _heal(place: Place) -> None:
    """Put back what a killed run had hidden here: else it would seem that the agent removed it."""
    state_abs = place.repo.state_abs
    if os.path.isdir(f"{state_abs}/rescue") or os.path.exists(f"{state_abs}/recovered"):
        from gitgates.worktree.isolate import catch_up  # most events run no gates

        catch_up(place.repo, place.say)


def _with_changes(place: Place, config: Config, answer: Answer) -> Answer:
    """Add what else has changed in the session that decides what is checked."""
    if answer.as_before is not None:
        return answer
    from gitgates.agent.tampering import tell as tell_changes  # a stop takes a snapshot as it is

    texts = [text for text in (answer.to_person, tell_changes(place, config)) if text]
    verdict = max(answer.verdict, WARN) if len(texts) > bool(answer.to_person) else answer.verdict
    return answer._replace(verdict=verdict, to_person="\n".join(texts))


def _answer_configured(place: Place, config: Config, hook: Hook) -> Answer:
    known = place.journal.read()
    if place.journal.torn:
        place.say(f"{place.journal.path_abs}: torn lines were passed over: {place.journal.torn}")
    place = with_source(place, known)
    before = fold(known)
    new = new_facts(place, event_key(place.payload))
    place.journal.append(*new)
    # What a prompt asks for is kept before a snapshot is taken, which may take too long.
    is_prompt = place.payload.kind == "prompt"
    watched = _watch(place, config, [*known, *new]) if is_prompt else None
    if there := what_is_there(place, before):
        if before.base and is_review_on(config):
            from gitgates.agent.scenes import own_now  # who wants no reviews need not load it

            there[0]["own"] = own_now(place, known, hears_all=hears_all(config))
        place.journal.append(*there)
        new += there
    if not any(fact.get("what") == "watched" for fact in known):
        from gitgates.agent.tampering import begin  # once in a session

        begin(place, config, [*known, *new])
    session = fold([*known, *new])
    if session.stop and not place.payload.agent_id:
        if ended := end_main_thread(place, session):
            return ended
        session = fold(place.journal.read())
    if not is_prompt:
        watched = _watch(place, config, [*known, *new])
    if watched and (_is_final(place, watched) or place.payload.kind == "subagent-end"):
        return watched
    gated = _gate(place, config, hook, (before, session))
    if _is_final(place, gated):
        return gated
    _watch_end(place, config, [*known, *new])
    texts = (*tell(place, config, session), watched.to_agent if watched else "", gated.to_agent)
    persons = (watched.to_person if watched else "", gated.to_person)
    return gated._replace(
        verdict=max(gated.verdict, watched.verdict if watched else gated.verdict),
        to_agent="\n\n".join(text for text in texts if text),
        to_person="\n".join(text for text in persons if text),
        command=watched.command if watched else "",
    )


def _watch(place: Place, config: Config, facts: list[Fact]) -> Answer | None:
    """Return what the gate `review` answers to an event by itself, before any gates run."""
    if not is_review_on(config):
        return None
    from gitgates.agent.watching import watch  # who wants no reviews need not load it

    return watch(place, config, facts)


def _watch_end(place: Place, config: Config, facts: list[Fact]) -> None:
    """Have the gate `review` learn from an end that no gate stands against."""
    if place.payload.kind == "subagent-end" and is_review_on(config):
        from gitgates.agent.watching import watch_end

        watch_end(place, config, facts)


def _is_final(place: Place, answer: Answer) -> bool:
    """Tell whether nothing is to be added to an answer."""
    verdict, _why = express(place.payload, answer.verdict)
    return verdict >= BLOCK or answer.as_before is not None


def _gate(place: Place, config: Config, hook: Hook, sessions: tuple[Session, Session]) -> Answer:
    """Run the gates of the event, where it has some that are about this tool and this agent."""
    payload = place.payload
    if not hook.gates or not matches_hook(hook, payload) or payload.automatic:
        return Answer()
    if payload.kind in ENDINGS:
        from gitgates.agent.stopping import answer_stop  # what runs gates costs more than all this

        return answer_stop(place, config, hook, sessions)
    from gitgates.agent.gating import answer_event

    return answer_event(place, config, hook, sessions)


def _is_of_a_gate(place: Place) -> bool:
    """Tell whether a gate that is running here started this agent."""
    if "GITGATES_ACTIVE" not in place.env:
        return False
    from gitgates.engine.command import is_running_here  # seldom needed

    return is_running_here(place.env, place.repo.git_dir_abs)


def _without_settings(place: Place, config: Config | None) -> Answer:
    """Let pass what nobody wants checked; but where that is new in this session, say so."""
    if config is None:
        place.say(_NO_SETTINGS)
    try:
        session = fold(place.journal.read())
        if session.last and place.payload.kind in ENDINGS:
            # There were settings, or nothing would be known of the session.
            text = f"gitgates: the settings that this session began with are gone; {_UNCHECKED}"
            return Answer(WARN, to_person=text)
        if config is None and _NO_SETTINGS not in session.notes:
            place.journal.append({"what": "note", "text": _NO_SETTINGS})
    except OSError as error:
        place.say(f"{place.journal.path_abs}: {error.strerror}")
    return Answer()
