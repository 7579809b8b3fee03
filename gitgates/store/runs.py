"""One folder per run, for its logs and results; the oldest are removed if there are many.

    runs/<run-id>/result.json, summary.md   the outcome: see report/artifacts.py
    runs/<run-id>/logs/<gate>.log           of the first attempt
    runs/<run-id>/logs/attempt-2/…          of the next attempt in the same cycle
    runs/<run-id>/open                      failures went back to an agent: another attempt may come

A run id ends with the id of the process that writes the first attempt. Nobody prunes the folder
while that process lives, or for a day if another attempt may come.
"""

from __future__ import annotations

import os
import sys
import time

from gitgates.core.errors import StateError
from gitgates.store.files import make_folder, open_state, remove_tree

OPEN = "open"
AT_ONCE = 10  # runs that a hook removes
_SEEN_AT_ONCE = 1000  # in addition to those that it keeps
_LONGEST_NAME = 200  # bytes; most file systems take 255
_CUT = 60  # characters, of up to three bytes each
_OWN_LINKS = 2
_DAY_S = 24 * 3600.0
_LAST = [0]  # the time of this process's newest run, in microseconds


def new_run(state_abs: str) -> str:
    """Return the folder of a new run. Names sort by time, and are unique."""
    now = _LAST[0] = max(time.time_ns() // 1000, _LAST[0] + 1)
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now // 1_000_000))
    return f"{state_abs}/runs/{stamp}.{now % 1_000_000:06}Z-{os.getpid()}"


def keep_stdin(run_abs: str, stdin: bytes) -> str:
    """Save a hook's input to a file, which gates with `pass_hook_input` read.

    Raises: StateError if it cannot be written.
    """
    path_abs = f"{run_abs}/stdin"
    try:
        make_folder(run_abs)
        with open(path_abs, "xb", opener=open_state) as file:
            file.write(stdin)
    except OSError as error:
        raise StateError(
            f"{path_abs}: cannot store the hook's input for its gates: {error.strerror}"
        ) from error
    return path_abs


def discard_stdin(path_abs: str) -> None:
    """Remove what `keep_stdin` made; a folder with logs stays."""
    os.unlink(path_abs)
    try:
        os.rmdir(os.path.dirname(path_abs))
    except OSError:
        return


def make(run_abs: str) -> None:
    """Make a run's folder. If it cannot be written, the run goes on without logs."""
    try:
        make_folder(run_abs)
    except OSError:
        return


def run_of(logs_abs: str) -> str:
    """Return a run's folder, by its folder of logs or an attempt's."""
    return logs_abs.rpartition("/logs")[0]


def log_abs(logs_abs: str, gate: str, again: int) -> str:
    """Return a gate's log file. Every gate name has its own file name.

    That holds even on a disk that ignores case: a name with capitals gets a number, which depends
    only on the name, so a gate's log has the same name in every run.
    """
    safe = "".join([char if char.isalnum() or char in "-_ " else _escape(char) for char in gate])
    is_long = len(os.fsencode(safe)) > _LONGEST_NAME
    if is_long or gate != gate.casefold():
        import zlib  # seldom needed

        # A number, unique in practice, replaces what is cut off or ignored. The `+` before it is
        # escaped wherever a name has one.
        safe = f"{safe[:_CUT] if is_long else safe}+{zlib.crc32(os.fsencode(gate)):08x}"
    return f"{logs_abs}/{safe}{f'.{again}' if again else ''}.log"


def run_ids(state_abs: str, most: int = sys.maxsize) -> list[str]:
    """Return the names of all runs, or of at most `most`, oldest first.

    Raises: PermissionError if they belong to another user.
    """
    try:
        entries = os.scandir(f"{state_abs}/runs")
    except PermissionError:
        raise
    except OSError:
        return []
    with entries:
        names = (entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        return sorted([name for _number, name in zip(range(most), names, strict=False)])


def meant_by(text: str, names: list[str]) -> str:
    """Return the run that a name, a prefix or `latest` means; empty for none, or several."""
    if text == "latest":
        return names[-1] if names else ""
    matching = [name for name in names if name.startswith(text)]
    return matching[0] if len(matching) == 1 else text if text in matching else ""


def prune(state_abs: str, keep: int, spare_abs: str = "", *, most: int = AT_ONCE) -> int:
    """Remove all runs except the `keep` newest, the oldest first; return how many were removed.

    Removes at most `most`, by default so few that no hook takes long: the next hooks remove the
    rest. Runs that somebody still writes to, `spare_abs`, and runs whose cycle may go on stay. So
    does what cannot be removed.
    """
    try:
        if _has_at_most(f"{state_abs}/runs", keep):
            return 0
        # The newest of all are among the newest of any selection that contains them.
        names = run_ids(state_abs, keep + _SEEN_AT_ONCE if most == AT_ONCE else sys.maxsize)
    except OSError:
        return 0
    candidates = (f"{state_abs}/runs/{name}" for name in names[: max(len(names) - keep, 0)])
    removed = 0
    for run_abs in candidates:
        if removed >= most:
            break
        if run_abs == spare_abs or _is_young(f"{run_abs}/{OPEN}") or _is_under_way(run_abs):
            continue
        try:
            remove_tree(run_abs)
            removed += 1
        except OSError:
            continue
    return removed


def _has_at_most(folder_abs: str, count: int) -> bool:
    """Return whether a folder is known to have at most `count` subfolders, without reading it.

    Most file systems count a link for each, and two for the folder itself.
    """
    return _OWN_LINKS <= os.stat(folder_abs).st_nlink <= count + _OWN_LINKS


def _escape(char: str) -> str:
    # Fixed length per byte: otherwise, "%2713" could be one character, or another before "13".
    return "".join(f"%{byte:02X}" for byte in os.fsencode(char))


def _is_under_way(run_abs: str) -> bool:
    """Return whether another process writes to a run, or has the same id as its writer."""
    pid = run_abs.rpartition("-")[2]
    if not pid.isdigit() or int(pid) in (0, 1, os.getpid()) or not _is_young(run_abs):
        return False
    return process_lives(int(pid))


def process_lives(pid: int) -> bool:
    """Return whether a process with this id exists."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _is_young(path_abs: str) -> bool:
    try:
        return time.time() - os.lstat(path_abs).st_mtime < _DAY_S
    except OSError:
        return False
