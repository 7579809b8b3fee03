"""Where failures are, by which rule, and how severe: of real outputs, and of damaged ones."""

from __future__ import annotations

import itertools
import json
import time
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from json_support import JSON

from gitgates.core.failure import Failure
from gitgates.engine.findings.failures import MOST_BYTES, MOST_BYTES_OF_JSON, MOST_FAILURES, split
from gitgates.engine.findings.presets import OF_JSON, PRESETS, TABLES

OUTPUTS = Path(__file__).resolve().parents[1] / "outputs"
ROOT = "/home/user/project"

# Each failure: path:line:column [rule] severity, where that is no error; - without a path.
PLACES = {
    "actionlint-documented": """
        test.yaml:6:5 [syntax-check]
        test.yaml:12:9 [syntax-check]
    """,
    "biome-ci": """
        src/a.js:2:7 [lint/suspicious/noDoubleEquals]
        src/a.js:2:15 [lint/suspicious/noDebugger]
        src/a.js [format]
        src/broken.js:1:7 [parse]
        src/broken.js:1:9 [parse]
        src/broken.js [format]
    """,
    "biome-format": """
        src/a.js [format]
        src/broken.js:1:7 [parse]
        src/broken.js:1:9 [parse]
        src/broken.js [format]
    """,
    "biome": """
        src/a.js:2:7 [lint/suspicious/noDoubleEquals]
        src/a.js:2:15 [lint/suspicious/noDebugger]
        src/a.js [format]
        src/broken.js:1:7 [parse]
        src/broken.js:1:9 [parse]
        src/broken.js [format]
    """,
    "cargo-build": """
        src/lib.rs:3:21 [E0308]
        src/lib.rs:4:5 [E0425]
        src/lib.rs:6:68 [E0382]
    """,
    "cargo-test": """
        src/lib.rs:12:17
        -
        src/lib.rs:14:28
        -
        tests/it.rs:2:14
        src/lib.rs:5:1
    """,
    "clippy": """
        src/lib.rs:2:9 [unused_variables]
        src/lib.rs:3:5 [clippy::needless_return]
        src/lib.rs:1:13 [clippy::ptr_arg]
        src/lib.rs:3:12 [clippy::len_zero]
    """,
    "eslint-stylish": """
        lib/a.js:1:11 [quotes]
        lib/a.js:1:16 [semi]
        lib/a.js:2:1 [no-undef]
        lib/a.js:3:1 [max-lines-per-function]
        lib/a.js:5:10 [quotes]
        lib/a.js:5:15 [semi]
        lib/broken.js:1:7
    """,
    "go-test-build": """
        broken/a.go:6:2
        broken/a.go:7:15
        vet/a_test.go:8:2
        setup/a_test.go:4:2
        -
    """,
    "golangci-lint-documented": """
        path/to/filea.go:10:4 [linter-a]
        path/to/fileb.go:300:9 [linter-b]
        pkg/printers/printer_test.go:6 [goimports]
        pkg/experimental/myplugin/myplugin.go:13:1
    """,
    "hadolint": """
        Dockerfile:1 [DL3006] warning
        Dockerfile:2 [DL3015] note
        Dockerfile:2 [DL3008] warning
        Dockerfile:2 [DL3014] warning
        Dockerfile:3 [DL3003] warning
        Dockerfile:4 [DL4000]
    """,
    "markdownlint": """
        README.md:1:1 [MD018]
        README.md:1 [MD041]
        README.md:3 [MD022]
        README.md:3 [MD022]
        README.md:4 [MD032]
        README.md:5:1 [MD004]
        README.md:5 [MD032]
        README.md:6:1 [MD033]
    """,
    "mypy-columns": """
        c.py:2:1 [import-not-found]
        c.py:9:17 [override]
        c.py:14:13 [list-item]
        a.py:7:12 [return-value]
    """,
    "prettier": """
        src/a.js
        src/broken.js:1:7
        a.yml
        README.md
    """,
    "pyright": """
        a.py:2:8 [reportMissingImports]
        a.py:6:12 [reportReturnType]
        a.py:15:9 [reportIncompatibleMethodOverride]
        a.py:19:10 [reportAssignmentType]
        a.py:20:17 [reportAssignmentType]
    """,
    "pytest-default": """
        sub/test_multi.py:3
        test_calc.py:5
        test_calc.py:8
        test_calc.py:12
        test_calc.py:12
        test_calc.py:16
        test_calc.py:20
    """,
    "pytest-subtests": """
        test_sub.py
        test_sub.py
        test_sub.py
        test_sub.py
        test_sub.py:13
        test_sub.py:17
        test_sub.py:17
    """,
    "ruff-full": """
        a.py:1:8 [F401]
        a.py:2:8 [F401]
        a.py:6:5 [F841]
        a.py:11:5 [F821]
        b.py:2:8 [invalid-syntax]
    """,
    "sarif-biome": """
        src/a.js:1:1 [lint/style/useConst] warning
        src/a.js:3:5 [lint/correctness/noUnusedVariables] warning
        src/a.js:4:10 [lint/correctness/noUnusedVariables] warning
        src/a.js:2:7 [lint/suspicious/noDoubleEquals]
        src/a.js:2:15 [lint/suspicious/noDebugger]
        src/a.js [format]
        src/broken.js:1:7 [parse]
        src/broken.js:1:9 [parse]
        src/broken.js [format]
    """,
    "sarif-ruff": """
        a.py:1:1 [I001]
        a.py:1:8 [F401]
        a.py:2:8 [F401]
    """,
    "shellcheck": """
        a.sh:3:6 [SC2086] note
        a.sh:4:1 [SC2164] warning
        a.sh:5:1 [SC2034] warning
        a.sh:6:10 [SC2045]
        a.sh:6:15 [SC2035] note
        a.sh:6:31 [SC2086] note
        sub/broken.sh:2:1 [SC1009] note
        sub/broken.sh:2:4 [SC1073]
        sub/broken.sh:2:12 [SC1072]
    """,
    "terraform-plain": """
        main.tf:3
        main.tf:7
    """,
    "tflint-compact-documented": """
        test.tf:1:1 [test_rule]
    """,
    "tflint-documented": """
        test.tf:1 [test_rule]
        test.tf:2 [test_rule] warning
    """,
    "tsc": """
        src/a.ts:1:7 [TS2322]
        src/a.ts:3:3 [TS2345]
        src/a.ts:5:27 [TS2322]
        src/b.ts:1:25 [TS2307]
        src/b.ts:2:14 [TS2322]
    """,
    "yamllint": """
        a.yml:1:7 [colons]
        a.yml:3:1 [indentation]
        a.yml:4:4 [hyphens]
        a.yml:5:1 [key-duplicates]
        a.yml:6:81 [line-length]
        sub/broken.yml:2:1 [syntax]
    """,
}
# Other formats of the same run.
ALIKE = {
    "yamllint": ("yamllint-parsable", "yamllint-colour", "yamllint-github"),
    "shellcheck": ("shellcheck-gcc",),
    "markdownlint": ("markdownlint-cli2",),
    "terraform-plain": ("terraform-colour",),
}
# A digest of the fingerprints and titles in each output, as 0.1 has computed them. Baselines and
# sessions keep fingerprints: they may not change.
FINGERPRINTS = {
    "cargo-build": "4306071bd1ad",
    "cargo-clippy": "17bd6ca84a4c",
    "cargo-colour": "4306071bd1ad",
    "cargo-fmt": "1a057fb73d40",
    "cargo-short": "6bb3fe08ab9b",
    "cargo-syntax": "0008dc6efb3e",
    "cargo-test-q": "294c802fda99",
    "cargo-test": "5ae7f623b97d",
    "eslint-colour": "e9bef22baba5",
    "eslint-stylish": "e9bef22baba5",
    "go-test-build": "c949e9141d44",
    "go-test-panic": "62eaafe6b8ae",
    "go-test-v": "10d2c42435c6",
    "go-test": "28a5cfb95d63",
    "mypy-columns": "0ca081a084bc",
    "mypy-context": "062fc3cd311a",
    "mypy-pretty": "8dc94ba7d75c",
    "mypy-syntax": "3c333c954e71",
    "mypy": "8dc94ba7d75c",
    "pytest-collection-x": "55c7226a103e",
    "pytest-collection": "2181131f0c6f",
    "pytest-colour": "f594fee3b4e3",
    "pytest-default": "58abdd879416",
    "pytest-line": "58abdd879416",
    "pytest-q": "58abdd879416",
    "pytest-short": "58abdd879416",
    "pytest-subtests": "b94aae7471e0",
    "pytest-v-no-traceback": "58abdd879416",
    "pytest-vv-ci": "1e8be652ff22",
    "pytest-xdist": "00950f2442d5",
    "ruff-concise": "d200926c7b85",
    "ruff-format-check": "288cc60d3a95",
    "ruff-format": "4cd2bdc1c8bf",
    "ruff-full": "373c8f46e81e",
    "ruff-pylint": "e7b19a614a69",
    "tsc-option": "083025f73c71",
    "tsc-pretty": "f34b18c944eb",
    "tsc": "f34b18c944eb",
}


