"""The memory's index for one worktree: `files.index`, in its state folder.

For each stored file it has what `lstat` returned then, so that git reads only what has changed. The
first one is made from the user's (`seed.py`).
"""

from __future__ import annotations

import os
import stat
import time

from gitgates.core.errors import GitError
from gitgates.core.record import Record
from gitgates.files.facts import facts_of
from gitgates.files.memory import time_over
from gitgates.git.repo import Git, nul_ended, nul_split
from gitgates.store.files import remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import TypeAlias

    from gitgates.files.facts import Stat
    from gitgates.files.memory import Memory
    from gitgates.proc.call import CompletedProcess

    Settings: TypeAlias = tuple[tuple[str, str], ...]  # of git

_DIFFERENCES = ("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=none")
_UNTRACKED = ("ls-files", "-z", "--others", "--exclude-standard")
_IGNORED = (*_UNTRACKED, "--ignored", "--directory")
_CHECK_IGNORE = ("--no-literal-pathspecs", "check-ignore", "-z", "--stdin", "--no-index")
SUBMODULE = b"160000"
_GONE = b"D"
_UNREADABLE = "cannot be read"
# Stored at once: what is lost when time is over.
_MOST_PATHS, _MOST_BYTES = 2000, 64 << 20
_LARGE = 1 << 20  # bytes, from which on to compress takes longer than to write
_FAST = (("core.looseCompression", "0"),)
# Git writes what is larger than that into a pack, which takes a third of the time of loose files.
_PACKED = (("core.bigFileThreshold", "1"), ("pack.compression", "1"))
_MANY = 50  # files: a pack has costs of its own, and each look may make one


class UnseenError(GitError):
    """Git cannot read the working tree, so its content is unknown."""


class Seen(Record):
    """What git reports about the working tree, compared with our index."""

    gone: list[str]
    changed: list[str]  # by `lstat`
    modules: list[str]  # submodules with another commit, or with changes in them
    untracked: list[str]  # not in the index; another repository has a slash at the end
    ignored: list[str]  # a folder that is ignored as a whole has a slash
    is_excluded: bool  # whether a rule ignores what is in our index, and only there
    unreadable: dict[str, str]  # folder → why


