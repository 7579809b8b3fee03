"""Put back what `hide` moved aside. Every step may be taken twice: a killed run leaves any of them.

What stands in the place of a hidden file is moved out and looked at. Where it is what we showed,
it has served; where somebody changed it, the change is merged into the person's text (and that kept
as it was, too); where that conflicts, the person's text is in place and the other is kept. Nothing
that may be somebody's is ever removed, only moved to `kept`, and named.

One path that cannot be put back does not hold up the others.
"""

from __future__ import annotations

import os
import stat

from gitgates.errors import GitgatesError, StateError
from gitgates.git import locks as gitlocks
from gitgates.git.merge_texts import Contents, digest, fingerprint, is_torn, merge
from gitgates.record import Record
from gitgates.store.moves import move_aside, part_of
from gitgates.store.moves import place as put

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.git.run import Git
    from gitgates.store.rescue import Entry, Journal, Rescue
    from gitgates.worktree.kept import Keeper

_ATTEMPTS = 20  # against a writer that writes the same path again and again


class Restored(Record):
    """What came back, and what else there is to say."""

    paths: tuple[str, ...]
    notes: tuple[str, ...]  # merges, conflicts: one line each
    damaged: tuple[str, ...] = ()  # what could not come back as it was: one line each


class Place(Record):
    """Where things are put back from, and how."""

    rescue: Rescue
    keeper: Keeper  # of texts that cannot be in their place
    step: Callable[[str], None]  # told each step before it is taken
    shown: Mapping[str, int] = {}  # path → `fingerprint` of what this run showed; else unknown
    # path → the gate that changed it and ended by itself, and whether it says that it writes
    changed_by: Mapping[str, tuple[str, bool]] = {}
    recovering: bool = False  # another run was killed, maybe long ago


