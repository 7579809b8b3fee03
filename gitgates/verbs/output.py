"""Standard output and error for verbs: write errors are reported at the end.

A full disk behind `>` must not end a verb that has begun to change something. If a reader goes
away (`gitgates check | head -1`), it has what it wanted: that is no failure.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys

import click

from gitgates.core import environ, errors
from gitgates.core.clean import sanitise, visible
from gitgates.report.text import Terminal, open_terminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

    from _typeshed import ReadableBuffer

    from gitgates.core.types import Decision

format_option = click.option(
    "--format",
    "fmt",
    type=click.Choice(["text", "json"]),
    default="text",
    help="For people, or one JSON document.",
)
_lost: list[str] = []  # why standard output could not be written


class _Sink(io.RawIOBase):
    """A terminal as a raw Python stream."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__()
        self._terminal = terminal

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._terminal.fd

    def isatty(self) -> bool:
        return os.isatty(self._terminal.fd)

    def write(self, data: ReadableBuffer) -> int:
        written = bytes(data)
        self._terminal.write(written)
        return len(written)


class _Stream(io.TextIOWrapper):
    """A text stream that escapes control characters on a terminal."""

    only_ascii = False

    def write(self, text: str) -> int:
        printable = visible(text)
        if self.only_ascii:
            printable = printable.encode("ascii", "backslashreplace").decode()
        super().write(printable)
        return len(text)


def replace_streams() -> None:
    """Replace `sys.stdout` and `sys.stderr` with these streams."""
    sys.stdout = _stream(stdout(), sys.stdout)
    sys.stderr = _stream(open_terminal(2, environ.read()), sys.stderr)


def stdout() -> Terminal:
    """Return standard output for bytes; errors are recorded."""
    return open_terminal(1, environ.read())._replace(tell=_lost.append)


def dump(data: bytes) -> None:
    """Write bytes unchanged; on a terminal, with control characters escaped."""
    click.echo(sanitise(data, colour=False) if sys.stdout.isatty() else data, nl=False)


def write_junit(path: str, decision: Decision, hook: str) -> None:
    """Write the results of a hook's gates as JUnit XML.

    Raises: UsageError if the file cannot be written.
    """
    from gitgates.report.documents import junit_xml  # rarely needed

    write_report("--junit", path, junit_xml(decision, hook))


def write_report(option: str, path: str, report: bytes) -> None:
    """Write a report to the file named by an option.

    Raises: UsageError if the file cannot be written.
    """
    try:
        with open(path, "wb") as file:
            file.write(report)
    except OSError as error:
        text = f"{option} {path}: cannot be written: {error.strerror}"
        raise errors.UsageError(text) from error


def print_json(document: object) -> None:
    """Print a document as indented JSON."""
    click.echo(json.dumps(document, indent=2))


def table(rows: list[tuple[str, ...]], *, right: tuple[int, ...] = ()) -> str:
    """Format rows as aligned columns. `right`: the numbers of right-aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(width) if number in right else cell.ljust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def flush_streams(status: int) -> int:
    """Report a write error on standard output; return the exit status of the process.

    Errors on standard error cannot be reported.
    """
    sys.stdout.flush()
    if not _lost:
        return status
    sys.stderr.write(f"gitgates: standard output cannot be written: {_lost[0]}\n")
    sys.stderr.flush()
    return errors.StateError.exit_status


def _stream(terminal: Terminal, before: TextIO | None) -> TextIO:
    # A stream without a file is None.
    encoding = before.encoding if before else "utf-8"
    errors = before.errors if before and before.errors != "strict" else "backslashreplace"
    only_ascii = codecs.lookup(encoding).name == "ascii"
    stream = _Stream(
        io.BufferedWriter(_Sink(terminal)),
        encoding="utf-8" if only_ascii else encoding,  # else click would write UTF-8 itself
        errors=errors,
        line_buffering=True,
    )
    stream.only_ascii = only_ascii
    return stream
