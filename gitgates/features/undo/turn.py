"""The turn of the agent that calls: what it may undo without a person."""

from __future__ import annotations

from gitgates.core.record import Record
from gitgates.features.undo.moments import session_of
from gitgates.session.caller import identify
from gitgates.session.facts import SESSION
from gitgates.store.log import file_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.files.points import Point
    from gitgates.git.repo import Repo


class OwnTurn(Record):
    """A session, and the number of its prompt."""

    session: str
    prompt: int

    def has(self, point: Point) -> bool:
        """Return whether a point is a change of this turn."""
        return (file_name(session_of(point)), point.facts.prompt) == (self.session, self.prompt)


def current_turn(repo: Repo, nonce: str) -> OwnTurn | None:
    """Return the turn of the caller, by what the command was given before it ran; None: unknown.

    Raises: UsageError, StateError as `identify`.
    """
    caller = identify(repo, repo.env, nonce=nonce)
    if caller is None:
        return None
    prompt = SESSION.fold(caller.facts[0]).prompt
    return OwnTurn(session=caller.session, prompt=int(prompt) if prompt.isdecimal() else 0)