def _split(name: str, gate: str = "") -> tuple[Failure, ...]:
    preset = next(preset for preset in PRESETS if name.startswith(preset))
    return split((OUTPUTS / f"{name}.txt").read_bytes(), preset, gate, ROOT)


def _place(failure: Failure) -> str:
    numbers = [str(number) for number in (failure.line, failure.column) if number]
    words = [":".join([failure.path, *numbers]) if failure.path else "-"]
    words += [f"[{failure.rule}]"] if failure.rule else []
    return " ".join(words + ([] if failure.severity == "error" else [failure.severity]))


def test_each_failure_has_its_place_and_rule() -> None:
    for name, places in PLACES.items():
        expected = [line.strip() for line in places.strip().split("\n")]
        found = _split(name)
        assert [_place(failure) for failure in found] == expected, name
        assert all(failure.message for failure in found), name


def test_other_formats_of_a_run_have_the_same_fingerprints() -> None:
    for name, others in ALIKE.items():
        prints = [failure.fingerprint for failure in _split(name)]
        for other in others:
            assert [failure.fingerprint for failure in _split(other)] == prints, other


def test_fingerprints_and_titles_are_those_of_the_first_release() -> None:
    found = {}
    for name in FINGERPRINTS:
        marks = [failure[:2] for failure in _split(name, "gate")]
        found[name] = sha256(repr(marks).encode()).hexdigest()[:12]
    assert found == FINGERPRINTS


