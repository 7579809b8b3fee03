"""A server's blobs: send the missing ones, and read some.

A file remembers which blobs it had in the last hour, because asking for 50,000 blobs takes seconds
on a slow connection. If the server has since lost one, it says so when a gate runs: execution.py.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid

import grpc

from gitgates.features.remote import protos
from gitgates.features.remote.connection import MOST_BYTES, ServerError
from gitgates.features.remote.tree import Digest, digest_of
from gitgates.store.files import make_folder, read_cached, remove_file, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from google.protobuf.message import Message

    from gitgates.features.remote.connection import Connection

_MOST_DIGESTS = 10_000  # in a request: 0.8 MB
_ROOM = 64 << 10  # bytes of a message for all but the content
_PER_BLOB = 128  # bytes that a blob in a message takes besides its content
_CHUNK = 1 << 20  # bytes of a blob that is sent alone
_REMEMBERED_S = 3600


class Storage:
    """The content-addressable storage of one instance."""

    def __init__(
        self, connection: Connection, stored_abs: str, left_s: Callable[[], float]
    ) -> None:
        """Remember in `stored_abs` what the server has; `left_s` returns the seconds left."""
        self._connection, self._left_s = connection, left_s
        self._prefix = f"{connection.instance}/" if connection.instance else ""
        self._stored_abs = stored_abs
        self.learn(protos.message("CacheCapabilities")())

    def learn(self, capabilities: Message) -> None:
        """Note the server's limits, from a CacheCapabilities message."""
        most_batch = capabilities.max_batch_total_size_bytes or MOST_BYTES
        self._most = min(most_batch, MOST_BYTES) - _ROOM

    def send(self, digests: Iterable[Digest], blob: Callable[[Digest], bytes]) -> None:
        """Send the blobs that the server does not have.

        Raises: ServerError, and what `blob` raises.
        """
        if not self._connection.sending.acquire(timeout=self._left_s()):
            raise ServerError("other gates' files are still being sent")
        try:
            began_s, stored = read_cached(self._stored_abs) or (0.0, frozenset())
            if not 0 <= time.time() - began_s < _REMEMBERED_S:
                began_s, stored = time.time(), frozenset()
            unknown = {each for each in digests if bytes.fromhex(each.hash) not in stored}
            for batch in self._batches(self._missing([*unknown])):
                self._send_batch(batch, blob)
            if unknown:
                stored |= {bytes.fromhex(each.hash) for each in unknown}
                with contextlib.suppress(OSError):  # the next run asks again
                    make_folder(os.path.dirname(self._stored_abs))
                    replace_cached(self._stored_abs, (began_s, stored), sync=False)
        finally:
            self._connection.sending.release()

    def forget(self) -> None:
        """Forget which blobs the server has, so that it is asked again."""
        with contextlib.suppress(OSError):
            remove_file(self._stored_abs)

    def lacks(self, digests: Iterable[Digest]) -> bool:
        """Return whether the server lacks any of the blobs. Raises: ServerError."""
        return bool(self._missing([*set(digests)]))

    def read(self, digest: Message, most: int) -> bytes:
        """Return a blob, or its last `most` bytes.

        Raises: ServerError, also if its content does not match the digest.
        """
        if not digest.size_bytes:
            return b""
        start = max(digest.size_bytes - most, 0)
        request = protos.message("google.bytestream.ReadRequest")(
            resource_name=f"{self._prefix}blobs/{digest.hash}/{digest.size_bytes}",
            read_offset=start,
        )
        content = read_stream(self._connection, request, self._left_s(), digest.size_bytes - start)
        is_same = len(content) == digest.size_bytes - start
        if not is_same or (not start and digest_of(content).hash != digest.hash):
            raise ServerError("the server's copy of the output does not match its digest")
        return content

    def _missing(self, digests: list[Digest]) -> set[Digest]:
        missing = set()
        for start in range(0, len(digests), _MOST_DIGESTS):
            request = protos.message("FindMissingBlobsRequest")(
                instance_name=self._connection.instance
            )
            for each in digests[start : start + _MOST_DIGESTS]:
                request.blob_digests.add(hash=each.hash, size_bytes=each.size_bytes)
            name = "ContentAddressableStorage.FindMissingBlobs"
            answer = self._connection.call(name, request, self._left_s())
            missing |= {Digest(each.hash, each.size_bytes) for each in answer.missing_blob_digests}
        if missing - set(digests):
            raise ServerError("the server lacks blobs that it was not asked about")
        return missing

    def _batches(self, digests: Collection[Digest]) -> Iterator[list[Digest]]:
        batch: list[Digest] = []
        size = 0
        for each in sorted(digests, key=lambda digest: digest.size_bytes):
            size += each.size_bytes + _PER_BLOB
            if batch and size > self._most:
                yield batch
                batch, size = [], each.size_bytes + _PER_BLOB
            batch.append(each)
        if batch:
            yield batch

    def _send_batch(self, digests: list[Digest], blob: Callable[[Digest], bytes]) -> None:
        if digests[0].size_bytes + _PER_BLOB > self._most:
            self._write(digests[0], blob(digests[0]))
            return
        request = protos.message("BatchUpdateBlobsRequest")(instance_name=self._connection.instance)
        for each in digests:
            part = request.requests.add(data=blob(each))
            part.digest.hash, part.digest.size_bytes = each.hash, each.size_bytes
        name = "ContentAddressableStorage.BatchUpdateBlobs"
        answer = self._connection.call(name, request, self._left_s())
        stored = {part.digest.hash for part in answer.responses if not part.status.code}
        if stored != {each.hash for each in digests}:
            errors = [part.status.message for part in answer.responses if part.status.code]
            raise ServerError(f"the server does not store what it gets: {(errors or [''])[0]}")

    def _write(self, digest: Digest, content: bytes) -> None:
        name = f"{self._prefix}uploads/{uuid.uuid4()}/blobs/{digest.hash}/{digest.size_bytes}"
        message = protos.message("google.bytestream.WriteRequest")

        def requests() -> Iterator[Message]:
            for start in range(0, len(content), _CHUNK):
                yield message(
                    resource_name="" if start else name,
                    write_offset=start,
                    data=content[start : start + _CHUNK],
                    finish_write=start + _CHUNK >= len(content),
                )

        answer = self._connection.write(requests, self._left_s())
        if answer.committed_size not in (len(content), -1):
            raise ServerError("the server does not store what it gets")


def read_stream(connection: Connection, request: Message, within_s: float, most: int) -> bytes:
    """Return what ByteStream.Read answers. Raises: ServerError, also for more than `most` bytes."""
    parts, size = [], 0
    try:
        call = connection.stream("google.bytestream.ByteStream.Read", request, within_s)
        for answer in call:
            parts.append(answer.data)
            size += len(answer.data)
            if size > most:
                call.cancel()
                raise ServerError("the server sends more than it announced")
    except grpc.RpcError as error:
        raise ServerError.of(error) from error
    return b"".join(parts)
