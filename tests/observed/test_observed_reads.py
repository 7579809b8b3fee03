"""What a command has read, by what strace writes: text in, paths out.

In `reads.txt`, each case is a name, lines of strace, and what they say: `= PATH: HOW` is read and
counts, `+ PATH` is made anew or removed by the run, `~ PATH` is changed by it in part; `! WHY`, it
cannot be reused; `? WHY`, the result may be another one than without strace.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from gitgates.observed.lines import calls, unescaped
from gitgates.observed.reads import Observation, read_output
from gitgates.observed.syscalls import ABSENT, CONTENT, LISTED, PROGRAM, THERE

START = '1 execve("/bin/sh", 0x7ffc, 0x7ffd) = 0\n'
END = "1 +++ exited with 0 +++\n"
BITS = {"there": THERE, "absent": ABSENT, "content": CONTENT, "listed": LISTED, "program": PROGRAM}
_, *BLOCKS = (Path(__file__).parent / "reads.txt").read_text().split("\n## ")
CASES = dict(block.split("\n", 1) for block in BLOCKS)


def observe(text: str, start: str = START, end: str = END) -> Observation:
    return read_output(f"{start}{text.rstrip()}\n{end}".splitlines(keepends=True), "/r")


def say(seen: Observation) -> set[str]:
    """Return what was seen, as `reads.txt` says it."""
    lines = {f"! {seen.unreusable}", f"? {seen.spoilt}"} - {"! ", "? "}
    for path, how in seen.reads.items():
        words = [word for word, bit in BITS.items() if how & bit]
        lines.add(f"= {path}: {' '.join(words) or 'refused'}")
    lines |= {f"+ {path}" for path in seen.made}
    return lines | {f"~ {path}" for path in seen.written - seen.made}


def test_no_two_cases_have_one_name() -> None:
    assert len(CASES) == len(BLOCKS) > 80


@pytest.mark.samples(40)
@pytest.mark.parametrize("case", CASES)
def test_cases(case: str) -> None:
    lines = CASES[case].strip().split("\n")
    expected = {unescaped(line) for line in lines if line[0] in "=+~!?"}
    text = "\n".join(line for line in lines if line[0] not in "=+~!?")
    assert say(observe(text)) == expected | {"= /bin/sh: there content program"}


def test_what_could_not_be_started_has_no_result() -> None:
    failed = '1 execve("/bin/sh", 0x7f, 0x7f) = -1 ENOEXEC (Exec format error)\n'
    assert observe("", start=failed).spoilt == "it could not be started under strace"
    assert observe("", start="", end="").spoilt == "it could not be started under strace"


def test_an_output_that_is_cut_off_is_no_result() -> None:
    assert observe("", end="").spoilt.startswith("strace ended before it")
    assert observe("1 fork() = 2").spoilt.startswith("strace ended before it")
    assert observe('7 stat("a", 0x7f) = 0').spoilt.startswith("strace ended before it")


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitgates.observed.reads._MOST_PATHS", 100)
    monkeypatch.setattr("gitgates.observed.reads._MOST_HELD", 100)
    many = observe("\n".join(f'1 stat("{number}", 0x7f) = 0' for number in range(1000)))
    assert many.unreusable == "reads and writes more than 100 files"
    assert len(many.reads) <= 100
    held = observe("\n".join(f'7 stat("{number}", 0x7f) = 0' for number in range(1000)))
    assert held.unreusable == "has a process whose parent is not known"


def test_lines_are_taken_one_by_one() -> None:
    lines = iter([START, '1 stat("a", 0x7f) = 0\n', "never read"])
    taken = calls(lines)
    assert [next(taken).name, next(taken).name] == ["execve", "stat"]
    assert next(lines) == "never read"


def test_escapes() -> None:
    assert unescaped(r"\1\0012\12\t\"\\\303\244") == '\x01\x012\n\t"\\ä'
