"""Set up a linked worktree in the background, while an agent begins to work in it."""

from __future__ import annotations

import os

from gitgates.config.load import load
from gitgates.core import environ
from gitgates.core.errors import GitgatesError
from gitgates.git.checkout import matching_entries
from gitgates.git.repo import find_repo
from gitgates.proc.call import start_unattended
from gitgates.store.files import lock_file, make_folder, read_cached, remove_file, replace_cached
from gitgates.worktree.setup import SetupError, set_up, setup_key, worktree_settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo


def start(repo: Repo, env: Mapping[str, str]) -> None:
    """Start to install what gates need in a linked worktree. Raises: OSError."""
    make_folder(repo.state_abs)
    match read_cached(_state_of(repo)):
        case (str(), str(why)) if why:
            remove_file(_state_of(repo))  # so that it is tried again
        case _:
            pass
    code = f"from gitgates.features.worktree.background import run; run({repo.root_abs!r})"
    start_unattended(code, env)


def ready(repo: Repo, limit_s: float) -> str:
    """Wait for the setup, or do it if nobody has begun; return what went wrong, if anything."""
    make_folder(repo.state_abs)
    fd = lock_file(_lock_of(repo), wait_s=limit_s)
    if fd < 0:
        return f"it still runs after {limit_s:g} s"
    try:
        match read_cached(_state_of(repo)):
            case (str(), str(why)):
                return why
            case _:
                return _record(repo)
    finally:
        os.close(fd)


def run(root_abs: str) -> None:
    """Do the setup, unless another process is doing it."""
    repo = find_repo(root_abs, environ.read())
    fd = lock_file(_lock_of(repo))
    if fd >= 0:
        try:
            _record(repo)
        finally:
            os.close(fd)


def _record(repo: Repo) -> str:
    """Install what gates need; record and return what went wrong."""
    key, why = "", ""
    try:
        key = _set_up(repo)
    except GitgatesError as error:
        why = error.full_message
    replace_cached(_state_of(repo), (key, why))
    return why


def _lock_of(repo: Repo) -> str:
    return f"{repo.state_abs}/setup.lock"


def _state_of(repo: Repo) -> str:
    return f"{repo.state_abs}/setup.state"


def _set_up(repo: Repo) -> str:
    """Install what is missing or outdated; return the key of the setup."""
    config = load(repo.root_abs)
    if config is None:
        return ""
    settings = worktree_settings(config)
    key = setup_key(settings, matching_entries(repo.git, settings.inputs))
    match read_cached(_state_of(repo)):
        case (str(before), "") if before and before == key:
            settings = settings._replace(setup=())
        case _:
            pass
    main_repo = repo._replace(root_abs=os.path.dirname(repo.common_dir_abs))
    if settings.setup:
        _refuse_links(repo, main_repo.root_abs)
    set_up(settings, repo, main_repo, log_abs=f"{repo.state_abs}/setup.log", say=lambda _text: None)
    return key


def _refuse_links(repo: Repo, main_abs: str) -> None:
    """Raise SetupError for a link into another working tree, to which `setup` would write."""
    own, others = (f"{os.path.realpath(folder)}/" for folder in (repo.root_abs, main_abs))
    for name in repo.git.names("ls-files", "-z", "--others", "--directory"):
        path_abs = f"{repo.root_abs}/{name}"
        target = f"{os.path.realpath(path_abs)}/"
        if os.path.islink(path_abs) and target.startswith(others) and not target.startswith(own):
            raise SetupError(
                f"{path_abs} is a link to {target.rstrip('/')}, and `setup` of "
                "[tool.gitgates.worktree] might write there: it was not run",
                "Remove the link, or `setup` or `agents`.",
            )
