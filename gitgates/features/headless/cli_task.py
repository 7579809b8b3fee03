"""The task of a headless run: an argument, a file, or standard input."""

from __future__ import annotations

import sys

from gitgates.core.clean import visible_line
from gitgates.core.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_BYTES = 1 << 20
_HOW = 'Specify what to do: gitgates headless "fix …"'


def read_task(task: str, file: str) -> str:
    """Return the task; `-` as either is standard input.

    Raises: UsageError where there is none, two, or one that cannot be read.
    """
    if task and file:
        raise UsageError("TASK and --from-file are mutually exclusive", "Specify one of them.")
    place = "TASK"
    if file == "-" or task == "-":
        place, task = "standard input", _text("standard input", sys.stdin.buffer.read)
    elif file:
        place = visible_line(file)
        try:
            with open(file, "rb") as stream:
                task = _text(place, stream.read)
        except OSError as error:
            raise UsageError(f"--from-file {place}: {error.strerror}") from error
    if not task.strip():
        raise UsageError(f"{place} is empty", _HOW)
    if "\0" in task:
        raise UsageError(f"{place}: contains a NUL byte, expected text")
    return task.strip()


def message_of(task: str) -> str:
    """Return the commit message that a task of several lines makes: its first line, and the rest.

    Empty for a task of one line.
    """
    first, _, rest = task.partition("\n")
    return f"{first.lstrip('# ').strip()}\n{rest}" if rest else ""


def _text(place: str, read: Callable[[int], bytes]) -> str:
    content = read(_LONGEST_BYTES + 1)
    if len(content) > _LONGEST_BYTES:
        raise UsageError(f"{place}: is longer than {_LONGEST_BYTES >> 20} MiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{place}: byte {error.start} is not valid UTF-8, expected text"
        ) from error
