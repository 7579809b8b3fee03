"""Append-only logs, one JSON object per line: session journals, the ledger, messages.

Nothing is ever rewritten; a journal's entries are folded into a state (journal/entries.py). Hooks
run in parallel and may be killed at any time, so each append is one write under the file's lock, a
reader waits for a write in progress, and a torn line is skipped.
"""

from __future__ import annotations

import errno
import os
import time
import zlib

from gitgates.core.lean_json import dumps, loads
from gitgates.store.files import lock_fd, lock_file, make_folder, open_state, unlock_fd

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    Fact: TypeAlias = dict[str, Any]

VERSION = 1
FOLDER = "sessions"
LEDGER = "ledger.jsonl"
LOCK_WAIT_S = 3.0  # a lock is held for one write, unless its process hangs
_LONGEST_NAME = 80
_UNKNOWN = "unknown.session"  # not a session's name, which has no dot, or ends in hex digits


def append_lines(path_abs: str, make: Callable[[int, int], bytes]) -> None:
    """Append whole lines to a file, all of them or none; other appends wait.

    `make` gets the locked file and its size, and returns the lines.

    Raises: OSError if they cannot be written.
    """
    fd = _open(path_abs)
    try:
        if not lock_fd(fd, wait_s=LOCK_WAIT_S):
            raise OSError(errno.ETIMEDOUT, "another process holds its lock", path_abs)
        size = os.fstat(fd).st_size
        lines = make(fd, size)
        if size and os.pread(fd, 1, size - 1) != b"\n":
            lines = b"\n" + lines  # the last writer was killed while writing
        if os.write(fd, lines) != len(lines):
            os.ftruncate(fd, size)
            raise OSError(errno.ENOSPC, "no space left on the device", path_abs)
    finally:
        os.close(fd)


def read_lines(path_abs: str, start: int = 0) -> bytes:
    """Return the bytes of a log from `start` on; empty if it does not exist.

    Raises: OSError if it cannot be read.
    """
    try:
        with open(path_abs, "rb", buffering=0, opener=open_state) as file:
            # Otherwise, half of a write in progress might be seen.
            lock_fd(file.fileno(), shared=True, wait_s=LOCK_WAIT_S)
            file.seek(start)
            return file.read()
    except FileNotFoundError:
        return b""


def lines_of(path_abs: str) -> Iterator[bytes]:
    """Yield a log's lines with their line ends, without reading all of it into memory.

    Yields nothing if it does not exist. Raises: OSError if it cannot be read.
    """
    try:
        file = open(path_abs, "rb", opener=open_state)  # noqa: SIM115 - closed below
    except FileNotFoundError:
        return
    with file:
        lock_fd(file.fileno(), shared=True, wait_s=LOCK_WAIT_S)  # as above
        length = os.fstat(file.fileno()).st_size
        unlock_fd(file.fileno())  # so that a reader may take its time
        while length > 0 and (line := file.readline(length)):
            length -= len(line)
            yield line


def parse_lines(lines: list[bytes]) -> list[Fact | None]:
    """Return the object of each line; None for one that is damaged or unknown."""
    try:
        # All at once takes half the time, and a day's session has thousands of lines. No other line
        # can complete a torn one, because the others are whole and no string spans two lines; then
        # each line is parsed alone.
        objects = loads(b"[" + b",\n".join(lines) + b"]")
    except (ValueError, RecursionError):
        objects = []
    return (
        [entry if isinstance(entry, dict) else None for entry in objects]
        if len(objects) == len(lines)
        else [*map(_parse, lines)]
    )


def to_line(fact: Fact) -> bytes:
    """Return an object as a line of a log."""
    return dumps(fact).encode("ascii") + b"\n"


def utc(stamp: float, *, milliseconds: bool = False) -> str:
    """Return a time as ISO 8601 in UTC, the format of all times that we write."""
    seconds, thousandths = divmod(round(stamp * 1000), 1000)
    fraction = f".{thousandths:03d}" if milliseconds else ""
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}{fraction}Z"


class Journal:
    """The journal of one agent session in one worktree."""

    def __init__(self, path_abs: str) -> None:
        self.path_abs = path_abs
        self.torn = 0  # torn or damaged lines that the last read skipped
        self.read_to = 0  # where the last read ended, and the next one begins

    def append(self, *facts: Fact) -> None:
        """Append facts, all of them or none.

        Raises: OSError if they cannot be written.
        """
        lines = _stamped(facts)
        append_lines(self.path_abs, lambda _fd, _size: lines)

    def append_and_read(self, *facts: Fact) -> list[Fact]:
        """Append facts, all or none; return all facts since the last read, including these.

        Raises: OSError if they cannot be written.
        """
        earlier, lines = b"", _stamped(facts)

        def make(fd: int, size: int) -> bytes:
            nonlocal earlier
            earlier = os.pread(fd, max(size - self.read_to, 0), self.read_to)
            return lines

        append_lines(self.path_abs, make)
        return self._parse(_ended(earlier) + lines)

    def read(self) -> list[Fact]:
        """Return all facts, in order; none if there is no journal.

        Raises: OSError if it cannot be read.
        """
        self.read_to = 0
        return self.read_new()

    def read_beginning(self, length: int) -> list[Fact]:
        """Return the facts in the first bytes. Raises: OSError if it cannot be read."""
        return self._parse(read_lines(self.path_abs)[:length])

    def is_intact(self) -> bool:
        """Return whether the journal is still as long as when read: a gate may have removed it."""
        try:
            return os.stat(self.path_abs).st_size >= self.read_to > 0
        except OSError:
            return False

    def read_new(self) -> list[Fact]:
        """Return the facts appended since the last read, in order.

        Raises: OSError if it cannot be read.
        """
        return self._parse(read_lines(self.path_abs, self.read_to))

    def _parse(self, raw: bytes) -> list[Fact]:
        self.read_to += raw.rfind(b"\n") + 1
        parsed = parse_lines([line for line in raw.split(b"\n") if line])
        facts = [fact for fact in parsed if fact and _is_entry(fact)]
        self.torn = len(parsed) - len(facts)
        return facts


