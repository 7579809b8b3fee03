"""Run a command of a host's file as that host would, with a deadline, and keep what it answered."""

from __future__ import annotations

import os

from gitgates.proc.processes import Capture, Group, SignalPipe
from gitgates.record import Record
from gitgates.types import Command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_S = 20.0
_MOST_BYTES = 1 << 20


class Attempt(Record):
    """What to run, and where: nothing of it may be the person's own."""

    command: str  # for sh
    cwd_abs: str
    env: Mapping[str, str]
    scratch_abs: str  # a folder of ours, outside of cwd
    stdin: bytes = b""


class Answered(Record):
    """What came of it."""

    exit_status: int | None  # None: it was ended, or could not be started
    stdout: bytes
    stderr: str
    trouble: str = ""  # why there is no exit status

    @property
    def last_line(self) -> str:
        """Return the last thing that it said to a person."""
        return self.stderr.strip().rpartition("\n")[2]


def attempt(wanted: Attempt) -> Answered:
    """Run a command in a session of its own; whatever it started is gone afterwards."""
    said_abs = os.path.join(wanted.scratch_abs, "stderr")
    given_abs = os.path.join(wanted.scratch_abs, "stdin")
    with open(given_abs, "wb") as file:
        file.write(wanted.stdin)
    command = Command(
        argv=("sh", "-c", 'exec sh -c "$1" 2>"$2"', "sh", wanted.command, said_abs),
        cwd_abs=wanted.cwd_abs,
        env=tuple(wanted.env.items()),
        stdin_abs=given_abs,
    )
    capture = Capture(_MOST_BYTES)
    with SignalPipe() as signals, Group(signals) as group:
        child = group.start(command, LONGEST_S, capture)
        if isinstance(child, str):
            return Answered(None, b"", "", child)
        group.wait()
        ending = child.ending()
    trouble = f"no answer after {LONGEST_S:.0f} s" if ending.timed_out else ""
    if ending.signal and not trouble:
        trouble = f"ended by signal {ending.signal}"
    with open(said_abs, "rb") as file:
        stderr = file.read(_MOST_BYTES).decode("utf-8", "replace")
    return Answered(None if trouble else ending.exit_status, capture.kept()[0], stderr, trouble)
