"""A guard rule, as features have them: `RULES` in `guarded.py` of their folders.

For cold code only: the configuration, its documentation, and a tool call that a rule is about.
"""

from __future__ import annotations

from gitgates.core.parts import feature_parts
from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.types import Config


class Rule(Record):
    """One rule, which is a key of `[tool.gitgates.guard]`."""

    name: str
    answer: str  # if nothing is configured
    meaning: str  # for the documentation
    why: str  # the agent may not; so it is told
    instead: str  # what it can do
    answers: tuple[str, ...] = ("deny", "ask", "warn", "off")  # that can be configured
    by_pattern: bool = False  # or a table of patterns of commands with an answer each


def setting_of(config: Config, name: str) -> Any:  # noqa: ANN401 - an answer, or patterns with one each
    """Return what the configuration says about a rule."""
    table = config.tables.get("guard", {})
    # Without, it is of another version, or of no configuration.
    return table[name] if name in table else rules_by_name()[name].answer


def has_rules(config: Config) -> bool:
    """Return whether the rules apply at all."""
    return bool(config.tables.get("guard", {}).get("enabled", True))


def rules_by_name() -> dict[str, Rule]:
    """Return the rules of all features, by name."""
    return {rule.name: rule for module in feature_parts("guarded") for rule in module.RULES}
