"""Environment variables for advice."""

from __future__ import annotations

NAMES = (
    ("GITGATES_RIG", "you", "selects advice for this rig"),
    ("GITGATES_ROLE", "you", "selects advice for this role"),
    ("GITGATES_AGENT", "you", "selects advice for this agent; default: the sub-agent's type"),
    ("GITGATES_ADVICE", "gitgates", "for an advice entry's command: its id"),
    ("GITGATES_ADVICE_TRIGGER", "gitgates", "the same: its trigger, such as before-commit"),
)
