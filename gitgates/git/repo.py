"""Find the repository: its root, its git folder, and the folder that its worktrees share.

The usual cases are read from the files themselves (gitrepository-layout(5)); git is asked only
where they do not tell, because it costs more than all of the reading.
"""

from __future__ import annotations

import os

from gitgates.errors import GitError, OwnershipError
from gitgates.git.run import Git
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


# With it, git takes every repository for another user's.
_DIFFERENT_OWNER = "GIT_TEST_ASSUME_DIFFERENT_OWNER"


class Repo(Record):
    """One worktree of one repository: its roots, its environment, git in it, our state folders."""

    root_abs: str  # the top of the working tree
    git_dir_abs: str  # of this worktree
    common_dir_abs: str  # of all its worktrees
    env: Mapping[str, str]  # that git is to be run with here, as the host gave it to us
    found_by_folder: bool = True  # False: only GIT_DIR leads from the root to the repository

    @property
    def git(self) -> Git:
        """Git in the root."""
        return Git(cwd_abs=self.root_abs, env=self.env)

    @property
    def state_abs(self) -> str:
        """Our state folder of this worktree."""
        return f"{self.git_dir_abs}/gitgates"

    @property
    def states_abs(self) -> tuple[str, ...]:
        """Our state folders of all worktrees, that of this one first."""
        linked_abs = f"{self.common_dir_abs}/worktrees"
        names = sorted(os.listdir(linked_abs)) if os.path.isdir(linked_abs) else []
        folders = (self.git_dir_abs, self.common_dir_abs, *(f"{linked_abs}/{n}" for n in names))
        return tuple(f"{folder}/gitgates" for folder in dict.fromkeys(folders))

    @property
    def shared_state_abs(self) -> str:
        """Our state folder for all worktrees."""
        return f"{self.common_dir_abs}/gitgates"


def current_folder() -> str:
    """Return the current folder.

    Raises: GitError where it has been removed under us.
    """
    try:
        return os.getcwd()
    except OSError as error:
        raise GitError("the current folder is gone", "Go to one that exists.") from error


def find_repo(cwd_abs: str, env: Mapping[str, str]) -> Repo:
    """Return the repository that a git command in `cwd_abs` would mean.

    Raises: GitError where there is none, or it is bare and has no working tree; OwnershipError
    where git does not trust it.
    """
    if "GIT_DIR" not in env and "GIT_WORK_TREE" not in env:
        found = _read_upwards(cwd_abs, env)
        if found and (_is_own(found) or _is_safe(cwd_abs, env)):
            return found
    elif "GIT_WORK_TREE" not in env and (found := _read_linked(cwd_abs, env)):
        return found
    return _ask_git(cwd_abs, env)


def _read_upwards(cwd_abs: str, env: Mapping[str, str]) -> Repo | None:
    folder = cwd_abs
    while True:
        dot_git = os.path.join(folder, ".git")
        if os.path.isfile(os.path.join(dot_git, "HEAD")):
            return _repo(folder, dot_git, env)
        if os.path.isfile(dot_git) and (git_dir := _read_line(dot_git, "gitdir: ")):
            return _repo(folder, os.path.join(folder, git_dir), env)
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent


def _is_own(repo: Repo) -> bool:
    """Tell whether we own a repository as git wants it: the worktree, its `.git`, its git folder.

    Source: git's setup.c, ensure_valid_ownership. Under sudo, the person's own are root's as well.
    """
    if _DIFFERENT_OWNER in repo.env:
        return False
    user, sudo = os.geteuid(), repo.env.get("SUDO_UID", "")
    ours = {user, int(sudo)} if user == 0 and sudo.isdecimal() else {user}
    try:
        for path_abs in (repo.root_abs, f"{repo.root_abs}/.git", repo.git_dir_abs):
            if os.lstat(path_abs).st_uid not in ours:
                return False
    except OSError:
        return False
    return True


