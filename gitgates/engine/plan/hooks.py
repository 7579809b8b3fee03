"""Match the tools and agents of a configured hook; compute the timeouts of an agent's hook.

No filter: all; an empty one: none. The host waits longer than the gates may take: taking a
snapshot, ending a gate that does not want to end, and the answer itself take time, too.
"""

from __future__ import annotations

from gitgates.core.agent_types import UNCHANGING
from gitgates.core.lifecycle import GATES_OWN_TIME, HOOK_OF, RETRY_HOOKS, kind_of
from gitgates.core.types import Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.agent_types import Payload
    from gitgates.core.types import Config

_LONGEST_NAME = 1000
_ALL_OTHERS_S = 5.0
_SESSION_END_S = 10.0  # explicit: without it, the client gives all hooks 1.5 s
_AROUND_S = 15.0  # beside the gates, if these have their own time
_TO_END_S = 2.8  # a gate that is asked to end, and the answer


def matches_hook(hook: Hook, payload: Payload) -> bool:
    """Return whether a hook applies to this tool and this agent.

    A hook for an agent's step applies to a tool in it that may change files.
    """
    uses = payload.tool.calls if payload.kind == "after-batch" else (payload.tool,)
    if kind_of(hook.name) == "after-batch":
        uses = tuple(use for use in uses if use.kind not in UNCHANGING)
    return any(
        matches_tool(hook.enabled_tools, use.name, use.other_names) for use in uses
    ) and matches_agent(hook.enabled_agents, payload.agent.type)


def hook_at(config: Config, event: str, *, has_batches: bool) -> Hook:
    """Return the hook that is configured for an event.

    For an agent that does not report when a step ends, the step's gates run after each tool,
    unless there are others for that.
    """
    hooks = {hook.name: hook for hook in config.hooks}
    hook = hooks.get(event, Hook(name=event))
    if has_batches or hook.gates or kind_of(event) != "after-tool":
        return hook
    return hooks.get(HOOK_OF["after-batch"], hook)


def matches_tool(patterns: tuple[str, ...] | None, tool: str, others: tuple[str, ...] = ()) -> bool:
    """Return whether one of the patterns (names, `A|B`, globs such as `mcp__*`) matches a tool.

    `others` are other names of it, which count if a pattern is just that.
    """
    if patterns is None:
        return True
    parts = _parts(patterns)
    return any(matches_glob(part, tool) or part in others for part in parts)


def matches_agent(patterns: tuple[str, ...] | None, agent: str) -> bool:
    """Return whether a pattern matches an agent. A bare name matches a plugin's agent, too.

    The main thread has no name, so no pattern means it.
    """
    if patterns is None:
        return True
    if not agent:
        return False
    bare = agent.rpartition(":")[2]
    return any(matches_glob(part, agent) or matches_glob(part, bare) for part in _parts(patterns))


def matches_glob(pattern: str, name: str) -> bool:
    """Return whether a name matches a glob such as `mcp__*`."""
    if "*" not in pattern and "?" not in pattern:
        return pattern == name
    if len(name) > _LONGEST_NAME:
        return True  # no name is that long: run the gates rather than compare for long
    from gitgates.engine.plan.match import match_name  # most are plain names

    return match_name(pattern, name)


def _parts(patterns: tuple[str, ...]) -> list[str]:
    return [part.strip() for pattern in patterns for part in pattern.split("|") if part.strip()]


def gates_limit_s(config: Config, hook: Hook) -> float:
    """Return how long all gates of an agent's hook may take together."""
    if hook.timeout_s:
        return hook.timeout_s
    if not (kind_of(hook.name) in GATES_OWN_TIME or hook.name in RETRY_HOOKS):
        return host_limit_s(config, hook) - _TO_END_S
    from gitgates.engine.plan.plan import reachable  # a hook with nothing to run need not load it

    gates = {gate.name: gate for gate in config.gates}
    return sum(
        gates[name].schedule.timeout_s
        * (2 if gates[name].measures.baseline is True else 1)
        * gates[name].schedule.runs
        for name in reachable(hook.gates, gates)
        if name in gates
    )


def least_limit_s(hook: Hook) -> float:
    """Return how long the host waits for this hook, whatever its gates are."""
    if kind_of(hook.name) in GATES_OWN_TIME:
        return _AROUND_S
    if hook.timeout_s:
        return hook.timeout_s + _AROUND_S
    return _SESSION_END_S if kind_of(hook.name) == "session-end" else _ALL_OTHERS_S


def host_limit_s(config: Config, hook: Hook) -> float:
    """Return the timeout to write into an agent's settings for this hook."""
    if hook.timeout_s or kind_of(hook.name) in GATES_OWN_TIME:
        return gates_limit_s(config, hook) + _AROUND_S
    return least_limit_s(hook)
