"""The child process that talks to a cache: one request for each key, on several connections.

The protocol is that of Bazel's clients: GET and PUT of URL/ac/KEY. A server such as bazel-remote
checks that what is stored there is an `ActionResult`, so an entry is one, with the envelope as its
`stdout_raw`. Source: the pages "Remote caching" of Bazel and README of bazel-remote;
remote_execution.proto of the Remote Execution API, version 2.

The parent ends this process when time is up, so nothing here has a time limit. It never follows a
redirect, and never asks for compressed answers.
"""

from __future__ import annotations

import base64
import http.client
import marshal
import netrc
import os
import queue
import socket
import ssl
import threading
import urllib.parse

from gitgates.core import environ
from gitgates.features.remote.verdict_cache import Server, framed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO

MOST_BYTES = 1 << 20  # of an entry
_MOST_CONNECTIONS = 8
_STDOUT_RAW = 5  # the field of an ActionResult
_BYTES = 2  # its wire type
_NO_ENTRY = (404, 410)
_WRITTEN = (200, 201, 202, 204)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# An idle connection that the server has closed meanwhile.
_STALE = (
    http.client.RemoteDisconnected,
    ConnectionResetError,
    BrokenPipeError,
    ssl.SSLEOFError,
)


class TransferError(Exception):
    """Why the server, or its configuration, cannot be used: a message for people."""


class _EntryError(Exception):
    """Why one answer cannot be used."""


def main() -> None:
    """Answer requests from standard input until it ends."""
    with os.fdopen(0, "rb") as requests:
        try:
            server = _Site(Server(**_read(requests)))
        except TransferError as error:
            _answer("failed", "", str(error).encode())
            return
        waiting: queue.SimpleQueue[tuple[str, str, bytes]] = queue.SimpleQueue()
        threads = 0
        while request := _read(requests):
            waiting.put(request)
            if threads < min(_MOST_CONNECTIONS, waiting.qsize()):
                threading.Thread(target=_work, args=(server, waiting), daemon=True).start()
                threads += 1


def _read(stream: BinaryIO) -> Any:  # noqa: ANN401 - whatever our parent sends
    length = int.from_bytes(stream.read(4), "big")
    return marshal.loads(stream.read(length)) if length else None  # noqa: S302 - of our parent


_one_at_a_time = threading.Lock()


def _answer(kind: str, key: str, body: bytes) -> None:
    data = framed((kind, key, body))
    with _one_at_a_time:
        while data:
            data = data[os.write(1, data) :]


def _work(site: _Site, waiting: queue.SimpleQueue[tuple[str, str, bytes]]) -> None:
    connection = site.connection()
    while True:
        method, key, entry = waiting.get()
        try:
            _answer(method, key, site.ask(connection, method, key, entry))
        except _EntryError as error:
            _answer("bad", key, str(error).encode())
        except Exception as error:  # noqa: BLE001 - each is a reason to ask no more
            _answer("failed", "", f"{method}: {_reason(error)}".encode())
            return


class _Site:
    """A server, with what is needed to connect and authenticate."""

    def __init__(self, server: Server) -> None:
        parts = urllib.parse.urlsplit(server.url)
        self._host, self._port = parts.hostname or "", parts.port
        self._path = f"{parts.path}/ac/"
        self._context = tls_context(server) if parts.scheme == "https" else None
        password = _authorization(server, self._host)
        if password and not self._context and self._host not in _LOOPBACK:
            raise TransferError("its password from netrc is sent only over https")
        self._headers = {"User-Agent": "gitgates", **password}
        self._proxy = _proxy(parts.scheme, parts.netloc)
        if self._proxy and not self._context:
            self._path = f"http://{parts.netloc}{self._path}"

    def connection(self) -> http.client.HTTPConnection:
        """Return a connection, which is made with the first request."""
        via = self._proxy
        host, port = (via.hostname or "", via.port) if via else (self._host, self._port)
        if not self._context:
            return http.client.HTTPConnection(host, port)
        connection = http.client.HTTPSConnection(host, port, context=self._context)
        if via:
            connection.set_tunnel(self._host, self._port or 443, _proxy_authorization(via))
        return connection

    def ask(
        self, connection: http.client.HTTPConnection, method: str, key: str, entry: bytes
    ) -> bytes:
        """Return the entry of a key; empty if there is none, or it was written.

        Raises: _EntryError; TransferError, OSError, HTTPException if the server cannot be used.
        """
        if len(entry) > MOST_BYTES:
            raise _EntryError("not written: longer than 1 MiB")
        is_new = connection.sock is None
        try:
            return self._ask(connection, method, key, entry)
        except _STALE:
            connection.close()
            if is_new:
                raise
            return self._ask(connection, method, key, entry)
        except _EntryError:
            connection.close()  # what follows may not be the next answer
            raise

    def _ask(
        self, connection: http.client.HTTPConnection, method: str, key: str, entry: bytes
    ) -> bytes:
        headers = dict(self._headers)
        if self._proxy and not self._context:
            headers |= _proxy_authorization(self._proxy)
        if method == "PUT":
            headers["Content-Type"] = "application/octet-stream"
        body = wrapped(entry) if method == "PUT" else None
        connection.request(method, self._path + key, body, headers)
        response = connection.getresponse()
        is_read = method == "GET" and response.status == http.client.OK
        if is_read and response.headers.get("Content-Encoding", "identity") != "identity":
            raise _EntryError("its answer is compressed, although that was not requested")
        if is_read and (response.length or 0) > MOST_BYTES:
            raise _EntryError("its entry is longer than 1 MiB")
        message = response.read(MOST_BYTES + 1)
        if len(message) > MOST_BYTES:
            raise _EntryError("its answer is longer than 1 MiB")
        if response.length:
            raise http.client.IncompleteRead(message, response.length)
        if is_read:
            return unwrapped(message)
        if response.status in (_NO_ENTRY if method == "GET" else _WRITTEN):
            return b""
        is_redirect = 300 <= response.status < 400  # noqa: PLR2004 - by RFC 9110
        phrase = http.client.responses.get(response.status, "")
        what = "redirects are not followed" if is_redirect else phrase
        raise TransferError(f"{response.status} {what}".strip())


