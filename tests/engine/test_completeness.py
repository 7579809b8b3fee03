"""Known failures are accepted only of a tool that has looked at everything: real outputs."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from gitgates.core.types import GateResult, make_gate
from gitgates.engine.findings.baseline import failures_in
from gitgates.engine.findings.completeness import read_signs
from gitgates.engine.findings.failures import MOST_BYTES
from gitgates.engine.findings.presets import PRESETS

TESTS = Path(__file__).resolve().parents[1]
OUTPUTS = TESTS / "outputs"
ROOT = "/home/user/project"
FAILED = GateResult(gate="g", status="failed")
SIGNS = read_signs()
GOLANGCI = "golangci-lint run --max-same-issues=0 --max-issues-per-linter=0 --uniq-by-line=false"

# Exit statuses that are not 1.
STATUSES = {
    "cargo-abort": 101,
    "cargo-build": 101,
    "cargo-test": 101,
    "cargo-test-filter": 101,
    "clippy": 1,  # of what looks for warnings in its output
    "clippy-deny": 101,
    "eslint-oops": 2,
    "go-test-build": 2,
    "make-hadolint": 2,
    "make-ruff": 2,
    "make-ruff-rule": 2,
    "mypy-syntax": 2,
    "prettier-syntax": 2,
    "pytest-xdist-x": 2,
    "ruff-rule": 2,
    "shellcheck-missing": 2,
    "tflint-compact-documented": 2,
    "tflint-documented": 2,
    "tsc": 2,
    "tsc-build": 1,
    "tsc-build-stop": 1,
}
# How many failures each tool has found that has looked at everything.
WHOLE = {
    "biome": 3,
    "cargo-fmt": 1,
    "cargo-test": 2,
    "clippy": 2,
    "eslint": 3,
    "eslint-quiet": 2,
    "go-test": 3,
    "go-test-cover": 2,
    "go-test-folder": 2,
    "hadolint": 3,
    "make-hadolint": 3,
    "make-ruff": 2,
    "markdownlint": 4,
    "markdownlint-cli2": 4,
    "mypy": 2,
    "prettier": 1,
    "prettier-one": 1,
    "pyright": 3,
    "pytest": 3,
    "pytest-coverage": 3,
    "ruff": 2,
    "ruff-fixed": 2,
    "ruff-quiet": 2,
    "sarif-bandit": 1,
    "sarif-eslint": 3,
    "shellcheck": 2,
    "shellcheck-colon": 3,
    "shellcheck-gcc": 2,
    "tsc": 2,
    "tsc-build": 2,
    "tsc-npm": 2,
    "tsc-paths": 4,
    "yamllint": 3,
    "yamllint-github": 3,
    "yamllint-parsable": 3,
}
# The same of outputs that the presets were written from.
EARLIER = {
    "go-test": 4,
    "go-test-v": 2,
    "golangci-lint-documented": 4,
    "mypy-pretty": 4,
    "pytest-colour": 7,
    "pytest-subtests": 7,
    "pytest-vv-ci": 7,
    "pytest-xdist": 7,
    "ruff-format-check": 2,
    "tflint-compact-documented": 1,
    "tflint-documented": 2,
    "tsc-pretty": 5,
}
# Why nothing is accepted of the others.
PART = {
    "biome-missing": "others may be behind `nonesuch: fs/cantRead Cannot read file.`",
    "biome-most": "it has not looked at everything: `Diagnostics not shown: 2`",
    "biome-parse": "others may be behind `src/b.js:1:1: parse Illegal use of reserved keyword",
    "cargo-abort": "it has not looked at everything: `process didn't exit successfully`",
    "cargo-build": "it has not looked at everything: `error[E0308]: mismatched types",
    "cargo-fmt-syntax": "it has not looked at everything: `error: this file contains",
    "cargo-test": "without `--no-fail-fast`, cargo stops behind the first target that fails",
    "cargo-test-filter": "it has not looked at everything: `1 filtered out`",
    "clippy-deny": "cargo skips what depends on code with an error; let clippy only warn",
    "eslint-oops": "it has not looked at everything: `Oops! Something went wrong! :(`",
    "eslint-parse": "others may be behind `b.js:1:1: Parsing error: The keyword 'let' is reserved`",
    "go-test-build": "it ended with exit status 2, and with failures only, it is 1",
    "go-test-exit": "it has not looked at everything: `e_test.go:8: one FAIL example.com/m/e",
    "go-test-exit-folder": "it has not looked at everything: `e_test.go:8: one exit status 1",
    "go-test-fatal": "it has not looked at everything: `2026/11/29 18:56:02 boom FAIL",
    "go-test-panic": "it has not looked at everything: `/home/user/project/f/f_test.go:7 +0x4a",
    "go-test-timeout": "it has not looked at everything: `/usr/lib/go/src/testing/testing.go",
    "hadolint-colon": "what this means is not known: `D:2:1 DL3006 warning: Always tag",
    "hadolint-missing": "no failure is recognised in its output",
    "hadolint-syntax": "others may be behind `D2:2:1: unexpected 'f' expecting",
    "make-ruff-rule": "it has not looked at everything: `ruff failed`",
    "markdownlint-cli2-colon": "it says that it has found 6, and 4 are recognised in its output",
    "markdownlint-colon": "what this means is not known: `c:d.md:1:1 error MD018",
    "mypy-colon": "it says that it has found 3, and 2 are recognised in its output",
    "mypy-no-summary": "it does not say how many it has found, as in `Found 2 errors in 1 file`",
    "mypy-syntax": "it has not looked at everything: `errors prevented further checking`",
    "prettier-syntax": "it has not looked at everything: `[error] src/b.js: SyntaxError",
    "pyright-syntax": 'others may be behind `a.py:1:6: "(" was not closed`',
    "pytest-import": "others may be behind `ERROR test_c.py`",
    "pytest-k": "it has not looked at everything: `1 failed, 3 deselected`",
    "pytest-lf": "it has not looked at everything: `run-last-failure: rerun previous 3 failures`",
    "pytest-maxfail": "it has not looked at everything: `stopping after 2 failures`",
    "pytest-qq": "pytest prints no last line, as `1 failed, 2 passed in 0.12s`",
    "pytest-rf": "it says that it has found 3, and 2 are recognised in its output",
    "pytest-xdist-x": "it has not looked at everything: `stopping after 2 failures`",
    "ruff-colon": "it says that it has found 3, and 2 are recognised in its output",
    "ruff-missing": "others may be behind `nonesuch.py:1:1: E902 No such file or directory",
    "ruff-quiet-colon": "what this means is not known: `c:d.py:1:7: F821 Undefined name",
    "ruff-rule": "it has not looked at everything: `ruff failed`",
    "ruff-syntax": "others may be behind `b.py:4:7: invalid-syntax Expected a parameter",
    "sarif-bandit": "its log has an error of the tool: `syntax error while parsing AST from file`",
    "sarif-biome-parse": "others may be behind `src/b.js:1:1: parse Illegal use of reserved",
    "sarif-eslint": "its log has an error of the tool: `Parsing error: The keyword 'let' is",
    "sarif-ruff-syntax": "others may be behind `b.py:1:7: invalid-syntax Expected a parameter",
    "sarif-two": "there is more than one log in its output",
    "shellcheck-colon": "what this means is not known: `b:c.sh:2:6: note: Double quote",
    "shellcheck-missing": "it ended with exit status 2, and with failures only, it is 1",
    "shellcheck-syntax": "others may be behind `b.sh:2:4: SC1073 Couldn't parse this test",
    "terraform-early": "terraform does not look at what depends on an error",
    "tsc-build-stop": "it has not looked at everything: `Skipping build of project",
    "tsc-js": "others may be behind `src/b.js:1:10: TS8010 Type annotations can only be used",
    "tsc-jsx": "others may be behind `src/b.tsx:1:12: TS17008 JSX element 'p' has no",
    "tsc-option": "others may be behind `tsconfig.json:1:2: TS5110 Option 'module' must be set",
    "tsc-pretty-colon": "it says that it has found 3, and 2 are recognised in its output",
    "tsc-syntax": "others may be behind `src/b.ts:1:11: TS1109 Expression expected.`",
    "tsc-types": "others may be behind `TS2688 Cannot find type definition file for 'nonesuch'.`",
    "yamllint-colon": "what this means is not known: `./b:c.yml:1:1: [warning] missing document",
    "yamllint-syntax": "others may be behind `./b.yml:2:1: syntax syntax error",
}


def _preset(name: str) -> str:
    return next(preset for preset in PRESETS if name.removeprefix("make-").startswith(preset))


def _judged(output: bytes, preset: str, *, status: int = 1, command: str = "x") -> int | str:
    """Return how many failures may be known ones, or why none may."""
    gate = make_gate(name="g", command=command, failures=preset)
    result = FAILED._replace(exit_status=status, output=output)
    found = failures_in(gate, result, ROOT, {})
    return found if isinstance(found, str) else len(found)


def _judged_file(folder: str, name: str) -> int | str:
    preset = _preset(name)
    status = STATUSES.get(name) or STATUSES.get(preset, 1)
    output = (OUTPUTS / folder / f"{name}.txt").read_bytes()
    command = GOLANGCI if preset == "golangci-lint" else "x"
    return _judged(output, preset, status=status, command=command)


def test_all_failures_of_a_tool_that_has_looked_at_everything_are_known() -> None:
    names = sorted(path.stem for path in (OUTPUTS / "whole").iterdir())
    assert {name: _judged_file("whole", name) for name in names} == WHOLE
    assert {name: _judged_file("", name) for name in EARLIER} == EARLIER


def test_no_failure_of_a_tool_that_has_not_is_known() -> None:
    names = sorted(path.stem for path in (OUTPUTS / "part").iterdir())
    said = {name: str(_judged_file("part", name)) for name in names}
    assert [*said] == [*PART]
    assert {name: why for name, why in said.items() if not why.startswith(PART[name])} == {}


def test_each_preset_has_signs_and_an_output_of_either_kind() -> None:
    assert {*SIGNS} == {*PRESETS, "*"}
    known = {_preset(name) for name in (*WHOLE, *EARLIER)}
    # All that fails in terraform hides something; no such output of actionlint is documented.
    assert {*PRESETS} - known == {"terraform", "actionlint"}
    # Of these, no real output without a look at everything could be recorded.
    hidden = {_preset(name) for name in PART}
    assert {*PRESETS} - hidden == {"actionlint", "golangci-lint", "tflint"}
    for signs in SIGNS.values():
        says_how_many = bool(signs.counts and signs.example) or signs.lines is not None
        assert says_how_many
        assert bool(signs.why) == bool(signs.ends or signs.needs)


OTHER = "what this means is not known: `x: cannot be read`"
ENDINGS: list[tuple[str, str, str]] = [
    ("actionlint", "a.yml:1:1: could not parse as YAML: a [syntax-check]", "others may be behind"),
    ("actionlint", "a.yml:1:1: no [events]\n  |\n1 | on: foo\n  |     ^~~", "1"),
    ("actionlint", "a.yml:1:1: unknown [events]\nx: cannot be read", OTHER),
    ("cargo", "Diff in a.rs:1:\n-a\n+b\nx: cannot be read", OTHER),
    ("go-test", "--- FAIL: TestA (0.1s)\nFAIL\nFAIL\tm/a\t0.1s\nFAIL", "1"),
    (
        "go-test",
        "--- FAIL: TestA (0.1s)\nFAIL\tm/a\t0.1s",
        "it has not looked at everything: `--- F",
    ),
    ("go-test", "--- FAIL: TestA (0.1s)\nFAIL", "others may be behind `TestA`"),
    ("go-test", "FAIL\tm/a\t0.1s\nFAIL", "it has not looked at everything: `FAIL m/a 0.1s`"),
    ("go-test", "FAIL\tm/a [build failed]\nFAIL", "others may be behind `m/a: build failed`"),
    ("golangci-lint", "a.go:1: x (typecheck)\n1 issues:", "others may be behind"),
    ("golangci-lint", "a.go:1: x (vet)", "it does not say how many it has found, as in `2 iss"),
    ("golangci-lint", "a.go:1: x (vet)\n2 issues:", "it says that it has found 2, and 1 are"),
    ("mypy", "a.py:1: error: x  [a]\nb.py:1: note: (Skipping most remaining errors", "it has not"),
    ("pytest", "FAILED a::b\n1 failed in 0.1s\n1 failed in 0.2s", "it says that it has found 2"),
    ("ruff", "a.py:1:1: F401 x\nFound 1 error.\nb.py:1:1: F401 x", "it says that it has found 1"),
    ("shellcheck", "In a line 1:\n$1\n^-- SC2086: x\n\nx: cannot be read", OTHER),
    ("tflint", "Failed to load configurations; x", "it has not looked at everything: `Failed"),
    ("tsc", "error TS2318: Cannot find global type 'Array'.", "others may be behind"),
    ("tsc", "a.ts(1,1): error TS6133: 'x' is never read.\n  It is.", "1"),
    ("tsc", "a.ts(1,1): error TS2322: x\na.ts: cannot be read", "what this means is not known"),
    ("yamllint", "a.yml\n  1:1  error  x  (a)\nb.yml\n\nc.yml", "what this means is not known"),
]


def test_what_an_output_says_besides_decides() -> None:
    for preset, output, expected in ENDINGS:
        status = max(SIGNS[preset].statuses)
        command = GOLANGCI if preset == "golangci-lint" else "x"
        said = _judged(f"{output}\n".encode(), preset, status=status, command=command)
        assert str(said).startswith(expected), (output, said)


ASKED: list[tuple[str, str, str]] = [
    ("go-test", "go test -failfast ./...", "it has not looked at everything: `go test -failfast`"),
    ("go-test", "go test -run=TestA ./...", "it has not looked at everything: `go test -run`"),
    ("golangci-lint-documented", "golangci-lint run", "golangci-lint leaves issues out without"),
    ("pytest-q", "pytest -q --lf", "it has not looked at everything: `pytest -q --lf`"),
    ("pytest-q", "PYTEST_ADDOPTS=--last-failed make", "it has not looked at everything: `PYTEST_"),
    ("pytest-q", "pytest -q --ff --last-failed-no-failures=none", "7"),
    ("tsc", "npx tsc -b", "it has not looked at everything: `tsc -b`"),
    ("tsc", "npx vue-tsc --build src", "it has not looked at everything: `tsc --build`"),
    ("tsc", "tsc --noEmit a-b.ts", "5"),
    ("whole/tsc-build", "tsc -b --verbose", "2"),
    ("sarif-ruff", "golangci-lint run", "it has not looked at everything: `golangci-lint run`"),
]


def test_an_option_of_which_the_tool_says_nothing_decides() -> None:
    for name, command, expected in ASKED:
        output = (OUTPUTS / f"{name}.txt").read_bytes()
        preset = _preset(name.rpartition("/")[2])
        said = _judged(output, preset, status=1, command=command)
        assert str(said).startswith(expected), (command, said)
    echoed = (OUTPUTS / "whole/tsc-npm.txt").read_bytes().replace(b"> tsc", b"> tsc --build")
    assert _judged(echoed, "tsc") == "it has not looked at everything: `tsc --build`"
    gate = make_gate(name="g", command="x", failures="go-test", env=(("GOFLAGS", "-failfast"),))
    output = (OUTPUTS / "go-test.txt").read_bytes()
    result = FAILED._replace(exit_status=1, output=output)
    why = failures_in(gate, result, ROOT, {})
    assert why == "it has not looked at everything: `GOFLAGS=-failfast`"
    why = failures_in(gate.changed(env=()), result, ROOT, {"GOFLAGS": "-run=TestA"})
    assert why == "it has not looked at everything: `GOFLAGS=-run`"


SEVERAL = {
    "ruff check . && mypy .": "`ruff`, `mypy`",
    "ruff check .\nmypy .": "`ruff`, `mypy`",
    "ruff check . & mypy . & wait": "`ruff`, `mypy`",
    "(cd a && ruff check .) && cd b && ruff check .": "`ruff`, `ruff`",
    "X=1 ruff check . || rc=1; uv run mypy; exit $rc": "`ruff`, `uv`",
}
SINGLE = (
    "cd web && npm ci && ruff check . | tee log",
    ". venv/bin/activate && X=1 ruff check -k 'a && b; c' > out 2>&1; cat out",
    "for f in *; do ruff check $f || rc=1; done; exit $rc",
    "set -e\n# lint\nruff check . \\\n  --quiet\n",
    "ruff check 'not closed && mypy",
)


def test_what_a_known_failure_keeps_from_running_is_not_looked_at() -> None:
    output = (OUTPUTS / "whole/ruff.txt").read_bytes()
    why = "its command runs more than one tool: "
    for command, tools in SEVERAL.items():
        assert _judged(output, "ruff", command=command) == why + tools
    assert [_judged(output, "ruff", command=command) for command in SINGLE] == [2] * len(SINGLE)
    npm = b"> demo@1.0.0 lint\n> ruff check . && tsc\n" + output
    assert _judged(npm, "ruff", command="npm run lint") == why + "`ruff`, `tsc`"
    shell = make_gate(name="g", command=("/bin/bash", "-c", "ruff; mypy"), failures="ruff")
    result = FAILED._replace(exit_status=1, output=output)
    assert failures_in(shell, result, ROOT, {}) == why + "`ruff`, `mypy`"
    hooks = b"ruff" + 20 * b"." + b"Failed\n" + output
    assert _judged(hooks + b"mypy" + 9 * b"." + b"Failed\n", "ruff") == "2 hooks have failed"
    assert _judged(hooks, "ruff") == 2


def test_another_exit_status_is_that_of_another_ending() -> None:
    output = (OUTPUTS / "whole/ruff.txt").read_bytes()
    why = "it ended with exit status {}, and with failures only, it is 1"
    assert [_judged(output, "ruff", status=status) for status in (1, 2, 101)] == [
        2,
        why.format(2),
        why.format(101),
    ]
    made = output + b"make[1]: *** [Makefile:2: lint] Error 1\nmake: *** [lint] Error 2\n"
    assert _judged(made, "ruff", status=2) == 2


def test_colours_hide_no_ending() -> None:
    for name in ("pytest-maxfail", "mypy-syntax", "cargo-test", "pytest-k"):
        output = (OUTPUTS / f"part/{name}.txt").read_bytes()
        coloured = b"\n".join(b"\x1b[31m" + line + b"\x1b[0m" for line in output.split(b"\n"))
        status = STATUSES.get(name, 1)
        assert str(_judged(coloured, _preset(name), status=status)).startswith(PART[name]), name


def test_an_own_pattern_may_be_that_of_any_tool() -> None:
    for line in (
        "!!! stopping after 1 failures !!!",
        "Diagnostics not shown: 66.",
        "3/6 issues were hidden, use --max-same-issues",
        "a.go:10:1: too many errors",
        "Found 2 errors in 1 file (errors prevented further checking)",
        "error: could not compile `demo`",
        "b.py:2:8: E999 SyntaxError: invalid syntax",
        "b.py:2:7: E0001: Parsing failed: 'invalid syntax (b, line 2)' (syntax-error)",
        "a.ts(1,1): error TS1109: Expression expected.",
        "  \u25cf Test suite failed to run",
        "Test Suites: 1 failed, 1 of 2 total",
    ):
        said = _judged(f"BAD\n{line}\n".encode(), "BAD")
        assert str(said).startswith("it has not looked at everything: `"), line
    assert _judged(b"BAD\nFailed to load x\n1 failed\n", "BAD", status=3) == 1


def _log(*invocations: object, **run: object) -> bytes:
    result = {"message": {"text": "wrong"}, "ruleId": "R"}
    return json.dumps({"runs": [{"results": [result], "invocations": invocations, **run}]}).encode()


def test_a_log_that_does_not_say_that_it_went_well_has_not_all_results() -> None:
    went_well = {"executionSuccessful": True}
    note = {"level": "error", "message": {"text": "cannot read a.py"}}
    warning = {**note, "level": "warning"}
    success = "its log does not say `executionSuccessful: true`"
    error = "its log has an error of the tool: `cannot read a.py`"
    for log, expected in (
        (_log(), 1),
        (_log({**went_well, "toolExecutionNotifications": [warning]}), 1),
        (_log({"executionSuccessful": False}), success),
        (_log({}), success),
        (_log(went_well, {"executionSuccessful": "yes"}), success),
        (_log({**went_well, "toolExecutionNotifications": [warning, note]}), error),
        (_log({**went_well, "toolConfigurationNotifications": [note]}), error),
        (_log(externalPropertyFileReferences={"results": [{}]}), "results of its log are in other"),
        (_log()[:-2] + b', {"results": null}]}', "a run in its log has no results"),
        (_log() + b"\n" + _log(), "there is more than one log in its output"),
        (_log() + b'\nnote: {"a": 1}', 1),
    ):
        said = _judged(log, "sarif")
        assert str(said).startswith(str(expected)), (log, said)


HOSTILE = [
    "1 failed, " * 200,
    "1 a in ",
    "FAILED a::b\n1 error, 1 error in 1 in 1s",
    "error: a\n --> ",
    "In a line 1:\nDid you mean:\n",
    "Diff in a line in a: ",
    "pytest go test tsc -",
    "> pytest ",
    "a\n  1:1 ",
    "make: *** [",
    "a.ts(1,1) (2,2): ",
    "1/1 issues were hidden, ",
    "  " * 900,
]


@pytest.mark.slow
@pytest.mark.samples(4)
@pytest.mark.parametrize("preset", PRESETS)
def test_hostile_output_is_judged_in_time(preset: str) -> None:
    failing = next(OUTPUTS.glob(f"{preset}*.txt")).read_text()
    for seed in HOSTILE:
        text = failing + (f"{seed}\n" * (MOST_BYTES // 8 // len(seed)))[: MOST_BYTES // 8]
        begin = time.process_time()
        _judged(text.encode(), preset)
        assert time.process_time() - begin < 2, seed


PAGE = TESTS.parent / "docs/how-to/baseline.md"


def test_the_page_says_what_each_preset_relies_on() -> None:
    rows = re.findall(r"^\| `([a-z-]+)` \| (.*) \| (.*) \|$", PAGE.read_text(), re.MULTILINE)
    assert [name for name, *_rest in rows] == list(PRESETS)
    for name, looked, _not in rows:
        example = SIGNS[name].example
        assert not example or f"`{example}`" in looked, name
