"""One folder a run, for its logs; the oldest go when there are many."""

from __future__ import annotations

import os
import time

KEPT_RUNS = 50
_LONGEST_NAME = 200  # bytes; most file systems take 255
_CUT = 60  # characters, of up to three bytes each


def new_run(state_abs: str) -> str:
    """Return the folder of a new run; it is made when something is written to it."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return f"{state_abs}/runs/{stamp}-{os.getpid()}"


def log_abs(logs_abs: str, gate: str, attempt: int) -> str:
    """Return the log file of one gate. Every gate name makes a file name, and no two the same."""
    safe = "".join(char if char.isalnum() or char in "-_ " else _escape(char) for char in gate)
    if len(os.fsencode(safe)) > _LONGEST_NAME:
        import zlib  # seldom needed

        # What is cut off is stood for by a number that only this name has, as good as always.
        safe = f"{safe[:_CUT]}%{zlib.crc32(os.fsencode(gate)):08x}"
    again = f".{attempt}" if attempt else ""
    return f"{logs_abs}/{safe}{again}.log"


def _escape(char: str) -> str:
    # Of one length for each byte: "%2713" could be one sign, or another one before "13".
    return "".join(f"%{byte:02X}" for byte in os.fsencode(char))


def prune(state_abs: str) -> None:
    """Remove all but the newest runs. What cannot be removed stays."""
    runs_abs = f"{state_abs}/runs"
    try:
        names = sorted(os.listdir(runs_abs))
    except OSError:
        return
    for name in names[:-KEPT_RUNS]:
        _remove_tree(f"{runs_abs}/{name}")


def remove_if_empty(run_abs: str) -> None:
    """Remove the folder of a run that left nothing."""
    try:
        os.rmdir(run_abs)
    except OSError:
        return


def _remove_tree(folder_abs: str) -> None:
    # shutil would load a dozen modules into a hook for this.
    try:
        for entry in list(os.scandir(folder_abs)):
            if entry.is_dir(follow_symlinks=False):
                _remove_tree(entry.path)
            else:
                os.unlink(entry.path)
        os.rmdir(folder_abs)
    except OSError:
        return
