"""The journal of one session of an agent: append-only, one JSON object a line.

State is a fold over it (policies/session.py), so that nothing is ever rewritten. Hooks run side by
side and are killed in the middle: each append is one write under the file's lock, reading waits for
one that is under way, and a line that a killed one left torn is dropped.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
import zlib

from gitgates.store.files import open_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Fact: TypeAlias = dict[str, Any]

VERSION = 1
FOLDER = "sessions"
_LONGEST_NAME = 80
_UNKNOWN = "unknown.session"  # no session's own name: those have no dot, or end in hex digits
_LOCKED_S = 3.0  # a lock is held for one write; longer only by a process that does not go on


class Journal:
    """The journal of one session in one worktree."""

    def __init__(self, path_abs: str) -> None:
        self.path_abs = path_abs
        self.torn = 0  # lines that the last reading dropped

    def append(self, *facts: Fact) -> None:
        """Append facts, all of them or none.

        Raises: OSError where they cannot be written.
        """
        stamp = int(time.time() * 1000) / 1000  # never later than it is
        head = {"v": VERSION, "t": stamp}
        lines = b"".join(json.dumps({**head, **fact}).encode("ascii") + b"\n" for fact in facts)
        append_lines(self.path_abs, lambda _fd, _size: lines)

    def read(self) -> list[Fact]:
        """Return all facts, in order. A journal that is not there has none.

        Raises: OSError where it cannot be read.
        """
        found = parse_lines([line for line in read_lines(self.path_abs).split(b"\n") if line])
        facts = [fact for fact in found if fact is not None]
        self.torn = len(found) - len(facts)
        return [fact for fact in facts if fact.get("v") == VERSION]


def append_lines(path_abs: str, make: Callable[[int, int], bytes]) -> None:
    """Append whole lines to a file, all of them or none; other appends wait meanwhile.

    `make` returns them, and is handed the locked file and its size.

    Raises: OSError where they cannot be written.
    """
    fd = _open(path_abs)
    try:
        if not _lock(fd, fcntl.LOCK_EX):
            raise OSError(errno.ETIMEDOUT, "another process holds its lock", path_abs)
        size = os.fstat(fd).st_size
        lines = make(fd, size)
        if size and os.pread(fd, 1, size - 1) != b"\n":
            lines = b"\n" + lines  # whoever wrote last was killed in the middle
        if os.write(fd, lines) != len(lines):
            os.ftruncate(fd, size)
            raise OSError(errno.ENOSPC, "no space left on the device", path_abs)
    finally:
        os.close(fd)


def read_lines(path_abs: str) -> bytes:
    """Return the bytes of such a file. One that is not there has none.

    Raises: OSError where it cannot be read.
    """
    try:
        with open(path_abs, "rb", buffering=0, opener=open_state) as file:
            _lock(file.fileno(), fcntl.LOCK_SH)  # else half of what is being written is seen
            return file.read()
    except FileNotFoundError:
        return b""


class Turn:
    """A lock on one event of a session: its second delivery waits until the first is answered."""

    def __init__(self, journal: Journal, key: str) -> None:
        base = journal.path_abs.removesuffix(".jsonl")
        self._path_abs = f"{base}.{zlib.crc32(key.encode('utf-8', 'replace')):08x}.lock"
        self._fd = -1

    def take(self, longest_s: float) -> bool:
        """Wait for it; tell whether it came.

        Raises: OSError where there can be no such file.
        """
        until = time.monotonic() + longest_s
        while self._fd < 0:
            fd = _open(self._path_abs)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Removed by its last holder between the two calls: it would protect nothing.
                if os.path.samestat(os.fstat(fd), os.stat(self._path_abs)):
                    self._fd = fd
                    return True
            except (BlockingIOError, FileNotFoundError):
                pass
            os.close(fd)
            if time.monotonic() > until:
                return False
            time.sleep(0.01)
        return True

    def give_back(self) -> None:
        """Let the next one in."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            try:
                os.unlink(self._path_abs)
            except OSError:
                return  # no harm: it is found, and locked, again
            finally:
                os.close(fd)


def session_journal(state_abs: str, session: str) -> Journal:
    """Return the journal of a session, named as its host names it."""
    return Journal(f"{state_abs}/{FOLDER}/{file_name(session)}.jsonl")


def git_dir_of(path_abs: str) -> str:
    """Return the git folder of the worktree that a journal is of."""
    return os.path.dirname(os.path.dirname(os.path.dirname(path_abs)))


def sessions(state_abs: str) -> list[str]:
    """Return the journals of a worktree, the newest last."""
    found: list[tuple[int, str]] = []
    for name in _names(f"{state_abs}/{FOLDER}"):
        path_abs = f"{state_abs}/{FOLDER}/{name}"
        try:
            found.append((os.stat(path_abs).st_mtime_ns, path_abs))
        except FileNotFoundError:
            continue  # somebody is tidying up
    return [path_abs for _changed, path_abs in sorted(found)]


def _names(folder_abs: str) -> list[str]:
    try:
        return [name for name in os.listdir(folder_abs) if name.endswith(".jsonl")]
    except OSError:
        return []


def file_name(session: str) -> str:
    """Return a file name for a session's id, which is opaque: any text makes one."""
    plain = "".join(
        char if char.isascii() and (char.isalnum() or char in "-_") else "_" for char in session
    )
    if plain == session and 0 < len(session) <= _LONGEST_NAME:
        return session
    if not session:
        return _UNKNOWN
    return f"{plain[:_LONGEST_NAME]}.{zlib.crc32(session.encode('utf-8', 'replace')):08x}"


def parse_lines(lines: list[bytes]) -> list[Fact | None]:
    """Return the fact of each line; None for one that is torn, or not ours."""
    try:
        # At once, in half of the time: a session of a day has thousands of lines. What a torn one
        # leaves open is closed by no other, because those are whole: then each is read alone.
        found = json.loads(b"[" + b",".join(lines) + b"]")
    except (ValueError, RecursionError):
        found = []
    return [_ours(one) for one in found] if len(found) == len(lines) else [*map(_parse, lines)]


def _parse(line: bytes) -> Fact | None:
    try:
        return _ours(json.loads(line))
    except (ValueError, RecursionError):
        return None


def _ours(fact: Any) -> Fact | None:  # noqa: ANN401 - as it comes from JSON
    return fact if isinstance(fact, dict) else None


def _lock(fd: int, mode: int) -> bool:
    """Lock a journal; tell whether that was possible in time: no hook waits for ever."""
    until = time.monotonic() + _LOCKED_S
    while True:
        try:
            fcntl.flock(fd, mode | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(0.002)
        else:
            return True


def _open(path_abs: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND
    try:
        return open_state(path_abs, flags)
    except FileNotFoundError:
        folder_abs = os.path.dirname(path_abs)
        # The state folder itself, too: makedirs gives its mode to the last folder alone.
        os.makedirs(os.path.dirname(folder_abs), mode=0o700, exist_ok=True)
        os.makedirs(folder_abs, mode=0o700, exist_ok=True)
        return open_state(path_abs, flags)
