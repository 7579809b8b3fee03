"""The rescue folder: stashed work of the person, and the journal that restores it.

    rescue/journal     every path, what it was and what was put in its place; synced before any move
    rescue/saved/N     what the person had there, as it was
    rescue/shown/…     what is being committed, until it is put in place
    rescue/out/N       what was found in place when the person's was restored
    rescue/groups      the process groups of the gates that were started

The journal is there exactly as long as something may have to be restored. Texts without one, or
with one that is damaged, are named and left alone.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from gitgates.errors import StateError
from gitgates.record import Record
from gitgates.store.files import open_state, remove_file, remove_tree, replace_file, sync_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

VERSION = 2
_MARK = b"\ncrc32 "
# A file system without hard links, a file of somebody else's (fs.protected_hardlinks), too many.
_NO_LINK = (errno.EPERM, errno.ENOTSUP, errno.EMLINK)


class StashedPath(Record):
    """One stashed path of the working tree."""

    path: str
    saved: str = ""  # the number in saved/; empty: nothing was there
    blob: str = ""  # what is shown in its place; empty: nothing
    shown: str = ""  # `digest` of that
    mode: int = 0  # of that
    digest: str = ""  # of what is saved; empty: not known


class StashJournal(Record):
    """The write-ahead journal of a stash."""

    root_abs: str
    pid: int
    started: str  # for people
    entries: tuple[StashedPath, ...] = ()
    made_folders: tuple[str, ...] = ()  # those that are only there for what is shown
    git_locks: Mapping[str, int] = {}  # as in worktree/locks.py, with the next
    git_pid: int = 0
    token: str = ""  # what gates of this run have as GITGATES_RUN


class Rescue(Record):
    """A rescue folder."""

    folder_abs: str

    def at(self, *parts: str) -> str:
        """Return a path in it."""
        return "/".join((self.folder_abs, *parts))

    def is_in_use(self) -> bool:
        """Return whether something is stashed and not restored yet."""
        return os.path.lexists(self.at("journal")) or bool(self.texts())

    def texts(self) -> list[str]:
        """Return the absolute path of each file, link or folder that may be the person's."""
        found = []
        for name in ("saved", "out"):
            if os.path.isdir(self.at(name)):
                found += [self.at(name, text) for text in sorted(os.listdir(self.at(name)))]
        return found

    def write(self, journal: StashJournal) -> None:
        """Write and sync the journal.

        Raises: StateError where that is not possible.
        """
        try:
            os.makedirs(self.at("saved"), mode=0o700, exist_ok=True)
            os.makedirs(self.at("out"), mode=0o700, exist_ok=True)
            fields = journal._asdict()
            fields["entries"] = [tuple(entry) for entry in journal.entries]
            text = repr({"v": VERSION, **fields}).encode("ascii", "backslashreplace")
            content = text + (_checksum(text) if journal.entries else b"")
            replace_file(self.at("journal"), content)
            sync_folder(self.folder_abs)
        except OSError as error:
            raise StateError(
                f"{self.folder_abs}: the journal cannot be written: {error.strerror}",
                "Nothing was moved. Make room there, or commit with nothing unstaged.",
            ) from error

    def read(self) -> StashJournal:
        """Read the journal. Cold: only a run that did not end loads `ast`.

        Raises: StateError where it cannot be understood; nothing has been touched then.
        """
        import ast

        try:
            with open(self.at("journal"), "rb", opener=open_state) as file:
                text, mark, rest = file.read().partition(_MARK)
            fields = ast.literal_eval(text.decode("ascii"))
            is_whole = not fields["entries"] or mark + rest == _checksum(text)
            _require(is_whole, "it is damaged: its checksum is wrong")
            _require(fields.pop("v") == VERSION, "another version of gitgates wrote it")
            fields["entries"] = tuple(StashedPath(*plain) for plain in fields["entries"])
            return StashJournal(**fields)
        except (OSError, ValueError, SyntaxError, TypeError, KeyError, AttributeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StateError(
                f"{self.at('journal')}: cannot be read: {reason}",
                "It says where the unstaged work belongs that a run had put aside. "
                f"What was moved is in {self.at('saved')}; nothing there is touched:\n"
                + "".join(f"    {text}\n" for text in self.texts())
                + f"  Copy what you need to its place; then: rm -r '{self.folder_abs}'",
            ) from error

    def forget(self) -> str:
        """Remove the journal: everything is restored. Return what `discard` returns."""
        remove_file(self.at("journal"))  # a gate may have done that; we had read it before
        return self.discard()

    def discard(self) -> str:
        """Remove what is ours.

        A text that is still in the folder, whatever the reason, is not removed: the folder stays,
        under the name that is returned.
        """
        if not os.path.isdir(self.folder_abs):
            return ""
        for name in sorted(os.listdir(self.folder_abs)):
            if name in ("saved", "out"):
                continue
            if os.path.isdir(self.at(name)) and not os.path.islink(self.at(name)):
                remove_tree(self.at(name))
            else:
                os.unlink(self.at(name))
        try:
            for name in ("saved", "out"):
                if os.path.isdir(self.at(name)):
                    os.rmdir(self.at(name))
            os.rmdir(self.folder_abs)
        except OSError:
            left_abs = f"{self.folder_abs}-left-{os.getpid()}-{time.time_ns()}"
            os.rename(self.folder_abs, left_abs)
            return left_abs
        return ""

    def note_group(self, pid: int) -> None:
        """Record the process group of a gate.

        Raises: StateError where that is not possible: after a kill, nobody could end it.
        """
        try:
            with open(self.at("groups"), "ab", buffering=0, opener=open_state) as file:
                file.write(b"%d\n" % pid)
        except OSError as error:
            raise StateError(
                f"{self.at('groups')}: cannot be written: {error.strerror}",
                "The gates were ended, and nothing was decided. Make room there, and try again.",
            ) from error

    def groups(self) -> set[int]:
        """Return the recorded process groups."""
        try:
            with open(self.at("groups"), "rb", opener=open_state) as file:
                return set(map(int, file.read().split()))
        except (OSError, ValueError):
            return set()


def _checksum(text: bytes) -> bytes:
    import zlib  # a run that hides nothing, only notes git's locks, does without

    return _MARK + b"%08x\n" % zlib.crc32(text)


def _require(is_so: bool, why: str) -> None:  # noqa: FBT001 - as in `assert`
    if not is_so:
        raise ValueError(why)


def digest(path_abs: str) -> str:
    """Return size and checksum of a file or link; empty if it cannot be read, or is neither."""
    import zlib  # only a run that hides something pays for it

    try:
        mode = os.lstat(path_abs).st_mode
        if stat.S_ISLNK(mode):
            kind, content = "link of ", os.fsencode(os.readlink(path_abs))
        elif stat.S_ISREG(mode):
            kind, content = "", read_file(path_abs)
        else:
            return ""
    except OSError:
        return ""  # git could not read it either
    return f"{kind}{len(content)} bytes, CRC-32 {zlib.crc32(content):08x}"


def mode_of(path_abs: str) -> int | None:
    """Return the type and mode of a file, link or folder; None if there is none."""
    try:
        return os.lstat(path_abs).st_mode
    except OSError:
        return None


def read_file(path_abs: str) -> bytes:
    """Return the bytes of a file."""
    with open(path_abs, "rb") as file:
        return file.read()


def move_aside(source_abs: str, target_abs: str) -> None:
    """Move a file, link or folder to an unused name.

    On one file system this is a rename, so that the inode, its times and its other names stay; to
    another one the content is copied and synced first.

    Raises: OSError where it cannot be moved; then the source is still there.
    """
    try:
        os.rename(source_abs, target_abs)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source_abs, target_abs)
        os.unlink(source_abs)


