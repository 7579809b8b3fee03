"""The connection to a server of the Remote Execution API.

Every call has a deadline. If the server cannot be reached, a repeatable call is tried a few times.
There are no keepalive pings, because servers close a connection with frequent pings.
Source: gRPC, "Keepalive", "Status codes and their use".
"""

from __future__ import annotations

import functools
import os
import ssl
import threading
import time
import uuid

import grpc

from gitgates import __version__
from gitgates.core.clean import visible_line
from gitgates.core.errors import GitgatesError
from gitgates.features.remote import protos
from gitgates.features.remote.transfer import TransferError, tls_context
from gitgates.features.remote.verdict_cache import Server

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from google.protobuf.message import Message


MOST_BYTES = 4 << 20  # of a message: gRPC's default, to which some servers keep
_ABOUT = "build.bazel.remote.execution.v2.requestmetadata-bin"
_TRIES = 3
_PAUSE_S = 0.2  # doubled each time
_MOST_REASON = 300  # characters of what a server says
_NO_PINGS_MS = 2**31 - 1
_CONNECT_MS = 5000  # the longest that connecting may take, with TLS; gRPC's default is 20 s
_IDLE_MS = 60_000  # then gRPC reconnects: a firewall may have dropped the connection
_OPTIONS = (
    ("grpc.keepalive_time_ms", _NO_PINGS_MS),
    ("grpc.enable_retries", 0),
    ("grpc.client_idle_timeout_ms", _IDLE_MS),
    ("grpc.min_reconnect_backoff_ms", _CONNECT_MS),
    ("grpc.max_receive_message_length", 4 * MOST_BYTES),
    ("grpc.primary_user_agent", "gitgates"),
)
# The system's certificates, if Python does not name their file: gRPC would use its own.
_ROOTS = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt")
LOOPBACK = ("127.", "localhost:", "[::1]:")  # prefixes of addresses that need no proxy
# The server, or our access to it, is the problem, and not one request.
_DOWN = (
    grpc.StatusCode.UNAVAILABLE,
    grpc.StatusCode.UNAUTHENTICATED,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.UNIMPLEMENTED,
)


class ServerError(Exception):
    """What a server could not do: a message for people."""

    def __init__(self, reason: str, *, code: str = "", is_down: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code  # the name of gRPC's status code
        self.is_down = is_down  # other requests would fail as well

    @classmethod
    def of(cls, error: grpc.RpcError) -> ServerError:
        """Return the error of a call that has failed."""
        code = error.code()
        return cls(status_text(code.name, error.details()), code=code.name, is_down=code in _DOWN)


def status_text(name: str, details: str) -> str:
    """Return a gRPC status as one line."""
    details = (details or "").rpartition("last error: ")[2].removeprefix("UNKNOWN: ")
    text = visible_line(details.removeprefix(f"{name}: ")[:_MOST_REASON])
    if "Deadline Exceeded" in text:
        text = "no answer in time"
    if "WRONG_VERSION_NUMBER" in text:
        text = "the server does not use TLS, which grpcs:// requires"
    if "CERTIFICATE_VERIFY_FAILED" in text:
        text += "; name the file with its authority in `ca`"
    return f"{name}: {text}" if text else name


class Connection:
    """Calls the methods of one instance of a server."""

    def __init__(self, table: Mapping[str, Any], root_abs: str) -> None:
        """Prepare the connection from the configuration's table, without connecting yet.

        Raises: GitgatesError if a certificate or key file cannot be read.
        """
        scheme, _, self.address = table["execution"].partition("://")
        self.instance: str = table["instance"]
        self.capabilities: Message | None = None  # of its storage; None: not asked yet
        self.sending = (
            threading.Lock()
        )  # gates that start together must not send the same blobs twice
        by_proxy = ("grpc.enable_http_proxy", int(not self.address.startswith(LOOPBACK)))
        options = (*_OPTIONS, by_proxy)
        if scheme == "grpcs":
            credentials = _credentials(table, root_abs)
            self._channel = grpc.secure_channel(self.address, credentials, options)
        else:
            self._channel = grpc.insecure_channel(self.address, options)
        about = protos.message("RequestMetadata")(tool_invocation_id=str(uuid.uuid4()))
        about.tool_details.tool_name, about.tool_details.tool_version = "gitgates", __version__
        self._metadata = ((_ABOUT, protos.serialized(about)),)  # for the logs of the server

    def call(
        self, name: str, request: Message, within_s: float, *, repeats: bool = True
    ) -> Message:
        """Return the answer of a method; `repeats`: whether it may be called again.

        Raises: ServerError.
        """
        return self._repeated(
            self._caller("unary_unary", name), request, within_s, tries=_TRIES if repeats else 1
        )

    def write(self, requests: Callable[[], Iterable[Message]], within_s: float) -> Message:
        """Send a blob by ByteStream, and return the answer. Raises: ServerError."""
        caller = self._caller("stream_unary", "google.bytestream.ByteStream.Write")
        return self._repeated(lambda _none, **k: caller(iter(requests()), **k), None, within_s)

    def stream(self, name: str, request: Message, within_s: float) -> grpc.Call:
        """Return the call of a method that answers several times, an iterator with `cancel`.

        Iterating raises grpc.RpcError.
        """
        return self._caller("unary_stream", name)(request, timeout=max(within_s, 0))

    def close(self) -> None:
        """End all calls."""
        self._channel.close()

    def _caller(self, kind: str, name: str) -> Callable[..., Message]:
        path, answer = protos.method(name)
        caller: Callable[..., Message] = getattr(self._channel, kind)(
            path,
            request_serializer=protos.serialized,
            response_deserializer=answer.FromString,
        )
        return functools.partial(caller, metadata=self._metadata)

    @staticmethod
    def _repeated(
        caller: Callable[..., Message], request: Message, within_s: float, *, tries: int = _TRIES
    ) -> Message:
        end_s, pause_s = time.monotonic() + within_s, _PAUSE_S
        for left in reversed(range(tries)):
            try:
                return caller(request, timeout=max(end_s - time.monotonic(), 0))
            except grpc.RpcError as error:
                is_over = not left or time.monotonic() + pause_s > end_s
                if is_over or error.code() != grpc.StatusCode.UNAVAILABLE:
                    raise ServerError.of(error) from error
            time.sleep(pause_s)
            pause_s *= 2
        raise AssertionError


def _credentials(table: Mapping[str, Any], root_abs: str) -> grpc.ChannelCredentials:
    server = Server.of_table(table, root_abs, {})
    try:
        tls_context(server)  # gRPC does not say which file is wrong
    except TransferError as error:
        raise GitgatesError(f"[tool.gitgates.remote]: {error}", "Correct the path.") from None
    roots = (server.ca, ssl.get_default_verify_paths().cafile, *_ROOTS)
    return grpc.ssl_channel_credentials(
        root_certificates=next(
            (_content(path) for path in roots if path and os.path.exists(path)), None
        ),
        private_key=_content(server.key or server.cert),
        certificate_chain=_content(server.cert),
    )


def _content(path_abs: str) -> bytes | None:
    if not path_abs:
        return None
    with open(path_abs, "rb") as file:
        return file.read()
