"""A gate's output while it runs, if the server streams it.

The output in the result counts. If the streamed output is not its beginning, because the server ran
the gate again, the output in the result replaces it.
"""

from __future__ import annotations

import hashlib
import threading

import grpc

from gitgates.features.remote import protos

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitgates.features.remote.connection import Connection


class LogStream:
    """The streamed output of one gate."""

    def __init__(
        self, connection: Connection, on_output: Callable[[bytes], None], most: int
    ) -> None:
        """Pass at most `most` bytes of the output to `on_output`."""
        self._connection, self._on_output, self._most = connection, on_output, most
        self._call: grpc.Call | None = None
        self._lock = threading.Lock()
        self._is_over = False
        self._size, self._hash = 0, hashlib.sha256()  # of what `on_output` has got

    def follow(self, name: str, within_s: float) -> None:
        """Pass on the stream of the first name that is given."""
        if self._call or not name:
            return
        request = protos.message("google.bytestream.ReadRequest")(resource_name=name)
        method = "google.bytestream.ByteStream.Read"
        self._call = self._connection.stream(method, request, within_s)
        threading.Thread(target=self._pass_on, args=(self._call,), daemon=True).start()

    def end_with(self, output: bytes) -> bool:
        """Pass on the rest of the whole output; return whether it replaces the streamed output.

        If it does, nothing more is passed on.
        """
        self.stop()
        if hashlib.sha256(output[: self._size]).digest() != self._hash.digest():
            return True
        if rest := output[self._size :]:
            self._on_output(rest)
        return False

    def stop(self) -> None:
        """Stop passing on the stream."""
        with self._lock:
            self._is_over = True
        if self._call:
            self._call.cancel()

    def _pass_on(self, call: grpc.Call) -> None:
        try:
            for part in call:
                with self._lock:
                    self._is_over |= self._size + len(part.data) > self._most
                    if self._is_over:
                        break
                    self._on_output(part.data)
                    self._size += len(part.data)
                    self._hash.update(part.data)
        except (grpc.RpcError, OSError):  # the result has the whole output
            return
        call.cancel()
