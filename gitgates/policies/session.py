"""What a session's journal says: a fold over its facts, in the order in which they were written.

Facts (`what`): event, snapshot, prompt, pseudo-prompt, deferred, round, cannot-fix, baseline,
warning, told, stop, stopped, note. Whatever is not understood is passed over, so that an older
gitgates can read what a newer one wrote.
"""

from __future__ import annotations

from gitgates.lifecycle import ENDING_HOOKS, kind_of
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Generic, TypeAlias, TypeVar

    _T = TypeVar("_T")
    Fact: TypeAlias = dict[str, Any]
    Failures: TypeAlias = tuple[tuple[str, str], ...]  # (fingerprint, title)
else:
    _T = None

    class Generic:
        """A base that takes no notice of its type argument."""

        def __class_getitem__(cls, _item: object) -> type:
            return cls


# What reading an entry fails with that somebody else has written, or a hand has damaged.
NOT_OURS = (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)


# Statuses of a gate that did not come to a result of its own.
NO_RESULT = ("not-started", "not-run")


class Projection(Generic[_T]):
    """What the journal says in one respect: how each kind of entry changes the state of it."""

    def __init__(
        self,
        new: Callable[[], dict[str, Any]],
        folds: Mapping[str, Callable[[dict[str, Any], Fact], None]],
        freeze: Callable[[dict[str, Any]], _T],
    ) -> None:
        self.new, self.freeze = new, freeze
        self._folds = folds

    def take(self, state: dict[str, Any], entries: Iterable[Fact]) -> None:
        """Take entries in, in order. Whatever is not understood is passed over."""
        folds = self._folds
        for entry in entries:
            try:
                if fold_in := folds.get(entry["what"]):
                    fold_in(state, entry)
            except NOT_OURS:
                continue

    def fold(self, entries: Iterable[Fact]) -> _T:
        """Return what these entries mean together."""
        state = self.new()
        self.take(state, entries)
        return self.freeze(state)


class Round(Record):
    """One time that gates ran for the agent, and what it was answered."""

    key: str  # of the event, so that its second delivery is known
    stamp: float
    hook: str
    agent: str  # the sub-agent's id; empty: the main thread
    prompt: str
    gates: str  # the set of gates, as it was listed
    outcome: str  # passed, blocked, stopped, exhausted, …: see policies/breaker.py
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
    """What is known of a session."""

    base: str = ""  # the first snapshot, or what stands in for it
    not_seen: tuple[str, ...] = ()  # what was there then, and is in no tree
    no_base: str = ""  # why there is none, or what stands in for it
    prompt: str = ""  # the current real prompt: its number
    prompts: tuple[tuple[str, str], ...] = ()  # the host's prompt id → the real prompt it is of
    rounds: tuple[Round, ...] = ()
    last: str = ""  # the key of the last fact that was an event
    deliveries: tuple[tuple[str, int], ...] = ()  # key → how often it was delivered
    deferred: tuple[str, ...] = ()  # the prompts of the stops that were put off, one each
    cannot_fix: tuple[tuple[str, str, str], ...] = ()  # prompt, gate, reason
    baselines: tuple[tuple[str, Baseline], ...] = ()  # gate's definition → what failed before
    warnings: tuple[str, ...] = ()  # that the agent has not been told yet
    stop: str = ""  # why the main thread is to be stopped at its next event
    notes: tuple[str, ...] = ()
    # What decides what is checked, as it was noted last.
    watched: tuple[tuple[str, Any], ...] | None = None
    elsewhere: tuple[int, int] = (0, 0)  # blocks in other worktrees: in this prompt, and at all

    def prompt_of(self, prompt_id: str) -> str:
        """Return the real prompt that a host's prompt id belongs to."""
        known = dict(self.prompts)
        if prompt_id in known:
            return known[prompt_id]
        # One whose submission we did not hear of; or a host that does not say.
        return prompt_id or self.prompt

    def rounds_of(self, hook: str, agent: str, prompt: str, gates: str) -> tuple[Round, ...]:
        """Return the rounds of one cycle of fix and retry, since its gates passed last."""
        found: list[Round] = []
        for one in self.rounds:
            if (one.hook, one.agent, one.prompt, one.gates) == (hook, agent, prompt, gates):
                found = [] if one.outcome == "passed" else [*found, one]
        return tuple(found)

    def blocks(self, prompt: str = "") -> int:
        """Return how often the agent was kept from stopping, in one prompt or at all.

        A tool call that is refused keeps nobody from stopping.
        """
        return self.elsewhere[not prompt] + sum(
            # A sub-agent that is to stop is blocked: nothing else stops it.
            (
                one.outcome == "blocked"
                or (one.outcome, kind_of(one.hook)) == ("stopped", "subagent-end")
            )
            and one.hook in ENDING_HOOKS
            and prompt in ("", one.prompt)
            for one in self.rounds
        )

    def reasons_not_to_fix(self, prompt: str) -> dict[str, str]:
        """Return gate → why the agent said that it cannot be fixed, in this prompt."""
        return {gate: reason for where, gate, reason in self.cannot_fix if where == prompt}


