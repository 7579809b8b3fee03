"""Gates on a real server that works, and on one that fails in each way that we know of.

Never a wrong pass, never a failure of a gate that did not fail, and no hang.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from buildgrid_support import Server
from casd_support import HAS_FUSE, Casd, Link, free_port, needs_casd, serving_casd
from conftest import SRC, Repo
from nginx_support import TLS, Nginx, needs_nginx

pytestmark = needs_casd

# The only slot here is taken by `busy`, so the others go there. `busy` lasts until the first has
# had time to end; what could not run there runs then, and says so.
CONFIG = """
jobs = 1

[gates.busy]
command = "sleep 1"

[hooks.pre-commit]
strategy = "collect"
gates = ["busy", {names}]

[remote]
execution = "{url}"
{table}
"""
GATE = """
[gates.{name}]
command = "{command}"
remote = true
env = {{ PATH = "/usr/bin:/bin" }}
timeout = "{timeout}"
"""
HERE = "test -e .git && echo HERE;"  # there is no repository there


@pytest.fixture(name="casd")
def _casd(tmp_path: Path) -> Iterator[Casd]:
    with serving_casd(tmp_path / "casd") as casd:
        yield casd


@pytest.fixture(autouse=True)
def _own_pool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITGATES_POOL", str(tmp_path / "pool"))


def configure(repo: Repo, url: str, table: str = "", timeout: str = "20s", **gates: str) -> None:
    """Write the settings: gates by name, with their commands."""
    names = ", ".join(f'"{name}"' for name in gates)
    text = CONFIG.format(url=url, table=table, names=names)
    for name, command in gates.items():
        text += GATE.format(name=name, command=command, timeout=timeout)
    repo.config(text)


def ended(done: subprocess.CompletedProcess[bytes]) -> dict[str, dict[str, Any]]:
    return {result["name"]: result for result in json.loads(done.stdout)["results"]}


def _instance(server: Server) -> str:
    return f'instance = "{server.instance}"'


def run(repo: Repo) -> dict[str, dict[str, Any]]:
    """Run the gates; return their results by name."""
    return ended(repo.gitgates("run", "--format", "json"))


def start(repo: Repo) -> subprocess.Popen[bytes]:
    """Start the gates."""
    program = SRC / ".venv/dev/bin/gitgates"
    argv = [str(program), "run", "--format", "json"]
    return subprocess.Popen(argv, cwd=repo.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def results_of(process: subprocess.Popen[bytes], limit_s: float = 30.0) -> dict[str, Any]:
    out, err = process.communicate(timeout=limit_s)
    return ended(subprocess.CompletedProcess((), process.returncode, out, err))


def ran_here(result: dict[str, Any]) -> bool:
    """Return whether a gate has run here, and it is known why not there."""
    assert result.get("remote_failure", "").startswith("could not run on grpc")
    assert "where" not in result
    return "HERE" in result["output"]


def wait_until(condition: Any, limit_s: float = 15.0) -> None:
    until = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_pass_and_a_failure_there(repo: Repo, server: Server) -> None:
    repo.write("folder/file", "text\n")
    passes = f"{HERE} cat folder/file"
    configure(repo, server.url, _instance(server), passes=passes, fails=f"{HERE} echo bad; exit 3")
    found = run(repo)
    assert found["passes"]["status"] == "passed"
    assert found["passes"]["output"] == "text\n"
    assert (found["fails"]["status"], found["fails"]["exit_code"]) == ("failed", 3)
    assert found["fails"]["output"] == "bad\n"
    assert {found[name]["where"] for name in ("passes", "fails")} == {server.url}
    assert "/" in found["passes"]["action_digest"]


@pytest.mark.skipif(not HAS_FUSE, reason="there is no FUSE here")
def test_files_that_are_shown_by_fuse(repo: Repo, tmp_path: Path) -> None:
    repo.write("folder/file", "text\n")
    with serving_casd(tmp_path / "casd", fuse=True) as casd:
        configure(repo, casd.url, reads=f"{HERE} cat folder/file", ends="sleep 600", timeout="4s")
        process = start(repo)
        wait_until(lambda: str(tmp_path) in Path("/proc/mounts").read_text())
        found = results_of(process)
        assert (found["reads"]["output"], found["reads"].get("where")) == ("text\n", casd.url)
        assert found["ends"]["status"] == "timed-out"
        wait_until(lambda: not casd.children())
    assert str(tmp_path) not in Path("/proc/mounts").read_text()


def test_the_runner_is_killed(repo: Repo, casd: Casd) -> None:
    configure(repo, casd.url, goes=f"{HERE} test -e .git || sleep 30")
    process = start(repo)
    wait_until(lambda: len(casd.children()) > 1)
    for pid in casd.children():
        with contextlib.suppress(ProcessLookupError):  # it ends with its parent
            os.kill(pid, signal.SIGKILL)
    assert ran_here(results_of(process)["goes"])


@pytest.mark.in_ci
def test_the_server_is_killed(repo: Repo, casd: Casd) -> None:
    configure(repo, casd.url, goes=f"{HERE} test -e .git || sleep 30")
    process = start(repo)
    wait_until(lambda: len(casd.children()) > 1)
    casd.stop(signal.SIGKILL)
    assert ran_here(results_of(process)["goes"])


def test_the_connection_breaks(repo: Repo, casd: Casd) -> None:
    link = Link(casd.port)
    configure(repo, link.url, goes=f"{HERE} test -e .git || sleep 30")
    process = start(repo)
    wait_until(lambda: len(casd.children()) > 1)
    link.close()
    assert ran_here(results_of(process)["goes"])


def test_nobody_listens(repo: Repo) -> None:
    configure(repo, f"grpc://127.0.0.1:{free_port()}", goes=HERE)
    assert ran_here(run(repo)["goes"])


def test_nobody_listens_and_nothing_runs_here(repo: Repo) -> None:
    configure(repo, f"grpc://127.0.0.1:{free_port()}", 'fallback = "fail"', goes=HERE)
    done = repo.gitgates("run", "--format", "json")
    goes = ended(done)["goes"]
    assert (goes["status"], done.returncode) == ("not-started", 1)
    assert goes["reason"].startswith("could not run on grpc://")


def test_somebody_else_listens(repo: Repo) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        configure(repo, f"grpc://127.0.0.1:{mute.getsockname()[1]}", goes=HERE, timeout="40s")
        began = time.monotonic()
        assert ran_here(run(repo)["goes"])
        assert time.monotonic() - began < 10.0


@pytest.mark.parametrize("runner", ["/bin/false", "/bin/true"])
def test_the_runner_is_none(repo: Repo, tmp_path: Path, runner: str) -> None:
    with serving_casd(tmp_path / "casd", runner=runner) as casd:
        configure(repo, casd.url, goes=HERE)
        assert ran_here(run(repo)["goes"])


def test_the_sandbox_has_no_shell_and_the_server_caches_that(repo: Repo, tmp_path: Path) -> None:
    with serving_casd(tmp_path / "casd", mounts=False) as casd:
        configure(repo, casd.url, goes=HERE)
        for _time in range(2):
            assert ran_here(run(repo)["goes"])


def test_the_server_has_lost_what_it_had(repo: Repo, casd: Casd) -> None:
    repo.write("file", "text\n")
    configure(repo, casd.url, goes=f"{HERE} cat file")
    assert run(repo)["goes"]["where"] == casd.url
    casd.stop()
    shutil.rmtree(casd.folder)
    casd.start()
    goes = run(repo)["goes"]
    assert goes["status"] == "passed"
    assert goes["output"] in ("text\n", "HERE\ntext\n")


@pytest.mark.parametrize(
    "fuse", [False, pytest.param(True, marks=pytest.mark.skipif(not HAS_FUSE, reason="no FUSE"))]
)
def test_a_file_is_evicted_before_it_runs(repo: Repo, tmp_path: Path, fuse: bool) -> None:  # noqa: FBT001 - a parameter
    repo.write("file", "only in this file\n")
    with serving_casd(tmp_path / "casd", fuse=fuse) as casd:
        configure(repo, casd.url, goes=f"{HERE} cat file")
        assert run(repo)["goes"]["where"] == casd.url
        gone = [
            path
            for path in (casd.folder / "cache").rglob("*")
            if path.is_file() and path.read_bytes() == b"only in this file\n"
        ]
        assert gone
        for path in gone:
            path.unlink()
        configure(repo, casd.url, goes=f"{HERE} cat file # again")
        goes = run(repo)["goes"]
        assert goes["status"] == "passed"
        assert goes["output"] in ("only in this file\n", "HERE\nonly in this file\n")


def test_past_its_time_nothing_is_left_running(repo: Repo, server: Server) -> None:
    configure(repo, server.url, _instance(server), goes="sleep 600", timeout="3s")
    began = time.monotonic()
    goes = run(repo)["goes"]
    assert goes["status"] == "timed-out"
    assert time.monotonic() - began < 10.0
    wait_until(lambda: not server.children())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_it_is_cancelled_there_with_the_run(repo: Repo, server: Server, number: int) -> None:
    configure(repo, server.url, _instance(server), goes="sleep 600", timeout="600s")
    process = start(repo)
    wait_until(lambda: len(server.children()) > 1)
    process.send_signal(number)
    process.communicate(timeout=10.0)
    wait_until(lambda: not server.children())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_the_disk_of_the_server_is_full(repo: Repo, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(small)]
    if subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("a disk cannot be mounted here")
    try:
        with serving_casd(small / "casd") as casd:
            repo.write("large", os.urandom(8 << 20))
            configure(repo, casd.url, goes=f"{HERE} wc -c large")
            goes = run(repo)["goes"]
            assert ran_here(goes)
            assert goes["status"] == "passed"
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_the_instance_is_wrong(repo: Repo, casd: Casd) -> None:
    configure(repo, casd.url, 'instance = "another"', goes=HERE)
    assert ran_here(run(repo)["goes"])


def test_a_slow_link(repo: Repo, casd: Casd) -> None:
    link = Link(casd.port, delay_s=0.1, bytes_per_s=500e3)
    repo.write("large", os.urandom(300_000))
    configure(repo, link.url, goes=f"{HERE} wc -c large")
    found = run(repo)["goes"]
    assert (found["status"], found["where"]) == ("passed", link.url)
    first, link.sent = link.sent, 0
    repo.write("small", "another file\n")
    assert run(repo)["goes"]["where"] == link.url
    assert first > 300_000
    assert link.sent < 20_000
    link.close()


def test_a_link_that_is_cut_without_a_word(repo: Repo, casd: Casd) -> None:
    link = Link(casd.port)
    configure(repo, link.url, goes="sleep 2", timeout="4s")
    process = start(repo)
    wait_until(lambda: len(casd.children()) > 1)
    link.mute()
    began = time.monotonic()
    assert results_of(process)["goes"]["status"] in ("timed-out", "passed")
    assert time.monotonic() - began < 15.0
    link.close()


@needs_nginx
@pytest.mark.in_ci
def test_behind_nginx_with_client_certificates(repo: Repo, casd: Casd, tmp_path: Path) -> None:
    nginx = Nginx(tmp_path / "nginx", casd.port)
    try:
        tls = TLS.format(nginx.folder)
        configure(repo, nginx.url, tls, goes=f"{HERE} echo there")
        found = run(repo)["goes"]
        assert (found["output"], found.get("where")) == ("there\n", nginx.url)
        for wrong in (f'ca = "{nginx.folder}/ca.pem"', tls.replace("/ca.pem", "/other.pem")):
            configure(repo, nginx.url, wrong, goes=HERE)
            assert ran_here(run(repo)["goes"])
    finally:
        nginx.kill()


@needs_nginx
def test_the_proxy_is_killed(repo: Repo, casd: Casd, tmp_path: Path) -> None:
    nginx = Nginx(tmp_path / "nginx", casd.port)
    tls = TLS.format(nginx.folder)
    configure(repo, nginx.url, tls, goes=f"{HERE} test -e .git || sleep 30")
    process = start(repo)
    wait_until(lambda: len(casd.children()) > 1)
    nginx.kill()
    assert ran_here(results_of(process)["goes"])


@needs_nginx
def test_the_certificate_has_expired(repo: Repo, casd: Casd, tmp_path: Path) -> None:
    nginx = Nginx(tmp_path / "nginx", casd.port, "expired")
    try:
        configure(repo, nginx.url, TLS.format(nginx.folder), goes=HERE)
        assert ran_here(run(repo)["goes"])
    finally:
        nginx.kill()
