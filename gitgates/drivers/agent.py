"""Handle one event of an agent: from its bytes, through the policies that need it, to the answer.

The session's journal is read, and the event is claimed and recorded. Each policy that needs it is
asked, in the order of the table; what they record is appended once, at the end. The journal is
never locked while gates run. An event is delivered twice if its hook is installed twice: the second
delivery waits, and gets the first one's answer.

Whatever goes wrong on our side lets the agent pass, except for tools that a policy refuses if it
cannot decide (`fails_closed`). Both are reported: on standard error, for the host's debug log, and
in the session's journal.
"""

from __future__ import annotations

import errno
import os

from gitgates.config.load import files_of, load
from gitgates.core.agent_types import Payload
from gitgates.core.errors import ConfigError, GitError, GitgatesError, LockError
from gitgates.core.lifecycle import ENDINGS, RETRIED
from gitgates.core.policy import ask, policies_at
from gitgates.core.types import BLOCK, WARN, Verdict
from gitgates.drivers import rules as session_rules
from gitgates.drivers import start as session_start
from gitgates.drivers.call import Call
from gitgates.drivers.needs import agent_hooks, needed_events
from gitgates.drivers.trust import find_repos
from gitgates.engine.plan.hooks import least_limit_s
from gitgates.hosts import DEFAULT_AGENT, agent_host
from gitgates.hosts.agent import BadPayload
from gitgates.hosts.capabilities import express, refuse_unasked
from gitgates.journal.entries import NoteEntry, RoundEntry
from gitgates.proc.alarm import stop_alarm
from gitgates.proc.call import DeadlineExceeded
from gitgates.store.log import EventLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.core.policy import PolicyModule
    from gitgates.core.types import Config
    from gitgates.files.looked import Look
    from gitgates.hosts.agent import AgentHost
    from gitgates.journal.entries import Round

    Policies = list[tuple[str, PolicyModule]]

_UNCHECKED = "nothing is checked"
_TELL_PERSON = "Tell the person, who can fix this."
_BUG = "internal error; please report this bug"
_FULL = (errno.ENOSPC, errno.EDQUOT)
_ANSWER_S = 2.0  # before the host loses patience
_TWICE = 2


def respond(
    raw: bytes, env: Mapping[str, str], say: Callable[[str], None], host: str = DEFAULT_AGENT
) -> bytes:
    """Return the encoded answer to one event of an agent; empty for none. Raises nothing."""
    calls: list[Call] = []
    try:
        return _respond(raw, env, say, calls, host=agent_host(host))
    except BadPayload as bad:
        trouble = f"the payload cannot be read: {bad}"
    except KeyboardInterrupt:
        trouble = "interrupted; no decision was made"
    except BaseException as error:  # noqa: BLE001 - no failure may stop the agent
        trouble = f"{_BUG}: {_traceback_of(error)}"
    try:
        calls = calls or [Call(Payload(), repo, say=say) for repo in find_repos(Payload(), env)]
        calls[0].note(trouble)
    except Exception as error:  # noqa: BLE001 - there is no place left to report it
        say(f"{trouble} ({error})")
    return b""


def _respond(
    raw: bytes,
    env: Mapping[str, str],
    say: Callable[[str], None],
    calls: list[Call],
    *,
    host: AgentHost,
) -> bytes:
    payload = host.decode(raw, env)
    host = agent_host(payload.host or host.NAME)  # another may run the hooks of its settings
    if payload.unread:
        from gitgates.drivers.told_once import warning_once  # no client that we know comes here

        warning = warning_once(payload, host.TITLE, env, say)
        if not payload.kind:
            return host.encode(payload, warning)
    if not payload.kind:
        return b""
    try:
        calls += [
            Call(payload, repo, raw=raw, say=say, look_of=_look_of)
            for repo in find_repos(payload, env)
        ]
    except GitError as error:
        say(error.message)
        return host.encode(payload, _without_repository(payload, error))
    if any(map(_is_of_a_run, calls)):
        return b""
    verdict = _decide_all(calls)
    return host.encode(payload, verdict.joined(warning) if payload.unread else verdict)


def _look_of(call: Call) -> Look | None:
    from gitgates.drivers.recorder import shared_look  # most events need no look

    return shared_look(call)


