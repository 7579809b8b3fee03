"""Leases on intents: who holds which one, and until when. Worktrees share them.

All leases are in one file, which is replaced under its lock (compare-and-swap), so if two agents
acquire an intent, exactly one gets it. Nobody must give a lease back: without a renewal it expires
after its time to live. Then anybody can acquire it; if nobody has, its former holder can renew it.
"""

from __future__ import annotations

import os
import time

from gitgates.core.errors import LockError, StateError
from gitgates.core.lean_json import dumps, loads
from gitgates.core.record import Record
from gitgates.store.files import lock_file, make_folder, read_state, replace_file
from gitgates.store.log import LOCK_WAIT_S, file_name, utc

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Leases: TypeAlias = dict[str, "Lease"]  # by intent

FILE = "leases.json"
_DUE = 0.1  # of the time to live must have passed before a renewal is written
_FORGOTTEN_S = 7 * 24 * 3600.0


class Holder(Record):
    """A session, or one of its sub-agents."""

    session: str  # its journal's name, without .jsonl
    agent: str = ""  # a sub-agent's id; empty: the main agent

    def __str__(self) -> str:
        """Describe it for a person or an agent."""
        return f"{f'sub-agent {self.agent} of ' if self.agent else ''}session {self.session}"


class Lease(Record):
    """One intent that is held, or was until its lease expired."""

    intent: str
    holder: Holder
    acquired_s: float  # since the epoch, by the wall clock, like the next field
    renewed_s: float
    ttl_s: float
    git_dir_abs: str = ""  # of the worktree in which its holder was last active
    ended: bool = False  # its holder has ended, but may come back
    former: Holder | None = None  # the holder whose expired lease this one replaced

    @property
    def until_s(self) -> float:
        """When it expires, unless it is renewed."""
        return self.renewed_s + self.ttl_s

    @property
    def holding(self) -> str:
        """Who holds it, and until when, as text."""
        return f"held by {self.holder} until {utc(self.until_s)}"

    @property
    def is_recent(self) -> bool:
        """Whether its holder was recently active. Setting the clock back does not prolong it."""
        return abs(time.time() - self.renewed_s) < self.ttl_s

    @property
    def is_live(self) -> bool:
        """Whether nobody else can acquire it."""
        return self.is_recent and not self.ended


def holder_of(session: str, agent: str = "") -> Holder:
    """Return the holder for a session, by the host's name for it."""
    return Holder(file_name(session), agent)


def read_leases(shared_state_abs: str) -> Leases:
    """Return intent → its lease, live or expired. Raises: StateError."""
    path_abs = f"{shared_state_abs}/{FILE}"
    try:
        raw = read_state(path_abs)
    except OSError as error:
        raise StateError(f"{path_abs}: cannot be read: {error.strerror}") from error
    try:
        return {fields["intent"]: _lease(fields) for fields in loads(raw or b"[]")}
    except (KeyError, RecursionError, TypeError, ValueError):
        return {}  # damaged by a power failure, so no holder is left


def held_by(leases: Leases, holder: Holder) -> Lease | None:
    """Return a holder's lease, live or expired; None if it has none."""
    return next((lease for lease in leases.values() if lease.holder == holder), None)


def lost_by(leases: Leases, holder: Holder) -> Lease | None:
    """Return the lease that replaced a holder's expired one; None if there is none."""
    return next((lease for lease in leases.values() if lease.former == holder), None)


def acquire(
    shared_state_abs: str, intent: str, holder: Holder, *, ttl_s: float, git_dir_abs: str
) -> Lease:
    """Acquire an intent, instead of the one that the holder had; return its lease.

    If another holder has the intent, return that holder's lease. Raises: StateError, LockError.
    """
    now = time.time()
    new = Lease(intent, holder, now, now, ttl_s, git_dir_abs=git_dir_abs)

    def change(leases: Leases) -> Leases:
        current = leases.get(intent)
        if current is None:
            lease = new
        elif current.holder == holder:
            lease = new._replace(acquired_s=current.acquired_s)
        elif current.is_live:
            return leases
        else:
            lease = new._replace(former=None if current.ended else current.holder)
        return {**_without(leases, holder), intent: lease}

    return _swap(shared_state_abs, change)[intent]


