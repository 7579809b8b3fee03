"""What a result of a real server means: passed, failed, or could not run. The server may break."""

from __future__ import annotations

import secrets
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from buildgrid_support import Server
from casd_support import Casd, Link, needs_casd, serving_casd
from conftest import Repo
from remote_client_support import Client

from gitgates.core.types import Config
from gitgates.features.remote.gates import RemoteEnd

pytestmark = [needs_casd, pytest.mark.slow]


@pytest.fixture(name="client")
def _client(repo: Repo) -> Client:
    repo.write("bin/tool", "#!/bin/sh\ncat ../data\n").chmod(0o755)
    repo.write("no-interpreter", "#!/no/interpreter\n").chmod(0o755)
    repo.write("data", "content\n")
    return Client(repo)


@pytest.fixture(name="casd")
def _casd(tmp_path: Path) -> Iterator[Casd]:
    with serving_casd(tmp_path / "server") as casd:
        yield casd


def brief(end: RemoteEnd) -> tuple[str, int]:
    return end.status, end.exit_status


@pytest.mark.in_ci
def test_a_gate_passes_with_its_files_and_the_output_in_order(
    client: Client, server: Server
) -> None:
    end = client.sh(server, "cat data; echo wrong >&2; echo last; test ! -e .git; env", reuse=True)
    assert brief(end) == ("passed", 0)
    assert client.output.startswith(b"content\nwrong\nlast\n")
    assert b"HOME" not in client.output
    assert len(end.action_digest.partition("/")[0]) == 64


def test_a_program_in_a_folder_that_the_server_mounts_over_its_own(
    client: Client, server: Server
) -> None:
    assert brief(client.run(server, "./tool", cwd="bin")) == ("passed", 0)
    assert client.output == b"content\n"


@pytest.mark.parametrize("status", [1, 2, 77, 125, 139])
def test_a_gate_fails(client: Client, server: Server, status: int) -> None:
    assert brief(client.sh(server, f"echo why; exit {status}")) == ("failed", status)
    assert client.output == b"why\n"


def test_a_gate_that_writes_the_end_itself_fails(client: Client, server: Server) -> None:
    text = r"""words=$(tr '\0' '\n' </proc/$PPID/cmdline)
        token=$(echo "$words" | grep -E '^[0-9a-f]{64}$') && echo "$token 0" >../gitgates/end
        (sleep 1; echo "$token 0" >../gitgates/end) & exit 1"""
    assert brief(client.sh(server, text)) == ("failed", 1)


def test_paths_are_those_of_here(client: Client, server: Server) -> None:
    text = "echo $PWD/data:1; echo at $PWD/sub/x http://a/checkout/b"
    assert brief(client.sh(server, text)) == ("passed", 0)
    here = client.repo.path
    assert client.output.decode() == f"{here}/data:1\nat {here}/sub/x http://a/checkout/b\n"


def test_a_path_without_programs(client: Client, server: Server) -> None:
    assert brief(client.run(server, "/bin/true", env={"PATH": "/nowhere"})) == ("passed", 0)


def test_a_gate_is_ended_by_a_signal_of_its_own(client: Client, server: Server) -> None:
    assert brief(client.sh(server, "kill -SEGV $$")) == ("failed", 128 + signal.SIGSEGV)


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (("/no/such/program",), "command not found there"),
        (("no-such-program",), "command not found there"),
        (("./no-interpreter",), "command not found there"),
        (("./data",), "could not be started there"),
        (("cd", "/"), "command not found there"),  # builtins of the shell
        (("exit", "0"), "command not found there"),
        (("eval", "true"), "command not found there"),
        (("/bin/sh", "-c", "kill -KILL $$"), "SIGKILL"),
        (("/bin/sh", "-c", "kill -TERM $$"), "SIGTERM"),
        (("/bin/sh", "-c", "kill -XCPU $$"), "SIGXCPU"),
        (("/bin/sh", "-c", "mkdir ../gitgates/end"), "did not run to its end"),
        (("/bin/sh", "-c", "ln -s /dev/null ../gitgates/end"), "INTERNAL"),
        (("/bin/sh", "-c", "kill -KILL $PPID"), "SIGKILL"),  # the wrapper
        (("/bin/sh", "-c", "kill -ALRM $PPID; sleep 1"), "did not run to its end"),
        (("/bin/true", "\udcff"), "is not UTF-8"),
    ],
)
def test_what_did_not_start_or_was_ended_is_neither(
    client: Client, server: Server, argv: tuple[str, ...], reason: str
) -> None:
    end = client.run(server, *argv)
    assert end.status == "could-not-run"
    assert reason in end.reason
    assert not end.is_down


