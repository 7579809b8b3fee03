"""Whether a hook answers to a tool or an agent, by name. No filter: all; an empty one: none."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.types import Hook, Payload

_OLD_NAMES = {"Task": "Agent"}  # what the client itself takes for the same


def answers_to(hook: Hook, payload: Payload) -> bool:
    """Tell whether a hook is about this tool and this agent."""
    return names_tool(hook.enabled_tools, payload.tool) and names_agent(
        hook.enabled_agents, payload.agent_type
    )


def names_tool(patterns: tuple[str, ...] | None, tool: str) -> bool:
    """Tell whether one of the patterns (names, `A|B`, globs such as `mcp__*`) means a tool."""
    if patterns is None:
        return True
    parts = _parts(patterns)
    return any(fits(part, tool) or _OLD_NAMES.get(part) == tool for part in parts)


def names_agent(patterns: tuple[str, ...] | None, agent: str) -> bool:
    """Tell whether a pattern means an agent. A bare name means a plugin's agent of it, too.

    The main thread has no name, so that no pattern means it.
    """
    if patterns is None:
        return True
    if not agent:
        return False
    bare = agent.rpartition(":")[2]
    return any(fits(part, agent) or fits(part, bare) for part in _parts(patterns))


def fits(pattern: str, name: str) -> bool:
    """Tell whether a name is what a pattern says, in which `*` is any text and `?` one sign."""
    place, rest, star, back = 0, 0, -1, 0
    while place < len(name):
        if rest < len(pattern) and pattern[rest] == "*":
            star, back, rest = rest, place, rest + 1
        elif rest < len(pattern) and pattern[rest] in ("?", name[place]):
            place, rest = place + 1, rest + 1
        elif star >= 0:
            back += 1
            place, rest = back, star + 1
        else:
            return False
    return not pattern[rest:].strip("*")


def _parts(patterns: tuple[str, ...]) -> list[str]:
    return [part.strip() for pattern in patterns for part in pattern.split("|") if part.strip()]
