"""One folder a run, for its logs and results; the oldest go when there are many.

    runs/<run-id>/result.json, summary.md   what came of it: see report/artifacts.py
    runs/<run-id>/logs/<gate>.log           of the first attempt
    runs/<run-id>/logs/attempt-2/…          of the next one of the same cycle
    runs/<run-id>/open                      failures went back to an agent: another attempt may come

Whoever writes into a folder holds a lock on it (flock, on the folder itself), so that it is not
pruned by a run that ends meanwhile.
"""

from __future__ import annotations

import os
import time

from gitgates.errors import StateError
from gitgates.store.files import FOLDER, lock_file, open_state, remove_tree

OPEN = "open"
_LONGEST_NAME = 200  # bytes; most file systems take 255
_CUT = 60  # characters, of up to three bytes each
_DAY_S = 24 * 3600.0
_HOLD_S = 0.2
_LAST = [0]  # the time of this process's newest run, in microseconds


def new_run(state_abs: str) -> str:
    """Return the folder of a new run. Names sort by time, and no two runs have the same."""
    now = _LAST[0] = max(time.time_ns() // 1000, _LAST[0] + 1)
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now // 1_000_000))
    return f"{state_abs}/runs/{stamp}.{now % 1_000_000:06}Z-{os.getpid()}"


def keep_stdin(run_abs: str, stdin: bytes) -> str:
    """Save a hook's input to a file, which gates with `pass_hook_input` read.

    Raises: StateError where it cannot be written.
    """
    path_abs = f"{run_abs}/stdin"
    try:
        os.makedirs(run_abs, mode=0o700, exist_ok=True)
        with open(path_abs, "xb", opener=open_state) as file:
            file.write(stdin)
    except OSError as error:
        raise StateError(
            f"{path_abs}: the hook's input cannot be kept for its gates: {error.strerror}"
        ) from error
    return path_abs


class RunFolder:
    """The folder of a running run, locked against pruning until `release`."""

    def __init__(self, run_abs: str, fd: int) -> None:
        self.run_abs = run_abs
        self._fd = fd

    def release(self) -> None:
        """Unlock the folder; remove it if it is empty."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        try:
            os.rmdir(self.run_abs)
        except OSError:
            return  # something is in it


def hold(run_abs: str) -> RunFolder:
    """Create the folder of a run, or use an earlier attempt's, and lock it against pruning.

    Where nothing can be written the run goes on, without logs.
    """
    fd = -1
    try:
        os.makedirs(os.path.dirname(run_abs), mode=0o700, exist_ok=True)
        until = time.monotonic() + _HOLD_S
        while fd < 0 and time.monotonic() < until:  # it may just be pruned: it is made anew then
            os.makedirs(run_abs, mode=0o700, exist_ok=True)
            fd = lock_file(run_abs, shared=True, wait_s=0.01, flags=FOLDER)
    except OSError:
        pass
    return RunFolder(run_abs, fd)


def run_of(logs_abs: str) -> str:
    """Return the folder of a run by its folder of logs, or that of an attempt."""
    return logs_abs.rpartition("/logs")[0]


def log_abs(logs_abs: str, gate: str, again: int) -> str:
    """Return the log file of one gate. Every gate name makes a file name, and no two the same.

    That holds where the disk takes `Lint` and `lint` for one name, too: a name with capitals gets a
    number. It depends on the name alone, so that a gate's log is called the same in each run.
    """
    safe = "".join(char if char.isalnum() or char in "-_ " else _escape(char) for char in gate)
    is_long = len(os.fsencode(safe)) > _LONGEST_NAME
    if is_long or gate != gate.casefold():
        import zlib  # seldom needed

        # What is cut off, or not told apart, is stood for by a number that only this name has, as
        # good as always. The sign before it is escaped wherever a name has it.
        safe = f"{safe[:_CUT] if is_long else safe}+{zlib.crc32(os.fsencode(gate)):08x}"
    return f"{logs_abs}/{safe}{f'.{again}' if again else ''}.log"


def run_ids(state_abs: str) -> list[str]:
    """Return the names of all runs, oldest first."""
    try:
        entries = os.scandir(f"{state_abs}/runs")
    except OSError:
        return []
    with entries:
        return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))


def prune(state_abs: str, keep: int, spare_abs: str = "") -> int:
    """Remove all but the newest runs; return how many went.

    Those that somebody writes to stay, `spare_abs`, and those of a cycle that may go on. So does
    what cannot be removed.
    """
    names = run_ids(state_abs)
    found = (f"{state_abs}/runs/{name}" for name in names[: max(len(names) - keep, 0)])
    return sum(_prune_run(run_abs) for run_abs in found if run_abs != spare_abs)


def _escape(char: str) -> str:
    # Of one length for each byte: "%2713" could be one sign, or another one before "13".
    return "".join(f"%{byte:02X}" for byte in os.fsencode(char))


def _prune_run(run_abs: str) -> bool:
    fd = -1
    try:
        if _is_young(f"{run_abs}/{OPEN}"):
            return False
        fd = lock_file(run_abs, flags=FOLDER)
        if fd < 0:
            return False
    except OSError:
        if _is_young(run_abs):
            return False  # no locks on folders here, as on some network file systems
    try:
        remove_tree(run_abs)
    except OSError:
        return False  # what cannot be removed stays
    finally:
        if fd >= 0:
            os.close(fd)
    return True


def _is_young(path_abs: str) -> bool:
    try:
        return time.time() - os.lstat(path_abs).st_mtime < _DAY_S
    except OSError:
        return False