def move_into_place(source_abs: str, target_abs: str) -> None:
    """Move a file or link to its place, without replacing anything.

    Raises: FileExistsError where somebody put something there first; then nothing has changed.
    """
    try:
        os.link(source_abs, target_abs, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno in _NO_LINK:  # which is also what a folder answers
            _rename_to_free(source_abs, target_abs)
            return
        if error.errno != errno.EXDEV:
            raise
        _copy(source_abs, target_abs)
    os.unlink(source_abs)


def _rename_to_free(source_abs: str, target_abs: str) -> None:
    # The second best: between the look and the rename lies a moment.
    if os.path.lexists(target_abs):
        raise FileExistsError(errno.EEXIST, "exists", target_abs)
    os.rename(source_abs, target_abs)


def partial_name(target_abs: str) -> str:
    """Return the temporary name of an incomplete copy."""
    folder, name = os.path.split(target_abs)
    return os.path.join(folder, f".{name[:200]}.gitgates-part")


def _copy(source_abs: str, target_abs: str) -> None:
    """Copy a file or link to an unused name, with its mode and times, and sync it.

    Under that name it is whole from the first moment: half a copy, left by a kill, could be taken
    for somebody's text.
    """
    found = os.lstat(source_abs)
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(source_abs), target_abs)
        return
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EXDEV, "is no file and lies on another file system", source_abs)
    part_abs = partial_name(target_abs)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        with open(source_abs, "rb") as source, open(os.open(part_abs, flags, 0o600), "wb") as part:
            while data := source.read(1 << 20):
                part.write(data)
            part.flush()
            os.fchmod(part.fileno(), stat.S_IMODE(found.st_mode))
            os.utime(part.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
            os.fsync(part.fileno())
        move_into_place(part_abs, target_abs)
        sync_folder(os.path.dirname(target_abs))
    finally:
        remove_file(part_abs)
