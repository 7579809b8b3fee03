"""The programs that hosts start: small, standard library only, no click."""

from __future__ import annotations

from gitgates.core.errors import Interrupted
from gitgates.core.lifecycle import HOOK_POINTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.errors import GitgatesError
    from gitgates.report.text import Console, Terminal
    from gitgates.session.git_hooks import HookCall


def finish(call: HookCall, console: Console, terminal: Terminal, began_s: float) -> int:
    """Show and save the results of a hook; return the exit status.

    Raises: what a policy raised.
    """
    from gitgates.hosts.git import encode  # an agent's entry loads neither

    if call.note:
        from gitgates.report.text import as_bytes, escaped_line

        terminal.write(as_bytes(f"gitgates {call.event.name}: {escaped_line(call.note)}\n"))
    if call.plan and call.decision:
        terminal.write(console.closing(call.decision, call.plan))
        if call.has_results:
            from gitgates.report.artifacts import save_run  # where all passed, nothing is saved

            terminal.write(save_run(call.decision, call.plan, call.config, began_s))
        point = HOOK_POINTS[call.event.name]
        if call.event.host == "git" and call.is_refused and point.can_block:
            from gitgates.session.refusal import next_steps  # most are not refused

            terminal.write(next_steps(call))
    if call.errors:
        raise call.errors[0]
    return encode(call.decision) if HOOK_POINTS[call.event.name].can_block else 0


def status_of(error: GitgatesError, hook: str, otherwise: int = 0) -> int:
    """Return the exit status of a hook for an error; `otherwise`: where it is too late to block.

    Git hands on that of some hooks by which it is too late: `git bisect start` would end half-way.
    """
    point = HOOK_POINTS.get(hook)
    is_too_late = point and not point.can_block and not isinstance(error, Interrupted)
    return otherwise if is_too_late else error.exit_status