def renew(shared_state_abs: str, holder: Holder, git_dir_abs: str) -> Leases:
    """Renew a holder's lease, expired or not, if that is due; return all leases.

    Raises: StateError, LockError.
    """
    leases = read_leases(shared_state_abs)
    lease = held_by(leases, holder)
    if lease is None:
        return leases
    now = time.time()
    is_due = lease.ended or abs(now - lease.renewed_s) >= lease.ttl_s * _DUE
    if not is_due and lease.git_dir_abs == git_dir_abs:
        return leases

    def renewed(lease: Lease) -> Lease:
        is_own = lease.holder == holder
        changed = lease._replace(renewed_s=now, git_dir_abs=git_dir_abs, ended=False)
        return changed if is_own else lease

    return _swap(shared_state_abs, lambda leases: {n: renewed(leases[n]) for n in leases})


def release(shared_state_abs: str, holder: Holder) -> Lease | None:
    """Remove a holder's lease; return it, or the one that the holder has lost.

    Raises: StateError, LockError.
    """
    leases = read_leases(shared_state_abs)
    lease = held_by(leases, holder) or lost_by(leases, holder)
    if lease:
        _swap(shared_state_abs, lambda leases: _without(leases, holder))
    return lease


def end(shared_state_abs: str, holder: Holder) -> None:
    """Make the leases of an ended holder expire now; for a session, those of all its agents.

    Raises: StateError, LockError.
    """

    def ended(lease: Lease) -> Lease:
        is_session = lease.holder.session == holder.session
        is_meant = is_session and holder.agent in ("", lease.holder.agent)
        return lease._replace(ended=True) if is_meant else lease

    _swap(shared_state_abs, lambda leases: {name: ended(leases[name]) for name in leases})


def _without(leases: Leases, holder: Holder) -> Leases:
    """Return leases without a holder: neither as the current nor as a former one."""
    return {
        name: lease._replace(former=None) if lease.former == holder else lease
        for name, lease in leases.items()
        if lease.holder != holder
    }


def _swap(shared_state_abs: str, change: Callable[[Leases], Leases]) -> Leases:
    """Replace the leases by the result of `change`, under their lock; return them."""
    path_abs = f"{shared_state_abs}/{FILE}"
    try:
        make_folder(shared_state_abs)
        fd = lock_file(f"{path_abs}.lock", wait_s=LOCK_WAIT_S)
        if fd < 0:
            raise LockError(f"{path_abs}: another process holds its lock", "Try again.")
        try:
            before = read_leases(shared_state_abs)
            after = change(before)
            if after != before:
                oldest_s = time.time() - _FORGOTTEN_S
                documents = [
                    lease._asdict() for lease in after.values() if lease.renewed_s > oldest_s
                ]
                replace_file(path_abs, dumps(documents).encode("ascii"), sync=False)
        finally:
            os.close(fd)
    except OSError as error:
        raise StateError(f"{path_abs}: cannot be written: {error.strerror}") from error
    return after


def _lease(fields: dict[str, Any]) -> Lease:
    """Return a lease from its stored form. Raises: KeyError, TypeError, ValueError."""
    former = fields.get("former")
    return Lease(
        intent=str(fields["intent"]),
        holder=Holder(*map(str, fields["holder"])),
        acquired_s=float(fields["acquired_s"]),
        renewed_s=float(fields["renewed_s"]),
        ttl_s=float(fields["ttl_s"]),
        git_dir_abs=str(fields.get("git_dir_abs", "")),
        ended=fields.get("ended") is True,
        former=Holder(*map(str, former)) if former else None,
    )
