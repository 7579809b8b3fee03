"""`gitgates review status`: what there is to review, and whether it was."""

from __future__ import annotations

import time

import click

from gitgates import environ
from gitgates.caller import ago
from gitgates.clean import plain_line, utf8
from gitgates.cli.output import format_option, print_json, table
from gitgates.cli.review_session import ReviewSession, verb
from gitgates.errors import OK, GitError
from gitgates.lifecycle import ENDING_HOOKS
from gitgates.policies import review_text
from gitgates.policies.breaker import BLOCKED, BREAKER
from gitgates.policies.change import Survey, still_holds, survey
from gitgates.policies.evidence import SKIP, Evidence, Marker, Standing
from gitgates.policies.review_config import GATE
from gitgates.policies.review_end import NOT_ACTED, judge_now
from gitgates.policies.review_text import how_it_came
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.agent_types import Point
    from gitgates.policies.evidence import ReviewDecision
    from gitgates.policies.review_end import ReviewRuling
    from gitgates.policies.significance import Significance, Weighed
    from gitgates.types import Config

VERSION = 1
_MOST_SHOWN = 3  # markers, as many as are looked at when the agent stops
_LONGEST_PATH = 300
_MISSING = {
    review_text.NOT_REVIEWED: "nothing shows that this change was reviewed",
    review_text.NO_DECISION: "the reviewer has not decided on it",
    review_text.STALE: "the reviewer decided on older content",
    review_text.OPEN_ISSUES: "the reviewer found issues",
}


class Status(Record):
    """All that `gitgates review status` tells."""

    session: str
    root_abs: str
    mode: str
    strict: bool
    by_prompt: bool  # a prompt has asked for the strict form
    reviewer: str
    base: Point
    base_is_known: bool
    now: Point
    change: Significance
    ruling: ReviewRuling
    not_asked: str = ""  # why nobody asks for a review at all
    standings: tuple[Standing, ...] = ()  # of the newest markers, the newest first
    older: int = 0  # markers that are not looked at any more
    decisions: tuple[ReviewDecision, ...] = ()  # the newest first
    decision_holds: bool = False  # the newest one that counts
    notes: tuple[str, ...] = ()


@verb("status", "Show what there is to review, and whether it was.", reads=True)
@format_option
def status(session: ReviewSession, fmt: str) -> int:
    """Show what there is to review, whether it was, and what becomes of a stop now.

    Each file of the change has its weight and the reason for it; each review, whether it still
    holds. A decision that does not come from the reviewer is a claim.
    """
    found = _status(session)
    if fmt == "json":
        print_json(status_document(found))
    else:
        click.echo(status_text(found), nl=False)
    return OK


def _status(session: ReviewSession) -> Status:
    call = session.call
    found = survey(call)
    scene, review, evidence = found.scene, session.config.review, session.caller.evidence
    decided = judge_now(call, found)
    newest = tuple(reversed(evidence.markers))
    return Status(
        session=session.caller.session,
        root_abs=session.repo.root_abs,
        mode=review.mode,
        strict=found.strict,
        by_prompt=session.caller.session_evidence.strict,
        reviewer=review.reviewer,
        base=scene.base,
        base_is_known=not found.began_note,
        now=scene.now,
        change=decided.found.change,
        ruling=decided.ruling,
        not_asked=_not_asked(session.config, strict=found.strict),
        standings=tuple(_standing(found, one) for one in newest[:_MOST_SHOWN]),
        older=max(0, len(newest) - _MOST_SHOWN),
        decisions=tuple(reversed(evidence.decisions)),
        decision_holds=_last_holds(found, evidence),
        notes=found.notes,
    )


def _standing(found: Survey, marker: Marker) -> Standing:
    try:
        holds, why = still_holds(found.scene, marker.point, marker.patch, strict=found.strict)
    except GitError as error:
        holds, why = False, f"it cannot be compared: {error.message}"
    return Standing(marker, holds, why)


def _last_holds(found: Survey, evidence: Evidence) -> bool:
    """Return whether the reviewer's last decision is of what is there now."""
    counted = [one for one in evidence.decisions if one.counts]
    if not counted:
        return False
    try:
        return still_holds(found.scene, counted[-1].point, counted[-1].patch, strict=True)[0]
    except GitError:
        return False


def _not_asked(config: Config, *, strict: bool) -> str:
    """Return why nobody asks for a review; empty if the gate does."""
    if not any(GATE in hook.gates for hook in config.hooks if hook.name in ENDING_HOOKS):
        return "no hook lists the gate `review`"
    skips = environ.skipped_gates(environ.read())
    if GATE in skips and not config.review.required:
        return f"{skips[GATE]} skips it here"
    return "the mode is off" if config.review.mode == "off" and not strict else ""


def status_text(status: Status) -> str:
    """Return it as lines."""
    now = time.time()
    lines = [
        _row("session", f"{status.session} in {plain_line(status.root_abs, _LONGEST_PATH)}"),
        _row("mode", _mode(status)),
        _row("change", _verdict(status)),
        *_files(status.change.files),
        *_rows("reviews", [_standing_text(one, now) for one in status.standings]),
    ]
    if status.older:
        lines.append(f"  and {status.older} older, which are not looked at")
    lines += _rows("decisions", [_decision(one, status, now) for one in status.decisions])
    lines.append(_row("at a stop", _at_a_stop(status)))
    lines += [_row("note", plain_line(note, _LONGEST_PATH)) for note in status.notes]
    return "".join(f"{line}\n" for line in lines)


def _row(name: str, text: str) -> str:
    return f"{name + ':':<11} {text}"


