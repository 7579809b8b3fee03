"""The rule of the guard on the file with the intents."""

from __future__ import annotations

from gitgates.core.guarded import Rule

RULES = (
    Rule(
        name="intents_file",
        answer="ask",
        meaning="Changing the file with the intents.",
        why="It changes what agents may work on.",
        instead="Your change does not count. For more files: gitgates intent "
        "scope-expansion-request.",
    ),
)