def test_each_preset_was_written_from_an_output() -> None:
    names = {*PLACES, *FINGERPRINTS}
    assert {preset for preset in PRESETS if not any(n.startswith(preset) for n in names)} == set()


def test_a_test_of_go_is_where_its_module_has_the_package(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    (tmp_path / "api/go.mod").write_text("// a comment\nmodule example.com/demo // x\n\ngo 1.22\n")
    output = (OUTPUTS / "go-test.txt").read_bytes()
    found = split(output, "go-test", "", str(tmp_path), folder="api")
    assert [(each.path, each.line) for each in found] == [
        ("api/calc/calc_test.go", line) for line in (9, 25, 25, 31)
    ]
    outside = split(output, "go-test", "", str(tmp_path))
    assert {(each.path, each.line) for each in outside} == {("", 0)}
    assert [each[:2] for each in outside] == [each[:2] for each in found]
    panic = (OUTPUTS / "go-test-panic.txt").read_bytes()
    assert [(each.path, each.line) for each in split(panic, "go-test", "", ROOT)] == [
        ("boom/boom_test.go", 7),
        ("", 0),
    ]


PATHS = [
    ("a.py", "web", "web/a.py"),
    ("./a.py", ".", "a.py"),
    ("../a.py", "web", "a.py"),
    (f"{ROOT}/web/a.py", "web", "web/a.py"),
    (f"{ROOT}/a.py", ".", "a.py"),
    ("../a.py", ".", ""),
    ("../../a.py", "web", ""),
    ("/usr/lib/a.py", "web", ""),
    ("a\u202eb.py", ".", "ab.py"),
    (f"{'a' * 1001}.py", ".", ""),
]


def test_a_path_is_one_from_the_root_or_none() -> None:
    for printed, folder, path in PATHS:
        line = f"{printed}:1:1: F401 unused\n".encode()
        found = [each.path for each in split(line, "ruff", "", ROOT, folder=folder)]
        assert found == [path], (printed, folder)


@pytest.mark.parametrize("place", ["0", "cell 3:1:2", f"{'9' * 12}:1"])
def test_an_odd_line_is_not_known(place: str) -> None:
    (failure,) = split(f"a.py:{place}: F401 unused\n".encode(), "ruff")
    assert (failure.path, failure.line) == ("a.py", 0)


def _sarif(*results: dict[str, Any], **run: Any) -> bytes:
    rules = [{"id": "R1", "defaultConfiguration": {"level": "note"}}, {"id": "R2"}]
    driver = {"name": "tool", "rules": rules}
    return json.dumps({"runs": [{"tool": {"driver": driver}, "results": results, **run}]}).encode()


def _at(uri: str, **artifact: Any) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": uri, **artifact}, "region": {"startLine": 3}}
    return {"locations": [{"physicalLocation": place}]}


TEXT = {"message": {"text": "wrong"}}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ({**TEXT, **_at("a.py"), "ruleId": "X"}, "a.py:3 [X] warning wrong"),
        ({**TEXT, **_at("a.py"), "ruleIndex": 0}, "a.py:3 [R1] note wrong"),
        ({**TEXT, **_at("a.py"), "ruleId": "R1", "level": "error"}, "a.py:3 [R1] wrong"),
        (
            {
                **_at("a.py"),
                "ruleId": "R2",
                "message": {"id": "default", "arguments": ["a", "b"]},
            },
            "a.py:3 [R2] warning a b",
        ),
        ({**TEXT, **_at(f"file://{ROOT}/b%20c.py")}, "b c.py:3 warning wrong"),
        ({**TEXT, **_at("file:///usr/a.py")}, "- warning wrong"),
        ({**TEXT, **_at("d.py", uriBaseId="SRC")}, "src/d.py:3 warning wrong"),
        ({**TEXT, **_at("d.py", uriBaseId="%SRCROOT%")}, "d.py:3 warning wrong"),
        (TEXT, "- warning wrong"),
    ],
)
def test_a_result_of_sarif_is_a_failure(result: dict[str, Any], expected: str) -> None:
    bases = {"SRC": {"uri": f"file://{ROOT}/src/"}}
    log = _sarif(result, originalUriBaseIds=bases)
    (failure,) = split(log, "sarif", "", ROOT)
    place = _place(failure) if failure.path else _place(failure._replace(line=0))
    assert f"{place} {failure.message}" == expected