class Index:
    """Git on one index."""

    def __init__(
        self, memory: Memory, settings: Settings, until_s: float, path_abs: str = ""
    ) -> None:
        self._memory = memory
        self._until_s = until_s
        self.path_abs = path_abs or memory.index_abs
        self._root_abs = memory.repo.root_abs
        self.settings = settings

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of git on it."""
        return self._env(())

    def _env(self, settings: Settings) -> Mapping[str, str]:
        git = Git(cwd_abs=self._root_abs, env=self._memory.env)
        git = git.with_settings((*self.settings, *settings))
        return {**git.env, "GIT_INDEX_FILE": self.path_abs}

    def ask(self, *args: str, stdin: bytes = b"") -> CompletedProcess:
        """Run git on it. Raises: TimeOver, OSError."""
        return self._memory.ask(*args, stdin=stdin, until_s=self._until_s, env=self.env)

    def out(self, *args: str, stdin: bytes = b"") -> bytes:
        """Run git on it; return its output. Raises: UnseenError, TimeOver, OSError."""
        return self.output_of(args, self.ask(*args, stdin=stdin))

    def output_of(self, args: tuple[str, ...], completed: CompletedProcess) -> bytes:
        """Return the output. Raises: UnseenError if git failed."""
        if completed.exit_status:
            message = os.fsdecode(completed.stderr).strip() or f"status {completed.exit_status}"
            raise UnseenError(f"git {args[0]} failed in {self._root_abs}: {message}")
        return completed.stdout

    def unlock(self) -> None:
        """Remove the lock of a git that was killed; we hold our own."""
        remove_file(f"{self.path_abs}.lock")

    def begin_empty(self) -> None:
        """Make one without entries. Raises: as `out`."""
        remove_file(self.path_abs)
        self.out("read-tree", "--empty")

    def look(self, own_paths: Iterable[str], *, with_ignored: bool) -> Seen:
        """Compare it with the working tree. Raises: as `out`.

        `own_paths`: the entries that the user's index does not have.
        """
        calls = {_DIFFERENCES: b"", _UNTRACKED: b""}
        if with_ignored:
            calls[_IGNORED] = b""
        if names := self._reachable(own_paths):
            calls[_CHECK_IGNORE] = names
        answers = self._memory.ask_all(*calls.items(), until_s=self._until_s, env=self.env)
        differences, others, *_more = answers
        difference = _split(self.output_of(_DIFFERENCES, differences))
        items = [
            nul_split(self.output_of(_UNTRACKED, each)) for each in answers[1 : 2 + with_ignored]
        ]
        problems = dict[str, str]()
        for line in os.fsdecode(others.stderr).split("\n"):
            if "could not open" in line:
                problems[line.partition("'")[2].partition("'")[0].rstrip("/")] = _UNREADABLE
        for line in os.fsdecode(differences.stderr).split("\n"):
            path, _, why = line.rpartition(": ")
            if path and not os.path.lexists(f"{self._root_abs}/{path}"):
                difference.gone.append(path)  # below a link to itself, or out of reach
                if why.startswith("Permission"):
                    problems[path] = _UNREADABLE
        return difference._replace(
            untracked=items[0],
            ignored=items[1] if with_ignored else [],
            is_excluded=bool(names and answers[-1].stdout),
            unreadable=problems,
        )

    def ignored(self, paths: Iterable[str]) -> list[str]:
        """Return which paths rules ignore, tracked or not. Raises: TimeOver, OSError."""
        names = self._reachable(paths)
        answer = self.ask(*_CHECK_IGNORE, stdin=names).stdout if names else b""
        return [name.removeprefix("./") for name in nul_split(answer)]

    def _reachable(self, paths: Iterable[str]) -> bytes:
        """Return paths as input of `check-ignore`, which refuses to look beyond a link."""
        links, root_abs = {"": False}, self._root_abs
        # With `./`, as a leading `:` would be a sign.
        return nul_ended(
            f"./{path}"
            for path in paths
            if not _is_linked(root_abs, path.rpartition("/")[0], links)
        )

    def differences(self, paths: Iterable[str] = ()) -> Seen:
        """Compare it with files that it has, all or some. Raises: as `out`."""
        return _split(self.out(*_DIFFERENCES, "--", *paths))

    def remove(self, paths: Iterable[str]) -> None:
        """Remove entries. Raises: as `out`."""
        if names := nul_ended(paths):
            self.out("update-index", "--force-remove", "-z", "--stdin", stdin=names)

    def put(self, entries: Mapping[str, str]) -> None:
        """Set entries: path → mode and id, or nothing to remove it. Raises: as `out`."""
        gone = f"0 {self._memory.nothing}"
        lines = "".join(f"{entry or gone}\t{path}\0" for path, entry in entries.items())
        if lines:
            self.out("update-index", "-z", "--index-info", stdin=os.fsencode(lines))

    def add(self, sizes: Mapping[str, int]) -> None:
        """Store files, path → size, and set their entries. Raises: as `out`.

        If time runs out, what was done stays.
        """
        for paths, is_large in _chunks(sizes):
            if time.monotonic() > self._until_s:
                raise time_over(self._root_abs)
            args = ("update-index", "--add", "--remove", "--replace", "-z", "--stdin")
            packed = _PACKED if len(paths) > _MANY else ()
            completed = self._memory.ask(
                *args,
                stdin=nul_ended(paths),
                until_s=self._until_s,
                env=self._env(_FAST if is_large else packed),
            )
            self.output_of(args, completed)

    def tree(self) -> str:
        """Store it as a tree; return its id. Raises: as `out`."""
        return self.out("write-tree").decode().strip()

    def replaced(self, entries: Mapping[str, str]) -> str:
        """Return the tree with other entries, as `put` takes them; the index stays as it is.

        Raises: as `out`.
        """
        from gitgates.git.index import copy_index  # seldom needed

        other_abs = f"{self.path_abs}.{os.getpid()}"
        other = Index(self._memory, self.settings, self._until_s, other_abs)
        try:
            copy_index(self.path_abs, other_abs)
            other.put(entries)
            return other.tree()
        finally:
            remove_file(other_abs)

    def modules(self) -> list[str]:
        """Return the paths of submodules. Raises: as `out`."""
        entries = self.out("ls-files", "-z", "--stage").split(b"\0")
        return [os.fsdecode(e.partition(b"\t")[2]) for e in entries if e.startswith(SUBMODULE)]

    def paths(self) -> list[str]:
        """Return the paths of all entries. Raises: as `out`."""
        return nul_split(self.out("ls-files", "-z"))


class SortedOut(Record):
    """Paths that must be stored, or not."""

    stats: dict[str, Stat]  # path → what `lstat` says of it
    left_out: dict[str, str]  # path → why
    gone: list[str]


def sort_out(root_abs: str, paths: Iterable[str], max_file: int) -> SortedOut:
    """Examine files; leave out what cannot be stored, or is too large."""
    sorting = SortedOut(stats={}, left_out={}, gone=[])
    is_linked: dict[str, bool] = {"": False}  # folder → whether a link leads there
    for path in paths:
        path_abs = f"{root_abs}/{path}"
        try:
            now = os.lstat(path_abs)
        except PermissionError:
            sorting.left_out[path] = _UNREADABLE
            continue
        except OSError:
            sorting.gone.append(path)
            continue
        # A folder is no file; what is in it is listed, and other repositories are known as such.
        is_folder = stat.S_ISDIR(now.st_mode)
        if is_folder or _is_linked(root_abs, path.rpartition("/")[0], is_linked):
            sorting.gone.append(path)
        elif why := why_not(path_abs, now, max_file):
            sorting.left_out[path] = why
        else:
            sorting.stats[path] = facts_of(now)
    return sorting


def _is_linked(root_abs: str, folder: str, link_folders: dict[str, bool]) -> bool:
    if folder not in link_folders:
        above = folder.rpartition("/")[0]
        link_folders[folder] = os.path.islink(f"{root_abs}/{folder}") or _is_linked(
            root_abs, above, link_folders
        )
    return link_folders[folder]


def why_not(path_abs: str, now: os.stat_result, max_file: int) -> str:
    """Return why something is not stored; empty: it can be."""
    if stat.S_ISLNK(now.st_mode):
        return ""
    if not stat.S_ISREG(now.st_mode):
        return "neither a file nor a link"
    if now.st_size > max_file:
        return f"larger than {max_file >> 20} MiB" if max_file >> 20 else "too large"
    return "" if os.access(path_abs, os.R_OK) else _UNREADABLE


def _chunks(sizes: Mapping[str, int]) -> Iterable[tuple[list[str], bool]]:
    """Yield paths that are stored at once, and whether they are large."""
    for is_large in (False, True):
        chunk, total = list[str](), 0
        for path, size in sizes.items():
            if (size >= _LARGE) is not is_large:
                continue
            chunk.append(path)
            total += size
            if len(chunk) == _MOST_PATHS or total > _MOST_BYTES:
                yield chunk, is_large
                chunk, total = [], 0
        if chunk:
            yield chunk, is_large


def _split(differences: bytes) -> Seen:
    difference = Seen([], [], [], untracked=[], ignored=[], is_excluded=False, unreadable={})
    fields = differences.split(b"\0")
    for meta, name in zip(fields[::2], fields[1::2], strict=False):
        path = os.fsdecode(name)
        if meta.endswith(_GONE):
            difference.gone.append(path)
        elif meta.startswith(b":" + SUBMODULE):
            difference.modules.append(path)
        else:
            difference.changed.append(path)
    return difference
