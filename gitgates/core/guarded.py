"""A rule of the guard, as features have them: `RULES` in `guarded.py` of their folders.

For cold code only: the configuration, its documentation, and a tool call that a rule is about.
"""

from __future__ import annotations

from gitgates.core.parts import feature_parts
from gitgates.core.record import Record


class Rule(Record):
    """One rule, which is a key of `[tool.gitgates.guard]`."""

    name: str
    answer: str  # deny, ask, warn, off: where nothing is configured
    meaning: str  # for the documentation
    why: str  # the agent may not; so it is told
    instead: str  # what it can do


def rules_by_name() -> dict[str, Rule]:
    """Return the rules of all features, by name."""
    return {rule.name: rule for module in feature_parts("guarded") for rule in module.RULES}
