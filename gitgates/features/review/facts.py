"""Journal entries about reviews, and the evidence folded from them."""

from __future__ import annotations

from gitgates.core.agent_types import WorktreeState
from gitgates.core.record import LazyRecord, Record
from gitgates.features.review.config import GATE, REVIEWER, settings_of
from gitgates.hosts import DEFAULT_AGENT, agent_host
from gitgates.journal.entries import RoundEntry
from gitgates.journal.journal import Projection, entry, is_a, point_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.drivers.call import Call
    from gitgates.journal.journal import Fact


COMPLETE = "COMPLETE"
ISSUES = "ISSUES"
SKIP = "skip"  # a kind of marker: somebody says that no review is needed
DECISION, CLAIM = "decision", "claim"  # by the reviewer; by anybody else, which does not count


@entry("review-on")
class ReviewOnEntry(LazyRecord):
    """A prompt has requested an independent review: the strict form."""


@entry("review-off")
class ReviewOffEntry(LazyRecord):
    """The strict form has ended, by a prompt or by the reviewer's COMPLETE."""

    why: str = ""  # why, unless a prompt ended it


@entry("review-began")
class ReviewBeganEntry(LazyRecord):
    """A reviewing sub-agent has started, and sees this content."""

    agent: str  # the sub-agent's id
    tree: str  # the snapshot
    head: str  # the commit that was checked out


@entry("reviewer-changed")
class ReviewerChangedEntry(LazyRecord):
    """The reviewer's file had changed when it started, so its COMPLETE does not count."""


@entry("token")
class TokenEntry(LazyRecord):
    """A reviewer has received the token that identifies it."""

    agent: str  # the sub-agent's id
    digest: str  # the SHA-256 of the token
    key: str  # identifies the event; empty: it was blocked from stopping


@entry("marker")
class MarkerEntry(LazyRecord):
    """A review ran on this content, or somebody declared that it needs none."""

    how: str  # skill, command, agent, findings, done, skip
    agent: str  # the sub-agent's id; empty: the main agent
    tree: str  # the snapshot
    head: str  # the commit that was checked out
    patch: str  # `git patch-id --stable` of the change; empty: unknown
    name: str = ""  # the name of the skill, command or agent
    prompt_id: str = ""  # the host's id of the prompt
    key: str = ""  # identifies the event
    message: str = ""  # the id of the message with the details
    by_person: bool = False  # whether a person ran the command
    seen: float = 0.0  # the time of that content, if it is older


@entry("decision")
class DecisionEntry(LazyRecord):
    """A decision on this content was posted."""

    decision: str  # COMPLETE or ISSUES
    counts: bool  # whether it comes from the reviewer; otherwise it is a claim
    agent: str  # the sub-agent's id; empty: the main agent
    tree: str  # the snapshot
    head: str  # the commit that was checked out
    patch: str  # as in a marker
    message: str  # the id of the message with the details
    digest: str = ""  # the SHA-256 of the reviewer's token
    seen: float = 0.0  # as in a marker


@entry("reported")
class ReportedEntry(LazyRecord):
    """The person was told of a decision, or of a skipped review."""

    message: str  # the id of the message with the details


@entry("weakened")
class WeakenedEntry(LazyRecord):
    """The agent and the person were told of changes that weaken the checks."""

    found: list[str]  # a digest of each


class Marker(Record):
    """Evidence that a review ran: the content that it saw, and a decision's outcome."""

    how: str  # skill, command, agent, findings, done, skip, decision, claim
    point: WorktreeState
    name: str = ""  # of the skill, command or agent; for a decision: COMPLETE or ISSUES
    patch: str = ""  # `git patch-id --stable` of the change that it saw; empty: unknown
    agent: str = ""  # the sub-agent's id; empty: the main agent
    message: str = ""  # the id of the message with the details
    by_person: bool = False


class Evidence(Record):
    """The evidence of a session's reviews."""

    strict: bool = False  # requested by a prompt
    markers: tuple[Marker, ...] = ()  # including decisions that count
    decisions: tuple[Marker, ...] = ()  # including claims
    # agent → the content when it last started or was sent back
    starting_points: Mapping[str, WorktreeState] = {}
    tokens: Mapping[str, str] = {}  # digest → the agent that received it
    used: frozenset[str] = frozenset()  # digests of tokens that were used for a decision
    blocks: Mapping[str, int] = {}  # prompt → blocks since the last marker or decision
    undecided: int = 0  # blocks of the strict form before any decision
    sent_back: Mapping[str, int] = {}  # reviewer's id → ends without a decision
    rulings: tuple[tuple[str, str, str], ...] = ()  # prompt, tree, outcome of each ruling at a stop
    reported: frozenset[str] = frozenset()  # messages that were reported to the person
    weakened: frozenset[str] = frozenset()  # digests of reported findings that weaken the checks


