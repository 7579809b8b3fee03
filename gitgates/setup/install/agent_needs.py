"""The agent events that a configuration needs, and what gates cannot do at them."""

from __future__ import annotations

import math
from collections.abc import Iterable

from gitgates.core.lifecycle import GIT_HOOKS, HOOK_OF, kind_of
from gitgates.core.policy import Need
from gitgates.core.types import Config
from gitgates.drivers.needs import agent_hooks, agents_wanted, git_hooks, join_needs, needed_events
from gitgates.engine.plan.hooks import hook_at, host_limit_s
from gitgates.hosts import agent_host, agent_settings
from gitgates.hosts.settings.base import Entry, InstalledHook, split

_AFTER_TOOL = HOOK_OF["after-tool"]


def entries(config: Config, agent: str) -> tuple[Entry, ...]:
    """Return the hook entries that a configuration and its policies need."""
    has_batches = agent_host(agent).has("after-batch")
    needed = []
    for need in _needs(config, agent):
        event, tools = HOOK_OF[need.kind], tools_of(need, agent)
        # No patterns mean all, and an empty list none.
        if all(names is None or split(names) for names in (tools, need.agents)):
            hook = hook_at(config, event, has_batches=has_batches)
            limit_s = host_limit_s(config, hook) + need.more_s
            limit_s = min(limit_s, agent_host(agent).SETTINGS.times.most_s.get(need.kind, limit_s))
            matcher = agent_settings(agent).matcher(need.kind, tools, need.agents)
            needed.append(Entry(event, math.ceil(limit_s), matcher))
    return tuple(needed)


def joined(needed: tuple[Entry, ...], installed: Iterable[InstalledHook]) -> tuple[Entry, ...]:
    """Return entries that also cover what is already installed, for other repositories."""
    by_event = {entry.event: entry for entry in needed}
    for hook in installed:
        entry = by_event.get(hook.event, Entry(hook.event, 0, hook.matcher))
        limit_s = max(entry.timeout_s, math.ceil(hook.timeout_s))
        matcher = entry.matcher if entry.matcher == hook.matcher else None
        by_event[hook.event] = Entry(hook.event, limit_s, matcher)
    return tuple(by_event.values())


def limits(config: Config, agent: str) -> list[str]:
    """Return what gates cannot do in an agent, for each hook that has gates."""
    host = agent_host(agent)
    channels = dict(host.PROTOCOL.events.values())
    limitations = []
    is_required = any(wanted.is_required for wanted in agents_wanted(config))
    if is_required and not host.PROTOCOL.hands_tokens:
        limitations.append(
            f"{host.TITLE} cannot tell an independent reviewer from the agent, although one is "
            "required; any review is accepted there"
        )
    gated = (*(hook.name for hook in config.hooks if hook.gates), *git_hooks(config))
    of_git = [point.name for point in GIT_HOOKS if point.name in gated]
    if host.NO_GIT_HOOKS and of_git:
        limitations.append(f"{', '.join(of_git)}: {host.NO_GIT_HOOKS}")
    for hook in agent_hooks(config):
        kind, no_event = kind_of(hook.name), f"{host.TITLE} has no event {hook.name}: its gates"
        if kind not in channels and hook == hook_at(config, _AFTER_TOOL, has_batches=False):
            kind = kind_of(_AFTER_TOOL)
            limitations.append(f"{no_event} run after each tool instead")
        can, limit_s = channels.get(kind), math.ceil(host_limit_s(config, hook))
        most_s = host.SETTINGS.times.most_s.get(kind, limit_s)
        if can is None:
            limitations.append(f"{no_event} do not run there")
        elif why := host.PROTOCOL.cannot.get(kind):
            limitations.append(f"{hook.name}: {why}")
        elif not (can.block or can.deny):
            what = f"{host.TITLE} cannot be blocked at {hook.name}: its gates only warn there"
            limitations.append(what)
        if can and most_s < limit_s:
            limitations.append(
                f"{host.TITLE} ends {hook.name} after {most_s} s, and then lets everything through;"
                f" its gates may take until {limit_s} s"
            )
    return limitations


def tools_of(need: Need, agent: str) -> tuple[str, ...] | None:
    """Return patterns of the needed tools; None: all."""
    if need.tools is None:
        return None
    names = agent_host(agent).TOOLS.names
    patterns = [*need.tools, *(name for kind in need.tool_kinds for name in names.get(kind, ()))]
    reads = [f"!{name}" for name in names.get("reads", ()) if need.but_reads]
    return tuple(dict.fromkeys((*patterns, *reads)))


def _needs(config: Config, agent: str) -> list[Need]:
    """Return the agent events that are needed, in the order of a session."""
    by_kind = {need.kind: need for need in needed_events(config)}
    host = agent_host(agent)
    if "after-batch" in by_kind and not host.has("after-batch"):
        batch = by_kind["after-batch"]
        after = Need("after-tool", tools=batch.tools or ())
        if batch.tools is None:
            after = after._replace(tool_kinds=("writes", "shell"))
        by_kind["after-tool"] = join_needs(by_kind.get("after-tool", after), after)
    before = Need("before-tool", tools=())
    starts = host.has("session-start") and host.PROTOCOL.tells_start
    if "session-start" in by_kind and not starts:
        # The state before the first change stands for that at the start.
        before = before._replace(tool_kinds=("writes", "shell"))
    elif "after-tool" in by_kind and not host.PROTOCOL.tells_edits:
        before = before._replace(tool_kinds=("writes",))
    if before.tool_kinds:
        by_kind["before-tool"] = join_needs(by_kind.get("before-tool", before), before)
    kinds = [kind for kind in HOOK_OF if kind in by_kind and host.has(kind)]
    return [by_kind[kind] for kind in kinds]
