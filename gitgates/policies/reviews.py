"""What is known of a session's reviews: records, and what they mean together. Pure."""

from __future__ import annotations

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.types import Point, Review

GATE = "review"
COMPLETE = "COMPLETE"
ISSUES = "ISSUES"
SKIP = "skip"  # how a marker came about: somebody says that no review is needed


class Marker(Record):
    """Evidence that a review ran, and what it saw."""

    how: str  # skill, command, agent, findings, done, transcript, skip, decision
    point: Point
    name: str = ""  # of the skill, the command, the agent
    patch: str = ""  # `git patch-id --stable` of the change that it saw; empty: not known
    agent: str = ""  # the sub-agent's id; empty: the main thread
    message: str = ""  # the id of the message that says more
    by_person: bool = False


class Decision(Record):
    """What was posted as a reviewer's decision."""

    decision: str  # COMPLETE, ISSUES
    point: Point
    counts: bool  # False: not the reviewer's own, so that it is a claim and no more
    patch: str = ""
    agent: str = ""
    message: str = ""


class Token(Record):
    """What a reviewer was handed; the journal holds only its digest."""

    agent: str
    digest: str
    used: bool = False


class Seen(Record):
    """A shell command that an agent was about to run."""

    id: str
    agent: str
    agent_type: str
    text: str
    stamp: float
    over: bool = False  # the agent has ended its turn since


class Quiet(Record):
    """A time in which the session can have written no other files than those that are named."""

    began: float
    ended: float
    before: str  # the tree then
    after: str
    own: tuple[str, ...] = ()  # files that its own tools wrote


class Evidence(Record):
    """What is known of a session's reviews."""

    base: Point | None = None
    base_note: str = ""  # what it stands in for, where the beginning was not heard of
    requests: tuple[str, ...] = ()  # the person's prompts, word for word
    strict: bool = False  # asked for by a prompt
    strict_stamp: float = 0.0  # when it was asked for or ended; 0: never
    markers: tuple[Marker, ...] = ()
    decisions: tuple[Decision, ...] = ()
    began: tuple[tuple[str, Point], ...] = ()  # agent → what it saw when it started
    tokens: tuple[Token, ...] = ()
    commands: tuple[Seen, ...] = ()
    blocks: tuple[tuple[str, int], ...] = ()  # prompt → since the last marker or decision
    undecided: int = 0  # blocks of the strict form while nothing was ever decided
    sent_back: tuple[tuple[str, int], ...] = ()  # reviewer's id → ends without a decision
    asked: tuple[tuple[str, str, str], ...] = ()  # prompt, tree, outcome of each look at a stop
    quiet: tuple[Quiet, ...] = ()
    point: Point | None = None  # the last snapshot
    acted: bool = False  # a tool was used that may have written
    reported: frozenset[str] = frozenset()  # messages that the person has been told of
    transcript_abs: str = ""  # of the host, as the last prompt named it

    def joined(self, other: Evidence) -> Evidence:
        """Return this evidence with the reviews that were told of in another worktree.

        Content is the same wherever it lies, so that a review of it holds everywhere.
        """
        markers = sorted((*self.markers, *other.markers), key=lambda one: one.point.stamp)
        decisions = sorted((*self.decisions, *other.decisions), key=lambda one: one.point.stamp)
        acted = self.acted or other.acted
        return self._replace(markers=tuple(markers), decisions=tuple(decisions), acted=acted)


def is_strict(review: Review, worktrees: Iterable[Evidence]) -> bool:
    """Tell whether only the reviewer's COMPLETE counts: by configuration, or as prompts asked last.

    A prompt asks in each worktree that the session comes to, whichever heard of it.
    """
    newest = max(worktrees, key=lambda one: one.strict_stamp, default=Evidence())
    return review.mode == "require" or newest.strict
