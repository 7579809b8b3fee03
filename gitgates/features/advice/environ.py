"""Environment variables for advice."""

from __future__ import annotations

NAMES = (
    ("GITGATES_RIG", "you", "the rig that advice is for"),
    ("GITGATES_ROLE", "you", "the role that advice is for"),
    ("GITGATES_AGENT", "you", "the agent that advice is for; default: the type of the sub-agent"),
    ("GITGATES_ADVICE", "gitgates", "for the command of an advice entry: its id"),
    ("GITGATES_ADVICE_TRIGGER", "gitgates", "the same: its trigger, such as before-commit"),
)
