"""The policy that takes save points around tools that may change files.

Before a tool, what has changed since is recorded as somebody else's; after it, as the tool's. A
command that would destroy what no commit holds runs when that is saved, and agent and person are
told; what cannot be saved is asked about. Most tool calls change nothing, and leave no point.
"""

from __future__ import annotations

from gitgates.core.guarded import has_rules, setting_of
from gitgates.core.policy import Need
from gitgates.core.types import BLOCK, Verdict
from gitgates.features.undo.settings import settings_of
from gitgates.session.needs import is_guardable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.agent_types import ToolKind
    from gitgates.core.types import Config
    from gitgates.session.call import Call

_FIRST_S = 30.0  # the first state of a large repository
_KINDS: tuple[ToolKind, ...] = ("writes", "shell")


def needs(config: Config) -> tuple[Need, ...]:
    """Return the events around tools that write, and shells, where anything is checked."""
    if not is_guardable(config):
        return ()
    if not settings_of(config).enabled:
        return (Need(kind="before-tool", tools=(), tool_kinds=("shell",)),) if _asks(config) else ()
    return (
        Need(kind="prompt"),
        Need(kind="before-tool", tools=(), tool_kinds=(*_KINDS, "ours"), more_s=_FIRST_S),
        Need(kind="after-tool", tools=(), tool_kinds=_KINDS, more_s=_FIRST_S),
        Need(kind="tool-failed", tools=(), tool_kinds=_KINDS, more_s=_FIRST_S),
    )


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Take a save point; before a command, say what it would destroy.

    Raises: OSError where the state folder cannot be written.
    """
    if call.is_dry:
        return so_far
    if not settings_of(call.config).enabled and call.payload.tool_kind != "shell":
        return so_far
    if call.kind == "prompt":
        from gitgates.features.undo.prompts import note_prompt  # once in a turn

        note_prompt(call.repo, call.payload.session, call.payload.prompt)
        return so_far
    if call.kind in ("before-tool", "after-tool", "tool-failed"):
        if call.kind == "before-tool" and call.payload.tool_kind in ("shell", "ours"):
            from gitgates.session.shell_commands import name_caller  # which may undo its turn

            so_far = name_caller(call, so_far)
        if call.payload.tool_kind not in _KINDS or so_far.level >= BLOCK or so_far.final:
            return so_far
        if call.payload.tool_kind == "shell":
            from gitgates.session.reading import is_reading

            command = call.payload.command
            if command and is_reading(command):  # what has changed meanwhile is somebody else's
                return so_far
        from gitgates.features.undo import tool_call  # many commands only read

        verdict = (tool_call.before if call.kind == "before-tool" else tool_call.after)(call)
        return so_far.joined(verdict)
    return so_far


def _asks(config: Config) -> bool:
    """Return whether commands are asked about, or refused, also where no points are taken."""
    return has_rules(config) and (
        setting_of(config, "lost_work") not in ("save", "off")
        or setting_of(config, "destructive") != "off"
    )