class _Restorer:
    def __init__(self, git: Git, place: Place) -> None:
        self.git = git
        self.rescue = place.rescue
        self.place = place
        self.step = place.step
        self.keep = place.keeper.keep
        self.contents = Contents(git)
        self.paths: list[str] = []
        self.damaged: list[str] = []

    def restore(self, entry: Entry, number: int) -> None:
        path_abs = os.path.join(self.git.cwd_abs, entry.path)
        saved_abs = self.rescue.at("saved", entry.saved) if entry.saved else ""
        _unlink(part_of(path_abs))
        self._keep_leftovers(entry, number)
        if saved_abs and not os.path.lexists(saved_abs):
            self._look_for_lost(entry, path_abs, saved_abs)
            return  # not moved yet, or back already
        if saved_abs and _is_same(saved_abs, path_abs):
            os.unlink(saved_abs)  # linked back already, when we were killed
            return
        if self.place.recovering and entry.digest not in ("", digest(saved_abs)):
            self._keep_damaged(entry, saved_abs)
            return
        self._clear_way(entry.path)
        if entry.blob and saved_abs and not self.place.recovering and _mode(path_abs) is None:
            how = self._how(entry)
            self.place.keeper.notes.append(f"`{entry.path}`: was deleted {how}; yours is back")
        theirs_abs = self._take_out(entry, number, saved_abs)
        if not saved_abs:
            self._person_had_deleted(entry, theirs_abs, path_abs)
        elif not (theirs_abs and self._merge(entry, theirs_abs, saved_abs)):
            if theirs_abs:
                why = f"changed {self._how(entry)} where you did; your text is in place"
                self.keep(entry.path, theirs_abs, why)
            self._put_back(entry, saved_abs, number)
        self.paths.append(entry.path)

    def _look_for_lost(self, entry: Entry, path_abs: str, saved_abs: str) -> None:
        """Note a file of the person's that is neither in its place nor where it was moved to."""
        there = "nothing is in its place"
        if _mode(path_abs) is not None:
            if not entry.blob or not (
                _has_mark(path_abs, entry)
                or (digest(path_abs) != entry.digest and self._is_ours(entry, path_abs))
            ):
                return
            there = "in its place is what was being committed"
        self.damaged.append(f"`{entry.path}`: yours is gone: there is no {saved_abs}; {there}")

    def _keep_damaged(self, entry: Entry, saved_abs: str) -> None:
        """Keep a file that is not as it was when it was moved; what is in its place stays."""
        found = digest(saved_abs) or "no file"
        why = f"yours is damaged ({found}; it was {entry.digest}) and was not put back"
        self.keep(entry.path, saved_abs, why, what="what is left of it")
        self.damaged.append(self.place.keeper.notes.pop())

    def _keep_leftovers(self, entry: Entry, number: int) -> None:
        """Keep what a run that was killed had taken out of this place."""
        for name in sorted(os.listdir(self.rescue.at("out"))):
            if name.partition(".")[0] == str(number):
                out_abs = self.rescue.at("out", name)
                if not self._drop_ours(entry, out_abs):
                    self.keep(entry.path, out_abs, "it was written while yours was put back")

    def _clear_way(self, path: str) -> None:
        """Keep what stands where this path needs a folder: a file, or a link to elsewhere."""
        parts = path.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            folder_abs = os.path.join(self.git.cwd_abs, folder)
            mode = _mode(folder_abs)
            if mode is not None and not stat.S_ISDIR(mode):
                self.keep(folder, folder_abs, f"`{path}` needs a folder there")
        os.makedirs(os.path.join(self.git.cwd_abs, *parts[:-1]), exist_ok=True)

    def _take_out(self, entry: Entry, number: int, saved_abs: str = "") -> str:
        """Move out what is in place; return where it is if it is somebody's, else nothing."""
        path_abs = os.path.join(self.git.cwd_abs, entry.path)
        out_abs = self.rescue.at("out", f"{number}.{len(os.listdir(self.rescue.at('out')))}")
        self.step("take-out")
        try:
            move_aside(path_abs, out_abs)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        if self._drop_ours(entry, out_abs):
            return ""
        if saved_abs and self.contents.are_same(out_abs, saved_abs):
            os.unlink(out_abs)  # a copy of the person's own, from before it was moved
            return ""
        return out_abs

    def _drop_ours(self, entry: Entry, out_abs: str) -> bool:
        """Remove what was taken out, if it is what we showed; tell whether it was."""
        if not entry.blob or not self._is_ours(entry, out_abs):
            return False
        self._carry_mode(entry, out_abs)
        os.unlink(out_abs)
        return True

    def _is_ours(self, entry: Entry, out_abs: str) -> bool:
        if entry.path in self.place.shown:
            return fingerprint(out_abs) == self.place.shown[entry.path]
        return _has_mark(out_abs, entry) or self.contents.is_blob(out_abs, entry)

    def _carry_mode(self, entry: Entry, out_abs: str) -> None:
        """Carry an execute bit that somebody set or took over to the person's file."""
        theirs, shown = os.lstat(out_abs).st_mode, entry.mark[3]
        saved_abs = self.rescue.at("saved", entry.saved)
        if not entry.saved or (theirs ^ shown) & 0o111 == 0 or not os.path.isfile(saved_abs):
            return
        os.chmod(saved_abs, stat.S_IMODE(os.lstat(saved_abs).st_mode) & ~0o111 | theirs & 0o111)
        self.place.keeper.notes.append(f"`{entry.path}`: its execute bit was changed meanwhile")

    def _person_had_deleted(self, entry: Entry, theirs_abs: str, path_abs: str) -> None:
        """Decide on a file that the person had deleted and somebody else has written since."""
        if not theirs_abs:
            return
        if not self.place.recovering:
            why = f"you had deleted it, and it was changed {self._how(entry)}"
            self.keep(entry.path, theirs_abs, why)
            return
        # Long after a crash it may as well be the person's own new file: it stays.
        put(theirs_abs, path_abs)
        self.place.keeper.notes.append(f"`{entry.path}`: was deleted, and written since; it stays")

    def _how(self, entry: Entry) -> str:
        gate, writes = self.place.changed_by.get(entry.path, ("", False))
        if not gate:
            return "meanwhile"
        return f"by gate `{gate}`" if writes else f"while `{gate}` ran"

    def _put_back(self, entry: Entry, saved_abs: str, number: int) -> None:
        path_abs = os.path.join(self.git.cwd_abs, entry.path)
        for _attempt in range(_ATTEMPTS):
            self.step("put-back")
            try:
                put(saved_abs, path_abs)
            except (FileExistsError, FileNotFoundError, NotADirectoryError):
                self._clear_way(entry.path)
                if again_abs := self._take_out(entry, number):
                    self.keep(entry.path, again_abs, "it was written while yours was put back")
            else:
                return
        raise StateError(f"`{entry.path}` is written again and again; yours is in {saved_abs}")

    def _merge(self, entry: Entry, theirs_abs: str, saved_abs: str) -> bool:
        """Put both changes in place; False where that is not possible without a conflict."""
        if not all(os.path.isfile(p) and not os.path.islink(p) for p in (theirs_abs, saved_abs)):
            return False
        base = self.contents.blob(entry)
        gate, writes = self.place.changed_by.get(entry.path, ("", False))
        if base is None or (not gate and is_torn(theirs_abs, base)):
            return False
        if not writes and self.contents.is_head(theirs_abs, entry):
            return False
        merged_abs = self.rescue.at("merged")
        _unlink(merged_abs)
        if not merge(self.git, (saved_abs, base, theirs_abs), merged_abs):
            return False
        self.step("put-merged")
        try:
            put(merged_abs, os.path.join(self.git.cwd_abs, entry.path))
        except OSError:
            return False
        why = f"changed {self._how(entry)}; the change is merged into yours"
        self.keep(entry.path, saved_abs, why, what="yours as it was")
        os.unlink(theirs_abs)
        return True


