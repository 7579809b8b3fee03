"""A cache of verdicts that is down, slow, lying or full: a miss, one line, and little time."""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cache_support import CacheServer, Said, answering, certificates, serving, tls
from conftest import Repo

from gitgates.features.remote import verdict_cache
from gitgates.features.remote.transfer import TransferError, _EntryError, _reason, _Site, wrapped
from gitgates.features.remote.verdict_cache import DOWN_S, Server
from gitgates.proc.call import RunningProcess, start_program
from gitgates.store.files import read_cached, replace_cached

pytestmark = pytest.mark.slow

KEYS = [hashlib.sha256(b"%d" % number).hexdigest() for number in range(6)]
SLACK_S = 8.0  # of a busy machine
OK = b"HTTP/1.1 200 OK\r\n"
LATE = "no answer within 1 s"
CLOSED = "closed the connection without an answer"


@pytest.fixture(scope="module", name="certificates")
def _certificates() -> Path:
    return certificates()


@pytest.fixture(name="in_time", autouse=True)
def _in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a busy machine time for what is wrong for another reason than the time."""
    monkeypatch.setattr(verdict_cache, "BUDGET_S", 20.0)
    monkeypatch.setenv("no_proxy", "*")


@pytest.fixture(name="late")
def _late(monkeypatch: pytest.MonkeyPatch, in_time: None) -> None:  # noqa: ARG001 - before this
    monkeypatch.setattr(verdict_cache, "BUDGET_S", 1.0)


def missed(where: Server | str) -> str:
    """Read and write; return the one line that is said, without its beginning."""
    began_s = time.monotonic()
    said = Said(where)
    assert said.cache.get(KEYS) == {}
    said.cache.put(dict.fromkeys(KEYS, b"envelope"))
    assert time.monotonic() - began_s < verdict_cache.BUDGET_S + SLACK_S
    assert len(said.lines) == 1, said.lines
    beginning, _, text = said.lines[0].partition(": ")
    assert beginning == f"cache {where.url if isinstance(where, Server) else where}"
    return text


def asked(server: Server | str) -> str:
    """Return what the process that talks to a server would say; it takes a while to start."""
    try:
        site = _Site(server if isinstance(server, Server) else Server(server))
    except TransferError as error:
        return str(error)
    connection = site.connection()
    try:
        return site.ask(connection, "GET", KEYS[0], b"").decode()
    except _EntryError as error:
        return f"{KEYS[0][:12]}: {error}"
    except Exception as error:  # noqa: BLE001 - as that process does
        return f"GET: {_reason(error)}"
    finally:
        connection.close()


# Servers that answer, but not as they should.


def after_request(answer: bytes) -> Callable[[socket.socket], None]:
    def talk(conn: socket.socket) -> None:
        conn.recv(4096)
        conn.sendall(answer)

    return talk


def endless(begin: bytes, part: bytes) -> Callable[[socket.socket], None]:
    def talk(conn: socket.socket) -> None:
        conn.recv(4096)
        conn.sendall(begin)
        while True:
            conn.sendall(part)

    return talk


def slowly(begin: bytes, rest: bytes) -> Callable[[socket.socket], None]:
    """Send a byte a second; whoever stops the server shuts the socket down, which wakes this."""

    def talk(conn: socket.socket) -> None:
        conn.recv(4096)
        conn.sendall(begin)
        conn.settimeout(1.0)
        for byte in rest:
            conn.sendall(bytes([byte]))
            with contextlib.suppress(TimeoutError):
                if not conn.recv(1):
                    return

    return talk


def silent(conn: socket.socket) -> None:
    while conn.recv(4096):
        pass


def half_closed(conn: socket.socket) -> None:
    conn.recv(4096)
    conn.shutdown(socket.SHUT_WR)
    silent(conn)


def unfinished(conn: socket.socket) -> None:
    after_request(OK + b"Content-Length: 500\r\n\r\n" + ENTRY)(conn)
    silent(conn)


ENTRY = wrapped(b"envelope")
WRONG = {
    "killed in mid-answer": (
        after_request(OK + b"Content-Length: 500\r\n\r\n" + ENTRY),
        "GET: its answer ended too early",
    ),
    "cut off without a length": (
        after_request(OK + b"\r\n" + ENTRY[:-1]),
        f"{KEYS[0][:12]}: its entry was not written by gitgates",
    ),
    "endless body": (endless(OK + b"\r\n", b"\x2a" * 65536), "its answer is longer than 1 MiB"),
    "killed in a chunk": (
        after_request(OK + b"Transfer-Encoding: chunked\r\n\r\n40\r\nabc"),
        "GET: its answer ended too early",
    ),
    "half-closed": (half_closed, f"GET: {CLOSED}"),
    "no HTTP": (after_request(b"SSH-2.0-OpenSSH_9.2\r\n"), "GET: its answer is not HTTP"),
    "endless header": (endless(OK, b"X: " + b"y" * 9000 + b"\r\n"), "GET: its answer is not HTTP"),
    "endless line": (endless(b"HTTP/1.1 200 ", b"y" * 9000), "GET: its answer is not HTTP"),
    "endless chunks": (
        endless(OK + b"Transfer-Encoding: chunked\r\n\r\n", b"4000\r\n" + b"a" * 0x4000 + b"\r\n"),
        "its answer is longer than 1 MiB",
    ),
    "too long": (
        after_request(OK + b"Content-Length: 99999999999999\r\n\r\n"),
        "its entry is longer than 1 MiB",
    ),
    "negative length": (
        after_request(OK + b"Content-Length: -5\r\n\r\n"),
        "its entry was not written by gitgates",
    ),
    "shorter length than it is": (
        after_request(OK + b"Content-Length: 4\r\n\r\n" + ENTRY),
        "its entry was not written by gitgates",
    ),
    "compressed": (
        after_request(OK + b"Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\n\x1f\x8b\x08"),
        "its answer is compressed, although that was not requested",
    ),
    "a page for everything": (
        after_request(OK + b"Content-Length: 13\r\n\r\n<html></html>"),
        "its entry was not written by gitgates",
    ),
    "empty": (
        after_request(OK + b"Content-Length: 0\r\n\r\n"),
        "its entry was not written by gitgates",
    ),
}


def test_what_is_wrong_with_an_answer_is_told() -> None:
    said = {}
    for name, (talk, _text) in WRONG.items():
        with answering(talk) as url:
            said[name] = asked(url)
    wrong = {name: said[name] for name in WRONG if not said[name].endswith(WRONG[name][1])}
    assert wrong == {}


@pytest.mark.samples(3)
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_answer_is_a_miss(name: str) -> None:
    talk, text = WRONG[name]
    with answering(talk) as url:
        assert missed(url).endswith(text.split(": ", 1)[-1])


SLOW = {
    "silent": silent,
    "a byte a second of the body": slowly(OK + b"Content-Length: 10\r\n\r\n", ENTRY),
    "a byte a second of the header": slowly(b"HTTP", b"/1.1 200 OK\r\n"),
    "a longer length than it is": unfinished,
    "continues for ever": endless(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
}


@pytest.mark.usefixtures("late")
@pytest.mark.samples(2)
@pytest.mark.parametrize("name", SLOW)
def test_a_slow_server_costs_the_budget_and_no_more(name: str) -> None:
    with answering(SLOW[name]) as url:
        assert missed(url) == LATE


@pytest.fixture(name="black_hole")
def _black_hole() -> Iterator[str]:
    """Yield the URL of a port whose kernel drops all that comes: its queue is full."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.socket())
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _number in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                waiting.connect(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="elsewhere such a port refuses")
@pytest.mark.usefixtures("late")
def test_a_black_hole_costs_the_budget_and_no_more(black_hole: str) -> None:
    assert missed(black_hole) == LATE


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    assert asked(f"http://127.0.0.1:{port}") == "GET: connection refused"


