"""A pseudo-terminal, as a person has one."""

from __future__ import annotations

import os
import pty
import subprocess
import sys

from conftest import Repo


def on_terminal(
    repo: Repo, *args: str, env: dict[str, str] | None = None, typed: bytes = b""
) -> bytes:
    """Run gitgates on a pseudo-terminal and return all that it wrote there."""
    ours, theirs = pty.openpty()
    os.write(ours, typed)
    process = subprocess.Popen(
        [sys.executable, "-m", "gitgates", *args],
        cwd=repo.path,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", **(env or {})},
    )
    os.close(theirs)
    written = b""
    while True:
        try:
            data = os.read(ours, 4096)
        except OSError:  # Linux says so when the other side is closed
            data = b""
        if not data:
            break
        written += data
    os.close(ours)
    process.wait(timeout=30)
    return written
