"""Evidence of reviews: a projection of a session's journal.

Facts (`what`), beside those of session/state.py:

- `review-on`, `review-off`: the strict form, asked for by a prompt, or ended.
- `review-began`: agent, tree, head. A sub-agent that reviews has started, and sees this.
- `token`: agent, digest. What the reviewer proves with that it is the reviewer.
- `marker`: how, name, agent, tree, head, patch, message. A review ran on this.
- `decision`: decision, agent, counts, tree, head, patch, message. What a reviewer said of this.
- `round` with the gates `review`: the gate has decided on a stop, or sent a reviewer back.
- `reported`: message. The person has been told of this decision, or of this skip.

Whatever is not understood is passed over.
"""

from __future__ import annotations

from gitgates.core.agent_types import Point
from gitgates.core.lifecycle import kind_of
from gitgates.core.record import Record
from gitgates.features.review.config import GATE, settings_of
from gitgates.hosts import DEFAULT_AGENT, agent_host
from gitgates.session.state import Projection, point_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.session.call import Call
    from gitgates.session.state import Fact


COMPLETE = "COMPLETE"
ISSUES = "ISSUES"
SKIP = "skip"  # how a marker came about: somebody says that no review is needed
DECISION, CLAIM = "decision", "claim"  # of the reviewer; of anybody else, which does not count


class Marker(Record):
    """Evidence that a review ran: the content that it saw, and a decision's outcome."""

    how: str  # skill, command, agent, findings, done, skip, decision, claim
    point: Point
    name: str = ""  # of the skill, the command, the agent; COMPLETE or ISSUES of a decision
    patch: str = ""  # `git patch-id --stable` of the change that it saw; empty: not known
    agent: str = ""  # the sub-agent's id; empty: the main thread
    message: str = ""  # the id of the message that says more
    by_person: bool = False


class Evidence(Record):
    """The evidence of a session's reviews."""

    strict: bool = False  # asked for by a prompt
    markers: tuple[Marker, ...] = ()  # decisions that count are among them
    decisions: tuple[Marker, ...] = ()  # claims are among them
    seen: Mapping[str, Point] = {}  # agent → what it saw when it started, or was sent back, last
    tokens: Mapping[str, str] = {}  # digest → the agent that was handed it
    used: frozenset[str] = frozenset()  # digests that a decision has come with
    blocks: Mapping[str, int] = {}  # prompt → since the last marker or decision
    undecided: int = 0  # blocks of the strict form while nothing was ever decided
    sent_back: Mapping[str, int] = {}  # reviewer's id → ends without a decision
    asked: tuple[tuple[str, str, str], ...] = ()  # prompt, tree, outcome of each look at a stop
    reported: frozenset[str] = frozenset()  # messages that the person has been told of


def _is_new(state: Fact, fact: Fact, key: str) -> bool:
    """Return whether this is not a duplicate of an event."""
    known = (fact["what"], key)
    is_new = not key or known not in state["keys"]
    state["keys"] |= {known}
    return is_new


def _turned(state: Fact, fact: Fact) -> None:
    state["strict"], state["undecided"] = fact["what"] == "review-on", 0
    if state["strict"]:
        state["asked"] = ()  # what was asked about before is asked about in this form now


def _began(state: Fact, fact: Fact) -> None:
    state["seen"] = {**state["seen"], str(fact["agent"]): point_of(fact)}


def _token(state: Fact, fact: Fact) -> None:
    state["tokens"] = {**state["tokens"], str(fact["digest"]): str(fact["agent"])}


def _read_marker(fact: Fact, how: str, name: str) -> Marker:
    return Marker(
        how=how,
        point=point_of(fact),
        name=name,
        patch=str(fact.get("patch", "")),
        agent=str(fact.get("agent", "")),
        message=str(fact.get("message", "")),
        by_person=fact.get("by_person") is True,
    )


def _marker(state: Fact, fact: Fact) -> None:
    one = _read_marker(fact, str(fact["how"]), str(fact.get("name", "")))
    if not _is_new(state, fact, str(fact.get("key", ""))):
        return
    prompt_id = str(fact.get("prompt_id", ""))
    if one.how == "command" and prompt_id:
        state["typed"] = {**state["typed"], prompt_id: one}
    else:
        _add_marker(state, one)


def _add_marker(state: Fact, one: Marker) -> None:
    state["markers"] += (one,)
    state["blocks"] = {}


def _decision(state: Fact, fact: Fact) -> None:
    counts = fact.get("counts") is True
    one = _read_marker(fact, DECISION if counts else CLAIM, str(fact["decision"]))
    state["decisions"] += (one,)
    if counts:
        _add_marker(state, one)
        state["used"] |= {str(fact.get("digest", ""))}
        state["undecided"] = 0
        state["sent_back"] = {**state["sent_back"], one.agent: 0}


def _event(state: Fact, fact: Fact) -> None:
    # A typed command that could not be expanded has asked nobody anything: no stop follows.
    if kind_of(fact["event"]) == "turn-end" and fact.get("prompt_id") in state["typed"]:
        typed = {**state["typed"]}
        _add_marker(state, typed.pop(fact["prompt_id"]))
        state["typed"] = typed


def _round(state: Fact, fact: Fact) -> None:
    if fact["gates"] != GATE:
        return
    prompt, outcome = str(fact["prompt"]), str(fact["outcome"])
    if fact.get("sent_back"):
        agent = str(fact.get("agent", ""))
        times = state["sent_back"].get(agent, 0) + (outcome == "blocked")
        state["sent_back"] = {**state["sent_back"], agent: times}
        _began(state, fact)  # it looks again
        return
    state["asked"] += ((prompt, str(fact.get("tree", "")), outcome),)
    if outcome != "blocked":
        return
    state["blocks"] = {**state["blocks"], prompt: state["blocks"].get(prompt, 0) + 1}
    if fact.get("strict") and not any(one.how == DECISION for one in state["decisions"]):
        state["undecided"] += 1


def _reported(state: Fact, fact: Fact) -> None:
    state["reported"] |= {str(fact["message"])}


EVIDENCE: Projection[Evidence] = Projection(
    Evidence,
    {
        "event": _event,
        "review-on": _turned,
        "review-off": _turned,
        "review-began": _began,
        "token": _token,
        "marker": _marker,
        "decision": _decision,
        "round": _round,
        "reported": _reported,
    },
    keys=frozenset(),
    typed={},
)
fold = EVIDENCE.fold


def session_evidence(call: Call) -> Evidence:
    """Return what all journals of a session say together: tokens and prompts are of the session."""
    return call.state_everywhere(EVIDENCE)


def evidence_of(call: Call) -> Evidence:
    """Return the evidence of reviews, with that of the session's other worktrees.

    Content is the same wherever it lies, so that a review of it holds everywhere.
    """
    here, whole = call.state(EVIDENCE), session_evidence(call)
    return here._replace(markers=whole.markers, decisions=whole.decisions, seen=whole.seen)


def is_strict(call: Call) -> bool:
    """Return whether the strict form is in force.

    A prompt asks for it, or ends it, in each worktree that the session comes to. A host that cannot
    hand a reviewer its token has the reminder instead.
    """
    if not agent_host(call.payload.host or DEFAULT_AGENT).PROTOCOL.hands_tokens:
        return False
    return settings_of(call.config).mode == "require" or session_evidence(call).strict
