"""The ledger: what was left out or overridden, in an append-only file that all worktrees share.

One JSON object a line. It is written only when there is something to tell, so that a hook that runs
all of its gates never loads `json`.
"""

from __future__ import annotations

import os
import time

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
    fd = os.open(os.path.join(shared_state_abs, LEDGER), flags, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        os.write(fd, line)
    finally:
        os.close(fd)
