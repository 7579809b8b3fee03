"""A gate's failures: found in its output, and compared with those of the last attempt. Cold.

Loaded only when a gate has failed.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from itertools import islice

from gitgates.core.clean import plain, plain_line
from gitgates.core.failure import Failure
from gitgates.core.record import Record
from gitgates.engine.findings.normalise import normalise, without_volatile
from gitgates.engine.findings.presets import (
    OF_JSON,
    OF_PACKAGES,
    PRESETS,
    ParsedFailure,
    in_module,
    preset_of,
)
from gitgates.proc.bounded import LIMIT_S, compute
from gitgates.store.files import open_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gitgates.core.types import Gate, GateResult

MOST_FAILURES = 1000
MOST_BYTES = 512 * 1024  # of an output that a preset reads: the head and the tail
MOST_BYTES_OF_JSON = 4 << 20  # the same, if a cut would damage it
MOST_BYTES_OF_OWN = 64 * 1024  # the same for a configured regular expression, which may be slow
_MOST_READ = 1 << 20  # bytes of a log
MOST_RECOGNISED = 100_000  # if none may be missing
_TITLE = 200
_MESSAGE = 500
_PATH = 1000
_DIGITS = 10  # of a line that is none
_LONG_LINE = re.compile(r"([^\n]{2000})[^\n]+")  # longer than any message about one failure
_TELLING = re.compile(r"(?i)error|fail|fatal|panic|exception|not found|cannot")


class FailureChanges(Record):
    """How a gate's failures differ from those of the last attempt."""

    new: tuple[Failure, ...] = ()
    unchanged: tuple[Failure, ...] = ()
    resolved: tuple[Failure, ...] = ()


def failures_of(
    gate: Gate, result: GateResult, root_abs: str, say: Callable[[str], object]
) -> tuple[Failure, ...]:
    """Return the failures of a gate that failed in `root_abs`, split by its pattern.

    If that takes too long, the person is told, and the whole output is one failure.
    """
    if result.findings.failures:
        return result.findings.failures
    most = MOST_BYTES_OF_JSON if gate.measures.failures in OF_JSON else _MOST_READ
    output = whole_output(result, most)
    folder, counts_warnings = gate.program.working_dir, bool(gate.measures.baseline)
    try:
        return split(
            output,
            gate.measures.failures,
            gate.name,
            root_abs,
            folder=folder,
            counts_warnings=counts_warnings,
        )
    except TimeoutError:
        say(
            f"`{gate.name}`: its pattern `failures` took longer than {LIMIT_S:g} s, so the "
            "whole output is one failure"
        )
    return split(output, "", gate.name, root_abs)


def whole_output(result: GateResult, most: int = _MOST_READ) -> bytes:
    """Return a gate's output from its log, up to a limit; the kept excerpt has a gap."""
    if not (result.dropped_bytes and result.log_abs):
        return result.output
    # `max_log` may be small.
    return max(read_gate_log(result.log_abs, most), result.output, key=len)


def read_gate_log(path_abs: str, most: int = _MOST_READ) -> bytes:
    """Return the beginning of a log; empty if it does not exist."""
    try:
        with open(path_abs, "rb", opener=open_state) as file:
            return file.read(most)
    except OSError:
        return b""


def split(
    output: bytes,
    pattern: str,
    gate: str = "",
    root_abs: str = "",
    *,
    folder: str = ".",
    counts_warnings: bool = False,
) -> tuple[Failure, ...]:
    """Return the failures in the output of a gate that failed: at least one, each once, in order.

    `pattern` names a preset, or is a regular expression, or is empty: then, and where it finds
    nothing, the whole output is one failure. Paths below `root_abs` are taken as relative to it, so
    that another checkout of the same content gives the same fingerprints. The others are relative
    to `folder` below it, where the gate runs. `counts_warnings`: also beside errors, as one of them
    may be what is new.

    Raises: TimeoutError if the regular expression takes too long.
    """
    text = plain(_bounded(output, MOST_BYTES if pattern in PRESETS else MOST_BYTES_OF_OWN))
    document = text
    if pattern in OF_JSON:
        document = _bounded(output, MOST_BYTES_OF_JSON).decode("utf-8", "replace")
    recognised = _find(document, pattern, root_abs, MOST_FAILURES, counts_warnings=counts_warnings)
    recognised = _placed(recognised, pattern, os.path.join(root_abs, folder))
    return tuple(_number(recognised, gate, folder)) or (_whole(_below(text, root_abs), gate),)


