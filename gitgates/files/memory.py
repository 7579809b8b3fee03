"""The memory: a git directory of ours, which keeps files of all worktrees as raw bytes.

    config, info/attributes   switch every conversion off
    objects/                  what the user's repository, its alternate, does not have already;
                              and links to that which the user's may lose (`git_state.py`)
    refs/points/WORKTREE      the last point of each worktree
    refs/trees/TREE           what sessions and runs have seen, for a month
    id                        identifies it, as another one may be at the same place later
    of                        the common git folder of the repository that it belongs to

It is in `$XDG_STATE_HOME/gitgates/files/`, out of reach of `rm -rf .git` or a script that empties
the whole working tree, if that is on the repository's file system: so objects are linked, not
copied, and a container that has only the working tree mounted does not leave it behind. Otherwise,
or if that cannot be written, or several users share the repository, it is `gitgates/files.git` in
the common git folder. `gitgates/files.at` there names it, so it is found again after the repository
was moved. A copy of the repository starts its own. After `.git` was removed and created again at
the same path, it is found by that path.

Its index of a worktree, `gitgates/files.index`, is in the worktree's git folder (`index.py`).
"""

from __future__ import annotations

import _imp
import os
import time

from gitgates.core.errors import GitgatesError, LockError, StateError
from gitgates.core.record import lazy
from gitgates.git.index import SETTINGS
from gitgates.git.object_store import quoted
from gitgates.git.repo import Git
from gitgates.proc.call import call_all
from gitgates.store.files import (
    READ_ONLY,
    is_shared,
    lock_file,
    make_folder,
    read_state,
    remove_file,
    remove_tree,
    replace_file,
    shared_mode,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo
    from gitgates.proc.call import CompletedProcess

NO_DEADLINE = float("inf")
TREES = "refs/trees"
_LONGEST_S = 3600.0
_WAIT_S = 60.0
_BASE = "/gitgates/files"  # in the home of state
_MOST_NAMES = 50
_ALTERNATES = "GIT_ALTERNATE_OBJECT_DIRECTORIES"
# Above any .gitattributes.
_RAW = b"* -text -eol -filter -ident -working-tree-encoding\n"
# Of git's variables, those that say where it and its settings are.
_KEPT = ("GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
_CONFIG = """\
[core]
	repositoryformatversion = {version}
	bare = false
	hooksPath = /dev/null
	autocrlf = false
	safecrlf = false
	fsmonitor = false
	untrackedCache = false
	splitIndex = false
	sparseCheckout = false
	trustctime = true
	checkStat = default
	ignoreStat = false
	protectHFS = false
	protectNTFS = false
	logAllRefUpdates = false
	looseCompression = 1
[index]
	sparse = false
[gc]
	auto = 0
[submodule]
	recurse = false
"""


class TimeOver(GitgatesError):
    """A look did not finish in time. What it has stored stays, and the next one continues there."""


def time_over(root_abs: str) -> TimeOver:
    """Return the error for a look that did not finish."""
    return TimeOver(
        f"reading the files in {root_abs} did not finish in time",
        "The next one continues from there.",
    )


class Memory:
    """The memory, for one worktree."""

    def __init__(self, repo: Repo) -> None:
        self.repo = repo
        self.index_abs = f"{repo.state_abs}/files.index"
        self.notes: list[str] = []  # what a person should know of it

    @lazy
    def folder_abs(self) -> str:
        """Return the git directory; it need not exist."""
        return _find(self.repo)

    @property
    def worktree(self) -> str:
        """The name of this worktree in refs."""
        if self.repo.git_dir_abs == self.repo.common_dir_abs:
            return "main"
        name = os.path.basename(self.repo.git_dir_abs)
        is_plain = name.replace("-", "").replace("_", "").isalnum() and name.isascii()
        return f"of-{name}" if is_plain else f"hex-{os.fsencode(name).hex()}"

    @lazy
    def nothing(self) -> str:
        """Return the id that stands for no object."""
        return "0" * (40 if self.repo.object_format == "sha1" else 64)

    @property
    def ref(self) -> str:
        """The ref of this worktree's last point; its files are in the folder `files/` there."""
        return f"refs/points/{self.worktree}"

    @property
    def held_ref(self) -> str:
        """The ref of the user's commits that points of this worktree name."""
        return f"refs/held/{self.worktree}"

    @property
    def users_objects_abs(self) -> str:
        """The repository's own object folder."""
        configured = self.repo.env.get("GIT_OBJECT_DIRECTORY", "")
        if configured:
            return os.path.join(self.repo.root_abs, configured)
        return f"{self.repo.common_dir_abs}/objects"

    @lazy
    def env(self) -> Mapping[str, str]:
        """Return the environment of git in the memory."""
        variables_kept = {
            name: value
            for name, value in self.repo.env.items()
            if not name.startswith("GIT_") or name in _KEPT
        }
        others = self.repo.env.get(_ALTERNATES, "")
        return variables_kept | {
            "GIT_DIR": self.folder_abs,
            "GIT_WORK_TREE": self.repo.root_abs,
            "GIT_INDEX_FILE": self.index_abs,
            _ALTERNATES: os.pathsep.join(filter(None, (quoted(self.users_objects_abs), others))),
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "LC_ALL": "C",
        }

    @property
    def reading(self) -> Git:
        """Git for commands that read objects: `diff-tree`, `log`, `blame` of `ref`, `cat-file`."""
        # Without an index, which a command might take for what is there.
        env = {**self.env, "GIT_INDEX_FILE": f"{self.folder_abs}/index"}
        return Git(cwd_abs=self.repo.root_abs, env=env)

    def users_git(self, index_abs: str = "") -> Git:
        """Return git in the user's repository, on its index, or on a copy of that.

        What it stores goes to the memory.
        """
        env = {name: text for name, text in self.repo.env.items() if name != "GIT_INDEX_FILE"}
        env |= {
            "GIT_DIR": self.repo.git_dir_abs,
            "GIT_WORK_TREE": self.repo.root_abs,
            "GIT_OBJECT_DIRECTORY": f"{self.folder_abs}/objects",
            _ALTERNATES: self.env[_ALTERNATES],
        }
        git = Git(cwd_abs=self.repo.root_abs, env=env)
        if not index_abs:
            return git
        return git._replace(env={**env, "GIT_INDEX_FILE": index_abs}).with_settings(SETTINGS)

    def exists(self) -> bool:
        """Return whether anything was ever stored."""
        return os.path.isfile(f"{self.folder_abs}/HEAD")

    # Making it

    def prepare(self) -> None:
        """Make the directory if there is none; start again if it is damaged.

        Raises: OSError.
        """
        folder_abs = self.folder_abs
        missing = [
            name
            for name in ("objects", "refs", "HEAD", "config", "info/attributes")
            if not os.path.exists(f"{folder_abs}/{name}")
        ]
        if missing and os.path.isdir(folder_abs):
            self.set_aside(f"{missing[0]} is missing")
        if missing:
            self._make()
        if _pointer(self.repo.common_dir_abs) != folder_abs:
            state_abs = self.repo.shared_state_abs
            make_folder(state_abs)
            replace_file(f"{state_abs}/files.at", os.fsencode(folder_abs), sync=False)

    def set_aside(self, why: str) -> None:
        """Move a damaged memory out of the way. Raises: OSError."""
        aside_abs = f"{self.folder_abs}.damaged-{time.time_ns()}"
        os.rename(self.folder_abs, aside_abs)
        self.notes.append(
            f"the memory of files was damaged ({why}): a new one was begun; what is "
            f"left of the old one is in {aside_abs}"
        )

    def _make(self) -> None:
        new_abs = f"{self.folder_abs}.{os.getpid()}-{time.time_ns()}"
        algorithm = self.repo.object_format
        config = _CONFIG.format(version=int(algorithm != "sha1"))
        if is_shared():  # for what git writes there itself
            config += f"[core]\n\tsharedRepository = 0{shared_mode():o}\n"
        if algorithm != "sha1":
            config += f"[extensions]\n\tobjectformat = {algorithm}\n"
        for name in ("objects", "refs", "info"):
            make_folder(f"{new_abs}/{name}")
        for name, content in (
            ("HEAD", b"ref: refs/heads/none\n"),
            ("info/attributes", _RAW),
            ("config", config.encode()),
            ("of", os.fsencode(self.repo.common_dir_abs)),
            ("number", b"0"),
            ("id", os.urandom(16).hex().encode()),
        ):
            replace_file(f"{new_abs}/{name}", content, sync=False)
        try:
            os.rename(new_abs, self.folder_abs)
        except OSError:  # another process has made it
            remove_tree(new_abs)
            if not self.exists():
                raise

    def identity(self) -> tuple[object, ...]:
        """Return what tells this memory from a new one.

        A file system may reuse a removed folder's number.
        """
        now = os.stat(f"{self.folder_abs}/objects")
        own_id = read_state(f"{self.folder_abs}/id") or b""
        return self.folder_abs, now.st_dev, now.st_ino, own_id

    def forget_index(self) -> None:
        """Remove the indexes of this worktree; they are made again. Raises: OSError."""
        for path_abs in (self.index_abs, f"{self.index_abs}.ignored"):
            remove_file(path_abs)

    # Git in it

    def ask(
        self,
        *args: str,
        stdin: bytes = b"",
        until_s: float = NO_DEADLINE,
        env: Mapping[str, str] | None = None,
    ) -> CompletedProcess:
        """Run git in the memory; return its exit status and output.

        Raises: TimeOver; OSError if it cannot be started.
        """
        return self.ask_all((args, stdin), until_s=until_s, env=env)[0]

    def ask_all(
        self,
        *calls: tuple[tuple[str, ...], bytes],
        until_s: float = NO_DEADLINE,
        env: Mapping[str, str] | None = None,
    ) -> list[CompletedProcess]:
        """Run several at once, each with its input. Raises: as `ask`."""
        start = ("git", "-C", self.repo.root_abs, "--literal-pathspecs")
        commands = [((*start, *args), stdin) for args, stdin in calls]
        limit_s = min(until_s - time.monotonic(), _LONGEST_S)
        try:
            return call_all(commands, env or self.env, limit_s, apart=True)
        except TimeoutError as error:
            raise time_over(self.repo.root_abs) from error

    # Objects

    def write(self, kind: str, content: bytes) -> str:
        """Store an object; return its id. Raises: OSError."""
        import hashlib  # a look that finds nothing new needs neither
        import zlib

        whole = b"%s %d\0%s" % (kind.encode(), len(content), content)
        algorithm = self.repo.object_format
        object_id = hashlib.new(algorithm, whole, usedforsecurity=False).hexdigest()
        path_abs = f"{self.folder_abs}/objects/{object_id[:2]}/{object_id[2:]}"
        try:
            os.utime(path_abs)  # or it may be pruned before anything refers to it
        except FileNotFoundError:
            make_folder(os.path.dirname(path_abs))
            replace_file(path_abs, zlib.compress(whole, 1), mode=READ_ONLY, sync=False)
        return object_id

    def write_tree(self, entries: list[tuple[str, str, str]]) -> str:
        """Store a tree of entries: mode, name, id; return its id. Raises: OSError."""
        # Git sorts folders as if their names ended with a slash.
        ordered = sorted(
            entries, key=lambda entry: os.fsencode(entry[1]) + b"/" * (entry[0] == "40000")
        )
        lines = [
            b"%s %s\0%s" % (mode.encode(), os.fsencode(name), bytes.fromhex(object_id))
            for mode, name, object_id in ordered
        ]
        return self.write("tree", b"".join(lines))

    def write_commit(
        self, tree: str, parents: list[str], *, name: str, message: str, time_s: float
    ) -> str:
        """Store a commit; return its id. Raises: OSError."""
        plain = "".join(c for c in name if c not in "<>\n\0").strip() or "?"
        lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
        lines += [f"{who} {plain} <> {int(time_s)} +0000" for who in ("author", "committer")]
        text = "\n".join((*lines, "", message, ""))
        return self.write("commit", text.encode("utf-8", "surrogateescape"))

    def read_ref(self, ref: str) -> str:
        """Return the id that a ref of ours has; empty: there is none. Raises: OSError."""
        content = read_state(f"{self.folder_abs}/{ref}")
        if content is None and os.path.exists(f"{self.folder_abs}/packed-refs"):
            # Somebody else ran `git gc` there. Without this, all points would seem to be gone.
            content = self.ask("rev-parse", "--verify", "--quiet", ref).stdout
        return (content or b"").decode("ascii", "replace").strip()

    def write_ref(self, ref: str, object_id: str) -> None:
        """Set a ref of ours. Raises: OSError."""
        path_abs = f"{self.folder_abs}/{ref}"
        make_folder(os.path.dirname(path_abs))
        replace_file(path_abs, f"{object_id}\n".encode(), sync=False)

    def keep_tree(self, tree: str) -> None:
        """Keep a tree that no point has, for a month after the last call. Raises: OSError."""
        ref = f"{TREES}/{tree}"
        try:
            os.utime(f"{self.folder_abs}/{ref}")
        except FileNotFoundError:
            self.write_ref(ref, tree)

    # Locks

    def lock(self, name: str, wait_s: float = _WAIT_S) -> int:
        """Lock a file; return its descriptor. Those in the worktree's state begin with `files`.

        A git process started meanwhile keeps holding it if this process is killed.

        Raises: LockError, OSError.
        """
        folder_abs = self.repo.state_abs if name.startswith("files") else self.folder_abs
        make_folder(folder_abs)
        fd = lock_file(f"{folder_abs}/{name}", wait_s=wait_s)
        if fd < 0:
            raise LockError(
                f"another look at {self.repo.root_abs} did not finish in {wait_s:.0f} s",
                "Wait for the other gitgates run to finish, or stop it.",
            )
        os.set_inheritable(fd, True)
        return fd


class Storing:
    """Raises StateError instead of OSError, if something cannot be stored."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        if isinstance(error, OSError):
            place, why = error.filename or self._memory.folder_abs, error.strerror or error
            raise StateError(
                f"{place}: files cannot be saved: {why}",
                "Free some disk space, or make the folder writable.",
            ) from error


# Where it is


def remove_named(repo: Repo) -> tuple[str, str]:
    """Remove the memory outside that `gitgates/files.at` names; return it, and why it stays.

    The first is empty if there is none, the second if it is removed. Raises: OSError.
    """
    folder_abs = _pointer(repo.common_dir_abs)
    is_inside = folder_abs == f"{repo.shared_state_abs}/files.git"  # it is removed with the state
    if not folder_abs or is_inside or not os.path.lexists(folder_abs):
        return "", ""
    if os.path.islink(folder_abs):
        return folder_abs, "it is a link"
    if not (os.path.dirname(folder_abs).endswith(_BASE) and _belongs(folder_abs, repo)):
        return folder_abs, "it is not this repository's"
    remove_tree(folder_abs)
    return folder_abs, ""


def _find(repo: Repo) -> str:
    """Return the folder of the memory of a repository, which may not exist yet."""
    inside_abs = f"{repo.shared_state_abs}/files.git"
    pointer = _pointer(repo.common_dir_abs)
    if pointer and os.path.isdir(pointer):
        if _belongs(pointer, repo):
            return pointer
    elif os.path.isdir(inside_abs):
        return inside_abs
    base_abs = _outside(repo)
    if not base_abs:
        return inside_abs
    common_abs = repo.common_dir_abs
    digest = _imp.source_hash(1, os.fsencode(common_abs)).hex()
    name = os.path.basename(common_abs.removesuffix("/.git"))
    for number in range(_MOST_NAMES):
        suffix = f"-{number}" if number else ""
        folder_abs = f"{base_abs}/{name}-{digest}{suffix}"
        if not os.path.isdir(folder_abs) or _belongs(folder_abs, repo):
            return folder_abs
    return inside_abs


def _outside(repo: Repo) -> str:
    """Return the folder outside of the repository for all memories; empty: none may be there."""
    home = repo.env.get("HOME", "")
    state = repo.env.get("XDG_STATE_HOME", "") or (f"{home}/.local/state" if home else "")
    if not os.path.isabs(state) or is_shared():
        return ""
    base_abs = f"{state}{_BASE}"
    try:
        make_folder(base_abs)
        is_near = os.stat(base_abs).st_dev == os.stat(repo.common_dir_abs).st_dev
        is_ours = os.access(base_abs, os.W_OK | os.X_OK)
    except OSError:
        return ""
    # In a home that is itself a repository, or below a working tree, it would be no other place.
    is_apart = not f"{os.path.realpath(base_abs)}/".startswith(
        f"{os.path.realpath(repo.root_abs)}/"
    )
    return base_abs if is_near and is_ours and is_apart else ""


def _belongs(folder_abs: str, repo: Repo) -> bool:
    """Return whether a memory belongs to a repository, which may have been moved."""
    owner = os.fsdecode(read_state(f"{folder_abs}/of") or b"")
    if owner == repo.common_dir_abs:
        return True
    if not owner or _pointer(repo.common_dir_abs) != folder_abs:
        return False
    try:
        if os.path.samefile(owner, repo.common_dir_abs):  # mounted at two places
            return True
    except OSError:
        pass
    if _pointer(owner) == folder_abs:
        return False  # we are a copy of that one
    replace_file(f"{folder_abs}/of", os.fsencode(repo.common_dir_abs), sync=False)
    return True


def _pointer(common_dir_abs: str) -> str:
    """Return the memory that a repository names; empty: none."""
    try:
        return os.fsdecode(read_state(f"{common_dir_abs}/gitgates/files.at") or b"")
    except OSError:
        return ""
