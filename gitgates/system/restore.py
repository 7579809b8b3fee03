"""Put back what `hide` moved aside. Every step may be taken twice: a killed run leaves any of them.

What stands in the place of a hidden file is moved out and looked at. Where it is what we showed, it
has served; where somebody changed it, the change is merged into the person's text, and where that
conflicts, the person's text is in place and the other is kept, under a ref and as a file.
"""

from __future__ import annotations

import os
import stat

from gitgates.errors import GitError
from gitgates.record import Record
from gitgates.system import gitlocks
from gitgates.system.hide import mark_of
from gitgates.system.kept import REFS
from gitgates.system.moves import move_aside
from gitgates.system.moves import place as put

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitgates.system.git import Git
    from gitgates.system.rescue import Entry, Journal, Rescue

_ATTEMPTS = 100  # against a writer that writes the same path again and again


class Restored(Record):
    """What came back, and what else there is to say."""

    paths: tuple[str, ...]
    notes: tuple[str, ...]  # merges, conflicts: one line each


class Place(Record):
    """Where things are put back from, and how."""

    rescue: Rescue
    kept_abs: str  # the folder for texts that cannot be in their place
    step: Callable[[str], None]  # told each step before it is taken
    recovering: bool = False  # another run was killed, maybe long ago


class _Restorer:
    def __init__(self, git: Git, place: Place) -> None:
        self.git = git
        self.rescue = place.rescue
        self.place = place
        self.step = place.step
        self.paths: list[str] = []
        self.notes: list[str] = []
        self.number = 0

    def restore(self, entry: Entry, number: int) -> None:
        self.number = number
        path_abs = os.path.join(self.git.cwd_abs, entry.path)
        saved_abs = self.rescue.at("saved", entry.saved) if entry.saved else ""
        if saved_abs and not os.path.lexists(saved_abs):
            return  # not moved yet, or back already
        if saved_abs and _is_same(saved_abs, path_abs):
            os.unlink(saved_abs)  # linked back already, when we were killed
            return
        theirs = self._taken_out_before(entry) or self._take_out(entry, path_abs)
        if not saved_abs:
            if theirs:
                self._deleted_by_the_person(entry, theirs, path_abs)
        elif theirs and self._merge(entry, theirs, saved_abs, path_abs):
            self.notes.append(f"`{entry.path}`: changed meanwhile; the change is merged into yours")
        else:
            self._put_back(entry, saved_abs, path_abs)
            if theirs:
                self._keep(entry, theirs, "your text and the change contradict each other")
        self.paths.append(entry.path)

    def _deleted_by_the_person(self, entry: Entry, theirs: str, path_abs: str) -> None:
        """Decide on a file that the person had deleted and somebody else has written since."""
        if not self.place.recovering:
            self._keep(entry, theirs, "you had deleted it, and it was changed meanwhile")
            return
        # Long after a crash it may as well be the person's own new file: it stays.
        put(theirs, path_abs)
        self.notes.append(f"`{entry.path}`: was deleted, and written since; it stays")

    def _taken_out_before(self, entry: Entry) -> str:
        """Return what a run that was killed had taken out of this place, if it is somebody's."""
        out_abs = self.rescue.at("out", str(self.number))
        if not os.path.lexists(out_abs):
            return ""
        if os.path.lexists(os.path.join(self.git.cwd_abs, entry.path)):
            return ""  # and somebody wrote there again; `_take_out` keeps both
        return "" if self._drop_ours(entry, out_abs) else out_abs

    def _take_out(self, entry: Entry, path_abs: str) -> str:
        """Move out what is in place; return where it is if it is somebody's, else nothing."""
        out_abs = self.rescue.at("out", str(self.number))
        if os.path.lexists(out_abs) and not self._drop_ours(entry, out_abs):
            self._keep(entry, out_abs, "it was written while yours was put back")
        try:
            self.step("take-out")
            move_aside(path_abs, out_abs)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        return "" if self._drop_ours(entry, out_abs) else out_abs

    def _drop_ours(self, entry: Entry, out_abs: str) -> bool:
        """Remove what was taken out, if it is what we showed; tell whether it was."""
        if not entry.blob or not self._is_ours(entry, out_abs):
            return False
        os.unlink(out_abs)
        return True

    def _is_ours(self, entry: Entry, out_abs: str) -> bool:
        if mark_of(out_abs) == entry.mark:
            return True
        mode = os.lstat(out_abs).st_mode
        same_kind = stat.S_IFMT(mode) == stat.S_IFMT(entry.mark[3])
        if not same_kind or not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
            return False
        return _content(out_abs) == self._base(entry)

    def _base(self, entry: Entry) -> bytes:
        if stat.S_ISLNK(entry.mark[3]):
            return self.git.out("cat-file", "blob", entry.blob)
        return self.git.out("cat-file", "--filters", f"--path={entry.path}", entry.blob)

    def _put_back(self, entry: Entry, saved_abs: str, path_abs: str) -> None:
        for _attempt in range(_ATTEMPTS):
            try:
                os.makedirs(os.path.dirname(path_abs), exist_ok=True)
                self.step("put-back")
                put(saved_abs, path_abs)
            except (FileExistsError, NotADirectoryError):
                if again := self._take_out(entry, path_abs):
                    self._keep(entry, again, "it was written while yours was put back")
            else:
                return
        raise GitError(f"`{entry.path}` is written again and again; yours is in {saved_abs}")

    def _merge(self, entry: Entry, theirs_abs: str, saved_abs: str, path_abs: str) -> bool:
        """Merge three ways; False where that is not possible without a conflict."""
        modes = [os.lstat(path).st_mode for path in (theirs_abs, saved_abs)]
        if not entry.blob or not all(stat.S_ISREG(mode) for mode in (*modes, entry.mark[3])):
            return False
        base_abs = self.rescue.at(f"base-{self.number}")
        merged_abs = self.rescue.at(f"merged-{self.number}")
        with open(base_abs, "wb") as file:
            file.write(self._base(entry))
        done = self.git.ask("merge-file", "-p", "-q", saved_abs, base_abs, theirs_abs)
        if done.exit_status:
            return False
        with open(merged_abs, "wb") as file:
            file.write(done.stdout)
            os.fchmod(file.fileno(), stat.S_IMODE(modes[1]))
            file.flush()
            os.fsync(file.fileno())
        try:
            self.step("put-merged")
            put(merged_abs, path_abs)
        except FileExistsError:
            return False
        os.unlink(saved_abs)  # its text is in the merged file
        return True

    def _keep(self, entry: Entry, theirs_abs: str, why: str) -> None:
        """Keep somebody's text beside: as a file, and where git can under a ref; and say so."""
        kept_abs = os.path.join(self.place.kept_abs, entry.path)
        while os.path.lexists(kept_abs):
            kept_abs += "+"
        os.makedirs(os.path.dirname(kept_abs), mode=0o700, exist_ok=True)
        move_aside(theirs_abs, kept_abs)
        where = kept_abs
        if stat.S_ISREG(os.lstat(kept_abs).st_mode):
            stored = self.git.ask("hash-object", "-w", "--no-filters", "--", kept_abs)
            blob = stored.stdout.decode().strip()
            name = f"{REFS}/{os.path.basename(self.place.kept_abs)}/{blob[:12]}"
            if not stored.exit_status and not self.git.ask("update-ref", name, blob).exit_status:
                where += f" and {name}"
        self.notes.append(f"`{entry.path}`: {why}; the other text is in {where}")


