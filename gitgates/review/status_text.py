"""What there is to review, and whether it was: for people, and as plain data. Cold and pure."""

from __future__ import annotations

import time

from gitgates.clean import plain_line, utf8, visible
from gitgates.policies import asking
from gitgates.policies.evidence import SKIP
from gitgates.policies.retry import BLOCKED, BREAKER
from gitgates.policies.review_text import how_it_came
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.agent_types import Point
    from gitgates.policies.asking import Ruling, Standing
    from gitgates.policies.evidence import Decision
    from gitgates.policies.significance import Significance, Weighed

VERSION = 1
_NAMED = 4  # files that are left out, of each kind
_LONGEST_PATH = 300
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400
_INDENT = "    "
_MISSING = {
    asking.NOT_REVIEWED: "nothing shows that this change was reviewed",
    asking.NO_DECISION: "the reviewer has not decided on it",
    asking.STALE: "the reviewer decided on older content",
    asking.OPEN_ISSUES: "the reviewer found issues",
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
    ruling: Ruling
    not_asked: str = ""  # why nobody asks for a review at all
    standings: tuple[Standing, ...] = ()  # of the newest markers, the newest first
    older: int = 0  # markers that are not looked at any more
    decisions: tuple[Decision, ...] = ()  # the newest first
    decision_holds: bool = False  # the newest one that counts
    notes: tuple[str, ...] = ()


def ago(stamp: float, now: float) -> str:
    """Return how long ago something was."""
    gone_s = now - stamp
    for unit_s, name in ((_DAY_S, "day"), (_HOUR_S, "hour"), (_MINUTE_S, "minute")):
        if gone_s >= unit_s:
            number = int(gone_s // unit_s)
            return f"{number} {name}{'' if number == 1 else 's'} ago"
    return "just now"


def status_text(status: Status) -> str:
    """Return it as lines."""
    now = time.time()
    lines = [
        _row("session", f"{status.session} in {plain_line(status.root_abs, _LONGEST_PATH)}"),
        _row("mode", _mode(status)),
        _row("change", _verdict(status)),
        *_files(status.change.files),
        *_rows("reviews", [_standing(one, now) for one in status.standings]),
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
    rows = [
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
    if not rows:
        return []
    rows = [("lines", "files", "added", "removed", "path", "why"), *rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  "
        + "  ".join(
            f"{cell:>{width}}" if at < 4 else f"{cell:<{width}}"  # noqa: PLR2004 - the numbers
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def _number(value: float) -> str:
    return f"{value:g}"


def _path(path: str) -> str:
    return plain_line(path, _LONGEST_PATH)


def _standing(one: Standing, now: float) -> str:
    how = how_it_came(one.marker.how, one.marker.name)
    who = ", by a person" if one.marker.by_person else ""
    word = "holds" if one.holds else "holds no more"
    why = plain_line(one.why, _LONGEST_PATH)
    return f"{how}{who}, {ago(one.marker.point.stamp, now)}: {word}: {why}"


def _decision(one: Decision, status: Status, now: float) -> str:
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
        case why if why == asking.NOT_ACTED:
            return "it has used no tool that may have changed anything"
        case why if why == asking.IN_TRANSCRIPT:
            return "the host's transcript tells of a review"
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


def _decision_fields(one: Decision, status: Status) -> dict[str, Any]:
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


def requests_text(requests: tuple[str, ...]) -> str:
    """Return prompts, numbered, word for word; each line is set in, so that none can pose."""
    parts = []
    for number, text in enumerate(requests, 1):
        lines = visible(text).splitlines() or [""]
        said = "".join(f"{_INDENT}{line}".rstrip() + "\n" for line in lines)
        parts.append(f"Request {number} of {len(requests)}:\n{said}")
    return "\n".join(parts)


def left_out_text(whys: tuple[tuple[str, str], ...]) -> str:
    """Return which files are left out of a diff, and why, on one line; empty where none is."""
    if not whys:
        return ""
    by_why: dict[str, list[str]] = {}
    for path, why in whys:
        by_why.setdefault(why.removeprefix("left out: "), []).append(_path(path))
    parts = []
    for why, paths in by_why.items():
        more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
        parts.append(f"{', '.join(paths[:_NAMED])}{more} ({plain_line(why)})")
    return f"left out: {'; '.join(parts)}. Shown with --all"
