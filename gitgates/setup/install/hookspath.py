"""Find git's hooks folder and the setting that names it, and check that git runs hooks there.

Source: git-config(1), core.hooksPath; git 2.39.
"""

from __future__ import annotations

import os
import shlex

from gitgates.core.errors import GitError
from gitgates.core.record import Record
from gitgates.core.windows import page
from gitgates.store.files import read_or_empty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

# Settings in other scopes apply to other repositories, too.
_OWN_SCOPES = ("local", "worktree")
_MOUNTS = "/proc/self/mountinfo"


class HooksFolder(Record):
    """Git's hooks folder, and the setting that names it."""

    path_abs: str
    value: str = ""  # core.hooksPath as it is written
    scope: str = ""  # local, worktree, global, system, command; empty: core.hooksPath is not set
    origin: str = ""  # the file that sets it, as git prints it

    @property
    def is_shared(self) -> bool:
        """Return whether other repositories use it for their hooks, too."""
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
    # The last one counts: git lists the nearest scope last.
    scope, origin, value = os.fsdecode(completed.stdout).split("\0")[-4:-1]
    path = os.fsdecode(repo.git.configured("rev-parse", "--git-path", "hooks").stdout).rstrip("\n")
    return HooksFolder(os.path.normpath(os.path.join(repo.root_abs, path)), value, scope, origin)


def why_unused(folder: HooksFolder) -> str:
    """Return why git runs no hooks there; empty if it runs them."""
    path_abs, is_set = folder.path_abs, bool(folder.scope)
    if is_set and folder.value and not os.path.lexists(path_abs):
        return f"{setting(folder)}: that folder does not exist, so git runs no hooks"
    if (is_set and not folder.value) or (os.path.lexists(path_abs) and not os.path.isdir(path_abs)):
        what = f"{setting(folder)}: that" if is_set else f"{path_abs}:"
        return f"{what} is not a folder, so git runs no hooks"
    return ""


def require_usable(folder: HooksFolder, *, force: bool) -> None:
    """Refuse a folder in which git runs no hooks, or that other repositories share.

    `force` allows a shared one.

    Raises: GitError that names the setting, and the commands that fix it.
    """
    unset = f"Unset it: {unset_command(folder)}"
    if folder.is_shared and not force:
        raise GitError(
            f"{setting(folder)}: git uses that hooks folder instead of .git/hooks, in every "
            "repository that this setting applies to",
            f"{unset}\n"
            "  Or use .git/hooks for this repository: git config core.hooksPath "
            '"$(git rev-parse --path-format=absolute --git-common-dir)/hooks"\n'
            "  Or install into that folder anyway: gitgates install-hooks --force",
        )
    if why := why_unused(folder):
        look = f"Look at it with: ls -ld {shlex.quote(folder.path_abs)}"
        raise GitError(why, unset if folder.scope else look)


def remarks(folder: HooksFolder, repo: Repo) -> list[str]:
    """Return notes on the repository's drive, and on a folder that is not git's usual one."""
    notes = drive_remarks(repo.root_abs)
    if folder.scope:
        notes.append(f"{setting(folder)}: hooks are installed there")
    return notes


def drive_remarks(root_abs: str, mounts_abs: str = _MOUNTS) -> list[str]:
    """Return a note if the repository is on a Windows drive that WSL mounts, such as /mnt/c.

    Source: proc(5), /proc/PID/mountinfo. WSL 1 mounts drives as `drvfs`, WSL 2 as `9p` with the
    option `aname=drvfs`, or as `virtiofs` from a source whose name begins with `drvfs`.
    """
    drive, is_windows, real_abs = "", False, os.path.realpath(root_abs)
    for line in read_or_empty(mounts_abs).splitlines():
        fields, _, kind = line.partition(b" - ")
        mount_abs = os.fsdecode(fields.split(b" ")[4]).replace("\\040", " ")
        # If several are mounted on one folder, the last one is visible.
        if f"{real_abs}/".startswith(f"{mount_abs.rstrip('/')}/") and len(mount_abs) >= len(drive):
            drive, is_windows = mount_abs, b"drvfs" in kind
    note = (
        f"this repository is on a Windows drive ({drive}): hooks run only for git in WSL, and "
        "commits by git for Windows, also from an editor there, are refused\n"
        f"  Keep it in a WSL folder, such as ~/src. Why: {page()}"
    )
    return [note] if is_windows else []


def setting(folder: HooksFolder) -> str:
    """Name the setting: its value, its scope and where it is set."""
    file = folder.origin.removeprefix("file:").rstrip(":")
    return f"core.hooksPath is `{folder.value}` ({folder.scope} setting, {file})"


def unset_command(folder: HooksFolder) -> str:
    """Return the command that unsets the setting."""
    _, is_file, file = folder.origin.partition("file:")
    if not is_file:
        return "remove `git -c core.hooksPath=...`, or the GIT_CONFIG_* variables that set it"
    # Only its name reaches a file that another one includes.
    is_usual = (folder.scope, os.path.basename(file)) == ("local", "config")
    return (
        f"git config {'' if is_usual else f'--file {shlex.quote(file)} '}--unset-all core.hooksPath"
    )
