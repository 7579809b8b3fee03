"""How long the gates of one event may take together, and what its host is told to wait for us.

The host waits longer than the gates may take: taking a snapshot, ending a gate that does not want
to end, and the answer itself take time, too.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.types import Config, Hook

# What gates take here, an agent waits for: it wants to stop, or has written a file.
GATES_OWN_TIME = ("Stop", "SubagentStop", "PostToolUse")
_ALL_OTHERS_S = 5.0
_SESSION_END_S = 10.0  # said explicitly: without it, the client gives all hooks 1.5 s
_AROUND_S = 15.0  # beside the gates, where these have their own time
_TO_END_S = 2.8  # a gate that is told to end, and the answer


def gates_limit_s(config: Config, hook: Hook) -> float:
    """Return how long all gates of an agent's hook may take together."""
    if hook.timeout_s:
        return hook.timeout_s
    if hook.name not in GATES_OWN_TIME:
        return host_limit_s(config, hook) - _TO_END_S
    from gitgates.engine.plan import reachable  # a hook with nothing to run need not load it

    gates = {gate.name: gate for gate in config.gates}
    return sum(
        gates[name].timeout_s * (2 if gates[name].baseline else 1)
        for name in reachable(hook.gates, gates)
        if name in gates
    )


def least_limit_s(hook: Hook) -> float:
    """Return how long the host waits for this hook, whatever its gates are."""
    if hook.name in GATES_OWN_TIME:
        return _AROUND_S
    if hook.timeout_s:
        return hook.timeout_s + _AROUND_S
    return _SESSION_END_S if hook.name == "SessionEnd" else _ALL_OTHERS_S


def host_limit_s(config: Config, hook: Hook) -> float:
    """Return the timeout that stands in an agent's settings for this hook."""
    if hook.timeout_s or hook.name in GATES_OWN_TIME:
        return gates_limit_s(config, hook) + _AROUND_S
    return least_limit_s(hook)
