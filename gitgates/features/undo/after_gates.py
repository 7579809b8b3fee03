"""The policy that records the state at a turn's end, and removes old save points."""

from __future__ import annotations

import time

from gitgates.core.errors import GitgatesError
from gitgates.core.types import WARN, Verdict
from gitgates.drivers import recorder
from gitgates.features.undo.settings import file_limits, settings_of
from gitgates.files.prune import prune

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.drivers.call import Call

__all__ = ["decide", "file_limits"]


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Record what has changed; tell the person about old points."""
    if call.is_dry:
        return so_far
    try:
        recorder.observe(call, always=True)
        settings = settings_of(call.config)
        text = prune(
            call.repo, time.time(), keep_s=settings.keep_s, max_size=settings.max_size_bytes
        )
    except GitgatesError as error:
        text = f"no save point: {error}"
    return so_far.joined(Verdict(WARN, to_person=f"gitgates: {text}")) if text else so_far
