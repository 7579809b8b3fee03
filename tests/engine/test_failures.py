"""Failures are told apart: real outputs of real tools, and what changes between two attempts."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from gitgates.core.failure import Failure
from gitgates.engine.findings.failures import (
    MOST_BYTES,
    MOST_BYTES_OF_OWN,
    MOST_FAILURES,
    FailureChanges,
    compare_failures,
    split,
)
from gitgates.engine.findings.presets import PRESETS
from gitgates.features.gates.attempt import does_not_converge

OUTPUTS = Path(__file__).resolve().parents[1] / "outputs"
ROOT = "/home/user/project"

# Different formats of one run: the fingerprints are the same in each.
PYTEST = [
    "FAILED sub/test_multi.py::test_long - AssertionError: assert {'a': 1, 'b': [1...",
    "FAILED test_calc.py::test_add - assert (1 + 2) == 4",
    "FAILED test_calc.py::test_words - AssertionError: the words differ",
    "FAILED test_calc.py::test_table[1-one - two] - assert 1 == 2",
    "FAILED test_calc.py::test_table[3-\\xfc[x]] - assert 3 == 2",
    "FAILED test_calc.py::TestClass::test_method - ValueError: cannot read /tmp/py...",
    "ERROR test_calc.py::test_uses_broken - RuntimeError: no database",
]
RUFF = [
    "a.py:1:8: F401 `os` imported but unused",
    "a.py:2:8: F401 `sys` imported but unused",
    "a.py:6:5: F841 Local variable `y` is assigned to but never used",
    "a.py:11:5: F821 Undefined name `undefined_name`",
    "b.py:3:1: invalid-syntax unexpected EOF while parsing",
]
MYPY = [
    (
        'c.py:2: Cannot find implementation or library stub for module named "nosuchmod" '
        "[import-not-found]"
    ),
    (
        'c.py:9: Argument 1 of "m" is incompatible with supertype "A"; supertype defines the '
        'argument type as "int" [override]'
    ),
    'c.py:14: List item 0 has incompatible type "str"; expected "int" [list-item]',
    'a.py:7: Incompatible return value type (got "int", expected "str") [return-value]',
]
TSC = [
    "src/a.ts:1:7: TS2322 Type 'string' is not assignable to type 'number'.",
    (
        "src/a.ts:3:3: TS2345 Argument of type 'number' is not assignable to parameter of type "
        "'string'."
    ),
    "src/a.ts:5:27: TS2322 Type 'number' is not assignable to type 'string'.",
    "src/b.ts:1:25: TS2307 Cannot find module './missing' or its corresponding type declarations.",
    (
        "src/b.ts:2:14: TS2322 Type '{ a: { b: number; }; }' is not assignable to type "
        "'{ a: { b: string; }; }'."
    ),
]
ESLINT = [
    "lib/a.js:1:11: quotes Strings must use doublequote",
    "lib/a.js:1:16: semi Missing semicolon",
    "lib/a.js:2:1: no-undef 'frob' is not defined",
    (
        "lib/a.js:3:1: max-lines-per-function Function 'g' has too many lines (4). Maximum "
        "allowed is 2"
    ),
    "lib/a.js:5:10: quotes Strings must use doublequote (number 2 of this kind)",
    "lib/a.js:5:15: semi Missing semicolon (number 2 of this kind)",
    "lib/broken.js:1:7: Parsing error: Unexpected token =",
]
CARGO = [
    "src/lib.rs:3:21: error[E0308]: mismatched types",
    "src/lib.rs:4:5: error[E0425]: cannot find function `missing` in this scope",
    "src/lib.rs:6:68: error[E0382]: borrow of moved value: `v`",
]
TITLES: dict[str, list[str]] = {
    **dict.fromkeys(
        ["pytest-default", "pytest-q", "pytest-short", "pytest-line", "pytest-v-no-traceback"],
        PYTEST,
    ),
    "pytest-xdist": [PYTEST[at] for at in (0, 2, 3, 5, 1, 4, 6)],
    "pytest-collection": ["ERROR test_broken.py", "ERROR test_syntax.py"],
    "pytest-collection-x": ["ERROR test_broken.py"],
    "pytest-subtests": [
        "SUBFAILED[squares] (i=0) test_sub.py::test_subs - assert 0 == 1",
        "SUBFAILED[squares] (i=2) test_sub.py::test_subs - assert 2 == 1",
        "FAILED test_sub.py::test_subs - contains 2 failed subtests",
        "FAILED test_sub.py::test_strict - [XPASS(strict)]",
        "FAILED test_sub.py::test_logs - assert False",
        "FAILED test_sub.py::test_teardown - assert 0",
        "ERROR test_sub.py::test_teardown - OSError: teardown",
    ],
    "ruff-concise": RUFF,
    "ruff-full": [*RUFF[:4], RUFF[4].replace("3:1", "2:8")],
    "ruff-pylint": [title.replace(":8:", ":").replace(":5:", ":") for title in RUFF[:4]]
    + [RUFF[4].replace(":1:", ":")],
    "ruff-format": [RUFF[4].replace("3:1", "2:8")],
    "ruff-format-check": [
        "e.py:1:2: unformatted File would be reformatted",
        "sub.py:1:2: unformatted File would be reformatted",
    ],
    "mypy": MYPY,
    "mypy-pretty": MYPY,
    "mypy-context": [title.rpartition(" [")[0] for title in MYPY],
    "mypy-syntax": [
        "d.py:1: Expected an identifier [syntax]",
        "d.py:2: Unexpected EOF while parsing [syntax]",
    ],
    "tsc": TSC,
    "tsc-pretty": TSC,
    "tsc-option": ["TS5023 Unknown compiler option '--noSuchOption'."],
    "eslint-stylish": ESLINT,
    "eslint-colour": ESLINT,
    "cargo-build": CARGO,
    "cargo-colour": CARGO,
    "cargo-short": [
        f"{CARGO[0]}: expected `String`, found `i32`",
        f"{CARGO[1]}: not found in this scope",
        f"{CARGO[2]}: value borrowed here after move",
    ],
    "cargo-syntax": ["src/lib.rs:1:25: error: this file contains an unclosed delimiter"],
    "cargo-clippy": [
        "src/lib.rs:1:34: error: unneeded `return` statement",
        (
            "src/lib.rs:1:13: error: writing `&Vec` instead of `&[_]` involves a new object where "
            "a slice will do"
        ),
        "src/lib.rs:1:41: error: length comparison to zero",
    ],
    "cargo-fmt": ["not formatted: src/lib.rs", "not formatted: tests/it.rs"],
    "cargo-test": [
        "tests::adds: assertion `left == right` failed left: 3 right: 4",
        "tests::does_not_panic: note: test did not panic as expected at src/lib.rs:21:8",
        "tests::fails_with_text: no such thing: 0x557eaad8bbe0",
        'tests::returns: Error: "bad"',
        "whole: sum is wrong",
        "src/lib.rs - add (line 3): assertion `left == right` failed left: 3 right: 4",
    ],
    "go-test": [
        "example.com/demo/calc TestAdd: Add(1, 2) = 3, want 4",
        "example.com/demo/calc TestSplit/trailing_sep: expected: [a b c], got: [a b c ]",
        "example.com/demo/calc TestSplit/empty#01: expected: [], got: [ ]",
        "example.com/demo/calc TestTestify: Not equal:",
    ],
    "go-test-v": [
        "example.com/demo/calc TestAdd: Add(1, 2) = 3, want 4",
        "example.com/demo/calc TestSplit/trailing_sep: expected: [a b c], got: [a b c ]",
    ],
    "go-test-build": [
        "broken/a.go:6:2: undefined: missing",
        (
            'broken/a.go:7:15: cannot use "x" (untyped string constant) as int value in variable '
            "declaration"
        ),
        'vet/a_test.go:8:2: fmt.Printf format %d has arg "x" of wrong type string',
        "setup/a_test.go:4:2: no required module provides package example.com/other; to add it:",
        "example.com/demo/exits: failed",
    ],
    "go-test-panic": [
        (
            "example.com/demo/boom TestPanics: panic: runtime error: index out of range [3] with "
            "length 2 [recovered]"
        ),
        "example.com/demo/slow: panic: test timed out after 1s",
    ],
}

# Rules stand elsewhere in these, so that their titles differ.
UNLISTED = ("mypy-columns", "cargo-test-q", "pytest-colour")


def _read(name: str) -> bytes:
    return (OUTPUTS / f"{name}.txt").read_bytes()


def _preset(name: str) -> str:
    return next(preset for preset in PRESETS if name.startswith(preset))


def _titles(name: str) -> list[str]:
    return [failure.title for failure in split(_read(name), _preset(name), root_abs=ROOT)]


def _prints(name: str) -> set[str]:
    found = split(_read(name), _preset(name), root_abs=ROOT)
    return {failure.fingerprint for failure in found}


def test_a_preset_finds_what_its_tool_prints() -> None:
    for name, titles in TITLES.items():
        assert _titles(name) == titles, name


def test_a_limit_on_the_coverage_counts_beside_tests() -> None:
    """pytest-cov prints it before the short summary; without failed tests, there is none."""
    limit = "FAIL Required test coverage of 90% not reached. Total coverage: 66.67%"
    early = "ERROR: Coverage failure: total of 67 is less than fail-under=90"
    test = "FAILED test_m.py::test_bad - assert 1 == 9"
    heading = "=== short test summary info ==="
    output = f"F\n{early}\n[100%]\n{limit}\n{heading}\n{test}\n1 failed in 1.15s"
    titles = [failure.title for failure in split(output.encode(), "pytest")]
    assert titles == [test, early, limit]


def test_every_kept_output_is_split() -> None:
    for path in OUTPUTS.glob("*.txt"):
        found = split(path.read_bytes(), _preset(path.stem))
        assert len({failure.fingerprint for failure in found}) == len(found), path.stem
        assert all(len(failure.fingerprint) == 16 for failure in found), path.stem
        whole = split(path.read_bytes(), "")
        assert [failure.fingerprint for failure in found] != [whole[0].fingerprint], path.stem


def test_one_run_in_other_formats_has_the_same_fingerprints() -> None:
    for first, *others in (
        ("pytest-default", "pytest-q", "pytest-short", "pytest-line", "pytest-xdist"),
        ("ruff-full", "ruff-concise", "ruff-pylint"),
        ("mypy", "mypy-columns", "mypy-pretty"),
        ("tsc", "tsc-pretty"),
        ("eslint-stylish", "eslint-colour"),
        ("cargo-build", "cargo-colour"),
    ):
        assert [name for name in others if _prints(name) != _prints(first)] == []


def test_other_formats_give_as_many() -> None:
    assert [len(_titles(name)) for name in UNLISTED] == [4, 4, 7]


def test_another_run_has_the_same_fingerprints() -> None:
    again = _read("pytest-q")
    for before, after in (
        (b"0.56s", b"1m 2s"),
        (b"pytest-7/", b"pytest-1234/"),
        (b".py:5", b".py:6"),
    ):
        assert before in again
        again = again.replace(before, after)
    assert {f.fingerprint for f in split(again, "pytest")} == _prints("pytest-q")


def test_a_message_cut_by_a_longer_temporary_path_is_the_same() -> None:
    start = b"=== short test summary info ===\nFAILED a.py::test - OSError: no "
    one = split(start + b"/tmp/pytest-of-me/pytest-9/test0/x.txt at <ob...", "pytest")
    other = split(start + b"/tmp/pytest-of-me/pytest-10/test0/x.txt at <o...", "pytest")
    assert one[0].fingerprint == other[0].fingerprint


def test_a_message_that_was_cut_still_tells_failures_apart() -> None:
    start = b"=== short test summary info ===\nFAILED a.py::test - assert 'a' < "
    one, other = (split(start + end, "pytest")[0] for end in (b"'b' and lo...", b"'c' and lo..."))
    assert one.fingerprint != other.fingerprint


def test_another_number_in_the_message_is_another_failure() -> None:
    start = b"=== short test summary info ===\nFAILED a.py::test - assert 3 == "
    assert split(start + b"4", "pytest") != split(start + b"5", "pytest")


def test_parameters_are_names_and_stay_as_they_are() -> None:
    start = b"=== short test summary info ===\n"
    lines = b"FAILED a.py::test[10s] - late\nFAILED a.py::test[20s] - late\n"
    assert len(split(start + lines, "pytest")) == 2


def test_what_a_test_prints_is_no_summary() -> None:
    output = b"FAILED printed::by - a test\n=== short test summary info ===\nFAILED a.py::b - x\n"
    assert [failure.title for failure in split(output, "pytest")] == ["FAILED a.py::b - x"]


def test_a_rule_broken_once_more_in_a_file_is_new() -> None:
    before = split(b"a.py:1:1: E501 Line too long\n", "ruff")
    now = split(b"a.py:1:1: E501 Line too long\na.py:9:1: E501 Line too long\n", "ruff")
    assert compare_failures(before, now) == FailureChanges(
        new=(now[1],), unchanged=(now[0],), resolved=()
    )
    assert now[1].title == "a.py:9:1: E501 Line too long (number 2 of this kind)"


def test_what_is_said_twice_is_one_failure() -> None:
    assert len(split(_read("cargo-build") * 2, "cargo")) == 3


def test_tests_of_one_name_in_two_targets_are_two_failures() -> None:
    """With `-q`, cargo does not name the target."""
    targets = [
        f"---- unit stdout ----\nError: {why}\n\nfailures:\n    unit\n" for why in ("a", "a", "b")
    ]
    assert [each.title for each in split("\n".join(targets).encode(), "cargo")] == [
        "unit: Error: a",
        "unit: Error: a (number 2 of this kind)",
        "unit: Error: b",
    ]


def test_gates_do_not_share_fingerprints() -> None:
    assert split(b"error", "", "a")[0].fingerprint != split(b"error", "", "b")[0].fingerprint


def test_another_checkout_has_the_same_fingerprints() -> None:
    here = split(_read("eslint-stylish"), "eslint", root_abs=ROOT)
    moved = _read("eslint-stylish").replace(ROOT.encode(), b"/tmp/other/place")
    assert split(moved, "eslint", root_abs="/tmp/other/place/") == here


def test_an_own_pattern_finds_one_failure_each_time() -> None:
    output = b"ok a\nnot ok b (1.2s)\nok c\nnot ok d (30ms)\n"
    first = split(output, r"^not ok .*")
    assert [failure.title for failure in first] == ["not ok b (1.2s)", "not ok d (30ms)"]
    later = split(output.replace(b"1.2s", b"4s"), r"^not ok .*")
    assert compare_failures(first, later).unchanged == later


def test_where_nothing_is_found_the_whole_output_is_one_failure() -> None:
    output = b"\x1b[1mchecking\x1b[0m\nboom: error in a\nmake: failed\n"
    for pattern in ("", "nothing like this", "x*", "(", "pytest", "cargo"):
        (failure,) = split(output, pattern)
        assert failure.title == "boom: error in a", pattern
        assert split(output + b"\n", pattern) == (failure,), pattern


def test_a_silent_gate_has_one_failure_too() -> None:
    assert [failure.title for failure in split(b"", "pytest")] == ["no output"]


def test_a_title_is_one_clean_line() -> None:
    hostile = "FAIL \x1b[31m\u202e" + "x" * 500 + "\x00"
    (failure,) = split(hostile.encode(), "FAIL.*")
    assert failure.title == "FAIL " + "x" * 194 + "…"


HOSTILE = [b"a", b" ", b"/tmp/", b"\r", b"FAILED a::b[ - ", b"---- a stdout ----\n"]


@pytest.mark.samples(2, "nightly")
@pytest.mark.slow
@pytest.mark.parametrize("preset", ["", *PRESETS])
def test_hostile_output_is_read_in_time(preset: str) -> None:
    for seed in HOSTILE:
        begin = time.process_time()
        found = split((seed * 2**17)[: 2**17], preset)
        assert 1 <= len(found) <= MOST_FAILURES
        assert time.process_time() - begin < 3, seed


def _failures(names: str) -> tuple[Failure, ...]:
    return tuple(Failure(fingerprint=name, title=name) for name in names)


def test_compare_says_what_is_new_unchanged_and_gone() -> None:
    change = compare_failures(_failures("abc"), _failures("cd"))
    assert change == FailureChanges(
        new=_failures("d"), unchanged=_failures("c"), resolved=_failures("ab")
    )
    assert compare_failures((), ()) == FailureChanges()


BACK = "the same failures recurred"
WAVES = "the number of failures oscillates"


ROUNDS = [
    ("", ""),
    ("a", ""),
    ("a a a a", ""),
    ("a b", ""),
    ("a b a", BACK),
    ("ab c ab", BACK),
    ("a b c a", BACK),
    ("a b b", ""),
    ("a b a a", ""),  # it came back earlier, and was said then
    ("a - -", ""),
    ("- a -", ""),  # nothing fails now
    ("a bc d ef", WAVES),
    ("ab c de f", WAVES),
    ("z a bc d ef", WAVES),
    ("abcd bcd cd d", ""),
    ("a bc d e", ""),
    ("bc d ef", ""),
]


def test_attempts_that_lead_nowhere_are_told() -> None:
    found = []
    for rounds, _why in ROUNDS:
        sets = tuple(frozenset(names.strip("-")) for names in rounds.split())
        found.append((rounds, does_not_converge(sets)))
    assert found == ROUNDS


PAGE = Path(__file__).resolve().parents[2] / "docs" / "explanation" / "failures.md"


def test_the_page_has_each_preset_and_the_limits() -> None:
    page = PAGE.read_text()
    assert re.findall(r"^\| `([a-z-]+)` \|", page, re.MULTILINE) == list(PRESETS)
    text = " ".join(page.split())
    for limit in (f"{MOST_BYTES // 1024} KiB", f"{MOST_BYTES_OF_OWN // 1024} KiB"):
        assert limit in text
    assert f"the first {MOST_FAILURES:,}" in text


def test_each_format_that_the_page_names_is_tested() -> None:
    page, tested = PAGE.read_text(), " ".join(TITLES)
    for preset in PRESETS:
        row = next(line for line in page.splitlines() if line.startswith(f"| `{preset}` |"))
        for name in re.findall(r"`(full|concise|pylint|short|stylish)`", row):
            assert f"{preset}-{name}" in tested or f"{preset}-{name}" in UNLISTED
