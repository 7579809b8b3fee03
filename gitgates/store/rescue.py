"""The rescue folder: the person's stashed work, and the journal that restores it.

    rescue/journal     each path, what it was and what replaced it; synced before any move
    rescue/saved/N     the person's file, as it was
    rescue/shown/…     what is being committed, until it is put in place
    rescue/out/N       what was in place when the person's file was restored
    rescue/groups      the process groups of the started gates

The journal exists exactly as long as something may have to be restored. Files without a journal, or
with a damaged one, are reported and left alone.

    restored/TOKEN/N         a second link to a restored file, for a day
    restored/TOKEN/journal   that run's journal
    restored/TOKEN/killed    if that run was killed, and another one restored its files

A git command that read a tree while files were stashed may write it after they were restored; then
nothing else has their bytes (worktree/restored.py).
"""

from __future__ import annotations

import errno
import os
import stat
import time

from gitgates.core.errors import StateError
from gitgates.core.record import Record
from gitgates.store.files import (
    make_folder,
    open_state,
    remove_file,
    remove_tree,
    replace_file,
    sync_folder,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

VERSION = 2
KILLED = "killed"
_MARK = b"\ncrc32 "
# No hard links on this file system, somebody else's file (fs.protected_hardlinks), too many links.
_NO_LINK = (errno.EPERM, errno.ENOTSUP, errno.EMLINK)
RESTORED_S = 24 * 3600.0
_MOST_RESTORED = 50  # runs
_MOST_RESTORED_BYTES = 1 << 30  # of files that have no other link left
_LARGE = 1 << 20  # bytes of one run


class StashedPath(Record):
    """One stashed path of the working tree."""

    path: str
    saved: str = ""  # its number in saved/; empty: nothing was there
    blob: str = ""  # the staged content that is put in its place; empty: nothing
    staged_digest: str = ""  # `digest` of the staged content
    mode: int = 0  # of the staged content
    digest: str = ""  # of what is saved; empty: unknown


class StashJournal(Record):
    """The write-ahead journal of a stash."""

    root_abs: str
    pid: int
    started: str  # for people
    entries: tuple[StashedPath, ...] = ()
    made_folders: tuple[str, ...] = ()  # folders that exist only for what is shown
    git_locks: Mapping[str, int] = {}  # these two: see worktree/locks.py
    git_pid: int = 0
    token: str = ""  # GITGATES_RUN in this run's gates


class Rescue(Record):
    """A rescue folder."""

    folder_abs: str

    def at(self, *parts: str) -> str:
        """Return a path in the folder."""
        return "/".join((self.folder_abs, *parts))

    def is_in_use(self) -> bool:
        """Return whether something is stashed and not restored yet."""
        return os.path.lexists(self.at("journal")) or bool(self.texts())

    def texts(self) -> list[str]:
        """Return the absolute path of each file, link or folder that may be the person's."""
        paths = []
        for name in ("saved", "out"):
            if os.path.isdir(self.at(name)):
                paths += [self.at(name, text) for text in sorted(os.listdir(self.at(name)))]
        return paths

    def write(self, journal: StashJournal) -> None:
        """Write and sync the journal.

        Raises: StateError if that is not possible.
        """
        try:
            make_folder(self.at("saved"))
            make_folder(self.at("out"))
            replace_file(self.at("journal"), _as_bytes(journal))
            sync_folder(self.folder_abs)
        except OSError as error:
            raise StateError(
                f"{self.folder_abs}: the journal cannot be written: {error.strerror}",
                "Nothing was moved. Free some disk space, or commit with no unstaged changes.",
            ) from error

    def read(self) -> StashJournal:
        """Read the journal. Cold: only a run that did not end loads `ast`.

        Raises: StateError if it cannot be understood; then nothing was touched.
        """
        import ast

        try:
            with open(self.at("journal"), "rb", opener=open_state) as file:
                text, mark, rest = file.read().partition(_MARK)
            # First, because a later version may write anything else.
            written_version = text.removeprefix(b"{'v': ").partition(b",")[0]
            if written_version.isdigit() and int(written_version) > VERSION:
                raise self._other_version(int(written_version))
            fields = ast.literal_eval(text.decode("ascii"))
            version = fields.pop("v")
            # Journals without entries have no checksum, nor had the first versions.
            is_plain = not fields["entries"] or (version == 1 and not mark)
            is_whole = is_plain or mark + rest == _checksum(text)
            _require(is_whole, "it is damaged: its checksum is wrong")
            return _journal_of(version, fields)
        except (OSError, ValueError, SyntaxError, TypeError, KeyError, AttributeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise StateError(
                f"{self.at('journal')}: cannot be read: {reason}",
                f"It records where stashed files belong. They are in {self.at('saved')}, and "
                "are left unchanged:\n"
                + "".join(f"    {text}\n" for text in self.texts())
                + f"  Copy what you need back; then: rm -r '{self.folder_abs}'",
            ) from error

    def _other_version(self, version: int) -> StateError:
        return StateError(
            f"{self.at('journal')}: a newer gitgates wrote it (journal version {version}; this one "
            f"reads 1 to {VERSION})",
            "It records where stashed files belong, and is left unchanged. Run `gitgates "
            "recover` of that version or a later one.",
        )

    def forget(self, restored: Rescue) -> str:
        """Remove the journal, because everything is restored. Return what `discard` returns.

        If there are second links, the journal is moved to them.
        """
        try:
            os.rmdir(restored.folder_abs)  # unless there is a second link in it
        except OSError:
            set_aside(self.at("journal"), restored.at("journal"))
        else:
            remove_file(self.at("journal"))
        return self.discard()

    def discard(self) -> str:
        """Remove what gitgates owns.

        If a person's file is still in the folder, whatever the reason, the folder stays under the
        name that is returned.
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

        Raises: StateError if that is not possible, because after a kill nobody could end it.
        """
        try:
            with open(self.at("groups"), "ab", buffering=0, opener=open_state) as file:
                file.write(b"%d\n" % pid)
        except OSError as error:
            raise StateError(
                f"{self.at('groups')}: cannot be written: {error.strerror}",
                "The gates were interrupted, and no decision was made. Free some disk space, "
                "and try again.",
            ) from error

    def groups(self) -> set[int]:
        """Return the recorded process groups."""
        try:
            with open(self.at("groups"), "rb", opener=open_state) as file:
                return set(map(int, file.read().split()))
        except (OSError, ValueError):
            return set()


def restored_folder(state_abs: str, token: str) -> Rescue:
    """Return the folder for second links to the files that a run or a rollback restores."""
    return Rescue(f"{state_abs}/restored/{token or f'{os.getpid()}.{time.time_ns()}'}")


def prune_restored(state_abs: str, now_s: float | None = None, *, with_sizes: bool = True) -> int:
    """Remove the second links of old or too many runs; return of how many runs.

    `with_sizes`: also of too large ones, which must look at each file. What cannot be removed
    stays.
    """
    now = time.time() if now_s is None else now_s
    folder_abs, removed, unlinked = f"{state_abs}/restored", 0, 0
    try:
        for number, name in enumerate(sorted(os.listdir(folder_abs), key=restored_s, reverse=True)):
            run_abs = f"{folder_abs}/{name}"
            unlinked += _unlinked_bytes(run_abs) if with_sizes else 0
            is_much = number and (number >= _MOST_RESTORED or unlinked > _MOST_RESTORED_BYTES)
            if is_much or now - restored_s(name) > RESTORED_S:
                remove_tree(run_abs)
                removed += 1
    except OSError:
        return removed
    return removed


def restored_s(token: str) -> float:
    """Return when the run of a folder of second links began, by the folder's name."""
    nanoseconds = token.rpartition(".")[2]
    return int(nanoseconds) / 1e9 if nanoseconds.isdecimal() else 0.0


def is_large(journal: StashJournal) -> bool:
    """Return whether a run stashed so much that the sizes of all runs must be checked."""
    sizes = [entry.digest.partition(" ")[0] for entry in journal.entries]
    return sum(int(size) for size in sizes if size.isdecimal()) > _LARGE


def _unlinked_bytes(folder_abs: str) -> int:
    """Return the size of the files in a folder that have no other link."""
    stats = [entry.stat(follow_symlinks=False) for entry in os.scandir(folder_abs)]
    return sum(status.st_size for status in stats if status.st_nlink == 1)


def _as_bytes(journal: StashJournal) -> bytes:
    fields = journal._asdict()
    fields["entries"] = [tuple(entry) for entry in journal.entries]
    text = repr({"v": VERSION, **fields}).encode("ascii", "backslashreplace")
    return text + (_checksum(text) if journal.entries else b"")


def _journal_of(version: int, fields: dict[str, Any]) -> StashJournal:
    """Return a journal of any version so far; raises TypeError and others if it is not one.

    The first journals identified git's locks by inode; those are dropped.
    """
    if not isinstance(fields.get("git_locks", {}), dict):
        fields["git_locks"] = {}
    plain = fields["entries"]
    if version == 1:
        fields["entries"] = tuple(_first_entry(fields["root_abs"], entry) for entry in plain)
    else:
        fields["entries"] = tuple(StashedPath(*entry) for entry in plain)
    return StashJournal(**fields)


def _first_entry(root_abs: str, plain: tuple[Any, ...]) -> StashedPath:
    """Return an entry of version 1, which had the shown file's inode, size, time and mode."""
    path, saved, blob, mark, *saved_digest = plain
    path_abs, staged_digest = f"{root_abs}/{path}", ""
    try:
        now = os.lstat(path_abs)
        is_shown = (now.st_ino, now.st_size, now.st_mtime_ns, now.st_mode) == mark
        staged_digest = digest(path_abs) if blob and is_shown else ""
    except OSError:
        pass  # it does not exist
    return StashedPath(
        path, saved, blob, staged_digest=staged_digest, mode=mark[3], digest="".join(saved_digest)
    )


def _checksum(text: bytes) -> bytes:
    import zlib  # not needed by a run that stashes nothing and only records git's locks

    return _MARK + b"%08x\n" % zlib.crc32(text)


def _require(is_so: bool, why: str) -> None:  # noqa: FBT001 - as in `assert`
    if not is_so:
        raise ValueError(why)


def digest(path_abs: str) -> str:
    """Return the size and checksum of a file or link; empty if it is neither, or unreadable."""
    import zlib  # only needed by a run that stashes something

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

    On the same file system this is a rename, so the inode, its times and its other links stay; for
    another file system, the content is copied and synced first.

    Raises: OSError if it cannot be moved; then the source is still there.
    """
    try:
        os.rename(source_abs, target_abs)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source_abs, target_abs)
        os.unlink(source_abs)


def move_into_place(source_abs: str, target_abs: str, second_abs: str = "") -> None:
    """Move a file or link to its place, without replacing anything.

    `second_abs`: where a second link to it stays, if that is possible.

    Raises: FileExistsError if something is already there; then nothing has changed.
    """
    try:
        os.link(source_abs, target_abs, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno in _NO_LINK:  # also if it is a folder
            _rename_to_free(source_abs, target_abs, second_abs)
            return
        if error.errno != errno.EXDEV:
            raise
        _copy(source_abs, target_abs)
    set_aside(source_abs, second_abs)


def set_aside(source_abs: str, second_abs: str) -> None:
    """Move a file to where it stays; remove it if there is no such place."""
    if second_abs:
        try:
            os.rename(source_abs, second_abs)
        except OSError:
            pass  # no folder, a full disk
        else:
            return
    remove_file(source_abs)


def _rename_to_free(source_abs: str, target_abs: str, second_abs: str) -> None:
    # Second best: somebody could create the file between the check and the rename.
    if os.path.lexists(target_abs):
        raise FileExistsError(errno.EEXIST, "exists", target_abs)
    try:
        if second_abs and not os.path.lexists(second_abs):
            _copy_tree(source_abs, second_abs)
    except OSError:
        pass  # getting the work back matters more than the copy
    os.rename(source_abs, target_abs)


def _copy_tree(source_abs: str, target_abs: str) -> None:
    """Link or copy a folder's files into a new folder; copy a file or link.

    Anything else, such as a socket, is left out.
    """
    if not stat.S_ISDIR(os.lstat(source_abs).st_mode):
        _copy(source_abs, target_abs)
        return
    os.mkdir(target_abs, 0o700)
    for name in os.listdir(source_abs):
        try:
            os.link(f"{source_abs}/{name}", f"{target_abs}/{name}", follow_symlinks=False)
        except OSError:
            _copy_tree(f"{source_abs}/{name}", f"{target_abs}/{name}")


def partial_name(target_abs: str) -> str:
    """Return the temporary name of an incomplete copy."""
    folder, name = os.path.split(target_abs)
    return os.path.join(folder, f".{name[:200]}.gitgates-part")


def _copy(source_abs: str, target_abs: str) -> None:
    """Copy a file or link to an unused name, with its mode and times, and sync it.

    Under that name, it is complete from the start: half a copy, left by a kill, could be taken for
    somebody's file.
    """
    status = os.lstat(source_abs)
    if stat.S_ISLNK(status.st_mode):
        os.symlink(os.readlink(source_abs), target_abs)
        return
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EXDEV, "is not a file and is on another file system", source_abs)
    part_abs = partial_name(target_abs)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    try:
        with open(source_abs, "rb") as source, open(os.open(part_abs, flags, 0o600), "wb") as part:
            while data := source.read(1 << 20):
                part.write(data)
            part.flush()
            os.fchmod(part.fileno(), stat.S_IMODE(status.st_mode))
            os.utime(part.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
            os.fsync(part.fileno())
        move_into_place(part_abs, target_abs)
        sync_folder(os.path.dirname(target_abs))
    finally:
        remove_file(part_abs)