def _turned(state: Fact, fact: Fact) -> None:
    state["strict"], state["undecided"] = is_a(fact, ReviewOnEntry), 0
    if state["strict"]:
        state["rulings"] = ()  # earlier rulings do not count in the strict form


def _began(state: Fact, fact: Fact) -> None:
    state["starting_points"] = {**state["starting_points"], str(fact["agent"]): point_of(fact)}


def _token(state: Fact, fact: Fact) -> None:
    state["tokens"] = {**state["tokens"], str(fact["digest"]): str(fact["agent"])}


def _read_marker(fact: Fact, how: str, name: str) -> Marker:
    point = point_of(fact)
    return Marker(
        how=how,
        point=point._replace(stamp=float(fact.get("seen", 0.0)) or point.stamp),
        name=name,
        patch=str(fact.get("patch", "")),
        agent=str(fact.get("agent", "")),
        message=str(fact.get("message", "")),
        by_person=fact.get("by_person") is True,
    )


def _marker(state: Fact, fact: Fact) -> None:
    marker = _read_marker(fact, str(fact["how"]), str(fact.get("name", "")))
    key = str(fact.get("key", ""))
    if key and key in state["keys"]:
        return  # the event was delivered twice
    state["keys"] |= {key}
    _add_marker(state, marker)


def _add_marker(state: Fact, marker: Marker) -> None:
    state["markers"] += (marker,)
    state["blocks"] = {}


def _decision(state: Fact, fact: Fact) -> None:
    counts = fact.get("counts") is True
    marker = _read_marker(fact, DECISION if counts else CLAIM, str(fact["decision"]))
    state["decisions"] += (marker,)
    if counts:
        _add_marker(state, marker)
        state["used"] |= {str(fact.get("digest", ""))}
        state["undecided"] = 0
        state["sent_back"] = {**state["sent_back"], marker.agent: 0}


def _round(state: Fact, fact: Fact) -> None:
    prompt, outcome = str(fact["prompt"]), str(fact["outcome"])
    if fact["gates"] == REVIEWER:
        agent = str(fact.get("agent", ""))
        times = state["sent_back"].get(agent, 0) + (outcome == "blocked")
        state["sent_back"] = {**state["sent_back"], agent: times}
        _began(state, {"tree": "", **fact})  # it reviews again
        return
    if fact["gates"] != GATE:
        return
    state["rulings"] += ((prompt, str(fact.get("tree", "")), outcome),)
    if outcome != "blocked":
        return
    state["blocks"] = {**state["blocks"], prompt: state["blocks"].get(prompt, 0) + 1}
    if fact.get("strict") and not any(marker.how == DECISION for marker in state["decisions"]):
        state["undecided"] += 1


def _reported(state: Fact, fact: Fact) -> None:
    state["reported"] |= {str(fact["message"])}


def _weakened(state: Fact, fact: Fact) -> None:
    state["weakened"] |= {*map(str, fact["found"])}


EVIDENCE: Projection[Evidence] = Projection(
    Evidence,
    {
        ReviewOnEntry: _turned,
        ReviewOffEntry: _turned,
        ReviewBeganEntry: _began,
        TokenEntry: _token,
        MarkerEntry: _marker,
        DecisionEntry: _decision,
        RoundEntry: _round,
        ReportedEntry: _reported,
        WeakenedEntry: _weakened,
    },
    keys=frozenset(),
)
fold = EVIDENCE.fold


def session_evidence(call: Call) -> Evidence:
    """Return the evidence in all a session's journals: tokens and prompts belong to the session."""
    return call.state_everywhere(EVIDENCE)


def evidence_of(call: Call) -> Evidence:
    """Return the evidence of reviews, including that in the session's other worktrees.

    The same content may be in several worktrees; a review of it is valid in all of them.
    """
    evidence, whole = call.state(EVIDENCE), session_evidence(call)
    return evidence._replace(
        markers=whole.markers, decisions=whole.decisions, starting_points=whole.starting_points
    )


def is_strict(call: Call) -> bool:
    """Return whether the strict form is in force.

    A prompt requests or ends it for every worktree of the session. On a host that cannot give a
    reviewer its token, the reminder is used instead.
    """
    if not agent_host(call.payload.host or DEFAULT_AGENT).PROTOCOL.hands_tokens:
        return False
    return settings_of(call.config).mode == "require" or session_evidence(call).strict