def restore(git: Git, journal: Journal, place: Place) -> Restored:
    """Put everything back, and take the journal away when that is done.

    Raises: OSError or GitError where something cannot be put back; what is left stays recoverable.
    """
    restorer = _Restorer(git, place)
    for number, entry in reversed(list(enumerate(journal.entries))):
        restorer.restore(entry, number)
        _remove_made(journal, git.cwd_abs, entry)
    restorer.notes += gitlocks.clear((journal.git_locks, journal.git_pid))
    place.step("forget")
    place.rescue.forget()
    return Restored(tuple(reversed(restorer.paths)), tuple(restorer.notes))


def _remove_made(journal: Journal, root_abs: str, entry: Entry) -> None:
    """Remove the folders that were only made to show something, as soon as they are empty."""
    for folder in sorted(journal.made_folders, key=len, reverse=True):
        if entry.path.startswith(f"{folder}/"):
            try:
                os.rmdir(os.path.join(root_abs, folder))
            except OSError:
                continue


def _is_same(one_abs: str, other_abs: str) -> bool:
    try:
        return os.path.samestat(os.lstat(one_abs), os.lstat(other_abs))
    except OSError:
        return False


def _content(path_abs: str) -> bytes:
    if os.path.islink(path_abs):
        return os.fsencode(os.readlink(path_abs))
    with open(path_abs, "rb") as file:
        return file.read()
