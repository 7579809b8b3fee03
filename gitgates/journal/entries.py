"""The entries of a session itself in its journal, and the states that are folded from them.

They include those that features write and the session reads: how gates ended, and who wrote which
files. `Session` is the state of attempts and prompts, `Timeline` what was asked for, and who wrote
what.
"""

from __future__ import annotations

from gitgates.core.agent_types import WorktreeState
from gitgates.core.lifecycle import RETRY_HOOKS, kind_of
from gitgates.core.record import LazyRecord, Record
from gitgates.journal.journal import Projection, entry, point_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    from gitgates.journal.journal import Fact, Fold

    Failures: TypeAlias = tuple[tuple[str, str], ...]  # (fingerprint, title)

_LONGEST_TEXT = 120  # characters
# Statuses of a gate that did not come to a result of its own.
NO_RESULT = ("not-started", "not-run")
# The status of a gate that ended with exit status 0 and had nothing to check: no pass, no failure.
UNCHECKED = "unchecked"
FLAKY = "flaky"
WAITING = "waiting"  # of one that did not run because it was not its turn


# Events and prompts.


@entry("event")
class EventEntry(LazyRecord):
    """A hook of the agent has fired."""

    event: str  # the event, by the host's name
    key: str  # identifies the event in its session
    prompt_id: str  # the host's id of the prompt
    agent: str  # the sub-agent's id; empty: the main agent
    agent_type: str  # the name of that sub-agent
    tool: str  # the tool, by the host's name
    tool_kind: str  # shell, writes, reads, skill, …
    host: str = ""  # the agent, as in `gitgates agent-hook NAME`; empty: claude


@entry("prompt")
class PromptEntry(LazyRecord):
    """The person has submitted a prompt, or the client by itself."""

    prompt_id: str  # the host's id of the prompt; empty: it has none
    text: str  # the prompt, verbatim
    transcript: str = ""  # the host's file with the conversation
    automatic: bool = False  # the client has submitted it by itself, for the person's last prompt


@entry("scheduled")
class ScheduledEntry(LazyRecord):
    """The client will submit these prompts by itself: the agent's own, or the reason of a block."""

    prompts: Sequence[str]  # the length and digest of each


@entry("deferred")
class DeferredEntry(LazyRecord):
    """The gates of a stop were deferred, because sub-agents were still running."""

    prompt: str  # the number of the person's prompt


@entry("caller")
class CallerEntry(LazyRecord):
    """An agent is about to run a command of gitgates."""

    nonce: str  # the value of the --caller that was added to the command
    agent: str  # the sub-agent's id; empty: the main agent
    agent_type: str  # the name of that sub-agent


# What gates came to, and what is said of it.


@entry("round")
class RoundEntry(LazyRecord):
    """Gates, or a policy, have decided on an event."""

    # Its one constructor is `Call.round`.

    hook: str  # the event, by the host's name
    agent: str  # the sub-agent's id; empty: the main agent
    prompt: str  # the number of the person's prompt
    gates: str  # the gates that the hook lists
    outcome: str  # passed, blocked, stopped, breaker, exhausted, …
    key: str = ""  # identifies the event
    statuses: Sequence[Sequence[str]] = ()  # gate and status, of those that did not pass
    failures: Sequence[Any] = ()  # gate, and fingerprint and title of each failure
    tree: str = ""  # the snapshot that the gates saw; empty: unknown, or not provable
    run: str = ""  # the folder with the results
    config: str = ""  # the digest of the configuration
    answer: str = ""  # the answer that the host received
    strict: bool = False  # for a review: whether the reviewer's COMPLETE is required
    why: str = ""  # for a review: what is missing
    how: str = ""  # why the agent was allowed to stop


@entry("baseline")
class BaselineEntry(LazyRecord):
    """A gate has run on the session's first snapshot."""

    definition: str  # the gate, a digest of its configuration, and the snapshot
    gate: str  # its name
    failures: Sequence[Sequence[str]] = ()  # the fingerprint and title of each
    why_not: str = ""  # why it could not run


