"""The policy that records save points around tools that may change files.

Before a tool, changes are recorded as somebody else's; after it, as the tool's. If the tool has
removed or overwritten what no commit has, the agent is told how to get it back. Before it destroys
what cannot be saved, the person is asked. Most tool calls change nothing, and leave no point.
"""

from __future__ import annotations

import os

from gitgates.core.errors import GitgatesError
from gitgates.core.guarded import has_rules, setting_of
from gitgates.core.policy import Need
from gitgates.core.types import BLOCK, WARN, Verdict
from gitgates.drivers.needs import is_guardable
from gitgates.features.undo.settings import file_limits, settings_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Config
    from gitgates.drivers.call import Call

__all__ = ["decide", "file_limits", "needs"]
_LOOK_S = 30.0  # the first look at a large repository
_AFTER = ("after-tool", "tool-failed")
_AROUND: tuple[EventKind, ...] = ("before-tool", "after-tool", "tool-failed")


def needs(config: Config) -> tuple[Need, ...]:
    """Return the events around tools that may write, if anything is checked."""
    if not is_guardable(config):
        return ()
    if not settings_of(config).enabled:
        return (Need(kind="before-tool", tools=(), tool_kinds=("shell",)),) if _asks(config) else ()
    return (
        Need(kind="session-start"),
        Need(kind="prompt"),
        *(Need(kind=kind, tools=(), but_reads=True, more_s=_LOOK_S) for kind in _AROUND),
    )


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Record a save point; before a command, ask about what cannot be saved.

    Raises: OSError if the state folder cannot be written.
    """
    payload, is_on = call.payload, settings_of(call.config).enabled
    if call.is_dry or not (is_on or payload.tool.kind == "shell"):
        return so_far
    if call.kind == "before-tool" and payload.tool.kind in ("shell", "ours"):
        from gitgates.drivers.shell_commands import name_caller  # so that it may undo its own turn

        so_far = name_caller(call, so_far)
    if so_far.level >= BLOCK or so_far.final or _is_nothing(call):
        return so_far
    from gitgates.features.undo import tool_call  # many commands only read

    decided = {
        "session-start": tool_call.begin,
        "prompt": tool_call.settle,
        "before-tool": tool_call.before,
        **dict.fromkeys(_AFTER, tool_call.after),
    }
    if call.kind not in decided:
        return so_far
    try:
        return so_far.joined(decided[call.kind](call))
    except GitgatesError as error:
        return so_far.joined(Verdict(WARN, to_person=f"gitgates: no save point: {error}"))


def _is_nothing(call: Call) -> bool:
    """Return whether a command only reads, and its event closes no open call."""
    if call.payload.tool.kind != "shell" or os.path.exists(f"{call.repo.state_abs}/recorder.calls"):
        return False
    from gitgates.drivers.reading import is_reading

    return bool(call.payload.tool.command) and is_reading(call.payload.tool.command)


def _asks(config: Config) -> bool:
    """Return whether commands are asked about or refused even without save points."""
    return has_rules(config) and (
        setting_of(config, "lost_work") not in ("save", "off")
        or setting_of(config, "destructive") != "off"
    )
