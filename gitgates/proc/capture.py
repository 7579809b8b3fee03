"""Keep the head and the tail of an output, and more of both in a log file."""

from __future__ import annotations

import os

from gitgates.store.files import open_state


class Capture:
    """Takes bytes as they come; keeps at most `limit` of them in memory, `log_limit` in the log.

    The log file is made with the first byte, so that a silent gate leaves no file. Where it cannot
    be written (a full disk), the gate goes on and `log_abs` is empty.
    """

    def __init__(self, limit: int, log_abs: str = "", log_limit: int = 16 << 20) -> None:
        self.log_abs = log_abs
        self._log_fd = -1
        self._log_half = max(log_limit // 2, 1)
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
            try:
                self._straighten_log()
            except OSError:
                self.log_abs = ""
            os.close(self._log_fd)
            self._log_fd = -1
        if not self._total:
            self.log_abs = ""

    def kept(self) -> tuple[bytes, int]:
        """Return what was kept, its gap marked, and how many bytes were left out."""
        tail = bytes(self._tail[-self._half :])
        dropped = self._total - len(self._head) - len(tail)
        return bytes(self._head) + (_gap(dropped) if dropped else b"") + tail, dropped

    def _write_log(self, data: bytes) -> None:
        """Write to the first half of the log, then round and round in the second one."""
        if not self.log_abs:
            return
        half, total = self._log_half, self._total
        try:
            if self._log_fd < 0:
                os.makedirs(os.path.dirname(self.log_abs), mode=0o700, exist_ok=True)
                flags = os.O_RDWR | os.O_CREAT
                self._log_fd = open_state(self.log_abs, flags)
            while data:
                at = total if total < half else half + (total - half) % half
                room = half - at % half
                written = os.pwrite(self._log_fd, data[:room], at)
                data, total = data[written:], total + written
        except OSError:
            self.log_abs = ""

    def _straighten_log(self) -> None:
        """Bring the second half of the log, where it was written over, into its order."""
        half = self._log_half
        dropped = self._total - 2 * half
        if dropped <= 0 or not self.log_abs:
            return
        ring = os.pread(self._log_fd, half, half)
        begin = dropped % half
        tail = memoryview(_gap(dropped) + ring[begin:] + ring[:begin])
        at = half
        while tail:
            written = os.pwrite(self._log_fd, tail, at)
            tail, at = tail[written:], at + written


def _gap(dropped: int) -> bytes:
    return b"\n[... %d bytes left out ...]\n" % dropped
