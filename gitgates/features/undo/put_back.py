"""Carry out an undo: put back a worktree's files, and git's own state.

The journal has each path's current and wanted version. Every step can be repeated, because an undo
may be killed at any step: `gitgates recover` finishes it. Nothing is renamed over a file, and
nothing that no save point has is removed: it is moved to `kept`, and reported.

undo.journal   one for each worktree, as long as an undo is under way
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from contextlib import contextmanager

from gitgates.core.errors import GitError, StateError
from gitgates.core.record import Record
from gitgates.features.undo.git_back import GitBack, Wish
from gitgates.features.undo.moments import Moments
from gitgates.features.undo.undoing import Target
from gitgates.files.memory import Memory
from gitgates.files.points import UNDO, Author, Facts, Point, latest, point_at, record
from gitgates.store.files import make_folder, read_cached, remove_file, replace_cached, sync_files
from gitgates.store.rescue import move_aside, move_into_place
from gitgates.worktree.isolate import pause_point
from gitgates.worktree.locks import Lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gitgates.features.undo.moments import Version
    from gitgates.files.look import Limits
    from gitgates.git.repo import Repo

_ATTEMPTS = 20  # in case somebody writes the same path again and again


class Undo(Record):
    """An undo: what it undoes, and what to do. These are the journal's fields."""

    undone: tuple[str, ...] = ()  # the commits of the points
    numbers: tuple[int, ...] = ()  # of the undone points; none if it undoes only parts of them
    session: str = ""  # which undoes; empty: a person
    what: str = ""  # for the list
    targets: Mapping[str, Target] = {}
    folders: Mapping[str, int] = {}  # → permissions
    owners: Mapping[str, tuple[int, int]] = {}  # file → user, group
    wish: Wish = Wish()


def put_back(repo: Repo, limits: Limits, undo: Undo) -> tuple[Point | None, list[str]]:
    """Carry out an undo; return its own point, and notes for the person.

    Raises: StateError that names what could not be put back, after everything else was; GitError,
    OSError.
    """
    targets = {path: tuple(target) for path, target in undo.targets.items()}
    plain = undo._replace(targets=targets, wish=tuple(undo.wish))  # type: ignore[arg-type]
    replace_cached(_journal_abs(repo), tuple(plain))
    return _finish(repo, limits, undo)


@contextmanager
def locked(
    repo: Repo, wait_s: float, say: Callable[[str], None] = lambda _text: None
) -> Iterator[None]:
    """Keep gates from running in the worktree. Raises: LockError, OSError."""
    lock = Lock(repo.state_abs)
    try:
        if not lock.acquire(alone=True, wait_s=wait_s, say=say):
            raise lock.busy_error()
        yield
    finally:
        lock.release()


def is_under_way(repo: Repo) -> bool:
    """Return whether a killed undo is unfinished."""
    return os.path.exists(_journal_abs(repo))


def finish(repo: Repo, limits: Limits) -> list[str]:
    """Finish a killed undo; return notes. Raises: as `put_back`."""
    if not is_under_way(repo):
        return []
    fields = read_cached(_journal_abs(repo))
    if not isinstance(fields, tuple) or len(fields) != len(Undo()):
        raise StateError(
            f"{_journal_abs(repo)}: is damaged",
            f"Look at the files, then remove it: rm '{_journal_abs(repo)}'",
        )
    undo = Undo(*fields)
    targets = {path: Target(*target) for path, target in undo.targets.items()}
    undo = undo._replace(targets=targets, wish=Wish(*undo.wish))
    _point, notes = _finish(repo, limits, undo)
    return ["an interrupted undo is now finished", *notes]


def _journal_abs(repo: Repo) -> str:
    return f"{repo.state_abs}/undo.journal"


