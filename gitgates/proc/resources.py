"""Named resources of the machine, such as a port: gates that name one share it, or take turns.

Each resource is a pool of its own, with as many slots as gates may have it at once. A gate takes
its resources one by one in the order of their names, so gates never wait for each other in a
circle, and keeps what it has while it waits for the next.

The gate's processes inherit the locked slots: if gitgates is killed, a resource becomes free when
the last process ends. A stopped holder is waited for, because it still has its port.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib

from gitgates.core.record import Record
from gitgates.proc.pool import VARIABLE, Pool, open_pool, pool_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.proc.pool import Use

_NEVER_OVERDUE_S = 10 * 365 * 24 * 3600.0


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


class Resources:
    """The resources, as one run sees them. `since_ns`: as in Pool."""

    def __init__(
        self,
        env: Mapping[str, str],
        limits: Mapping[str, int],
        *,
        is_urgent: bool = False,
        since_ns: int = 0,
    ) -> None:
        self._env, self._limits = env, limits
        self._is_urgent, self._since_ns = is_urgent, since_ns
        self.pools: dict[str, Pool] = {}  # by resource
        self._held: dict[str, dict[str, int]] = {}  # gate → resource → locked descriptor

    def take(self, use: Use, names: tuple[str, ...]) -> tuple[int, ...] | Wait:
        """Return descriptors that hold all of a gate's resources, or what it must wait for.

        The gate's processes must inherit them. None are needed if GITGATES_POOL is 0.

        Raises: OSError if the folder cannot be written; ConfigError as `open_pool`.
        """
        fd_by_name = self._held.setdefault(use.gate, {})
        for name in (
            sorted({*names}.difference(fd_by_name)) if self._env.get(VARIABLE) != "0" else ()
        ):
            pool = self.pools.get(name) or self._open(name)
            pool.use = use
            if (fds := pool.take(1, for_s=_NEVER_OVERDUE_S)) is None:
                return Wait(f"`{name}`", *pool.queue())
            fd_by_name[name] = fds[0]
        return tuple(fd_by_name.values())

    def give_back(self, gate: str) -> None:
        """Release a gate's resources, even if some of its processes still run."""
        for name, fd in self._held.pop(gate, {}).items():
            fcntl.flock(fd, fcntl.LOCK_UN)
            self.pools[name].give_back([fd])
            self.pools[name].settle()

    def close(self) -> None:
        """Release everything."""
        for gate in [*self._held]:
            self.give_back(gate)
        for pool in self.pools.values():
            pool.close()

    def _open(self, name: str) -> Pool:
        # Any text may be a name, and be longer than a file's.
        folder = f"resources/{hashlib.sha256(name.encode()).hexdigest()[:32]}"
        size = self._limits.get(name, 1)
        pool = open_pool(self._env, size, is_urgent=self._is_urgent, name=folder)
        if not pool:
            raise PermissionError(
                errno.EPERM, "is not a folder of yours alone", pool_folder(self._env)
            )
        pool.since_ns = self._since_ns
        self.pools[name] = pool
        return pool
