"""The repository of the current folder, and its configuration, for verbs."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import click

from gitgates.config import FILES, LOCAL_FILE
from gitgates.config.load import load
from gitgates.core import environ
from gitgates.core.errors import (
    ConfigError,
    GitError,
    GitgatesError,
    LockError,
    OwnershipError,
    StateError,
)
from gitgates.core.types import Config
from gitgates.git.repo import Repo, current_folder, find_repo
from gitgates.store.files import lock_file, make_folder, open_regular, replace_file
from gitgates.store.messages import Message, post
from gitgates.store.owners import require_access
from gitgates.worktree.isolate import recover_and_report

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

_P = ParamSpec("_P")
_EDIT_WAIT_S = 10.0
_INIT_FOUND_NOTHING = "init.found-nothing"  # a file of the state, empty
WRITE_A_GATE = (
    'Write a gate into gitgates.toml: [gates.test] with command = "make test", or the '
    'command that checks this project, and [hooks.pre-commit] with gates = ["test"]'
)
# Options with which a verb writes nothing, or asks a person first, which takes long.
_WITHOUT_LOCK = ("dry_run", "tries")


def current_repo() -> Repo:
    """Return the repository of the current folder.

    Raises: GitError if there is none.
    """
    return find_repo(current_folder(), environ.read())


def edits_files(verb: Callable[_P, int]) -> Callable[_P, int]:
    """Decorate a verb that reads, changes and writes files of the user's: one runs at a time.

    Raises: LockError if another one goes on for long; StateError if there can be no lock.
    """

    @wraps(verb)
    def alone(*args: _P.args, **kwargs: _P.kwargs) -> int:
        if any(kwargs.get(option) for option in _WITHOUT_LOCK):
            return verb(*args, **kwargs)
        try:
            state_abs = current_repo().shared_state_abs
        except GitError:
            return verb(*args, **kwargs)  # which says itself whether it needs one
        path_abs = f"{state_abs}/edits.lock"
        try:
            os.makedirs(state_abs, mode=0o700, exist_ok=True)
            fd = lock_file(path_abs, wait_s=_EDIT_WAIT_S)
        except OSError as error:
            raise StateError(f"{path_abs}: cannot be locked: {error.strerror}") from error
        if fd < 0:
            raise LockError(f"{path_abs}: another gitgates command is changing files", "Try again.")
        try:
            return verb(*args, **kwargs)
        finally:
            os.close(fd)

    return alone


def restore_interrupted(verb: str) -> None:
    """Restore what a killed run had stashed here, as every verb does first.

    Raises: StateError if something was damaged; `doctor` goes on to say what is wrong.
    """
    try:
        repo = current_repo()
    except GitError:
        return  # a verb that needs a repository says so itself
    if verb != "doctor":  # there it is one of the findings
        _warn_of_owner(repo)
    try:
        recover_and_report(repo, lambda text: click.echo(f"gitgates: {text}", err=True))
    except GitgatesError as error:
        if verb != "doctor":
            raise
        if not os.path.isdir(f"{repo.state_abs}/rescue"):  # else it is one of the findings
            click.echo(f"gitgates: {error}", err=True)


def _warn_of_owner(repo: Repo) -> None:
    """Say if another user's state cannot be seen: what a verb finds may not be all."""
    try:
        require_access(repo.state_abs)
    except StateError as error:
        click.echo(f"gitgates: {error}", err=True)


def config_root(cwd_abs: str) -> str:
    """Return the folder of the configuration: the repository's root.

    Outside of one: the nearest folder upwards with one of our files, so a configuration can be
    checked where git is not.

    Raises: OwnershipError if git does not trust the repository.
    """
    try:
        return find_repo(cwd_abs, environ.read()).root_abs
    except OwnershipError:
        raise
    except GitError:
        folder = cwd_abs
        while not any(os.path.isfile(os.path.join(folder, name)) for name in FILES):
            if folder == os.path.dirname(folder):
                return cwd_abs
            folder = os.path.dirname(folder)
        return folder


