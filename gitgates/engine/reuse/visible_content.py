"""The files that gates can see at one moment: all that git does not ignore, with their raw bytes.

What git would store does not count: it may convert files, or be told to overlook changes. A file is
hashed again only if its `lstat` has changed:

content.cache   path → what `lstat` said, and the digests
N.content       that of a private checkout
"""

from __future__ import annotations

import os
import stat
import time

from gitgates.core.errors import GitgatesError
from gitgates.core.record import lazy
from gitgates.engine.plan.match import select
from gitgates.git.repo import Git, nul_split, without_git
from gitgates.store.files import make_folder, open_regular, read_cached, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from gitgates.git.repo import Repo

    # Kept bits of the mode, size, inode, mtime and ctime in ns.
    Facts: TypeAlias = tuple[int, int, int, int, int]
    # With a digest of path, type, execute bit and bytes; and of the bytes alone.
    FileState: TypeAlias = tuple[Facts, bytes, bytes]

_LISTING = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
_VERSION = 3  # of the cache
_KEPT_BITS = 0o170100  # the type, and whether the owner may execute it
MOST_BYTES = 256 << 20  # hashed at once; in another run, it goes on from there
# A file that is written twice within a tick of the kernel's clock may look the same.
_TICK_NS = 20_000_000
_SECOND_NS = 1_000_000_000


def digest(*parts: bytes | str) -> str:
    """Return the SHA-256 of some texts, in this order, as hex digits."""
    texts = [
        part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part for part in parts
    ]
    return digest_of_bytes(b"".join(b"%d:%b" % (len(text), text) for text in texts)).hex()


def digest_of_bytes(content: bytes) -> bytes:
    """Return the SHA-256: no two contents have the same, whoever made them."""
    from hashlib import sha256  # most hooks look at no content

    return sha256(content).digest()


class UnknownContentError(GitgatesError):
    """Some of what gates can see cannot be identified."""


class VisibleContent:
    """The content that gates see at one moment; `earlier` saves hashing what has not changed."""

    def __init__(
        self,
        repo: Repo,
        checkout: Repo | None,
        earlier: VisibleContent | None = None,
        *,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._root_abs = (checkout or repo).root_abs
        self._git = (checkout or repo).git
        self._most_bytes = most_bytes
        self._cache_abs = f"{repo.state_abs}/content.cache"
        if checkout:
            from gitgates.store.slots import content_file  # few runs have one

            self._cache_abs = content_file(checkout.root_abs)
        self._began_ns = time.time_ns()
        # Of this look, or until there is one, of the earlier.
        self.settled: dict[str, FileState] = earlier.settled if earlier else {}
        self._selected: dict[object, tuple[str, ...]] = {}

    @lazy
    def names(self) -> str:
        """Return a digest of the paths of all files. Raises: GitgatesError or OSError."""
        return digest("\0".join(self.states))

    def identity_of(self, paths: Iterable[str]) -> str:
        """Return a digest of some files that no other content has; missing files do not count.

        Raises: GitgatesError or OSError.
        """
        states = self.states
        return digest(b"".join([states[path][1] for path in paths if path in states]))

    def select(
        self, files: tuple[str, ...] | None, exclude: tuple[str, ...] = ()
    ) -> tuple[str, ...]:
        """Return the paths that patterns select; None selects all.

        Raises: GitgatesError or OSError.
        """
        patterns = files, exclude
        if patterns not in self._selected:
            self._selected[patterns] = select(tuple(self.states), *patterns)
        return self._selected[patterns]

    @lazy
    def states(self) -> dict[str, FileState]:
        """Return path → state of each file, in order of the paths.

        Raises: GitgatesError if a file cannot be identified; OSError.
        """
        known, states = self._known(), {}
        left = self._most_bytes
        repos, empty = [("", self._git)], []
        try:
            for folder, git in repos:  # grows during the iteration
                for name in self._paths(git):
                    path = folder + name
                    path_abs = f"{self._root_abs}/{path}"
                    try:
                        now = os.lstat(path_abs)
                    except (FileNotFoundError, NotADirectoryError):
                        continue
                    mode = now.st_mode & _KEPT_BITS
                    facts = (mode, now.st_size, now.st_ino, now.st_mtime_ns, now.st_ctime_ns)
                    state = known.get(path)
                    if state is None or state[0] != facts:
                        if stat.S_ISDIR(mode):  # a submodule, or there was a file
                            if os.path.exists(f"{path_abs}/.git"):
                                inner = Git(cwd_abs=path_abs, env=without_git(git.env))
                                repos.append((f"{path}/", inner))
                            else:
                                empty.append((f"{path}/", path_abs))
                            continue
                        left -= now.st_size
                        if left < 0:
                            raise UnknownContentError(f"`{path}` is too large")
                        alone = digest_of_bytes(_read(path_abs, mode))
                        state = facts, bytes.fromhex(digest(path, b"%o" % mode, alone)), alone
                    states[path] = state
        finally:
            self._keep(states, known)
        for folder, folder_abs in empty:
            # Git does not look into a submodule that is not there, but a gate may.
            if os.listdir(folder_abs) and not any(path.startswith(folder) for path in states):
                raise UnknownContentError(f"`{folder}` has files, but not those of the submodule")
        return dict(sorted(states.items()))

    def _paths(self, git: Git) -> Iterable[str]:
        return _list(git)

    def _known(self) -> dict[str, FileState]:
        if self.settled:
            return self.settled
        version, known = read_cached(self._cache_abs) or (0, {})
        return known if version == _VERSION else {}

    def _keep(self, states: dict[str, FileState], known: dict[str, FileState]) -> None:
        """Note the states that another look may trust. What was hashed stays so after an error."""
        before_ns = self._began_ns - _TICK_NS
        self.settled = {
            path: state
            for path, state in states.items()
            if known.get(path) is state or not _is_racy(state[0], before_ns)
        }
        if self.settled != known:
            try:
                make_folder(os.path.dirname(self._cache_abs))
                replace_cached(self._cache_abs, (_VERSION, self.settled), sync=False)
            except OSError:
                return  # they are hashed again


def _list(git: Git) -> dict[str, None]:
    """Return the paths that git does not ignore.

    Raises: UnknownContentError if it cannot look into a folder.
    """
    listed = git.ask(*_LISTING)
    if listed.exit_status or b"could not open" in listed.stderr:
        raise UnknownContentError(f"git cannot list the files: {os.fsdecode(listed.stderr)}")
    paths = dict.fromkeys(nul_split(listed.stdout))
    for path in paths:
        if path.endswith("/"):
            raise UnknownContentError(f"`{path}` is a repository of its own")
    return paths


def _is_racy(facts: Facts, before_ns: int) -> bool:
    """Return whether a file may have been written since, and look the same."""
    ctime_ns = facts[-1]
    # Some file systems count seconds.
    return ctime_ns + (0 if ctime_ns % _SECOND_NS else _SECOND_NS) >= before_ns


def _read(path_abs: str, mode: int) -> bytes:
    """Return the bytes of a file, or where a link leads. Raises: OSError."""
    if stat.S_ISLNK(mode):
        return os.fsencode(os.readlink(path_abs))
    if not stat.S_ISREG(mode):
        return b""
    with open(path_abs, "rb", buffering=0, opener=open_regular) as file:
        return file.read()
