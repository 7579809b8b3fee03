"""Blame by replaying records: whatever is written, each line has the writer that it had."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gitgates.features.trace.blame import blame
from gitgates.features.trace.content import GONE, changed_blocks, file_change, of_bytes

# Where lines are replaced, how many, and by how many.
EDITS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9), st.integers(0, 9)), max_size=12)


def record(number: int, file: dict[str, Any]) -> dict[str, Any]:
    return {"agent": str(number), "files": [file]}


@given(edits=EDITS)
def test_each_line_has_its_writer(edits: list[tuple[int, int, int]]) -> None:
    lines: list[tuple[str, str]] = []  # with its writer
    before, records = GONE, []
    for number, (at, gone, new) in enumerate(edits):
        lines[at : at + gone] = [(f"edit {number}, line {one}", str(number)) for one in range(new)]
        now = of_bytes("".join(f"{line}\n" for line, _by in lines).encode())
        if change := file_change("a.py", before, now):
            records.append(record(number, change))
            before = now
    found = [
        one.record["agent"] if one.record else ""
        for one in blame(dict(enumerate(records)), "a.py", before, stores=[], object_format="sha1")
        for _ in range(one.start, one.end + 1)
    ]
    assert found == [by for _line, by in lines]


def test_what_takes_too_long_to_compare_is_one_block() -> None:
    before, after = (
        of_bytes(b"".join(b"%d\n" % (number * step % 997) for number in range(50_000)))
        for step in (3, 5)
    )
    [block] = changed_blocks(before, after)
    assert (block["old"], block["new"]) == ([2, 49_999], [2, 49_999])
