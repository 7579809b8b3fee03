"""The programs that the kernel opens to start another one, which strace does not show."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

_HEAD_BYTES = 512  # more than the kernel reads of a `#!` line
_MOST = 4  # a script of a script of …
_INTERPRETER = 3  # PT_INTERP of elf(5)
_WIDE = b"\x02"  # ELFCLASS64


def interpreters(program_abs: str) -> Iterator[str]:
    """Yield the interpreter of a script, and the loader of a program that is linked dynamically.

    Source: execve(2), "Interpreter scripts"; elf(5), `Elf64_Ehdr` and `Elf64_Phdr`.
    """
    for _ in range(_MOST):
        try:
            with open(program_abs, "rb") as file:
                program_abs = _interpreter(file)
        except (OSError, ValueError):
            return
        if not program_abs.startswith("/"):
            return
        yield program_abs


def _interpreter(file: BinaryIO) -> str:
    head = file.read(_HEAD_BYTES)
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n")[0].split()
        return os.fsdecode(words[0]) if words else ""
    if not head.startswith(b"\x7fELF"):
        return ""
    is_wide = head[4:5] == _WIDE

    def number(data: bytes, at: int, length: int) -> int:
        return int.from_bytes(data[at : at + length], "little" if head[5] == 1 else "big")

    start = number(head, 32, 8) if is_wide else number(head, 28, 4)
    size, count = (number(head, at, 2) for at in ((54, 56) if is_wide else (42, 44)))
    file.seek(start)
    table = file.read(size * count)
    for at in range(0, len(table), size or 1):
        if number(table, at, 4) == _INTERPRETER:
            offset = number(table, at + 8, 8) if is_wide else number(table, at + 4, 4)
            length = number(table, at + 32, 8) if is_wide else number(table, at + 16, 4)
            file.seek(offset)
            return os.fsdecode(file.read(length).rstrip(b"\0"))
    return ""
