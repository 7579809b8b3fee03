"""Points at which a test can hold a run still, to see what a signal there would leave behind.

Nothing else ever sets the name. What is tested is the shipped code, not a copy with hooks in it.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_LONGEST_S = 60.0


def pause_point(env: Mapping[str, str]) -> Callable[[str], None]:
    """Return what to call before each step: it waits at the one that GITGATES_PAUSE_AT names.

    The value is `STEP NUMBER FOLDER`: at the NUMBERth call for STEP, FOLDER/reached is made, and
    the run goes on when FOLDER/go is there.
    """
    wanted = env.get("GITGATES_PAUSE_AT", "").split(" ", 2)
    if len(wanted) < 3:  # noqa: PLR2004 - the three words above
        return _go_on
    left = int(wanted[1])

    def step(name: str) -> None:
        nonlocal left
        if name != wanted[0]:
            return
        left -= 1
        if left == 0:
            _wait(wanted[2])

    return step


def _go_on(_name: str) -> None:
    """Take the step."""


def _wait(folder: str) -> None:
    os.close(os.open(os.path.join(folder, "reached"), os.O_CREAT | os.O_WRONLY, 0o600))
    end = time.monotonic() + _LONGEST_S
    while not os.path.exists(os.path.join(folder, "go")) and time.monotonic() < end:
        time.sleep(0.005)
