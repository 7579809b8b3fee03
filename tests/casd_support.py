"""buildbox-casd, a real server of the Remote Execution API, on loopback: it works, or is broken."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import SRC

FOLDER = SRC / ".venv/buildbox"
MOUNTS = ("usr:usr", "usr/bin:bin", "usr/lib:lib", "usr/lib64:lib64", "etc:etc")

PATH = f"{os.environ['PATH']}:{FOLDER}/usr/bin"  # where bubblewrap may be

needs_casd = pytest.mark.skipif(
    not ((FOLDER / "buildbox-casd").exists() and shutil.which("bwrap", path=PATH)),
    reason="there is no buildbox-casd, or no bubblewrap: make .venv/buildbox/ready",
)
HAS_FUSE = os.access("/dev/fuse", os.W_OK)


class Casd:
    """One server, with what it keeps in a folder of its own."""

    instance = ""

    def __init__(
        self,
        folder: Path,
        *,
        runner: str = "",
        jobs: int = 4,
        mounts: bool = True,
        fuse: bool = False,
    ) -> None:
        self.folder = folder
        self.runner = runner or str(FOLDER / "buildbox-run")
        self.jobs, self.mounts = jobs, mounts
        # It shows a gate its files by FUSE if it finds the program in PATH, else it links each.
        path = f"{FOLDER}:{PATH}" if fuse else PATH
        self.env = os.environ | {"PATH": path, "TMPDIR": str(folder)}
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"

    def start(self, *more: str) -> None:
        """Start it, and wait until it listens."""
        mounts = [f"--runner-arg=--ro-bind-mount=/{m.replace(':', ':/')}" for m in MOUNTS]
        argv = [
            str(FOLDER / "buildbox-casd"),
            f"--bind=127.0.0.1:{self.port}",
            f"--buildbox-run={self.runner}",
            f"--jobs={self.jobs}",
            "--reserved=1M",
            *(mounts if self.mounts else ()),
            *more,
            str(self.folder / "cache"),
        ]
        self.folder.mkdir(exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(argv, env=self.env, stdout=log, stderr=log)
        wait_for_port(self.port)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it, with whatever it runs."""
        if self.process:
            children = self.children()
            self.process.send_signal(number)
            self.process.wait(20.0)
            self.process = None
            for pid in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for line in Path("/proc/mounts").read_text().splitlines():
                if line.split()[1].startswith(f"{self.folder}/"):  # of a killed buildbox-fuse
                    subprocess.run(["umount", "-l", line.split()[1]], check=False)

    def children(self) -> list[int]:
        """Return the runners, and the processes of gates below them."""
        assert self.process
        return descendants(self.process.pid)


def descendants(pid: int) -> list[int]:
    """Return the processes below one."""
    found, pids = [], _children(pid)
    while pids:
        found += pids
        pids = [pid for parent in pids for pid in _children(parent)]
    return found


def _children(pid: int) -> list[int]:
    with contextlib.suppress(OSError):
        folder = Path(f"/proc/{pid}/task")
        texts = [(task / "children").read_text() for task in folder.iterdir()]
        return [int(word) for text in texts for word in text.split()]
    return []


@contextlib.contextmanager
def serving_casd(folder: Path, **fields: object) -> Iterator[Casd]:
    """Run a server for as long as this is entered."""
    casd = Casd(folder, **fields)  # type: ignore[arg-type]
    casd.start()
    try:
        yield casd
    finally:
        casd.stop(signal.SIGKILL)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def wait_for_port(port: int, limit_s: float = 20.0) -> None:
    def listens() -> bool:
        with socket.create_connection(("127.0.0.1", port), 1.0):
            return True

    wait_until(listens, limit_s)


def wait_until(condition: Callable[[], bool], limit_s: float = 15.0) -> None:
    until = time.monotonic() + limit_s
    while time.monotonic() < until:
        with contextlib.suppress(OSError):
            if condition():
                return
        time.sleep(0.02)
    raise TimeoutError(condition)


class Link:
    """A TCP connection between client and server that is slow, or breaks."""

    def __init__(self, to_port: int, *, delay_s: float = 0.0, bytes_per_s: float = 0.0) -> None:
        self._to_port, self._delay_s = to_port, delay_s
        self._s_per_byte = 1 / bytes_per_s if bytes_per_s else 0.0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = [self._listener]
        self.sent = 0  # bytes, to the server
        self._is_mute = False
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"grpc://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """Break all connections, but take new ones."""
        self._break(self._sockets[1:])
        del self._sockets[1:]

    def close(self) -> None:
        """Break all connections, and refuse new ones."""
        self._break(self._sockets)

    @staticmethod
    def _break(sockets: list[socket.socket]) -> None:
        for each in sockets:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()

    def mute(self) -> None:
        """Keep the connections, and let nothing through any more, as a firewall may."""
        self._is_mute = True

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _address = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._to_port))
                self._sockets += (client, server)
                for ends in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, counts: bool) -> None:  # noqa: FBT001 - a thread's
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 14):
                time.sleep(self._delay_s + len(data) * self._s_per_byte)
                while self._is_mute:
                    time.sleep(0.1)
                self.sent += len(data) if counts else 0
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
