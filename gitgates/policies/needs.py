"""Which policies a configuration wants, and which events of an agent they need to hear of.

Installing writes those and no others: each event that is heard of costs a process.
"""

from __future__ import annotations

import sys

from gitgates import policy
from gitgates.lifecycle import AGENT_HOOKS, kind_of
from gitgates.policy import Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from gitgates.lifecycle import EventKind
    from gitgates.policy import Policy, WantedAgent
    from gitgates.types import Config, Hook, Verdict

    class PolicyModule(Protocol):
        """What the module of a policy offers."""

        def needs(self, config: Config) -> tuple[Need, ...]:
            """Return the events that are to be heard of, where that is not said by another row."""

        def decide(self, call: Any, so_far: Verdict) -> Verdict:  # noqa: ANN401 - a Call, which is above
            """Return the verdict with what this policy has to say."""


# Where a session begins, where a prompt does, and whom else the rules are told.
_ALWAYS: tuple[EventKind, ...] = ("session-start", "prompt", "subagent-start")


def needs(config: Config) -> tuple[Need, ...]:
    """Return the events that are needed, each once, in the order of a session."""
    # Those of the hooks themselves first: in that order they stand in an agent's settings.
    rows = sorted(wanted(config), key=lambda row: not row.passive)
    found = [need for row in rows for need in module_of(row).needs(config)]
    if found:
        found += [Need(kind=kind) for kind in _ALWAYS]
    merged: dict[str, Need] = {}
    for need in found:
        merged[need.kind] = _join(merged.get(need.kind, need), need)
    return tuple(merged[point.kind] for point in AGENT_HOOKS if point.kind in merged)


def wanted(config: Config, kind: EventKind = "") -> list[Policy]:
    """Return the rows of the policies that may have a say, at events of a kind or at all."""
    listed = {name for hook in config.hooks for name in hook.gates}
    return [
        row
        for row in policy.POLICIES
        if (not row.gate or row.gate in listed) and (not (kind and row.kinds) or kind in row.kinds)
    ]


def module_of(row: Policy) -> PolicyModule:
    """Import the module of a policy."""
    __import__(row.module)
    found: PolicyModule = sys.modules[row.module]
    return found


def gates_on(config: Config) -> tuple[str, ...]:
    """Return the gates of policies that ask for anything.

    The settings of such a gate, and its verb, have its name.
    """
    rows = [row for row in wanted(config) if row.gate and module_of(row).needs(config)]
    return tuple(dict.fromkeys(row.gate for row in rows))


def agents_wanted(config: Config) -> tuple[WantedAgent, ...]:
    """Return the sub-agents that policies work with (`agents` of their modules)."""
    offers = [getattr(module_of(row), "agents", None) for row in wanted(config)]
    return tuple(agent for offer in offers if offer for agent in offer(config))


def asked_besides(config: Config, kind: EventKind) -> tuple[str, ...]:
    """Return the policies that are asked at an event though no hook lists them."""
    return tuple(
        row.name
        for row in wanted(config, kind)
        if not (row.gate or row.passive)
        and any(need.kind == kind for need in module_of(row).needs(config))
    )


def agent_hooks(config: Config) -> list[Hook]:
    """Return the hooks of an agent's events that list a gate, and answer to anything."""
    return [
        hook
        for hook in config.hooks
        if hook.gates
        and kind_of(hook.name)
        and () not in (hook.enabled_tools, hook.enabled_agents)  # nothing that it answers to
    ]


def _join(one: Need, other: Need) -> Need:
    return Need(
        kind=one.kind,
        tools=_both(one.tools, other.tools),
        tool_kinds=tuple(dict.fromkeys((*one.tool_kinds, *other.tool_kinds))),
        but_reads=one.but_reads or other.but_reads,
        agents=_both(one.agents, other.agents),
        more_s=max(one.more_s, other.more_s),
    )


def _both(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if one is None or other is None else tuple(dict.fromkeys((*one, *other)))
