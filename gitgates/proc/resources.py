"""Named resources of the machine, such as a port: gates that name one share it, or take turns.

Each gate that wants resources has a file in one folder, which it keeps locked. The lock and the
content tell others who holds what and who waits; waiting gates go in the order of their file names,
people before agents. Everybody looks under one lock, so a gate gets all that it needs at once, and
none holds a resource while it waits.

The gate's processes inherit the locked file: if gitgates is killed, their resources become free
when the last process ends. A stopped holder is waited for, because it still has its port.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time

from gitgates.core.record import Record
from gitgates.proc.pool import (
    VARIABLE,
    is_stopped,
    new_ticket,
    pool_folder,
    usable_folder,
    when_free,
)
from gitgates.store.files import lock_file, read_state, remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_HOLDS, _WAITS = "holds", "waits"
_LOCK_S = 1.0  # the lock is held only to look
_POLL_S = 0.1
_LONGEST_POLL_S = 2.0


class Wait(Record):
    """What a gate waits for."""

    what: str
    place: int = 0  # in the queue, from 1; 0: unknown
    left_s: float | None = None  # until its turn, by earlier durations; None: unknown
    holder: str = ""  # the gate that holds it, and where

    @property
    def text(self) -> str:
        """The wait on one line."""
        after = f" after {self.holder}" if self.holder else ""
        place = f", place {self.place}" if self.place else ""
        seconds = "" if self.left_s is None else f", about {self.left_s:.0f} s"
        return f"{self.what}{after}{place}{seconds}"


class Claim(Record):
    """What another gate's file says."""

    name: str
    holds: bool
    began_s: float  # since when it holds them
    took_s: float  # by the gate's earlier run; 0: unknown
    owner: str
    limits: Mapping[str, int]  # resource → how many gates may hold it, by that gate's settings

    @property
    def left_s(self) -> float | None:
        """How long it may still hold its resources; None if unknown."""
        return max(self.took_s - (time.time() - self.began_s), 0.0) if self.took_s else None


class Resources:
    """The resources, as one run sees them."""

    def __init__(
        self, folder_abs: str, limits: Mapping[str, int], root_abs: str, *, is_urgent: bool
    ) -> None:
        self._folder_abs, self._limits, self._root_abs = folder_abs, limits, root_abs
        self._is_urgent, self.since_ns = is_urgent, 0
        self._made = 0  # number of claims, because several may have the same time
        self._claims: dict[str, tuple[str, int]] = {}  # gate → its file, and the locked descriptor

    def take(self, gate: str, names: tuple[str, ...], took_s: float) -> int | Wait:
        """Return a descriptor that holds all of a gate's resources, or what it must wait for.

        The gate's processes must inherit it. `took_s`: how long the gate took before; 0: unknown.

        Raises: OSError if the folder cannot be written.
        """
        limits = {name: self._limits.get(name, 1) for name in names}
        lock_fd = lock_file(f"{self._folder_abs}/lock", wait_s=_LOCK_S)
        if lock_fd < 0:
            return Wait(", ".join(names))
        try:
            name, fd = self._claims.get(gate) or self._new_claim(gate)
            wait = self._wait(name, limits)
            state, owner = _WAITS if wait else _HOLDS, f"`{gate}` in {self._root_abs}"
            facts = (state, time.time(), took_s, owner.replace("\n", " "))
            wants = [f"{limit} {name}" for name, limit in sorted(limits.items())]
            text = os.fsencode("\n".join((*map(str, facts), *wants)))
            os.ftruncate(fd, 0)  # also shows that this gate has looked
            os.pwrite(fd, text, 0)
        finally:
            os.close(lock_fd)
        return wait or fd

    def put_back(self, gate: str) -> None:
        """Let a gate that had all of them wait again, without losing its place."""
        name, fd = self._claims.get(gate, ("", -1))
        if name:
            text = read_state(f"{self._folder_abs}/{name}") or b""
            os.pwrite(fd, text.replace(_HOLDS.encode(), _WAITS.encode(), 1), 0)

    def give_back(self, gate: str) -> None:
        """Release a gate's resources, or its place, even if some of its processes still run."""
        name, fd = self._claims.pop(gate, ("", -1))
        if name:
            remove_file(f"{self._folder_abs}/{name}")
            fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    def close(self) -> None:
        """Release everything."""
        for gate in [*self._claims]:
            self.give_back(gate)

    def _new_claim(self, gate: str) -> tuple[str, int]:
        ticket = new_ticket(is_urgent=self._is_urgent, since_ns=self.since_ns)
        self._made += 1
        name = f"{ticket}-{self._made}"
        fd = lock_file(f"{self._folder_abs}/{name}")
        self._claims[gate] = name, fd
        return name, fd

    def _wait(self, own: str, limits: Mapping[str, int]) -> Wait | None:
        """Return what a gate waits for; None if all is free, and nobody must go first."""
        waits = []
        others = self._others(own)
        for resource, limit in limits.items():
            ahead = [c for c in others if resource in c.limits and (c.holds or c.name < own)]
            most = min([limit, *(claim.limits[resource] for claim in ahead)])
            if len(ahead) < most:
                continue
            holders = [claim for claim in ahead if claim.holds]
            before = [claim.took_s or None for claim in ahead if not claim.holds]
            left_s = [claim.left_s for claim in holders] + [0.0] * (most - len(holders))
            what, owner = f"`{resource}`", holders[0].owner if holders else ""
            waits.append(Wait(what, len(before) + 1, when_free(left_s, before), owner))
        if not waits:
            return None
        last = max(waits, key=lambda wait: (wait.place, wait.left_s or 0.0))
        is_known = all(wait.left_s is not None for wait in waits)
        seconds = max(wait.left_s or 0.0 for wait in waits) if is_known else None
        return last._replace(what=" and ".join(wait.what for wait in waits), left_s=seconds)

    def _others(self, own: str) -> list[Claim]:
        """Return the claims of living processes, in order, without stopped ones that wait."""
        claims = []
        for name in sorted(os.listdir(self._folder_abs)):
            path_abs = f"{self._folder_abs}/{name}"
            if name in ("lock", own):
                continue
            if (fd := lock_file(path_abs, flags=os.O_RDWR)) >= 0:
                remove_file(path_abs)  # nobody has it open
                os.close(fd)
            elif (claim := _read(path_abs, name)) and (claim.holds or not is_stopped(path_abs)):
                claims.append(claim)
        return claims


def open_resources(
    env: Mapping[str, str], limits: Mapping[str, int], root_abs: str, *, is_urgent: bool
) -> Resources | None:
    """Return the resources; None if they are switched off.

    Raises: OSError if they are not possible; ConfigError as `usable_folder`.
    """
    if env.get(VARIABLE) == "0":
        return None
    if not (folder_abs := usable_folder(env, "resources")):
        raise PermissionError(errno.EPERM, "is not a folder of yours alone", pool_folder(env))
    return Resources(folder_abs, limits, root_abs, is_urgent=is_urgent)


def poll_s(wait: Wait) -> float:
    """Return after how long to ask again."""
    return min(_POLL_S * wait.place**2, _LONGEST_POLL_S) if wait.place else _POLL_S


def _read(path_abs: str, name: str) -> Claim | None:
    try:
        raw = read_state(path_abs) or b""
        state, began_s, took_s, owner, *wants = os.fsdecode(raw).split("\n")
        limits = {what: int(limit) for limit, _, what in (line.partition(" ") for line in wants)}
        return Claim(name, state == _HOLDS, float(began_s), float(took_s), owner, limits)
    except (OSError, ValueError):  # it is gone, or not ours
        return None
