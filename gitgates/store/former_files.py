"""Import files of earlier versions, evidence and metrics, into the log of proofs, once."""

from __future__ import annotations

import calendar
import os
import time

from gitgates.store.files import lock_file, read_state
from gitgates.store.log import parse_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from gitgates.store.log import Fact

_EVIDENCE = "evidence"
_MOST = 1e12
_VERSION = "1"
_FIELDS = 7
_LOCK_WAIT_S = 3.0


def take_in(path_abs: str, write: Callable[[list[dict[str, Any]]], None]) -> None:
    """Pass on the proofs in a file, as fields grouped by content, and empty the file.

    Raises: OSError if that is not possible now; then the file stays.
    """
    # A hook of an earlier version may write at the same time.
    fd = lock_file(path_abs, wait_s=_LOCK_WAIT_S, flags=os.O_RDWR)
    if fd < 0:
        return
    try:
        lines = (read_state(path_abs) or b"").split(b"\n")
        read = _evidence if os.path.basename(path_abs) == _EVIDENCE else _numbers
        fields_by_content: dict[str, list[dict[str, Any]]] = {}
        for fields in read(lines):
            fields_by_content.setdefault(fields["content"], []).append(fields)
        for proofs in fields_by_content.values():
            write(proofs)
        # Not removed: a process that waits for the lock would append to a file without a name.
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def is_measured(entry: Fact) -> bool:
    """Return whether an entry has valid numbers, whoever wrote it."""
    numbers = entry.get("metrics")
    return (
        all(isinstance(entry.get(name), str) for name in ("gate", "commit", "tree", "time"))
        and isinstance(numbers, dict)
        and all(type(number) in (int, float) and abs(number) < _MOST for number in numbers.values())
    )


def _evidence(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    """Read hooks' lines: version, time, tree, base, hook, configuration, and how gates ended."""
    for line in lines:
        fields = os.fsdecode(line).split("\t")
        if len(fields) != _FIELDS or fields[0] != _VERSION:
            continue  # torn by a killed writer
        _version, time_s, tree, base, hook, config, ends = fields
        if not (time_s.isdecimal() and tree and f"{tree}{base}".isalnum()):
            continue
        for end in filter(None, ends.split(",")):
            status, _, gate = end.partition(":")
            run = {"content": tree, "base": base, "hook": hook, "time_s": float(time_s)}
            yield {**run, "gate": gate, "status": status, "config": config or "unknown"}


def _numbers(lines: list[bytes]) -> Iterator[dict[str, Any]]:
    for entry in parse_lines([line for line in lines if line]):
        if entry is None or not is_measured(entry):
            continue
        try:
            time_s = calendar.timegm(time.strptime(entry["time"], "%Y-%m-%dT%H:%M:%SZ"))
        except ValueError:
            continue
        yield {
            "gate": entry["gate"],
            "content": entry["tree"],
            "status": "measured",  # how it ended was not recorded
            "time_s": float(time_s),
            "hook": str(entry.get("hook", "")),
            "base": entry["commit"],
            "numbers": entry["metrics"],
        }
