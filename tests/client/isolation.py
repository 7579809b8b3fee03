"""Keep a process off the network, and end whatever it leaves behind."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from pathlib import Path

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000  # of unshare(2)
_GET_FLAGS, _SET_FLAGS, _UP = 0x8913, 0x8914, 1  # of netdevice(7)
_SUBREAPER = 36  # of prctl(2)
_NOWHERE = "http://127.0.0.1:9"


def leave_the_network() -> bool:
    """Move this process to a network namespace that has loopback only; return whether that worked.

    To be called before a thread is started: a namespace is a thread's.
    """
    if sys.platform != "linux":
        return False
    libc = ctypes.CDLL(None)
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(_NEW_NET) != 0:
        if libc.unshare(_NEW_USER | _NEW_NET) != 0:
            return False
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        asked = struct.pack("16sh14x", b"lo", 0)
        flags = struct.unpack("16sh14x", fcntl.ioctl(link, _GET_FLAGS, asked))[1]
        fcntl.ioctl(link, _SET_FLAGS, struct.pack("16sh14x", b"lo", flags | _UP))
    return True


def proxies_to_nowhere() -> dict[str, str]:
    """Return variables that hold back programs that ask for a proxy: all we can do elsewhere."""
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    found = {name: _NOWHERE for upper in names for name in (upper, upper.lower())}
    return {**found, "NO_PROXY": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def end_orphans() -> int:
    """Kill what was adopted, and what that leaves behind in turn; return how many there were."""
    ended = 0
    while left := _children():
        for pid in left:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                    ended += 1
    return ended


def _children() -> list[int]:
    found: list[int] = []
    for tasks in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += [int(pid) for pid in tasks.read_text().split()]
    return found
