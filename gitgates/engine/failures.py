"""Compare failures: which are new, unchanged and resolved since the last attempt. Cold and pure.

Loaded only when a gate has failed.
"""

from __future__ import annotations

import re
from hashlib import sha256
from itertools import islice

from gitgates.core.clean import plain, plain_line
from gitgates.core.record import Record
from gitgates.engine.normalise import normalise, without_volatile
from gitgates.engine.presets import PRESETS, ParsedFailure
from gitgates.proc.bounded import LIMIT_S, compute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_FAILURES = 1000
MOST_BYTES = 512 * 1024  # of an output that a preset reads: the head and the tail
MOST_BYTES_OF_OWN = 64 * 1024  # the same for a configured regular expression, which may be slow
_TITLE = 200
_LONG_LINE = re.compile(r"([^\n]{2000})[^\n]+")  # longer than any message about one failure
_TELLING = re.compile(r"(?i)error|fail|fatal|panic|exception|not found|cannot")


class Failure(Record):
    """One failure, as a gate reported it."""

    fingerprint: str  # 16 hex digits
    title: str  # one line


class FailureChanges(Record):
    """How the failures of a gate differ from those of the last attempt."""

    new: tuple[Failure, ...] = ()
    unchanged: tuple[Failure, ...] = ()
    resolved: tuple[Failure, ...] = ()


def split(output: bytes, pattern: str, gate: str = "", root_abs: str = "") -> tuple[Failure, ...]:
    """Return the failures in the output of a gate that failed: at least one, each once, in order.

    `pattern` names a preset, or is a regular expression, or is empty: then, and where it finds
    nothing, the whole output is one failure. Paths below `root_abs` are taken as relative to it, so
    that another checkout of the same content gives the same fingerprints.

    Raises: TimeoutError where the regular expression takes too long.
    """
    limit = MOST_BYTES if pattern in PRESETS else MOST_BYTES_OF_OWN
    text = _below(plain(_bounded(output, limit)), root_abs)
    finds = _find(_LONG_LINE.sub(r"\1", text), pattern)
    failures = list(islice(finds, MOST_FAILURES))
    return tuple(_number(failures, gate)) or (_whole(text, gate),)


def compare_failures(before: tuple[Failure, ...], now: tuple[Failure, ...]) -> FailureChanges:
    """Return what is new, unchanged and resolved; the unchanged with their present titles."""
    old_fingerprints = {failure.fingerprint for failure in before}
    new_fingerprints = {failure.fingerprint for failure in now}
    return FailureChanges(
        new=tuple(failure for failure in now if failure.fingerprint not in old_fingerprints),
        unchanged=tuple(failure for failure in now if failure.fingerprint in old_fingerprints),
        resolved=tuple(
            failure for failure in before if failure.fingerprint not in new_fingerprints
        ),
    )


def _bounded(output: bytes, limit: int) -> bytes:
    if len(output) <= limit:
        return output
    return output[: limit // 2] + b"\n" + output[-limit // 2 :]


def _below(text: str, root_abs: str) -> str:
    root = root_abs.rstrip("/")
    return text.replace(f"{root}/", "") if root else text


def _find(text: str, pattern: str) -> Iterator[ParsedFailure]:
    if pattern in PRESETS:
        yield from PRESETS[pattern](text)
        return
    try:
        regex = re.compile(pattern, re.MULTILINE) if pattern else None
    except (re.error, OverflowError, RecursionError):
        regex = None  # the configuration has been checked; a damaged one must not end the run
    for title in compute(lambda: _titles(regex, text), LIMIT_S) if regex else ():
        yield ParsedFailure(title=title, message=title)


def _titles(pattern: re.Pattern[str], text: str) -> list[str]:
    matches = (match[0] for match in pattern.finditer(text))
    return list(islice((title for title in matches if title.strip()), MOST_FAILURES))


def _number(failures: list[ParsedFailure], gate: str) -> Iterator[Failure]:
    """Tell apart failures that differ only by their position; drop duplicates.

    Without its line, a rule that is broken twice in a file would be one failure, and breaking it
    once more would be no news.
    """
    places: dict[tuple[str, str], list[str]] = {}
    for item in failures:
        key = (item.identity, normalise(item.message))
        place = f"{item.place}\n{without_volatile(item.message)}"
        same_kind = places.setdefault(key, [])
        if place in same_kind:
            continue
        same_kind.append(place)
        again = f" (number {len(same_kind)} of this kind)" if len(same_kind) > 1 else ""
        title = plain_line(item.title, _TITLE - len(again)) + again
        yield Failure(fingerprint=_fingerprint(gate, *key, again), title=title)


def _whole(text: str, gate: str) -> Failure:
    lines = [line for line in text.split("\n") if line.strip()]
    telling = next((line for line in lines if _TELLING.search(line)), "")
    title = plain_line(telling or (lines[-1] if lines else "no output"), _TITLE)
    return Failure(fingerprint=_fingerprint(gate, "", normalise(text), ""), title=title)


def _fingerprint(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