def test_a_folder_that_is_not_there(client: Client, server: Server) -> None:
    end = client.sh(server, "exit 0", cwd="none")
    assert end.status == "could-not-run"
    assert "did not run to its end" in end.reason


def test_only_a_pass_is_taken_from_the_cache(client: Client, server: Server) -> None:
    ends, outputs = [], []
    for text in ("date +%N", "date +%N; exit 3"):
        for _ in range(2):
            ends.append(client.sh(server, text, reuse=True))
            outputs.append(client.output)
    assert [end.is_cached for end in ends[:2]] == [False, True]
    assert outputs[0] == outputs[1] != b""
    assert brief(ends[2]) == brief(ends[3]) == ("failed", 3)
    assert outputs[2] != outputs[3]


@pytest.mark.parametrize(
    "fields", [{}, {"reuse": True, "max_age_s": 5.0}, {"reuse": True, "reads": ("/x",)}]
)
def test_what_is_not_to_be_reused_runs_again(
    client: Client, server: Server, fields: dict[str, object]
) -> None:
    client.sh(server, "date +%N", **fields)
    first = client.output
    assert not client.sh(server, "date +%N", **fields).is_cached
    assert client.output != first


def test_a_gate_over_its_time_is_ended_on_the_server(client: Client, server: Server) -> None:
    began_s = time.monotonic()
    command = long_sleep()
    end = client.sh(server, command, timeout_s=8.0)
    assert end.status == "could-not-run"
    # Whoever looks at the clock first, we or the server.
    assert "time limit is over" in end.reason or end.reason.startswith("DEADLINE_EXCEEDED")
    assert time.monotonic() - began_s < 20.0
    assert has_ended(command)


@pytest.mark.in_ci
def test_a_cancelled_gate_is_ended_on_the_server(client: Client, server: Server) -> None:
    over = threading.Event()
    threading.Timer(1.0, over.set).start()
    command = long_sleep()
    end = client.sh(server, command, over=over)
    assert (end.status, end.reason) == ("could-not-run", "cancelled")
    assert has_ended(command)


def test_a_broken_connection_is_made_again_to_wait(client: Client, server: Server) -> None:
    link = Link(server.port)
    threading.Timer(1.5, link.cut).start()
    end = client.sh(link.url, "date +%N; sleep 2.5; date +%N", instance=server.instance)
    link.close()
    assert brief(end) == ("passed", 0)
    assert len(client.output.split()) == 2  # it has run once


def test_properties_that_no_worker_has(client: Client, server: Server) -> None:
    platform, began_s = (("OSFamily", "plan9"),), time.monotonic()
    end = client.sh(server, "exit 0", platform=platform, timeout_s=8.0)
    assert end.status == "could-not-run"
    assert "plan9" in end.reason or "had not started there" in end.reason
    assert time.monotonic() - began_s < 8.0  # the rest of its time is for here


def test_output_is_cut_at_its_start(client: Client, server: Server) -> None:
    most = Config().max_log_bytes
    end = client.sh(server, f"head -c {most + 5_000_000} /dev/zero; echo last")
    assert brief(end) == ("passed", 0)
    assert len(client.output) == most
    assert client.output.endswith(b"\0last\n")


def test_files_larger_than_a_message_are_sent(client: Client, server: Server) -> None:
    client.repo.write("large", "x" * 9_000_000)
    client.sh(server, "wc -c <large")
    assert client.output == b"9000000\n"