def wrapped(envelope: bytes) -> bytes:
    """Return an ActionResult with an envelope as its standard output."""
    length, head = len(envelope), bytearray([_STDOUT_RAW << 3 | _BYTES])
    while length > 0x7F:  # noqa: PLR2004 - a varint has seven bits in a byte
        head.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([*head, length]) + envelope


def unwrapped(message: bytes) -> bytes:
    """Return the standard output of an ActionResult, which may have other fields.

    Raises: _EntryError if it is not an ActionResult, or has no standard output.
    """
    envelope, at = b"", 0
    try:
        while at < len(message):
            tag, at = _varint(message, at)
            length, at = _length(message, at, tag & 7)
            if tag == _STDOUT_RAW << 3 | _BYTES:
                envelope = message[at : at + length]
            at += length
    except IndexError:
        envelope = b""
    if not envelope or at != len(message):
        raise _EntryError("its entry was not written by gitgates")
    return envelope


def _length(message: bytes, at: int, wire_type: int) -> tuple[int, int]:
    """Return the length of a field's value, and where it begins. Raises: IndexError."""
    match wire_type:
        case 0:
            return 0, _varint(message, at)[1]
        case 1:
            return 8, at
        case 2:
            return _varint(message, at)
        case 5:
            return 4, at
    raise IndexError


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return a number, and where it ends. Raises: IndexError."""
    value = 0
    for shift in range(0, 64, 7):
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
    raise IndexError


def tls_context(server: Server) -> ssl.SSLContext:
    """Return a TLS context with the configured certificates. Raises: TransferError."""
    for name in ("ca", "cert", "key"):
        _require(name, getattr(server, name))
    try:
        context = ssl.create_default_context(cafile=server.ca or None)
    except (ssl.SSLError, ValueError):
        raise TransferError(f"`ca`: there are no certificates in {server.ca}") from None
    if server.key and not server.cert:
        raise TransferError("`key`: has no `cert`")
    if server.cert:
        try:
            # Without the last argument, OpenSSL asks on the terminal.
            context.load_cert_chain(server.cert, server.key or None, lambda: "")
        except (ssl.SSLError, ValueError):
            files = f"{server.cert} and {server.key}" if server.key else server.cert
            why = "are not a certificate and its private key in PEM, without a passphrase"
            raise TransferError(f"`cert` and `key`: {files} {why}") from None
    return context


def _require(name: str, path_abs: str) -> None:
    try:
        if path_abs:
            open(path_abs, "rb").close()
    except OSError as error:
        raise TransferError(f"`{name}`: {path_abs}: {error.strerror}") from None


def _authorization(server: Server, host: str) -> dict[str, str]:
    """Return the header for a server that netrc names; its `default` entry is not used."""
    if server.needs_netrc:
        _require("netrc", server.netrc)
    elif not os.path.isfile(server.netrc):
        return {}
    try:
        entry = netrc.netrc(server.netrc).hosts.get(host)
    except netrc.NetrcParseError as error:  # its message may have the password
        raise TransferError(f"{server.netrc}:{error.lineno}: not in the format of netrc") from None
    except (OSError, ValueError):
        raise TransferError(f"{server.netrc} cannot be read") from None
    return {"Authorization": _basic(entry[0], entry[2])} if entry else {}


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _proxy(scheme: str, host: str) -> urllib.parse.SplitResult | None:
    """Return the URL of the proxy that the environment names."""
    if not any(name.lower().endswith("_proxy") for name in environ.read()):
        return None
    from urllib.request import getproxies_environment, proxy_bypass  # seldom needed

    proxy = getproxies_environment().get(scheme, "")
    if not proxy or proxy_bypass(host):
        return None
    parts = urllib.parse.urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    try:
        if parts.scheme == "http" and parts.hostname and parts.port != 0:
            return parts
    except ValueError:
        pass  # its port is invalid
    raise TransferError(f"{scheme}_proxy: expected a URL such as http://HOST:PORT")


def _proxy_authorization(proxy: urllib.parse.SplitResult) -> dict[str, str]:
    if not proxy.username:
        return {}
    user, password = map(urllib.parse.unquote, (proxy.username, proxy.password or ""))
    return {"Proxy-Authorization": _basic(user, password)}


def _reason(error: Exception) -> str:
    """Return why a server cannot be used, without quoting it."""
    match error:
        case TransferError():
            text = str(error)
        case ssl.SSLCertVerificationError():
            text = f"certificate verify failed: {error.verify_message}"
        case ssl.SSLError():
            text = f"TLS: {(error.reason or 'the server has ended it').lower().replace('_', ' ')}"
        case socket.gaierror():
            text = f"its name cannot be resolved: {error.strerror}"
        case http.client.RemoteDisconnected() | ConnectionResetError():
            text = "closed the connection without an answer"
        case OSError() if error.strerror:
            text = error.strerror.lower()
        case http.client.IncompleteRead():
            text = "its answer ended too early"
        case http.client.HTTPException():
            text = "its answer is not HTTP"
        case _:
            text = type(error).__name__
    return text