@pytest.mark.usefixtures("late")
def test_a_name_that_does_not_exist() -> None:
    # A resolver without a network may also take longer than there is.
    text = missed("https://cache.invalid")
    assert text == LATE or text.startswith("GET: its name cannot be resolved: ")


STATUSES = {
    302: "302 redirects are not followed",
    599: "599",
    401: "401 Unauthorized",
    403: "403 Forbidden",
    407: "407 Proxy Authentication Required",
    429: "429 Too Many Requests",
    500: "500 Internal Server Error",
    503: "503 Service Unavailable",
}


def test_a_status_is_told() -> None:
    with serving(CacheServer()) as server:
        for status, text in STATUSES.items():
            server.status = status
            assert asked(server.url) == f"GET: {text}"


@pytest.mark.samples(2)
@pytest.mark.parametrize(("status", "text"), STATUSES.items())
def test_a_status_ends_it(status: int, text: str) -> None:
    with serving(CacheServer(status=status)) as server:
        assert missed(server.url) == f"GET: {text}"
        assert len(server.asked) <= 2 * 8  # what was on its way on eight connections, no write


def test_a_full_server_gives_what_it_has() -> None:
    with serving(CacheServer()) as server:
        Said(server.url).cache.put({KEYS[0]: b"envelope"})
        said = Said(server.url)
        assert said.cache.get(KEYS) == {KEYS[0]: b"envelope"}
        server.status = 507
        said.cache.put(dict.fromkeys(KEYS, b"envelope"))
        assert said.lines == [f"cache {server.url}: PUT: 507 Insufficient Storage"]


