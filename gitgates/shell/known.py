"""What is known without running a program: what some print, and what git's aliases expand to."""

from __future__ import annotations

import os

from gitgates.shell.syntax import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

TEMPORARY = "/tmp/mktemp"  # noqa: S108 - stands for whatever `mktemp` makes


def alias_of(repo: Repo, verb: str) -> str:
    """Return what a git alias expands to; empty if there is no such alias."""
    return os.fsdecode(repo.git.ask("config", "--get", f"alias.{verb}").stdout).strip()


def known_output(repo: Repo, cwd_abs: str, words: tuple[str, ...]) -> str:
    """Return what a program prints if run in a folder; `UNKNOWN` for most."""
    match words:
        case ("which" | "type", *_, "gitgates") | ("command", *_, "gitgates"):
            return "/usr/bin/gitgates"
        case ("pwd", *_):
            return os.path.normpath(cwd_abs)
        case ("mktemp", *_):
            return TEMPORARY
        case ("git", "rev-parse", "--git-path", path):
            return f"{repo.common_dir_abs}/{path}"
        case ("git", "rev-parse", *_, "--show-toplevel"):
            return repo.root_abs
        case ("git", "rev-parse", *_, "--git-common-dir"):
            return repo.common_dir_abs
        case ("git", "rev-parse", *_, "--git-dir" | "--absolute-git-dir"):
            return repo.git_dir_abs
    return UNKNOWN
