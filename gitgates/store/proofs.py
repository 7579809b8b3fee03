"""Proofs: how gates ended on which content, in one append-only log for all worktrees.

Every run of a gate is written here; commits' evidence, numbers over time, baselines and reuse are
views of the log. It is in 256 files below `proofs/` in the shared state folder, by content, so that
a lookup reads no more after a year than after a day, and all gates of a run are one append. Each
file is bounded, and drops its older half. A line has fields, separated by tabs, and their hash: a
line that is torn, damaged or of another version is not a proof.
"""

from __future__ import annotations

import _imp
import os
import time

from gitgates.core.record import Record
from gitgates.store.files import (
    append_bounded,
    make_folder,
    open_state,
    read_cached,
    read_state,
    replace_cached,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from gitgates.core.types import Gate, GateResult

FOLDER = "proofs"
BELIEVED = "signer "  # before the identity, in `maker` of a pass that somebody else proved
_VERSION = "4"
_LARGEST = 256 << 10  # bytes of one of the files: some 1,000 proofs
_MOST_FAILURES = 16 << 10  # bytes in a line; if there are more, titles or all are dropped
_HASH_KEYS = (1, 2)  # of 64 bits each
_END = 18  # bytes of a hash, with its tab and newline
_DURATIONS = "durations"
_MOST_DURATIONS = 500
_LEAST_S = 0.1  # a smaller difference in duration is not recorded
_UNSAFE = str.maketrans("\t\n\r\0", "    ")


class Sharing(Record):
    """What others may believe of a pass."""

    # A key of the pass that is equal on every machine (in earlier versions several, separated by
    # spaces); for a pass that somebody else proved, a digest of who was believed.
    key: str = ""
    # Not empty: it saw exactly the tree, on this machine, so others may believe it. Earlier
    # versions had a digest of the programs here.
    exact: str = ""
    # agent: it ran in an agent's session; ci; BELIEVED and an identity: it ran on that signer's
    # machine, and must not be signed again; empty: a person, or unknown.
    maker: str = ""


class Proof(Record):
    """How a gate ended on a content."""

    gate: str
    content: str  # git's id of a tree, or a digest of what the gate could see
    status: str
    time_s: float  # since the epoch
    duration_s: float = 0.0
    hook: str = ""
    root_abs: str = ""  # the worktree that it ran in
    key: str = ""  # a digest of what its result depends on besides content; empty: not reused
    definition: str = ""  # a digest of the gate's configuration
    base: str = ""  # the commit or tree that paths were compared with; empty: none
    config: str = ""  # the configuration's digest, if the hook let the tree be committed
    numbers: Mapping[str, float] = {}  # that it measured
    failures: tuple[tuple[str, str], ...] = ()  # fingerprint and title; empty: not known
    sharing: Sharing = Sharing()
    action_digest: str = ""  # the digest of what ran on a server; empty: it ran here


# As they follow each other in a line of the log.
_SHARING = ("shared", "exact", "maker")
*_FIRST, _, _LAST = Proof._fields  # `_` is `sharing`
_FIELDS = (*_FIRST, *_SHARING, _LAST)


def digest(*parts: bytes | str) -> str:
    """Return a digest of texts in this order, as 32 hex digits."""
    texts = [
        part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part for part in parts
    ]
    content = b"".join(b"%d:%b" % (len(text), text) for text in texts)
    # The hash for .pyc files, which needs no import; twice, because 64 bits may collide.
    return b"".join(_imp.source_hash(key, content) for key in _HASH_KEYS).hex()


def definition_of(gate: Gate) -> str:
    """Return a digest of what decides how a gate ends on given content, and what it measures."""
    return digest(repr(definition(gate)))


def definition(gate: Gate) -> tuple[object, ...]:
    """Return what decides how a gate ends on given content, and what it measures."""
    runs = (
        gate.program.command,
        gate.program.pre_commit,
        gate.program.runner,
        gate.program.working_dir,
        gate.program.env,
        gate.program.git_env,
    )
    sees = (
        gate.selection.files,
        gate.selection.exclude,
        gate.program.pass_files,
        gate.program.pass_hook_input,
        gate.program.writes,
    )
    types = (
        (gate.selection.types, gate.selection.types_or)
        if gate.selection.types or gate.selection.types_or
        else ()
    )
    image = (gate.remote.image,) if gate.remote.image else ()
    compared = ((gate.measures.ratchet, gate.measures.tolerance),) if gate.measures.ratchet else ()
    return (
        (*runs, *image),
        (*sees, *types),
        gate.measures.failures,
        gate.measures.metrics,
        *compared,
    )


def proof_of(gate: Gate, result: GateResult, **fields: Any) -> Proof:  # noqa: ANN401 - as they are
    """Return a proof of how a gate has just ended, with more fields."""
    return Proof(
        gate=gate.name,
        duration_s=result.duration_s,
        definition=definition_of(gate),
        action_digest=result.origin.action_digest,
        **{"status": result.status, "time_s": time.time(), **fields},
    )


def append(shared_state_abs: str, proofs: Sequence[Proof]) -> None:
    """Append proofs about the same content to the log. Raises: OSError if it cannot be written."""
    if proofs:
        lines = b"".join(map(_line, proofs))
        append_bounded(_file(shared_state_abs, proofs[0].content), lines, _LARGEST)


def find_pass(shared_state_abs: str, gate: str, content: str, key: str) -> Proof | None:
    """Return a gate's pass on content that may be reused; None if it has failed since."""
    rows = reversed(of_content(shared_state_abs, content))
    newest = next((row for row in rows if (row.gate, row.key) == (gate, key)), None)
    return newest if newest and newest.status == "passed" else None


def of_content(shared_state_abs: str, content: str) -> list[Proof]:
    """Return all proofs about content, oldest first."""
    try:
        raw = read_state(_file(shared_state_abs, content)) or b""
    except OSError:
        return []
    wanted = os.fsencode(f"\t{content}\t")
    found = [_parse(line) for line in raw.split(b"\n") if wanted in line]
    return [proof for proof in found if proof and proof.content == content]


def read_all(
    shared_state_abs: str, marks: dict[str, tuple[int, bytes]] | None = None
) -> Iterator[Proof]:
    """Yield all proofs; for the same content, oldest first.

    `marks`: where the last read of each file ended, and the bytes before; only what follows is
    yielded, and the marks are updated. A file whose older half was dropped since is read again.

    Raises: PermissionError if a file may not be read.
    """
    marks = {} if marks is None else marks
    folder_abs = f"{shared_state_abs}/{FOLDER}"
    try:
        names = sorted(name for name in os.listdir(folder_abs) if len(name) == 2)  # noqa: PLR2004 - digits
    except (FileNotFoundError, NotADirectoryError):
        return
    for name in names:
        start, before = marks.get(name, (0, b""))
        try:
            with open(f"{folder_abs}/{name}", "rb", buffering=0, opener=open_state) as file:
                file.seek(start - len(before))
                if file.read(len(before)) != before:
                    start = file.seek(0)
                raw = file.read()
        except PermissionError:
            raise
        except OSError:
            continue  # something else is there
        whole = raw[: raw.rfind(b"\n") + 1]  # the rest is being written
        if whole:
            marks[name] = start + len(whole), whole[-_END:]
        yield from filter(None, map(_parse, raw.split(b"\n")))


def durations(shared_state_abs: str) -> dict[str, float]:
    """Return gate → roughly how many seconds its last run took, in any worktree."""
    return read_cached(f"{shared_state_abs}/{FOLDER}/{_DURATIONS}") or {}


def remote_name(gate: str) -> str:
    """Return the name under which a gate's duration on a server is recorded."""
    return f"{gate}\nremote"


def note_durations(shared_state_abs: str, seconds_by_gate: Mapping[str, float]) -> None:
    """Record how long gates took, if that differs noticeably from before."""
    known = durations(shared_state_abs)
    news = {
        gate: seconds
        for gate, seconds in seconds_by_gate.items()
        if abs(seconds - known.get(gate, 0.0)) > max(known.get(gate, 0.0) / 4, _LEAST_S)
    }
    if not news:
        return
    others = [(gate, known[gate]) for gate in known if gate not in news]
    newest = dict([*others, *news.items()][-_MOST_DURATIONS:])
    folder_abs = f"{shared_state_abs}/{FOLDER}"
    try:
        make_folder(folder_abs)
        replace_cached(f"{folder_abs}/{_DURATIONS}", newest, sync=False)
    except OSError:
        return  # gates start in another order


def _file(shared_state_abs: str, content: str) -> str:
    return f"{shared_state_abs}/{FOLDER}/{digest(content)[:2]}"


def _line(proof: Proof) -> bytes:
    fields = proof._asdict() | dict(zip(_SHARING, proof.sharing, strict=True))
    fields |= {"time_s": f"{proof.time_s:.3f}", "duration_s": f"{proof.duration_s:.3f}"}
    marks = [failure[:2] for failure in proof.failures]
    fields |= {"numbers": _to_json(proof.numbers), "failures": _to_json(marks)}
    if len(fields["failures"]) > _MOST_FAILURES:
        without_titles = [(fingerprint, "") for fingerprint, _title in proof.failures]
        fields["failures"] = _to_json(without_titles)
    if len(fields["failures"]) > _MOST_FAILURES:
        fields["failures"] = ""
    texts = [_VERSION, *(fields[name].translate(_UNSAFE) for name in _FIELDS)]
    body = os.fsencode("\t".join(texts))
    return body + b"\t" + _imp.source_hash(_HASH_KEYS[0], body).hex().encode() + b"\n"


def _parse(line: bytes) -> Proof | None:
    body, _, check = line.rpartition(b"\t")
    if _imp.source_hash(_HASH_KEYS[0], body).hex().encode() != check:
        return None
    version, *texts = os.fsdecode(body).split("\t")
    if version != _VERSION or len(texts) != len(_FIELDS):
        return None
    fields: dict[str, Any] = dict(zip(_FIELDS, texts, strict=True))
    fields |= {"time_s": float(fields["time_s"]), "duration_s": float(fields["duration_s"])}
    failures = _from_json(fields["failures"]) or ()
    fields |= {
        "numbers": _from_json(fields["numbers"]) or {},
        "failures": tuple((fingerprint, title) for fingerprint, title in failures),
    }
    sharing = Sharing(*map(fields.pop, _SHARING))
    return Proof(**fields, sharing=sharing)


def _to_json(value: object) -> str:
    if not value:
        return ""
    from gitgates.core.lean_json import dumps  # few proofs have numbers or failures

    return dumps(value)


def _from_json(text: str) -> Any:  # noqa: ANN401 - whatever it says
    if not text:
        return None
    from gitgates.core.lean_json import loads  # as above

    return loads(text)


def age(time_s: float) -> str:
    """Return how long ago something was, for people."""
    seconds = max(time.time() - time_s, 0.0)
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"