def _is_of_a_run(call: Call) -> bool:
    """Return whether a run of ours has started this agent, and answers for it, or waits for it."""
    run = os.path.basename(call.env.get("GITGATES_HEADLESS", ""))
    if call.kind == "turn-end" and run:  # a stale variable alone says nothing
        return os.path.isfile(f"{call.repo.shared_state_abs}/headless/{run}/run.json")
    if "GITGATES_ACTIVE" not in call.env:
        return False
    from gitgates.engine.plan.command import is_running_here  # seldom needed

    return is_running_here(call.env, call.repo.git_dir_abs)  # to gate it, too, would never end


def _without_repository(payload: Payload, error: GitError) -> Verdict:
    """Tell the person at session start that gates are configured but there is no repository."""
    if payload.kind == "turn-end":
        from gitgates.drivers.told_once import answer_lost  # seldom needed

        return answer_lost(payload, error.message)
    if payload.kind != "session-start":
        return Verdict()
    try:
        if load(payload.cwd_abs) is None:
            return Verdict()
    except ConfigError:
        pass  # which is a configuration all the same
    text = f"gitgates: {error.message}, so {_UNCHECKED} in this session. {error.hint}"
    return Verdict(WARN, to_person=text.rstrip())


def _traceback_of(error: BaseException) -> str:
    import traceback  # only a bug pays for it

    return "".join(traceback.format_exception(error))


def _decide_all(calls: list[Call]) -> Verdict:
    """Return the first blocking verdict of the repositories, otherwise all joined."""
    joined = Verdict()
    for call in calls:
        verdict = _decide(call)
        if express(call.payload, verdict.level)[0] >= BLOCK or verdict.replayed_answer:
            return verdict
        joined = joined.joined(verdict) if call is not calls[0] else verdict
    return joined


def _decide(call: Call) -> Verdict:
    """Return the verdict on an event in one repository; a second delivery gets the first answer."""
    policies = _policies_for(call)
    if not policies:
        return _pass_unconfigured(call)
    call.end_within(least_limit_s(call.hook) + call.more_s)
    try:
        if not call.config_error:
            _recover(call)
        lock = EventLock(call.journal, call.key)
        try:
            _record_and_claim(call, lock)
            answer = _recorded_answer(call, policies)
            return answer if answer is not None else _keep(call, ask_all(call, policies))
        finally:
            lock.release()
    except (DeadlineExceeded, OSError, GitgatesError) as error:
        return _undecided(call, policies, error)
    finally:
        stop_alarm()


def _policies_for(call: Call) -> Policies:
    """Return the policies to ask, and set the configuration that is in force; none without one."""
    try:
        call.written_config = load(call.repo.root_abs, call.repo.config_cache_abs)
    except ConfigError as error:
        from gitgates.drivers import config_error

        call.say(str(error))
        call.config_error = error
        policies: Policies = [("session", session_start), ("configuration", config_error)]
        return [*_policies_without_config(call), *policies]
    config = _in_force(call, call.written_config)
    if config is None:
        return []
    call.config = config
    return policies_of(call)


def _in_force(call: Call, config: Config | None) -> Config | None:
    """Return the configuration with what the session's own edits of it cannot change."""
    try:
        call.read()
        return session_rules.settings_in_force(call, config)
    except OSError:
        return config  # the journal: it is read again, which reports the error
    except Exception as error:  # noqa: BLE001 - a policy that needs the rules will fail by itself
        call.note(f"{_BUG}: {_traceback_of(error)}")
        return config


def _policies_without_config(call: Call) -> Policies:
    """Return the policies that judge a tool while the configuration cannot be read.

    They follow the rules that the session began with, and let it repair the configuration.
    """
    in_force = _in_force(call, None)
    if call.kind != "before-tool" or in_force is None:
        return []
    call.config = in_force
    error = call.config_error
    if call.edited_paths and error and files_of(error).issuperset(call.edited_paths):
        return []
    return [
        (row.name, module)
        for row, module, needed in policies_at(in_force, call.kind)
        if needed and "without-config" in row.traits
    ]


def policies_of(call: Call) -> Policies:
    """Return the policies that need this event, in order, with their modules."""
    rows = policies_at(call.config, call.kind)
    needs_of_event = [need for _row, _module, needed in rows for need in needed]
    call.more_s = max((call.more_s, *(need.more_s for need in needs_of_event)))
    # Each event is recorded in the journal, as long as any policy is asked.
    is_needed = needs_of_event or agent_hooks(call.config) or needed_events(call.config)
    return [(row.name, module) for row, module, _needed in rows] if is_needed else []


