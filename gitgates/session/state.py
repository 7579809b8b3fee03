"""The state of a session: projections, which fold the entries of its journal.

Facts (`what`): event, snapshot, prompt, pseudo-prompt, deferred, round, cannot-fix, baseline,
warning, told, stop, stopped, note, watched, rules. Whatever is not understood is passed over, so
that an older gitgates can read what a newer one wrote.
"""

from __future__ import annotations

from gitgates.core.agent_types import Point, Write
from gitgates.core.lifecycle import RETRY_HOOKS, kind_of
from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Generic, TypeAlias, TypeVar

    _T = TypeVar("_T")
    Fact: TypeAlias = dict[str, Any]
    Failures: TypeAlias = tuple[tuple[str, str], ...]  # (fingerprint, title)
    Fold: TypeAlias = Callable[[dict[str, Any], Fact], None]
else:
    _T, Generic = None, {None: object}  # a base that takes no notice of its type argument

# What reading an entry fails with that somebody else has written, or a hand has damaged.
NOT_OURS = (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)
# Statuses of a gate that did not come to a result of its own.
NO_RESULT = ("not-started", "not-run")
# The status of a gate that ended with exit status 0 and had nothing to check: no pass, no failure.
UNCHECKED = "unchecked"


class Projection(Generic[_T]):
    """A fold over a journal: how each kind of entry changes the fields of a record.

    While entries are taken in, the fields are those of a dict, with more that only the folds use.
    """

    def __init__(self, record: Any, folds: Mapping[str, Fold], **more: Any) -> None:  # noqa: ANN401 - of any type
        self._record, self._folds = record, folds
        self._first = {**record()._asdict(), **more}

    def new(self) -> dict[str, Any]:
        """Return the state of a journal that is empty. Dicts may be changed in place."""
        return {k: dict(v) if isinstance(v, dict) else v for k, v in self._first.items()}

    def take(self, state: dict[str, Any], entries: Iterable[Fact]) -> None:
        """Apply entries in order. Unknown ones are ignored."""
        folds = self._folds
        for entry in entries:
            try:
                if fold_in := folds.get(entry["what"]):
                    fold_in(state, entry)
            except NOT_OURS:
                continue

    def freeze(self, state: dict[str, Any]) -> _T:
        """Return the record."""
        found: _T = self._record(**{name: state[name] for name in self._record._fields})
        return found

    def fold(self, entries: Iterable[Fact]) -> _T:
        """Fold entries into a record."""
        state = self.new()
        self.take(state, entries)
        return self.freeze(state)


class Round(Record):
    """One run of gates for the agent, and the answer."""

    key: str  # of the event, so that its second delivery is known
    stamp: float
    hook: str
    agent: str  # the sub-agent's id; empty: the main thread
    prompt: str
    gates: str  # the set of gates, as it was listed
    outcome: str  # passed, blocked, stopped, exhausted, …: see session/breaker.py
    tree: str = ""  # the snapshot that the gates saw; empty: unknown, or not provable
    statuses: tuple[tuple[str, str], ...] = ()  # of those that did not pass
    failures: tuple[tuple[str, Failures], ...] = ()  # of each gate that failed
    answer: str = ""  # what the host received
    run: str = ""  # the run's folder
    config: str = ""  # the digest of the configuration

    def fingerprints(self) -> frozenset[str]:
        """Return the failures of all gates, as one set."""
        return frozenset(f"{gate}:{mark}" for gate, found in self.failures for mark, _ in found)


