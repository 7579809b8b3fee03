"""Which events of an agent a configuration needs to hear of, and of which tools and agents.

Installing writes those and no others: each event that is heard of costs a process.
"""

from __future__ import annotations

from gitgates.lifecycle import AGENT_HOOKS, ENDINGS, kind_of
from gitgates.record import Record
from gitgates.types import ACTIONS, POLICY_GATES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent_types import ToolKind
    from gitgates.lifecycle import EventKind
    from gitgates.types import Config, Gate, Hook

# Where a session begins, where a prompt does, and whom else the rules are told.
RETRY_NEEDS: tuple[EventKind, ...] = ("session-start", "prompt", "subagent-start")
# A sub-agent cannot be stopped, so that the main thread is, at its next event.
STOP_NEEDS: tuple[EventKind, ...] = ("prompt", "turn-end")
REVIEW = "review"
# What is a review, and what tells whose a change is.
_REVIEW_TOOLS: tuple[ToolKind, ...] = ("skill", "report", "writes")
# What the gate's own git may take in a large repository, beside what gates take.
_ASSESSING_S = 45.0
_SNAPSHOT_S = 25.0
_MARKING_S = 15.0  # a snapshot, too; the host waits longer there as it is


class Need(Record):
    """One event that is to be heard of."""

    kind: EventKind
    tools: tuple[str, ...] | None = None  # patterns, in the host's words; None: all
    tool_kinds: tuple[ToolKind, ...] = ()  # tools of these kinds, too
    but_reads: bool = False  # all tools but those that read, unless `tools` names one
    agents: tuple[str, ...] | None = None
    more_s: float = 0.0  # what a built-in gate's own work may take, beside the gates


def needs(config: Config) -> tuple[Need, ...]:
    """Return the events that are needed, each once, in the order of a session."""
    found = [
        Need(kind=kind_of(hook.name), tools=_tools(hook), agents=hook.enabled_agents)
        for hook in _agent_hooks(config)
    ]
    if found:
        found += [Need(kind=kind) for kind in RETRY_NEEDS]
    if any(
        kind_of(h.name) == "subagent-end" and _can_stop(h, config) for h in _agent_hooks(config)
    ):
        found += [Need(kind=kind) for kind in STOP_NEEDS]
        found.append(Need(kind="after-tool", tools=(), tool_kinds=("agent",)))
    if is_review_on(config):
        found += _review_needs(config)
    merged: dict[str, Need] = {}
    for need in found:
        merged[need.kind] = _join(merged.get(need.kind, need), need)
    return tuple(merged[point.kind] for point in AGENT_HOOKS if point.kind in merged)


def more_s(config: Config, kind: EventKind) -> float:
    """Return how long a built-in gate's own work may take at an event, beside the gates."""
    return max((need.more_s for need in needs(config) if need.kind == kind), default=0.0)


def is_review_on(config: Config) -> bool:
    """Tell whether the gate `review` may ever ask for anything."""
    ends = [hook for hook in _agent_hooks(config) if kind_of(hook.name) in ENDINGS]
    listed = any(REVIEW in hook.gates for hook in ends)
    return listed and (config.review.mode != "off" or is_strict_possible(config))


def is_strict_possible(config: Config) -> bool:
    """Tell whether a reviewer's decision may be wanted, by the mode or by a prompt."""
    return config.review.mode == "require" or bool(config.review.prefix)


def hears_all(config: Config) -> bool:
    """Tell whether we hear of each tool that may write, before it does."""
    return is_review_on(config) and is_strict_possible(config)


def _review_needs(config: Config) -> list[Need]:
    """Return what the gate `review` hears of: whoever runs a command of ours, and reviews.

    In the strict form the reviewer is held to reading, whatever tool it takes.
    """
    review = config.review
    reviewers = tuple(dict.fromkeys((*review.agents, review.reviewer)))
    before = Need(kind="before-tool", tools=(), tool_kinds=("shell",))
    if is_strict_possible(config):
        before = Need(kind="before-tool", tools=(), but_reads=True)
    return [
        Need(kind="prompt-expansion", more_s=_SNAPSHOT_S),
        before,
        Need(kind="after-tool", tools=(), tool_kinds=_REVIEW_TOOLS, more_s=_MARKING_S),
        Need(kind="subagent-start", more_s=_SNAPSHOT_S),
        Need(kind="subagent-end", agents=reviewers, more_s=_ASSESSING_S),
        Need(kind="turn-end", more_s=_ASSESSING_S),
    ]


def _agent_hooks(config: Config) -> list[Hook]:
    return [
        hook
        for hook in config.hooks
        if hook.gates
        and kind_of(hook.name)
        and () not in (hook.enabled_tools, hook.enabled_agents)  # nothing that it answers to
    ]


def _tools(hook: Hook) -> tuple[str, ...] | None:
    """Return the tools that a hook is about; `!` has no meaning there, and no tool is named so."""
    if not any("!" in pattern for pattern in hook.enabled_tools or ()):
        return hook.enabled_tools
    parts = [part for pattern in hook.enabled_tools or () for part in pattern.split("|")]
    return tuple(part for part in parts if "!" not in part)


def _can_stop(hook: Hook, config: Config) -> bool:
    """Tell whether a gate of the hook may stop the agent."""
    gates = {gate.name: gate for gate in config.gates}
    waiting, seen = [name for name in hook.gates if name not in POLICY_GATES], set[str]()
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
        kind=one.kind,
        tools=_both(one.tools, other.tools),
        tool_kinds=tuple(dict.fromkeys((*one.tool_kinds, *other.tool_kinds))),
        but_reads=one.but_reads or other.but_reads,
        agents=_both(one.agents, other.agents),
        more_s=max(one.more_s, other.more_s),
    )


def _both(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    return None if one is None or other is None else tuple(dict.fromkeys((*one, *other)))
