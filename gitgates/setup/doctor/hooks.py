"""The repository to examine, and the checks that git runs the gates in every worktree."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress

import gitgates
from gitgates.config.load import inspect
from gitgates.core.errors import ConfigError, GitError
from gitgates.core.record import Record
from gitgates.core.types import Config
from gitgates.edit.user_file import content, display_path
from gitgates.git.repo import GIT_LOCAL, Repo, find_repo
from gitgates.setup.install import hookspath, selection
from gitgates.setup.install.githooks import HookFile, is_served, read_hook
from gitgates.setup.install.hookspath import HooksFolder, hooks_folder
from gitgates.setup.install.managers import VIA, called_hooks, find_calls
from gitgates.verbs.finding import Finding

_INSTALL = "gitgates install-hooks"
_NOT_EXECUTABLE = "is not executable, so git does not run it"
# Git's own variables about this worktree are wrong in another one; settings stay.
_ELSEWHERE_WRONG = tuple(name for name in GIT_LOCAL if not name.startswith("GIT_CONFIG"))


class Worktree(Record):
    """A worktree, its hooks folder, and the managers' files that run gates."""

    repo: Repo
    folder: HooksFolder
    calls: Mapping[tuple[str, str], str]  # (manager, hook) → the file that runs its gates
    here_abs: str  # the root of the current worktree

    def command(self, command: str) -> str:
        """Return the command that runs another one in this worktree."""
        if self.repo.root_abs == self.here_abs:
            return command
        return f"(cd {shlex.quote(self.repo.root_abs)} && {command})"

    def display_path(self, path_abs: str) -> str:
        """Return a path in its shortest form."""
        return display_path(path_abs, self.here_abs)


class Subject(Record):
    """The repository to examine."""

    repo: Repo
    config: Config | None  # as far as it can be read
    worktrees: tuple[Worktree, ...]  # the current one first
    missing: tuple[str, ...]  # worktrees that git lists, and that do not exist
    folder: str = "."  # the current folder, relative to the root

    @property
    def current(self) -> Worktree:
        """The current worktree."""
        return self.worktrees[0]


def survey(repo: Repo) -> Subject:
    """Return what to examine. Raises: GitError if git fails."""
    config = None
    with suppress(ConfigError):
        config = inspect(repo.root_abs)[0]
    worktrees, missing = list_worktrees(repo)
    return Subject(repo, config, tuple(worktrees), tuple(missing), repo.relative("."))


def list_worktrees(repo: Repo) -> tuple[list[Worktree], list[str]]:
    """Return all worktrees, the current one first, and the folders of missing ones.

    Raises: GitError if git fails.
    """
    worktrees, missing = [_worktree(repo, repo.root_abs)], []
    clean = {name: value for name, value in repo.env.items() if name not in _ELSEWHERE_WRONG}
    current_abs = [os.path.realpath(path_abs) for path_abs in (repo.root_abs, repo.common_dir_abs)]
    for entry in os.fsdecode(repo.git.out("worktree", "list", "--porcelain")).split("\n\n"):
        first, *rest = entry.split("\n")
        folder_abs = first.removeprefix("worktree ")
        real_abs = os.path.realpath(folder_abs)
        # Git lists a submodule with its git folder.
        if folder_abs == first or "bare" in rest or real_abs in current_abs:
            continue
        with suppress(GitError):
            other = find_repo(folder_abs, clean)
            if os.path.realpath(other.root_abs) == real_abs:
                worktrees.append(_worktree(other, repo.root_abs))
                continue
        missing.append(folder_abs)  # or no worktree any more
    return worktrees, missing


def _worktree(repo: Repo, here_abs: str) -> Worktree:
    folder = hooks_folder(repo)
    return Worktree(repo, folder, find_calls(repo.root_abs, folder), here_abs)


# Checks


