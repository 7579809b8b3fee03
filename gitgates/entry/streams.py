"""Standard input, read only where the host gives one."""

from __future__ import annotations

import os


def read_stdin() -> bytes:
    """Return everything on standard input."""
    parts: list[bytes] = []
    while data := os.read(0, 1 << 16):
        parts.append(data)
    return b"".join(parts)
