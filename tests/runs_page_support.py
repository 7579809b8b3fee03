"""What the page of all runs is made from: of a month, and with hostile texts."""

from __future__ import annotations

from typing import Any

import page_support
from artifact_support import START_S, attempt, visit

from gitgates.report.result import add_attempt
from gitgates.report.runs_page import KeptRuns
from gitgates.store.proofs import Proof

_DAY_S = 24 * 3600.0


def kept_runs(documents: list[dict[str, Any]], **more: Any) -> KeptRuns:
    """Return what is kept, if nothing but these runs is."""
    fields = {"proofs": [], "skips": [], "commits": [], "verified": 0, **more}
    return KeptRuns(root_abs="/work", documents=documents, **fields)


def runs_of_a_month() -> KeptRuns:
    """Return nine runs on as many days: three in which an agent fixed what lint had found."""
    documents = []
    for day in range(9):
        fixed = day % 3 == 2
        end = attempt(
            visit("lint", "passed", duration_s=1.0),
            visit("test", "failed" if day == 8 else "passed", duration_s=20.0, verdict=0),
            timestamp_s=START_S + day * _DAY_S + 60,
            session=f"session-{day // 3}" if fixed else "",
            host="claude" if fixed else "manual",
        )
        document = None
        if fixed:
            failed = visit("lint", "failed", duration_s=0.0)
            first = attempt(failed, timestamp_s=START_S + day * _DAY_S, session=end.session)
            document = add_attempt(None, f"run-{day}", first, 3)
        documents.append(add_attempt(document, f"run-{day}", end, 3))
    proofs = [
        Proof("test", f"{number}" * 40, "passed", START_S + number, numbers={"coverage": number})
        for number in (80, 85, 90)
    ]
    flaps = [Proof("test", "d" * 40, status, START_S) for status in ("passed", "failed")]
    skip = {"gates": ["lint", "test"], "by": "SKIP", "hook": "pre-commit"}
    return kept_runs(
        documents,
        proofs=[*proofs, *flaps],
        skips=[{**skip, "time": "2024-01-15T10:31:00Z"}],
        commits=[
            {
                "commit": "c2" * 20,
                "subject": "Second",
                "state": "bypassed the gates",
                "why": "lint",
            }
        ],
        verified=2,
    )


def hostile_runs(count: int) -> KeptRuns:
    """Return runs in which every text tries to break out."""
    text = page_support.HOSTILE
    document = page_support.hostile()
    skip = {"gates": [text, "w" * 5000], "by": text, "hook": text, "time": text}
    commit = {"commit": "c" * 40, "subject": text, "state": "skipped", "why": text * 50}
    return kept_runs(
        [{**document, "session": text, "execution_id": text, "host": text}] * count,
        skips=[skip],
        commits=[commit],
        verified=1,
        proofs=[Proof(f"<b>{text}", text, end, 1.0) for end in ("passed", "failed")],
    )._replace(root_abs=f"/{text}")