def _finish(repo: Repo, limits: Limits, undo: Undo) -> tuple[Point | None, list[str]]:
    files = _Files(repo, undo.owners)
    failed = files.put_all(undo.targets)
    files.set_permissions(undo.folders)
    notes = files.notes
    points = [point for commit in undo.undone if (point := point_at(repo, commit))]
    back = GitBack(Moments(repo), points, undo.wish)
    for restore in (back.stash, back.branches, back.head, back.waiting, back.index):
        try:
            notes += restore()
        except (GitError, StateError, OSError) as error:
            failed.append(str(error))
    if failed:
        what = "not everything could be put back:\n  " + "\n  ".join(failed)
        hint = f"Fix that, and run: gitgates recover. To leave it: rm '{_journal_abs(repo)}'"
        raise StateError(what, hint).with_notes(notes)
    point = _own_point(repo, undo)
    if not point:
        facts = Facts(what=undo.what, undoes=undo.numbers)
        point = record(repo, Author(UNDO, undo.session), facts, limits)
    files.step("forget")
    remove_file(_journal_abs(repo))
    return point, notes


def _own_point(repo: Repo, undo: Undo) -> Point | None:
    """Return the point of an undo that was killed after recording it; a redo needs it."""
    last, began_s = latest(repo), os.stat(_journal_abs(repo)).st_mtime
    own = (UNDO, undo.session, undo.what, undo.numbers)
    if last is None or last.time_s < began_s:
        return None
    of_last = (last.author.kind, last.author.name, last.facts.what, last.facts.undoes)
    return last if of_last == own else None


