"""Keep the head and the tail of an output, and all of it in a log file."""

from __future__ import annotations

import os

from gitgates.files import open_state


class Capture:
    """Takes bytes as they come; keeps at most `limit` of them in memory.

    The log file is made with the first byte, so that a silent gate leaves no file. Where it cannot
    be written (a full disk), the gate goes on and `log_abs` is empty.
    """

    def __init__(self, limit: int, log_abs: str = "") -> None:
        self.log_abs = log_abs
        self._log_fd = -1
        self._half = max(limit // 2, 1)
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""
        self._write_log(data)
        self._total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room] if room > 0 else b""
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def close(self) -> None:
        """Close the log file."""
        if self._log_fd >= 0:
            os.close(self._log_fd)
            self._log_fd = -1
        if not self._total:
            self.log_abs = ""

    def kept(self) -> tuple[bytes, int]:
        """Return what was kept, its gap marked, and how many bytes were left out."""
        tail = bytes(self._tail[-self._half :])
        dropped = self._total - len(self._head) - len(tail)
        gap = b"\n[... %d bytes left out ...]\n" % dropped if dropped else b""
        return bytes(self._head) + gap + tail, dropped

    def _write_log(self, data: bytes) -> None:
        if not self.log_abs:
            return
        try:
            if self._log_fd < 0:
                os.makedirs(os.path.dirname(self.log_abs), mode=0o700, exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
                self._log_fd = open_state(self.log_abs, flags)
            while data:
                data = data[os.write(self._log_fd, data) :]
        except OSError:
            self.log_abs = ""