class EventLock:
    """A lock on one session event: a second delivery waits until the first is answered."""

    def __init__(self, journal: Journal, key: str) -> None:
        base = journal.path_abs.removesuffix(".jsonl")
        self._path_abs = f"{base}.{zlib.crc32(key.encode('utf-8', 'replace')):08x}.lock"
        self._fd = -1

    def acquire(self, wait_s: float) -> bool:
        """Wait for the lock; return whether it was acquired.

        Raises: OSError if there can be no such file.
        """
        if self._fd < 0:
            _make_folder(self._path_abs)
            self._fd = lock_file(self._path_abs, wait_s=wait_s)
        return self._fd >= 0

    def release(self) -> None:
        """Release the lock."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            try:
                os.unlink(self._path_abs)
            except OSError:
                return  # no harm: the next holder locks the same file
            finally:
                os.close(fd)


def session_journal(state_abs: str, session: str) -> Journal:
    """Return a session's journal, by the host's id of the session."""
    return Journal(f"{state_abs}/{FOLDER}/{file_name(session)}.jsonl")


def git_dir_of(path_abs: str) -> str:
    """Return the git folder of a journal's worktree."""
    return os.path.dirname(os.path.dirname(os.path.dirname(path_abs)))


def sessions(state_abs: str) -> list[str]:
    """Return the journals of a worktree, the newest last."""
    journals: list[tuple[int, str]] = []
    try:
        names = os.listdir(f"{state_abs}/{FOLDER}")
    except OSError:
        return []
    for name in names:
        path_abs = f"{state_abs}/{FOLDER}/{name}"
        try:
            if name.endswith(".jsonl"):
                journals.append((os.stat(path_abs).st_mtime_ns, path_abs))
        except FileNotFoundError:
            continue  # somebody is cleaning up
    return [path_abs for _changed, path_abs in sorted(journals)]


def file_name(session: str) -> str:
    """Return a file name for a session's id, which can be any text."""
    plain = "".join(
        [char if char.isascii() and (char.isalnum() or char in "-_") else "_" for char in session]
    )
    if plain == session and 0 < len(session) <= _LONGEST_NAME:
        return session
    if not session:
        return _UNKNOWN
    return f"{plain[:_LONGEST_NAME]}.{zlib.crc32(session.encode('utf-8', 'replace')):08x}"


def write_ledger(shared_state_abs: str, what: str, fields: dict[str, object]) -> None:
    """Append an entry about something skipped or overridden to the ledger of all worktrees.

    Raises: OSError if it cannot be written.
    """
    fields = {"what": what, **fields}
    line = to_line({"v": VERSION, "time": utc(time.time()), **fields})
    append_lines(f"{shared_state_abs}/{LEDGER}", lambda _fd, _size: line)


def read_ledger(shared_state_abs: str) -> list[Fact]:
    """Return all entries that can be understood, oldest first."""
    try:
        lines = read_lines(f"{shared_state_abs}/{LEDGER}").splitlines()
    except OSError:
        return []
    return [entry for entry in parse_lines(lines) if entry is not None]


def _parse(line: bytes) -> Fact | None:
    try:
        return _ours(loads(line))
    except (ValueError, RecursionError):
        return None


def _is_entry(fact: Fact) -> bool:
    return isinstance(fact.get("what"), str) and isinstance(fact.get("t"), int | float)


def _ours(fact: Any) -> Fact | None:  # noqa: ANN401 - as it comes from JSON
    return fact if isinstance(fact, dict) else None


def _stamped(facts: tuple[Fact, ...]) -> bytes:
    """Return facts as journal lines with the current time."""
    stamp = int(time.time() * 1000) / 1000  # never later than it is
    head = {"v": VERSION, "t": stamp}
    return b"".join([to_line({**head, **fact}) for fact in facts])


def _ended(text: bytes) -> bytes:
    """Return lines with the newline that `append_lines` adds after a torn one."""
    return text if text.endswith(b"\n") or not text else text + b"\n"


def _open(path_abs: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    try:
        return open_state(path_abs, flags)
    except FileNotFoundError:
        _make_folder(path_abs)
        return open_state(path_abs, flags)


def _make_folder(path_abs: str) -> None:
    folder_abs = os.path.dirname(path_abs)
    # The state folder itself, too: makedirs gives its mode only to the last folder.
    make_folder(os.path.dirname(folder_abs))
    make_folder(folder_abs)
