"""The guard's rule about reviewers' files."""

from __future__ import annotations

from gitgates.core.guarded import Rule

RULES = (
    Rule(
        name="reviewer_files",
        answer="ask",
        meaning="Changing a reviewing agent, skill or command, if a hook lists the gate `review`.",
        why="It changes who reviews the work, or how.",
        instead="Say what should change.",
    ),
)
