"""Compare advice that blocks: what has become weaker."""

from __future__ import annotations

from gitgates.config.section_keys import ADVICE_KEYS
from gitgates.config.weaker import weaker_values
from gitgates.core.types import LIVE, Advice, Config


def compare(before: Config, after: Config) -> list[str]:
    """Return what has become weaker from one configuration to another."""
    now = {advice.id: advice for advice in after.advice}
    return [text for advice in before.advice for text in compare_advice(advice, now.get(advice.id))]


def compare_advice(old: Advice, new: Advice | None) -> list[str]:
    """Return what has become weaker of an advice that blocks; nothing of any other."""
    if old.status not in LIVE or old.hook_on_failure != "block":
        return []
    place = f"advice.{old.id}"
    return [*weaker_values(ADVICE_KEYS, old, new, f"{place}.")] if new else [f"{place}: removed"]
