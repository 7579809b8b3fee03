"""`gitgates remote check` with a server for gates: it runs three gates there."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest
from buildgrid_support import Server
from casd_support import needs_casd, serving_casd
from conftest import Repo

from gitgates.core.errors import GitgatesError
from gitgates.features.remote import protos

pytestmark = pytest.mark.slow


def check(repo: Repo, url: str, more: str = "", instance: str = "") -> tuple[int, list[str]]:
    text = f'[remote]\nexecution = "{url}"\ninstance = "{instance}"\n{more}\n'
    repo.write("gitgates.toml", text)
    # gRPC closes its descriptors after the verb has ended.
    done = repo.gitgates("remote", "check", process=True)
    return done.returncode, done.stdout.decode().splitlines()


@pytest.mark.in_ci
def test_a_server_that_works(repo: Repo, server: Server) -> None:
    for _ in range(2):  # nothing of it is kept
        status, lines = check(repo, server.url, instance=server.instance)
        assert status == 0
        assert lines[0] == f"execution {server.url}"
        assert [line.split(" (")[0] for line in lines[2:4]] == [
            "  pass     ok: passed",
            "  fail     ok: failed, exit status 3",
        ]
        assert lines[1].startswith("  reach    ok: API 2.")
        assert lines[4].startswith("  no start ok: could not run: command not found there")
        assert len(lines) == 5


@needs_casd
@pytest.mark.parametrize("runner", ["/bin/false", "/bin/true"])
def test_a_server_that_cannot_run_anything(repo: Repo, tmp_path: Path, runner: str) -> None:
    with serving_casd(tmp_path / "server", runner=runner) as casd:
        status, lines = check(repo, casd.url)
    assert status == 1
    assert lines[-1].startswith("  pass     failed: could not run: INTERNAL: ")


@needs_casd
def test_a_sandbox_without_a_shell(repo: Repo, tmp_path: Path) -> None:
    with serving_casd(tmp_path / "server", mounts=False) as casd:
        status, lines = check(repo, casd.url)
    assert status == 1
    assert lines[-1].startswith("  pass     failed: could not run: the gate did not run to its end")


def test_a_wrong_instance_and_platform(repo: Repo, server: Server) -> None:
    status, lines = check(repo, server.url, instance="other")
    assert status == 1
    assert lines[-1].startswith("  reach    failed: INVALID_ARGUMENT: ")
    platform = 'platform = { OSFamily = "plan9", Other = "plan9" }'
    status, lines = check(repo, server.url, platform, server.instance)
    assert status == 1
    assert "plan9" in lines[-1]


def test_an_address_that_is_none(repo: Repo) -> None:
    for value, shown in (
        ("[]", "got []"),
        ('"grpc://h:0"', 'got "grpc://h:0"'),
        ('"grpc://me:s3cret@h:1"', 'got "grpc://…@h:1", expected an address without user'),
    ):
        repo.write("gitgates.toml", f"[remote]\nexecution = {value}\n")
        done = repo.gitgates("check")
        assert done.returncode == 78
        assert shown in done.stderr.decode()
        assert b"s3" not in done.stdout + done.stderr


def test_a_server_that_is_not_there(repo: Repo) -> None:
    status, lines = check(repo, "grpc://127.0.0.1:1")
    assert status == 1
    assert lines[-1].startswith("  reach    failed: UNAVAILABLE: ")


def test_a_certificate_that_is_not_there(repo: Repo) -> None:
    repo.write("gitgates.toml", '[remote]\nexecution = "grpcs://127.0.0.1:1"\nca = "none.pem"\n')
    # gRPC closes its descriptors after the verb has ended.
    done = repo.gitgates("remote", "check", process=True)
    assert (done.returncode, done.stderr) == (1, b"")
    assert f"failed: [tool.gitgates.remote]: `ca`: {repo.path}/none.pem" in done.stdout.decode()


@pytest.mark.samples(1)
@pytest.mark.parametrize("package", ["google/protobuf", "grpc"])
def test_without_the_packages(repo: Repo, package: str) -> None:
    repo.write("gitgates.toml", '[remote]\nexecution = "grpc://127.0.0.1:1"\n')
    text = "raise ImportError('none')" if package == "grpc" else ""  # that of an old version
    repo.write(f"path/{package}/__init__.py", text)
    done = repo.ask(
        sys.executable,
        "-m",
        "gitgates",
        "remote",
        "check",
        env={"PYTHONPATH": str(repo.path / "path")},
    )
    assert b"pip install 'gitgates[remote]'" in done.stdout


@pytest.mark.parametrize("content", [b"", b"\x0a\xff", b"half of it", None])
def test_without_the_protos(
    content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "protos.binpb"
    if content is not None:
        path.write_bytes(content)
    monkeypatch.delitem(sys.modules, protos.__name__)
    fresh = importlib.import_module(protos.__name__)
    monkeypatch.setattr(fresh, "_FILE_ABS", str(path))
    with pytest.raises(GitgatesError, match="are missing or damaged"):
        fresh.message("Action")
