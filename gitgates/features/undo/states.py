"""The state of a worktree at one moment, so that it comes back byte for byte.

A state is a tree of raw files in the git directory of ours, and a blob that says what no tree does:
the modes, the empty folders, the index, HEAD, the branches, the stash, and what was left out. Its
id is that of the blob. Only what has another `lstat` than in the state before is read.

undo.facts   of one worktree: the last state, and what it was made from
"""

from __future__ import annotations

import os
import stat
import time

from gitgates.core.errors import GitError, LockError, StateError
from gitgates.core.lean_json import dumps
from gitgates.core.record import Record
from gitgates.features.undo.git_state import branch_pack, git_fields, git_files, stash_pack
from gitgates.features.undo.private_git import SUBMODULE, PrivateGit, not_taken
from gitgates.git.repo import nul_split
from gitgates.store.files import lock_file, make_folder, read_cached, remove_file, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from gitgates.features.undo.settings import UndoSettings
    from gitgates.git.repo import Git, Repo

_VERSION = 2
_FACTS = "undo.facts"
_WAIT_S = 60.0
_HIDDEN_S, _POLL_S = 10.0, 0.02
_DIFFERENCES = ("diff-files", "--raw", "-z", "--no-renames", "--ignore-submodules=all")
_OTHERS = ("ls-files", "-z", "--others", "--exclude-standard")
_GONE = b"D"


class State(Record):
    """What a worktree held."""

    id: str
    tree: str  # of raw files
    head: str = ""  # the commit; empty before the first
    branch: str = ""  # the ref that HEAD names; empty where it is detached
    refs: Mapping[str, str] = {}  # branch → commit
    stash: tuple[tuple[str, str], ...] = ()  # commit and message of each entry, the newest first
    index_blob: str = ""  # with the bytes of the index; empty: there is none
    index_entries: str = ""  # a digest of what it has, without what `lstat` said
    staged: str = ""  # a pack with the blobs that the index has, and HEAD does not
    umask: int = 0o022  # which the modes follow that are not named
    modes: Mapping[str, int] = {}  # path → permissions of a file
    folders: tuple[str, ...] = ()  # that are empty
    left_out: Mapping[str, str] = {}  # path → why
    formerly_ignored: tuple[
        str, ...
    ] = ()  # that are new only because they are not ignored any more

    def mode_of(self, path: str, git_mode: int) -> int:
        """Return the type and permissions of a file or link."""
        if stat.S_ISLNK(git_mode):
            return stat.S_IFLNK | 0o777
        return stat.S_IFREG | self.modes.get(path, _usual(git_mode, self.umask))


class _Facts:
    """What the last state was made from. In a file, it is a tuple of these fields."""

    def __init__(self, plain: Any) -> None:  # noqa: ANN401 - whatever was written
        is_known = isinstance(plain, tuple) and plain[0] == _VERSION
        facts = plain if is_known else (_VERSION, (), (), "", {}, {}, {}, (), (), {}, ())
        # `lstat` of the user's index and the refs; `lstat` of our index; the state.
        self.git_files: tuple[Any, ...] = facts[1]
        self.own_index: tuple[int, ...] = facts[2]
        self.state: str = facts[3]
        self.modes: dict[str, int] = facts[4]
        self.left_out: dict[str, str] = facts[5]
        self.git_fields: dict[str, Any] = facts[6]  # the fields of a state about all but the files
        self.folders: tuple[str, ...] = facts[7]
        self.limits: tuple[Any, ...] = facts[8]
        self.tracked_ignored: dict[str, bool] = facts[
            9
        ]  # tracked, but ignored → whether it was there
        # Git compares times by the second: it does not see that the mode of these has changed.
        self.recent: tuple[str, ...] = facts[10]

    def plain(self) -> tuple[Any, ...]:
        """Return all of it for the file."""
        return (
            *(_VERSION, self.git_files, self.own_index, self.state, self.modes, self.left_out),
            *(self.git_fields, self.folders, self.limits, self.tracked_ignored, self.recent),
        )


def take(
    repo: Repo, settings: UndoSettings, on_change: Callable[[str, str], None] = lambda *_: None
) -> str:
    """Record the state of a worktree; return its id, which is that of the last one if it is equal.

    If it is not, `on_change` is called with the id of the last one, which may be empty, and that of
    the new one, while no other process records a state.

    Raises: StateError where it cannot be stored, for lack of space for example; LockError where
    another process that does the same does not end; GitError where git cannot read the files.
    """
    private = PrivateGit(repo)
    try:
        make_folder(repo.state_abs)
        lock_fd = lock_file(f"{repo.state_abs}/undo.lock", wait_s=_WAIT_S)
        if lock_fd < 0:
            raise LockError(
                f"another save point of {repo.root_abs} did not finish in {_WAIT_S:.0f} s",
                "Wait for the other gitgates run to finish, or stop it.",
            )
        try:
            # Where this process is killed, the git that it has started holds the lock to its end.
            os.set_inheritable(lock_fd, True)
            _wait_for_hidden(repo)
            looked_ns = os.fstat(lock_fd).st_mtime_ns
            os.utime(lock_fd)
            return _take_locked(repo, settings, on_change, looked_ns)
        finally:
            os.close(lock_fd)
    except OSError as error:
        raise not_taken(private, error) from error


