"""Each kind of journal entry: how it is written, and that unknown and damaged ones are left out."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gitgates.core.parts import feature_parts
from gitgates.core.record import LazyRecord, Record
from gitgates.journal.entries import (
    EventEntry,
    NoteEntry,
    SnapshotEntry,
)
from gitgates.journal.journal import (
    KINDS,
    Projection,
    entry,
    fact_of,
    is_a,
    of_kind,
)
from gitgates.store.log import Journal

PACKAGE = Path(__file__).resolve().parent.parent.parent / "gitgates"
EVENT = EventEntry("Stop", "k", "p", "", "", "", "")
ALL = [*feature_parts("facts")] and list(KINDS)


@entry("probe")
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


def test_an_unknown_kind_is_kept_and_ignored(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "a/b"))
    unknown = {"what": "of-another-gitgates", "text": "z"}
    journal.append(unknown, fact_of(ProbeEntry("now")))
    facts = journal.read()
    assert [fact["text"] for fact in facts] == ["z", "now"]
    assert PROBED.fold(facts).texts == ("now",)
    assert of_kind(facts, ProbeEntry, NoteEntry) == facts[1:]
    assert [is_a(fact, NoteEntry, ProbeEntry) for fact in facts] == [False, True]
    journal.append(fact_of(NoteEntry("later")))
    assert journal.read()[:2] == facts


def test_a_damaged_entry_is_left_out(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "a/b"))
    journal.append({"what": "probe", "tex4": "damaged"}, fact_of(ProbeEntry("whole")))
    facts = journal.read()
    assert of_kind(facts, ProbeEntry) == facts[1:]
    state = PROBED.new()
    assert (PROBED.take(state, facts), state) == (1, {"texts": ("whole",)})


def _sources() -> dict[str, str]:
    return {str(path.relative_to(PACKAGE)): path.read_text() for path in PACKAGE.rglob("*.py")}


def test_entries_are_built_by_their_records_alone() -> None:
    """The other log is the ledger."""
    by_hand = re.compile(r"""\{\s*"what":|\["what"\]\s*=[^=]|"what"\s*\|""")
    found = {file for file, text in _sources().items() if by_hand.search(text)}
    assert found == {"journal/journal.py", "store/log.py"}


def test_a_round_has_one_constructor() -> None:
    found = {file for file, text in _sources().items() if "RoundEntry(**" in text}
    assert found == {"drivers/call.py"}
    assert not [file for file, text in _sources().items() if re.search(r"RoundEntry\([^RL*]", text)]


def test_each_kind_is_declared_in_a_place_of_its_own_and_has_its_own_name() -> None:
    assert {kind.__module__.rpartition(".")[2] for kind in ALL} == {"entries", "facts"}
    assert len({KINDS[kind] for kind in ALL}) == len(ALL)
    assert [kind for kind in ALL if not (kind.__doc__ and kind.__name__.endswith("Entry"))] == []