@pytest.mark.parametrize(
    "result",
    [
        {"kind": "pass"},
        {"suppressions": [{"kind": "inSource"}]},
        {"suppressions": [{"kind": "external", "status": "accepted"}]},
        {"baselineState": "absent"},
    ],
)
def test_what_is_no_failure_in_sarif_is_left_out(result: dict[str, Any]) -> None:
    counted = {"message": {"text": "counts"}, "suppressions": [{"status": "rejected"}]}
    log = _sarif({**TEXT, **result}, counted)
    assert [failure.message for failure in split(log, "sarif")] == ["counts"]


def test_the_order_of_results_does_not_change_their_fingerprints() -> None:
    one, two = {**TEXT, **_at("a.py")}, {**TEXT, **_at("b.py")}
    prints = [{f.fingerprint for f in split(_sarif(*s), "sarif")} for s in ((one, two), (two, one))]
    assert prints[0] == prints[1]


def test_a_log_may_follow_other_output_and_be_followed_by_some() -> None:
    log = _sarif({**TEXT, **_at("a.py")})
    noise = b"\x1b[1mChecking\x1b[0m {1, 2}\n{not JSON}\n"
    (failure,) = split(noise + log + b"\n1 problem\n", "sarif")
    assert failure.path == "a.py"


def test_a_log_longer_than_other_outputs_is_read_whole() -> None:
    results = [{**TEXT, **_at(f"{at}.py"), "note": "x" * 2000} for at in range(600)]
    log = _sarif(*results)
    assert MOST_BYTES < len(log) < MOST_BYTES_OF_JSON
    assert len(split(log, "sarif")) == 600


