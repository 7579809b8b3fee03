"""A cache of verdicts that works: what is read and written, and how the server is asked."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from cache_support import CacheServer, Said, answering, certificates, parse, serving, tls
from conftest import Repo

from gitgates.features.remote.transfer import unwrapped, wrapped
from gitgates.features.remote.verdict_cache import Server

pytestmark = pytest.mark.slow  # a Python for each cache


def key(number: int) -> str:
    return hashlib.sha256(f"{number}".encode()).hexdigest()


ENTRIES = {key(number): f'{{"payload":"{number}"}}'.encode() for number in range(40)}


@pytest.fixture(scope="module", name="certificates")
def _certificates() -> Path:
    return certificates()


@pytest.fixture(name="server")
def _server() -> Iterator[CacheServer]:
    with serving(CacheServer()) as server:
        yield server


def test_what_one_run_writes_the_next_one_reads(server: CacheServer) -> None:
    one, other = Said(server.url), Said(server.url)
    assert one.cache.get(ENTRIES) == {}
    one.cache.put(ENTRIES)
    assert other.cache.get([*ENTRIES, key(99)]) == ENTRIES
    assert one.lines == other.lines == []
    other.cache.close()
    assert {line.split()[1] for line in server.asked} == {
        f"/project/ac/{name}" for name in [*ENTRIES, key(99)]
    }


def test_connections_are_kept(server: CacheServer) -> None:
    said = Said(server.url)
    said.cache.get(ENTRIES)
    said.cache.put(ENTRIES)
    assert len(server.asked) == 80
    assert server.connections <= 8


def test_a_key_is_asked_for_once_in_a_run(server: CacheServer) -> None:
    said = Said(server.url)
    for _time in range(2):
        said.cache.get([key(1), key(1), key(2)])
    said.cache.close()
    assert sorted(server.asked) == sorted(f"GET /project/ac/{key(n)}" for n in (1, 2))


def test_a_client_that_is_started_early_asks_nothing(server: CacheServer) -> None:
    cache = Said(Server(server.url)).cache
    cache.start()
    assert server.asked == []
    assert cache.get([key(1)]) == {}
    assert len(server.asked) == 1


def test_what_is_stored_is_an_action_result(server: CacheServer) -> None:
    Said(server.url).cache.put({key(1): b"envelope"})
    fields = parse(server.entries[key(1)])
    assert fields[5] == [b"envelope"]
    assert set(fields) == {5, 9}  # bazel-remote has added who wrote it


@pytest.mark.parametrize("length", [1, 127, 128, 16383, 16384, 1 << 20])
def test_an_entry_comes_out_as_it_went_in(length: int) -> None:
    entry = os.urandom(length)
    assert parse(wrapped(entry)) == {5: [entry]}
    before = b"\x20\x07\x3d1234\x319876543\x00"  # fields of the other wire types
    assert unwrapped(before + wrapped(entry) + b"\x4a\x00") == entry


def test_who_may_not_write_does_not(server: CacheServer) -> None:
    said = Said(server.url, writes=False)
    said.cache.put(ENTRIES)
    assert (server.asked, said.lines) == ([], [])


def test_an_idle_connection_that_was_closed_is_opened_again() -> None:
    def once(conn: object) -> None:
        conn.recv(4096)  # type: ignore[attr-defined]
        conn.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")  # type: ignore[attr-defined]

    with answering(once) as url:
        said = Said(url)
        assert said.cache.get([key(1)]) == {}
        assert said.cache.get([key(2)]) == {}
        said.cache.close()
    assert said.lines == []


def test_tls_with_own_authority_password_and_client_certificate(
    certificates: Path, tmp_path: Path
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine localhost login ci password s3cret#!\n")
    context = tls(certificates, asks_client=True)
    with serving(CacheServer(auth="ci:s3cret#!"), context) as served:
        server = Server(
            served.url,
            ca=str(certificates / "ca.pem"),
            cert=str(certificates / "client.pem"),
            key=str(certificates / "client.key"),
            netrc=str(netrc),
        )
        said = Said(server)
        said.cache.put(ENTRIES)
        assert said.lines == []
        again = Said(server)
        assert again.cache.get(ENTRIES) == ENTRIES
        again.cache.close()


def test_default_of_netrc_is_not_for_a_server_of_the_configuration(
    server: CacheServer, tmp_path: Path
) -> None:
    (tmp_path / "netrc").write_text("default login me password secret\n")
    said = Said(Server(server.url, netrc=str(tmp_path / "netrc")))
    said.cache.get([key(1)])
    said.cache.close()
    assert all("Authorization" not in headers for headers in server.headers)
    assert said.lines == []


def test_a_proxy_is_asked(server: CacheServer) -> None:
    proxy = server.url.replace("//", "//me:p%40ss@")
    said = Said("http://cache.invalid/project", env={"http_proxy": proxy, "no_proxy": ""})
    said.cache.get([key(1)])
    said.cache.close()
    assert server.asked == [f"GET http://cache.invalid/project/ac/{key(1)}"]
    assert server.headers[0]["Proxy-Authorization"] == "Basic bWU6cEBzcw=="
    assert said.lines == []


def configured(repo: Repo, server: CacheServer, more: str = "") -> Repo:
    repo.write("gitgates.toml", f'[remote]\nverdicts = "{server.url}"\n{more}')
    return repo


def test_check_proves_a_server(repo: Repo, server: CacheServer) -> None:
    configured(repo, server, 'write = "always"\n')
    done = repo.gitgates("remote", "check")
    assert done.returncode == 0, done.stderr
    steps = [line.split(" (")[0] for line in done.stdout.decode().splitlines()]
    assert steps == [
        f"cache {server.url}",
        "  read     ok: no entry for a new key, as expected",
        "  write    ok: an entry of 1 KiB",
        "  read it  ok: the same entry",
    ]
    assert len(server.entries) == 1


def test_check_writes_nothing_where_only_ci_writes(repo: Repo, server: CacheServer) -> None:
    done = configured(repo, server).gitgates("remote", "check", env={"CI": "false"})
    assert done.returncode == 0
    assert b'write    not tried: write = "ci", and CI is not set' in done.stdout
    assert [line.split()[0] for line in server.asked] == ["GET"]
    assert repo.gitgates("remote", "check", env={"CI": "true"}).returncode == 0
    assert len(server.entries) == 1


def test_check_fails_with_a_reason(repo: Repo, server: CacheServer) -> None:
    server.status = 507
    done = configured(repo, server).gitgates("remote", "check")
    assert done.returncode == 1
    assert b"  read     failed: GET: 507 Insufficient Storage" in done.stdout


def test_check_without_a_cache_checks_nothing(repo: Repo) -> None:
    done = repo.gitgates("remote", "check")
    assert done.returncode == 1
    assert b"nothing was checked" in done.stderr
