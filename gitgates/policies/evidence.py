"""What a session's journal says of reviews: a fold over its entries, in the order of writing.

Facts (`what`), beside those of policies/session.py:

- `snapshot`: tree, head, note, own, transcript, running. The first one with a tree is where the
  session began, or what stands in for it: then the note says so. `own` are the files that its tools
  wrote since the one before, where they can have written no others. The rest is for
  policies/change.py: how long the transcript was, and whether a shell ran in the background.
- `prompt`: text, transcript. What the person asked for, word for word; the host's transcript.
- `review-on`, `review-off`: the strict form, asked for by a prompt, or ended.
- `review-began`: agent, tree, head. A sub-agent that reviews has started, and sees this.
- `token`: agent, digest. What the reviewer proves with that it is the reviewer.
- `marker`: how, name, agent, tree, head, patch, message. A review ran on this.
- `decision`: decision, agent, counts, tree, head, patch, message. What a reviewer said of this.
- `caller`: nonce, agent, agent_type. Whose a command of ours is, for caller.py alone.
- `wrote`: path. A tool of this session has written this file: see policies/authorship.py.
- `round` with the gates `review`: the gate has decided on a stop.
- `rest`: tree. The agent was let go, and is idle until the next prompt; what there is then that was
  not there before, somebody else has done.
- `reported`: message. The person has been told of this decision, or of this skip.

Whatever is not understood is passed over.
"""

from __future__ import annotations

from gitgates.agent_types import UNCHANGING, Point
from gitgates.lifecycle import AGENT_HOOKS
from gitgates.policies.review_config import GATE
from gitgates.policies.session import Projection
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, TypeAlias

    from gitgates.lifecycle import EventKind
    from gitgates.types import Review

    Fact: TypeAlias = dict[str, Any]


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


class ReviewDecision(Record):
    """What was posted as a reviewer's decision."""

    decision: str  # COMPLETE, ISSUES
    point: Point
    counts: bool  # False: not the reviewer's own, so that it is a claim and no more
    patch: str = ""
    agent: str = ""
    message: str = ""


class Standing(Record):
    """A marker, and whether it still holds for what is there now."""

    marker: Marker
    holds: bool
    why: str  # in words


class Token(Record):
    """What a reviewer was handed; the journal holds only its digest."""

    agent: str
    digest: str
    used: bool = False


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
    decisions: tuple[ReviewDecision, ...] = ()
    began: tuple[tuple[str, Point], ...] = ()  # agent → what it saw when it started
    tokens: tuple[Token, ...] = ()
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
    """Return whether the strict form applies: by configuration, or as the last prompt asked.

    A prompt asks in each worktree that the session comes to, whichever heard of it.
    """
    newest = max(worktrees, key=lambda one: one.strict_stamp, default=Evidence())
    return review.mode == "require" or newest.strict


# Events that come while the agent has nothing to do.
_PROMPTS: tuple[EventKind, ...] = ("prompt", "prompt-expansion")
_BETWEEN = (*_PROMPTS, "session-start", "session-end", "before-compact", "after-compact")
_TOOL_EVENTS: tuple[EventKind, ...] = ("before-tool", "after-tool")
_KINDS = {point.name: point.kind for point in AGENT_HOOKS}
_FEW = ("asked", "quiet", "unsure")
_LISTS = ("requests", "markers", "decisions", "tokens", "prompt_ids", *_FEW)


def _new() -> dict[str, Any]:
    state: dict[str, Any] = {name: [] for name in _LISTS}
    state |= {"began": {}, "blocks": {}, "sent_back": {}}
    state |= {"keys": set(), "reported": set()}
    state |= {"base": None, "base_note": "", "point": None, "strict": False, "strict_stamp": 0.0}
    return state | {
        "undecided": 0,
        "acted": False,
        "rest": False,
        "event": "",
        "transcript_abs": "",
    }


def _evidence(state: dict[str, Any]) -> Evidence:
    return Evidence(**{name: _freeze(state[name]) for name in Evidence._fields})


def _freeze(value: Any) -> Any:  # noqa: ANN401 - the fields of the record, each of its own type
    if isinstance(value, dict):
        return tuple(value.items())
    if isinstance(value, set):
        return frozenset(value)
    return tuple(value) if isinstance(value, list) else value


def _point(fact: Fact) -> Point:
    return Point(tree=str(fact["tree"]), head=str(fact.get("head", "")), stamp=float(fact["t"]))


def _snapshot(state: Fact, fact: Fact) -> None:
    if not fact["tree"]:
        state["rest"] = False
        return
    now, before, own = _point(fact), state["point"], fact.get("own")
    if state["rest"]:
        own = []  # nobody worked
    if before and isinstance(own, list):
        times = {"began": before.stamp, "ended": now.stamp}
        trees = {"before": before.tree, "after": now.tree}
        state["quiet"].append(Quiet(**times, **trees, own=tuple(map(str, own))))
    # Nobody works before the first prompt, and with each prompt the agent does.
    state["rest"] = state["event"] == "session-start"
    state["point"] = now
    if state["base"] is None:
        state["base"], state["base_note"] = now, str(fact.get("note", ""))


def _prompt(state: Fact, fact: Fact) -> None:
    prompt_id = str(fact.get("prompt_id", ""))
    if prompt_id and prompt_id in state["prompt_ids"]:
        return  # delivered twice
    state["prompt_ids"].append(prompt_id)
    state["requests"].append(str(fact.get("text", "")))
    state["transcript_abs"] = str(fact.get("transcript", ""))


