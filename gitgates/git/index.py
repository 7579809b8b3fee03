"""What is staged and unstaged, and what gates change: files, and the index being committed.

For `commit -a` and `commit -- path`, git commits from a temporary index that only GIT_INDEX_FILE
names. A gate that knew that name could destroy the commit; without it, the gate would read the
wrong index. So it gets a copy, and its changes to the copy are examined afterwards.
"""

from __future__ import annotations

import os
import stat
import time

from gitgates.core.errors import GitError
from gitgates.git.repo import nul_ended, nul_split
from gitgates.store.files import open_state, remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from gitgates.git.repo import Git, Repo

NAME = "gitgates-index"
# For an index of our own: overrides user settings that would make git trust what it should look at,
# or write more.
SETTINGS = (
    ("core.trustctime", "true"),
    ("core.checkStat", "default"),
    ("core.ignoreStat", "false"),
    ("core.splitIndex", "false"),
    ("core.untrackedCache", "false"),
    ("index.sparse", "false"),
    ("submodule.recurse", "false"),
)

_SUBMODULE = b"160000"
_NOTHING = b"000000"
_LONGEST_NAME = 0xFFF  # whose length an entry can store
_PLAIN_VERSIONS = (b"\0\0\0\2", b"\0\0\0\3")  # with names in full; the second has more flags
_LOCK_WAIT_S = 2.0
_POLL_S = 0.05
_KEPT_BITS = 0o170100  # the type, and whether the owner may execute it
_MOST_READ = 1 << 26  # bytes, when a run begins
_TICK_NS = 10_000_000  # how far a file's time may be behind the clock


class Unstaged:
    """What differs between the working tree and the index being committed.

    In addition, `staged` has the files and links that the index changes against HEAD.
    """

    def __init__(self) -> None:
        self.staged: list[str] = []
        self.modified: dict[str, str] = {}  # path → its blob in the index
        self.unseen: list[str] = []  # announced with `git add -N`, not part of the commit
        self.submodules: list[str] = []
        self.unreadable: list[str] = []  # submodules whose git folder is gone

    def __bool__(self) -> bool:
        return bool(self.modified or self.unseen)


def full_status(git: Git, *args: str) -> tuple[list[bytes], bool]:
    """Return the entries of `git status -z`, with each submodule that is at another commit.

    Without that, git omits those that it is configured to ignore. Also returns whether git could
    look at all of them: if a submodule's repository is missing, git fails unless it ignores all.
    """
    args = ("status", "-z", "--no-renames", *args)
    if not os.path.exists(f"{git.cwd_abs}/.gitmodules"):
        plain = git.with_settings((("diff.ignoreSubmodules", "none"),)).ask(*args)
        if not plain.exit_status:
            return plain.stdout.split(b"\0"), True
    plain = git.ask(*args)
    output = b"" if plain.exit_status else plain.stdout
    output += git.out_of_files(*args, "--ignore-submodules=dirty")
    return list(dict.fromkeys(output.split(b"\0"))), not plain.exit_status


def find_unstaged(git: Git) -> Unstaged:
    """Ask git, once, what is staged and what is unstaged.

    Source: git-status(1), "Porcelain Format Version 2".
    """
    unstaged = Unstaged()
    entries, is_whole = full_status(git, "--porcelain=v2", "--untracked-files=no")
    unstaged.unreadable = [] if is_whole else _without_folder(git)
    for line in entries:
        if line[:2] != b"1 ":
            continue  # unmerged files cannot be committed
        _one, status, sub, _in_head, mode, _worktree, _head_blob, blob, name = line.split(b" ", 8)
        path = os.fsdecode(name)
        if mode not in (_SUBMODULE, _NOTHING) and status[:1] != b".":
            unstaged.staged.append(path)
        if status[1:] == b".":
            continue
        if mode == _SUBMODULE:
            if sub[1:3] != b".." and path not in unstaged.submodules:  # not untracked files alone
                unstaged.submodules.append(path)
        elif mode == _NOTHING:
            unstaged.unseen.append(path)
        else:
            unstaged.modified[path] = blob.decode("ascii")
    return unstaged


def _without_folder(git: Git) -> list[str]:
    """Return the submodules whose git folder is missing, so git cannot read them."""
    entries = git.names("ls-files", "-z", "--stage")
    names = [entry.partition("\t")[2] for entry in entries if entry.startswith("160000 ")]
    lost: list[str] = []
    for name in names:
        folder = f"{git.cwd_abs}/{name}"
        asked = git._replace(cwd_abs=folder).ask("rev-parse", "--git-dir")
        if os.path.lexists(f"{folder}/.git") and asked.exit_status:
            lost.append(name)
    return lost