def decide_alone(call: Call) -> Verdict:
    """Decide an event that comes once, from this very process: nobody else waits for an answer.

    `call` has its configuration. Raises: whatever a policy raises; OSError if the journal cannot
    be written.
    """
    call.read()
    call.record(*session_start.entries_of(call))
    gates = set(call.hook.gates)
    policies = [
        (row.name, module)
        for row, module, _needed in policies_at(call.config, call.kind)
        if not row.gate or row.gate in gates
    ]

    def failed(_name: str, error: Exception) -> Verdict:
        raise error  # no person sees a warning: what is not checked must not pass

    verdict = ask(call, policies, failed)
    _record(call, verdict, "")
    return verdict


def _undecided(call: Call, policies: Policies, error: BaseException) -> Verdict:
    """Return the verdict if we failed ourselves: a tool passes, except for what would be lost."""
    name = call.payload.event
    may_lose = isinstance(error, DeadlineExceeded)
    if isinstance(error, OSError):
        # Without the journal nothing is counted, and a gate could block for ever.
        where = error.filename or call.journal.path_abs
        why = f"{where}: {error.strerror}, so gate results at {name} do not count"
        text = f"gitgates: {why}"
        call.say(text)
        may_lose = error.errno in _FULL
    elif isinstance(error, GitgatesError):
        text = _not_checked(call, error)
    else:
        text = f"gitgates: {name} was not checked: the host's timeout was reached"
        call.note(text)
    if may_lose and call.kind == "before-tool":
        from gitgates.drivers.recorder import is_saved  # most events end in time

        if is_saved(call):
            return Verdict(ask=True, to_agent=f"{text}, so there is no save point.")
    for _name, module in policies:
        if way_out := _way_out(call, module):
            return Verdict(BLOCK, to_agent=f"{text}\n{way_out}", to_person=text)
    return Verdict(WARN, to_person=text)


def _way_out(call: Call, module: PolicyModule) -> str:
    """Return what can be done if a policy refuses a tool call that it cannot decide.

    Empty: it lets it through.
    """
    closed: Callable[[Config], bool] | None = getattr(module, "fails_closed", None)
    if call.kind != "before-tool" or closed is None or not closed(call.config):
        return ""
    return str(getattr(module, "WAY_OUT", _TELL_PERSON))


def _not_checked(call: Call, error: GitgatesError) -> str:
    text = f"gitgates: {call.payload.event} was not checked: {error}"
    call.note(text)
    return text


def _recover(call: Call) -> None:
    """Restore what a killed run had stashed: otherwise it would seem that the agent removed it."""
    state_abs = call.repo.state_abs
    if os.path.isdir(f"{state_abs}/rescue") or os.path.exists(f"{state_abs}/recovered"):
        from gitgates.worktree.isolate import recover_and_report  # most events run no gates

        recover_and_report(call.repo, call.say)


def _record_and_claim(call: Call, lock: EventLock) -> None:
    """Record an event, and claim it; if another process has, wait until it has answered."""
    call.read()
    if call.damaged:
        call.say(f"{call.journal.path_abs}: skipped damaged entries: {call.damaged}")
    if session_start.is_scheduled(call):
        call.payload = call.payload._replace(prompt=call.payload.prompt._replace(automatic=True))
    call.last_before = call.session.last
    is_claimed = lock.acquire(0.0)
    call.record(*session_start.entries_of(call))
    if not is_claimed:
        from gitgates.engine.plan.hooks import host_limit_s  # seldom needed

        limit_s = host_limit_s(call.config, call.hook) + call.more_s
        call.end_within(limit_s)
        if not lock.acquire(max(limit_s - _ANSWER_S, 1.0)):
            raise LockError("the same event is still being handled by another hook")
        call.read()  # the first delivery has ended


def _recorded_answer(call: Call, policies: Policies) -> Verdict | None:
    """Return the recorded answer to this event; None if there is none."""
    rounds = [round_ for round_ in call.session.rounds if round_.key == call.key]
    if not rounds or not _is_same(call, rounds[-1]):
        return None
    answer = rounds[-1].answer
    for _name, module in policies:
        if repeat := getattr(module, "repeat", None):
            again: Verdict | None = repeat(call, answer)
            if again:
                call.record(*again.entries)
                return again
    return Verdict(replayed_answer=answer)


