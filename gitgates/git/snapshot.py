"""Snapshots: the tree id of what the working tree holds, tracked and untracked, nothing ignored.

Made with an index and an object folder of our own; the user's files, index and objects are not
touched. The index is a copy of the user's, into which goes what differs from it and what is
untracked. Where that is all as it was, its tree is known and nothing is hashed:

snapshot.index   the copy; made again where it, or the user's index, has changed
snapshot.facts   what the last snapshot was made from, and its tree
"""

from __future__ import annotations

import os
import time

from gitgates.core.errors import GitError, LockError, StateError
from gitgates.core.record import Record
from gitgates.git import object_store
from gitgates.git.index import SETTINGS, copy_index, is_copy, update_index
from gitgates.git.repo import nul_split, read_head
from gitgates.store.files import (
    lock_file,
    make_folder,
    read_cached,
    remove_file,
    remove_tree,
    replace_cached,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from gitgates.git.repo import Git, Repo
    from gitgates.proc.call import CompletedProcess
    from gitgates.store.rescue import StashedPath

    # What is not as in the index: paths that are gone, and the others with what `lstat` says.
    State: TypeAlias = tuple[list[str], list[tuple[str, tuple[int, ...]]]]
    # Signature of the user's index, its flagged paths, state, tree, HEAD, when that was stored.
    Facts: TypeAlias = tuple[tuple[int, ...], list[str], State | None, str, str, float]

# A data set or a core dump that nobody has added yet: to store it would cost more than it tells.
LIMIT_BYTES = 50 * 1024 * 1024
_WAIT_S = 60.0
_POLL_S = 0.01
_STORED_S = 24 * 3600.0  # far less than objects are kept without being asked for
_PATIENCE_S = 30.0  # while another run moves files: thousands take seconds
_HIDDEN = "another run has stashed unstaged work"  # a doubt that goes by itself
_FIRST_PATHS = 3  # of many, those that are named
_VERSION = 2  # of the facts
_SUBMODULE = b"160000"
_SETTINGS = (*SETTINGS, ("core.safecrlf", "false"), ("core.fsmonitor", "false"))
_DIFFERENCES = ("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=none")
_UNTRACKED = ("ls-files", "-z", "--others", "--exclude-standard")
_HEAD = ("rev-parse", "--verify", "--quiet", "HEAD")
_FLAGS = ("ls-files", "-v", "-z")
_NO_FACTS: Facts = ((-1,), [], None, "", "", 0.0)


class SnapshotError(GitError):
    """Git cannot read the whole working tree, so there is no snapshot."""


class Snapshot(Record):
    """What the working tree held."""

    tree: str
    head: str = ""  # the commit that was checked out; empty before the first
    why_unprovable: tuple[str, ...] = ()  # why this may change without another tree
    left_out: tuple[tuple[str, str], ...] = ()  # untracked path, relative to the root → why

    @property
    def provable(self) -> bool:
        """Return whether the same tree means the same content."""
        return not self.why_unprovable

    @property
    def not_seen(self) -> tuple[str, ...]:
        """A text about content that no tree holds. It changes when that content does."""
        return tuple(doubt for doubt in self.why_unprovable if doubt != _HIDDEN)


def take_snapshot(repo: Repo) -> Snapshot:
    """Take a snapshot of the working tree. Files that another run has stashed are included.

    In the run that hides, the snapshot is of what its gates see. Read the objects with
    `object_store.reading_git`; they are kept for a month after the last snapshot that has them.

    Raises: SnapshotError where something in the working tree cannot be read; StateError where the
    state folder cannot be written; LockError where another snapshot does not end.
    """
    try:
        lock_fd = _lock(repo)
        try:
            os.utime(lock_fd)
            snapshot = _take_locked(repo, began_ns=os.fstat(lock_fd).st_mtime_ns)
        finally:
            os.close(lock_fd)
    except OSError as error:
        raise StateError(
            f"{error.filename or repo.state_abs}: cannot take a snapshot: {error.strerror}"
        ) from error
    return snapshot


def _lock(repo: Repo) -> int:
    make_folder(repo.state_abs)
    fd = lock_file(f"{repo.state_abs}/snapshot.lock", wait_s=_WAIT_S)
    if fd < 0:
        raise LockError(
            f"another snapshot of {repo.root_abs} did not finish in {_WAIT_S:.0f} s",
            "Wait for the other gitgates run to finish, or stop it.",
        )
    return fd


def _take_locked(repo: Repo, began_ns: int) -> Snapshot:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        hidden = _find_hidden(repo.state_abs)
        try:
            snapshot = _take_with(repo, hidden, began_ns)
        except (GitError, OSError) as error:
            if _find_hidden(repo.state_abs) == hidden:
                if not isinstance(error, GitError):
                    raise
                raise SnapshotError(
                    f"no snapshot of {repo.root_abs}: {error.message}",
                    "Make it readable, or have git ignore it. Until then, no results are reused.",
                ) from error
        else:
            if _find_hidden(repo.state_abs) == hidden:
                return snapshot
        time.sleep(_POLL_S)
    raise SnapshotError(
        f"{repo.root_abs}: another gitgates run keeps stashing and restoring files",
        "Wait for it to finish.",
    )


def _take_with(repo: Repo, hidden: tuple[StashedPath, ...], began_ns: int) -> Snapshot:
    previous = known_signature, flagged, known_state, tree, *_stored = _read_facts(repo)
    git, signature = _copy_users_index(repo, known_signature)
    commands: list[tuple[str, ...]] = [_DIFFERENCES, _UNTRACKED]
    if signature != known_signature:
        commands.append(_FLAGS)
    if not (commit := read_head(repo)):
        commands.append(_HEAD)
    differences, untracked, *rest = git.ask_all(*commands)
    if not commit:
        commit = rest.pop().stdout.decode().strip()
    if flags := rest:
        # Source: git-ls-files(1), -v: assume-unchanged is lower case, skip-worktree is S.
        entries = nul_split(flags[0].stdout)
        flagged = [entry[2:] for entry in entries if entry[0].islower() or entry[0] == "S"]
        known_state = None
    deleted, changed, modules = _read_differences(git, differences)
    new, left_out = _read_untracked(git, untracked, {entry.path for entry in hidden})
    state = deleted, [(path, _stat(git, path)) for path in (*changed, *new)]
    is_plain = not (modules or hidden)
    if not (is_plain and state == known_state and object_store.has(repo, tree)):
        update_index(git, deleted, "--force-remove")
        update_index(git, (*changed, *modules, *new), "--add", "--remove", "--replace")
        if modules:
            # What only has another commit checked out is in the tree now; the rest is not.
            modules = _read_differences(git, git.ask(*_DIFFERENCES))[2]
        if hidden:
            _add_saved(git, repo, hidden)
        tree = git.out("write-tree").decode().strip()
    stored_s = _store_all(git, repo, tree, head=commit, previous=previous)
    # What was written since it began may have been read before, and look the same afterwards.
    is_settled = all(max(times[-2:], default=0) < began_ns for _path, times in state[1])
    facts = (signature, flagged, state if is_plain and is_settled else None, tree, commit, stored_s)
    if facts != previous:
        replace_cached(_facts_abs(repo), (_VERSION, *facts), sync=False)
    return Snapshot(
        tree=tree,
        head=commit,
        why_unprovable=tuple(_why_unprovable(flagged, modules, left_out, hidden)),
        left_out=tuple(left_out.items()),
    )


def flagged_paths(repo: Repo) -> list[str]:
    """Return the assume-unchanged and skip-worktree paths of the last snapshot."""
    return _read_facts(repo)[1]


def _read_facts(repo: Repo) -> Facts:
    """Return what the last snapshot has noted, or what stands for nothing."""
    version, *facts = read_cached(_facts_abs(repo)) or (None,)
    return tuple(facts) if version == _VERSION else _NO_FACTS


def _facts_abs(repo: Repo) -> str:
    return f"{repo.state_abs}/snapshot.facts"


def _copy_users_index(repo: Repo, copied: tuple[int, ...]) -> tuple[Git, tuple[int, ...]]:
    """Return git that works on a copy of the user's index and stores in our object folder.

    With it, the signature of the user's index, which tells its state from another one; empty:
    there is none. `copied` is the signature that the last copy was made at.
    """
    users_abs, index_abs = f"{repo.git_dir_abs}/index", f"{repo.state_abs}/snapshot.index"
    git = object_store.storing_git(repo).with_settings(_SETTINGS)
    names = {"GIT_INDEX_FILE": index_abs, "GIT_DIR": repo.git_dir_abs}
    git = git._replace(env={**git.env, **names, "GIT_WORK_TREE": repo.root_abs})
    remove_file(f"{index_abs}.lock")  # of a git that was killed; we hold our own lock
    try:
        now = os.stat(users_abs)
    except FileNotFoundError:
        remove_file(index_abs)
        return git, ()
    signature = (now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
    if signature != copied or not is_copy(index_abs, now):
        copy_index(users_abs, index_abs)
    return git, signature


def _read_differences(
    git: Git, completed: CompletedProcess
) -> tuple[list[str], list[str], list[str]]:
    """Return the deleted paths, the changed ones, and the changed submodules."""
    if completed.exit_status:
        message = os.fsdecode(completed.stderr).strip() or f"exit status {completed.exit_status}"
        raise GitError(f"git diff-files failed in {git.cwd_abs}: {message}")
    fields = completed.stdout.split(b"\0")
    metas: dict[str, bytes] = {}  # of a conflict, git lists more than one version
    for meta, name in zip(fields[0::2], fields[1::2], strict=False):
        path = os.fsdecode(name)
        if metas.get(path, b"")[-1:] != b"D":
            metas[path] = meta
    deleted = [path for path, meta in metas.items() if meta[-1:] == b"D"]
    modules = [path for path in metas.keys() - set(deleted) if _SUBMODULE in metas[path][1:14]]
    return deleted, sorted(metas.keys() - {*deleted, *modules}), sorted(modules)


def _read_untracked(
    git: Git, completed: CompletedProcess, stashed: set[str]
) -> tuple[list[str], dict[str, str]]:
    """Return untracked paths without stashed ones; and what is left out, and why."""
    message = os.fsdecode(completed.stderr).strip()
    # An unreadable folder is only a warning to git: what is in it would be missing unseen.
    if completed.exit_status or "could not open" in message:
        raise GitError(f"git cannot list untracked files: {message}")
    new: list[str] = []
    left_out: dict[str, str] = {}
    # Of another name than .git, git takes its own folder for anybody's.
    git_dir = os.path.relpath(git.env["GIT_DIR"], git.cwd_abs) + "/"
    for path in nul_split(completed.stdout):
        if path.endswith("/"):
            left_out[path.rstrip("/")] = "a repository of its own"
        elif not (path in stashed or path.startswith(git_dir)):
            if (*_stat(git, path), 0, 0)[1] > LIMIT_BYTES:
                left_out[path] = f"larger than {LIMIT_BYTES >> 20} MiB"
            else:
                new.append(path)
    return new, left_out


def _stat(git: Git, path: str) -> tuple[int, ...]:
    """Return mode, size, inode and times of a file; empty where it is gone."""
    try:
        now = os.lstat(os.path.join(git.cwd_abs, path))
    except OSError:
        return ()
    return now.st_mode, now.st_size, now.st_ino, now.st_mtime_ns, now.st_ctime_ns


def _store_all(git: Git, repo: Repo, tree: str, *, head: str, previous: Facts) -> float:
    """Store all objects that HEAD does not have in our directory, out of reach of git gc.

    Some of it may be in the user's, staged once: git does not store it again by itself.
    Return when that was done last.
    """
    *_rest, known_tree, known_head, stored_s = previous
    if (known_tree, known_head) == (tree, head) and time.time() - stored_s < _STORED_S:
        return stored_s
    missing = object_store.keep(repo, _ids_beside_head(git, tree, head))
    if missing:
        ids = "".join(f"{object_id}\n" for object_id in missing).encode()
        pack = git.out("pack-objects", "--stdout", "-q", stdin=ids)
        env = {**git.env, "GIT_ALTERNATE_OBJECT_DIRECTORIES": ""}
        git._replace(env=env).out("unpack-objects", "-q", stdin=pack)
    now = time.time()
    if now - stored_s > _STORED_S:
        object_store.prune(repo, now)
    return now


def _ids_beside_head(git: Git, tree: str, head: str) -> list[str]:
    """Return the ids in `tree`, itself included, that HEAD does not have."""
    if not head:
        entries = git.out("ls-tree", "-r", "-t", "-z", tree).split(b"\0")
        metas = [entry.partition(b"\t")[0].split(b" ") for entry in entries if entry]
        ids = [meta[2].decode() for meta in metas if meta[0] != _SUBMODULE]
    else:
        raw = ("diff-tree", "-r", "-t", "--raw", "-z", "--no-renames", "--no-abbrev")
        fields = git.out(*raw, head, tree).split(b"\0")[0::2]
        news = [meta.split(b" ") for meta in fields if meta]
        ids = [new[3].decode() for new in news if new[1] not in (_SUBMODULE, b"000000")]
    return [tree, *ids]


def _why_unprovable(
    flagged: list[str], dirty: list[str], left_out: dict[str, str], hidden: tuple[StashedPath, ...]
) -> list[str]:
    doubts = []
    if flagged:
        doubts.append(f"git is configured to ignore changes of {_first_few(flagged)}")
    if dirty:
        doubts.append(f"submodules have uncommitted changes: {_first_few(dirty)}")
    if left_out:
        doubts.append(f"left out: {_first_few(list(left_out))}")
    if hidden:
        doubts.append(_HIDDEN)
    return doubts


def _first_few(paths: list[str]) -> str:
    names = ", ".join(f"`{path}`" for path in paths[:_FIRST_PATHS])
    return names + (", …" if len(paths) > _FIRST_PATHS else "")


def _find_hidden(state_abs: str) -> tuple[StashedPath, ...]:
    """Return what another run has moved out of the working tree, or what never was in it.

    What this run has hidden is hidden on purpose. Raises: StateError where the journal cannot be
    understood.
    """
    if not os.path.isdir(f"{state_abs}/rescue"):
        return ()
    from gitgates.store.rescue import Rescue  # most often, nothing is hidden

    rescue = Rescue(f"{state_abs}/rescue")
    if not os.path.exists(rescue.at("journal")):
        return ()
    try:
        journal, saved = rescue.read(), set(os.listdir(rescue.at("saved")))
    except (StateError, OSError):
        if os.path.exists(rescue.at("journal")):
            raise
        return ()  # that run has just ended
    if journal.pid == os.getpid():
        return ()
    return tuple(entry for entry in journal.entries if not entry.saved or entry.saved in saved)


def _add_saved(git: Git, repo: Repo, hidden: tuple[StashedPath, ...]) -> None:
    """Replace isolated files by the stashed ones in the index that `git` uses.

    Raises: GitError or OSError; the run that hides may put it back meanwhile.
    """
    from gitgates.store.rescue import Rescue  # only where something is hidden

    rescue = Rescue(f"{repo.state_abs}/rescue")
    folder_abs = f"{repo.state_abs}/snapshot.saved"
    update_index(git, [entry.path for entry in hidden], "--force-remove")
    if os.path.lexists(folder_abs):
        remove_tree(folder_abs)
    os.mkdir(folder_abs, mode=0o700)
    try:
        names: list[str] = []
        for entry in hidden:
            if entry.saved:
                paths = _link(rescue.at("saved", entry.saved), folder_abs, entry.path)
                if paths != [entry.path]:  # a folder, of which git may ignore something
                    ignored = set(git.ignored(paths, "--no-index"))
                    paths = [name for name in paths if name not in ignored]
                names += paths
        # As a working tree of its own, so that filters see each file under its name.
        stash_git = git._replace(cwd_abs=folder_abs, env={**git.env, "GIT_WORK_TREE": folder_abs})
        update_index(stash_git, names, "--add", "--replace")
    finally:
        remove_tree(folder_abs)


def _link(saved_abs: str, folder_abs: str, path: str) -> list[str]:
    """Link a saved file, or all in a saved folder, below `folder_abs`; return the paths."""
    if os.path.isdir(saved_abs) and not os.path.islink(saved_abs):
        paths: list[str] = []
        inside = sorted(os.listdir(saved_abs))
        if ".git" in inside:
            return []  # a repository of its own is in no snapshot
        for name in inside:
            paths += _link(f"{saved_abs}/{name}", folder_abs, f"{path}/{name}")
        return paths
    target_abs = os.path.join(folder_abs, path)
    os.makedirs(os.path.dirname(target_abs), exist_ok=True)
    os.link(saved_abs, target_abs, follow_symlinks=False)
    return [path]