class _Files:
    """The files of a worktree during an undo."""

    def __init__(self, repo: Repo, owners: Mapping[str, tuple[int, int]]) -> None:
        self._repo, self._owners = repo, owners
        self._git = Memory(repo).reading
        root = os.stat(repo.root_abs)
        self._owner = root.st_uid, root.st_gid
        self.step = pause_point(repo.env)
        self.notes: list[str] = []
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self._kept_abs = f"{repo.state_abs}/kept/{stamp}-{os.getpid()}"
        self._part_abs = f"{repo.state_abs}/undo.part"
        self._out_abs = f"{repo.state_abs}/undo.out"

    def put_all(self, targets: Mapping[str, Target]) -> list[str]:
        """Put each path; return what could not be put back."""
        failed, put = list[str](), list[str]()
        # Removals first: a file may be in the place of a folder.
        for path in sorted(targets, key=lambda path: targets[path].version is not None):
            target = targets[path]
            try:
                # Again, if it failed for the previous path: this one must not replace that file.
                self._keep_left_out(targets)
                self._put(path, target)
            except (OSError, StateError, GitError) as error:
                failed.append(f"`{path}`: {error}")
                continue
            if target.version and stat.S_ISREG(target.version[0]):
                put.append(os.path.join(self._repo.root_abs, path))
            if target.is_merged:
                self.notes.append(f"`{path}`: has changed since; that change was kept and merged")
        try:
            self._keep_left_out(targets)
        except OSError as error:
            failed.append(f"{self._out_abs}: {error}")
        sync_files(put)
        return failed

    def set_permissions(self, folders: Mapping[str, int]) -> None:
        """Restore the permissions of folders."""
        for folder, mode in sorted(folders.items(), reverse=True):
            folder_abs = os.path.join(self._repo.root_abs, folder)
            try:
                now = os.lstat(folder_abs).st_mode
                if stat.S_ISDIR(now) and stat.S_IMODE(now) != mode:
                    os.chmod(folder_abs, mode)
            except FileNotFoundError:
                continue
            except OSError as error:
                self.notes.append(f"`{folder}`: permissions are not {mode:04o}: {error.strerror}")

    def _put(self, path: str, target: Target) -> None:
        path_abs = os.path.join(self._repo.root_abs, path)
        remove_file(self._part_abs)
        for _attempt in range(_ATTEMPTS):
            if _version_at(path_abs, self._repo) == target.version:
                return
            self._clear_way(path)
            if target.version:
                self._make_part(path, *target.version)
            self._move_out(path, target)
            if target.version is None:
                _remove_empty(self._repo.root_abs, os.path.dirname(path))
                return
            self.step("put-back")
            try:
                move_into_place(self._part_abs, path_abs)
            except FileExistsError:
                continue  # somebody was quicker: look at that, too
            return
        raise StateError("it is modified continuously")

    def _make_part(self, path: str, mode: int, blob: str) -> None:
        """Make the new file or link in our state folder, so that it appears in place complete."""
        content = self._git.out("cat-file", "blob", blob)
        remove_file(self._part_abs)
        if stat.S_ISLNK(mode):
            os.symlink(content, os.fsencode(self._part_abs))
            self._set_owner(path)
            return
        fd = os.open(self._part_abs, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            self._set_owner(path)  # clears a set-user-ID bit
            os.fchmod(fd, stat.S_IMODE(mode))

    def _set_owner(self, path: str) -> None:
        """Give the new file its former owner."""
        user, group = self._owners.get(path, self._owner)
        now = os.lstat(self._part_abs)
        if (now.st_uid, now.st_gid) == (user, group):
            return
        try:
            os.chown(self._part_abs, user, group, follow_symlinks=False)
        except OSError:
            if path in self._owners:
                self.notes.append(f"`{path}`: belonged to {user}:{group}, and is now yours")

    def _move_out(self, path: str, target: Target) -> None:
        """Move out what is at a path; keep it if no save point has it, or there is a conflict."""
        path_abs = os.path.join(self._repo.root_abs, path)
        self.step("take-out")
        try:
            move_aside(path_abs, self._out_abs)
        except (FileNotFoundError, NotADirectoryError):
            return
        found = _version_at(self._out_abs, self._repo)
        if found is not None and found == target.now and not target.conflicts:
            remove_file(self._out_abs)
            return
        why = "its newer version" if target.conflicts else "a version written meanwhile"
        self._keep(path, self._out_abs, why)

    def _keep_left_out(self, targets: Mapping[str, Target]) -> None:
        """Keep what a killed undo has moved out, if no save point has it."""
        if not os.path.lexists(self._out_abs):
            return
        found = _version_at(self._out_abs, self._repo)
        path = next((path for path, target in targets.items() if target.now == found), "")
        if path and found is not None and not targets[path].conflicts:
            remove_file(self._out_abs)
        else:
            self._keep(path or "unknown", self._out_abs, "its newer version")

    def _keep(self, path: str, source_abs: str, why: str) -> None:
        kept_abs = f"{self._kept_abs}/{path}"
        while os.path.lexists(kept_abs):
            kept_abs += "+"
        make_folder(os.path.dirname(kept_abs))
        move_aside(source_abs, kept_abs)
        self.notes.append(f"`{path}`: {why} is kept in {kept_abs}")

    def _clear_way(self, path: str) -> None:
        """Make the folders above a path, and keep what is in their place.

        A folder at the path itself is removed if it is empty, and otherwise kept.
        """
        folder_abs, inside = self._repo.root_abs, ""
        for name in path.split("/")[:-1]:
            folder_abs, inside = f"{folder_abs}/{name}", f"{inside}/{name}".lstrip("/")
            mode = os.lstat(folder_abs).st_mode if os.path.lexists(folder_abs) else 0
            if mode and not stat.S_ISDIR(mode):
                self._keep(inside, folder_abs, f"`{path}` needs a folder there; the file")
                mode = 0
            if not mode:
                os.mkdir(folder_abs)
        path_abs = f"{folder_abs}/{path.rpartition('/')[2]}"
        if os.path.isdir(path_abs) and not os.path.islink(path_abs):
            try:
                os.rmdir(path_abs)
            except OSError:
                self._keep(path, path_abs, "the folder in its place")


def _version_at(path_abs: str, repo: Repo) -> Version:
    """Return what is at a path; None if it is neither a file nor a link."""
    try:
        now = os.lstat(path_abs)
        if stat.S_ISLNK(now.st_mode):
            content = os.fsencode(os.readlink(path_abs))
        elif stat.S_ISREG(now.st_mode):
            with open(path_abs, "rb") as file:
                content = file.read()
        else:
            return None
    except OSError:
        return None
    hashed = hashlib.new(repo.object_format, b"blob %d\0" % len(content), usedforsecurity=False)
    hashed.update(content)
    return now.st_mode, hashed.hexdigest()


def _remove_empty(root_abs: str, folder: str) -> None:
    """Remove a folder and those above it, as far as they are empty."""
    while folder:
        try:
            os.rmdir(os.path.join(root_abs, folder))
        except OSError:
            return
        folder = os.path.dirname(folder)
