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

    Raises: GitError if git cannot read its configuration.
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
    path, unset = folder.path_abs, f"Unset it: {unset_command(folder)}"
    is_other = os.path.lexists(path) and not os.path.isdir(path)
    if is_other and not folder.scope:
        look = f"Look at it with: ls -ld {shlex.quote(path)}"
        raise GitError(f"{path}: is not a folder, so git finds no hooks", look)
    if folder.scope and (is_other or not folder.value):
        raise GitError(f"{setting(folder)}: that is not a folder, so git runs no hooks", unset)
    if folder.is_shared and not force:
        raise GitError(
            f"{setting(folder)}: git uses that hooks folder instead of .git/hooks, in every "
            "repository that this setting applies to",
            f"{unset}\n"
            "  Or use .git/hooks for this repository: git config core.hooksPath "
            '"$(git rev-parse --path-format=absolute --git-common-dir)/hooks"\n'
            "  Or install into that folder anyway: gitgates install-hooks --force",
        )
    if folder.scope and not os.path.isdir(path):
        what = f"{setting(folder)}: that folder does not exist, so git runs no hooks"
        raise GitError(what, f"{unset}\n  Or create it: mkdir -p {shlex.quote(path)}")


def remarks(folder: HooksFolder, repo: Repo) -> list[str]:
    """Return notes on where the repository is, and on a folder that is not git's usual one."""
    notes = windows_drive.remarks(repo.root_abs)
    inside = os.path.realpath(folder.path_abs).startswith(os.path.realpath(repo.root_abs) + "/")
    conditions = {
        f"{setting(folder)}: hooks are installed there": True,
        "that setting applies only to this worktree: other worktrees have their own hooks": (
            folder.scope == "worktree"
        ),
        "every repository that this setting applies to runs them": folder.is_shared,
        "that folder is in the working tree; the hooks contain paths of this machine": (
            inside and "/.git/" not in f"{folder.path_abs}/"
        ),
    }
    return notes + [note for note, is_so in conditions.items() if is_so and folder.scope]


def setting(folder: HooksFolder) -> str:
    """Name the setting: its value, its scope and where it is set."""
    file = folder.origin.removeprefix("file:").rstrip(":")
    return f"core.hooksPath is `{folder.value}` ({folder.scope} setting, {file})"


def unset_command(folder: HooksFolder) -> str:
    """Return the command that unsets the setting."""
    _, is_file, file = folder.origin.partition("file:")
    if not is_file:
        return "remove `git -c core.hooksPath=...` and GIT_CONFIG_* variables that set it"
    places = {("local", "config"): "", ("worktree", "config.worktree"): "--worktree "}
    # A file that another one includes is reached only by its name.
    usual = f"--file {shlex.quote(file)} "
    place = places.get((folder.scope, os.path.basename(file)), usual)
    return f"git config {place}--unset-all core.hooksPath"
