"""Compare gates that ran although their passes would have been reused with those passes. Cold."""

from __future__ import annotations

from gitgates.core.clean import counted
from gitgates.core.types import BLOCK, Decision
from gitgates.engine.walk import describe


def audited(decision: Decision) -> Decision:
    """Return the decision of an audit: it blocks if a gate did not pass again, or changed files."""
    compared = [visit.result for visit in decision.visits if visit.result.reused]
    different = [result for result in compared if result.status != "passed" or result.changed_paths]
    notes = [
        f"gate `{result.gate}` {describe(result)}; its pass would have been reused "
        f"({result.reused})"
        for result in different
    ]
    if not compared:
        notes = ["nothing was compared: no pass would have been reused"]
    elif not different:
        text = f"{counted(len(compared), 'gate')} would have been reused, and passed again"
        notes = [f"no difference: {text}"]
    decision = decision._replace(notes=(*decision.notes, *notes))
    if not different or decision.verdict >= BLOCK:
        return decision
    gates = ", ".join(f"`{result.gate}`" for result in different)
    return decision._replace(verdict=BLOCK, reason=f"wrong passes would have been reused: {gates}")
