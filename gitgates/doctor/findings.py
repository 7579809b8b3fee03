"""What a check of the doctor gets, the repository with all its worktrees, and what it finds."""

from __future__ import annotations

import os
import shlex

from gitgates.config.load import inspect
from gitgates.engine.command import GIT_LOCAL
from gitgates.errors import ConfigError, GitError
from gitgates.git.repo import Repo, find_repo
from gitgates.install.framework import Framework, read_framework
from gitgates.install.hookspath import HooksFolder, hooks_folder
from gitgates.install.managers import entries
from gitgates.install.own_file import shown
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, TypeAlias

    from gitgates.types import Config

    # problem: gates do not run, or not as configured. note: worth knowing, and maybe meant so.
    Severity: TypeAlias = Literal["ok", "problem", "note"]

# What git's own variables say of this worktree is wrong in another one; settings stay.
_ELSEWHERE_WRONG = tuple(name for name in GIT_LOCAL if not name.startswith("GIT_CONFIG"))


class Finding(Record):
    """One thing that was looked at."""

    severity: Severity
    check: str  # which check it was: a stable word for scripts
    where: str  # the file, the hook, the worktree
    what: str
    mend: str = ""  # the command, or the edit, that mends it


class Worktree(Record):
    """One worktree, the folder that git takes hooks from there, and what else runs our gates."""

    repo: Repo
    folder: HooksFolder
    framework: Framework
    joined: Mapping[str, tuple[str, str]]  # hook: the manager that runs our gates, and its file
    here_abs: str  # the root that commands are called from

    @property
    def is_linked(self) -> bool:
        """Return whether it is not the one that the others were made from."""
        return os.path.realpath(self.repo.git_dir_abs) != os.path.realpath(self.repo.common_dir_abs)

    def command(self, command: str) -> str:
        """Return a command that does its work in this worktree, called from the current root."""
        if self.repo.root_abs == self.here_abs:
            return command
        return f"(cd {shlex.quote(self.repo.root_abs)} && {command})"

    def shown(self, path_abs: str) -> str:
        """Return a path as short as it can be."""
        return shown(path_abs, self.here_abs)


class Subject(Record):
    """What is examined."""

    repo: Repo
    config: Config | None  # as far as it can be read
    worktrees: tuple[Worktree, ...]  # the current one first
    gone: tuple[str, ...]  # worktrees that git lists, and that are not there

    @property
    def here(self) -> Worktree:
        """The current worktree."""
        return self.worktrees[0]


def survey(repo: Repo) -> Subject:
    """Return what there is to examine.

    Raises: GitError where git cannot be asked.
    """
    try:
        config = inspect(repo.root_abs)[0]
    except ConfigError:
        config = None
    found, gone = list_worktrees(repo)
    return Subject(repo, config, tuple(found), tuple(gone))


def list_worktrees(repo: Repo) -> tuple[list[Worktree], list[str]]:
    """Return every worktree, the current one first, and the folders of those that are gone.

    Raises: GitError where git cannot be asked.
    """
    found, gone = [_worktree(repo, repo.root_abs)], []
    clean = {name: value for name, value in repo.env.items() if name not in _ELSEWHERE_WRONG}
    known = [os.path.realpath(path_abs) for path_abs in (repo.root_abs, repo.common_dir_abs)]
    for folder_abs in _listed(repo):
        if os.path.realpath(folder_abs) in known:  # git lists a submodule by its git folder
            continue
        other = _repo(folder_abs, clean)
        if other is None:
            gone.append(folder_abs)
        else:
            found.append(_worktree(other, repo.root_abs))
    return found, gone


def _worktree(repo: Repo, here_abs: str) -> Worktree:
    folder = hooks_folder(repo)
    listed = reversed(entries(repo.root_abs, folder))
    joined = {hook: (manager, name) for manager, name, hook in listed}
    return Worktree(repo, folder, read_framework(repo.root_abs), joined, here_abs)


def _repo(folder_abs: str, env: Mapping[str, str]) -> Repo | None:
    """Return the worktree in a folder; None if it is gone, or the folder has another use."""
    try:
        found = find_repo(folder_abs, env)
    except GitError:
        return None
    return found if os.path.realpath(found.root_abs) == os.path.realpath(folder_abs) else None


def _listed(repo: Repo) -> list[str]:
    """Return the folders of `git worktree list`, but not that of a bare repository."""
    asked = repo.git.ask("worktree", "list", "--porcelain", "-z")
    end = "\0"
    if asked.exit_status:  # git before 2.36 knows no -z
        asked, end = repo.git.ask("worktree", "list", "--porcelain"), "\n"
    listed = [entry.split(end) for entry in os.fsdecode(asked.stdout).split(end * 2)]
    return [
        first.removeprefix("worktree ")
        for first, *rest in listed
        if first.startswith("worktree ") and "bare" not in rest
    ]
