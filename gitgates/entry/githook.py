"""`gitgates git-hook SHIM HOOK [ARG]…`: what the shim in .git/hooks starts.

Other managers start `gitgates git-hook --via=MANAGER HOOK [ARG]…`: there, no earlier hook is kept.
"""

from __future__ import annotations

import os
import time

from gitgates import environ
from gitgates.engine.command import is_running_here, with_hook
from gitgates.entry import finish
from gitgates.errors import UsageError
from gitgates.git.repo import current_folder, find_repo
from gitgates.hosts import git as host
from gitgates.lifecycle import HOOK_POINTS, KEPT_SUFFIX
from gitgates.policies.git_hooks import handle
from gitgates.report.text import Console, Terminal, as_bytes, open_terminal, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def run(args: list[str]) -> int:
    """Run the hook that was installed before ours, then the gates."""
    env = environ.read()
    if environ.is_off(env):
        return 0  # the shim never comes here then
    shim, hook, *argv = (*args, "", "")[: max(len(args), 2)]
    point = HOOK_POINTS.get(hook)
    if point is None or point.host != "git":
        raise UsageError(f"`{hook}` is no hook of git", "Known are those of: git help hooks")
    terminal = open_terminal(2, env)
    repo = find_repo(current_folder(), env)
    if is_running_here(env, repo.git_dir_abs, hook):
        terminal.write(b"gitgates: %s is running here already\n" % hook.encode())
        return 0
    stdin = read_stdin() if point.reads_stdin else None
    kept_status = 0
    if os.path.isfile(shim + KEPT_SUFFIX):
        kept_env = with_hook(env, hook, repo.git_dir_abs)
        kept_status = _run_kept(terminal, shim, argv=tuple(argv), stdin=stdin, env=kept_env)
    console = Console(terminal)
    event = host.decode(hook, tuple(argv), stdin or b"", repo.root_abs)
    began_s = time.time()
    call = handle(event, repo, console)
    return finish(call, console, terminal, began_s) or kept_status


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
        terminal.write(as_bytes(f"gitgates: {shown(shim + SUFFIX)}: cannot be run: {reason}\n"))
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
