"""TLS to a server for gates: whom both sides believe, and what is said of files that are wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from cache_support import certificates
from conftest import Repo
from reapi_stub import Stub, operation, result_of, token_of
from remote_client_support import Client

from gitgates.core.errors import GitgatesError


@pytest.fixture(name="folder", scope="module")
def _folder() -> Path:
    return certificates()


def server(folder: Path, name: str = "server") -> Stub:
    """Return one that wants certificates of its clients."""

    def passes(stub: Stub, _action: Any, command: Any) -> Iterator[Any]:
        yield operation(result_of(stub, f"{token_of(command)} 0\n"))

    pair = (folder / f"{name}.key").read_bytes(), (folder / f"{name}.pem").read_bytes()
    ca = (folder / "ca.pem").read_bytes()
    return Stub(passes, grpc.ssl_server_credentials([pair], ca, require_client_auth=True))


def run(repo: Repo, stub: Stub, host: str = "localhost", **files: Any) -> tuple[str, str]:
    with stub.serving():
        end = Client(repo).sh(stub.url.replace("127.0.0.1", host), "exit 0", **files)
    return end.status, end.reason


@pytest.mark.slow
def test_authorities_are_those_of_the_system_or_of_a_file(
    repo: Repo, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own: dict[str, Any] = {"cert": folder / "client.pem", "key": folder / "client.key"}
    assert run(repo, server(folder), ca=folder / "ca.pem", **own) == ("passed", "")
    assert "CERTIFICATE_VERIFY_FAILED" in run(repo, server(folder), **own)[1]
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
    assert run(repo, server(folder), **own) == ("passed", "")
    assert "CERTIFICATE_VERIFY_FAILED" in run(repo, server(folder, "expired"), **own)[1]
    assert run(repo, server(folder))[0] == "could-not-run"
    assert "127.0.0.1" in run(repo, server(folder), "127.0.0.1", **own)[1]  # of another host


def test_a_server_without_tls(repo: Repo) -> None:
    stub = Stub(lambda *_: iter(()))
    stub.url = stub.url.replace("grpc", "grpcs")
    expected = "UNAVAILABLE: the server does not use TLS, which grpcs:// requires"
    assert run(repo, stub) == ("could-not-run", expected)


def test_files_that_are_wrong_are_named(repo: Repo, folder: Path, tmp_path: Path) -> None:
    locked, text, pem = tmp_path / "locked.key", tmp_path / "text", folder / "client.pem"
    lock = ["openssl", "pkey", "-aes256", "-passout", "pass:secret", "-out", str(locked)]
    subprocess.run([*lock, "-in", str(folder / "client.key")], check=True)
    text.write_text("secret")
    wrong: tuple[tuple[dict[str, Any], str], ...] = (
        ({"ca": text}, "no certificates in"),
        ({"cert": pem, "key": locked}, "without a passphrase"),
        ({"cert": text, "key": folder / "client.key"}, "are not a certificate and its"),
        ({"cert": pem}, "are not a certificate and its"),
        ({"cert": tmp_path}, "Is a directory"),
        ({"cert": pem, "key": tmp_path / "none"}, "No such file"),
    )
    for files, said in wrong:
        with pytest.raises(GitgatesError, match=said):
            Client(repo).sh("grpcs://localhost:1", "exit 0", **files)
