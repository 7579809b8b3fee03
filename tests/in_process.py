"""Run `gitgates VERB` in the process of the tests, as if it had one of its own.

While it runs, this process has the verb's arguments, environment, folder, standard streams, and the
handlers of signals and warnings that a new interpreter has. Afterwards all is as it was before, and
the test fails if the verb has left something open or changed, as the end of a process would hide.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import io
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import IO, NoReturn, TextIO

from gitgates import __main__ as program
from gitgates.drivers import call
from gitgates.proc import alarm
from gitgates.store.files import follow_sharing
from gitgates.verbs import output

LIMIT_S = 60.0
_AGAIN_S = 5.0  # after that, what tidies up is ended, too
_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
_IGNORED = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)
_FOR_LIBRARIES = {b"GRPC_VERBOSITY"}  # variables that a verb sets, for its process
_OWN_THREADS = threading.active_count()
_CHILDREN = f"/proc/self/task/{os.getpid()}/children"


class _Left(BaseException):
    """The end of the process, where it ends itself at once."""


class _Late(BaseException):
    """The verb hangs. Not an `Exception`, so that few catch it."""


class _Limit:
    """Raises `_Late` in the verb after a while."""

    def __init__(self) -> None:
        self.is_over = False

    def __call__(self, _number: int, _frame: FrameType | None) -> NoReturn:
        self.is_over = True
        raise _Late


def run(
    args: tuple[str, ...], cwd: str, env: Mapping[str, str], stdin: bytes
) -> subprocess.CompletedProcess[bytes]:
    """Return what gitgates answered. For the main thread, and an input that a pipe takes."""
    fds, children = _open_fds(), _children()
    limit, left = _Limit(), list[str]()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with (
            _descriptors(stdin, out, err),
            _folder(cwd, left),
            _environment(env, left),
            _new_interpreter(args, limit, left),
        ):
            status = _status()
        out.seek(0)
        err.seek(0)
        done = subprocess.CompletedProcess(
            (sys.executable, "-m", "gitgates", *args), status, out.read(), err.read()
        )
    _reap(children)
    left += _left_open(fds)
    assert not limit.is_over, f"{done}: no end after {LIMIT_S:g} s"
    assert not left, f"{done} has left behind: {'; '.join(left)}"
    return done


def _status() -> int:
    """Return the exit status that the process would have."""
    status = 1
    try:
        program.main()
    except _Left as end:
        return int(end.args[0]) & 0xFF
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = 120
    return status & 0xFF


def _leave(status: int) -> NoReturn:
    raise _Left(status)


@contextlib.contextmanager
def _descriptors(stdin: bytes, *outputs: IO[bytes]) -> Iterator[None]:
    """Have these as the standard descriptors, which child processes inherit."""
    kept = [os.dup(fd) for fd in (0, 1, 2)]
    read_fd, write_fd = os.pipe()
    os.write(write_fd, stdin)
    os.close(write_fd)
    os.dup2(read_fd, 0)
    os.close(read_fd)
    for fd, file in enumerate(outputs, 1):
        fcntl.fcntl(file, fcntl.F_SETFL, os.O_APPEND)  # several may write
        os.dup2(file.fileno(), fd)
    try:
        yield
    finally:
        for fd, kept_fd in enumerate(kept):
            os.dup2(kept_fd, fd)
            os.close(kept_fd)


@contextlib.contextmanager
def _folder(cwd: str, left: list[str]) -> Iterator[None]:
    before_fd = os.open(".", os.O_RDONLY)
    os.chdir(cwd)
    there = os.stat(".")
    try:
        yield
        if not os.path.samestat(there, os.stat(".")):
            left.append(f"the current folder {os.getcwd()}")
    finally:
        os.fchdir(before_fd)
        os.close(before_fd)


@contextlib.contextmanager
def _environment(env: Mapping[str, str], left: list[str]) -> Iterator[None]:
    before = _variables()
    _set_variables({os.fsencode(name): os.fsencode(value) for name, value in env.items()})
    during = _variables()
    try:
        yield
        changed = {name for name, _value in during.items() ^ _variables().items()}
        left += [f"the variable {name!r}" for name in changed - _FOR_LIBRARIES]
    finally:
        _set_variables(before)


def _variables() -> dict[bytes, bytes]:
    """Return a copy of what `os.environ` keeps, which is quick."""
    return dict(vars(os.environ)["_data"])


def _set_variables(wanted: dict[bytes, bytes]) -> None:
    now = _variables()
    for name in now.keys() - wanted.keys():
        del os.environ[os.fsdecode(name)]
    for name, _value in wanted.items() - now.items():
        os.environ[os.fsdecode(name)] = os.fsdecode(wanted[name])


@contextlib.contextmanager
def _new_interpreter(args: tuple[str, ...], limit: _Limit, left: list[str]) -> Iterator[None]:
    """Have what an interpreter starts with, but its modules and `sys.path`."""
    argv, orig_argv, finders = sys.argv, list(sys.orig_argv), list(sys.meta_path)
    streams = sys.stdin, sys.stdout, sys.stderr
    tempdir, tempfile.tempdir = tempfile.tempdir, None  # the environment names it
    sys.argv = [program.__file__, *args]
    sys.orig_argv[:] = [sys.executable, "-m", "gitgates", *args]
    mask = os.umask(0)
    os.umask(mask)
    _forget()
    try:
        with _warnings(), _signals(limit, left), _own_time():
            sys.stdin, sys.stdout, sys.stderr = _streams()
            yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = streams
        sys.argv, sys.orig_argv[:], sys.meta_path[:] = argv, orig_argv, finders
        tempfile.tempdir = tempdir
        gc.enable()
        if os.umask(mask) != mask:
            left.append("the umask")
        _forget()


def _streams() -> tuple[TextIO, TextIO, TextIO]:
    """Return streams as the interpreter makes them: it has made some for this environment."""
    own = sys.__stdout__
    encoding, errors = (own.encoding, own.errors) if own else ("utf-8", "strict")
    files = [open(fd, mode, closefd=False) for fd, mode in enumerate(("rb", "wb", "wb"))]  # noqa: SIM115 - they stay open
    return (
        io.TextIOWrapper(files[0], encoding, errors),
        io.TextIOWrapper(files[1], encoding, errors, "\n"),
        io.TextIOWrapper(files[2], encoding, "backslashreplace", "\n", line_buffering=True),
    )


@contextlib.contextmanager
def _warnings() -> Iterator[None]:
    """Show warnings that a user sees; none is an error."""
    with warnings.catch_warnings():
        warnings.resetwarnings()
        for category in _IGNORED:
            warnings.simplefilter("ignore", category)
        warnings.showwarning = _show_warning
        yield


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    text = warnings.formatwarning(message, category, filename, lineno, line)
    (file or sys.stderr).write(text)


@contextlib.contextmanager
def _signals(limit: _Limit, left: list[str]) -> Iterator[None]:
    """Limit the time, and put back each handler."""
    handlers = [signal.getsignal(number) for number in _HANDLED]
    old_alarm = signal.signal(signal.SIGALRM, limit)
    old_timer = signal.setitimer(signal.ITIMER_REAL, LIMIT_S, _AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old_alarm)
        signal.setitimer(signal.ITIMER_REAL, *old_timer)
        for number, handler in zip(_HANDLED, handlers, strict=True):
            if signal.getsignal(number) != handler:
                left.append(f"a handler of {number.name}")
                signal.signal(number, handler)


@contextlib.contextmanager
def _own_time() -> Iterator[None]:
    """Let the process begin now, and end where it would end at once."""
    began_s = time.time()
    olds = [(alarm, "process_start_time"), (call, "process_start_time"), (program, "_leave")]
    kept = [(vars(module), name, vars(module)[name]) for module, name in olds]
    vars(alarm)["process_start_time"] = vars(call)["process_start_time"] = lambda: began_s
    vars(program)["_leave"] = _leave
    try:
        yield
    finally:
        for names, name, value in kept:
            names[name] = value


def _forget() -> None:
    """Forget what the package keeps of a process: all other that it keeps is of the package."""
    vars(output)["_lost"].clear()
    vars(alarm)["_Hold"].is_on = vars(alarm)["_Hold"].is_due = False
    follow_sharing(0)


def _open_fds() -> set[str]:
    return set(os.listdir("/dev/fd"))


def _left_open(before: set[str]) -> list[str]:
    """Return the descriptors that are open since then, unless others may have opened them."""
    if threading.active_count() > _OWN_THREADS or _open_fds() <= before:
        return []
    gc.collect()  # as in cycles of an exception and its frames
    found = [f"/dev/fd/{fd}" for fd in _open_fds() - before]
    return [f"{fd}: {os.readlink(fd)}" for fd in found if os.path.lexists(fd)]


def _children() -> set[int]:
    try:
        with open(_CHILDREN, "rb", buffering=0) as file:
            return set(map(int, file.read().split()))
    except OSError:  # not on Linux
        return set()


def _reap(before: set[int]) -> None:
    """Reap the children that have ended since then, as PID 1 would."""
    for pid in _children() - before:
        os.waitpid(pid, os.WNOHANG)
