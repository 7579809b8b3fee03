"""The process that runs a run's gates on the server, each in a thread: see gates.py.

Requests arrive on a socket, its standard input, and it ends when that closes. Each request is two
file descriptors: a file with the request, and the write end of a pipe for the output. When nobody
reads that pipe any more, the gate is cancelled on the server.
"""

from __future__ import annotations

import contextlib
import importlib
import marshal
import os
import select
import socket
import threading
import time

from gitgates.core import environ
from gitgates.core.errors import GitgatesError
from gitgates.core.types import Config, Gate, make_gate
from gitgates.features.remote.gates import GateRequest, RemoteEnd, note_start
from gitgates.features.remote.inputs import InputsError, secret_variables
from gitgates.features.remote.tree import input_root
from gitgates.git.repo import find_repo
from gitgates.proc.helper import FD_BYTES
from gitgates.store.files import open_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.features.remote.connection import Connection
    from gitgates.features.remote.tree import InputRoot
    from gitgates.git.repo import Repo

INSTALL = "grpcio or protobuf is missing or too old: pip install 'gitgates[remote]'"
_CANCEL_S = 4.5  # to cancel all gates, after the end of the run


class _Life:
    """Whether anybody still wants the result of a gate."""

    def __init__(self, output_fd: int, is_ended: threading.Event) -> None:
        self._is_ended = is_ended
        self._poll = select.poll()
        self._poll.register(output_fd, 0)  # reports when nobody reads it

    def is_over(self) -> bool:
        """Return whether the gate must be cancelled."""
        return self._is_ended.is_set() or bool(self._poll.poll(0))


def main() -> None:
    """Serve requests until the run is over."""
    is_ended = threading.Event()
    threads = []
    with contextlib.suppress(ImportError):  # `_end_of` says so for each gate
        importlib.import_module("gitgates.features.remote.execution")
    with socket.socket(fileno=0) as asked:
        while fds := _received_fds(asked):
            threads.append(threading.Thread(target=_serve, args=(*fds, is_ended), daemon=True))
            threads[-1].start()
    is_ended.set()
    until = time.monotonic() + _CANCEL_S
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0))
    os._exit(0)  # does not wait for gRPC's threads


def _received_fds(asked: socket.socket) -> tuple[int, ...]:
    """Return the next request's descriptors, which no child inherits; none at the end."""
    flags = getattr(socket, "MSG_CMSG_CLOEXEC", 0)
    parts = asked.recvmsg(1, socket.CMSG_SPACE(2 * FD_BYTES), flags)[1]
    fds = memoryview(b"".join(content for _level, _kind, content in parts)).cast("i")
    for fd in fds:
        os.set_inheritable(fd, False)  # if there is no such flag
    return tuple(fds)


def _serve(request_fd: int, output_fd: int, is_ended: threading.Event) -> None:
    """Run one gate, and write how it ended; then its output ends."""
    notes: list[str] = []
    try:
        with open(request_fd, "rb") as file:
            request = GateRequest(**marshal.load(file))  # noqa: S302 - of our own parent
        end = _end_of(request, output_fd, _Life(output_fd, is_ended), notes)
        with open(request.end_abs, "xb", opener=open_state) as file:
            marshal.dump(end._replace(notes=tuple(notes))._asdict(), file)
    finally:
        os.close(output_fd)


def _end_of(request: GateRequest, output_fd: int, life: _Life, notes: list[str]) -> RemoteEnd:
    try:
        return _run(request, output_fd, life, notes)
    except ImportError as error:
        is_missing = (error.name or "").partition(".")[0] in ("grpc", "google")
        return RemoteEnd(reason=INSTALL if is_missing else str(error), is_down=True)
    except GitgatesError as error:
        return RemoteEnd(reason=error.full_message)
    except BrokenPipeError:  # nobody reads the output
        return RemoteEnd(reason="cancelled")
    except Exception as error:  # noqa: BLE001 - whatever it is, the gate has not run
        return RemoteEnd(reason=f"{type(error).__name__}: {error}")


class _Shared:
    """What a run's gates share: the connection, and trees of inputs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._roots: dict[object, tuple[float, InputRoot]] = {}

    def connection(self, table: Mapping[str, Any], root_abs: str) -> Connection:
        """Return the connection. Raises: GitgatesError if a configured file cannot be read."""
        from gitgates.features.remote.connection import Connection  # it may not be installed

        with self._lock:
            self._connection = self._connection or Connection(table, root_abs)
            return self._connection

    def input_root(self, repo: Repo, request: GateRequest, gate: Gate) -> InputRoot:
        """Return the files as they are at some moment after this call began.

        Raises: InputsError if something is not sent; GitgatesError, OSError.
        """
        asked_s = time.monotonic()
        inputs = gate.reuse.inputs
        paths = request.paths if inputs else ()
        selection = request.root_abs, inputs, gate.remote.ignored_inputs, paths
        with self._lock:
            began_s, root = self._roots.get(selection, (0.0, None))
            if root is None or began_s < asked_s:
                began_s, not_secret = time.monotonic(), request.table["not_secret"]
                root = input_root(repo, *selection[:3], paths=paths, not_secret=not_secret)
                self._roots[selection] = began_s, root
        if ignored := [path for path in request.paths if path not in root.paths]:
            raise InputsError.of_ignored(ignored[0])
        return root


_shared = _Shared()


def _run(request: GateRequest, output_fd: int, life: _Life, notes: list[str]) -> RemoteEnd:
    from gitgates.features.remote.execution import RemoteCommand, RemoteExecution

    gate = make_gate(**request.gate)
    if problems := secret_variables(gate, request.env):
        raise InputsError.of_problems(problems)
    repo = find_repo(request.repo_abs, environ.read())
    config = Config(tables={"remote": request.table}, max_log_bytes=request.most_output)
    try:
        connection = _shared.connection(request.table, repo.root_abs)
    except GitgatesError as error:
        return RemoteEnd(reason=error.full_message, is_down=True)
    server = RemoteExecution(repo, config, notes.append, life.is_over, connection=connection)
    root = _shared.input_root(repo, request, gate)
    command = RemoteCommand(request.argv, request.env, request.cwd, request.root_abs)

    def write_output(data: bytes) -> None:
        while data:
            data = data[os.write(output_fd, data) :]

    return server.run(
        *(gate, command, root, write_output),
        within_s=request.within_s,
        on_start=lambda: note_start(request.end_abs),
    )
