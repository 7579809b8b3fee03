"""Put the files of a worktree, its index, stash and branches, as an undo wants them.

The journal says what each path is and what it is to be. Every step can be taken again, because an
undo may be killed at any: `gitgates recover` finishes it. Nothing is renamed over a file, and
nothing is removed that no state has: it is moved to `kept`, and named.

undo.journal   of one worktree, as long as an undo is under way
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time

from gitgates.core.errors import GitError, StateError
from gitgates.core.limits import parse_json
from gitgates.core.record import Record
from gitgates.features.undo.git_state import branch_pack, stash_pack
from gitgates.features.undo.points import Author, record
from gitgates.features.undo.private_git import PrivateGit
from gitgates.features.undo.states import load
from gitgates.features.undo.undoing import RefChange, Target, as_plain, from_plain
from gitgates.store.files import make_folder, read_state, remove_file, replace_file, sync_files
from gitgates.store.rescue import move_aside, move_into_place
from gitgates.worktree.isolate import pause_point

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.features.undo.points import SavePoint
    from gitgates.features.undo.settings import UndoSettings
    from gitgates.features.undo.states import State
    from gitgates.features.undo.undoing import Version
    from gitgates.git.repo import Repo

UNDONE_REFS = "refs/gitgates/undone"
_ATTEMPTS = 20  # against a writer that writes the same path again and again


class Undo(Record):
    """An undo: what it is for, and what is to be done. The fields of its journal."""

    state: str  # the id of the one before it
    wanted: str  # of the one that it goes back to
    targets: Mapping[str, Target]
    author: Author
    refs: RefChange = RefChange()
    folders: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())  # empty ones: to make, to remove
    with_index: bool = False  # the index is put back as well
    with_branch: bool = False  # HEAD and branches are moved back as well


def put_back(repo: Repo, settings: UndoSettings, undo: Undo) -> tuple[SavePoint | None, list[str]]:
    """Do what an undo wants; return the point that it is itself, and notes for the person.

    Raises: StateError that names what could not be put back, when all else is; GitError, OSError.
    """
    plain = {**undo._asdict(), "targets": as_plain(undo.targets), "author": list(undo.author)}
    replace_file(_journal_abs(repo), os.fsencode(json.dumps(plain, ensure_ascii=False)))
    return _finish(repo, settings, undo)


def is_under_way(repo: Repo) -> bool:
    """Return whether an undo was killed, and is not finished."""
    return os.path.exists(_journal_abs(repo))


def finish(repo: Repo, settings: UndoSettings) -> list[str]:
    """Finish an undo that was killed; return notes. Raises: as `put_back`."""
    content = read_state(_journal_abs(repo))
    if content is None:
        return []
    try:
        plain = parse_json(os.fsdecode(content))
        plain["targets"] = from_plain(plain["targets"])
        author = Author(*plain["author"])
        plain["author"] = author._replace(undoes=tuple(author.undoes))
        plain["refs"] = RefChange(*plain["refs"])
        plain["folders"] = tuple(map(tuple, plain["folders"]))
        undo = Undo(**plain)
    except (ValueError, TypeError, KeyError) as error:
        raise StateError(
            f"{_journal_abs(repo)}: is damaged: {error}",
            f"Look at the files, then remove it: rm '{_journal_abs(repo)}'",
        ) from error
    _point, notes = _finish(repo, settings, undo)
    return ["an undo was interrupted, and is finished now", *notes]


def _journal_abs(repo: Repo) -> str:
    return f"{repo.state_abs}/undo.journal"


def _finish(repo: Repo, settings: UndoSettings, undo: Undo) -> tuple[SavePoint | None, list[str]]:
    wanted, before = load(repo, undo.wanted), load(repo, undo.state)
    files = _Files(repo, before)
    back, away = undo.folders
    for folder in away:  # first: a file may be in the place of one
        _remove_empty(repo.root_abs, folder)
    failed = files.put_all(undo.targets)
    failed += files.make_folders(back)
    notes = files.notes
    for restore in (_restore_stash, _restore_branches, _restore_head, _restore_index):
        try:
            notes += restore(repo, undo, wanted, before)
        except (GitError, StateError, OSError) as error:
            failed.append(str(error))
    if failed:
        what = "not everything could be put back:\n  " + "\n  ".join(failed)
        hint = f"Fix that, and run: gitgates recover. To leave it: rm '{_journal_abs(repo)}'"
        raise StateError(what, hint).with_notes(notes)
    point = record(repo, settings, undo.author)
    files.step("forget")
    remove_file(_journal_abs(repo))
    return point, notes


class _Files:
    """The files of a worktree that is being put back."""

    def __init__(self, repo: Repo, before: State) -> None:
        self._repo, self._before = repo, before
        self._private = PrivateGit(repo)
        self.step = pause_point(repo.env)
        self.notes: list[str] = []
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self._kept_abs = f"{repo.state_abs}/kept/{stamp}-{os.getpid()}"
        self._part_abs = f"{repo.state_abs}/undo.part"
        self._out_abs = f"{repo.state_abs}/undo.out"

    def put_all(self, targets: Mapping[str, Target]) -> list[str]:
        """Put each path; return what could not be put back."""
        failed, put = list[str](), list[str]()
        # What goes may be where a folder is to be.
        for path in sorted(targets, key=lambda path: targets[path].version is not None):
            target = targets[path]
            try:
                # Also if it could not be kept just now: the next one must not replace it.
                self._keep_left_out(targets)
                self._put(path, target)
            except (OSError, StateError) as error:
                failed.append(f"`{path}`: {error}")
                continue
            if target.version and stat.S_ISREG(target.version[0]):
                put.append(os.path.join(self._repo.root_abs, path))
            if target.is_merged:
                self.notes.append(f"`{path}`: was changed since; that change is kept, and merged")
        try:
            self._keep_left_out(targets)
        except OSError as error:
            failed.append(f"{self._out_abs}: {error}")
        sync_files(put)
        return failed

    def make_folders(self, folders: tuple[str, ...]) -> list[str]:
        """Make the folders that were empty; return what could not be made."""
        failed = []
        for folder in folders:
            try:
                os.makedirs(os.path.join(self._repo.root_abs, folder), exist_ok=True)
            except (FileExistsError, NotADirectoryError):
                self.notes.append(f"`{folder}`: is no folder again: a file is in its place")
            except OSError as error:
                failed.append(f"`{folder}`: {error}")
        return failed

    def _put(self, path: str, target: Target) -> None:
        path_abs = os.path.join(self._repo.root_abs, path)
        remove_file(self._part_abs)
        for _attempt in range(_ATTEMPTS):
            if _version_at(path_abs, self._repo) == target.version:
                return
            self._clear_way(path)
            if target.version:
                self._make_part(*target.version)
            self._move_out(path, target)
            if target.version is None:
                _remove_empty(self._repo.root_abs, os.path.dirname(path))
                return
            self.step("put-back")
            try:
                move_into_place(self._part_abs, path_abs)
            except FileExistsError:
                continue  # somebody was quicker; that is looked at as well
            return
        raise StateError("it is modified continuously")

    def _make_part(self, mode: int, blob: str) -> None:
        """Make the new file, or link, beside our state: in its place it appears whole."""
        content = self._private.read_blob(blob)
        remove_file(self._part_abs)
        if stat.S_ISLNK(mode):
            os.symlink(content, os.fsencode(self._part_abs))
            return
        fd = os.open(self._part_abs, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(content)
            file.flush()
            os.fchmod(fd, stat.S_IMODE(mode))

    def _move_out(self, path: str, target: Target) -> None:
        """Move out what is at a path; keep it if no state has it, or a conflict is to be shown."""
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
        why = "its newer version" if target.conflicts else "it was written meanwhile, and"
        self._keep(path, self._out_abs, why)

    def _keep_left_out(self, targets: Mapping[str, Target]) -> None:
        """Keep what a killed undo has moved out, if no state has it."""
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
        """Make the folders above a path; what is in their place is kept: no state has a file there.

        A folder at the path itself is removed if it is empty, and otherwise kept.
        """
        folder_abs, inside = self._repo.root_abs, ""
        for name in path.split("/")[:-1]:
            folder_abs, inside = f"{folder_abs}/{name}", f"{inside}/{name}".lstrip("/")
            mode = os.lstat(folder_abs).st_mode if os.path.lexists(folder_abs) else 0
            if mode and not stat.S_ISDIR(mode):
                self._keep(inside, folder_abs, f"`{path}` needs a folder there; it")
                mode = 0
            if not mode:
                os.mkdir(folder_abs)
        path_abs = f"{folder_abs}/{path.rpartition('/')[2]}"
        if os.path.isdir(path_abs) and not os.path.islink(path_abs):
            try:
                os.rmdir(path_abs)
            except OSError:
                self._keep(path, path_abs, "a folder was in its place, and")


def _version_at(path_abs: str, repo: Repo) -> Version:
    """Return what is at a path; None for nothing, or neither a file nor a link."""
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


# The stash, branches, HEAD, the index


def _restore_stash(repo: Repo, undo: Undo, _wanted: State, _before: State) -> list[str]:
    """Store the stash entries again that are gone. None is taken away."""
    listed = repo.git.ask("log", "--walk-reflogs", "--format=%H", "refs/stash", "--")
    present, notes = listed.stdout.decode().split(), []
    for commit, message in reversed(undo.refs.stash):
        if commit not in present:
            PrivateGit(repo).unpack(stash_pack(commit))
            repo.git.out("stash", "store", "--message", message, commit)
            notes.append(f"the stash entry is back: {message}")
    return notes


def _restore_branches(repo: Repo, undo: Undo, _wanted: State, _before: State) -> list[str]:
    """Make the branches again that are gone; with `--branch`, move the others back as well.

    What somebody else has moved since stays, and what another worktree has checked out.
    """
    notes = []
    ask = ("for-each-ref", "--format=%(objectname) %(refname) %(worktreepath)", "refs/heads")
    fields = (line.split(" ", 2) for line in repo.git.lines(*ask))
    present = {each[1]: (each[0], each[2]) for each in fields if each[2:]}
    own_abs = os.path.realpath(repo.root_abs)
    for ref, (left, commit) in undo.refs.branches.items():
        current, used_abs = present.get(ref, ("", ""))
        if current == commit or not commit:
            continue
        name = ref.removeprefix("refs/heads/")
        if not current:
            if repo.git.ask("cat-file", "-e", f"{commit}^{{commit}}").exit_status:
                PrivateGit(repo).unpack(branch_pack(commit))
            repo.git.out("update-ref", ref, commit, "0" * len(commit))
            notes.append(f"the branch `{name}` is back at {commit[:12]}")
        elif undo.with_branch and os.path.realpath(used_abs or own_abs) != own_abs:
            notes.append(f"`{name}` stays: it is checked out in {used_abs}")
        elif undo.with_branch and current != left:
            commits = _commits_between(repo, left, current) if left else ""
            what = f" has got {commits}" if commits else " was moved"
            notes.append(f"`{name}`{what} since, and stays at {current[:12]}")
        elif undo.with_branch:
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
            kept = f"{UNDONE_REFS}/{stamp}-{current[:12]}/{name}"
            repo.git.out("update-ref", kept, current)
            repo.git.out("update-ref", "-m", "gitgates undo", ref, commit, current)
            notes.append(f"`{name}` is back at {commit[:12]}; {current[:12]} is in {kept}")
        elif commits := _commits_between(repo, commit, current):
            notes.append(f"`{name}` keeps {commits}; to move it back: --branch")
    return notes


def _commits_between(repo: Repo, old: str, new: str) -> str:
    """Return the commits that a branch has got, as a text; empty if there are none."""
    asked = repo.git.ask("log", "--format=%h %s", "--max-count=6", f"{old}..{new}", "--")
    lines = os.fsdecode(asked.stdout).splitlines()
    return ", ".join([*(f"“{line}”" for line in lines[:5]), *(["…"] if lines[5:] else [])])


def _restore_head(repo: Repo, undo: Undo, _wanted: State, _before: State) -> list[str]:
    now = os.fsdecode(repo.git.ask("symbolic-ref", "--quiet", "HEAD").stdout).strip() or repo.head
    left, place = undo.refs.head or ("", now)
    if place in (now, ""):
        return []
    shown = place.removeprefix("refs/heads/") if "/" in place else place[:12]
    if not undo.with_branch:
        return [f"HEAD was at {shown}; to go back to it: --branch"]
    if now != left:
        return [f"HEAD was at {shown}; it was moved since, and stays"]
    if "/" in place:
        repo.git.out("symbolic-ref", "-m", "gitgates undo", "HEAD", place)
    else:
        repo.git.out("update-ref", "--no-deref", "-m", "gitgates undo", "HEAD", place)
    return [f"HEAD is at {shown} again"]


def _restore_index(repo: Repo, undo: Undo, wanted: State, before: State) -> list[str]:
    if not undo.with_index:
        is_other = wanted.index_entries != before.index_entries
        return ["the index is left as it is; to put it back: --index"] if is_other else []
    if not wanted.index_blob:
        return ["there was no index"]
    private = PrivateGit(repo)
    if wanted.staged:
        private.unpack(wanted.staged)
    index_abs = f"{repo.git_dir_abs}/index"
    # As git itself does, so that no git command writes at the same time.
    fd = os.open(f"{index_abs}.lock", os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(fd, "wb") as file:
            file.write(private.read_blob(wanted.index_blob))
        os.rename(f"{index_abs}.lock", index_abs)
    except BaseException:
        remove_file(f"{index_abs}.lock")
        raise
    return []