def _wait_for_hidden(repo: Repo) -> None:
    """Wait while gates have unstaged work out of the way: it would seem that somebody removed it.

    Raises: LockError where that takes longer.
    """
    until_s = time.monotonic() + _HIDDEN_S
    while os.path.isdir(f"{repo.state_abs}/rescue"):
        if time.monotonic() > until_s:
            raise LockError(
                f"gates that are running in {repo.root_abs} have stashed unstaged work",
                "Wait for them to finish, and try again.",
            )
        time.sleep(_POLL_S)


def current(state_abs: str) -> str:
    """Return the id of the last state of a worktree, by its state folder; empty: there is none."""
    return _Facts(read_cached(f"{state_abs}/{_FACTS}")).state


def load(repo: Repo, state_id: str) -> State:
    """Return a state. Raises: StateError where it is missing or damaged."""
    from gitgates.core.limits import parse_json  # a look at the files needs none

    try:
        plain = parse_json(os.fsdecode(PrivateGit(repo).read_blob(state_id)))
        plain["stash"] = tuple((commit, message) for commit, message in plain["stash"])
        plain |= {name: tuple(plain[name]) for name in ("folders", "formerly_ignored")}
        return State(id=state_id, **plain)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StateError(f"the state {state_id} of a save point is damaged: {error}") from error


def packs_of(state: State) -> set[str]:
    """Return the names of the packs that a state needs."""
    packs = {stash_pack(commit) for commit, _message in state.stash}
    packs |= {branch_pack(commit) for commit in state.refs.values()}
    return packs | {state.staged} - {""}


