"""A policy in a few lines: who wants to stop leaves a note first. Only this file names it."""

from __future__ import annotations

import os

from gitgates.policies.call import Call
from gitgates.policy import Need, Policy
from gitgates.types import BLOCK, Config, Verdict

ROW = Policy(name="notes", module="example_policy")


def needs(_config: Config) -> tuple[Need, ...]:
    return (Need(kind="turn-end"),)


def decide(call: Call, so_far: Verdict) -> Verdict:
    if os.path.exists(f"{call.repo.root_abs}/NOTES"):
        return so_far
    return so_far.joined(Verdict(BLOCK, to_agent="Leave a note in NOTES."))
