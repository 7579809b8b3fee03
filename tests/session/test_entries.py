"""Each kind of journal entry: how it is written, and that older and newer ones can be read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from each_case import each_case

from gitgates.core.parts import feature_parts
from gitgates.core.record import LazyRecord, Record
from gitgates.features.advice.facts import HOOK_RUNS
from gitgates.features.review.facts import EVIDENCE
from gitgates.session.facts import (
    SESSION,
    TIMELINE,
    EventEntry,
    NoteEntry,
    RulesEntry,
    SnapshotEntry,
)
from gitgates.session.journal import (
    KINDS,
    Projection,
    entry,
    fact_of,
    is_a,
    of_kind,
    version_of,
)
from gitgates.store.log import Journal

PACKAGE = Path(__file__).resolve().parent.parent.parent / "gitgates"
# Written by version 0.1.0, with each kind of entry in each of its forms; and its states.
OLD = Path(__file__).resolve().parent / "journals"
# What it has written, and nobody reads any more.
GONE = {
    *("gates-wrote", "others-wrote", "rest", "tool-background", "tool-harmless", "tool-refused"),
    *("trace", "wrote", "intent-let-go", "intent-point", "intent-write"),
}
GONE_FIELDS = {
    "event": {"shows"},
    "intent-outside": {"tree"},
    "intent-selected": {"tree", "head", "begins"},
    "snapshot": {"own", "running", "stashes", "transcript"},
}
EVENT = EventEntry("Stop", "k", "p", "", "", "", "")
ALL = [*feature_parts("facts")] and list(KINDS)


@entry("probe", version=2)
class ProbeEntry(LazyRecord):
    """An entry of these tests alone."""

    text: str
    number: int = 0


class Probed(Record):
    """The state of these tests alone."""

    texts: tuple[str, ...] = ()


def _probe(state: dict[str, Any], fact: dict[str, Any]) -> None:
    state["texts"] += (fact["text"],)


PROBED: Projection[Probed] = Projection(Probed, {ProbeEntry: _probe})


def test_a_field_that_has_its_default_is_left_out() -> None:
    assert fact_of(SnapshotEntry("t")) == {"what": "snapshot", "tree": "t"}
    empty = dict.fromkeys(("prompt_id", "agent", "agent_type", "tool", "tool_kind"), "")
    assert fact_of(EVENT) == {
        "what": "event",
        "event": "Stop",
        "key": "k",
        **empty,
        "prompt_id": "p",
    }


def test_an_entry_is_an_instance_of_its_own_kind_alone() -> None:
    entries = (NoteEntry("x"), ProbeEntry("x"), ("x",))
    assert [isinstance(item, NoteEntry) for item in entries] == [True, False, False]


def test_the_parts_of_rules_stand_beside_the_other_fields() -> None:
    rules = RulesEntry(5.0, {"gates": {}, "advice": []})
    assert fact_of(rules) == {"what": "rules", "t": 5.0, "gates": {}, "advice": []}


def test_a_version_is_written_where_it_is_not_the_first(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "a/b"))
    journal.append(fact_of(ProbeEntry("x")), fact_of(NoteEntry("y")))
    assert [fact["v"] for fact in journal.read()] == [2, 1]


def test_an_unknown_kind_or_version_is_kept_and_ignored(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "a/b"))
    older, newer = {"what": "probe", "text": "older"}, {"what": "probe", "text": "newer", "v": 3}
    unknown = {"what": "of-a-newer-gitgates", "text": "z"}
    journal.append(older, newer, unknown, fact_of(ProbeEntry("now")))
    facts = journal.read()
    assert [fact["text"] for fact in facts] == ["older", "newer", "z", "now"]
    assert PROBED.fold(facts).texts == ("older", "now")
    assert [fact["text"] for fact in of_kind(facts, ProbeEntry, NoteEntry)] == ["older", "now"]
    assert [is_a(fact, NoteEntry, ProbeEntry) for fact in facts] == [True, False, False, True]
    journal.append(fact_of(NoteEntry("later")))
    assert journal.read()[:4] == facts


def test_an_old_journal_has_every_kind() -> None:
    facts = Journal(str(OLD / "1.jsonl")).read()
    assert len(facts) == len((OLD / "1.jsonl").read_text().splitlines())
    first = {kind for kind in ALL if version_of(kind) == 1}
    assert {KINDS[kind] for kind in first} | GONE == {fact["what"] for fact in facts}


def test_an_old_journal_has_the_same_state() -> None:
    facts = Journal(str(OLD / "1.jsonl")).read()
    parts: dict[str, Projection[Any]]
    parts = {"session": SESSION, "timeline": TIMELINE, "evidence": EVIDENCE, "advice": HOOK_RUNS}
    states = {name: part.fold(facts)._asdict() for name, part in parts.items()}
    states["session"]["rules"] = bool(states["session"]["rules"])  # that version kept no more
    assert json.loads(json.dumps(states, default=sorted)) == json.loads(
        (OLD / "1-states.json").read_text()
    )


@each_case("kind", ALL)
def test_an_old_entry_is_one_of_its_record(kind: Any) -> None:
    """Each field that was written is one of the record, and each that has no default was there."""
    old = of_kind(Journal(str(OLD / "1.jsonl")).read(), kind)
    known = set(kind.record._fields) | GONE_FIELDS.get(KINDS[kind], set())
    flat = {"rules"} & known  # its parts stand beside the other fields
    for fact in old:
        assert flat or set(fact) - {"what", "v", "t"} <= known
    needed = set(kind.record._fields) - set(kind.record._field_defaults) - flat
    assert any(needed <= set(fact) for fact in old)


def _sources() -> dict[str, str]:
    return {str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.rglob("*.py")}


def test_entries_are_built_by_their_records_alone() -> None:
    """The other log is the ledger."""
    by_hand = re.compile(r"""\{\s*"what":|\["what"\]\s*=[^=]|"what"\s*\|""")
    found = {file for file, text in _sources().items() if by_hand.search(text)}
    assert found == {"session/journal.py", "store/log.py"}


def test_a_round_has_one_constructor() -> None:
    found = {file for file, text in _sources().items() if "RoundEntry(**" in text}
    assert found == {"session/call.py"}
    assert not [file for file, text in _sources().items() if re.search(r"RoundEntry\([^RL*]", text)]


def test_each_kind_is_declared_in_facts_and_has_its_own_name() -> None:
    assert {kind.__module__.rpartition(".")[2] for kind in ALL} == {"facts"}
    assert len({KINDS[kind] for kind in ALL}) == len(ALL)
    assert [kind for kind in ALL if not (kind.__doc__ and kind.__name__.endswith("Entry"))] == []