class Session(Record):
    """The state of a session."""

    base: str = ""  # the first snapshot, or what stands in for it
    not_seen: tuple[str, ...] = ()  # what was there then, and is in no tree
    no_base: str = ""  # why there is none, or what stands in for it
    prompt: str = ""  # the current real prompt: its number
    prompts: Mapping[str, str] = {}  # the host's prompt id → the real prompt it is of
    rounds: tuple[Round, ...] = ()
    last: str = ""  # the key of the last fact that was an event
    deliveries: Mapping[str, int] = {}  # key → how often it was delivered
    deferred: tuple[str, ...] = ()  # the prompts of the stops that were put off, one each
    cannot_fix: tuple[tuple[str, str, str], ...] = ()  # prompt, gate, reason
    baselines: Mapping[str, Baseline] = {}  # gate's definition → what failed before
    warnings: tuple[tuple[str, str], ...] = ()  # hook and text, that the agent does not know yet
    stop: str = ""  # why the main thread is to be stopped at its next event
    notes: tuple[str, ...] = ()
    # What decides what is checked, as it was noted last.
    watched: Mapping[str, Any] | None = None
    rules: bool = False  # whether the rules that it began with are recorded

    def prompt_of(self, prompt_id: str) -> str:
        """Return the real prompt that a host's prompt id belongs to."""
        # One whose submission we did not hear of; or a host that does not say.
        return self.prompts.get(prompt_id, prompt_id or self.prompt)

    def rounds_of(self, hook: str, agent: str, prompt: str, gates: str) -> tuple[Round, ...]:
        """Return the rounds of one cycle of fix and retry, since its gates passed last."""
        found: list[Round] = []
        for one in self.rounds:
            if (one.hook, one.agent, one.prompt, one.gates) == (hook, agent, prompt, gates):
                found = [] if one.outcome == "passed" else [*found, one]
        return tuple(found)

    def blocks(self, prompt: str = "") -> int:
        """Return how often the agent was blocked, in one prompt or at all.

        A tool call that is refused keeps nobody from stopping.
        """
        return sum(
            # A sub-agent that is to stop is blocked: nothing else stops it.
            (
                one.outcome == "blocked"
                or (one.outcome, kind_of(one.hook)) == ("stopped", "subagent-end")
            )
            and one.hook in RETRY_HOOKS
            and prompt in ("", one.prompt)
            for one in self.rounds
        )

    def reasons_not_to_fix(self, prompt: str) -> dict[str, str]:
        """Return gate → why the agent said that it cannot be fixed, in this prompt."""
        return {gate: reason for where, gate, reason in self.cannot_fix if where == prompt}


class Baseline(Record):
    """The result of a gate on the session's first snapshot."""

    gate: str
    failures: Failures = ()
    why_not: str = ""  # why it could not be found out


def _event(state: Fact, fact: Fact) -> None:
    key = state["last"] = str(fact["key"])
    state["deliveries"][key] = state["deliveries"].get(key, 0) + 1


def _snapshot(state: Fact, fact: Fact) -> None:
    if not state["base"]:
        state["base"] = str(fact["tree"])
        state["not_seen"] = tuple(map(str, fact.get("not_seen", ())))
        state["no_base"] = str(fact.get("why", ""))


def _prompt(state: Fact, fact: Fact) -> None:
    prompt_id = str(fact.get("prompt_id", ""))
    if prompt_id and prompt_id in state["prompts"]:
        return  # delivered twice
    state["prompt"] = str(int(state["prompt"] or 0) + 1)
    if prompt_id:
        state["prompts"][prompt_id] = state["prompt"]


def _pseudo_prompt(state: Fact, fact: Fact) -> None:
    if prompt_id := str(fact.get("prompt_id", "")):
        state["prompts"].setdefault(prompt_id, state["prompt"])


_KNOWN = ("key", "hook", "agent", "prompt", "gates", "outcome")  # of each round
_OTHERS = ("tree", "answer", "run", "config")


def _round(state: Fact, fact: Fact) -> None:
    one = Round(
        stamp=float(fact["t"]),
        statuses=_pairs(fact.get("statuses", [])),
        failures=tuple((str(g), _pairs(found)) for g, found in fact.get("failures", [])),
        **{name: str(fact[name]) for name in _KNOWN},
        **{name: str(fact.get(name, "")) for name in _OTHERS},
    )
    state["rounds"] += (one,)
    if one.outcome == "passed":
        # What is right now need not be warned of any more.
        state["warnings"] = tuple(told for told in state["warnings"] if told[0] != one.hook)
    if one.outcome == "passed" and one.hook in RETRY_HOOKS:
        # It could be fixed after all: what fails next is to be said anew.
        could = [(one.prompt, gate) for gate in one.gates.split(", ")]
        state["cannot_fix"] = tuple(said for said in state["cannot_fix"] if said[:2] not in could)


def _pairs(found: Any) -> Failures:  # noqa: ANN401 - as it comes from JSON
    return tuple((str(one), str(other)) for one, other in found)


def _cannot_fix(state: Fact, fact: Fact) -> None:
    prompt = str(fact.get("prompt", "")) or state["prompt"]
    state["cannot_fix"] += ((prompt, str(fact["gate"]), str(fact["reason"])),)


def _baseline(state: Fact, fact: Fact) -> None:
    found = Baseline(
        gate=str(fact["gate"]),
        failures=_pairs(fact.get("failures", [])),
        why_not=str(fact.get("why_not", "")),
    )
    state["baselines"].setdefault(str(fact["definition"]), found)


