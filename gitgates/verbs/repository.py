"""The current folder's repository and its configuration, for verbs."""

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
_INIT_FOUND_NOTHING = "init.found-nothing"  # an empty file in the state folder
WRITE_A_GATE = (
    'Write a gate into gitgates.toml: [gates.test] with command = "make test", or the '
    'command that checks this project, and [hooks.pre-commit] with gates = ["test"]'
)
# With these options, a verb writes nothing, or first asks a person, which takes long.
_WITHOUT_LOCK = ("dry_run", "tries")


def current_repo() -> Repo:
    """Return the current folder's repository. Raises: GitError if there is none."""
    return find_repo(current_folder(), environ.read())


def edits_files(verb: Callable[_P, int]) -> Callable[_P, int]:
    """Decorate a verb that edits the user's files, so that only one such verb runs at a time.

    Raises: LockError if another one takes long; StateError if the lock cannot be created.
    """

    @wraps(verb)
    def alone(*args: _P.args, **kwargs: _P.kwargs) -> int:
        if any(kwargs.get(option) for option in _WITHOUT_LOCK):
            return verb(*args, **kwargs)
        try:
            state_abs = current_repo().shared_state_abs
        except GitError:
            return verb(*args, **kwargs)  # the verb reports it, if it needs a repository
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
    """Restore what a killed run had stashed here; each verb does so first.

    Raises: StateError if something was damaged, except for `doctor`, which reports it.
    """
    try:
        repo = current_repo()
    except GitError:
        return  # the verb reports it, if it needs a repository
    if verb != "doctor":  # which has a finding for it
        _warn_of_owner(repo)
    try:
        recover_and_report(repo, lambda text: click.echo(f"gitgates: {text}", err=True))
    except GitgatesError as error:
        if verb != "doctor":
            raise
        if not os.path.isdir(f"{repo.state_abs}/rescue"):  # else doctor has a finding for it
            click.echo(f"gitgates: {error}", err=True)


def _warn_of_owner(repo: Repo) -> None:
    """Warn if another user's state cannot be read, so that a verb may not find everything."""
    try:
        require_access(repo.state_abs)
    except StateError as error:
        click.echo(f"gitgates: {error}", err=True)


def config_root(cwd_abs: str) -> str:
    """Return the configuration's folder: the repository's root.

    Outside a repository: the nearest parent folder with one of our files, so that a configuration
    can be checked without git.

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
    """Return a repository's configuration. Raises: ConfigError if it is missing or invalid."""
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
    """Return how to begin; `gitgates init` is suggested unless it has found nothing here."""
    if repo and has_found_nothing(repo):
        return WRITE_A_GATE
    return "To create one: gitgates init"


def has_found_nothing(repo: Repo) -> bool:
    """Return whether `gitgates init` found nothing to propose."""
    return os.path.exists(f"{repo.state_abs}/{_INIT_FOUND_NOTHING}")


def note_nothing_found(repo: Repo) -> None:
    """Record that `gitgates init` found nothing to propose. Raises: OSError."""
    make_folder(repo.state_abs)
    replace_file(f"{repo.state_abs}/{_INIT_FOUND_NOTHING}", b"", sync=False)


def post_message(repo: Repo, draft: Message) -> str:
    """Append to the message log, with the commit and branch; return the message's id.

    Raises: UsageError if the draft is invalid; GitError if git does not exist; StateError
    if the log cannot be written.
    """
    branch, commit = repo.git.ask_all(
        ("symbolic-ref", "--quiet", "HEAD"),
        ("rev-parse", "--verify", "--quiet", "HEAD^{commit}"),
    )
    try:
        # `normal`: one name per untracked folder is enough.
        status = repo.git.ask("status", "--porcelain", "-z", "--untracked-files=normal")
        dirty = bool(status.exit_status or status.stdout)
    except GitError:
        dirty = True  # git did not finish
    draft = draft._replace(
        commit=commit.stdout.decode("ascii", "replace").strip(),
        branch=os.fsdecode(branch.stdout).rstrip("\n").removeprefix("refs/heads/"),
        dirty=dirty,
    )
    return post(repo.shared_state_abs, draft).id


_NAME = "info/exclude"


def exclude(repo: Repo, name: str) -> str:
    """Add a file at the root to `info/exclude`; return a message about it.

    It does nothing and returns "" if the file does not exist, or is already tracked or ignored.
    All worktrees share `info/exclude`; git reads no other file that is private to a clone.
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
        return ""  # the caller will meet the same error
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
