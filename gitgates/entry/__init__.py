"""The programs that hosts start: small, standard library only, no click."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.policies.git_hooks import HookCall
    from gitgates.report.text import Console, Terminal


def finish(call: HookCall, console: Console, terminal: Terminal, began_s: float) -> None:
    """Show and save what became of a hook that was handled.

    Raises: what a policy raised.
    """
    if call.note:
        from gitgates.report.text import as_bytes, shown  # an agent's entry does not load it

        terminal.write(as_bytes(f"gitgates {call.event.name}: {shown(call.note)}\n"))
    if call.plan and call.decision:
        terminal.write(console.closing(call.decision, call.plan))
        if call.has_results:
            from gitgates.report.artifacts import save_run  # where all passed, nothing is saved

            terminal.write(save_run(call.decision, call.plan, call.config, began_s))
    if call.errors:
        raise call.errors[0]