def check_hooks_path(subject: Subject) -> Iterator[Finding]:
    """Find a core.hooksPath that names no folder, or one that other repositories share."""
    reported: set[str] = set()
    for worktree in subject.worktrees:
        folder, root_abs = worktree.folder, worktree.repo.root_abs
        unset = worktree.command(hookspath.unset_command(folder))
        if folder.scope and (why := hookspath.why_unused(folder)):
            is_husky = ".husky" in folder.value.split("/")
            fix = f"{worktree.command('npm install')}   # or: {unset}" if is_husky else unset
            yield Finding("problem", "hooksPath", root_abs, why, fix)
        elif folder.is_shared and folder.value not in reported:
            what = f"{hookspath.setting(folder)}: other repositories also use that folder for hooks"
            yield Finding("note", "hooksPath", root_abs, what, unset)
        reported.add(folder.value)


def check_hooks(subject: Subject) -> Iterator[Finding]:
    """Find configured hooks whose gates neither git nor another hook manager runs.

    Each hooks folder is checked once: worktrees mostly share one.
    """
    hooks: tuple[str, ...] = ()
    with suppress(ConfigError):  # nothing to install, or the configuration cannot be read
        hooks = selection.select(subject.config)[0]
    folders: dict[str, Worktree] = {}
    for worktree in subject.worktrees:
        folders.setdefault(worktree.folder.path_abs, worktree)
    for folder_abs, worktree in folders.items():
        for hook in hooks:
            yield _check_hook(read_hook(os.path.join(folder_abs, hook)), worktree)


def _check_hook(file: HookFile, worktree: Worktree) -> Finding:
    location = worktree.display_path(file.path_abs)
    name = file.manager.name if file.manager else ""
    via = name or next((manager for manager, _hook in worktree.calls), "")
    install = worktree.command(f"{_INSTALL} --via {via}" if via in VIA else _INSTALL)
    wrong = Finding("problem", "hook", location, "", install)
    if file.kind == "none":
        return wrong._replace(what=f"{file.hook} is not installed: git runs none of its gates")
    if file.kind == "shim":
        return check_shim(file, location, worktree)
    if not file.executable:
        return wrong._replace(what=_NOT_EXECUTABLE, mend=f"chmod +x {shlex.quote(file.path_abs)}")
    served = f"{name} runs the gates" if is_served(file, name, worktree.calls) else ""
    if served or file.hook in called_hooks(content(file.path_abs)):
        return wrong._replace(severity="ok", what=served or "calls gitgates", mend="")
    suffix = file.manager.previous_suffix if file.manager and file.manager.runs_previous else ""
    previous = read_hook(file.path_abs + suffix)
    if previous.kind == "shim":
        return check_shim(previous, f"{location}{suffix}", worktree)
    owner = f"belongs to {name}" if name else "is not a gitgates hook"
    return wrong._replace(what=f"{owner}: git runs none of the gates")


# The shim


def check_shim(file: HookFile, location: str, worktree: Worktree) -> Finding:
    """Return the finding about one gitgates shim."""
    wrong = Finding("problem", "shim", location, "", worktree.command(_INSTALL))
    note = wrong._replace(severity="note")
    if not file.executable:
        return wrong._replace(what=_NOT_EXECUTABLE, mend=f"chmod +x {shlex.quote(file.path_abs)}")
    if not os.access(file.python, os.X_OK):
        return wrong._replace(what=f"its interpreter is missing: {file.python or 'none is named'}")
    if not may_start(file, worktree.repo):
        what = f"names {file.python}, which is a file of the repository and not trusted"
        return note._replace(what=what)
    if not os.path.isfile(os.path.join(file.home, "gitgates", "__init__.py")):
        return wrong._replace(what=f"gitgates is missing from {file.home or 'its home'}")
    if not file.current:
        return note._replace(what="was written by a different version of gitgates")
    return Finding("ok", "shim", location, "installed")


def may_start(file: HookFile, repo: Repo) -> bool:
    """Return whether a shim may be started: not if it may have been cloned and edited."""
    folder_abs = os.path.realpath(os.path.dirname(file.path_abs)) + os.sep
    places = (
        os.path.realpath(path_abs) + os.sep for path_abs in (repo.root_abs, repo.common_dir_abs)
    )
    is_in_tree, is_in_git = map(folder_abs.startswith, places)
    home = os.path.dirname(os.path.dirname(os.path.abspath(gitgates.__file__)))
    is_this = (file.python, file.home) == (sys.executable, home)
    return is_in_git or not is_in_tree or (file.current and is_this)