@pytest.mark.thorough
def test_what_came_in_time_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict_cache, "BUDGET_S", 4.0)
    with serving(CacheServer()) as server:
        Said(server.url).cache.put(dict.fromkeys(KEYS[:2], b"envelope"))
        said = Said(server.url)
        assert said.cache.get(KEYS[:1]) == {KEYS[0]: b"envelope"}
        server.delay_s = 60.0
        assert said.cache.get(KEYS) == {KEYS[0]: b"envelope"}
        assert said.lines == [f"cache {server.url}: no answer within 4 s"]
        assert said.cache.get([*KEYS[:1], "f" * 64]) == {KEYS[0]: b"envelope"}
        said.cache.put({KEYS[5]: b"late"})
        server.gate.set()
    assert KEYS[5] not in server.entries
    assert len(said.lines) == 1


def test_an_entry_that_is_too_long_is_not_written() -> None:
    with serving(CacheServer()) as server:
        said = Said(server.url)
        said.cache.put({KEYS[0]: b"x" * (1 << 20) + b"x", KEYS[1]: b"envelope"})
        assert [*server.entries] == [KEYS[1]]
        assert said.lines == [f"cache {server.url}: {KEYS[0][:12]}: not written: longer than 1 MiB"]


# TLS, and the files for it.


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("served", "ca", "text"),
    [
        ("server", "other", "certificate verify failed: unable to get local issuer certificate"),
        ("expired", "ca", "certificate verify failed: certificate has expired"),
        ("server", "", "certificate verify failed: unable to get local issuer certificate"),
    ],
)
def test_a_wrong_certificate(certificates: Path, served: str, ca: str, text: str) -> None:
    file = str(certificates / f"{ca}.pem") if ca else ""
    with serving(CacheServer(), tls(certificates, served)) as server:
        assert missed(Server(server.url, ca=file)) == f"GET: {text}"
        assert server.asked == []


def test_a_certificate_for_another_host(certificates: Path) -> None:
    with serving(CacheServer(), tls(certificates)) as server:
        there = Server(
            server.url.replace("localhost", "127.0.0.1"), ca=str(certificates / "ca.pem")
        )
        text = asked(there)
    assert "certificate verify failed: IP address mismatch" in text