class WatchedFiles:
    """The files of an event, compared by `lstat`, and by content if that differs.

    Content is read when the first gate starts, up to `_MOST_READ`; beyond that, `lstat` decides.
    """

    def __init__(self, git: Git, paths: tuple[str, ...]) -> None:
        self._git = git
        self.paths = paths
        self.accept()

    def accept(self) -> None:
        """Record the current state of the files as the expected one."""
        self._stats = self._stat_all()
        self._contents: dict[str, tuple[int, int]] | None = None

    def read(self) -> None:
        """Read the content of the files in that state, unless it was already read."""
        if self._contents is not None:
            return
        self._contents, remaining = {}, _MOST_READ
        stats = self._stat_all() if self._stats else {}
        for path, facts in stats.items():
            if facts[0] <= remaining and facts == self._stats.get(path):
                remaining -= facts[0]
                self._contents[path] = self._content(path)

    def written_since(self, began_ns: int, hidden: Mapping[str, str]) -> tuple[str, ...]:
        """Return the files that were written after `began_ns` and differ from the index.

        `hidden` is path → `digest` of what we have written there since.
        """
        new = {p for p, times in self._stats.items() if times[-1] >= began_ns - _TICK_NS}
        if hidden:
            from gitgates.store.rescue import digest  # only if something is hidden

            at = self._git.cwd_abs
            new = {p for p in new if hidden.get(p) != digest(os.path.join(at, p))}
        return tuple(sorted(new & _unstaged_names(self._git))) if new else ()

    def changed(self) -> tuple[str, ...]:
        """Return the paths whose content or mode changed since the last call."""
        before, self._stats = self._stats, self._stat_all()
        touched = [path for path in self.paths if self._stats.get(path) != before.get(path)]
        now = {path: self._content(path) for path in touched}
        contents = self._contents or {}
        differing = [path for path in touched if now[path] != contents.get(path)]
        self._contents = contents | now
        return tuple(sorted(differing))

    def _stat_all(self) -> dict[str, tuple[int, int, int, int]]:
        """Return size, inode, mtime and ctime in ns of each existing file."""
        stats = {}
        for path in self.paths:
            try:
                now = os.lstat(f"{self._git.cwd_abs}/{path}")
            except OSError:
                continue
            stats[path] = now.st_size, now.st_ino, now.st_mtime_ns, now.st_ctime_ns
        return stats

    def _content(self, path: str) -> tuple[int, int]:
        return _content(os.path.join(self._git.cwd_abs, path))


class Contents:
    """Mode and content of `paths` and of every tracked file that differs from the index.

    Other files get an entry when they change.
    """

    def __init__(self, git: Git, paths: tuple[str, ...]) -> None:
        self.unstaged = _unstaged_names(git)
        self._found = {
            path: _content(os.path.join(git.cwd_abs, path)) for path in {*self.unstaged, *paths}
        }

    def changed_since(self, before: Contents) -> tuple[str, ...]:
        """Return the paths that differ between the two, sorted."""
        old, new = before._found, self._found
        return tuple(sorted(path for path in {*old, *new} if old.get(path) != new.get(path)))


def _unstaged_names(git: Git) -> frozenset[str]:
    args = ("diff", "--name-only", "-z", "--no-ext-diff", "--no-relative", "--no-renames")
    return frozenset(nul_split(git.out_of_files(*args)))


