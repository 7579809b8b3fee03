"""The programs that hosts start: small, standard library only, no click."""

from __future__ import annotations

from gitgates.core.errors import Interrupted
from gitgates.core.lifecycle import HOOK_POINTS, KEPT_SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.errors import GitgatesError
    from gitgates.drivers.git import HookCall
    from gitgates.git.repo import Repo
    from gitgates.report.text import Console, Terminal


def finish(call: HookCall, console: Console, terminal: Terminal, began_s: float) -> int:
    """Show and save the results of a hook; return the exit status.

    Raises: what a policy raised.
    """
    from gitgates.hosts.git import encode  # an agent's entry loads neither

    point = HOOK_POINTS[call.event.name]
    if call.note:
        from gitgates.report.text import as_bytes, escaped_line

        terminal.write(as_bytes(f"gitgates {call.event.name}: {escaped_line(call.note)}\n"))
    if call.plan and call.decision:
        terminal.write(console.closing(call.decision, call.plan))
        if call.has_results:
            from gitgates.report.artifacts import save_run  # if all passed, nothing is saved

            terminal.write(save_run(call.decision, call.plan, call.config, began_s))
        if call.event.host == "git" and call.is_refused and point.can_block:
            from gitgates.drivers.next_steps import next_steps  # most are not refused

            terminal.write(next_steps(call))
    if call.errors:
        raise call.errors[0]
    # The pre-commit framework shows nothing of a hook that succeeds.
    tells = point.can_block or call.event.host == "pre-commit"
    return encode(call.decision) if tells else 0


def is_called_back(hook: str, repo: Repo, terminal: Terminal) -> bool:
    """Return whether we already run this hook here, or the previous hook; report it.

    The previous hook may run gates with `gitgates run`, as before, but not the gates after it.
    """
    from gitgates.engine.plan.command import is_running_here  # an agent's entry has its own

    git_dir_abs = repo.git_dir_abs
    if any(is_running_here(repo.env, git_dir_abs, name) for name in (hook, hook + KEPT_SUFFIX)):
        terminal.write(b"gitgates: %s is already running here\n" % hook.encode())
        return True
    return False


def status_of(error: GitgatesError, hook: str, otherwise: int) -> int:
    """Return a hook's exit status for an error; `otherwise` if it is too late to block.

    Git passes on the status of some hooks at which it is too late: `git bisect start` would end
    halfway.
    """
    point = HOOK_POINTS.get(hook)
    is_too_late = point and not point.can_block and not isinstance(error, Interrupted)
    return otherwise if is_too_late else error.exit_status
