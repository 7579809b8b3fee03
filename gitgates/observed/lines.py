"""The output of `strace -f -y` as calls: one for each that has returned, in the order of returning.

Source: strace(1), "DESCRIPTION" and -y; strace 6.1 for what it does not say: a call of a process
that another one interrupts is in two lines, `<unfinished ...>` and `<... NAME resumed>`; names have
octal escapes, and in `<…>` also for `<` and `>`; a call in which a process was killed before strace
has heard which one it is, and which so was not made, has the name `???`, and no result.
"""

from __future__ import annotations

import os
import re

from gitgates.core.record import Record
from gitgates.observed.syscalls import LOOKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ENDED = "+++"  # in place of the name of a call: the process has ended
NOT_READ = "not read"  # the line is not understood

_MOST_LOOKS = 100_000
_UNFINISHED = " <unfinished ...>"
_START = re.compile(
    r"(\d+) +(?:(\w+|\?\?\?)\(|<\.\.\. (\w+|\?\?\?) resumed>(?:, )?|(\+\+\+|---|strace:))"
)
# The error, or what a number means, has no quotes: an argument that looks like a result has.
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
    args: str  # as strace has written them
    result: int | None  # None: nobody knows, as the process ended meanwhile
    error: str  # such as ENOENT; empty: it has succeeded
    opened: str  # the file that the result is open on; empty: none, or it has no name any more


class NamedPath(Record):
    """A path among the arguments of a call."""

    folder: str  # of the descriptor that it is relative to; empty: none is known
    name: str  # as the program has given it
    end: int  # where it ends in the arguments
    is_readable: bool


def calls(lines: Iterable[str]) -> Iterator[SystemCall]:
    """Yield the calls of all processes; of the same look at a file, most are left out.

    At most one line of each process is kept, and what tells looks apart.
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
    """Return whether a look is the same as an earlier one, or at what is open already."""
    if text.endswith(_UNFINISHED):
        return False
    if '>, "", ' in text:
        return True
    if not text.startswith(('"/', "AT_FDCWD<")):
        return False
    # Between the path and the result are addresses.
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
    # If another thread than the first runs a program, strace has no name for the "error".
    return SystemCall(pid, name, text[: ending.start()], result, ending[4] or "", opened)


def paths(args: str) -> Iterator[NamedPath]:
    """Yield the paths of a call, in order; also a string that is no path, and may follow them."""
    for match in _PATH.finditer(args):
        folder, name, address = match.groups()
        yield NamedPath(
            folder=unescaped(folder or ""),
            name=unescaped(name or ""),
            end=match.end(),
            is_readable=not address,
        )


def file_of_fd(args: str) -> str:
    """Return the file that the first argument is open on; empty if it has no name any more."""
    file = _FD.match(args)
    return "" if file is None or file[2] else unescaped(file[1])


def unescaped(text: str) -> str:
    """Return the name that strace has written."""
    if "\\" not in text:
        return text
    return os.fsdecode(_ESCAPE.sub(_unescape, text).encode("latin-1", "surrogateescape"))


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code, 8)) if code[0] in "01234567" else _LETTERS.get(code, code)
