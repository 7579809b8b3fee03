"""Which points an undo is about, and which of them belong to the calling agent's turn."""

from __future__ import annotations

from gitgates.core.errors import UsageError
from gitgates.core.record import Record
from gitgates.features.undo.moments import agent_of, is_agents, session_of, undoable
from gitgates.files.points import PERSON, UNDO
from gitgates.session import facts
from gitgates.session.caller import identify
from gitgates.store.log import file_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.files.points import Point
    from gitgates.git.repo import Repo


class Selection(Record):
    """What a command line asks for; empty: nothing."""

    id: int = 0
    prompt: int = 0
    last: bool = False
    session: str = ""  # a prefix is enough
    agent: str = ""

    def __bool__(self) -> bool:
        return self != Selection()


def selected(points: list[Point], selection: Selection) -> list[Point]:
    """Return the points to undo, the oldest first.

    From a point or a prompt on, these are all changes by its session since. Somebody else's point
    is undone alone, and only by its id.

    Raises: UsageError if there is none.
    """
    if selection.id:
        return _since_id(points, selection.id)
    found = [
        point
        for point in filter(is_agents, undoable(points))
        if session_of(point).startswith(selection.session)
        and selection.agent in ("", agent_of(point))
    ]
    if not found:
        whose = " of that session or agent" if selection.session or selection.agent else ""
        raise UsageError(f"there is nothing to undo{whose}", "For a list, see: gitgates undo")
    session = session_of(found[-1])
    if len(set(map(session_of, found))) > 1 and selection.session:
        names = ", ".join(sorted(set(map(session_of, found))))
        raise UsageError(f"--session {selection.session} means several: {names}", "Write it whole.")
    if selection.last:
        return found[-1:]
    found = [point for point in found if session_of(point) == session]
    if selection.prompt:
        numbers = sorted({point.facts.prompt for point in found})
        found = [point for point in found if point.facts.prompt >= selection.prompt]
        if selection.prompt not in numbers:
            known = ", ".join(map(str, numbers))
            what = f"prompt {selection.prompt} of session {session} has changed nothing"
            raise UsageError(what, f"These have: {known}")
    return found


def last_undo(points: list[Point]) -> list[Point]:
    """Return the last undo that was not undone itself, as a list.

    Raises: UsageError if there is none.
    """
    undos = [
        point
        for point in undoable(points)
        if point.author.kind == UNDO and not _is_redo(point, points)
    ]
    if not undos:
        raise UsageError("there is no undo to redo", "For a list, see: gitgates undo")
    return undos[-1:]


def _is_redo(point: Point, points: list[Point]) -> bool:
    undone = {*point.facts.undoes}
    return any(each.number in undone and each.author.kind == UNDO for each in points)


def _since_id(points: list[Point], point_id: int) -> list[Point]:
    by_id = {point.number: point for point in points}
    if not (first := by_id.get(point_id)):
        raise UsageError(f"there is no save point {point_id}", "For a list, see: gitgates undo")
    if first.author.kind == PERSON:
        return [first]
    can = undoable(points)
    if first not in can:
        raise UsageError(f"save point {point_id} is undone already", "To undo that: gitgates redo")
    if first.author.kind == UNDO:
        return [first]
    return [
        point
        for point in can
        if point.number >= point_id and is_agents(point) and session_of(point) == session_of(first)
    ]


class OwnTurn(Record):
    """A session, and the number of its prompt."""

    session: str
    prompt: int

    def has(self, point: Point) -> bool:
        """Return whether a point is a change of this turn."""
        return (file_name(session_of(point)), point.facts.prompt) == (self.session, self.prompt)


def current_turn(repo: Repo, nonce: str) -> OwnTurn | None:
    """Return the caller's turn, by what the command was given before it ran; None: unknown.

    Raises: UsageError, StateError as `identify`.
    """
    caller = identify(repo, repo.env, nonce=nonce)
    if caller is None:
        return None
    prompt = facts.SESSION.fold(caller.facts[0]).prompt
    return OwnTurn(session=caller.session, prompt=int(prompt) if prompt.isdecimal() else 0)
