"""End the process groups of gates whose run is gone."""

from __future__ import annotations

import os
import time

from gitgates.proc.processes import GRACE_S, group_lives
from gitgates.store.rescue import identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal

_LOOK_AGAIN_S = 0.02


def end(noted: list[tuple[int, bytes]], token: str, *, at_once: bool) -> None:
    """Ask every group to end, and end those that do not within a part of the grace.

    Only a group whose leader is the very process that was noted, by its start and boot. Where that
    cannot be told (the leader is gone, or there is no /proc), only `at_once`: when the run has died
    this moment, the numbers still mean what they meant.
    """
    groups = {pid for pid, who in noted if _is_the_same(pid, who, at_once=at_once)}
    groups |= _groups_with(token)
    _send(groups, _signal.SIGTERM)
    end_s = time.monotonic() + GRACE_S / 4  # nobody is there to wait politely for
    while any(group_lives(group) for group in groups) and time.monotonic() < end_s:
        time.sleep(_LOOK_AGAIN_S)
    _send(groups, _signal.SIGKILL)


def _is_the_same(pid: int, who: bytes, *, at_once: bool) -> bool:
    now = identity(pid)
    if who and now:
        return who == now
    return at_once


def _groups_with(token: str) -> set[int]:
    """Return the groups of all processes that have a run's token in their environment.

    So those are found, too, that were started in the moment before the run was killed.
    """
    wanted = b"\0GITGATES_RUN=" + token.encode() + b"\0"
    found: set[int] = set()
    try:
        pids = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return found
    for pid in pids:
        try:
            with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
                if token and wanted in b"\0" + file.read():
                    found.add(os.getpgid(int(pid)))
        except OSError:
            continue
    return found - {os.getpgrp()}


def _send(groups: set[int], number: int) -> None:
    for group in groups:
        try:
            os.killpg(group, number)
        except OSError:
            continue
