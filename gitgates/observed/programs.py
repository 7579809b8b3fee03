"""The programs that the kernel opens to start another one, which strace does not show."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_MOST = 4  # a script of a script of …
_HEAD_BYTES = 256  # of a script, the kernel reads no more either
_MOST_HEADERS = 64
_LOADER = 3  # PT_INTERP
# Of 32 and 64 bits: where in the file header the place of the program headers, and their size and
# number are; and where in one of these the place and the size of what it is about. Source: elf(5).
_LAYOUTS = {1: (4, 28, 42, 4, 16), 2: (8, 32, 54, 8, 32)}


def interpreters(program_abs: str) -> Iterator[str]:
    """Yield the interpreter of a script, and the loader of a program that is linked dynamically.

    The first one may be relative to the folder of the process. Source: execve(2), "Interpreter
    scripts".
    """
    for _ in range(_MOST):
        try:
            with open(program_abs, "rb") as file:
                program_abs = _interpreter(file)
        except (OSError, ValueError, OverflowError):
            return
        if not program_abs:
            return
        yield program_abs
        if not program_abs.startswith("/"):
            return


def _interpreter(file: BinaryIO) -> str:
    head = file.read(_HEAD_BYTES)
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n")[0].split()
        return os.fsdecode(words[0]) if words else ""
    if head.startswith(b"\x7fELF") and len(head) == _HEAD_BYTES and head[4] in _LAYOUTS:
        return os.fsdecode(_loader(file, head).rstrip(b"\0"))
    return ""


def _loader(file: BinaryIO, head: bytes) -> bytes:
    width, start_at, size_at, place_at, length_at = _LAYOUTS[head[4]]

    def number(data: bytes, at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], "little" if head[5] == 1 else "big")

    start, size = number(head, start_at, width), number(head, size_at, 2)
    for index in range(min(number(head, size_at + 2, 2), _MOST_HEADERS)):
        file.seek(start + index * size)
        header = file.read(size)
        if number(header, 0, 4) == _LOADER:
            file.seek(number(header, place_at, width))
            return file.read(min(number(header, length_at, width), 4096))
    return b""
