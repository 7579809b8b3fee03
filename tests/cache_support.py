"""Servers for a cache of verdicts: one that does as bazel-remote does, and ones that do wrong."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from conftest import Repo

from gitgates.features.remote.verdict_cache import Server, VerdictCache

PATH = re.compile(r"^/?(.*/)?(ac/|cas/)([a-f0-9]{64})$")  # bazel-remote, server/http.go
STDOUT_RAW, METADATA = 5, 9  # fields of an ActionResult


class CacheServer(ThreadingHTTPServer):
    """A server on loopback that stores what bazel-remote would, and refuses what it would."""

    daemon_threads = True

    def __init__(self, *, status: int = 0, auth: str = "", delay_s: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.entries: dict[str, bytes] = {}
        self.asked: list[str] = []  # method and path of each request
        self.connections = 0
        self.status, self.auth = status, auth
        self.scheme = "http"
        self.headers: list[dict[str, str]] = []
        self.gate = threading.Event()  # each answer waits for it, if there is a delay
        self.delay_s = delay_s

    @property
    def url(self) -> str:
        host = "127.0.0.1" if self.scheme == "http" else "localhost"
        return f"{self.scheme}://{host}:{self.server_address[1]}/project"

    def get_request(self) -> tuple[socket.socket, Any]:
        self.connections += 1
        return super().get_request()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that leaves in the middle is what some tests are about."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: CacheServer

    def do_GET(self) -> None:
        if not (key := self._key()):
            return
        data = self.server.entries.get(key)
        if data is None:
            self._end(404, b"Not found\n")
        else:
            self._end(200, data)

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length", -1)))
        if not (key := self._key()):
            return
        try:
            fields = parse(data)
        except (IndexError, ValueError):
            self._end(400, b"proto: cannot parse invalid wire-format data\n")
            return
        # As addWorkerMetadataHTTP does: the message is marshalled anew, with the client's address.
        worker = b"\x0a\x0e127.0.0.1:1234"
        fields.setdefault(METADATA, [worker])
        self.server.entries[key] = b"".join(
            bytes([number << 3 | 2]) + varint(len(value)) + value
            for number, values in sorted(fields.items())
            for value in values
        )
        self._end(200)

    def _key(self) -> str:
        """Return the key of a request that is let in; empty after another answer."""
        self.server.asked.append(f"{self.command} {self.path}")
        self.server.headers.append(dict(self.headers))
        if self.server.delay_s:
            self.server.gate.wait(self.server.delay_s)
        expected = f"Basic {base64.b64encode(self.server.auth.encode()).decode()}"
        if self.server.auth and self.headers["Authorization"] != expected:
            self._end(401)
        elif self.server.status:
            self._end(self.server.status)
        elif not (match := PATH.match(self.path)) or match[2] != "ac/":
            self._end(400)
        else:
            return match[3]
        return ""

    def _end(self, status: int, body: bytes = b"") -> None:
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "http://192.0.2.1/elsewhere")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None: ...


def varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def parse(message: bytes) -> dict[int, list[bytes]]:
    """Return the fields of a protobuf message whose fields are all texts or messages.

    Raises: IndexError, ValueError.
    """
    fields: dict[int, list[bytes]] = {}
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            value |= (message[at] & 127) << shift
            at += 1
            if message[at - 1] < 128:
                return value
            shift += 7

    while at < len(message):
        tag = number()
        if tag & 7 != 2:
            raise ValueError(tag)
        length = number()
        value = message[at : at + length]
        at += length
        if len(value) != length:
            raise ValueError(length)
        fields.setdefault(tag >> 3, []).append(value)
    return fields


@contextlib.contextmanager
def serving(server: CacheServer, tls: ssl.SSLContext | None = None) -> Iterator[CacheServer]:
    if tls:
        server.scheme = "https"
        server.socket = tls.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.gate.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextlib.contextmanager
def answering(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """Yield the URL of a server that does with each connection what it is told to."""
    listener = socket.create_server(("127.0.0.1", 0))
    is_over = threading.Event()
    threads: list[threading.Thread] = []
    conns: list[socket.socket] = []

    def one(conn: socket.socket) -> None:
        with contextlib.suppress(OSError), conn:
            talk(conn)

    def accept() -> None:
        while not is_over.is_set():
            with contextlib.suppress(OSError):
                conn, _ = listener.accept()
                conns.append(conn)
                threads.append(threading.Thread(target=one, args=(conn,), daemon=True))
                threads[-1].start()

    acceptor = threading.Thread(target=accept, daemon=True)
    acceptor.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/project"
    finally:
        is_over.set()
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        acceptor.join()
        listener.close()
        for conn in conns:
            with contextlib.suppress(OSError):
                conn.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()


def certificates() -> Path:
    """Return a folder of them, which is made once for each worker of pytest."""
    folder = Repo.blank.with_name("certificates")
    if not folder.exists():
        folder.mkdir()
        make_certificates(folder)
    return folder


def make_certificates(folder: Path) -> None:
    """Make ca, server, expired, client, and other (of another authority), each .pem and .key."""
    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")

    def openssl(*args: str) -> None:
        subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)

    for name in ("ca", "other"):
        name_args = ("-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={name}")
        openssl("req", "-x509", *key, *name_args, "-days", "30")
    for name, days in (("server", "30"), ("expired", "-1"), ("client", "30")):
        subject = ("-subj", f"/CN={name}", "-addext", "subjectAltName=DNS:localhost")
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", *subject)
        signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-copy_extensions", "copy")
        openssl("x509", "-req", "-in", f"{name}.csr", *signed, "-days", days, "-out", f"{name}.pem")


def tls(folder: Path, name: str = "server", *, asks_client: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    if asks_client:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(folder / "ca.pem")
    return context


class Said:
    """A cache for one run, and what it has said."""

    def __init__(
        self,
        where: Server | str,
        *,
        writes: bool = True,
        down: str = "",
        env: dict[str, str] | None = None,
    ) -> None:
        self.lines: list[str] = []
        server = where if isinstance(where, Server) else Server(where)
        whole = {**os.environ, **(env or {"no_proxy": "*"})}
        self.cache = VerdictCache(
            server, whole, writes=writes, down_abs=down, say=self.lines.append
        )
