"""The policy that shows agents their advice, and runs its hooks at moments of their work.

A commit and a push are git's own hooks; where none of ours will run, the shell command of an agent
that is about to do it. A session ends where the agent stops, or at the latest with itself. Before a
compaction, what is for a handoff only warns: `gitgates handoff` is one.
"""

from __future__ import annotations

from gitgates.policies.advice_items import Identity, guidance, hooks_at, identify
from gitgates.policy import Need
from gitgates.types import BLOCK, LIVE, Verdict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.lifecycle import EventKind
    from gitgates.policies.call import Call
    from gitgates.types import Config

_AROUND_S = 15.0  # a snapshot, and ending what does not want to end
_LONGEST = 2000  # characters of guidance
# trigger → the events that it may be at
_EVENTS: dict[str, tuple[EventKind, ...]] = {
    "session-end": ("turn-end", "session-end"),
    "before-commit": ("before-tool", "before-commit"),
    "before-push": ("before-tool", "before-push"),
    "before-handoff": ("before-compact",),
}
_BEGINNINGS: tuple[EventKind, ...] = ("session-start", "subagent-start")


def needs(config: Config) -> tuple[Need, ...]:
    """Return the beginnings, for guidance, and the events that hooks of advice may run at."""
    seconds: dict[EventKind, float] = {}
    for one in config.advice:
        if one.status in LIVE:
            for kind in _EVENTS.get(one.hook_trigger, _BEGINNINGS):
                own_s = one.hook_timeout_s if one.hook_command else 0.0
                seconds[kind] = seconds.get(kind, 0.0) + own_s
    found = {kind: Need(kind=kind, more_s=s + _AROUND_S) for kind, s in seconds.items()}
    if own := found.get("before-tool"):
        found["before-tool"] = own._replace(tools=(), tool_kinds=("shell",))
    return tuple(found.values())


def decide(call: Any, so_far: Verdict) -> Verdict:  # noqa: ANN401 - of an agent, or of git
    """Run the hooks of this moment, unless it is refused already; or show the guidance."""
    if call.kind in ("before-commit", "before-push"):
        from gitgates.policies.advice_git import decide_hook  # an agent's events need none of it

        return so_far if so_far.level >= BLOCK else so_far.joined(decide_hook(call))
    who = identify(call.env, call.payload.agent_type)
    if call.kind in _BEGINNINGS:
        return so_far.joined(Verdict(to_agent=guidance(call.config.advice, who, _LONGEST)))
    hooks = hooks_at(call.config.advice, who, _triggers(call, who))
    if so_far.level >= BLOCK or not hooks:
        return so_far
    from gitgates.policies.advice_run import decide_event  # most events have none to run

    return so_far.joined(decide_event(call, hooks))


def _triggers(call: Call, who: Identity) -> tuple[str, ...]:
    """Return the triggers of an agent's event."""
    found = tuple(trigger for trigger, kinds in _EVENTS.items() if call.kind in kinds)
    if call.kind != "before-tool":
        return found
    command = call.payload.command
    verbs = {"before-commit": "commit", "before-push": "push"}
    # Most commands have nothing to do with git.
    found = tuple(one for one in found if "git" in command and verbs[one] in command)
    if not found or not hooks_at(call.config.advice, who, found):
        return ()
    from gitgates.policies.advice_run import will_run_here

    return tuple(one for one in found if will_run_here(call, verbs[one]))