DAMAGED = [
    _sarif({**TEXT, **_at("a.py")})[:-20],
    b"[" * 10_000,  # deeper than the interpreter's stack
    b'{"runs":' * 5_000,
    b'{"runs": [{"results": [null, 1, "x", [], {}]}, null, 7]}' * 2 + b"\xff",
    b'{"runs": {"results": 1}}',
    b'{"message": {"spans": [{"is_primary": true, "file_name": 7}]}}\n{',
    b'{"runs": [{"results": ' + b"9" * 5000 + b"}]}",
    b"",
]


def test_damaged_json_is_one_failure() -> None:
    for preset, output in itertools.product(OF_JSON, DAMAGED):
        paths = [failure.path for failure in split(output, preset)]
        assert paths == [""], (preset, output[:50])


@given(JSON)
def test_no_json_breaks_a_preset(document: object) -> None:
    result = {"message": document, "locations": [document], "ruleIndex": document}
    for value in (document, {"runs": document}, {"runs": [{"results": document}]}):
        text = json.dumps(value).encode()
        assert all(split(text, preset) for preset in OF_JSON)
    assert split(json.dumps({"runs": [{"results": [result], "tool": document}]}).encode(), "sarif")
    assert split(json.dumps({"message": document}).encode(), "clippy")


# Beginnings of failures that do not end, and what patterns have to look ahead for.
UNENDING = [
    "  a:1:1 - error: x\n  \xa0 y",
    "  1:1  error  a" + 1900 * " ",
    "a.js:1:1 lint/a" + 1900 * " ",
    "│ Error: a\n│ \n│   on b line 1\n" + "│   c\n" * 40,
    "Error: a\n\n  on b line 1\n   ",
    "a.go:1: " + " (b" * 600,
    "::error file=a,line=1,col=1::1:1 ",
    "[warn] " + "a: " * 600,
    "In a line 1:\n" + "^-" * 900,
    "a:1: " + "1:" * 900,
    "___ " + "_ " * 900,
    '{"reason": ',
]


@pytest.mark.slow
@pytest.mark.samples(4)
@pytest.mark.parametrize("preset", PRESETS)
def test_unending_failures_are_read_in_time(preset: str) -> None:
    for seed in UNENDING:
        text = (f"{seed}\n" * (MOST_BYTES // 8 // len(seed)))[: MOST_BYTES // 8]
        begin = time.process_time()
        list(islice(PRESETS[preset](text), MOST_FAILURES))
        assert time.process_time() - begin < 1, seed


def test_tables_have_known_keys_and_groups() -> None:
    keys = {"patterns", "header", "defaults", "rule_in_message", "errors_first", "lines", "skip"}
    assert {key for table in TABLES.values() for key in table} <= keys
