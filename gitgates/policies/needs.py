"""Which events of an agent a configuration needs to hear of, and of which tools and agents.

Installing writes those and no others: each event that is heard of costs a process.
"""

from __future__ import annotations

from gitgates.lifecycle import HOOK_POINTS
from gitgates.record import Record
from gitgates.types import ACTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.types import Config, Gate, Hook

# Where a session begins, where a prompt does, and whom else the rules are told.
RETRY_NEEDS = ("SessionStart", "UserPromptSubmit", "SubagentStart")
# A sub-agent cannot be stopped, so that the main thread is, at its next event.
STOP_NEEDS = ("UserPromptSubmit", "Stop")
_LAUNCHER = "Agent"  # the tool whose end is the main thread's next event


class Need(Record):
    """One event that is to be heard of."""

    event: str
    tools: tuple[str, ...] | None = None  # None: all
    agents: tuple[str, ...] | None = None


def needs(config: Config) -> tuple[Need, ...]:
    """Return the events that are needed, each once, in the order of a session."""
    found = [
        Need(event=hook.name, tools=hook.enabled_tools, agents=hook.enabled_agents)
        for hook in _agent_hooks(config)
    ]
    if found:
        found += [Need(event=name) for name in RETRY_NEEDS]
    if any(h.name == "SubagentStop" and _can_stop(h, config) for h in _agent_hooks(config)):
        found += [Need(event=name) for name in STOP_NEEDS]
        found.append(Need(event="PostToolUse", tools=(_LAUNCHER,)))
    merged: dict[str, Need] = {}
    for need in found:
        merged[need.event] = _join(merged.get(need.event, need), need)
    return tuple(merged[name] for name in HOOK_POINTS if name in merged)


def _agent_hooks(config: Config) -> list[Hook]:
    return [
        hook
        for hook in config.hooks
        if hook.gates
        and HOOK_POINTS[hook.name].host == "claude"
        and () not in (hook.enabled_tools, hook.enabled_agents)  # nothing that it answers to
    ]


def _can_stop(hook: Hook, config: Config) -> bool:
    """Tell whether a gate of the hook may stop the agent."""
    gates = {gate.name: gate for gate in config.gates}
    waiting, seen = list(hook.gates), set[str]()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        gate: Gate | None = gates.get(name)
        if gate is None or "STOP" in (gate.on_pass, gate.on_fail):
            return True  # one that is not defined stops the run
        waiting += [a for a in (gate.on_pass, gate.on_fail) if a not in ACTIONS]
    return hook.on_exhausted == "stop"


def _join(one: Need, other: Need) -> Need:
    return Need(
        event=one.event,
        tools=_both(one.tools, other.tools),
        agents=_both(one.agents, other.agents),
    )


def _both(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if one is None or other is None else tuple(dict.fromkeys((*one, *other)))