def _warning(state: Fact, fact: Fact) -> None:
    hook, text = str(fact.get("hook", "")), str(fact["text"])
    if kind_of(hook) == "turn-end":  # the last word on it is enough; each sub-agent has its own
        state["warnings"] = tuple(one for one in state["warnings"] if one[0] != hook)
    state["warnings"] += ((hook, text),)


def _stop(state: Fact, fact: Fact) -> None:
    state["stop"] = state["stop"] or str(fact["reason"])


def _watched(state: Fact, fact: Fact) -> None:
    found = fact.get("found")
    state["watched"] = found if isinstance(found, dict) else {}


def _sets(field: str, value: object) -> Fold:
    return lambda state, _fact: state.update({field: value})


def _appends(field: str, key: str) -> Fold:
    return lambda state, fact: state.update({field: (*state[field], str(fact[key]))})


SESSION: Projection[Session] = Projection(
    Session,
    {
        "event": _event,
        "snapshot": _snapshot,
        "prompt": _prompt,
        "pseudo-prompt": _pseudo_prompt,
        "deferred": _appends("deferred", "prompt"),
        "round": _round,
        "cannot-fix": _cannot_fix,
        "baseline": _baseline,
        "warning": _warning,
        "told": _sets("warnings", ()),
        "stop": _stop,
        "stopped": _sets("stop", ""),
        "note": _appends("notes", "text"),
        "watched": _watched,
        "rules": _sets("rules", True),
    },
)
fold = SESSION.fold


# What the session has done, and others beside it.


class IdleSpan(Record):
    """A span in which the session wrote no files but the named ones."""

    began: float
    ended: float
    before: str  # the tree then
    after: str
    own: tuple[str, ...] = ()  # files that its own tools wrote


class Timeline(Record):
    """Where a session began, what it was asked for, and what others wrote meanwhile."""

    base: Point | None = None
    base_note: str = ""  # what it stands in for, if the beginning was not heard of
    stashes: tuple[str, ...] = ()  # that were there when the session began
    point: Point | None = None  # the last snapshot
    quiet: tuple[IdleSpan, ...] = ()
    others_writes: tuple[Write, ...] = ()  # of gates, and in files that it edited, too
    requests: tuple[str, ...] = ()  # the person's prompts, word for word
    transcript_abs: str = ""  # of the host, as the last prompt named it


def point_of(fact: Fact) -> Point:
    """Return the snapshot that an entry names."""
    return Point(tree=str(fact["tree"]), head=str(fact.get("head", "")), stamp=float(fact["t"]))


def stamp_of(fact: Fact) -> float:
    """Return when a journal entry was written, since the epoch; 0 if unknown."""
    stamp = fact.get("t")
    return float(stamp) if isinstance(stamp, int | float) else 0.0


def _point(state: Fact, fact: Fact) -> None:
    if not fact["tree"]:
        return
    now, before, own = point_of(fact), state["point"], fact.get("own")
    if before and isinstance(own, list):
        span = IdleSpan(before.stamp, now.stamp, before.tree, now.tree, tuple(map(str, own)))
        state["quiet"] += (span,)
    state["point"] = now
    if state["base"] is None:
        state["base"], state["base_note"] = now, str(fact.get("note", ""))
        state["stashes"] = tuple(map(str, fact.get("stashes", ())))


def _rest(state: Fact, fact: Fact) -> None:
    state["point"] = point_of(fact)


def _others_wrote(state: Fact, fact: Fact) -> None:
    stamp = float(fact["t"])
    state["others_writes"] += tuple(
        Write(stamp=stamp, path=str(path), before=str(before), after=str(after))
        for path, before, after in fact.get("writes", ())
    )


def _request(state: Fact, fact: Fact) -> None:
    prompt_id = str(fact.get("prompt_id", ""))
    if prompt_id and prompt_id in state["prompt_ids"]:
        return  # delivered twice
    state["prompt_ids"] |= {prompt_id}
    state["requests"] += (str(fact.get("text", "")),)
    state["transcript_abs"] = str(fact.get("transcript", ""))


TIMELINE: Projection[Timeline] = Projection(
    Timeline,
    {
        "snapshot": _point,
        "rest": _rest,
        "gates-wrote": _others_wrote,
        "others-wrote": _others_wrote,
        "prompt": _request,
    },
    prompt_ids=frozenset(),
)