def configuration(repo: Repo) -> Config:
    """Return the configuration of a repository.

    Raises: ConfigError if it has problems, or if there is none.
    """
    config = load(repo.root_abs, repo.config_cache_abs)
    if config is None:
        raise no_configuration(repo.root_abs, repo)
    ignore_local_settings(repo)
    return config


def ignore_local_settings(repo: Repo) -> None:
    """Make git ignore the local settings, and say so."""
    if message := exclude(repo, LOCAL_FILE):
        click.echo(f"gitgates: {message}", err=True)


def no_configuration(root_abs: str, repo: Repo | None = None) -> ConfigError:
    """Return the error for a folder without a configuration."""
    message = f"{root_abs}: no [tool.gitgates] in pyproject.toml, and no gitgates.toml"
    return ConfigError(message, first_step(repo))


def first_step(repo: Repo | None) -> str:
    """Return how to begin; `gitgates init` only if it has not come back with nothing here."""
    if repo and has_found_nothing(repo):
        return WRITE_A_GATE
    return "To create one: gitgates init"


def has_found_nothing(repo: Repo) -> bool:
    """Return whether `gitgates init` has found nothing to propose."""
    return os.path.exists(f"{repo.state_abs}/{_INIT_FOUND_NOTHING}")


def note_nothing_found(repo: Repo) -> None:
    """Note that `gitgates init` has found nothing to propose. Raises: OSError."""
    make_folder(repo.state_abs)
    replace_file(f"{repo.state_abs}/{_INIT_FOUND_NOTHING}", b"", sync=False)


def post_message(repo: Repo, draft: Message) -> str:
    """Append to the message log, with the commit and branch; return the message's id.

    Raises: UsageError if the draft makes no sense; GitError if git does not exist; StateError
    if the log cannot be written.
    """
    branch, commit = repo.git.ask_all(
        ("symbolic-ref", "--quiet", "HEAD"),
        ("rev-parse", "--verify", "--quiet", "HEAD^{commit}"),
    )
    try:
        # Not each file of an untracked folder: one name is as good as a thousand.
        status = repo.git.ask("status", "--porcelain", "-z", "--untracked-files=normal")
        dirty = bool(status.exit_status or status.stdout)
    except GitError:
        dirty = True  # it did not come to an end
    draft = draft._replace(
        commit=commit.stdout.decode("ascii", "replace").strip(),
        branch=os.fsdecode(branch.stdout).rstrip("\n").removeprefix("refs/heads/"),
        dirty=dirty,
    )
    return post(repo.shared_state_abs, draft).id


_NAME = "info/exclude"


def exclude(repo: Repo, name: str) -> str:
    """Add a file at the root to `info/exclude`; return a message about it.

    Nothing is done or said if it does not exist, or is tracked or ignored already.
    The file is that of all worktrees. Git reads no other one that is not shared with everybody.
    """
    if not os.path.lexists(f"{repo.root_abs}/{name}"):
        return ""
    try:
        if repo.git.ask("ls-files", "--error-unmatch", "--", name).exit_status == 0:
            return ""
        if repo.git.ignored([name]):
            return ""
        _append(f"{repo.common_dir_abs}/{_NAME}", f"/{name}\n".encode())
    except GitError:
        return ""  # git cannot say: whoever asked meets the same
    except OSError as error:
        why = error.strerror or str(error)
        return f"{name} is not ignored by git, and .git/{_NAME} cannot be written: {why}"
    return f"{name} is only for this clone: git now ignores it (.git/{_NAME})"


def _append(path_abs: str, line: bytes) -> None:
    os.makedirs(os.path.dirname(path_abs), exist_ok=True)
    with open(path_abs, "ab+", opener=open_regular) as file:
        file.seek(0)
        before = file.read()
        file.write(b"\n" + line if before and not before.endswith(b"\n") else line)
