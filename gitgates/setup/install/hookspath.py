"""Find git's hooks folder, the setting that names it, and whether it is writable.

Source: git-config(1), core.hooksPath; git 2.39.
"""

from __future__ import annotations

import os
import shlex

from gitgates.core.errors import GitError
from gitgates.core.record import Record
from gitgates.setup.install import windows_drive

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

# Settings of these scopes are the repository's own; all others hold for other ones, too.
_OWN_SCOPES = ("local", "worktree")
_FIELDS = 3


class HooksFolder(Record):
    """The folder of git's hooks, and the setting that names it."""

    path_abs: str
    value: str = ""  # core.hooksPath as it is written
    scope: str = ""  # local, worktree, global, system, command; empty: core.hooksPath is not set
    origin: str = ""  # the file that sets it, as git names it

    @property
    def is_shared(self) -> bool:
        """Return whether other repositories take their hooks from it, too."""
        return bool(self.scope) and self.scope not in _OWN_SCOPES


def default_folder(repo: Repo) -> HooksFolder:
    """Return the hooks folder without core.hooksPath."""
    return HooksFolder(path_abs=os.path.join(repo.common_dir_abs, "hooks"))


def hooks_folder(repo: Repo) -> HooksFolder:
    """Return the hooks folder.

    Raises: GitError where git cannot read its configuration.
    """
    completed = repo.git.configured(
        "config", "--show-scope", "--show-origin", "-z", "--get-all", "core.hooksPath"
    )
    if completed.exit_status == 1 and not completed.stdout:
        return default_folder(repo)
    if completed.exit_status:
        problem = os.fsdecode(completed.stderr).strip()
        raise GitError(f"core.hooksPath cannot be read: {problem}", "See: git config --list")
    # The last one counts: git lists them from the farthest scope to the nearest.
    scope, origin, value = os.fsdecode(completed.stdout).split("\0")[-_FIELDS - 1 : -1]
    path = os.fsdecode(repo.git.configured("rev-parse", "--git-path", "hooks").stdout).rstrip("\n")
    return HooksFolder(os.path.normpath(os.path.join(repo.root_abs, path)), value, scope, origin)


def require_usable(folder: HooksFolder, *, force: bool) -> None:
    """Refuse a folder that git ignores or that is not this repository's to write to.

    `force` allows a folder that other repositories share.

    Raises: GitError that says what is set where, and the commands that fix it.
    """
    path = folder.path_abs
    if not folder.scope:
        if os.path.lexists(path) and not os.path.isdir(path):
            raise GitError(
                f"{path}: is not a folder, so git finds no hooks",
                f"Look at it with: ls -ld {shlex.quote(path)}",
            )
        return
    if not folder.value or (os.path.lexists(path) and not os.path.isdir(path)):
        raise GitError(
            f"{setting(folder)}: that is not a folder, so git runs no hooks",
            f"Unset it: {unset_command(folder)}",
        )
    if folder.is_shared and not force:
        raise GitError(
            f"{setting(folder)}: git uses that hooks folder instead of .git/hooks, in every "
            "repository that this setting applies to",
            f"Unset it: {unset_command(folder)}\n"
            "  Or use .git/hooks for this repository: git config core.hooksPath "
            '"$(git rev-parse --path-format=absolute --git-common-dir)/hooks"\n'
            "  Or install into that folder anyway: gitgates install-hooks --force",
        )
    if not os.path.isdir(path):
        raise GitError(
            f"{setting(folder)}: that folder does not exist, so git runs no hooks",
            f"Unset it: {unset_command(folder)}\n  Or create it: mkdir -p {shlex.quote(path)}",
        )


def remarks(folder: HooksFolder, repo: Repo) -> list[str]:
    """Return notes on where the repository is, and on a folder that is not git's usual one."""
    notes = windows_drive.remarks(repo.root_abs)
    if not folder.scope:
        return notes
    notes += [f"{setting(folder)}: hooks are installed there"]
    if folder.scope == "worktree":
        notes.append(
            "that setting applies only to this worktree: other worktrees have their own hooks"
        )
    if folder.is_shared:
        notes.append("every repository that this setting applies to runs them")
    inside = os.path.realpath(folder.path_abs).startswith(os.path.realpath(repo.root_abs) + "/")
    in_git = f"{os.sep}.git{os.sep}" in folder.path_abs + os.sep
    if inside and not in_git:
        notes.append("that folder is in the working tree; the hooks contain paths of this machine")
    return notes


def setting(folder: HooksFolder) -> str:
    """Name the setting: its value, its scope and where it is set."""
    file = folder.origin.removeprefix("file:").rstrip(":")
    return f"core.hooksPath is `{folder.value}` ({folder.scope} setting, {file})"


def unset_command(folder: HooksFolder) -> str:
    """Return the command that unsets the setting."""
    if not folder.origin.startswith("file:"):
        return "remove `git -c core.hooksPath=...` and GIT_CONFIG_* variables that set it"
    match folder.scope, os.path.basename(folder.origin.removeprefix("file:")):
        case ("local", "config"):
            return "git config --unset-all core.hooksPath"
        case ("worktree", "config.worktree"):
            return "git config --worktree --unset-all core.hooksPath"
        case _:  # a file that another one includes is reached only by its name
            file = shlex.quote(folder.origin.removeprefix("file:"))
            return f"git config --file {file} --unset-all core.hooksPath"
