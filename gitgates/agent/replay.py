"""One event, one answer: the second delivery of an event repeats the answer of the first.

An event is delivered twice where it is installed twice: by settings and by a plugin, or by two
hosts. Each delivery waits for its turn. What has an id of its own (a tool call, a prompt) is known
by it for ever. A stop has none: it is the same one where the first delivery was answered while this
one was waiting already, or where nothing has happened since and no hook has blocked before.
"""

from __future__ import annotations

import errno

from gitgates.agent.place import end_within
from gitgates.agent.telling import event_key
from gitgates.errors import LockError
from gitgates.hosts import agent_host
from gitgates.lifecycle import ENDINGS
from gitgates.policies.session import fold
from gitgates.store.log import EventLock
from gitgates.types import BLOCK, Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.agent.place import Place
    from gitgates.policies.session import Fact, Round, Session

_TWICE = 2
_ANSWER_S = 2.0  # before the host loses patience


class Turns:
    """The turn of one delivery, as a context: others of the same event wait until it is over."""

    def __init__(self, place: Place, longest_s: float) -> None:
        self._place = place
        self._longest_s = max(longest_s - _ANSWER_S, 1.0)
        self._key = event_key(place.payload)
        self._lock = EventLock(place.journal, self._key)

    def __enter__(self) -> Turns:
        end_within(self._place, self._longest_s + _ANSWER_S)
        if not self._lock.acquire(self._longest_s):
            raise LockError("the same event is still being handled by another hook")
        return self

    def __exit__(self, *exc: object) -> None:
        self._lock.release()

    def given(self, last_before: str, tree: str = "") -> Answer | None:
        """Return the answer that this event has got already; None where it has none.

        `last_before` is the key of the event that came before this delivery, `tree` what is there
        now (empty: not known for certain).
        """
        session = self.session()  # the first delivery may have just ended
        rounds = [one for one in session.rounds if one.key == self._key]
        if rounds and self._is_same(rounds[-1], session, (last_before, tree)):
            return Answer(as_before=rounds[-1].answer)
        return None

    def session(self) -> Session:
        """Return the session as it is now that the turn has come."""
        return fold(self._place.journal.read())

    def keep(self, answer: Answer, fact: Fact, more: tuple[Fact, ...] = ()) -> None:
        """Note the answer, for later rounds and for the second delivery, and what follows.

        Raises: OSError where that is not possible: a block that nobody counts has no end.
        """
        if answer.verdict == BLOCK and self._place.payload.kind in ENDINGS:
            self._must_be_counted()
        payload = self._place.payload
        said = agent_host(payload.host).encode(payload, answer).decode("ascii")
        round_ = {"what": "round", "key": self._key, "answer": said, **fact}
        self._place.journal.append(round_, *more)

    def _must_be_counted(self) -> None:
        """See to it that the journal is the one of before, which a gate may have taken away."""
        journal = self._place.journal
        if self._key not in dict(fold(journal.read()).deliveries):
            raise FileNotFoundError(
                errno.ENOENT, "it was taken away while gates ran", journal.path_abs
            )

    def _is_same(self, one: Round, session: Session, now: tuple[str, str]) -> bool:
        payload = self._place.payload
        is_prompt = payload.kind in ("prompt", "prompt-expansion")
        has_own_id = payload.tool_use_id or (is_prompt and payload.prompt_id)
        if has_own_id or one.stamp >= self._place.began:
            return True
        times = dict(session.deliveries).get(self._key, 0)
        nothing_happened = now == (self._key, one.tree) and bool(one.tree)
        return not payload.again and nothing_happened and times == _TWICE
