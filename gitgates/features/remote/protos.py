"""The messages and methods of the Remote Execution API, from its published protos.

The build compiles them into descriptors that any version of protobuf can read: see hatch_build.py.
They have their own pool, so that another package may have the same protos.
"""

from __future__ import annotations

import functools
import os

from google.protobuf import descriptor_pb2, descriptor_pool
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from gitgates.core.errors import GitgatesError

_FILE_ABS = os.path.join(os.path.dirname(__file__), "protos.binpb")
_API = "build.bazel.remote.execution.v2"


@functools.cache
def message(name: str) -> type[Message]:
    """Return the class of a message, by its name in this API (`Action`) or its full name.

    Raises: GitgatesError if the protos are missing or damaged.
    """
    try:
        kind: type[Message] = GetMessageClass(_pool().FindMessageTypeByName(_full(name)))
    except (DecodeError, FileNotFoundError, KeyError, TypeError):
        text = "the protos of the Remote Execution API are missing or damaged in this installation"
        raise GitgatesError(text, "Reinstall gitgates, or build it with grpcio-tools.") from None
    return kind


@functools.cache
def method(name: str) -> tuple[str, type[Message]]:
    """Return the path of a method such as `Execution.Execute`, and the class of its answer."""
    service, _dot, last = _full(name).rpartition(".")
    described = _pool().FindServiceByName(service).FindMethodByName(last)
    return f"/{service}/{last}", GetMessageClass(described.output_type)


def serialized(message: Message) -> bytes:
    """Return the bytes of a message, which are the same each time."""
    content: bytes = message.SerializeToString(deterministic=True)
    return content


def _full(name: str) -> str:
    return name if name.startswith("google.") else f"{_API}.{name}"


@functools.cache
def _pool() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    with open(_FILE_ABS, "rb") as file:
        descriptors = descriptor_pb2.FileDescriptorSet.FromString(file.read())
    for each in descriptors.file:
        pool.AddSerializedFile(each.SerializeToString())
    return pool