def _take_locked(
    repo: Repo, settings: UndoSettings, on_change: Callable[[str, str], None], looked_ns: int
) -> str:
    private = PrivateGit(repo)
    has_other_ignores = private.prepare()
    facts = _Facts(read_cached(_facts_abs(repo)))
    remove_file(f"{private.index_abs}.lock")  # of a git that was killed; we hold our own lock
    if not (facts.state and private.has(facts.state)):  # somebody has removed all of it
        remove_file(private.index_abs)
        facts = _Facts(None)
    last = facts.state
    # A killed run has changed the index, and did not come to note what it found.
    is_noted = bool(facts.state) and facts.own_index == _identity(private.index_abs)
    limits = (settings.max_file_bytes, settings.include)
    if not is_noted or facts.limits != limits:
        facts = _Facts(None)
    facts.limits = limits
    if not os.path.exists(private.index_abs):
        _start(repo, private)
    before, files_now = facts.plain(), git_files(repo)
    try:
        look = _look(private.storing, settings)
    except GitError:  # the index may be damaged
        remove_file(private.index_abs)
        _start(repo, private)
        facts, before = _Facts(None), ()
        facts.limits = limits
        look = _look(private.storing, settings)
    is_same_git = bool(facts.git_fields) and files_now == facts.git_files
    if not is_same_git:
        listing = repo.git.names("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
        facts.tracked_ignored = dict.fromkeys(listing, False)
    by_path = _update_files(private.storing, settings, facts, look)
    if by_path is None and is_same_git:
        return facts.state
    by_path = by_path or {}
    has_other_ignores = has_other_ignores or any(map(_is_ignore_file, by_path))
    formerly_ignored = (
        _formerly_ignored(repo.root_abs, by_path, looked_ns) if last and has_other_ignores else []
    )
    if not is_same_git:
        facts.git_fields = git_fields(repo, private, facts.git_fields)
    facts.git_files = files_now
    plain = {
        "tree": private.storing.out("write-tree", "--missing-ok").decode().strip(),
        "umask": _umask(),
        # In one order: equal states have one id.
        "modes": dict(sorted(facts.modes.items())),
        "folders": facts.folders,
        "left_out": dict(sorted(facts.left_out.items())),
        "formerly_ignored": sorted(formerly_ignored),
        **facts.git_fields,
    }
    facts.state = private.write_blob(dumps(plain).encode())
    facts.own_index = _identity(private.index_abs)
    if facts.state != last:
        on_change(last, facts.state)  # if this is the last thing done, it is done again
    if facts.plain() != before:
        replace_cached(_facts_abs(repo), facts.plain(), sync=False)
    return facts.state


def _identity(path_abs: str) -> tuple[int, ...]:
    """Return what tells a file from the one that git renames over it; empty if there is none."""
    try:
        now = os.lstat(path_abs)
    except OSError:
        return ()
    return now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def _listing(settings: UndoSettings) -> tuple[str, ...]:
    """Return the arguments with which git lists files that it does not track."""
    return (*_OTHERS, *(f"-x!{pattern}" for pattern in settings.include))


class _Seen(Record):
    """What git says of the files."""

    differences: bytes  # from our index
    listing: bytes  # what is not in it; folders as a whole


def _look(git: Git, settings: UndoSettings) -> _Seen:
    asked = git.ask_all(_DIFFERENCES, (*_listing(settings), "--directory"))
    for each in asked:
        if each.exit_status:
            raise GitError(f"git cannot list the files: {os.fsdecode(each.stderr).strip()}")
    return _Seen(*(each.stdout for each in asked))


def _update_files(
    git: Git, settings: UndoSettings, facts: _Facts, look: _Seen
) -> dict[str, bool] | None:
    """Store what has changed, and put it into the index.

    Return path → whether it is new; None: nothing has changed.
    """
    from gitgates.git.index import update_index  # not for a look, but for what it finds

    is_first, listing = not facts.state, look.listing
    removed_paths, changed = _split(look.differences)
    if removed_paths:
        update_index(git, removed_paths, "--force-remove")
        # A folder in the place of a file is listed now.
        listing = git.out(*_listing(settings), "--directory")
    new, folders = _expand(git, settings, listing)
    new += _reappeared(git.cwd_abs, facts, removed_paths)
    stored, left_out = _within(git.cwd_abs, (*changed, *new), settings.max_file_bytes)
    stored += _changed_modes(git.cwd_abs, facts, {*removed_paths, *stored})
    has_changed = bool(is_first or removed_paths or changed or stored)
    has_changed = has_changed or (folders, left_out) != (facts.folders, facts.left_out)
    facts.folders, facts.left_out = folders, left_out
    if not has_changed:
        return None
    update_index(git, left_out, "--force-remove")
    update_index(git, stored, "--add", "--remove", "--replace")
    for path in (*removed_paths, *changed, *new):
        facts.modes.pop(path, None)
    of_index = git.names("ls-files", "-z") if is_first else stored
    _note_modes(git.cwd_abs, facts, of_index)
    return dict.fromkeys((*removed_paths, *changed), False) | dict.fromkeys(new, True)


def _is_ignore_file(path: str) -> bool:
    return os.path.basename(path) == ".gitignore"


def _formerly_ignored(root_abs: str, by_path: Mapping[str, bool], looked_ns: int) -> list[str]:
    """Return the new files that were there before, when they were ignored."""
    older = []
    for path in (path for path, is_new in by_path.items() if is_new):
        try:
            if os.lstat(os.path.join(root_abs, path)).st_ctime_ns <= looked_ns:
                older.append(path)
        except OSError:
            continue
    return older


def _reappeared(root_abs: str, facts: _Facts, removed_paths: Iterable[str]) -> list[str]:
    """Return the files that git tracks although they are ignored, and that are there again."""
    by_path = []
    for path in {*removed_paths} & facts.tracked_ignored.keys():
        facts.tracked_ignored[path] = False
    for path, was_there in facts.tracked_ignored.items():
        if not was_there and os.path.lexists(os.path.join(root_abs, path)):
            by_path.append(path)
            facts.tracked_ignored[path] = True
    return by_path


def _facts_abs(repo: Repo) -> str:
    return f"{repo.state_abs}/{_FACTS}"


def removed(repo: Repo, state: State) -> str:
    """Store the state that a removed worktree has when it is added again; return its id.

    Raises: OSError, GitError.
    """
    private, index_abs = PrivateGit(repo), f"{repo.state_abs}/undo.removed"
    git = private.storing
    git = git._replace(env={**git.env, "GIT_INDEX_FILE": index_abs})
    try:
        _fill(repo, git, state.head)
        tree = git.out("write-tree", "--missing-ok").decode().strip()
    finally:
        remove_file(index_abs)
    empty = State(id="", tree=tree, head=state.head, branch=state.branch, refs=state.refs)
    plain = empty._replace(stash=state.stash, umask=state.umask)._asdict()
    del plain["id"]
    return private.write_blob(dumps(plain).encode())


def _start(repo: Repo, private: PrivateGit) -> None:
    """Fill the index with the files of HEAD: those that are as committed are not copied."""
    _fill(repo, private.storing, repo.head)


def _fill(repo: Repo, git: Git, commit: str) -> None:
    git.out("read-tree", "--empty")
    if not commit:
        return
    entries = nul_split(repo.git.out("ls-tree", "-r", "-z", "--full-tree", commit))
    lines = "".join(f"{entry}\0" for entry in entries if not entry.startswith(SUBMODULE))
    git.out("update-index", "-z", "--index-info", stdin=os.fsencode(lines))
    git.ask("update-index", "-q", "--refresh")  # its exit status says that some have changed


def _split(differences: bytes) -> tuple[list[str], list[str]]:
    """Return the paths that are gone, and those that are there."""
    removed_paths, changed = list[str](), list[str]()
    fields = differences.split(b"\0")
    for meta, path in zip(fields[::2], fields[1::2], strict=False):
        (removed_paths if meta.endswith(_GONE) else changed).append(os.fsdecode(path))
    return removed_paths, changed


def _expand(git: Git, settings: UndoSettings, listing: bytes) -> tuple[list[str], tuple[str, ...]]:
    """Return new files, and empty folders, from what git lists as untracked.

    Git lists a folder as a whole: what is added to one later does not change the list.
    """
    files, empty, is_filled = list[str](), list[str](), False
    for name in nul_split(listing):
        if not name.endswith("/") or _is_repository(f"{git.cwd_abs}/{name}"):
            files.append(name)
            continue
        for folder_abs, folders, inside in os.walk(f"{git.cwd_abs}/{name}"):
            if not (folders or inside):
                empty.append(os.path.relpath(folder_abs, git.cwd_abs))
            nested = [each for each in folders if _is_repository(f"{folder_abs}/{each}")]
            folders[:] = [each for each in folders if each not in nested]
            links = [each for each in folders if os.path.islink(f"{folder_abs}/{each}")]
            is_filled = is_filled or bool(inside or nested or links)
    if is_filled:
        files = git.names(*_listing(settings))
    return files, tuple(sorted(empty))


def _is_repository(folder_abs: str) -> bool:
    """Return whether a folder is the root of another repository: that is left out."""
    git_abs = os.path.join(folder_abs, ".git")
    if os.path.isdir(git_abs):
        return os.path.isfile(f"{git_abs}/HEAD")
    try:
        with open(git_abs, "rb") as file:
            return file.read(8) == b"gitdir: "
    except OSError:
        return False


def _within(
    root_abs: str, paths: Iterable[str], most_bytes: int
) -> tuple[list[str], dict[str, str]]:
    """Return the paths to be stored, and those that are left out, with the reasons."""
    stored, left_out = [], {}
    for path in paths:
        path_abs = os.path.join(root_abs, path)
        try:
            now = os.lstat(path_abs)
        except OSError:
            stored.append(path)  # it is gone again
            continue
        if path.endswith("/") or stat.S_ISDIR(now.st_mode):
            left_out[path.rstrip("/")] = "a repository of its own"
        elif stat.S_ISREG(now.st_mode) and now.st_size > most_bytes:
            left_out[path] = f"larger than `max_file`: {now.st_size >> 20} MiB"
        elif not (stat.S_ISREG(now.st_mode) or stat.S_ISLNK(now.st_mode)):
            left_out[path] = "neither a file nor a link"
        elif stat.S_ISREG(now.st_mode) and not os.access(path_abs, os.R_OK):
            left_out[path] = "cannot be read"
        else:
            stored.append(path)
    return stored, left_out


# Modes


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _usual(git_mode: int, umask: int) -> int:
    return (0o777 if git_mode & 0o100 else 0o666) & ~umask


def _note_modes(root_abs: str, facts: _Facts, paths: Iterable[str]) -> None:
    """Note the permissions of files that the umask would not give them, and who is recent."""
    umask, recent_s, recent = _umask(), int(time.time()) - 1, list[str]()
    for path in {*paths, *facts.recent}:
        facts.modes.pop(path, None)
        try:
            now = os.lstat(os.path.join(root_abs, path))
        except OSError:
            continue
        if not stat.S_ISREG(now.st_mode):
            continue
        if stat.S_IMODE(now.st_mode) != _usual(now.st_mode, umask):
            facts.modes[path] = stat.S_IMODE(now.st_mode)
        if now.st_ctime >= recent_s:
            recent.append(path)
    facts.recent = tuple(recent)


def _changed_modes(root_abs: str, facts: _Facts, known: set[str]) -> list[str]:
    """Return the recent files whose permissions have changed since."""
    changed, umask = [], _umask()
    for path in facts.recent:
        try:
            mode = os.lstat(os.path.join(root_abs, path)).st_mode
        except OSError:
            continue
        noted = facts.modes.get(path, _usual(mode, umask))
        if path not in known and stat.S_ISREG(mode) and stat.S_IMODE(mode) != noted:
            changed.append(path)
    return changed
