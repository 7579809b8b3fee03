"""The results of advice hooks: what is recorded and reported."""

from __future__ import annotations

from gitgates.core.types import ALLOW
from gitgates.engine.walk import Walk, make_decision
from gitgates.features.advice.facts import AdviceEntry
from gitgates.features.advice.items import PREFIX, content_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitgates.core.types import Decision, Plan
    from gitgates.features.advice.items import Advice


def without_ignored(plan: Plan, decision: Decision, hooks: Sequence[Advice]) -> Decision:
    """Return the decision without the hooks whose failure is ignored, which are not reported."""
    names = ignored(hooks)
    visits = tuple(visit for visit in decision.visits if visit.result.gate not in names)
    level = max((visit.verdict for visit in visits), default=ALLOW)
    walk = Walk(due=(), verdict=level, visits=visits, not_run=decision.not_run)
    reported = make_decision(plan, walk)
    return reported._replace(
        notes=decision.notes, results=decision.results, run_abs=decision.run_abs
    )


def ignored(hooks: Sequence[Advice]) -> set[str]:
    """Return the names of the gates whose failure is ignored."""
    return {f"{PREFIX}{hook.id}" for hook in hooks if hook.hook_on_failure == "ignore"}


def records(decision: Decision, hooks: Sequence[Advice], tree: str = "") -> list[AdviceEntry]:
    """Return what is recorded of each hook that has run, on a snapshot."""
    by_name = {f"{PREFIX}{hook.id}": hook for hook in hooks}
    return [
        AdviceEntry(
            id=advice.id,
            hash=content_hash(advice),
            trigger=advice.hook_trigger,
            status=visit.result.status,
            duration_s=round(visit.result.duration_s, 3),
            tree=tree,
        )
        for visit in decision.visits
        if visit.result.status != "skipped" and (advice := by_name.get(visit.result.gate))
    ]
