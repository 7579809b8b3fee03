"""A private copy of the index being committed, for gates that look at it.

Under `commit -a` and `commit -- path` git commits from a temporary index that only GIT_INDEX_FILE
names. A gate that was given that name could destroy the commit; one that was given none would look
at the wrong index. So it is given a copy, and what it does to the copy is looked at afterwards.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.system.git import Git
    from gitgates.system.roots import Roots

NAME = "gitgates-index"


class PrivateIndex:
    """The copy, its original, and whether they still say the same."""

    def __init__(self, roots: Roots, named_abs: str, git: Git) -> None:
        self._named_abs = named_abs
        self._copy_abs = os.path.join(roots.git_dir_abs, NAME)
        self._git = git
        self._stat: tuple[int, int, int] | None = None
        # Relative where that is possible: in another repository it then means nothing real.
        plain = roots.git_dir_abs == os.path.join(roots.root_abs, ".git")
        self.value = f".git/{NAME}" if plain else self._copy_abs

    def copy(self) -> None:
        """Make the copy anew. Its times are the original's, or git would trust stale entries."""
        _copy(self._named_abs, self._copy_abs)
        self._stat = _stat(self._copy_abs)

    def is_changed(self) -> bool:
        """Tell whether the copy lists other entries than the original. A refresh is no change."""
        if _stat(self._copy_abs) == self._stat:
            return False
        return self._entries(self._copy_abs) != self._entries(self._named_abs)

    def carry_back(self) -> None:
        """Let git commit from the copy as it is now."""
        temporary = f"{self._named_abs}.gitgates"
        _copy(self._copy_abs, temporary)
        os.replace(temporary, self._named_abs)
        self._stat = _stat(self._copy_abs)

    def remove(self) -> None:
        """Remove the copy."""
        try:
            os.unlink(self._copy_abs)
        except OSError:
            return

    def _entries(self, index_abs: str) -> bytes:
        env = {**self._git.env, "GIT_INDEX_FILE": index_abs}
        return self._git._replace(env=env).out("ls-files", "--stage", "-z")


def named_index(roots: Roots, env: Mapping[str, str]) -> tuple[str, bool]:
    """Return the index that git commits from, and whether it is another than the worktree's."""
    own = os.path.join(roots.git_dir_abs, "index")
    named = env.get("GIT_INDEX_FILE", "")
    if not named:
        return own, False
    named_abs = os.path.join(roots.root_abs, named)
    return named_abs, os.path.realpath(named_abs) != os.path.realpath(own)


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
    with open(target_abs, "wb", buffering=0) as target:
        view = memoryview(content)
        while view:
            view = view[target.write(view) or 0 :]
    os.utime(target_abs, ns=(times.st_atime_ns, times.st_mtime_ns))
