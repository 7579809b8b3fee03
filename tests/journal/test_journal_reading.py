"""Each line of a journal is read for itself, however many are torn and wherever."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gitgates.store.log import Journal

if TYPE_CHECKING:
    from pathlib import Path

FACTS = [
    {"v": 1, "what": "note", "text": 'a "quoted", [bracketed] {text}'},
    {"v": 1, "what": "round", "failures": [["gate", [["mark", "title"]]]]},
    {"v": 2, "what": "of a newer gitgates"},
]
WHOLE = [json.dumps(fact).encode() for fact in FACTS]
ODD = [b"7", b"null", b"[]", b"{}", b"{},{}", b"]", b"[", b'"', b"\xff"]


def read(path: Path, lines: list[bytes]) -> tuple[list[object], int]:
    path.write_bytes(b"\n".join(lines))
    journal = Journal(str(path))
    return list(journal.read()), journal.torn


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_each_line_alone_says_what_all_say_together(tmp_path: Path, data: st.DataObject) -> None:
    torn = st.sampled_from(WHOLE).flatmap(
        lambda line: st.integers(1, len(line)).map(lambda length: line[:length])
    )
    lines = data.draw(st.lists(st.sampled_from([*WHOLE, *ODD]) | torn, max_size=6))
    alone = [read(tmp_path / "one", [line]) for line in lines]
    facts = [fact for found, _torn in alone for fact in found]
    assert read(tmp_path / "all", lines) == (facts, sum(torn for _found, torn in alone))