@entry("cannot-fix")
class CannotFixEntry(LazyRecord):
    """The agent reports that it cannot fix a gate's failure, or ends its turn all the same."""

    prompt: str  # the number of the person's prompt; empty: the current one
    gate: str  # its name; empty: the turn ends, whichever fails
    reason: str  # the reason that the agent has given, or its question; empty: it waits for a shell


@entry("warning")
class WarningEntry(LazyRecord):
    """The agent gets a message with the next prompt, or no longer needs earlier ones."""

    hook: str  # the event, by the host's name
    text: str  # the message; empty: it has received all, or no longer needs them


@entry("stop")
class StopEntry(LazyRecord):
    """The gates of a sub-agent have ended in STOP, so the main agent will be stopped, or was."""

    reason: str  # the message to it; empty: it was stopped, or a new prompt was submitted


@entry("note")
class NoteEntry(LazyRecord):
    """An error in gitgates, or a message that the person is shown once."""

    text: str  # the message
    about: str = ""  # what such a message is about: switched-off, lost, unread


# What there was.


@entry("snapshot")
class SnapshotEntry(LazyRecord):
    """A snapshot was taken; the first one with a tree is the beginning of the session."""

    tree: str  # the tree id; empty: there is none
    head: str = ""  # the commit that was checked out
    why: str = ""  # why there is no tree, or what replaces the first snapshot
    note: str = ""  # what the first snapshot replaces, if the first event was missed
    not_seen: Sequence[str] = ()  # files that no tree contains
    t: float = 0.0  # an earlier time, if the snapshot replaces one of that time


# What decides what is checked.


@entry("rules")
class RulesEntry(LazyRecord):
    """The policy settings that the session began with, or a part that a person has approved."""

    t: float  # when they took effect
    rules: Mapping[str, Any]  # each part, by its name; of an array's entry: `table`, `id`, `is`


@entry("watched")
class WatchedEntry(LazyRecord):
    """Digests of everything that determines what is checked: gates, hooks, settings, reviewers."""

    found: Mapping[str, str]  # the digest of each; empty: it does not exist


# Attempts and prompts.


class Round(Record):
    """One run of gates for the agent, and the answer: a `round` as it is read."""

    key: str  # of the event, so that its second delivery is known
    stamp: float
    hook: str
    agent: str  # the sub-agent's id; empty: the main agent
    prompt: str
    gates: str  # the gates that the hook lists
    outcome: str  # passed, blocked, stopped, exhausted, …: see drivers/breaker.py
    tree: str = ""  # the snapshot that the gates saw; empty: unknown, or not provable
    statuses: tuple[tuple[str, str], ...] = ()  # of those that did not pass
    failures: tuple[tuple[str, Failures], ...] = ()  # of each gate that failed
    answer: str = ""  # the answer that the host received
    run: str = ""  # the run's folder
    config: str = ""  # the digest of the configuration

    def fingerprints(self) -> frozenset[str]:
        """Return the failures of all gates, as one set."""
        return frozenset(
            f"{gate}:{mark}" for gate, failures in self.failures for mark, _ in failures
        )


class Beginning(Record):
    """The files that a session has begun with."""

    tree: str = ""  # the first snapshot, or what stands in for it
    not_seen: tuple[str, ...] = ()  # what was there then, and is in no tree
    why_not: str = ""  # why there is no tree, or what stands in for it


