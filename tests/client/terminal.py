"""Run the client in a terminal: `terminal.py LIMIT_S FILE LINES ARGUMENT…`, in its folder.

Ends it when a file has so many lines, and a moment for what the client does then, or after a while.
It is used as by a person who has started it before, and trusts the folder.
"""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from pathlib import Path

_MOMENT_S = 2.0


def main(limit_s: float, file: Path, lines: int, arguments: list[str]) -> None:
    """Start the client, and read what it draws until it is to end."""
    folder = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    state = {
        "hasCompletedOnboarding": True,
        "bypassPermissionsModeAccepted": True,
        "projects": {str(Path.cwd()): folder},
        "customApiKeyResponses": {"approved": [os.environ["ANTHROPIC_API_KEY"]], "rejected": []},
    }
    (Path(os.environ["CLAUDE_CONFIG_DIR"]) / ".claude.json").write_text(json.dumps(state))
    pid, terminal = pty.fork()
    if not pid:
        os.environ["TERM"] = "xterm-256color"
        os.execvp("claude", ["claude", "--dangerously-skip-permissions", *arguments])
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        if file.exists() and len(file.read_text().splitlines()) >= lines:
            end, lines = time.monotonic() + _MOMENT_S, sys.maxsize
        if select.select([terminal], [], [], 0.2)[0]:
            try:
                drawn = os.read(terminal, 1 << 16)
            except OSError:  # it has ended
                break
            sys.stdout.buffer.write(drawn)
    os.kill(pid, signal.SIGTERM)


if __name__ == "__main__":
    main(float(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4:])
