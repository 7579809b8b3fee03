"""Find that a repository is on a drive of Windows that WSL mounts, such as /mnt/c."""

from __future__ import annotations

import os

from gitgates.core.windows import page
from gitgates.store.files import read_or_empty

_MOUNTS = "/proc/self/mountinfo"


def remarks(root_abs: str, mounts_abs: str = _MOUNTS) -> list[str]:
    """Return a note for a repository on a drive of Windows; none for any other.

    Source: proc(5), /proc/PID/mountinfo. WSL 1 mounts drives as `drvfs`, WSL 2 as `9p` with the
    option `aname=drvfs`, or as `virtiofs` from a source whose name begins with `drvfs`.
    """
    drive, is_windows, real_abs = "", False, os.path.realpath(root_abs)
    for line in read_or_empty(mounts_abs).splitlines():
        fields, _, kind = line.partition(b" - ")
        place = os.fsdecode(fields.split(b" ")[4]).replace("\\040", " ")
        # The last of those that are mounted on the same folder is the visible one.
        if f"{real_abs}/".startswith(f"{place.rstrip('/')}/") and len(place) >= len(drive):
            drive, is_windows = place, b"drvfs" in kind
    note = (
        f"this repository is on a drive of Windows ({drive}): hooks run for git in WSL only; "
        "commits by git of Windows, also from an editor there, are refused\n"
        f"  Keep it in a folder of WSL, such as ~/src. Why: {page()}"
    )
    return [note] if is_windows else []
