"""The ledger: what was left out or overridden, in an append-only file that all worktrees share.

One JSON object a line. It is written only when there is something to tell, so that a hook that runs
all of its gates never loads `json`.
"""

from __future__ import annotations

import os
import time

from gitgates.store.files import open_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LEDGER = "ledger.jsonl"


def record(shared_state_abs: str, what: str, fields: dict[str, object]) -> None:
    """Append one entry. Each is a single write under a lock.

    Raises: OSError where the ledger cannot be written.
    """
    import fcntl
    import json

    stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps({"v": 1, "time": stamp, "what": what, **fields}).encode() + b"\n"
    os.makedirs(shared_state_abs, mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    fd = open_state(os.path.join(shared_state_abs, LEDGER), flags)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.write(fd, line)
    finally:
        os.close(fd)


def read(shared_state_abs: str) -> list[dict[str, Any]]:
    """Return all entries that can be understood, oldest first. Cold."""
    import json

    found: list[dict[str, Any]] = []
    try:
        with open(os.path.join(shared_state_abs, LEDGER), "rb", opener=open_state) as file:
            lines = file.read().splitlines()
    except OSError:
        return found
    for line in lines:
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue  # torn by a loss of power
        if isinstance(entry, dict):
            found.append(entry)
    return found
