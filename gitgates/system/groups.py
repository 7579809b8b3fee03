"""End the process groups of gates whose run is gone."""

from __future__ import annotations

import os
import time

from gitgates.system.proc import GRACE_S, group_lives

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal

_LOOK_AGAIN_S = 0.02


def end(groups: list[int]) -> None:
    """Ask every group to end, and end those that do not within the grace."""
    _send(groups, _signal.SIGTERM)
    end_s = time.monotonic() + GRACE_S / 4  # nobody is there to wait politely for
    while any(group_lives(group) for group in groups) and time.monotonic() < end_s:
        time.sleep(_LOOK_AGAIN_S)
    _send(groups, _signal.SIGKILL)


def _send(groups: list[int], number: int) -> None:
    for group in groups:
        try:
            os.killpg(group, number)
        except OSError:
            continue
