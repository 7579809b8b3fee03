"""When our process began, as the wall clock says it."""

from __future__ import annotations

import os
import time

_STARTED = 19  # the place of `starttime`, after the name. Source: proc(5), /proc/PID/stat
_IMPORTS_S = 0.05  # elsewhere: what went by until somebody asked, about


def process_began() -> float:
    """Return the time at which this process began, in seconds since the epoch."""
    now = time.time()
    try:
        with open("/proc/self/stat", "rb", buffering=0) as file:
            ticks = int(file.read().rpartition(b")")[2].split()[_STARTED])
        began = ticks / os.sysconf("SC_CLK_TCK")
        return now - (time.clock_gettime(time.CLOCK_BOOTTIME) - began)
    except (OSError, ValueError, IndexError, AttributeError):
        return now - _IMPORTS_S
