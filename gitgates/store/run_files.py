"""What lies in the folder of a run: written whole or not at all, read back, copied elsewhere. Cold.

Gates that all passed in a hook of git leave no results, so that no such hook loads this.
"""

from __future__ import annotations

import fcntl
import os
import time

from gitgates.store.files import open_state, sync_folder

RESULT = "result.json"
SUMMARY = "summary.md"
OPEN = "open"
_LOGS = "logs"
_PRIVATE = 0o600
_SHARED = 0o666  # less the umask: copies are there to be collected
_WAIT_S = 5.0
_LOOK_AGAIN_S = 0.02
_CHUNK = 1 << 20


class ResultsLock:
    """Keeps everybody else from changing the results of any run here, for a moment.

    Two processes may add an attempt to the same run at once: an event can be delivered twice.
    """

    def __init__(self, state_abs: str) -> None:
        self._path_abs = f"{state_abs}/results.lock"
        self._fd = -1

    def __enter__(self) -> ResultsLock:
        """Raise OSError where there can be no lock, TimeoutError where somebody holds it long."""
        os.makedirs(os.path.dirname(self._path_abs), mode=0o700, exist_ok=True)
        self._fd = open_state(self._path_abs, os.O_RDWR | os.O_CREAT)
        until = time.monotonic() + _WAIT_S
        while True:
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if time.monotonic() > until:
                    self.__exit__()
                    raise TimeoutError(0, "another run is writing its results") from error
                time.sleep(_LOOK_AGAIN_S)
            else:
                return self

    def __exit__(self, *exc: object) -> None:
        os.close(self._fd)


def read_result(run_abs: str) -> bytes | None:
    """Return the bytes of `result.json`; None where there is none.

    Raises: OSError where it cannot be read.
    """
    return _read(f"{run_abs}/{RESULT}")


def read_summary(run_abs: str) -> bytes | None:
    """Return the bytes of `summary.md`; None where there is none.

    Raises: OSError where it cannot be read.
    """
    return _read(f"{run_abs}/{SUMMARY}")


def write_artifacts(run_abs: str, result_json: bytes, summary_md: bytes) -> None:
    """Write both files, each so that a reader finds the old one or the new one, and whole.

    Raises: OSError.
    """
    os.makedirs(run_abs, mode=0o700, exist_ok=True)
    _replace(f"{run_abs}/{RESULT}", result_json)
    _replace(f"{run_abs}/{SUMMARY}", summary_md)
    sync_folder(run_abs)


def put_damaged_aside(run_abs: str) -> str:
    """Move a result that cannot be understood out of the way; return its new name."""
    name = f"{RESULT}.damaged-{os.getpid()}-{time.time_ns()}"
    os.rename(f"{run_abs}/{RESULT}", f"{run_abs}/{name}")
    return name


def mark_open(run_abs: str, *, is_open: bool) -> None:
    """Tell whether another attempt may come, for `runs.prune`.

    Raises: OSError.
    """
    path_abs = f"{run_abs}/{OPEN}"
    if is_open:
        os.close(open_state(path_abs, os.O_WRONLY | os.O_CREAT))
        os.utime(path_abs)
    else:
        _unlink(path_abs)


def copy_artifacts(run_abs: str, target_abs: str, inside_abs: str) -> None:
    """Copy results and logs to a folder of this run, which an earlier attempt may have made.

    Nothing there is removed, and each file is replaced at once. `inside_abs`: the folder that a
    link may not lead out of. Raises: OSError.
    """
    parent_abs = os.path.dirname(target_abs)
    _check_inside(parent_abs, inside_abs)
    if not os.path.lexists(parent_abs):
        os.makedirs(parent_abs)
        # What git sees, gates and snapshots see as well: a run would change what it looks at.
        _replace(f"{parent_abs}/.gitignore", b"*\n", _SHARED)
    _check_inside(target_abs, inside_abs)
    if os.path.lexists(target_abs):
        _copy_files(run_abs, target_abs)
        return
    partial_abs = f"{parent_abs}/.new-{os.getpid()}-{time.time_ns()}"
    os.mkdir(partial_abs)
    try:
        _copy_files(run_abs, partial_abs)
        os.rename(partial_abs, target_abs)
    except OSError:
        _remove(partial_abs)
        raise


def _check_inside(path_abs: str, inside_abs: str) -> None:
    inside_real = os.path.realpath(inside_abs)
    if os.path.commonpath((os.path.realpath(path_abs), inside_real)) != inside_real:
        raise OSError(0, "a link leads out of the repository")


def _copy_files(from_abs: str, to_abs: str) -> None:
    _copy_logs(f"{from_abs}/{_LOGS}", f"{to_abs}/{_LOGS}")
    for name in (SUMMARY, RESULT):  # the result last: where it is, all is
        if (data := _read(f"{from_abs}/{name}")) is not None:
            _replace(f"{to_abs}/{name}", data, _SHARED)


def _copy_logs(from_abs: str, to_abs: str) -> None:
    if not os.path.isdir(from_abs):
        return
    os.makedirs(to_abs, exist_ok=True)
    for entry in list(os.scandir(from_abs)):
        if entry.is_dir(follow_symlinks=False):
            _copy_logs(entry.path, f"{to_abs}/{entry.name}")
        elif entry.is_file(follow_symlinks=False):
            _copy_log(entry.path, f"{to_abs}/{entry.name}")


def _copy_log(from_abs: str, to_abs: str) -> None:
    """Copy a log, which may be longer than the memory; not again for each attempt that follows."""
    try:
        if os.lstat(to_abs).st_size == os.lstat(from_abs).st_size:
            return
    except FileNotFoundError:
        pass
    new_abs = _new_name(to_abs)
    try:
        source = open_state(from_abs, os.O_RDONLY)
        with open(source, "rb") as log, open(new_abs, "xb") as copy:
            while data := log.read(_CHUNK):
                copy.write(data)
        os.rename(new_abs, to_abs)
    except OSError:
        _unlink(new_abs)
        raise


def _read(path_abs: str) -> bytes | None:
    try:
        fd = open_state(path_abs, os.O_RDONLY)
    except FileNotFoundError:
        return None
    with open(fd, "rb") as file:
        return file.read()


def _replace(path_abs: str, data: bytes, mode: int = _PRIVATE) -> None:
    new_abs = _new_name(path_abs)
    try:
        fd = os.open(new_abs, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(fd, "wb") as file:
            file.write(data)
            file.flush()
            if mode == _PRIVATE:
                os.fsync(file.fileno())
        os.rename(new_abs, path_abs)
    except OSError:
        _unlink(new_abs)
        raise


def _new_name(path_abs: str) -> str:
    return f"{os.path.dirname(path_abs)}/.new-{os.getpid()}-{time.time_ns()}"


def _unlink(path_abs: str) -> None:
    if os.path.lexists(path_abs):
        os.unlink(path_abs)


def _remove(folder_abs: str) -> None:
    for entry in list(os.scandir(folder_abs)):
        if entry.is_dir(follow_symlinks=False):
            _remove(entry.path)
        else:
            os.unlink(entry.path)
    os.rmdir(folder_abs)
