"""A branch that only moves forward: its tip, and a step to a commit built on it.

The step compares and swaps the ref. If a worktree has the branch checked out, `git merge --ff-only`
moves it there, which refuses to overwrite local changes.
"""

from __future__ import annotations

import os
import re

from gitgates.core.errors import GitError, GitgatesError, UsageError
from gitgates.git.merging import is_ancestor
from gitgates.git.repo import find_repo, without_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

# What is in progress in a worktree → the file that names the branch that will move at its end.
_UNDER_WAY = {"rebase": ("rebase-merge/head-name", "rebase-apply/head-name")}
_LIMIT_S = 300.0  # for a call to a remote
_MOVED_ON = (b"fetch first", b"non-fast-forward", b"stale info", b"cannot lock ref")
_NO_REF = b"couldn't find remote ref"
_IN_THE_WAY = re.compile(r"'(.+)' (?:not uptodate|would be)")


class MovedError(GitgatesError):
    """The branch has moved in the meantime."""


class HeldError(GitgatesError):
    """Local changes in a worktree are in the way; the branch has not moved."""


class ForwardBranch:
    """A branch of a repository, and of a remote if its new commits are pushed."""

    def __init__(self, repo: Repo, name: str, remote: str = "") -> None:
        self._repo, self.name, self._remote = repo, name, remote
        self.ref = f"refs/heads/{name}"

    def tip(self) -> str:
        """Return the branch's commit. Raises: UsageError if there is no such branch."""
        if commit := self._repo.git.resolve(f"{self.ref}^{{commit}}"):
            return commit
        raise UsageError(f"there is no branch `{self.name}`", "See: git branch --list")

    def base(self) -> str:
        """Return the commit to build on: the branch's, or the remote branch's if that is newer.

        Raises: GitError if they have diverged, or nothing can be fetched.
        """
        tip, git, remote = self.tip(), self._repo.git, self._remote
        if not remote:
            return tip
        tracking = f"refs/remotes/{remote}/{self.name}"
        ask = ("fetch", "--quiet", "--no-tags", remote, f"+{self.ref}:{tracking}")
        completed = git.ask_unattended(*ask, limit_s=_LIMIT_S)
        if completed.exit_status and _NO_REF not in completed.stderr:
            raise GitError(f"git fetch {remote}: {os.fsdecode(completed.stderr).strip()}")
        fetched = "" if completed.exit_status else git.resolve(tracking)
        if not fetched or is_ancestor(self._repo, fetched, tip):
            return tip
        if is_ancestor(self._repo, tip, fetched):
            return fetched
        what = f"`{self.name}` and `{remote}/{self.name}` have diverged"
        raise GitError(what, f"Merge or rebase `{self.name}` first.")

    def move(self, old: str, new: str) -> None:
        """Move the branch, the remote's first, from one commit to one that is built on it.

        Raises: MovedError, HeldError; GitError if the remote refuses it.
        """
        folder_abs = self._checked_out()
        if self._remote:
            if folder_abs:
                self._try_in(folder_abs, new)
            self._push(new)
        tip = self.tip()
        if self._remote and is_ancestor(self._repo, tip, new):
            old = tip  # the branch was behind the remote's
        if folder_abs:
            self._move_in(folder_abs, old, new)
            return
        completed = self._repo.git.ask("update-ref", "-m", "moved forward", self.ref, new, old)
        if completed.exit_status:
            raise MovedError(os.fsdecode(completed.stderr).strip())

    def _checked_out(self) -> str:
        """Return the folder that has the branch checked out. Raises: HeldError during a rebase."""
        folder_abs = ""
        for line in self._repo.git.lines("worktree", "list", "--porcelain"):
            if line.startswith("worktree "):
                folder_abs = line.removeprefix("worktree ")
            if line == f"branch {self.ref}" and os.path.isdir(folder_abs):
                return folder_abs
            if line == "detached" and os.path.isdir(folder_abs):
                git_dir_abs = self._in(folder_abs).git_dir_abs
                for what, names in _UNDER_WAY.items():
                    if self.ref in [_text(f"{git_dir_abs}/{name}") for name in names]:
                        raise HeldError(f"{folder_abs}: a {what} of `{self.name}` is under way")
        return ""

    def _in(self, folder_abs: str) -> Repo:
        return find_repo(folder_abs, without_git(self._repo.env))

    def _move_in(self, folder_abs: str, old: str, new: str) -> None:
        git = self._in(folder_abs).git
        if (head := git.resolve("HEAD")) != old:
            raise MovedError(f"`{self.name}` is at {head}")
        flags = ("--ff-only", "--quiet", "--no-stat", "--no-verify-signatures")
        quiet = git.with_settings((("merge.autoStash", "false"),))
        completed = quiet.ask("merge", *flags, "--no-overwrite-ignore", new)
        if completed.exit_status:
            if git.resolve("HEAD") != old:
                raise MovedError(f"`{self.name}` has moved")
            raise _held(folder_abs, completed.stderr)

    def _try_in(self, folder_abs: str, new: str) -> None:
        """Raise HeldError if local changes would be in the way, before anything is pushed."""
        git = self._in(folder_abs).git
        git.ask("update-index", "-q", "--refresh")
        completed = git.ask("read-tree", "-n", "-m", "-u", "HEAD", new)
        if completed.exit_status:
            raise _held(folder_abs, completed.stderr)

    def _push(self, new: str) -> None:
        ask = ("push", "--porcelain", "--no-verify", self._remote, f"{new}:{self.ref}")
        completed = self._repo.git.ask_unattended(*ask, limit_s=_LIMIT_S)
        output = completed.stdout + completed.stderr
        if completed.exit_status and any(words in output for words in _MOVED_ON):
            raise MovedError(f"`{self._remote}/{self.name}` has moved")
        if completed.exit_status:
            raise GitError(f"git push {self._remote}: {os.fsdecode(output).strip()}")


def _text(path_abs: str) -> str:
    try:
        with open(path_abs, encoding="utf-8", errors="surrogateescape") as file:
            return file.read().strip()
    except OSError:
        return ""


def _held(folder_abs: str, stderr: bytes) -> HeldError:
    output = os.fsdecode(stderr).splitlines()
    files = [line.strip() for line in output if line.startswith("\t")]
    files += [match[1] for line in output if (match := _IN_THE_WAY.search(line))]
    why = f"local changes of {', '.join(files)}" if files else " ".join(output[:2])
    return HeldError(f"{folder_abs}: {why}")
