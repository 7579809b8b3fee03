"""Copy an index so that git still trusts it exactly as far as the original."""

from __future__ import annotations

import os

from gitgates.store.files import open_state


def copy_index(source_abs: str, target_abs: str) -> None:
    """Copy an index with its times: git's check for racy files compares with them.

    Raises: OSError where the source is not there, or the target cannot be written.
    """
    with open(source_abs, "rb", buffering=0) as source:
        content = source.read()
        times = os.fstat(source.fileno())
    with open(f"{target_abs}.new", "wb", opener=open_state) as target:
        target.write(content)
    os.utime(f"{target_abs}.new", ns=(times.st_atime_ns, times.st_mtime_ns))
    os.rename(f"{target_abs}.new", target_abs)