def test_a_client_without_its_certificate(certificates: Path) -> None:
    with serving(CacheServer(), tls(certificates, asks_client=True)) as server:
        text = asked(Server(server.url, ca=str(certificates / "ca.pem")))
    # The server ends it after the client's first words; whether its reason comes in time, varies.
    reasons = ("TLS: tlsv13 alert certificate required", "TLS: the server has ended it")
    others = ("connection reset by peer", "broken pipe", CLOSED)
    assert text.removeprefix("GET: ") in (*reasons, *others)


def test_plain_http_where_tls_is_expected(certificates: Path) -> None:
    with serving(CacheServer()) as server:
        there = Server(server.url.replace("http:", "https:"), ca=str(certificates / "ca.pem"))
        assert asked(there).startswith("GET: TLS: ")


FILES = {
    "ca": ("/nowhere/ca.pem", "`ca`: /nowhere/ca.pem: No such file or directory"),
    "cert": ("/nowhere/c.pem", "`cert`: /nowhere/c.pem: No such file or directory"),
    "key": ("/nowhere/c.key", "`key`: /nowhere/c.key: No such file or directory"),
    "netrc": ("/nowhere/netrc", "`netrc`: /nowhere/netrc: No such file or directory"),
}


def test_files_that_are_missing_are_told() -> None:
    for name, (path, text) in FILES.items():
        fields: dict[str, Any] = {name: path}
        assert asked(Server("https://127.0.0.1:1", needs_netrc=True, **fields)) == text


@pytest.mark.samples(1)
@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_missing(name: str) -> None:
    path, text = FILES[name]
    fields: dict[str, Any] = {name: path}
    assert missed(Server("https://127.0.0.1:1", needs_netrc=True, **fields)) == text


def test_a_client_that_ends_early_still_says_why() -> None:
    said = Said(Server("https://127.0.0.1:1", ca="/nowhere/ca.pem"))
    assert said.cache.get(f"{number:064x}" for number in range(5000)) == {}
    assert said.lines == [f"cache https://127.0.0.1:1: {FILES['ca'][1]}"]


def test_many_long_entries_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdict_cache, "_MOST_BYTES", 2 << 20)
    with serving(CacheServer()) as server:
        Said(server.url).cache.put(dict.fromkeys(KEYS, b"x" * (1 << 19)))
        said = Said(server.url)
        assert 0 < len(said.cache.get(KEYS)) < len(KEYS)
        assert said.lines == [f"cache {server.url}: its answers have more than 2 MiB"]


def test_files_that_hold_something_else(certificates: Path, tmp_path: Path) -> None:
    text = tmp_path / "text"
    text.write_text("machine localhost login me passwrd s3cret\n")
    server = Server("https://127.0.0.1:1")
    assert asked(server._replace(ca=str(text))) == f"`ca`: there are no certificates in {text}"
    assert "are not a certificate and its private key" in asked(server._replace(cert=str(text)))
    assert asked(server._replace(netrc=str(text))) == f"{text}:1: not in the format of netrc"
    key = str(certificates / "client.key")
    assert asked(server._replace(key=key)) == "`key`: has no `cert`"


def test_a_password_is_only_sent_by_https(tmp_path: Path) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 192.0.2.1 login me password s3cret\n")
    text = asked(Server("http://192.0.2.1", netrc=str(netrc)))
    assert text == "its password from netrc is sent only over https"


PROXIES = ("http://me:s3/cret@proxy", "socks5://proxy:1", "proxy:x", "http://")


def test_proxies_that_are_none_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    for proxy in PROXIES:
        monkeypatch.setenv("https_proxy", proxy)
        said = asked("https://cache.invalid")
        assert said == "https_proxy: expected a URL such as http://HOST:PORT", proxy


@pytest.mark.samples(1)
@pytest.mark.parametrize("proxy", PROXIES)
def test_a_proxy_that_is_none(proxy: str) -> None:
    said = Said("https://cache.invalid", env={"https_proxy": proxy, "no_proxy": ""})
    assert said.cache.get(KEYS) == {}
    assert said.lines == [
        "cache https://cache.invalid: https_proxy: expected a URL such as http://HOST:PORT"
    ]


