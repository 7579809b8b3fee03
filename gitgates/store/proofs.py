"""Proofs: how gates have ended on which content, in one append-only log for all worktrees.

The log lies in 256 files below `proofs/` of the shared state folder, by the first digits of a
digest of gate and content, so that a lookup reads as much after a year as after a day. Each file
is bounded, and its older half goes first. A line is fields, separated by tabs, and a hash of them:
one that is torn, damaged or of a newer version is no proof.
"""

from __future__ import annotations

import _imp
import os
import time

from gitgates.core.record import Record
from gitgates.store.files import append_bounded, make_folder, read_state, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FOLDER = "proofs"
_VERSION = "1"
_LARGEST = 256 << 10  # bytes of one of the files: some 1,000 proofs
_HASH_KEYS = (1, 2)  # of 64 bits each
_DURATIONS = "durations"
_MOST_DURATIONS = 500
_MOST_S = 1e9
_LEAST_S = 0.1  # by which a duration has to differ to be recorded
_UNSAFE = str.maketrans("\t\n\r\0", "    ")


class Proof(Record):
    """How a gate ended on a content."""

    gate: str
    content: str  # a digest of what it could see
    key: str  # a digest of all else that its result depends on: definition, tool, environment
    status: str
    time_s: float  # since the epoch
    duration_s: float
    hook: str
    root_abs: str  # the worktree that it ran in


def digest(*parts: bytes | str) -> str:
    """Return 32 hex digits that stand for some texts, in this order."""
    texts = [
        part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part for part in parts
    ]
    content = b"".join(b"%d:%b" % (len(text), text) for text in texts)
    # The hash of .pyc files, which needs no import; twice, because 64 bits may collide.
    return b"".join(_imp.source_hash(key, content) for key in _HASH_KEYS).hex()


def append(shared_state_abs: str, proof: Proof) -> None:
    """Append a proof to the log. Raises: OSError where it cannot be written."""
    path_abs = _file(shared_state_abs, proof.gate, proof.content)
    append_bounded(path_abs, _line(proof), _LARGEST)


def find_pass(shared_state_abs: str, gate: str, content: str, key: str) -> Proof | None:
    """Return the newest pass of a gate on a content; None where there is none."""
    try:
        raw = read_state(_file(shared_state_abs, gate, content)) or b""
    except OSError:
        return None
    wanted = os.fsencode(f"\t{content}\t{key}\tpassed\t")
    for line in reversed(raw.split(b"\n")):
        if wanted in line and (proof := _parse(line)) and proof.gate == gate:
            return proof
    return None


def read_all(shared_state_abs: str) -> Iterator[Proof]:
    """Yield all proofs, those of one gate and content oldest first."""
    folder_abs = f"{shared_state_abs}/{FOLDER}"
    try:
        names = sorted(name for name in os.listdir(folder_abs) if name != _DURATIONS)
    except OSError:
        return
    for name in names:
        try:
            raw = read_state(f"{folder_abs}/{name}") or b""
        except OSError:
            continue
        yield from filter(None, map(_parse, raw.split(b"\n")))


def expected_s(shared_state_abs: str, gate: str) -> float:
    """Return how long a gate took when it last ran, more or less; 0 if that is not known."""
    return durations(shared_state_abs).get(gate, 0.0)


def durations(shared_state_abs: str) -> dict[str, float]:
    """Return gate → seconds that it took when it last ran, more or less, in any worktree."""
    seconds_by_gate = {}
    try:
        raw = read_state(f"{shared_state_abs}/{FOLDER}/{_DURATIONS}") or b""
    except OSError:
        return {}
    for line in raw.split(b"\n"):
        number, _, gate = os.fsdecode(line).partition("\t")
        try:
            seconds = float(number)
        except ValueError:
            continue
        if 0 <= seconds < _MOST_S:
            seconds_by_gate[gate] = seconds
    return seconds_by_gate


def note_durations(shared_state_abs: str, seconds_by_gate: Mapping[str, float]) -> None:
    """Record how long gates took. What differs little from before is not written."""
    known = durations(shared_state_abs)
    news = {
        gate: seconds
        for gate, seconds in seconds_by_gate.items()
        if abs(seconds - known.get(gate, 0.0)) > max(known.get(gate, 0.0) / 4, _LEAST_S)
    }
    if not news:
        return
    for gate in news:
        known.pop(gate, None)  # the newest come last
    newest = [*known.items(), *news.items()][-_MOST_DURATIONS:]
    lines = [f"{seconds:.3f}\t{gate.translate(_UNSAFE)}\n" for gate, seconds in newest]
    folder_abs = f"{shared_state_abs}/{FOLDER}"
    try:
        make_folder(folder_abs)
        replace_file(f"{folder_abs}/{_DURATIONS}", os.fsencode("".join(lines)), sync=False)
    except OSError:
        return  # gates start in another order


def _file(shared_state_abs: str, gate: str, content: str) -> str:
    return f"{shared_state_abs}/{FOLDER}/{digest(gate, content)[:2]}"


def _line(proof: Proof) -> bytes:
    times = (f"{proof.time_s:.3f}", f"{proof.duration_s:.3f}")
    fields = (_VERSION, proof.gate, proof.content, proof.key, proof.status, *times)
    places = (proof.hook, proof.root_abs)
    body = os.fsencode("\t".join([field.translate(_UNSAFE) for field in (*fields, *places)]))
    return body + b"\t" + _imp.source_hash(_HASH_KEYS[0], body).hex().encode() + b"\n"


def _parse(line: bytes) -> Proof | None:
    body, _, check = line.rpartition(b"\t")
    if _imp.source_hash(_HASH_KEYS[0], body).hex().encode() != check:
        return None
    version, *fields = os.fsdecode(body).split("\t")
    if version != _VERSION or len(fields) != len(Proof._fields):
        return None
    gate, content, key, status, time_s, duration_s, hook, root_abs = fields
    return Proof(
        gate=gate,
        content=content,
        key=key,
        status=status,
        time_s=float(time_s),
        duration_s=float(duration_s),
        hook=hook,
        root_abs=root_abs,
    )


def age(proof: Proof) -> str:
    """Return how long ago a proof was made, for people."""
    seconds = max(time.time() - proof.time_s, 0.0)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
