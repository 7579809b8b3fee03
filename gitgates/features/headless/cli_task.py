"""The task of a headless run: an argument, a file, or standard input."""

from __future__ import annotations

import sys

from gitgates.core.clean import visible_line
from gitgates.core.errors import UsageError

_LONGEST_BYTES = 1 << 20
_HOW = 'Specify what to do: gitgates headless "fix …"'


def read_task(task: str, file: str) -> str:
    """Return the task; `-` as either is standard input.

    Raises: UsageError where there is none, two, or one that cannot be read.
    """
    if task and file:
        raise UsageError("TASK and --from-file are mutually exclusive", "Specify one of them.")
    place, content = "TASK", task.encode("utf-8", "surrogateescape")
    if "-" in (file, task):
        place, content = "standard input", sys.stdin.buffer.read(_LONGEST_BYTES + 1)
    elif file:
        place = visible_line(file)
        try:
            with open(file, "rb") as stream:
                content = stream.read(_LONGEST_BYTES + 1)
        except OSError as error:
            raise UsageError(f"--from-file {place}: {error.strerror}") from error
    if len(content) > _LONGEST_BYTES:
        raise UsageError(f"{place}: is longer than {_LONGEST_BYTES >> 20} MiB")
    try:
        task = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        what = f"byte {error.start} is not valid UTF-8, expected text"
        raise UsageError(f"{place}: {what}") from error
    if "\0" in task:
        raise UsageError(f"{place}: contains a NUL byte, expected text")
    if not task:
        raise UsageError(f"{place} is empty", _HOW)
    return task