def test_a_private_key_with_a_passphrase_asks_nobody(certificates: Path, tmp_path: Path) -> None:
    key, locked = certificates / "client.key", tmp_path / "locked.key"
    argv = [
        "openssl",
        "pkey",
        "-in",
        str(key),
        "-aes256",
        "-passout",
        "pass:secret",
        "-out",
        str(locked),
    ]
    subprocess.run(argv, check=True)
    server = Server("https://127.0.0.1:1", cert=str(certificates / "client.pem"), key=str(locked))
    assert asked(server).endswith("in PEM, without a passphrase")


# A server that was down a moment ago.


def test_a_server_that_is_down_is_left_alone_for_a_while(tmp_path: Path) -> None:
    down = tmp_path / "state" / "cache-down"
    with serving(CacheServer(status=503)) as server:
        first = Said(server.url, down=str(down))
        first.cache.get(KEYS[:1])
        assert first.lines == [f"cache {server.url}: GET: 503 Service Unavailable"]
        asked = len(server.asked)
        next_one = Said(server.url, down=str(down))
        assert next_one.cache.get(KEYS) == {}
        (line,) = next_one.lines
        assert line.startswith(f"cache {server.url}: not asked, because it failed ")
        assert line.endswith(" s ago: GET: 503 Service Unavailable")
        assert len(server.asked) == asked
        # With other settings it may work; and after a while.
        other = Said(Server(server.url, netrc="/nowhere"), down=str(down))
        other.cache.get(KEYS[:1])
        assert len(server.asked) > asked
        server.status = 0
        known = read_cached(str(down))
        replace_cached(str(down), (known[0], known[1] - DOWN_S, known[2]))
        later = Said(Server(server.url, netrc="/nowhere"), down=str(down))
        later.cache.put({KEYS[0]: b"envelope"})
        assert later.cache.get(KEYS) == {KEYS[0]: b"envelope"}
        assert later.lines == []


def test_a_server_that_has_answered_something_is_asked_again(tmp_path: Path) -> None:
    with serving(CacheServer()) as server:
        said = Said(server.url, down=str(tmp_path / "down"))
        said.cache.get(KEYS)
        server.status = 507
        said.cache.put({KEYS[0]: b"envelope"})
        assert said.lines == [f"cache {server.url}: PUT: 507 Insufficient Storage"]
    assert not (tmp_path / "down").exists()


def test_no_process_stays(late: None, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ARG001 - the budget is its point
    started: list[RunningProcess] = []

    def start(*args: Any, **kwargs: Any) -> RunningProcess:
        started.append(start_program(*args, **kwargs))
        return started[0]

    monkeypatch.setattr(verdict_cache, "start_program", start)
    with answering(silent) as url:
        missed(url)
    (child,) = started
    with pytest.raises(ProcessLookupError):
        os.kill(child.pid, 0)


def test_a_password_in_the_url_is_refused_and_not_shown(repo: Repo) -> None:
    for url in ("https://me:s3cret@cache.example.com", "https://me:s3/cret@cache.example.com"):
        repo.write("gitgates.toml", f'[remote]\nverdicts = "{url}"\n')
        done = repo.gitgates("check")
        assert done.returncode == 78
        assert b"s3" not in done.stdout + done.stderr
        assert b'got "https://\xe2\x80\xa6@cache.example.com"' in done.stderr
        assert b"Use netrc" in done.stderr


def test_a_private_key_needs_its_certificate(repo: Repo) -> None:
    repo.write("gitgates.toml", '[remote]\nverdicts = "https://cache.example.com"\nkey = "k"\n')
    done = repo.gitgates("check")
    assert done.returncode == 78
    assert b"gitgates.toml: remote.key: has no `cert`" in done.stdout + done.stderr
