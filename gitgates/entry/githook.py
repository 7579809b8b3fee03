"""`gitgates git-hook SHIM HOOK [ARG]…`: what the shim in .git/hooks starts.

Other managers start `gitgates git-hook --via=MANAGER HOOK [ARG]…`, without a previous hook.
"""

from __future__ import annotations

import os
import time

from gitgates.core import environ
from gitgates.core.errors import GitgatesError, UsageError
from gitgates.core.lifecycle import HOOK_POINTS, KEPT_SUFFIX
from gitgates.drivers.git import handle
from gitgates.engine.plan.command import with_hook
from gitgates.entry import finish, is_called_back, status_of
from gitgates.git.repo import current_folder, find_repo
from gitgates.hosts import git as host
from gitgates.report.text import Console, Terminal, as_bytes, escaped_line, open_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.core.types import Event
    from gitgates.drivers.git import HookCall
    from gitgates.git.repo import Repo

_LEGACY = (
    "PRE_COMMIT_RUNNING_LEGACY",
    "PREK_RUNNING_LEGACY",
)  # the framework has moved our shim aside
_NOT_RUN = ("skipped", "not-run")


def run(args: list[str]) -> int:
    """Run the previous hook, then the gates."""
    env = environ.read()
    if environ.is_off(env):
        return 0  # the shim does not even call us
    shim, hook, *argv = (*args, "", "")[: max(len(args), 2)]
    point = HOOK_POINTS.get(hook)
    if point is None or point.host != "git":
        raise UsageError(f"`{hook}` is not a hook of git", "For a list, see: git help hooks")
    terminal = open_terminal(2, env)
    repo = find_repo(current_folder(), env)
    if is_called_back(hook, repo, terminal):
        return 0
    stdin = read_stdin() if point.reads_stdin else None
    kept_status = 0
    has_kept = os.path.isfile(shim + KEPT_SUFFIX)
    console = Console(terminal)
    began_s = time.time()
    try:
        event = host.decode(hook, tuple(argv), stdin or b"", repo.root_abs)
        stand_in = _stand_in(shim, event, repo) if has_kept else ""
        kept_env = with_hook(env, hook + KEPT_SUFFIX, repo.git_dir_abs) if has_kept else env
        if has_kept and not stand_in:
            kept_status = _run_kept(terminal, shim, argv=tuple(argv), stdin=stdin, env=kept_env)
        if any(env.get(name) for name in _LEGACY) and os.path.exists(f"{shim}.legacy"):
            event = event._replace(within_framework=True)
        call = handle(event, repo, console)
        if stand_in and not _has_run(call, stand_in):
            kept_status = _run_kept(terminal, shim, argv=tuple(argv), stdin=stdin, env=kept_env)
        return finish(call, console, terminal, began_s) or kept_status
    except GitgatesError as error:
        error.exit_status = status_of(error, hook, kept_status)
        raise


def _stand_in(shim: str, event: Event, repo: Repo) -> str:
    """Return the gate that runs what the previous hook, pre-commit's own, would run.

    Returns "" if there is none, or if that cannot be determined: then the previous hook runs.
    """
    from gitgates.drivers.git import judgements_of
    from gitgates.engine.plan.plan import framework_gate
    from gitgates.git.previous_hook import is_of_framework  # most repositories have none

    if not is_of_framework(shim, repo.root_abs):
        return ""
    try:
        config = judgements_of(event, repo)[0].config
    except GitgatesError:
        return ""
    return framework_gate(config, event.name) if config else ""


def _has_run(call: HookCall, gate: str) -> bool:
    """Return whether a gate has run, or need not: the event is refused, or a person skips the gate.

    If the gate was skipped for another reason, such as no changed path, some hooks of pre-commit
    might still run.
    """
    visits = call.decision.visits if call.decision else ()
    results = [visit.result for visit in visits if visit.result.gate == gate]
    # Skipped with an exit status: it ran, but none of those hooks matched a path.
    has_ended = any(r.exit_status is not None or r.status not in _NOT_RUN for r in results)
    by_person = gate in environ.skipped_gates(call.env)
    return call.is_refused or by_person or has_ended


def _run_kept(
    terminal: Terminal,
    shim: str,
    *,
    argv: tuple[str, ...],
    stdin: bytes | None,
    env: Mapping[str, str],
) -> int:
    """Run the previous hook; report its failure."""
    from gitgates.git.previous_hook import SUFFIX, run_kept  # most repositories have none

    try:
        status = run_kept(shim, argv, stdin, env)
    except OSError as error:
        status = 1
        reason = error.strerror or str(error)
        terminal.write(
            as_bytes(f"gitgates: {escaped_line(shim + SUFFIX)}: cannot be run: {reason}\n")
        )
    if status:
        name = os.path.basename(shim + SUFFIX)
        terminal.write(as_bytes(f"gitgates: {name} failed (exit status {status})\n"))
    return status


def read_stdin() -> bytes:
    """Return everything on standard input."""
    parts: list[bytes] = []
    while data := os.read(0, 1 << 16):
        parts.append(data)
    return b"".join(parts)