def _turned(state: Fact, fact: Fact) -> None:
    state["strict"] = fact["what"] == "review-on"
    state["strict_stamp"], state["undecided"] = float(fact["t"]), 0
    if state["strict"]:
        state["asked"] = []  # what was asked about before is asked about in this form now


def _began(state: Fact, fact: Fact) -> None:
    # A sub-agent that is sent back goes on with what it saw; one that starts anew sees it anew.
    state["began"].setdefault(str(fact["agent"]), _point(fact))


def _rest(state: Fact, fact: Fact) -> None:
    state["rest"], state["point"] = True, _point(fact)


def _reported(state: Fact, fact: Fact) -> None:
    state["reported"].add(str(fact["message"]))


def _token(state: Fact, fact: Fact) -> None:
    state["tokens"].append(Token(agent=str(fact["agent"]), digest=str(fact["digest"])))


def _is_new(state: Fact, fact: Fact) -> bool:
    """Return whether this is not the same event once more."""
    key = str(fact.get("key", ""))
    is_new = not key or (fact["what"], key) not in state["keys"]
    state["keys"].add((fact["what"], key))
    return is_new


def _marker(state: Fact, fact: Fact) -> None:
    if not _is_new(state, fact):
        return
    one = Marker(
        how=str(fact["how"]),
        point=_point(fact),
        name=str(fact.get("name", "")),
        patch=str(fact.get("patch", "")),
        agent=str(fact.get("agent", "")),
        message=str(fact.get("message", "")),
        by_person=fact.get("by_person") is True,
    )
    prompt_id = str(fact.get("prompt_id", ""))
    if one.how == "command" and prompt_id:
        state["unsure"].append((prompt_id, one))
    else:
        _add_marker(state, one)


def _add_marker(state: Fact, one: Marker) -> None:
    state["markers"].append(one)
    state["blocks"] = {}


def _decision(state: Fact, fact: Fact) -> None:
    one = ReviewDecision(
        decision=str(fact["decision"]),
        point=_point(fact),
        counts=fact.get("counts") is True,
        patch=str(fact.get("patch", "")),
        agent=str(fact.get("agent", "")),
        message=str(fact.get("message", "")),
    )
    state["decisions"].append(one)
    if not one.counts:
        return
    digest = str(fact.get("digest", ""))
    state["tokens"] = [
        token._replace(used=True) if token.digest == digest else token for token in state["tokens"]
    ]
    state["markers"].append(
        Marker(
            how="decision",
            point=one.point,
            name=one.decision,
            patch=one.patch,
            agent=one.agent,
            message=one.message,
        )
    )
    state["blocks"], state["undecided"] = {}, 0
    state["sent_back"].pop(one.agent, None)


def _event(state: Fact, fact: Fact) -> None:
    """Take an event."""
    event = _KINDS.get(fact["event"], "")
    state["event"] = event
    # What has no type is the summary of a conversation.
    is_summary = event in ("subagent-start", "subagent-end") and not fact.get("agent_type")
    if event not in _BETWEEN and not is_summary:
        state["rest"] = False  # the agent is at work again
    if event in _TOOL_EVENTS and fact.get("tool_kind") not in UNCHANGING:
        state["acted"] = True
    if event == "turn-end":
        # A typed command that could not be expanded has asked nobody anything: no stop follows.
        sure = [one for prompt_id, one in state["unsure"] if prompt_id == fact.get("prompt_id")]
        for one in sure:
            _add_marker(state, one)
        state["unsure"] = [pair for pair in state["unsure"] if pair[1] not in sure]


def _round(state: Fact, fact: Fact) -> None:
    if fact["gates"] != GATE:
        return
    agent, outcome = str(fact.get("agent", "")), str(fact["outcome"])
    if fact.get("sent_back"):
        state["sent_back"][agent] = state["sent_back"].get(agent, 0) + (outcome == "blocked")
        return
    prompt = str(fact["prompt"])
    state["asked"].append((prompt, str(fact.get("tree", "")), outcome))
    if outcome != "blocked":
        return
    state["blocks"][prompt] = state["blocks"].get(prompt, 0) + 1
    if fact.get("strict") and not any(one.counts for one in state["decisions"]):
        state["undecided"] += 1


EVIDENCE: Projection[Evidence] = Projection(
    _new,
    {
        "event": _event,
        "snapshot": _snapshot,
        "prompt": _prompt,
        "review-on": _turned,
        "review-off": _turned,
        "review-began": _began,
        "token": _token,
        "marker": _marker,
        "decision": _decision,
        "round": _round,
        "rest": _rest,
        "reported": _reported,
    },
    _evidence,
)
fold = EVIDENCE.fold


def last_seen(journals: Iterable[Iterable[Fact]], agent: str) -> Point | None:
    """Return what was there when a reviewer was started, or sent back to look again, last.

    None if that is not known, and where no snapshot could be taken then.
    """
    points = [
        Point(tree=str(fact["tree"]), head=str(fact.get("head", "")), stamp=float(fact["t"]))
        for facts in journals
        for fact in facts
        if _is_look(fact, agent)
    ]
    newest = max(points, key=lambda point: point.stamp, default=None)
    return newest if newest and newest.tree else None


def _is_look(fact: Fact, agent: str) -> bool:
    if fact.get("agent") != agent or not isinstance(fact.get("t"), int | float):
        return False
    if not isinstance(fact.get("tree"), str):
        return False
    sent_back = fact.get("gates") == GATE and bool(fact.get("sent_back"))
    return fact.get("what") == "review-began" or (fact.get("what") == "round" and sent_back)