def _is_same(call: Call, round_: Round) -> bool:
    """Return whether a round belongs to this event.

    A tool call or a prompt has an id of its own, which identifies it for ever. A stop has none: it
    is the same one if the first delivery was answered while this one was waiting already, or, in
    a host that repeats itself, if nothing has happened since and no hook has blocked before.
    """
    payload = call.payload
    is_prompt = payload.kind in ("prompt", "prompt-expansion")
    if (
        payload.tool.id
        or payload.event_id
        or (is_prompt and payload.prompt.id)
        or round_.stamp >= call.began
    ):
        return True
    times = call.session.deliveries.get(call.key, 0)
    repeats = call.host.PROTOCOL.repeats
    # A task that is completed again is a second attempt, which nothing else shows.
    is_attempt = payload.kind in RETRIED and payload.kind not in ENDINGS
    once = payload.ending.again or is_attempt or not repeats
    if once or times != _TWICE or call.last_before != call.key:
        return False
    return bool(round_.tree) and round_.tree == call.tree


def ask_all(
    call: Call,
    policies: Policies,
    on_verdict: Callable[[str, Verdict, Verdict], None] | None = None,
) -> Verdict:
    """Ask each policy in turn; a failure in one is reported, and does not stop the others."""

    def failed(name: str, error: Exception) -> Verdict:
        if isinstance(error, GitgatesError):
            text = _not_checked(call, error)
        else:
            call.note(f"{_BUG}: {name}: {_traceback_of(error)}")
            text = f"gitgates: {call.payload.event}: {name} decided nothing: {_BUG}: {error!r}"
        way_out = _way_out(call, dict(policies)[name])
        to_agent = f"{text}\n{way_out or 'Go on; the person has been told.'}"
        return Verdict(BLOCK if way_out else WARN, to_agent=to_agent, to_person=text)

    return refuse_unasked(
        call.payload,
        session_start.with_session_option(call, ask(call, policies, failed, on_verdict)),
    )


def _keep(call: Call, verdict: Verdict) -> Verdict:
    """Record the verdict, for later rounds and for a second delivery.

    Raises: OSError if that is not possible: uncounted blocks could repeat for ever.
    """
    if verdict.level == BLOCK and call.payload.kind in RETRIED and not call.journal.is_intact():
        path_abs = call.journal.path_abs
        raise FileNotFoundError(errno.ENOENT, "it was removed while gates ran", path_abs)
    _record(call, verdict, call.encode(verdict))
    if verdict.level >= BLOCK and call.kind == "before-tool":
        from gitgates.drivers.recorder import close_refused  # few calls are refused

        close_refused(call)
    elif call.kind in RETRIED:
        _show_in_runs(call, verdict)
    return verdict


def _show_in_runs(call: Call, verdict: Verdict) -> None:
    """Have the list of runs show that another policy blocks after the gates, or no longer does."""
    key = (call.payload.event, call.payload.agent.id, call.prompt)
    rounds = [each for each in call.session.rounds if (each.hook, each.agent, each.prompt) == key]
    of_gates = [each for each in rounds if each.run]
    blocks = [each for each in rounds if not each.run and each.outcome == "blocked"]
    if blocks and of_gates and of_gates[-1].outcome == "passed":
        from gitgates.report.artifacts import mark_blocked  # few endings are blocked so

        by = blocks[-1].gates if verdict.level >= BLOCK else ""
        for text in mark_blocked(of_gates[-1].run, by, call.config.artifacts_dir):
            call.note(text)


def _record(call: Call, verdict: Verdict, answer: str) -> None:
    error = call.snapshot_error
    if error:
        call.say(error)
    call.record(
        *((NoteEntry(error),) if error else ()),
        *(
            entry._replace(key=entry.key or call.key, answer=entry.answer or answer)
            if isinstance(entry, RoundEntry)
            else entry
            for entry in verdict.entries
        ),
        *session_start.returned_reason(call, verdict),
    )


def _pass_unconfigured(call: Call) -> Verdict:
    """Pass an event without a configuration; at a turn's end, say if the session had one."""
    try:
        call.read()
        if call.session.last and call.payload.kind in ENDINGS:
            # There were settings, or nothing would be known of the session.
            text = (
                f"gitgates: the settings that this session started with were removed; {_UNCHECKED}"
            )
            return Verdict(WARN, to_person=text)
    except OSError as error:
        call.say(f"{call.journal.path_abs}: {error.strerror}")
    return Verdict()
