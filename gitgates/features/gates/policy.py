"""The policy that runs hooks' gates at an agent's events.

At the end of work they run if something has changed; `attempt.py` turns their results into the
answer.
"""

from __future__ import annotations

from gitgates.core.lifecycle import RETRIED, kind_of
from gitgates.core.policy import Need, policy_gates
from gitgates.core.types import BLOCK, Verdict
from gitgates.drivers.needs import agent_hooks
from gitgates.engine.plan.hooks import host_limit_s, matches_hook
from gitgates.hosts.capabilities import express
from gitgates.journal.entries import RoundEntry, WarningEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Config, Decision, Hook, Plan
    from gitgates.drivers.call import Call

_BY_HAND = "by-hand"  # instead of an event's key
# A sub-agent, task or teammate cannot be stopped, so the main agent is, at its next event.
_STOP_NEEDS: tuple[EventKind, ...] = ("prompt", "turn-end")


def needs(config: Config) -> tuple[Need, ...]:
    """Return the events for which hooks list gates, and those that can end the main agent."""
    hooks = agent_hooks(config)
    required = [
        Need(kind=kind_of(hook.name), tools=_tools(hook), agents=hook.enabled_agents)
        for hook in hooks
    ]
    # A gate that is not defined counts as one that stops the run.
    defined = {gate.name for gate in config.gates}.union(policy_gates())
    stops = any("STOP" in (gate.actions.on_pass, gate.actions.on_fail) for gate in config.gates)
    if any(
        stops or hook.on_exhausted == "stop" or not defined.issuperset(hook.gates)
        for hook in hooks
        if kind_of(hook.name) in RETRIED and kind_of(hook.name) != "turn-end"
    ):
        required += [Need(kind=kind) for kind in _STOP_NEEDS]
        required.append(Need(kind="after-tool", tools=(), tool_kinds=("agent",)))
    return tuple(required)


def _tools(hook: Hook) -> tuple[str, ...] | None:
    """Return the tool patterns of a hook, in which `!` has no meaning."""
    if not any("!" in pattern for pattern in hook.enabled_tools or ()):
        return hook.enabled_tools
    parts = [part for pattern in hook.enabled_tools or () for part in pattern.split("|")]
    return tuple(part for part in parts if "!" not in part)


def person_verbs(_call: Call) -> tuple[tuple[str, ...], ...]:
    """Return the verb that accepts failures."""
    return (("baseline", "write"),)


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Run the gates that match the tool and the agent; add rules and warnings."""
    hook, payload = call.hook, call.payload
    lists_gates = not set(hook.gates).issubset(policy_gates())
    has_gates = lists_gates and matches_hook(hook, payload) and not payload.prompt.automatic
    if payload.kind in RETRIED:
        return so_far.joined(_decide_ending(call)) if has_gates and call.ends_work else so_far
    if so_far.level >= BLOCK and payload.kind == "before-tool":
        return so_far  # already refused
    verdict = Verdict()
    if has_gates:
        from gitgates.features.gates.event import decide_event  # most events have none to run

        verdict = decide_event(call)
    if express(payload, verdict.level)[0] >= BLOCK:
        # Then only the blocking policy's messages are passed on.
        return (so_far if so_far.level >= BLOCK else Verdict(entries=so_far.entries)).joined(
            verdict
        )
    return _add_context(call).joined(so_far).joined(verdict)


def run_by_hand(call: Call) -> tuple[Plan | None, Decision | None]:
    """Run an ending's gates as it would itself, no matter how long they take.

    If they pass, they need not run again at the ending on the same content. Without a decision,
    they have already passed on it, or all are skipped.
    """
    from gitgates.drivers.breaker import PASSED
    from gitgates.features.gates.attempt import StopAttempt
    from gitgates.features.gates.event import plan_run

    run = plan_run(call, call.changed_files)
    if run is None:
        return None, None
    attempt = StopAttempt(run)
    for entry in attempt.decide().entries:
        if isinstance(entry, RoundEntry) and entry.outcome == PASSED:
            call.record(entry._replace(key=_BY_HAND))
    return run.plan, attempt.decision


def _decide_ending(call: Call) -> Verdict:
    """Run the gates at the end of work if something has changed; return the verdict."""
    if not call.session.beginning.tree:
        from gitgates.drivers.start import record_base  # rare: hooks installed mid-session

        record_base(call)
    if call.is_unchanged:
        call.explanations["gates"] = "nothing has changed since the session began"
        # Changes that were undone need no warning any more.
        return Verdict(entries=(WarningEntry(hook="", text=""),) if call.session.warnings else ())
    # Loading the code that runs gates takes as long as asking git for changes.
    from gitgates.features.gates.attempt import StopAttempt
    from gitgates.features.gates.event import plan_run

    if call.changed_files.error:
        call.note(call.changed_files.error)
    run = plan_run(call, call.changed_files)
    if run is None:
        return Verdict()
    call.end_within(host_limit_s(call.config, call.hook) + call.more_s)
    verdict = StopAttempt(run).decide()
    if any(step.gate.program.writes and not step.skip for step in run.plan.steps):
        call.forget_snapshot()
    return verdict


def _add_context(call: Call) -> Verdict:
    """Add the rules or undelivered warnings to the agent's context."""
    payload = call.payload
    if payload.kind in ("session-start", "subagent-start"):
        from gitgates.features.gates.rules import rules_text  # only needed for these events

        return Verdict(to_agent=rules_text(call.config))
    if payload.kind == "prompt" and not payload.agent.id and (warnings := call.session.warnings):
        return Verdict(
            to_agent="\n\n".join([text for _hook, text in warnings if text]),
            entries=(WarningEntry(hook="", text=""),),
        )
    return Verdict()
