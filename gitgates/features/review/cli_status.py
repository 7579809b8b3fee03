"""`gitgates review status`: the change, its reviews, and whether the agent may stop now."""

from __future__ import annotations

import time

import click

from gitgates.core.clean import plain_line, utf8
from gitgates.core.errors import OK
from gitgates.core.types import Verdict
from gitgates.drivers.breaker import BLOCKED, BREAKER, PASSED
from gitgates.drivers.caller import ago
from gitgates.features.review import policy as review
from gitgates.features.review import text as review_text
from gitgates.features.review.change import MOST_MARKERS
from gitgates.features.review.cli_session import ReviewSession, verb
from gitgates.features.review.config import GATE, settings_of
from gitgates.features.review.end import OFF, ReviewRuling
from gitgates.features.review.facts import CLAIM, COMPLETE, SKIP
from gitgates.features.review.text import describe_evidence
from gitgates.features.review.weakened import weakened_lines
from gitgates.verbs.output import format_option, print_json, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.agent_types import WorktreeState
    from gitgates.features.review.change import MarkerStatus, SessionChange
    from gitgates.features.review.facts import Marker
    from gitgates.features.review.significance import Significance, Weighed
    from gitgates.features.review.weakened import Weakening

VERSION = 1
_LONGEST = 300
_UNCHANGED = ReviewRuling(PASSED)
_MISSING = {
    review_text.NOT_REVIEWED: "nothing shows that this change was reviewed",
    review_text.NO_DECISION: "the reviewer has not decided on it",
    review_text.STALE: "the reviewer decided on older content",
    review_text.OPEN_ISSUES: "the reviewer found issues",
}


@verb("status", "Show what to review, and whether it was reviewed.", reads=True)
@format_option
def status(session: ReviewSession, fmt: str) -> int:
    """Show what to review, whether it was reviewed, and whether the agent may stop now.

    Lists each changed file with its weight and the reason for it, and each review with whether it
    is still valid. A decision that does not come from the reviewer is a claim.
    """
    change, ruling = session.change, _ruling_now(session)
    if fmt == "json":
        print_json(_document(session, change, ruling))
    else:
        click.echo("".join(f"{line}\n" for line in _lines(session, change, ruling)), nl=False)
    return OK


def _ruling_now(session: ReviewSession) -> ReviewRuling:
    """Return the policy's ruling if the agent stopped now."""
    call = session.call
    verdict = review.decide(call, Verdict())
    if GATE not in call.hook.gates:
        is_listed = any(GATE in hook.gates for hook in session.config.hooks)
        reason = f"the hook {call.hook.name} does not list" if is_listed else "no hook lists"
        return ReviewRuling(OFF, why=f"{reason} the gate `{GATE}`")
    unchanged = ReviewRuling(OFF, why=verdict.to_person) if verdict.to_person else _UNCHANGED
    ruling: ReviewRuling = call.explanations.get(GATE, unchanged)
    return ruling


def _lines(session: ReviewSession, change: SessionChange, ruling: ReviewRuling) -> list[str]:
    now, evidence = time.time(), change.evidence
    lines = [
        _row("session", f"{session.caller.session} in {_short(session.repo.root_abs)}"),
        _row("mode", _mode(session, change)),
        _row("change", _verdict(change.weight)),
        *_files(change.weight),
        *_rows("weakened", weakened_lines(change.weakened)),
        *_rows("reviews", [_standing(status, now) for status in change.standings]),
    ]
    if (older := len(evidence.markers) - MOST_MARKERS) > 0:
        lines.append(f"  and {older} older ones, not shown")
    decisions = [_decision(marker, change, now) for marker in reversed(evidence.decisions)]
    lines += _rows("decisions", decisions)
    lines.append(_row("at a stop", _at_a_stop(change, ruling)))
    return lines + [_row("note", _short(note)) for note in change.notes]


def _row(name: str, text: str) -> str:
    return f"{name + ':':<11} {text}"


def _rows(name: str, texts: list[str]) -> list[str]:
    return [_row(name, "" if texts else "none").rstrip(), *(f"  {text}" for text in texts)]


def _short(text: str) -> str:
    return plain_line(text, _LONGEST)


def _mode(session: ReviewSession, change: SessionChange) -> str:
    settings = settings_of(session.config)
    if not change.is_strict:
        return settings.mode
    by = ", requested by a prompt" if session.evidence.strict else ""
    return f"{settings.mode}; only COMPLETE from `{plain_line(settings.reviewer)}` counts{by}"