def _is_safe(cwd_abs: str, env: Mapping[str, str]) -> bool:
    """Ask git whether it trusts a repository of another user, as `safe.directory` may say.

    Raises: OwnershipError where it does not.
    """
    asked = Git(cwd_abs=cwd_abs, env=env).ask("rev-parse", "--git-dir")
    why, _, mend = os.fsdecode(asked.stderr).strip().partition("\n")
    if "safe.directory" in mend:
        what = f"{cwd_abs}: git does not trust this repository: {why.removeprefix('fatal: ')}"
        raise OwnershipError(what, "\n  ".join(line.strip() for line in mend.splitlines() if line))
    return not asked.exit_status


def _read_linked(cwd_abs: str, env: Mapping[str, str]) -> Repo | None:
    """Read what git tells the hooks of a linked worktree: its GIT_DIR, and the root as cwd.

    A hook may have gone into a folder since: only git takes that for the root then.
    """
    git_dir_abs = os.path.join(cwd_abs, env["GIT_DIR"])
    if not os.path.isfile(os.path.join(git_dir_abs, "commondir")):
        return None
    found = _read_upwards(cwd_abs, env)
    if found and os.path.realpath(found.git_dir_abs) == os.path.realpath(git_dir_abs):
        return found
    return None


def _repo(root_abs: str, git_dir: str, env: Mapping[str, str]) -> Repo | None:
    git_dir_abs = os.path.normpath(git_dir)
    common = _read_line(os.path.join(git_dir_abs, "commondir"), "")
    common_abs = os.path.normpath(os.path.join(git_dir_abs, common)) if common else git_dir_abs
    if _says_otherwise(os.path.join(common_abs, "config")):
        return None
    return Repo(root_abs, git_dir_abs, common_abs, env)


def _says_otherwise(config_abs: str) -> bool:
    """Tell whether a repository's config may move the working tree: then git is asked."""
    try:
        with open(config_abs, "rb", buffering=0) as file:
            config = file.read().lower()
    except OSError:
        return True
    # `bare = false` is in every config; anything else about it is for git to read.
    lines = [b"".join(line.split()) for line in config.splitlines()]
    return b"worktree=" in b"\n".join(lines) or any(
        line.startswith(b"bare") and line != b"bare=false" for line in lines
    )


def _read_line(path_abs: str, prefix: str) -> str:
    try:
        with open(path_abs, "rb", buffering=0) as file:
            line = os.fsdecode(file.read()).rstrip("\r\n")
    except OSError:
        return ""
    return line[len(prefix) :] if line.startswith(prefix) else ""


def _ask_git(cwd_abs: str, env: Mapping[str, str]) -> Repo:
    git = Git(cwd_abs=cwd_abs, env=env)
    bare = git.ask("rev-parse", "--is-bare-repository")
    if bare.exit_status:
        why = os.fsdecode(bare.stderr).strip().removeprefix("fatal: ")
        if why.startswith("not a git repository (or any"):
            raise GitError(
                f"{cwd_abs}: not a git repository; gates and hooks need one",
                "Go into one, or make one with: git init",
            )
        raise GitError(f"{cwd_abs}: git cannot read the repository here: {why}")
    top = git.ask("rev-parse", "--show-toplevel")
    if top.exit_status or not top.stdout.strip():
        raise GitError(
            f"{cwd_abs}: this repository has no working tree here: nothing can be checked",
            "Go to a working tree, or set GIT_DIR and GIT_WORK_TREE as for your git commands.",
        )
    git_dir = git.lines("rev-parse", "--absolute-git-dir")[0]
    common = git.lines("rev-parse", "--git-common-dir")[0]
    root_abs = os.fsdecode(top.stdout).rstrip("\n")
    by_folder = _read_upwards(root_abs, env)
    return Repo(
        root_abs=root_abs,
        git_dir_abs=git_dir,
        common_dir_abs=os.path.normpath(os.path.join(cwd_abs, common)),
        env=env,
        found_by_folder=by_folder is not None and by_folder.git_dir_abs == git_dir,
    )
