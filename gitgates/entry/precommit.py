"""`gitgates pre-commit-hook STAGE [FILE]…`: what the pre-commit framework, or prek, starts."""

from __future__ import annotations

import os
import time

from gitgates.core import environ
from gitgates.core.errors import UsageError
from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.drivers.git import handle
from gitgates.entry import finish, is_called_back
from gitgates.git.paths import pushed_id
from gitgates.git.repo import current_folder, find_repo
from gitgates.hosts import precommit as host
from gitgates.report.text import Console, open_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


def run(args: list[str]) -> int:
    """Run the gates of one stage on the files that the framework passes."""
    env = environ.read()
    if environ.is_off(env):
        return 0
    stage, *files = args or [""]
    point = HOOK_POINTS.get(stage)
    if point is None or not point.framework:
        raise UsageError(f"`{stage}` is not a stage of the pre-commit framework")
    cwd_abs = current_folder()
    repo = find_repo(cwd_abs, env)
    terminal = open_terminal(1, env)
    if is_called_back(stage, repo, terminal):
        return 0
    console = Console(terminal._replace(live=False))
    event_env = {**env, host.TO_REF: pushed_id(repo.git)} if stage == "pre-push" else env
    event = host.decode(stage, tuple(files), event_env, (repo.root_abs, cwd_abs))
    began_s = time.time()
    call = handle(event, repo._replace(env=_original_env(env)), console)
    # The framework shows stdout if we fail, or if it is configured to.
    return finish(call, console, terminal, began_s)


def _original_env(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment in which the framework was called, as far as it is known."""
    venv_abs = env.get("VIRTUAL_ENV", "")
    if not any(os.path.isfile(f"{venv_abs}/{mark}") for mark in host.ENVIRONMENT_MARKS):
        return dict(env)
    theirs_abs = os.path.dirname(host.persons_first_folder(env))
    return host.undo_venv(env, has_venv=os.path.isfile(f"{theirs_abs}/pyvenv.cfg"))
