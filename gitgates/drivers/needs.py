"""Collect the policies that a configuration enables, and the events that they need.

Only those are installed: each event that is received costs a process.
"""

from __future__ import annotations

from gitgates.core.lifecycle import AGENT_HOOKS, AGENT_KINDS, GIT_HOOKS, HOOK_OF
from gitgates.core.policy import (
    Need,
    enabled_policies,
    module_of,
    needs_of,
    policies_at,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gitgates.core.lifecycle import EventKind
    from gitgates.core.policy import Policy, WantedAgent
    from gitgates.core.types import Config, Hook

_NAMES = tuple(HOOK_OF.values())
# Where a session begins, where a prompt does, and who else gets the rules.
_ALWAYS: tuple[EventKind, ...] = ("session-start", "prompt", "subagent-start")


def needed_events(config: Config) -> tuple[Need, ...]:
    """Return the events that are needed, each once, in the order of a session."""
    # Those of the hooks themselves first: that is their order in an agent's settings.
    rows = sorted(_about_agents(config), key=lambda row: "passive" not in row.traits)
    required = [need for need in _needs_of(rows, config) if need.kind in AGENT_KINDS]
    if required:
        required += [Need(kind=kind) for kind in _ALWAYS]
    merged: dict[str, Need] = {}
    for need in required:
        merged[need.kind] = join_needs(merged.get(need.kind, need), need)
    return tuple(merged[point.kind] for point in AGENT_HOOKS if point.kind in merged)


def is_reason(config: Config) -> bool:
    """Return whether a policy needs an agent's events, other than to guard what else there is."""
    rows = [row for row in _about_agents(config) if "no-install" not in row.traits]
    return any(need.kind in AGENT_KINDS for need in _needs_of(rows, config))


def is_guardable(config: Config) -> bool:
    """Return whether anything is checked, by an agent's hooks or by git's, that can be avoided."""
    if any(hook.gates for hook in config.hooks):
        return True
    rows = [
        row
        for row in enabled_policies(config)
        if row.table and not row.gate and "no-install" not in row.traits
    ]
    return any("by-table" in row.traits or needs_of(module_of(row), config) for row in rows)


def git_hooks(config: Config) -> tuple[str, ...]:
    """Return the git hooks that policies need, whether or not they are configured."""
    kinds = {need.kind for need in _needs_of(enabled_policies(config), config)}
    return tuple(point.name for point in GIT_HOOKS if point.kind in kinds)


def _about_agents(config: Config) -> list[Policy]:
    return [
        row for row in enabled_policies(config) if not row.kinds or {*row.kinds} & {*AGENT_KINDS}
    ]


def _needs_of(rows: list[Policy], config: Config) -> list[Need]:
    return [need for row in rows for need in needs_of(module_of(row), config)]


def policies_on(config: Config) -> dict[str, set[EventKind]]:
    """Return the enabled policies that need events of an agent, each with these events.

    One that is listed as a gate has the name of that gate. One that only works beside others, and
    has no settings of its own, is left out: nobody knows it by name.
    """
    kinds_of: dict[str, set[EventKind]] = {}
    for row in _about_agents(config):
        if "no-install" in row.traits and not row.table:
            continue
        kinds = {need.kind for need in _needs_of([row], config)} & {*AGENT_KINDS}
        if kinds:
            kinds_of[row.gate or row.name] = kinds | kinds_of.get(row.gate or row.name, set())
    return kinds_of


def gates_on(config: Config) -> tuple[str, ...]:
    """Return the gates of enabled policies.

    The settings of such a gate, and its verb, have its name.
    """
    gates: list[str] = []
    for row in enabled_policies(config):
        if row.gate and row.gate not in gates and needs_of(module_of(row), config):
            gates.append(row.gate)
    return tuple(gates)


def agents_wanted(config: Config) -> tuple[WantedAgent, ...]:
    """Return the sub-agents that policies work with (`agents` of their modules)."""
    return tuple(agent for agents in offers(config, "agents") for agent in agents(config))


def offers(config: Config, name: str) -> list[Callable[..., Any]]:
    """Return the functions with a name that enabled policies about agents have, at any event."""
    # Passive ones are spared: what runs gates takes long to load.
    active = [row for row in _about_agents(config) if "passive" not in row.traits]
    return [offer for row in active if (offer := getattr(module_of(row), name, None))]


def asked_besides(config: Config, kind: EventKind) -> tuple[str, ...]:
    """Return the policies that are asked at an event without being listed by a hook."""
    policies = policies_at(config, kind)
    return tuple(
        row.name
        for row, _module, needed in policies
        if needed and not row.gate and "passive" not in row.traits
    )


def agent_hooks(config: Config) -> list[Hook]:
    """Return the agent hooks that list a gate and match any tool or agent."""
    return [
        hook
        for hook in config.hooks
        if hook.gates
        and hook.name in _NAMES
        and () not in (hook.enabled_tools, hook.enabled_agents)  # nothing that it answers to
    ]


def join_needs(need: Need, other: Need) -> Need:
    """Return two needs of one event as one."""
    return Need(
        kind=need.kind,
        tools=_both(need.tools, other.tools),
        tool_kinds=tuple(dict.fromkeys((*need.tool_kinds, *other.tool_kinds))),
        but_reads=need.but_reads or other.but_reads,
        agents=_both(need.agents, other.agents),
        more_s=max(need.more_s, other.more_s),
    )


def _both(names: tuple[str, ...] | None, others: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if names is None or others is None else tuple(dict.fromkeys((*names, *others)))
