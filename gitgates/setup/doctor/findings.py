"""The input of the checks: a repository with its worktrees."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextlib import suppress

from gitgates.config.load import inspect
from gitgates.core.errors import ConfigError, GitError
from gitgates.core.record import Record
from gitgates.core.types import Config
from gitgates.edit.user_file import display_path
from gitgates.git.repo import GIT_LOCAL, Repo, find_repo
from gitgates.setup.install.hookspath import HooksFolder, hooks_folder
from gitgates.setup.install.managers import find_calls

# Git's own variables about this worktree are wrong in another one; settings stay.
_ELSEWHERE_WRONG = tuple(name for name in GIT_LOCAL if not name.startswith("GIT_CONFIG"))


class Worktree(Record):
    """One worktree, its hooks folder, and the files of managers that run the gates."""

    repo: Repo
    folder: HooksFolder
    calls: Mapping[tuple[str, str], str]  # manager and hook → the file that runs its gates
    here_abs: str  # the root that commands are called from

    def command(self, command: str) -> str:
        """Return a command that does its work in this worktree, called from the current root."""
        if self.repo.root_abs == self.here_abs:
            return command
        return f"(cd {shlex.quote(self.repo.root_abs)} && {command})"

    def display_path(self, path_abs: str) -> str:
        """Return a path as short as it can be."""
        return display_path(path_abs, self.here_abs)


class Subject(Record):
    """The repository to examine."""

    repo: Repo
    config: Config | None  # as far as it can be read
    worktrees: tuple[Worktree, ...]  # the current one first
    missing: tuple[str, ...]  # worktrees that git lists, and that do not exist
    folder: str = "."  # that the command is called in, relative to the root

    @property
    def current(self) -> Worktree:
        """The current worktree."""
        return self.worktrees[0]


def survey(repo: Repo) -> Subject:
    """Return what there is to examine.

    Raises: GitError if git cannot be asked.
    """
    config = None
    with suppress(ConfigError):
        config = inspect(repo.root_abs)[0]
    worktrees, missing = list_worktrees(repo)
    return Subject(repo, config, tuple(worktrees), tuple(missing), repo.relative("."))


def list_worktrees(repo: Repo) -> tuple[list[Worktree], list[str]]:
    """Return every worktree, the current one first, and the folders of missing ones.

    Raises: GitError if git cannot be asked.
    """
    worktrees, missing = [_worktree(repo, repo.root_abs)], []
    clean = {name: value for name, value in repo.env.items() if name not in _ELSEWHERE_WRONG}
    current_abs = [os.path.realpath(path_abs) for path_abs in (repo.root_abs, repo.common_dir_abs)]
    for entry in os.fsdecode(repo.git.out("worktree", "list", "--porcelain")).split("\n\n"):
        first, *rest = entry.split("\n")
        folder_abs = first.removeprefix("worktree ")
        real_abs = os.path.realpath(folder_abs)
        # Git lists a submodule by its git folder.
        if folder_abs == first or "bare" in rest or real_abs in current_abs:
            continue
        with suppress(GitError):
            other = find_repo(folder_abs, clean)
            if os.path.realpath(other.root_abs) == real_abs:
                worktrees.append(_worktree(other, repo.root_abs))
                continue
        missing.append(folder_abs)  # or it has another use
    return worktrees, missing


def _worktree(repo: Repo, here_abs: str) -> Worktree:
    folder = hooks_folder(repo)
    return Worktree(repo, folder, find_calls(repo.root_abs, folder), here_abs)
