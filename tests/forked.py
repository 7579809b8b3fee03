"""Run `python -m gitgates VERB` where that costs least, and is as good as a process of its own.

- In this process (in_process.py), which takes a few milliseconds: whatever has no reason below.
- In a fork (20 ms) of a server, which has loaded the package, as each worker of pytest has one:
  what handles signals or ends by one (`_OWN_SIGNALS`), writes to a descriptor that the test
  gives, or says `process=True`, as a test does that kills it or counts what it leaves open.
- In earnest, as starting Python costs more than most verbs do: what hosts start, as long as no
  `hosts=True` says that only the answer matters; with other variables that the interpreter reads
  than these processes have; with more input than a pipe takes; and from several threads at once.

That each module can be the first to be loaded, tests/test_imports.py shows.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import os
import pickle
import pkgutil
import selectors
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping
from typing import Any, NoReturn

_HEAD = struct.Struct("!I")
_TIMEOUT_S = 60.0
_PIPE_BYTES = 65_536  # so much can be written before anybody reads
_INTERPRETERS = ("PYTHON", "LC_", "LANG")  # variables that are read when an interpreter starts
_HOST_VERBS = ("git-hook", "pre-commit-hook", "agent-hook", "rescue")
_OWN_SIGNALS = ("headless", "mcp")
_OWN_PATH = os.environ.get("PYTHONPATH")
_LOCK = threading.Lock()
_SERVER: list[tuple[socket.socket, subprocess.Popen[bytes]]] = []


def run(
    args: tuple[str, ...],
    cwd: str,
    env: dict[str, str],
    stdin: bytes,
    stdout: int = subprocess.PIPE,
    *,
    hosts: bool = False,
    process: bool = False,
) -> subprocess.CompletedProcess[bytes]:
    """Return what gitgates answered. `stdout`: a descriptor, for what cannot be written to."""
    args = tuple(map(os.fsdecode, args))  # some are bytes, which no text is
    verb = args[0] if args else ""
    is_plain = _for_interpreter(env) == _OWN and len(stdin) <= _PIPE_BYTES
    if not is_plain or (verb in _HOST_VERBS and not hosts) or not _LOCK.acquire(blocking=False):
        return _start_new(args, cwd, env, stdin, stdout)
    try:
        is_main = threading.current_thread() is threading.main_thread()
        if process or verb in _OWN_SIGNALS or stdout != subprocess.PIPE or not is_main:
            return _fork(args, cwd, env, stdin, stdout)
        import in_process  # which a server need not load

        return in_process.run(args, cwd, env, stdin)
    finally:
        _LOCK.release()


def _for_interpreter(env: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the variables that an interpreter heeds: the path of these processes is theirs."""
    return sorted(
        (name, value)
        for name, value in env.items()
        if name.startswith(_INTERPRETERS) and not (name == "PYTHONPATH" and value == _OWN_PATH)
    )


_OWN = _for_interpreter(os.environ)


def _start_new(
    args: tuple[str, ...], cwd: str, env: dict[str, str], stdin: bytes, stdout: int
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        (sys.executable, "-m", "gitgates", *args),
        cwd=cwd,
        env=env,
        input=stdin,
        stdout=stdout,
        stderr=subprocess.PIPE,
        check=False,
        timeout=_TIMEOUT_S,
    )


def _fork(
    args: tuple[str, ...], cwd: str, env: dict[str, str], stdin: bytes, stdout: int
) -> subprocess.CompletedProcess[bytes]:
    argv = (sys.executable, "-m", "gitgates", *args)
    try:
        return _ask(argv, pickle.dumps((args, cwd, env)), stdin, stdout)
    except BaseException:
        stop()  # it may be about to answer what nobody waits for any more
        raise


def stop() -> None:
    """End the server, if there is one."""
    for end, process in _SERVER:
        end.close()
        process.kill()  # it has nothing to tidy up
        process.wait()
    _SERVER.clear()


def _ask(
    argv: tuple[str, ...], request: bytes, stdin: bytes, stdout: int
) -> subprocess.CompletedProcess[bytes]:
    if not _SERVER:
        _SERVER.append(_start())
    server, _process = _SERVER[0]
    server.settimeout(_TIMEOUT_S)
    (in_read, in_write), (out, out_write), (err, err_write) = os.pipe(), os.pipe(), os.pipe()
    theirs = (in_read, out_write if stdout == subprocess.PIPE else os.dup(stdout), err_write)
    os.write(in_write, stdin)
    os.close(in_write)
    fds = array.array("i", theirs)
    ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
    server.sendmsg([_HEAD.pack(len(request))], ancillary)
    server.sendall(request)
    for fd in {*theirs, out_write}:
        os.close(fd)
    said = _read(out, err)
    (status,) = struct.unpack("!i", _receive(server, 4))
    code = os.waitstatus_to_exitcode(status)
    return subprocess.CompletedProcess(argv, code, said[out], said[err])


def _read(out: int, err: int) -> dict[int, bytes]:
    parts: dict[int, list[bytes]] = {out: [], err: []}
    with selectors.DefaultSelector() as selector:
        for fd in parts:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(_TIMEOUT_S)
            assert ready, f"not finished after {_TIMEOUT_S:g} s"
            for key, _events in ready:
                if data := os.read(key.fd, 1 << 16):
                    parts[key.fd].append(data)
                else:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    return {fd: b"".join(some) for fd, some in parts.items()}


def _start() -> tuple[socket.socket, subprocess.Popen[bytes]]:
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        (sys.executable, __file__, str(theirs.fileno())),
        cwd="/",
        pass_fds=[theirs.fileno()],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # or its own stream would be one for a terminal
        stderr=subprocess.DEVNULL,
    )
    theirs.close()
    return ours, process


def _receive(end: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = end.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def serve(end: socket.socket) -> None:
    """Fork for each request until nobody is there to ask."""
    while True:
        head, fds, _flags, _address = socket.recv_fds(end, _HEAD.size, 3)
        if not head:
            return
        request = pickle.loads(_receive(end, _HEAD.unpack(head)[0]))
        pid = os.fork()
        if not pid:
            _be(request, fds)
        for fd in fds:
            os.close(fd)
        _pid, status = os.waitpid(pid, 0)
        end.sendall(struct.pack("!i", status))


def _be(request: Any, fds: list[int]) -> NoReturn:
    """Be what a new interpreter would be for these arguments, and end."""
    args, cwd, env = request
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    os.closerange(3, 1024)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    sys.path[0] = cwd
    status = 1
    try:
        from gitgates.__main__ import __file__ as program
        from gitgates.__main__ import main

        sys.argv = [program, *args]
        sys.orig_argv[:] = [sys.executable, "-m", "gitgates", *args]
        main()
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    try:
        atexit._run_exitfuncs()  # noqa: SLF001 - the interpreter does not end by itself here
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        status = 120
    os._exit(status & 0xFF)


if __name__ == "__main__":
    import gitgates

    for module in pkgutil.walk_packages(gitgates.__path__, "gitgates."):
        importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # or a collection in a child would copy each page of what is loaded
    serve(socket.socket(fileno=int(sys.argv[1])))
