"""The policy that shows agents their advice, and runs its hooks at certain events.

Commit and push hooks run in git's hooks or, if ours are not installed, before the agent's shell
command. The session-end trigger applies when the agent stops, or at the latest when the session
ends. Before a compaction, handoff hooks only warn; they can block `gitgates handoff`.
"""

from __future__ import annotations

from gitgates.core.policy import Need
from gitgates.core.types import BLOCK, Verdict
from gitgates.features.advice.items import LIVE, Identity, advice_of, guidance, hooks_at, identify

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Config, Event, Plan
    from gitgates.drivers.call import Call
    from gitgates.features.advice.items import Advice
    from gitgates.git.repo import Repo

_AROUND_S = 15.0  # for a snapshot, and for killing processes that do not end
_LONGEST = 2000  # characters of guidance
# trigger → the events at which it may occur
_EVENTS: dict[str, tuple[EventKind, ...]] = {
    "session-end": ("turn-end", "session-end"),
    "before-commit": ("before-tool", "before-commit"),
    "before-push": ("before-tool", "before-push"),
    "before-handoff": ("before-compact",),
}
_BEGINNINGS: tuple[EventKind, ...] = ("session-start", "subagent-start")


def needs(config: Config) -> tuple[Need, ...]:
    """Return session starts, at which advice is shown, and the events for its hooks."""
    live = [entry for entry in advice_of(config) if entry.status in LIVE]
    seconds: dict[EventKind, float] = dict.fromkeys(_BEGINNINGS if live else (), 0.0)
    for entry in live:
        for kind in _EVENTS.get(entry.hook_trigger, ()):
            seconds[kind] = seconds.get(kind, 0.0) + entry.hook_timeout_s
    need_by_kind = {kind: Need(kind=kind, more_s=s + _AROUND_S) for kind, s in seconds.items()}
    if tool_need := need_by_kind.get("before-tool"):
        need_by_kind["before-tool"] = tool_need._replace(tools=(), tool_kinds=("shell",))
    return tuple(need_by_kind.values())


def person_verbs(call: Call) -> list[tuple[str, ...]]:
    """Return the verbs that can remove or weaken blocking advice."""
    live = [entry for entry in advice_of(call.config) if entry.status in LIVE]
    blocking_ids = [entry.id for entry in live if entry.hook_on_failure == "block"]
    return [("advice", verb, name) for name in blocking_ids for verb in ("close", "edit", "remove")]


def runs_commands(config: Config) -> bool:
    """Return whether any advice has a command."""
    return any(entry.hook_command for entry in advice_of(config))


def plan_of(event: Event, repo: Repo, config: Config) -> Plan | None:
    """Return the plan that runs beside a git hook's gates; None if there is none."""
    from gitgates.features.advice import git_hooks  # only for `explain`

    return git_hooks.plan_of(event, repo, config)


def decide(call: Any, so_far: Verdict) -> Verdict:  # noqa: ANN401 - of an agent, or of git
    """Run this event's hooks, unless it is already refused; or show the guidance."""
    if call.kind in ("before-commit", "before-push"):
        from gitgates.features.advice.git_hooks import (
            decide_hook,  # an agent's events do not need it
        )

        return so_far if so_far.level >= BLOCK else so_far.joined(decide_hook(call))
    who = identify(call.env, call.payload.agent.type)
    if call.kind in _BEGINNINGS:
        return so_far.joined(Verdict(to_agent=guidance(advice_of(call.config), who, _LONGEST)))
    hooks = _before_tool(call, who) if call.kind == "before-tool" else _at(call, who)
    if so_far.level >= BLOCK or not hooks:
        return so_far
    from gitgates.features.advice.run import decide_event  # rarely needed

    return so_far.joined(decide_event(call, hooks))


def _at(call: Call, who: Identity) -> list[Advice]:
    triggers = tuple(trigger for trigger, kinds in _EVENTS.items() if call.kind in kinds)
    return hooks_at(advice_of(call.config), who, triggers)


def _before_tool(call: Call, who: Identity) -> list[Advice]:
    """Return the hooks before `git commit` or `git push` that only the agent's event can run.

    Git's hook, which runs the others, does not know a sub-agent's type.
    """
    due: list[Advice] = []
    for trigger, verb in (("before-commit", "commit"), ("before-push", "push")):
        of_git = hooks_at(advice_of(call.config), identify(call.env), (trigger,))
        hooks = hooks_at(advice_of(call.config), who, (trigger,))
        hooks = [hook for hook in hooks if hook not in of_git]
        if hooks and verb in call.payload.tool.command:
            from gitgates.features.advice.run import is_about_to  # few commands commit

            due += hooks if is_about_to(verb, call.payload.tool.command) else ()
    return due
