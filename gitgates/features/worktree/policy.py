"""The policy that prepares the linked worktree in which an agent works."""

from __future__ import annotations

from gitgates.core.policy import Need
from gitgates.core.types import WARN, Verdict
from gitgates.worktree.setup import worktree_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Config
    from gitgates.drivers.call import Call

_BEGINNINGS: tuple[EventKind, ...] = ("session-start", "subagent-start")
_ENDS: tuple[EventKind, ...] = ("turn-end", "subagent-end")


def needs(config: Config) -> tuple[Need, ...]:
    """Return the events at which the setup starts, and those at which gates may wait for it."""
    settings = worktree_settings(config)
    if not settings.agents:
        return ()
    beginnings = [Need(kind=kind) for kind in _BEGINNINGS]
    return (*beginnings, *(Need(kind=kind, more_s=settings.timeout_s) for kind in _ENDS))


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Start to install what gates need in the background; wait for it before gates run."""
    settings = worktree_settings(call.config)
    is_linked = call.repo.git_dir_abs != call.repo.common_dir_abs
    if not (settings.agents and is_linked) or call.is_dry:
        return so_far
    from gitgates.features.worktree.background import ready, start  # only in agents' worktrees

    if call.kind in _BEGINNINGS:
        start(call.repo, call.env)
        return so_far
    why = ready(call.repo, settings.timeout_s)
    if not why:
        return so_far
    text = f"the setup of this worktree has failed: {why}"
    return so_far.joined(Verdict(WARN, to_agent=text, to_person=f"gitgates: {text}"))
