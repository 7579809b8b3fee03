"""What a change has done to the lines of a file."""

from __future__ import annotations

from gitgates.features.trace.changed_lines import changed_blocks, of_bytes


def test_what_takes_too_long_to_compare_is_one_block() -> None:
    before, after = (
        of_bytes(b"".join(b"%d\n" % (number * step % 997) for number in range(50_000)))
        for step in (3, 5)
    )
    [block] = changed_blocks(before, after)
    assert (block["old"], block["new"]) == ([2, 49_999], [2, 49_999])
