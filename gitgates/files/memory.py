"""The memory: where it is, and git in it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Git, Repo


class Memory:
    """The git directory of ours, for one worktree."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo

    @property
    def reading(self) -> Git:
        """Git for commands that read objects: `diff`, `log`, `blame` of `ref`, `cat-file`."""
        raise NotImplementedError

    @property
    def ref(self) -> str:
        """The ref of this worktree's last point; its files are in the folder `files/` there."""
        raise NotImplementedError
