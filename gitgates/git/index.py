"""The index being committed, and a private copy of it for gates that look at it.

Under `commit -a` and `commit -- path` git commits from a temporary index that only GIT_INDEX_FILE
names. A gate that was given that name could destroy the commit; one that was given none would look
at the wrong index. So it is given a copy, and what it does to the copy is looked at afterwards.
"""

from __future__ import annotations

import os

from gitgates.store.files import open_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

NAME = "gitgates-index"


class CommittedIndex:
    """The index that git commits from: what gates see of it, and whether one of them changed it.

    Where it is the worktree's own, gates find it by themselves, and what it was is kept as another
    name of the file (git writes an index anew under its name). Elsewhere they get a copy.
    """

    def __init__(self, repo: Repo, *, copies: bool) -> None:
        self._repo = repo
        self._named_abs, is_other = named_index(repo)
        self._aside_abs = os.path.join(repo.git_dir_abs, f"{NAME}.{os.getpid()}")
        self._copies = copies or is_other
        self._known: tuple[int, int, int] | None = None
        # Relative where that is possible: in another repository it then means nothing real.
        plain = repo.git_dir_abs == os.path.join(repo.root_abs, ".git")
        copy_name = f".git/{NAME}.{os.getpid()}" if plain else self._aside_abs
        self.value = copy_name if self._copies else ""  # for gates, as GIT_INDEX_FILE
        self.take()

    def take(self) -> None:
        """Take the index as it is now for what it is to be."""
        _unlink(self._aside_abs)
        if not os.path.exists(self._named_abs):
            self._known = _stat(self._watched_abs)
            return  # before anything was ever staged
        if self._copies:
            _copy(self._named_abs, self._aside_abs)
        else:
            _link_or_copy(self._named_abs, self._aside_abs)
        self._known = _stat(self._watched_abs)

    def changed_paths(self) -> tuple[str, ...]:
        """Return the paths whose entries a gate has changed. A refresh is no change."""
        if _stat(self._watched_abs) == self._known:
            return ()
        before, after = self._entries(self._aside_abs), self._entries(self._named_abs)
        if self._copies:
            before, after = after, before
        names = {os.fsdecode(entry.partition(b"\t")[2]) for entry in before ^ after}
        if not names:
            self._known = _stat(self._watched_abs)
        return tuple(sorted(names))

    def carry_back(self) -> None:
        """Let git commit from what gates have made of it."""
        if self._copies:
            temporary = f"{self._named_abs}.gitgates"
            _copy(self._aside_abs, temporary)
            os.replace(temporary, self._named_abs)
        self.take()

    def remove(self) -> None:
        """Remove what was put aside."""
        _unlink(self._aside_abs)

    @property
    def _watched_abs(self) -> str:
        return self._aside_abs if self._copies else self._named_abs

    def _entries(self, index_abs: str) -> set[bytes]:
        if not os.path.exists(index_abs):
            return set()
        env = {**self._repo.env, "GIT_INDEX_FILE": index_abs}
        listed = self._repo._replace(env=env).git.out("ls-files", "--stage", "-z")
        return set(listed.split(b"\0")) - {b""}


def forget_aside(git_dir_abs: str, pid: int) -> None:
    """Remove what a run that was killed had put aside."""
    _unlink(os.path.join(git_dir_abs, f"{NAME}.{pid}"))


def named_index(repo: Repo) -> tuple[str, bool]:
    """Return the index that git commits from, and whether it is another than the worktree's."""
    own = os.path.join(repo.git_dir_abs, "index")
    named = repo.env.get("GIT_INDEX_FILE", "")
    if not named:
        return own, False
    named_abs = os.path.join(repo.root_abs, named)
    return named_abs, os.path.realpath(named_abs) != os.path.realpath(own)


def _unlink(path_abs: str) -> None:
    try:
        os.unlink(path_abs)
    except OSError:
        return


def _link_or_copy(source_abs: str, target_abs: str) -> None:
    try:
        os.link(source_abs, target_abs)
    except OSError:
        _copy(source_abs, target_abs)


def _stat(path_abs: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path_abs)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _copy(source_abs: str, target_abs: str) -> None:
    with open(source_abs, "rb", buffering=0) as source:
        content = source.read()
        times = os.fstat(source.fileno())
    with open(target_abs, "wb", buffering=0, opener=open_state) as target:
        view = memoryview(content)
        while view:
            view = view[target.write(view) or 0 :]
    os.utime(target_abs, ns=(times.st_atime_ns, times.st_mtime_ns))
