"""Find that a repository is on a drive of Windows that WSL mounts, such as /mnt/c."""

from __future__ import annotations

import os

from gitgates.core.windows import page
from gitgates.store.files import read_or_empty

_MOUNTS = "/proc/self/mountinfo"


def remarks(root_abs: str, mounts_abs: str = _MOUNTS) -> list[str]:
    """Return a note for a repository on a drive of Windows; none for any other."""
    drive = _drive(os.path.realpath(root_abs), read_or_empty(mounts_abs))
    if not drive:
        return []
    note = (
        f"this repository is on a drive of Windows ({drive}): hooks run for git in WSL only; "
        "commits by git of Windows, also from an editor there, are refused\n"
        f"  Keep it in a folder of WSL, such as ~/src. Why: {page()}"
    )
    return [note]


def _drive(root_abs: str, mountinfo: bytes) -> str:
    """Return where the drive is mounted that a folder is on; empty if it is none of Windows.

    Source: proc(5), /proc/PID/mountinfo. WSL 1 mounts drives as `drvfs`, WSL 2 as `9p` with the
    option `aname=drvfs`, or as `virtiofs` from a source whose name begins with `drvfs`.
    """
    best, is_windows = "", False
    for line in mountinfo.splitlines():
        fields, _, kind = line.partition(b" - ")
        place = os.fsdecode(fields.split(b" ")[4]).replace("\\040", " ")
        # The last of those that are mounted on the same folder is the visible one.
        if f"{root_abs}/".startswith(f"{place.rstrip('/')}/") and len(place) >= len(best):
            best, is_windows = place, b"drvfs" in kind
    return best if is_windows else ""
