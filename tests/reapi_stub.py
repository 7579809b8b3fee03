"""A server of the Remote Execution API that runs nothing, and answers or lies as a test says."""

from __future__ import annotations

import contextlib
import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
from reapi_rules import Rules

from gitgates.features.remote.protos import message, method

Answer = Callable[["Stub", Any, Any], Iterator[Any]]  # server, action, command → operations
_CAS = "ContentAddressableStorage"
_BYTES = "google.bytestream.ByteStream"
_PART = 1 << 20


class Stub:
    """The server, with all that it has been sent."""

    def __init__(self, answer: Answer, credentials: grpc.ServerCredentials | None = None) -> None:
        self.answer = answer
        self.blobs: dict[str, bytes] = {}
        self.sent: list[str] = []  # the hashes of what it was sent, in order
        self.calls: list[str] = []  # calls that ask for blobs, or send some
        self.cancelled: list[str] = []
        self.mute = threading.Event()  # once set, it does not answer what it can do
        self.slow_s = 0.0  # of storing something
        self.stored = True  # whether it stores what it is sent, and not only says so
        self.streams: dict[str, Iterator[bytes]] = {}  # of output, by name
        self.headers: dict[str, Any] = {}  # of the last request to execute
        self._server = grpc.server(ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers(tuple(self._handlers()))
        if credentials:
            port = self._server.add_secure_port("127.0.0.1:0", credentials)
        else:
            port = self._server.add_insecure_port("127.0.0.1:0")
        self.url = f"grpc{'s' if credentials else ''}://127.0.0.1:{port}"

    def put(self, content: bytes) -> Any:
        """Store a blob; return its digest."""
        found = hashlib.sha256(content).hexdigest()
        self.blobs[found] = content
        return message("Digest")(hash=found, size_bytes=len(content))

    def _handlers(self) -> Iterator[Any]:
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        takes = grpc.stream_unary_rpc_method_handler
        for name, request, kind, answer in (
            ("Capabilities.GetCapabilities", "GetCapabilitiesRequest", unary, self._capabilities),
            (f"{_CAS}.FindMissingBlobs", "FindMissingBlobsRequest", unary, self._missing),
            (f"{_CAS}.BatchUpdateBlobs", "BatchUpdateBlobsRequest", unary, self._update),
            (f"{_BYTES}.Read", "google.bytestream.ReadRequest", stream, self._read),
            (f"{_BYTES}.Write", "google.bytestream.WriteRequest", takes, self._write),
            ("Execution.Execute", "ExecuteRequest", stream, self._execute),
            (
                "google.longrunning.Operations.CancelOperation",
                "google.longrunning.CancelOperationRequest",
                unary,
                self._cancel,
            ),
        ):
            service, _, last = method(name)[0][1:].partition("/")
            handler = kind(
                answer,
                request_deserializer=message(request).FromString,
                response_serializer=lambda answer: answer.SerializeToString(),
            )
            yield grpc.method_handlers_generic_handler(service, {last: handler})

    def _capabilities(self, _request: Any, context: Any) -> Any:
        while self.mute.is_set() and context.is_active():
            time.sleep(0.01)
        found = message("ServerCapabilities")()
        found.execution_capabilities.exec_enabled = True
        found.execution_capabilities.digest_function = 1
        found.high_api_version.major, found.high_api_version.minor = 2, 3
        return found

    def _missing(self, request: Any, _context: Any) -> Any:
        self.calls.append("FindMissingBlobs")
        missing = [each for each in request.blob_digests if each.hash not in self.blobs]
        return message("FindMissingBlobsResponse")(missing_blob_digests=missing)

    def _update(self, request: Any, _context: Any) -> Any:
        answer = message("BatchUpdateBlobsResponse")()
        self.calls.append("BatchUpdateBlobs")
        self.sent += [each.digest.hash for each in request.requests]
        time.sleep(self.slow_s)
        for each in request.requests:
            if self.stored:
                self.put(each.data)
            answer.responses.add().digest.CopyFrom(each.digest)
        return answer

    def _write(self, requests: Iterator[Any], _context: Any) -> Any:
        parts = list(requests)
        content = b"".join(part.data for part in parts)
        size = len(content)
        self.calls.append("Write")
        self.sent.append(parts[0].resource_name.split("/")[-2])
        self.put(content)
        return message("google.bytestream.WriteResponse")(committed_size=size)

    def _read(self, request: Any, context: Any) -> Iterator[Any]:
        for data in self.streams.get(request.resource_name, ()):
            yield message("google.bytestream.ReadResponse")(data=data)
        if request.resource_name in self.streams:
            return
        content = self.blobs.get("/".join(request.resource_name.split("/")[-2:-1]))
        if content is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such blob")
            return
        for at in range(request.read_offset, max(len(content), 1), _PART):
            yield message("google.bytestream.ReadResponse")(data=content[at : at + _PART])

    def _execute(self, request: Any, context: Any) -> Iterator[Any]:
        self.headers = dict(context.invocation_metadata())
        Rules(self.blobs).check_action(request.action_digest)
        action = message("Action").FromString(self.blobs[request.action_digest.hash])
        command = message("Command").FromString(self.blobs[action.command_digest.hash])
        yield from self.answer(self, action, command)

    def _cancel(self, request: Any, _context: Any) -> Any:
        self.cancelled.append(request.name)
        return method("google.longrunning.Operations.CancelOperation")[1]()

    @contextlib.contextmanager
    def serving(self) -> Iterator[Stub]:
        """Serve for as long as this is entered."""
        self._server.start()
        try:
            yield self
        finally:
            self._server.stop(0.0).wait()


def operation(
    response: Any = None, name: str = "operation", *, stream: str = "", stage: int = 0
) -> Any:
    """Return an operation that goes on, or with a response one that is done."""
    found = message("google.longrunning.Operation")(name=name, done=response is not None)
    about = message("ExecuteOperationMetadata")(stdout_stream_name=stream, stage=stage)
    found.metadata.Pack(about)
    if response is not None:
        found.response.Pack(response)
    return found


def token_of(command: Any) -> str:
    """Return what a result of this command has to have."""
    return str(command.arguments[4])


def result_of(stub: Stub, mark: str, exit_code: int = 0, output: bytes = b"output\n") -> Any:
    """Return a response with this content of the file that proves the end of the gate."""
    response = message("ExecuteResponse")()
    response.result.exit_code = exit_code
    response.result.stdout_digest.CopyFrom(stub.put(output))
    file = response.result.output_files.add(path="gitgates/end")
    file.digest.CopyFrom(stub.put(mark.encode()))
    return response
