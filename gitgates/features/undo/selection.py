"""Which points an undo is about."""

from __future__ import annotations

from gitgates.core.errors import UsageError
from gitgates.core.record import Record
from gitgates.features.undo.points import AGENT, OTHERS, UNDO
from gitgates.features.undo.undoing import undoable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.undo.points import SavePoint


class Selection(Record):
    """What a command line asks for; empty: nothing."""

    id: int = 0
    prompt: int = 0
    last: bool = False
    session: str = ""  # a prefix is enough
    agent: str = ""

    def __bool__(self) -> bool:
        return self != Selection()


def selected(points: list[SavePoint], selection: Selection) -> list[SavePoint]:
    """Return the points to undo, the oldest first.

    From a point or a prompt on, all that its session has changed since. A point of somebody else
    is undone alone, and only by its id.

    Raises: UsageError where there is none.
    """
    if selection.id:
        return _since_id(points, selection.id)
    of_agents = [point for point in undoable(points) if point.author.by == AGENT]
    found = [
        point
        for point in of_agents
        if point.author.session.startswith(selection.session)
        and selection.agent in ("", point.author.agent)
    ]
    if not found:
        whose = " of that session or agent" if selection.session or selection.agent else ""
        raise UsageError(f"there is nothing to undo{whose}", "For a list, see: gitgates undo")
    session = found[-1].author.session
    if len({point.author.session for point in found}) > 1 and selection.session:
        names = ", ".join(sorted({point.author.session for point in found}))
        raise UsageError(f"--session {selection.session} means several: {names}", "Write it whole.")
    if selection.last:
        return found[-1:]
    found = [point for point in found if point.author.session == session]
    if selection.prompt:
        numbers = sorted({point.author.prompt for point in found})
        found = [point for point in found if point.author.prompt >= selection.prompt]
        if selection.prompt not in numbers:
            known = ", ".join(map(str, numbers))
            what = f"prompt {selection.prompt} of session {session} has changed nothing"
            raise UsageError(what, f"These have: {known}")
    return found


def last_undo(points: list[SavePoint]) -> list[SavePoint]:
    """Return the last undo that was not undone itself, as a list.

    Raises: UsageError where there is none.
    """
    undos = [
        point
        for point in undoable(points)
        if point.author.by == UNDO and not _is_redo(point, points)
    ]
    if not undos:
        raise UsageError("there is no undo to redo", "For a list, see: gitgates undo")
    return undos[-1:]


def _is_redo(point: SavePoint, points: list[SavePoint]) -> bool:
    undone = {*point.author.undoes}
    return any(each.id in undone and each.author.by == UNDO for each in points)


def _since_id(points: list[SavePoint], point_id: int) -> list[SavePoint]:
    by_id = {point.id: point for point in points}
    if not (first := by_id.get(point_id)):
        raise UsageError(f"there is no save point {point_id}", "For a list, see: gitgates undo")
    if first.author.by == OTHERS:
        return [first]
    can = undoable(points)
    if first not in can:
        raise UsageError(f"save point {point_id} is undone already", "To undo that: gitgates redo")
    if first.author.by == UNDO:
        return [first]
    return [
        point
        for point in can
        if point.id >= point_id
        and point.author.by == AGENT
        and point.author.session == first.author.session
    ]
