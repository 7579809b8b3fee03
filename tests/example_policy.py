"""A policy in a few lines: who wants to stop, commit or push leaves a note first.

Only this file names it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gitgates.core.policy import Need, Policy
from gitgates.core.types import BLOCK, Config, Verdict

if TYPE_CHECKING:
    from gitgates.core.policy import AnyCall

ROW = Policy(
    name="notes", module="example_policy", kinds=("turn-end", "before-commit", "before-push")
)


def needs(_config: Config) -> tuple[Need, ...]:
    return tuple(Need(kind=kind) for kind in ROW.kinds)


def decide(call: AnyCall, so_far: Verdict) -> Verdict:
    if os.path.exists(f"{call.repo.root_abs}/NOTES"):
        return so_far
    return so_far.joined(Verdict(BLOCK, to_agent="Leave a note in NOTES."))
