"""Ask the policies for their answer to an event now: nothing is recorded, and no gate runs."""

from __future__ import annotations

from gitgates.core.agent_types import AgentFacts, Channels, Payload, Prompt
from gitgates.core.lifecycle import HOOK_OF
from gitgates.core.record import Record
from gitgates.core.types import BLOCK, Plan, Verdict
from gitgates.drivers.agent import ask_all, policies_of
from gitgates.drivers.call import Call
from gitgates.drivers.git import HookCall
from gitgates.drivers.recorder import shared_look
from gitgates.drivers.start import entries_of
from gitgates.engine.plan.listener import Listener
from gitgates.hosts import agent_host
from gitgates.store.log import git_dir_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Config, Event, Level
    from gitgates.drivers.caller import Caller
    from gitgates.git.repo import Repo


class PolicyAnswer(Record):
    """The answer of one policy to an event."""

    policy: str
    before: Level  # of the policies before it
    level: Level  # of them and this one
    to_agent: str = ""
    to_person: str = ""
    note: str = ""  # of the gates: which would run, or why none would


def dry_call(repo: Repo, config: Config, kind: EventKind, caller: Caller) -> Call:
    """Return the context of an event of a session's agent, now.

    Raises: GitError, StateError if the present state cannot be determined.
    """
    channels = agent_host(caller.host).PROTOCOL.events.values()
    payload = Payload(
        host=caller.host,
        event=HOOK_OF[kind],
        kind=kind,
        can=next((can for event_kind, can in channels if event_kind == kind), Channels()),
        session=caller.session,
    )
    call = Call(payload, repo, is_dry=True, look_of=shared_look)
    call.config = config
    call.take(caller.facts[0])
    others = zip(caller.journals[1:], caller.facts[1:], strict=True)
    call.elsewhere = {git_dir_of(journal.path_abs): [*facts] for journal, facts in others}
    prompts = call.session.prompts
    call.payload = payload._replace(prompt=Prompt(id=[*prompts][-1] if prompts else ""))
    call.record(*entries_of(call))
    return call


def call_by_hand(repo: Repo, config: Config, kind: EventKind, caller: Caller) -> Call:
    """Return the context of gates that the agent itself has run, as they would at that event.

    Raises: as `dry_call`.
    """
    call = dry_call(repo, config, kind, caller)
    if kind != "turn-end":
        agent = AgentFacts(id=caller.agent, type=caller.agent_type)
        call.payload = call.payload._replace(agent=agent)
    _ = call.snapshot  # while nothing may be recorded: a command is under way
    call.is_dry, call.by_hand = False, True
    return call


def ask_agent_hook(call: Call) -> list[PolicyAnswer]:
    """Return the answer of each policy to the agent, if the gates passed."""
    answers: list[PolicyAnswer] = []

    def hear(name: str, before: Verdict, after: Verdict) -> None:
        note = _note(call.explanations.get(name))
        answers.append(_answer(name, before, after)._replace(note=note))

    ask_all(call, policies_of(call), hear)
    return answers


def ask_git_hook(event: Event, repo: Repo, config: Config) -> list[PolicyAnswer]:
    """Return the answer of each policy at a git hook, if the gates passed."""
    answers: list[PolicyAnswer] = []

    def hear(name: str, before: Verdict, after: Verdict) -> None:
        answers.append(_answer(name, before, after))

    def failed(_name: str, error: Exception) -> Verdict:
        return Verdict(BLOCK, to_person=str(error))

    call = HookCall(event, repo, Listener(), ())
    call.is_dry = True
    call.configure(config)
    call.ask_policies(failed, hear)
    return answers


def _answer(name: str, before: Verdict, after: Verdict) -> PolicyAnswer:
    return PolicyAnswer(
        policy=name,
        before=before.level,
        level=after.level,
        to_agent=_own(before.to_agent, after.to_agent),
        to_person=_own(before.to_person, after.to_person),
    )


def _own(before: str, after: str) -> str:
    """Return what a policy has added to a text."""
    return after.replace(before, "", 1).strip("\n").removeprefix("---\n\n") if before else after


def _note(explanation: object) -> str:
    if isinstance(explanation, str):
        return f"none would run: {explanation}"
    if not isinstance(explanation, Plan):
        return ""
    due = {step.gate.name: step.fault for step in explanation.steps if not step.skip}
    names = [name for name in explanation.listed if name in due]
    # Which cannot pass, whatever there is.
    stops = [f"`{name}` would stop it: {due[name]}" for name in names if due[name]]
    return "; ".join([f"would run {', '.join(names)}", *stops]) if names else "all would be skipped"
