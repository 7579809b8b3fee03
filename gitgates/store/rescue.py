"""The rescue folder: what was moved out of the working tree, and the journal that puts it back.

    rescue/journal     every path, what it was and what was put in its place; synced before any move
    rescue/saved/N     what the person had there, as it was
    rescue/shown/…     what is being committed, until it is put in place
    rescue/out/N       what was found in place when the person's was put back
    rescue/groups      the process groups of the gates that were started

The journal is there exactly as long as something may have to be put back. Texts without one, or
with one that is damaged, are named and left alone.
"""

from __future__ import annotations

import os
import time

from gitgates.errors import StateError
from gitgates.record import Record
from gitgates.store.files import open_state, remove_tree, sync_folder

VERSION = 1
_MARK = b"\ncrc32 "


class Entry(Record):
    """One path of the working tree that is hidden."""

    path: str
    saved: str = ""  # the number in saved/; empty: nothing was there
    blob: str = ""  # what is shown in its place; empty: nothing
    # Of what is shown: inode, size, mtime_ns, mode. Where all are the same, nobody touched it.
    mark: tuple[int, int, int, int] = (0, 0, 0, 0)
    digest: str = ""  # `merging.digest` of what is saved; empty: not known


class Journal(Record):
    """What a hiding run does, written before it does it."""

    root_abs: str
    pid: int
    started: str  # for people
    entries: tuple[Entry, ...]
    made_folders: tuple[str, ...] = ()  # those that are only there for what is shown
    git_locks: tuple[
        tuple[str, int], ...
    ] = ()  # git's own lock files, each with the time of its last change
    git_pid: int = 0
    token: str = ""  # what gates of this run have as GITGATES_RUN


class Rescue(Record):
    """A rescue folder."""

    folder_abs: str

    def at(self, *parts: str) -> str:
        """Return a path in it."""
        return "/".join((self.folder_abs, *parts))

    def is_in_use(self) -> bool:
        """Tell whether something is hidden, or was and is not put back."""
        return os.path.lexists(self.at("journal")) or bool(self.texts())

    def texts(self) -> list[str]:
        """Return the absolute path of each file, link or folder that may be somebody's."""
        found = []
        for name in ("saved", "out"):
            if os.path.isdir(self.at(name)):
                found += [self.at(name, text) for text in sorted(os.listdir(self.at(name)))]
        return found

    def write(self, journal: Journal) -> None:
        """Write the journal so that it survives a loss of power.

        Raises: StateError where that is not possible.
        """
        try:
            os.makedirs(self.at("saved"), mode=0o700, exist_ok=True)
            os.makedirs(self.at("out"), mode=0o700, exist_ok=True)
            fields = journal._asdict()
            fields["entries"] = [tuple(entry) for entry in journal.entries]
            text = repr({"v": VERSION, **fields}).encode("ascii", "backslashreplace")
            with open(self.at("journal.new"), "wb", opener=open_state) as file:
                file.write(text + (_checksum(text) if journal.entries else b""))
                file.flush()
                os.fsync(file.fileno())
            os.rename(self.at("journal.new"), self.at("journal"))
            sync_folder(self.folder_abs)
        except OSError as error:
            raise StateError(
                f"{self.folder_abs}: the journal cannot be written: {error.strerror}",
                "Nothing was moved. Make room there, or commit with nothing unstaged.",
            ) from error

    def read(self) -> Journal:
        """Read the journal. Cold: only a run that did not end loads `ast`.

        Raises: StateError where it cannot be understood; nothing has been touched then.
        """
        import ast

        try:
            with open(self.at("journal"), "rb", opener=open_state) as file:
                text, mark, rest = file.read().partition(_MARK)
            fields = ast.literal_eval(text.decode("ascii"))
            _check_sum(text, mark + rest, fields["entries"])
            del fields["v"]  # 1, the only one so far
            fields["entries"] = tuple(Entry(*plain) for plain in fields["entries"])
            return Journal(**fields)
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
        """Take the journal away: everything is back. Return what `discard` returns."""
        if os.path.lexists(self.at("journal")):  # else a gate has removed it; we had read it before
            os.unlink(self.at("journal"))
        return self.discard()

    def discard(self) -> str:
        """Remove what is ours.

        A text that is still in the folder, whatever the reason, is not removed: the folder stays,
        under the name that is returned.
        """
        if not os.path.isdir(self.folder_abs):
            return ""
        for name in sorted(os.listdir(self.folder_abs)):
            if name not in ("saved", "out"):
                _remove(self.at(name))
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
        """Write down a process group, so that it can be told from another of the same number.

        Raises: StateError where that is not possible: after a kill, nobody could end it.
        """
        try:
            with open(self.at("groups"), "ab", buffering=0, opener=open_state) as file:
                file.write(b"%d %s\n" % (pid, identity(pid)))
        except OSError as error:
            raise StateError(
                f"{self.at('groups')}: cannot be written: {error.strerror}",
                "The gates were ended, and nothing was decided. Make room there, and try again.",
            ) from error

    def groups(self) -> list[tuple[int, bytes]]:
        """Return the process groups that were written down, with their identities."""
        try:
            with open(self.at("groups"), "rb", opener=open_state) as file:
                lines = [line.partition(b" ") for line in file.read().split(b"\n")[:-1]]
            return [(int(pid), who) for pid, _, who in lines]
        except (OSError, ValueError):
            return []


def _checksum(text: bytes) -> bytes:
    import zlib  # a run that hides nothing, only notes git's locks, does without

    return _MARK + b"%08x\n" % zlib.crc32(text)


def _check_sum(text: bytes, found: bytes, entries: object) -> None:
    if entries and _checksum(text) != found:
        raise ValueError("it is damaged: its checksum is wrong")


def identity(pid: int) -> bytes:
    """Return what tells a process from a later one of its number; empty where nothing does.

    Source: proc(5): the start time since boot, field 22 of /proc/PID/stat, and the boot's own id.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            started = file.read().rpartition(b")")[2].split()[19]
        with open("/proc/sys/kernel/random/boot_id", "rb", buffering=0) as file:
            return started + b"@" + file.read().strip()
    except (OSError, IndexError):
        return b""


def _remove(path_abs: str) -> None:
    if os.path.isdir(path_abs) and not os.path.islink(path_abs):
        remove_tree(path_abs)
    else:
        os.unlink(path_abs)
