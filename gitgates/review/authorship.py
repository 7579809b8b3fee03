"""Tell which files a session's own tools wrote, as long as it used none that may write any file.

Then whatever else has changed meanwhile, somebody else has changed: the person, or another session.
A shell command, or a tool that is not known, may have written anything.
"""

from __future__ import annotations

import os
import time

from gitgates.policies.reviewer import only_shows
from gitgates.policies.reviews import Quiet
from gitgates.policies.tools import AGENTS, READING, SHELLS, WRITING
from gitgates.review.transcript import Unread, calls_since
from gitgates.store.transcript import length_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gitgates.policies.evidence import Fact
    from gitgates.policies.reviews import Evidence
    from gitgates.types import Point

_POINTS = ("snapshot", "rest")
_TOOL_EVENTS = ("PreToolUse", "PostToolUse")


def own_since(
    journals: Sequence[Sequence[Fact]], transcript_abs: str, root_abs: str, *, hears_all: bool
) -> list[str] | None:
    """Return the files that the session's tools have written since its last snapshot.

    None where they may have written any file, or where that is not known. `journals` are those of
    the session, that of this worktree first; `hears_all` tells whether events tell of all tools.
    """
    point, since = _since_last(journals[0])
    if point is None or point.get("running"):
        return None
    since += [fact for facts in journals[1:] for fact in facts if _stamp(fact) > _stamp(point)]
    events = [fact for fact in since if fact.get("event") in _TOOL_EVENTS]
    # What a sub-agent does is in no transcript of the session, and not every client tells of it.
    tells = hears_all and any(fact.get("agent") for fact in events)
    quiet = (*READING, *WRITING, *(AGENTS if tells else ()))
    if any(fact.get("tool") not in quiet and fact.get("shows") is not True for fact in events):
        return None
    own = {str(fact["path"]) for fact in since if fact.get("what") == "wrote" and "path" in fact}
    start, size = point.get("transcript"), length_of(transcript_abs)
    if not isinstance(start, int) or size < max(start, 0):
        heard = hears_all and any(fact.get("event") in _TOOL_EVENTS for fact in journals[0])
        return sorted(own) if heard else None
    written = _written(transcript_abs, start, root_abs, quiet)
    return None if written is None else sorted(own | written)


def with_open_span(evidence: Evidence, own: list[str] | None, now: Point) -> Evidence:
    """Return evidence that tells apart, too, what others have changed since the last snapshot."""
    point = evidence.point
    if own is None or point is None or not now.tree:
        return evidence
    span = Quiet(
        began=point.stamp, ended=time.time(), before=point.tree, after=now.tree, own=tuple(own)
    )
    return evidence._replace(quiet=(*evidence.quiet, span))


def _since_last(facts: Sequence[Fact]) -> tuple[Fact | None, list[Fact]]:
    """Return the last fact with a snapshot, and those after it."""
    for at in range(len(facts) - 1, -1, -1):
        if facts[at].get("what") in _POINTS and facts[at].get("tree"):
            return facts[at], list(facts[at + 1 :])
    return None, []


def _stamp(fact: Fact) -> float:
    stamp = fact.get("t")
    return float(stamp) if isinstance(stamp, int | float) else 0.0


def _written(
    transcript_abs: str, start: int, root_abs: str, quiet: Iterable[str]
) -> set[str] | None:
    """Return the files that tools wrote since a place of the transcript; None for any file."""
    found: set[str] = set()
    real_abs = os.path.realpath(root_abs)
    try:
        for call in calls_since(transcript_abs, start):
            if call.is_result or (call.name in SHELLS and only_shows(call.command)):
                continue
            if call.name not in quiet or (call.name in WRITING and not os.path.isabs(call.path)):
                return None
            if call.name in WRITING:
                found.add(os.path.relpath(os.path.realpath(call.path), real_abs))
    except Unread:
        return None
    return found
