"""Which files hold nothing but a session's own work: it may destroy that without being told."""

from __future__ import annotations

from gitgates.core.record import lazy
from gitgates.features.undo.points import points_of
from gitgates.features.undo.private_git import PrivateGit
from gitgates.features.undo.states import load
from gitgates.features.undo.undoing import changes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo


class OwnFiles:
    """The files of a session, found when one is asked for."""

    def __init__(self, repo: Repo, session: str) -> None:
        self._repo, self._session = repo, session

    def has(self, path: str) -> bool:
        """Return whether all uncommitted work in a file, by its path from the root, is its own.

        Raises: StateError, GitError, OSError.
        """
        return path in self._paths

    @lazy
    def _paths(self) -> set[str]:
        own, others = set[str](), set[str]()
        repo = self._repo
        for point in points_of(repo):
            is_own = point.author.session == self._session
            if not (is_own or own):
                continue
            before = load(repo, point.before)
            changed = changes(repo, before, load(repo, point.after))
            if is_own:
                first = changed.keys() - own - others
                dirty = self._dirty(before.tree, before.head, first)
                others |= dirty
                own |= first - dirty
            else:
                others |= changed.keys()
        return own - others

    def _dirty(self, tree: str, head: str, paths: set[str]) -> set[str]:
        """Return the paths that were not as in the commit before the session changed them."""
        if not paths:
            return set()
        git = PrivateGit(self._repo).reading
        if not head:
            return paths & {*git.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)}
        ask = ("diff-tree", "-r", "-z", "--name-only", "--no-renames")
        return paths & {*git.names(*ask, head, tree, "--")}
