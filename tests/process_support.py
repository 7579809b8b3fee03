"""Wait for processes that a test has started, and tell whether they still run."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path


def is_running(pid: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        kill = ["kill", "-0", str(pid)]
        return (
            subprocess.run(kill, check=False, capture_output=True).returncode == 0
            if sys.platform != "linux"
            else False
        )
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def has_ended(pid: int, within_s: float = 5.0) -> bool:
    """Return whether a process ends: one that was killed may still be there for a moment."""
    until_s = time.monotonic() + within_s
    while is_running(pid) and time.monotonic() < until_s:
        time.sleep(0.002)
    return not is_running(pid)


def wait_for(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Wait for a file; fail the test if the process ends before, or after 20 s."""
    end = time.monotonic() + 20
    while not path.exists():
        assert process.poll() is None, (path, process.communicate())
        assert time.monotonic() < end, path
        time.sleep(0.002)