class Session(Record):
    """The state of a session."""

    beginning: Beginning = Beginning()
    prompt: str = ""  # the current real prompt: its number
    request: str = ""  # its first words
    prompts: Mapping[str, str] = {}  # the host's prompt id → the real prompt it is of
    rounds: tuple[Round, ...] = ()
    last: str = ""  # the key of the last fact that was an event
    deliveries: Mapping[str, int] = {}  # key → how often it was delivered, the newest last
    deferred: tuple[str, ...] = ()  # the prompts of the stops that were put off, one each
    cannot_fix: tuple[tuple[str, str, str], ...] = ()  # prompt, gate, reason
    baselines: Mapping[str, Baseline] = {}  # gate's definition → what failed before
    warnings: tuple[tuple[str, str], ...] = ()  # hook and text, that the agent does not know yet
    stop: str = ""  # why the main agent must be stopped at its next event
    notes: tuple[str, ...] = ()
    # What decides what is checked, as it was noted last.
    watched: Mapping[str, Any] | None = None
    rules: tuple[Fact, ...] = ()  # the entries of the rules that it began with

    def prompt_of(self, prompt_id: str) -> str:
        """Return the real prompt that a host's prompt id belongs to."""
        # One whose submission we did not hear of; or a host that does not say.
        return self.prompts.get(prompt_id, prompt_id or self.prompt)

    def rounds_of(self, hook: str, agent: str, prompt: str, gates: str) -> tuple[Round, ...]:
        """Return the rounds of one cycle of fix and retry, since its gates passed last."""
        key = (hook, agent, prompt, gates)
        cycle: list[Round] = []
        for round_ in self.rounds:
            if (round_.hook, round_.agent, round_.prompt, round_.gates) == key:
                cycle = [] if round_.outcome == "passed" else [*cycle, round_]
        return tuple(cycle)

    def blocks(self, prompt: str = "") -> int:
        """Return how often the agent was blocked, in one prompt or at all.

        A tool call that is refused keeps nobody from stopping.
        """
        return sum(
            # A sub-agent that should stop is blocked: nothing else stops it.
            (
                round_.outcome == "blocked"
                or (round_.outcome, kind_of(round_.hook)) == ("stopped", "subagent-end")
            )
            and round_.hook in RETRY_HOOKS
            and prompt in ("", round_.prompt)
            for round_ in self.rounds
        )

    def reasons_not_to_fix(self, prompt: str) -> dict[str, str]:
        """Return gate → reason why the agent reported that it cannot be fixed, in this prompt.

        `ANY`: why its turn ends, whichever fails: its question; empty: it waits for a shell.
        """
        return {gate: reason for prompt_id, gate, reason in self.cannot_fix if prompt_id == prompt}


ANY = ""


class Baseline(Record):
    """The result of a gate on the session's first snapshot."""

    gate: str
    failures: Failures = ()
    why_not: str = ""  # why it could not be found out


def _event(state: Fact, fact: Fact) -> None:
    key = state["last"] = str(fact["key"])
    state["deliveries"][key] = state["deliveries"].pop(key, 0) + 1  # the newest last


def _snapshot(state: Fact, fact: Fact) -> None:
    if not state["beginning"].tree:
        not_seen = tuple(map(str, fact.get("not_seen", ())))
        state["beginning"] = Beginning(str(fact["tree"]), not_seen, str(fact.get("why", "")))


def _prompt(state: Fact, fact: Fact) -> None:
    prompt_id = str(fact.get("prompt_id", ""))
    if prompt_id and prompt_id in state["prompts"]:
        return  # delivered twice
    if not fact.get("automatic"):
        state["prompt"] = str(int(state["prompt"] or 0) + 1)
        state["request"] = first_words(str(fact.get("text", "")))
    if prompt_id:
        state["prompts"][prompt_id] = state["prompt"]


def first_words(text: str) -> str:
    """Return the beginning of a text, in one line."""
    return " ".join(text.split())[:_LONGEST_TEXT]


_KNOWN = ("key", "hook", "agent", "prompt", "gates", "outcome")  # of each round
_OTHERS = ("tree", "answer", "run", "config")


