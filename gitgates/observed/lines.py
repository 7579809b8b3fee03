"""Parse the output of `strace -f -y` into calls, in the order in which they returned.

Source: strace(1), "DESCRIPTION" and -y. Not documented, but seen in strace 6.1: if another process
interrupts a call, it is on two lines, `<unfinished ...>` and `<... NAME resumed>`; names have octal
escapes, in `<…>` also for `<` and `>`; if a process is killed before strace knows which call it
makes, the call was not made, and has the name `???` and no result.
"""

from __future__ import annotations

import os
import re

from gitgates.core.record import Record
from gitgates.observed.syscalls import LOOKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ENDED = "+++"  # instead of a call's name: the process has ended
NOT_READ = "not read"  # instead of a call's name: the line cannot be parsed

_MOST_LOOKS = 100_000
_UNFINISHED = " <unfinished ...>"
_START = re.compile(
    r"(\d+) +(?:(\w+|\?\?\?)\(|<\.\.\. (\w+|\?\?\?) resumed>(?:, )?|(\+\+\+|---|strace:))"
)
# An error, or a number's meaning, contains no quotes; an argument that looks like a result does.
_RESULT = re.compile(
    r"\) += (-?\d+|\?|0x[0-9a-f]+)(?:<([^<>]*)>(\(deleted\))?)?"
    r"(?: ([A-Z]\w+))?(?: \([^\"]*\)| /\*[^\"]*\*/)?$"
)
_ANOTHER_PID = re.compile(r" <pid changed to (\d+) \.\.\.>$")
_SUPERSEDED = re.compile(r" superseded by execve in pid (\d+) ")
_PATH = re.compile(
    r"(?:(?:^|, )(?:AT_FDCWD|-?\d+)(?:<([^<>]*)>)?(?:\(deleted\))?, |^|, )"
    r'(?:"((?:[^"\\]|\\.)*)"|(0x[0-9a-f]+)|NULL)'
)
_FD = re.compile(r"(?:AT_FDCWD|-?\d+)<([^<>]*)>(\(deleted\))?")
_ESCAPE = re.compile(r"\\([0-7]{1,3}|.)")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}


class SystemCall(Record):
    """One system call, or the end of a process."""

    pid: int
    name: str
    args: str  # as strace writes them
    result: int | None  # None: unknown, because the process ended during the call
    error: str  # such as ENOENT; empty: it succeeded
    opened: str  # the file to which the result refers; empty: none, or it has lost its name


class NamedPath(Record):
    """A path among a call's arguments."""

    folder: str  # the folder that it is relative to, by its descriptor; empty: unknown
    name: str  # as the program gave it
    end: int  # the offset of its end in the arguments
    is_readable: bool


def calls(lines: Iterable[str]) -> Iterator[SystemCall]:
    """Yield the calls of all processes; most repeated looks at the same file are left out.

    It remembers at most one line per process, and the looks seen so far.
    """
    begun: dict[int, str] = {}
    looks: set[str] = set()
    for whole in lines:
        line = whole.rstrip("\n")
        start = _START.match(line)
        if start is None:
            yield SystemCall(0, NOT_READ, line, None, "", "")
            continue
        pid = int(start[1])
        if start[4]:
            if line.endswith("+++"):
                ended = _SUPERSEDED.search(line)
                yield SystemCall(int(ended[1]) if ended else pid, ENDED, line, None, "", "")
            continue
        text = line[start.end() :]
        if start[2] in LOOKS and _is_known(text, looks):
            continue
        if start[3]:
            text = begun.pop(pid, "") + text
        if text.endswith(_UNFINISHED):
            begun[pid] = text.removesuffix(_UNFINISHED)
        elif moved := _ANOTHER_PID.search(text):
            begun[int(moved[1])] = text[: moved.start()]
        else:
            yield _call(pid, start[2] or start[3], text)


def _is_known(text: str, looks: set[str]) -> bool:
    """Return whether a look repeats an earlier one, or is at an open file."""
    if text.endswith(_UNFINISHED):
        return False
    if '>, "", ' in text:
        return True
    if not text.startswith(('"/', "AT_FDCWD<")):
        return False
    # Between the path and the result are memory addresses, which differ.
    key = text[: text.rfind('"')] + text[text.rfind(" = ") :]
    is_known = key in looks
    if len(looks) < _MOST_LOOKS:
        looks.add(key)
    return is_known


def _call(pid: int, name: str, text: str) -> SystemCall:
    ending = _RESULT.search(text)
    if ending is None:
        return SystemCall(pid, NOT_READ, text, None, "", "")
    result = None if ending[1] == "?" else int(ending[1], 0)
    opened = "" if ending[3] or not ending[2] else unescaped(ending[2])
    # If a thread other than the first runs a program, strace has no name for the "error".
    return SystemCall(pid, name, text[: ending.start()], result, ending[4] or "", opened)


def paths(args: str) -> Iterator[NamedPath]:
    """Yield a call's paths, in order; then perhaps a string that is no path."""
    for match in _PATH.finditer(args):
        folder, name, address = match.groups()
        yield NamedPath(
            folder=unescaped(folder or ""),
            name=unescaped(name or ""),
            end=match.end(),
            is_readable=not address,
        )


def file_of_fd(args: str) -> str:
    """Return the file to which the first argument refers; empty if it has lost its name."""
    file = _FD.match(args)
    return "" if file is None or file[2] else unescaped(file[1])


def unescaped(text: str) -> str:
    """Return a name without strace's escapes."""
    if "\\" not in text:
        return text
    return os.fsdecode(_ESCAPE.sub(_unescape, text).encode("latin-1", "surrogateescape"))


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _LETTERS.get(code, code)
