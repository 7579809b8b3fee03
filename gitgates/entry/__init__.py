"""The programs that hosts start: small, standard library only, no click."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
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
    if call.errors:
        raise call.errors[0]
    return encode(call.decision)