def _verdict(weight: Significance) -> str:
    if not weight.counts:
        return "nothing that counts"
    return f"{'' if weight.significant else 'not '}significant: {_short(weight.why)}"


def _files(weight: Significance) -> list[str]:
    rows: list[tuple[str, ...]] = [("lines", "files", "added", "removed", "path", "why")]
    for file in weight.files:
        numbers = f"{file.lines:g}", f"{file.files:g}", f"+{file.added}", f"-{file.removed}"
        rows.append((*numbers, _short(file.path), plain_line(file.why)))
    listing = table(rows, right=(0, 1, 2, 3)) if weight.files else ""
    return [f"  {line}" for line in listing.splitlines()]


def _standing(status: MarkerStatus, now: float) -> str:
    how = describe_evidence(status.marker.how, status.marker.name)
    who = ", by a person" if status.marker.by_person else ""
    word = "holds" if status.holds else "no longer valid"
    return f"{how}{who}, {ago(status.marker.point.stamp, now)}: {word}: {_short(status.why)}"


def _decision(marker: Marker, change: SessionChange, now: float) -> str:
    if marker.how == CLAIM:
        what = "an unverified claim, which does not count"
    elif marker is not change.decision:
        what = "by a reviewer, superseded"
    else:
        validity = "still valid" if change.decision_holds else "on older content"
        what = f"by the reviewer, {validity}"
    return f"{plain_line(marker.name)}, {ago(marker.point.stamp, now)}: {what}"


def _at_a_stop(change: SessionChange, ruling: ReviewRuling) -> str:
    match ruling.outcome:
        case outcome if outcome == BLOCKED:
            return f"the agent would be blocked from stopping: {_MISSING[ruling.why]}"
        case outcome if outcome == BREAKER:
            return f"the agent would be allowed to stop {ruling.how}"
        case outcome if outcome == OFF:
            return f"the agent may stop: {ruling.why}"
    return f"the agent may stop: {_why_it_may(change)}"


def _why_it_may(change: SessionChange) -> str:
    if not change.is_wanted:
        return "nothing relevant has changed" if change.is_strict else "no review is needed"
    if not change.is_reviewed:
        return "a review was requested in an earlier prompt"
    last = change.decision
    if change.is_strict and last and last.name == COMPLETE and change.decision_holds:
        return "the reviewer said COMPLETE"
    if all(status.marker.how == SKIP for status in change.standings if status.holds):
        return "this change was recorded as needing no review"
    return "the change was reviewed"


def _document(
    session: ReviewSession, change: SessionChange, ruling: ReviewRuling
) -> dict[str, Any]:
    """Return the status as plain data. Field names are part of the interface."""
    weight, settings = change.weight, settings_of(session.config)
    return {
        "version": VERSION,
        "session": session.caller.session,
        "root": utf8(session.repo.root_abs),
        "mode": settings.mode,
        "strict": change.is_strict,
        "strict_by_prompt": session.evidence.strict,
        "reviewer": settings.reviewer,
        "base": {**_point(change.base), "known": not change.began_note},
        "now": {"tree": change.now.tree, "head": change.now.head},
        "change": {
            "significant": weight.significant,
            "counts": weight.counts,
            "lines": weight.lines,
            "files": weight.file_count,
            "min_lines": weight.min_lines,
            "min_files": weight.min_files,
            "why": utf8(weight.why),
            "paths": [{**_plain(file), "counts": file.counts} for file in weight.files],
        },
        "weakened": [_plain(finding) for finding in change.weakened],
        "reviews": [
            {
                **_marker(status.marker),
                "name": utf8(status.marker.name),
                "by_person": status.marker.by_person,
                "holds": status.holds,
                "why": utf8(status.why),
            }
            for status in change.standings
        ],
        "older_reviews": max(0, len(change.evidence.markers) - MOST_MARKERS),
        "decisions": [
            {
                **_marker(marker),
                "decision": marker.name,
                "counts": marker.how != CLAIM,
                "holds": change.decision_holds if marker is change.decision else None,
            }
            for marker in reversed(change.evidence.decisions)
        ],
        "at_stop": ruling._asdict(),
        "notes": [utf8(note) for note in change.notes],
    }


def _plain(record: Weighed | Weakening) -> dict[str, Any]:
    fields = record._asdict().items()
    return {name: utf8(value) if isinstance(value, str) else value for name, value in fields}


def _marker(marker: Marker) -> dict[str, Any]:
    point = _point(marker.point)
    return {"how": marker.how, "agent": marker.agent, "message": marker.message, **point}


def _point(point: WorktreeState) -> dict[str, Any]:
    return {"tree": point.tree, "head": point.head, "time": point.stamp}
