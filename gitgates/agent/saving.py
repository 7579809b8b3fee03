"""Leave the artifacts of an agent's attempts, and clear old ones away now and then."""

from __future__ import annotations

import time

from gitgates.agent.place import note
from gitgates.record import Record
from gitgates.report.artifacts import save
from gitgates.report.result import AttemptReport
from gitgates.worktree.gc import collect_if_due

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.checks import Check
    from gitgates.agent.place import Place
    from gitgates.types import Answer, Decision


class Came(Record):
    """What came of an attempt."""

    decision: Decision
    outcome: str  # the word for it: report/result.py has them
    tree: str = ""  # the snapshot that the gates saw
    retries: int = 0  # that the hook allows
    cannot_fix: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


def save_attempt(place: Place, check: Check, answer: Answer, came: Came) -> None:
    """Write down what came of an attempt."""
    payload = place.payload
    notes = save(
        AttemptReport(
            hook=payload.event,
            host=payload.host,
            root=place.repo.root_abs,
            timestamp_s=check.began_s,
            duration_s=max(time.time() - check.began_s, 0.0),
            decision=came.decision,
            verdict=came.outcome,
            tree=came.tree,
            session=payload.session,
            agent=payload.agent_type,
            agent_fixes=payload.last_message,
            fed_back_bytes=len(answer.to_agent.encode("utf-8", "replace")),
            notes=came.notes,
            cannot_fix=came.cannot_fix,
        ),
        check.run_abs,
        max_retries=came.retries,
        artifacts_dir=check.config.artifacts_dir,
        keep_runs=check.config.keep_runs,
    )
    for text in notes:
        note(place, text)
    collect_if_due(place.repo, check.config)