def _rows(name: str, texts: list[str]) -> list[str]:
    return [_row(name, "" if texts else "none").rstrip(), *(f"  {text}" for text in texts)]


def _mode(status: Status) -> str:
    if not status.strict:
        return status.mode
    by = ", as a prompt has asked" if status.by_prompt else ""
    return f"{status.mode}; only COMPLETE of `{plain_line(status.reviewer)}` counts{by}"


def _verdict(status: Status) -> str:
    change = status.change
    if not change.counts:
        return "nothing that counts"
    word = "significant" if change.significant else "not significant"
    return f"{word}: {plain_line(change.why, _LONGEST_PATH)}"


def _files(files: tuple[Weighed, ...]) -> list[str]:
    rows: list[tuple[str, ...]] = [
        (
            _number(one.lines),
            _number(one.files),
            f"+{one.added}",
            f"-{one.removed}",
            _path(one.path),
            plain_line(one.why),
        )
        for one in files
    ]
    if rows:
        rows = [("lines", "files", "added", "removed", "path", "why"), *rows]
    return [f"  {line}" for line in table(rows, right=(0, 1, 2, 3)).splitlines()]


def _number(value: float) -> str:
    return f"{value:g}"


def _path(path: str) -> str:
    return plain_line(path, _LONGEST_PATH)


def _standing_text(one: Standing, now: float) -> str:
    how = how_it_came(one.marker.how, one.marker.name)
    who = ", by a person" if one.marker.by_person else ""
    word = "holds" if one.holds else "holds no more"
    why = plain_line(one.why, _LONGEST_PATH)
    return f"{how}{who}, {ago(one.marker.point.stamp, now)}: {word}: {why}"


def _decision(one: ReviewDecision, status: Status, now: float) -> str:
    when = ago(one.point.stamp, now)
    if not one.counts:
        return f"{plain_line(one.decision)}, {when}: a claim, which does not count"
    counted = next(decided for decided in status.decisions if decided.counts)
    if one is not counted:
        return f"{plain_line(one.decision)}, {when}: of a reviewer, and not the last one"
    word = "still of this change" if status.decision_holds else "of older content"
    return f"{plain_line(one.decision)}, {when}: of the reviewer, {word}"


def _at_a_stop(status: Status) -> str:
    if status.not_asked:
        return f"the agent may stop: {status.not_asked}"
    match status.ruling.outcome:
        case outcome if outcome == BLOCKED:
            why = _MISSING.get(status.ruling.why, status.ruling.why)
            return f"the agent would be kept from stopping: {why}"
        case outcome if outcome == BREAKER:
            return f"the agent would be let go {status.ruling.how}"
        case _:
            return f"the agent may stop: {_why_it_may(status)}"


def _why_it_may(status: Status) -> str:
    match status.ruling.why:
        case why if why == NOT_ACTED:
            return "it has used no tool that may have changed anything"
    wanted = status.change.counts if status.strict else status.change.significant
    if not wanted:
        return "nothing that counts has changed" if status.strict else "no review is needed"
    holding = [one.marker for one in status.standings if one.holds]
    if status.strict and status.decision_holds:
        return "the reviewer said COMPLETE"
    if holding and all(one.how == SKIP for one in holding):
        return "it was said that this change needs no review"
    return "the change was reviewed" if holding else "this was asked about in an earlier prompt"


def status_document(status: Status) -> dict[str, Any]:
    """Return it as plain data. Field names are part of the interface."""
    change = status.change
    outcome = "off" if status.not_asked else status.ruling.outcome
    return {
        "version": VERSION,
        "session": status.session,
        "root": utf8(status.root_abs),
        "mode": status.mode,
        "strict": status.strict,
        "strict_by_prompt": status.by_prompt,
        "reviewer": status.reviewer,
        "base": {**_point(status.base), "known": status.base_is_known},
        "now": {"tree": status.now.tree, "head": status.now.head},
        "change": {
            "significant": change.significant,
            "counts": change.counts,
            "lines": change.lines,
            "files": change.file_count,
            "min_lines": change.min_lines,
            "min_files": change.min_files,
            "why": utf8(change.why),
            "paths": [_weighed(one) for one in change.files],
        },
        "reviews": [_standing_fields(one) for one in status.standings],
        "older_reviews": status.older,
        "decisions": [_decision_fields(one, status) for one in status.decisions],
        "at_stop": {
            "outcome": outcome,
            "why": status.not_asked or status.ruling.why,
            "how": status.ruling.how,
        },
        "notes": [utf8(note) for note in status.notes],
    }


def _weighed(one: Weighed) -> dict[str, Any]:
    fields = one._asdict()
    return {**fields, "path": utf8(one.path), "why": utf8(one.why), "counts": one.counts}


def _standing_fields(one: Standing) -> dict[str, Any]:
    marker = one.marker
    return {
        "how": marker.how,
        "name": utf8(marker.name),
        "agent": marker.agent,
        "by_person": marker.by_person,
        "message": marker.message,
        **_point(marker.point),
        "holds": one.holds,
        "why": utf8(one.why),
    }


def _decision_fields(one: ReviewDecision, status: Status) -> dict[str, Any]:
    last = next((decided for decided in status.decisions if decided.counts), None)
    return {
        "decision": one.decision,
        "counts": one.counts,
        "agent": one.agent,
        "message": one.message,
        **_point(one.point),
        "holds": status.decision_holds if one is last else None,
    }


def _point(point: Point) -> dict[str, Any]:
    return {"tree": point.tree, "head": point.head, "time": point.stamp}