class Baseline(Record):
    """What a gate said of the session's first snapshot."""

    gate: str
    failures: Failures = ()
    why_not: str = ""  # why it could not be found out


def _new() -> dict[str, Any]:
    state: dict[str, Any] = dict.fromkeys(("base", "no_base", "prompt", "last", "stop"), "")
    state |= {name: [] for name in ("rounds", "deferred", "cannot_fix", "warnings", "notes")}
    return state | {name: {} for name in ("prompts", "deliveries", "baselines")}


def _session(state: dict[str, Any]) -> Session:
    warnings = tuple(text for _hook, text in state["warnings"])
    kept = {name: _freeze(value) for name, value in state.items()}
    return Session(**{**kept, "warnings": warnings})


def _freeze(value: Any) -> Any:  # noqa: ANN401 - the fields of a session, each of its own type
    if isinstance(value, dict):
        return tuple(value.items())
    return tuple(value) if isinstance(value, list) else value


def _event(state: Fact, fact: Fact) -> None:
    key = str(fact["key"])
    state["last"] = key
    state["deliveries"][key] = state["deliveries"].get(key, 0) + 1


def _snapshot(state: Fact, fact: Fact) -> None:
    if state["base"]:
        return
    state["base"] = str(fact["tree"])
    state["not_seen"] = [str(one) for one in fact.get("not_seen", [])]
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


def _round(state: Fact, fact: Fact) -> None:
    one = Round(
        key=str(fact["key"]),
        stamp=float(fact["t"]),
        hook=str(fact["hook"]),
        agent=str(fact["agent"]),
        prompt=str(fact["prompt"]),
        gates=str(fact["gates"]),
        outcome=str(fact["outcome"]),
        tree=str(fact.get("tree", "")),
        statuses=_pairs(fact.get("statuses", [])),
        failures=tuple((str(g), _pairs(found)) for g, found in fact.get("failures", [])),
        answer=str(fact.get("answer", "")),
        run=str(fact.get("run", "")),
        config=str(fact.get("config", "")),
    )
    state["rounds"].append(one)
    if one.outcome == "passed":
        # What is right now need not be warned of any more.
        state["warnings"] = [told for told in state["warnings"] if told[0] != one.hook]
    if one.outcome == "passed" and one.hook in ENDING_HOOKS:
        # It could be fixed after all: what fails next is to be said anew.
        could = [(one.prompt, gate) for gate in one.gates.split(", ")]
        state["cannot_fix"] = [said for said in state["cannot_fix"] if said[:2] not in could]


def _pairs(found: Any) -> Failures:  # noqa: ANN401 - as it comes from JSON
    return tuple((str(one), str(other)) for one, other in found)


def _cannot_fix(state: Fact, fact: Fact) -> None:
    prompt = str(fact.get("prompt", "")) or state["prompt"]
    state["cannot_fix"].append((prompt, str(fact["gate"]), str(fact["reason"])))


def _baseline(state: Fact, fact: Fact) -> None:
    found = Baseline(
        gate=str(fact["gate"]),
        failures=_pairs(fact.get("failures", [])),
        why_not=str(fact.get("why_not", "")),
    )
    state["baselines"].setdefault(str(fact["definition"]), found)


def _clear_warnings(state: Fact, _fact: Fact) -> None:
    state["warnings"] = []


def _stop(state: Fact, fact: Fact) -> None:
    state["stop"] = state["stop"] or str(fact["reason"])


def _stopped(state: Fact, _fact: Fact) -> None:
    state["stop"] = ""


def _deferred(state: Fact, fact: Fact) -> None:
    state["deferred"].append(str(fact["prompt"]))


def _warning(state: Fact, fact: Fact) -> None:
    hook, text = str(fact.get("hook", "")), str(fact["text"])
    if kind_of(hook) == "turn-end":  # the last word on it is enough; each sub-agent has its own
        state["warnings"] = [one for one in state["warnings"] if one[0] != hook]
    state["warnings"].append((hook, text))


def _watched(state: Fact, fact: Fact) -> None:
    found = fact.get("found")
    state["watched"] = found if isinstance(found, dict) else {}


def _note(state: Fact, fact: Fact) -> None:
    state["notes"].append(str(fact["text"]))


SESSION: Projection[Session] = Projection(
    _new,
    {
        "event": _event,
        "snapshot": _snapshot,
        "prompt": _prompt,
        "pseudo-prompt": _pseudo_prompt,
        "deferred": _deferred,
        "round": _round,
        "cannot-fix": _cannot_fix,
        "baseline": _baseline,
        "warning": _warning,
        "told": _clear_warnings,
        "stop": _stop,
        "stopped": _stopped,
        "note": _note,
        "watched": _watched,
    },
    _session,
)
fold = SESSION.fold