def recognise(text: str, gate: Gate, root_abs: str) -> list[ParsedFailure]:
    """Return what a gate's pattern finds in its plain output, warnings too; it may be nothing.

    Raises: TimeoutError if the regular expression takes too long.
    """
    parsed = _find(text, gate.measures.failures, root_abs, MOST_RECOGNISED, counts_warnings=True)
    return _placed(parsed, gate.measures.failures, os.path.join(root_abs, gate.program.working_dir))


def number(parsed: list[ParsedFailure], gate: Gate) -> tuple[Failure, ...]:
    """Return them as `split` does: each once."""
    return tuple(_number(parsed, gate.name, gate.program.working_dir))


def short_lines(text: str) -> str:
    """Return a text with lines cut that are longer than any message."""
    return _LONG_LINE.sub(r"\1", text)


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


def _find(
    text: str, pattern: str, root_abs: str, most: int, *, counts_warnings: bool
) -> list[ParsedFailure]:
    """Return what a pattern finds, with paths below `root_abs` relative to it."""
    if pattern not in PRESETS:
        titles = _titles(pattern, short_lines(_below(text, root_abs)), most)
        return [ParsedFailure(title=title, message=title) for title in titles]
    find = preset_of(pattern, counts_warnings=counts_warnings)
    if pattern not in OF_JSON:
        return list(islice(find(short_lines(_below(text, root_abs))), most))
    return [
        ParsedFailure(*(_below(field, root_abs) for field in failure))
        for failure in islice(find(text), most)
    ]


def _placed(parsed: list[ParsedFailure], pattern: str, folder_abs: str) -> list[ParsedFailure]:
    """Return failures whose paths are those of packages with paths of files."""
    return in_module(parsed, folder_abs) if pattern in OF_PACKAGES else parsed


def _titles(pattern: str, text: str, most: int) -> list[str]:
    try:
        regex = re.compile(pattern, re.MULTILINE) if pattern else None
    except (re.error, OverflowError, RecursionError):
        regex = None  # the configuration has been checked; a damaged one must not end the run
    if regex is None:
        return []
    matches = (match[0] for match in regex.finditer(text))
    titles = (title for title in matches if title.strip())
    return compute(lambda: list(islice(titles, most)), LIMIT_S)


def _number(failures: list[ParsedFailure], gate: str, folder: str) -> Iterator[Failure]:
    """Tell apart failures that differ only by their position; drop duplicates.

    Without its line, a rule that is broken twice in a file would be one failure, and breaking it
    once more would be no news.
    """
    places: dict[tuple[str, str], list[str]] = {}
    for item in failures:
        key = (item.identity, normalise(item.message))
        place = "\n".join([item.target, item.path, item.place, without_volatile(item.message)])
        same_kind = places.setdefault(key, [])
        if place in same_kind:
            continue
        same_kind.append(place)
        again = f" (number {len(same_kind)} of this kind)" if len(same_kind) > 1 else ""
        title = plain_line(item.title, _TITLE - len(again)) + again
        line, column = _position(item.place)
        yield Failure(
            fingerprint=_fingerprint(gate, *key, again),
            title=title,
            path=_from_root(item.path, folder),
            line=line,
            column=column,
            rule=plain_line(item.rule),
            message=plain_line(item.shown or item.message, _MESSAGE),
            severity=item.severity,
        )


def _position(place: str) -> tuple[int, int]:
    """Return line and column of `12:5`; 0 for what is not known, as in a cell of a notebook."""
    if place.startswith("cell"):
        return 0, 0
    parts = f"{place}:".split(":")
    line, column = (
        int(part) if part.isdecimal() and len(part) < _DIGITS else 0 for part in parts[:2]
    )
    return line, column if line else 0


def _from_root(path: str, folder: str) -> str:
    """Return a printed path from the repository's root; empty if it is not below that."""
    is_below = folder == "." or path.startswith(f"{folder}/")  # as others, it was made relative
    if not path or len(path) > _PATH or not path.isprintable():
        return ""
    path = os.path.normpath(path if is_below else os.path.join(folder, path))
    return "" if path.startswith(("/", "../")) or path in (".", "..") else path


def _whole(text: str, gate: str) -> Failure:
    lines = [line for line in text.split("\n") if line.strip()]
    telling = next((line for line in lines if _TELLING.search(line)), "")
    title = plain_line(telling or (lines[-1] if lines else "no output"), _TITLE)
    return Failure(
        fingerprint=_fingerprint(gate, "", normalise(text), ""), title=title, message=title
    )


def _fingerprint(*parts: str) -> str:
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
