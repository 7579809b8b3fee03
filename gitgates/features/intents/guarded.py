"""The guard's rule about the intents file."""

from __future__ import annotations

from gitgates.core.guarded import Rule

RULES = (
    Rule(
        name="intents_file",
        answer="ask",
        meaning="Changing the intents file.",
        why="It changes what agents may work on.",
        instead="Your change does not count. For more files: gitgates intent "
        "scope-expansion-request.",
    ),
)
