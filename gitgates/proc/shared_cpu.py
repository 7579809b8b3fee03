"""Keep strace and the command that it observes on one processor, while one of them runs at a time.

Each observed call wakes strace, which then wakes the caller. To wake an idle processor, a virtual
machine takes many times as long as to switch on one that runs. As soon as threads of the command
wait for each other, or others want this processor, they get all of them; when they run by turns
again, they share another one.

A program that asks for its processors, to start as many threads, must be told all: strace writes
`cpu_mask` into the answers of sched_getaffinity(2).
"""

from __future__ import annotations

import itertools
import os
import sys
import time

from gitgates.proc.call import spawn
from gitgates.store.files import read_or_empty

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.core.types import Command

_LOOK_S = 0.05
_MOST_WAITING = 0.25  # of the time since the last look; alone, they wait a tenth at most
_SPREAD_S = 0.2  # at least
_ROUNDS = 10  # to find what was started meanwhile
_WORD, _MOST_WORDS = 32, 2
_TURNS = itertools.count(os.getpid())  # others begin elsewhere


def cpu_mask() -> str:
    """Return the processors that this process may use, in hexadecimal; empty: none is shared.

    Form: as in memory after sched_getaffinity(2). strace writes it even where the caller's memory
    was too small, which the kernel answers with an error; one word is never too small.
    """
    cpus = os.sched_getaffinity(0)
    can_look = read_or_empty("/proc/self/schedstat") and os.path.exists(_children("self"))
    words = max(cpus) // _WORD + 1  # a program of 32 bits may ask for one
    if len(cpus) == 1 or words > _MOST_WORDS or sys.byteorder != "little" or not can_look:
        return ""
    return sum(1 << cpu for cpu in cpus).to_bytes(words * _WORD // 8, "little").hex()


class SharedCpu:
    """The one processor of a process and its descendants, while that is enough."""

    def __init__(self) -> None:
        self.all = os.sched_getaffinity(0)
        self.now = self._one()
        self.next_look = time.monotonic() + _LOOK_S
        self._looked = time.monotonic()
        self._spent: dict[str, tuple[int, int]] = {}  # by folder in /proc, as `_times`

    def _one(self) -> set[int]:
        return {sorted(self.all)[next(_TURNS) % len(self.all)]}

    def adjust(self, pid: int) -> None:
        """Give a process and its descendants one processor or all, by what they have used."""
        now = time.monotonic()
        if now < self.next_look:
            return
        spent = {task: _times(task) for task in _tasks(pid)}
        more = [(task, self._spent.get(task, (0, 0))) for task in spent]
        ran_s = sum(spent[task][0] - ran_ns for task, (ran_ns, _) in more) / 1e9
        waited_s = sum(spent[task][1] - waited_ns for task, (_, waited_ns) in more) / 1e9
        elapsed_s, is_shared = now - self._looked, len(self.now) == 1
        self._looked, self._spent, self.next_look = now, spent, now + _LOOK_S
        if is_shared and waited_s > elapsed_s * _MOST_WAITING:
            self._change(pid, self.all)
            self.next_look = now + _SPREAD_S
        elif not is_shared and ran_s < elapsed_s:
            self._change(pid, self._one())

    def _change(self, pid: int, cpus: set[int]) -> None:
        """Change the processors of all threads, except for one that has chosen its own."""
        before, self.now = self.now, cpus
        for _ in range(_ROUNDS):
            if not sum([self._move(int(os.path.basename(task)), before) for task in _tasks(pid)]):
                return

    def _move(self, tid: int, before: set[int]) -> bool:
        try:
            if os.sched_getaffinity(tid) != before:
                return False
            os.sched_setaffinity(tid, self.now)
        except OSError:  # it has ended
            return False
        return True


def spawn_observed(command: Command, output_fd: int) -> tuple[int, SharedCpu | None]:
    """Start strace; return its id, and the processor that it shares with what it observes.

    Raises: OSError as `spawn`.
    """
    if not cpu_mask():
        return spawn(command, output_fd), None
    shared = SharedCpu()
    os.sched_setaffinity(0, shared.now)
    try:
        return spawn(command, output_fd), shared
    finally:
        os.sched_setaffinity(0, shared.all)


def _times(task: str) -> tuple[int, int]:
    """Return how long a thread has run, and waited for a processor, in ns.

    Source: proc(5), /proc/PID/schedstat.
    """
    ran_ns, waited_ns, *_ = *read_or_empty(f"{task}/schedstat").split(), 0, 0
    return int(ran_ns), int(waited_ns)


def _tasks(pid: int | str) -> Iterator[str]:
    """Yield the threads of a process and its descendants, as folders in /proc."""
    try:
        tids = os.listdir(f"/proc/{pid}/task")
    except OSError:  # it has ended
        return
    for tid in tids:
        yield f"/proc/{pid}/task/{tid}"
        for child in read_or_empty(_children(pid, tid)).split():
            yield from _tasks(child.decode())


def _children(pid: int | str, tid: str = "") -> str:
    return f"/proc/{pid}/task/{tid or os.getpid()}/children"
