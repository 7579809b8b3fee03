"""What git lists about a whole working tree: changed and untracked paths."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo


def list_others(repo: Repo) -> list[str]:
    """Return what is neither tracked nor ignored; a repository of its own: with a slash."""
    return repo.git.names("ls-files", "-z", "--others", "--exclude-standard")


def list_changed(repo: Repo) -> list[str]:
    """Return what differs from HEAD, staged or not."""
    args = ("status", "--porcelain=v2", "-z", "--untracked-files=no", "--no-renames")
    # The path follows 8 fields, and in a conflict 10. Source: git-status(1).
    lines = repo.git.names(*args, "--ignore-submodules=none")
    return [line.split(" ", 8 if line[0] == "1" else 10)[-1] for line in lines if line[0] in "1u"]