@pytest.mark.parametrize(
    "text",
    [
        "exit 0",
        "exit 1",
        "kill -SEGV $$",
        # A result with exit status 0, that another runner might write.
        'for arg; do case $arg in --action-result=*) : >"${arg#*=}";; esac; done',
    ],
)
def test_a_broken_runner(client: Client, tmp_path: Path, text: str) -> None:
    runner = tmp_path / "runner"
    runner.write_text(
        f'#!/bin/sh\n[ "$1" = --help ] || [ "$1" = --validate-parameters ] || {{ {text}\n}}\n'
    )
    runner.chmod(0o755)
    with serving_casd(tmp_path / "server", runner=str(runner)) as casd:
        for _ in range(2):
            end = client.sh(casd.url, "exit 0", reuse=True, timeout_s=10.0)
            assert end.status == "could-not-run"
            assert end.reason


def test_a_sandbox_that_cannot_start_is_not_believed_from_the_cache(
    client: Client, tmp_path: Path
) -> None:
    with serving_casd(tmp_path / "server", mounts=False) as casd:
        first, second = (client.sh(casd.url, "exit 1", reuse=True) for _ in range(2))
        assert first.status == second.status == "could-not-run"
        assert "bwrap" in second.reason
        casd.stop()
        casd.mounts = True
        casd.start()
        assert brief(client.sh(casd.url, "exit 0", reuse=True)) == ("passed", 0)
        assert brief(client.sh(casd.url, "exit 1", reuse=True)) == ("failed", 1)


@pytest.mark.parametrize("comes_back", [True, False])
def test_the_server_is_killed(client: Client, tmp_path: Path, comes_back: bool) -> None:  # noqa: FBT001 - a parameter
    with serving_casd(tmp_path / "server") as casd:

        def kill() -> None:
            casd.stop(signal.SIGKILL)
            if comes_back:
                casd.start()

        timer = threading.Timer(1.0, kill)
        timer.start()
        began_s = time.monotonic()
        end = client.sh(casd.url, "sleep 5")
        timer.join()
    assert end.status == "could-not-run"
    assert time.monotonic() - began_s < 10.0
    assert end.is_down != comes_back


def test_a_server_that_is_not_there(client: Client) -> None:
    end = client.sh("grpc://127.0.0.1:1", "exit 0")
    assert end.status == "could-not-run"
    assert end.reason.startswith("UNAVAILABLE")
    assert end.is_down


def test_a_wrong_instance(client: Client, server: Server) -> None:
    end = client.sh(server, "exit 0", instance="other")
    assert end.status == "could-not-run"
    assert end.reason


def test_blobs_that_the_server_has_lost_are_sent_again(client: Client, casd: Casd) -> None:
    assert brief(client.sh(casd.url, "cat data")) == ("passed", 0)
    for file in (casd.folder / "cache/cas/objects").rglob("*"):
        if file.is_file():
            file.unlink()
    end = client.sh(casd.url, "cat data")
    assert end.status == "passed", end.reason
    assert client.output == b"content\n"


def test_a_file_that_the_server_has_lost_is_sent_again(client: Client, server: Server) -> None:
    client.repo.write("data", "only in this test\n")
    assert brief(client.sh(server, "cat data")) == ("passed", 0)
    files = (path for path in server.folder.rglob("*") if path.is_file())
    lost = [path for path in files if path.read_bytes() == b"only in this test\n"]
    assert lost
    for path in lost:
        path.unlink()
    first = client.sh(server, "cat data # again", timeout_s=10.0)
    second = client.sh(server, "cat data # again") if first.status == "could-not-run" else first
    assert brief(second) == ("passed", 0), (first.reason, second.reason)
    assert client.output == b"only in this test\n"


def long_sleep() -> str:
    """Return a command that no other test runs, or the other server's test beside this one."""
    return f"sleep 60.{secrets.randbelow(10**9)}"


def has_ended(command: str) -> bool:
    """Return whether no process with this command is left, after at most five seconds."""
    deadline_s = time.monotonic() + 5.0
    while time.monotonic() < deadline_s:
        listed = subprocess.run(["ps", "axo", "args"], capture_output=True, text=True, check=True)
        if command not in listed.stdout:
            return True
        time.sleep(0.1)
    return False
