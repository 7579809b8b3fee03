"""The programs that the kernel opens to start another one, which strace does not show."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_HEAD_BYTES = 4096  # a program has the name of its loader in its first page, among its headers
_MOST = 4  # a script of a script of …


def interpreters(program_abs: str) -> Iterator[str]:
    """Yield the interpreter of a script, and the loader of a program that is linked dynamically.

    Source: execve(2), "Interpreter scripts"; elf(5), PT_INTERP.
    """
    for _ in range(_MOST):
        try:
            with open(program_abs, "rb") as file:
                program_abs = _interpreter(file.read(_HEAD_BYTES))
        except (OSError, ValueError):
            return
        if not program_abs:
            return
        yield program_abs


def _interpreter(head: bytes) -> str:
    words: list[bytes] = []
    if head.startswith(b"#!"):
        words = head[2:].split(b"\n")[0].split()
    elif head.startswith(b"\x7fELF"):
        words = [text for text in head.split(b"\0") if text.startswith(b"/") and b"/ld" in text]
    return os.fsdecode(words[0]) if words and words[0].startswith(b"/") else ""