def restore(git: Git, journal: Journal, place: Place) -> Restored:
    """Put everything back, and take the journal away when that is done.

    Raises: StateError that names what cannot be put back, and where it is; everything else is back.
    """
    restorer = _Restorer(git, place)
    failed: list[str] = []
    os.makedirs(place.rescue.at("out"), mode=0o700, exist_ok=True)
    made = frozenset(journal.made_folders)
    for number, entry in reversed(list(enumerate(journal.entries))):
        try:
            restorer.restore(entry, number)
        except (OSError, GitgatesError) as error:
            where = f"; yours is in {place.rescue.at('saved', entry.saved)}" if entry.saved else ""
            failed.append(f"`{entry.path}` cannot be put back: {error}{where}")
        _remove_made(git.cwd_abs, entry.path, made)
    notes = (*place.keeper.notes, *gitlocks.clear((journal.git_locks, journal.git_pid)))
    if failed:
        hint = "Mend that, and run: gitgates recover"
        raise StateError("\n".join(failed), hint).with_notes(list(notes))
    place.step("forget")
    if left_abs := place.rescue.forget():
        notes = (*notes, f"files that no run of gitgates put there are in {left_abs}")
    return Restored(tuple(reversed(restorer.paths)), notes, tuple(restorer.damaged))


def _remove_made(root_abs: str, path: str, made: frozenset[str]) -> None:
    """Remove the folders that were only made to show something, as soon as they are empty."""
    folder = os.path.dirname(path)
    while folder in made:
        try:
            os.rmdir(os.path.join(root_abs, folder))
        except OSError:
            return
        folder = os.path.dirname(folder)


def _has_mark(path_abs: str, entry: Entry) -> bool:
    found = os.lstat(path_abs)
    return (found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode) == entry.mark


def _is_same(one_abs: str, other_abs: str) -> bool:
    try:
        return os.path.samestat(os.lstat(one_abs), os.lstat(other_abs))
    except OSError:
        return False


def _mode(path_abs: str) -> int | None:
    try:
        return os.lstat(path_abs).st_mode
    except OSError:
        return None


def _unlink(path_abs: str) -> None:
    try:
        os.unlink(path_abs)
    except OSError:
        return