def restage(repo: Repo, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Stage the current content of files in the index being committed; return which.

    `commit -- path` prepares two indexes: the one that it commits, and index.lock, which becomes
    the worktree's index. If another git holds an index, we wait a moment.

    Raises: GitError if it still holds it then.
    """
    restaged = _restage_in(repo.git, paths)
    if "/next-index-" in repo.env.get("GIT_INDEX_FILE", ""):
        env = {**repo.env, "GIT_INDEX_FILE": f"{repo.git_dir_abs}/index.lock"}
        _restage_in(repo._replace(env=env).git, restaged)
    return restaged


def _restage_in(git: Git, paths: tuple[str, ...]) -> tuple[str, ...]:
    tracked = git.names("ls-files", "-z", "--", *paths) if paths else []
    existing = [path for path in tracked if os.path.isfile(os.path.join(git.cwd_abs, path))]
    if not existing:
        return ()
    names = nul_ended(existing)
    end = time.monotonic() + _LOCK_WAIT_S
    while (completed := git.ask("update-index", "-z", "--stdin", stdin=names)).exit_status:
        if b".lock" not in completed.stderr or time.monotonic() > end:
            message = os.fsdecode(completed.stderr).strip()
            raise GitError(f"a gate's changes cannot be staged: {message}")
        time.sleep(_POLL_S)
    return tuple(sorted(existing))


def update_index(git: Git, paths: Iterable[str], *options: str) -> None:
    """Run `git update-index` for these paths, if there are any."""
    if names := nul_ended(paths):
        git.out("update-index", *options, "-z", "--stdin", stdin=names)


def _content(path_abs: str) -> tuple[int, int]:
    """Return what git stores about a file: type, execute bit, a hash of its bytes."""
    try:
        mode = os.lstat(path_abs).st_mode & _KEPT_BITS
        if stat.S_ISLNK(mode):
            return mode, hash(os.readlink(path_abs))
        if not stat.S_ISREG(mode):
            return mode, 0  # reading a pipe would not end
        with open(path_abs, "rb", buffering=0) as file:
            return mode, hash(file.read())
    except OSError:
        return 0, 0


class CommittedIndex:
    """The index that git commits from: the copy for gates, and the detection of changes.

    Gates find the worktree's own index by themselves, and the copy is only compared with it. If git
    commits from another index, they get the copy.
    """

    def __init__(self, repo: Repo, *, copies: bool) -> None:
        self._repo = repo
        self._named_abs, is_other = named_index(repo)
        self._aside_abs = os.path.join(repo.git_dir_abs, f"{NAME}.{os.getpid()}")
        self._copies = copies or is_other
        self._known: tuple[int, int, int] | None = None
        # Relative if possible: in another repository it then means nothing real.
        plain = repo.git_dir_abs == os.path.join(repo.root_abs, ".git")
        copy_name = f".git/{NAME}.{os.getpid()}" if plain else self._aside_abs
        self.value = copy_name if self._copies else ""  # for gates, as GIT_INDEX_FILE
        self.take()

    def take(self) -> None:
        """Accept the current index as the expected one."""
        if os.path.exists(self._named_abs):  # something was ever staged
            copy_index(self._named_abs, self._aside_abs)
        else:
            remove_file(self._aside_abs)
        self._known = _stat(self._watched_abs)

    def changed_paths(self) -> tuple[str, ...]:
        """Return the paths whose entries a gate has changed. A refresh is not a change."""
        if _stat(self._watched_abs) == self._known:
            return ()
        changed = self._entries(self._aside_abs) ^ self._entries(self._named_abs)
        names = {os.fsdecode(entry.partition(b"\t")[2]) for entry in changed}
        if not names:
            self._known = _stat(self._watched_abs)
        return tuple(sorted(names))

    def copy_back(self) -> None:
        """Replace git's index with the copy that gates have changed."""
        if self._copies:
            copy_index(self._aside_abs, self._named_abs)
        self.take()

    def remove(self) -> None:
        """Remove the temporary copies."""
        remove_file(self._aside_abs)

    @property
    def _watched_abs(self) -> str:
        return self._aside_abs if self._copies else self._named_abs

    def _entries(self, index_abs: str) -> set[bytes]:
        if not os.path.exists(index_abs):
            return set()
        env = {**self._repo.env, "GIT_INDEX_FILE": index_abs}
        entries = self._repo._replace(env=env).git.out("ls-files", "--stage", "-z")
        return set(entries.split(b"\0")) - {b""}


def remove_stale_copies(git_dir_abs: str, pid: int) -> None:
    """Remove the copies that a killed run has left."""
    remove_file(os.path.join(git_dir_abs, f"{NAME}.{pid}"))


def named_index(repo: Repo) -> tuple[str, bool]:
    """Return the index that git commits from, and whether it is not the worktree's own."""
    default_abs = os.path.join(repo.git_dir_abs, "index")
    configured = repo.env.get("GIT_INDEX_FILE", "")
    if not configured:
        return default_abs, False
    named_abs = os.path.join(repo.root_abs, configured)
    return named_abs, os.path.realpath(named_abs) != os.path.realpath(default_abs)


def copy_index(source_abs: str, target_abs: str) -> None:
    """Copy an index with its times, which git needs to detect racy entries; replace the target.

    Raises: OSError if the source does not exist, or the target cannot be written.
    """
    with open(source_abs, "rb", buffering=0) as source:
        content = source.read()
        times = os.fstat(source.fileno())
    new_abs = f"{target_abs}.gitgates"
    with open(new_abs, "wb", opener=open_state) as new:
        new.write(content)
    os.utime(new_abs, ns=(times.st_atime_ns, times.st_mtime_ns))
    os.rename(new_abs, target_abs)


def committed_tree(repo: Repo) -> str:
    """Return the tree of the index being committed.

    By the time a hook runs, git has written it into the index, except for `commit -- path`, or if a
    fixer or `git add -N` has changed entries since: then git is asked.

    Raises: GitError, OSError.
    """
    index_abs, _is_other = named_index(repo)
    try:
        with open(index_abs, "rb", buffering=0) as file:
            tree = cached_tree(file.read())
    except FileNotFoundError:  # nothing was ever staged
        tree = ""
    return tree or write_tree(repo, index_abs)


def cached_tree(index: bytes) -> str:
    """Return the tree recorded in an index; empty if there is none.

    Source: gitformat-index(5), "Cache tree": the extension TREE begins with the root: NUL, the
    number of entries that it covers (-1: it is invalid), the number of subtrees, its id.
    """
    for id_length in (20, 32):  # SHA-1, SHA-256; the checksum at the end has that length as well
        end = len(index) - id_length
        at = start = index.rfind(b"TREE", 0, end)
        while 0 <= at < end:  # if this was an extension, others follow it to the end
            at += 8 + int.from_bytes(index[at + 4 : at + 8], "big")
        root, _, rest = index[start + 8 : start + 64].partition(b"\n")
        if at == end and root[:1] == b"\0" and root[1:].replace(b" ", b"", 1).isdigit():
            return rest[:id_length].hex()
    return ""


def has_exactly(index: bytes, files: Mapping[str, bytes | None]) -> bool:
    """Return whether an index has these files with this content; None: it must not have the file.

    It searches for the last bytes of an entry: id, flags, name. Also False if they do not tell:
    names are shortened (version 4), entries are in another file, or filters change the content.
    Source: gitformat-index(5).
    """
    if index[4:8] not in _PLAIN_VERSIONS or b"link\0" in index:
        return False
    for path, content in files.items():
        name = os.fsencode(path) + b"\0"
        flags = min(len(name) - 1, _LONGEST_NAME).to_bytes(2, "big")
        if content is None:
            if flags[1:] + name in index or b"\0" + name in index:
                return False
        elif not any(blob_id + flags + name in index for blob_id in _blob_ids(content)):
            return False
    return True


def _blob_ids(content: bytes) -> Iterator[bytes]:
    """Yield the ids that a file may have in an index, the usual one first."""
    if TYPE_CHECKING:
        from hashlib import sha1
    else:
        try:
            from _sha1 import sha1  # hashlib takes longer to import than this to use
        except ImportError:
            from hashlib import sha1
    stored = content.replace(b"\r\n", b"\n")  # they are the same to TOML
    blobs = [b"blob %d\0%b" % (len(one), one) for one in dict.fromkeys((content, stored))]
    for blob in blobs:
        yield sha1(blob, usedforsecurity=False).digest()
    from hashlib import sha256

    for blob in blobs:
        yield sha256(blob).digest()


def names_ending(index: bytes, end: str) -> set[str] | None:
    """Return the paths in folders that end in a file's name; None if entries do not tell."""
    names, last, at = set[str](), b"/" + os.fsencode(end) + b"\0", 0
    if index[4:8] != _PLAIN_VERSIONS[0]:
        return None
    while (at := index.find(last, at)) >= 0:
        flags, at = index.rfind(b"\0", 0, at), at + len(last)
        name = index[flags + 2 : at - 1]
        if flags < 0 or index[flags : flags + 2] != len(name).to_bytes(2, "big"):
            return None
        names.add(os.fsdecode(name))
    return names


def write_tree(repo: Repo, index_abs: str) -> str:
    """Write the tree of an index to our object directory and return it; the index is only read.

    Raises: GitError, also if the index has conflicts; OSError.
    """
    from gitgates.git.object_store import storing_git  # seldom needed before a commit

    # A copy, because git stores in the index what it finds out about trees.
    copy_abs = f"{repo.state_abs}/index-{os.getpid()}"
    try:
        git = storing_git(repo).with_settings(SETTINGS)
        if os.path.exists(index_abs):
            copy_index(index_abs, copy_abs)
        copied = git._replace(env={**git.env, "GIT_INDEX_FILE": copy_abs})
        return copied.out("write-tree").decode().strip()
    finally:
        remove_file(copy_abs)


def _stat(path_abs: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path_abs)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