def _round(state: Fact, fact: Fact) -> None:
    round_ = Round(
        stamp=float(fact["t"]),
        statuses=_pairs(fact.get("statuses", [])),
        failures=tuple((str(g), _pairs(failures)) for g, failures in fact.get("failures", [])),
        **{name: str(fact[name]) for name in _KNOWN},
        **{name: str(fact.get(name, "")) for name in _OTHERS},
    )
    state["rounds"] += (round_,)
    if round_.outcome == "passed":
        # What is right now need not be warned of any more.
        state["warnings"] = tuple(
            warning for warning in state["warnings"] if warning[0] != round_.hook
        )
    if round_.outcome == "passed" and round_.hook in RETRY_HOOKS:
        # It could be fixed after all: what fails next is told again.
        could = [(round_.prompt, gate) for gate in round_.gates.split(", ")]
        state["cannot_fix"] = tuple(
            report for report in state["cannot_fix"] if report[:2] not in could
        )


def _pairs(pairs: Any) -> Failures:  # noqa: ANN401 - as it comes from JSON
    return tuple((str(first), str(second)) for first, second in pairs)


def _cannot_fix(state: Fact, fact: Fact) -> None:
    prompt = str(fact.get("prompt", "")) or state["prompt"]
    state["cannot_fix"] += ((prompt, str(fact["gate"]), str(fact["reason"])),)


def _baseline(state: Fact, fact: Fact) -> None:
    baseline = Baseline(
        gate=str(fact["gate"]),
        failures=_pairs(fact.get("failures", [])),
        why_not=str(fact.get("why_not", "")),
    )
    state["baselines"].setdefault(str(fact["definition"]), baseline)


def _warning(state: Fact, fact: Fact) -> None:
    hook, text = str(fact["hook"]), str(fact["text"])
    if not text:
        state["warnings"] = ()
        return
    if kind_of(hook) == "turn-end":  # the last word on it is enough; each sub-agent has its own
        state["warnings"] = tuple(warning for warning in state["warnings"] if warning[0] != hook)
    state["warnings"] += ((hook, text),)


def _stop(state: Fact, fact: Fact) -> None:
    reason = str(fact["reason"])
    state["stop"] = reason and (state["stop"] or reason)


def _watched(state: Fact, fact: Fact) -> None:
    digests = fact.get("found")
    state["watched"] = digests if isinstance(digests, dict) else {}


def _rules(state: Fact, fact: Fact) -> None:
    state["rules"] += (fact,)


def _appends(field: str, key: str) -> Fold:
    return lambda state, fact: state.update({field: (*state[field], str(fact[key]))})


SESSION: Projection[Session] = Projection(
    Session,
    {
        EventEntry: _event,
        SnapshotEntry: _snapshot,
        PromptEntry: _prompt,
        DeferredEntry: _appends("deferred", "prompt"),
        RoundEntry: _round,
        CannotFixEntry: _cannot_fix,
        BaselineEntry: _baseline,
        WarningEntry: _warning,
        StopEntry: _stop,
        NoteEntry: _appends("notes", "text"),
        WatchedEntry: _watched,
        RulesEntry: _rules,
    },
)
fold = SESSION.fold


# Where the session began, and what it is about.


class Timeline(Record):
    """Where a session began, and what it was asked for."""

    base: WorktreeState | None = None
    base_note: str = ""  # what it stands in for, if the beginning was not heard of
    requests: tuple[str, ...] = ()  # the person's prompts, word for word


def _base(state: Fact, fact: Fact) -> None:
    if fact["tree"] and state["base"] is None:
        state["base"], state["base_note"] = point_of(fact), str(fact.get("note", ""))


def _request(state: Fact, fact: Fact) -> None:
    prompt_id = str(fact.get("prompt_id", ""))
    if fact.get("automatic") or (prompt_id and prompt_id in state["prompt_ids"]):
        return  # not asked for by a person, or delivered twice
    state["prompt_ids"] |= {prompt_id}
    state["requests"] += (str(fact.get("text", "")),)


TIMELINE: Projection[Timeline] = Projection(
    Timeline,
    {
        SnapshotEntry: _base,
        PromptEntry: _request,
    },
    prompt_ids=frozenset(),
)
