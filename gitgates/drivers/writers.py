"""Find what a session itself has changed, and what somebody else has, by the points since it began.

Changes between the two points of a call belong to its session, whatever has made them; and so do
those in its sub-agents' calls. Changes between calls belong to somebody else, and a gate's changes
to the gate. If there are no tool events, or not for each tool that may write, everything counts as
the session's.
"""

from __future__ import annotations

import time

from gitgates.core.lifecycle import ENDINGS, kind_of
from gitgates.drivers import recorder
from gitgates.files.points import GATE, PERSON, SESSION, Point, points_since
from gitgates.journal.entries import TIMELINE, EventEntry
from gitgates.journal.journal import of_kind, stamp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitgates.drivers.call import Call
    from gitgates.files.changes import History


def own_history(call: Call) -> History | None:
    """Return what a session itself has changed in a worktree, until now.

    None if that is not known, so that everything that has changed counts as its own.

    Raises: GitError, StateError, TimeOver.
    """
    session = call.payload.session

    def is_own(point: Point) -> bool:
        if call.is_alone:
            return point.author.kind != GATE
        return point.author.kind == SESSION and session in (point.author.name, *point.facts.beside)

    return _history(call, is_own)


def changed_by_others(call: Call) -> tuple[str, ...]:
    """Return the files that only others have changed since the session began, if that is known.

    Raises: GitError, StateError, TimeOver.
    """
    session, history = call.payload.session, own_history(call)
    others = _history(
        call,
        lambda point: (
            point.author.kind == PERSON
            or (point.author.kind == SESSION and point.author.name != session)
        ),
    )
    return (
        tuple(sorted(others.changes().keys() - history.changes().keys()))
        if history and others
        else ()
    )


def _history(call: Call, is_own: Callable[[Point], bool]) -> History | None:
    timeline = call.state(TIMELINE)
    if not timeline.base or timeline.base_note or not _hears_tools(call):
        return None
    points = points_since(call.repo, timeline.base.stamp)
    if not points or _misses_tools(call, points):
        return None
    from gitgates.files.changes import History  # most often, nothing has changed

    began_s = min(
        (stamp_of(facts[0]) for facts in call.elsewhere.values()), default=timeline.base.stamp
    )
    return History(
        *(call.repo, [*points, *_present(call, points[-1])], is_own),
        began_s=min(began_s, timeline.base.stamp),
        ignored=False,
    )


def _hears_tools(call: Call) -> bool:
    """Return whether there are events around tools: not if only the ends of turns have any."""
    if not (call.host.has("after-tool") and call.host.PROTOCOL.tells_edits):
        return False
    events = of_kind(call.entries, EventEntry)
    return any(kind_of(str(fact.get("event"))) not in ENDINGS for fact in events)


def unheard(call: Call) -> str:
    """Return why nobody else's changes are known, if that was asked; empty: they are."""
    return str(vars(call).get("unheard", ""))


def _misses_tools(call: Call, points: list[Point]) -> bool:
    """Return whether what counts as somebody else's may come from tools without events."""
    if "unheard" not in vars(call):
        agent, text = call.host.NAME, ""
        if any(point.author.kind == PERSON for point in points[1:]):
            from gitgates.drivers.installed import hears_writers  # if others seem to work

            if not hears_writers(agent, call.repo.root_abs, call.env):
                text = (
                    f"The hooks of {call.host.TITLE} do not hear of each tool that may "
                    "write, so everything that has changed counts as this session's. A person "
                    f"can mend that: gitgates install-hooks --agent {agent}"
                )
        vars(call)["unheard"] = text
    return bool(unheard(call))


def _present(call: Call, last: Point) -> tuple[Point, ...]:
    """Return what there is now as a point, if none is recorded: a verb asks."""
    now = recorder.observe(call, always=True).look if call.is_dry else None
    if now is None or (now.tree, now.head) == (last.tree, last.head):
        return ()
    author, facts = recorder.writer(call.repo)
    return (
        last._replace(
            id="",
            parent=last.id,
            time_s=time.time(),
            author=author,
            facts=facts,
            tree=now.tree,
            head=now.head,
        ),
    )
