"""Reports of failures for CI: SARIF, Code Quality, JUnit and annotations, by published schemas."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import xmlschema
from conftest import Repo

from gitgates.report.result import FAILURE

TESTS = Path(__file__).resolve().parents[1]
SCHEMAS, OUTPUTS = TESTS / "schemas", TESTS / "outputs"
CONFIG = """\
[gates.lint]
command = "cat {outputs}/ruff-concise.txt; exit 1"
failures = "ruff"
[gates.sh]
command = "cat {outputs}/shellcheck.txt; exit 1"
failures = "shellcheck"
working_dir = "sub"
observe = true
[gates.own]
command = "echo boom: 100%; exit 3"
[gates.gone]
command = "no-such-program"
[gates.slow]
command = "echo waiting; sleep 60"
timeout = "0.1s"
[gates.fine]
command = "true"
[gates.docs]
command = "false"
files = ["*.nothing"]
[hooks.manual]
strategy = "collect"
gates = ["lint", "sh", "own", "gone", "slow", "fine", "docs"]
"""


def _valid_sarif(text: str) -> dict[str, Any]:
    schema = json.loads((SCHEMAS / "sarif-schema-2.1.0.json").read_text())
    log: dict[str, Any] = json.loads(text)
    checker = jsonschema.Draft4Validator.FORMAT_CHECKER
    jsonschema.Draft4Validator(schema, format_checker=checker).validate(log)
    return log


def _valid_code_quality(text: str) -> list[dict[str, Any]]:
    schema = json.loads((SCHEMAS / "gitlab-codeclimate.json").read_text())
    issues: list[dict[str, Any]] = json.loads(text)
    for issue in issues:
        jsonschema.validate(issue, schema)
    assert len({issue["fingerprint"] for issue in issues}) == len(issues)
    # The schema allows any word and no line; the documentation does not.
    assert {issue["severity"] for issue in issues} <= {"info", "minor", "major"}
    assert all(issue["location"]["lines"]["begin"] >= 1 for issue in issues)
    return issues


@pytest.fixture
def reports(repo: Repo) -> Repo:
    """A repository whose gates end in every way; `sub` is a folder."""
    repo.write("sub/a.sh")
    repo.config(CONFIG.format(outputs=OUTPUTS))
    return repo


def test_sarif_has_a_run_of_each_gate_that_has_looked(reports: Repo) -> None:
    assert reports.gitgates("run", "--sarif", "out.sarif").returncode == 1
    log = _valid_sarif((reports.path / "out.sarif").read_text())
    runs = {run["automationDetails"]["id"]: run for run in log["runs"]}
    assert list(runs) == [f"gitgates/{g}/" for g in ("lint", "sh", "own", "gone", "slow", "fine")]
    counts = {name.split("/")[1]: len(run["results"]) for name, run in runs.items()}
    assert counts == {"lint": 5, "sh": 9, "own": 1, "gone": 1, "slow": 1, "fine": 0}
    ended = [run["invocations"][0]["executionSuccessful"] for run in log["runs"]]
    assert ended == [True, True, True, False, False, True]
    assert runs["gitgates/lint/"]["results"][0] == {
        "ruleId": "F401",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": "`os` imported but unused"},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": "a.py", "uriBaseId": "%SRCROOT%"},
                    "region": {"startLine": 1, "startColumn": 8},
                }
            }
        ],
        "partialFingerprints": {"gitgates/v1": "1187b98710f290f2"},
    }
    # It only observes: nothing of it is an error. Its paths are those of its folder.
    first = runs["gitgates/sh/"]["results"][3]
    assert first["level"] == "warning"
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "sub/a.sh"
    own = runs["gitgates/own/"]["results"][0]
    assert own["message"]["text"] == "own failed (exit status 3): boom: 100%"
    place = own["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "pyproject.toml"


def test_fingerprints_in_sarif_stay_the_same_when_lines_move(reports: Repo) -> None:
    output = reports.write("out.txt", "a.py:1:1: F401 unused\n")
    reports.config(
        f'[gates.lint]\ncommand = "cat {output}; exit 1"\nfailures = "ruff"\n'
        "[hooks.manual]\ngates = ['lint']\n"
    )
    prints = []
    for line in (1, 9):
        reports.write("out.txt", f"a.py:{line}:1: F401 unused\n")
        reports.gitgates("run", "--sarif", "out.sarif")
        log = json.loads((reports.path / "out.sarif").read_text())
        prints.append(log["runs"][0]["results"][0]["partialFingerprints"])
    assert prints[0] == prints[1]


def test_code_quality_has_what_counts(reports: Repo) -> None:
    reports.gitgates("run", "--code-quality", "out.json")
    issues = _valid_code_quality((reports.path / "out.json").read_text())
    assert len(issues) == 17
    assert [issue["severity"] for issue in issues[5:14]] == [
        *("info", "minor", "minor", "minor", "info", "info", "info", "minor", "minor")
    ]
    assert {**issues[1], "fingerprint": ""} == {
        "description": "`sys` imported but unused",
        "check_name": "lint: F401",
        "fingerprint": "",
        "severity": "major",
        "location": {"path": "a.py", "lines": {"begin": 2}},
    }


def test_junit_is_valid_and_lists_the_failures(reports: Repo) -> None:
    reports.gitgates("run", "--junit", "out.xml")
    schema = xmlschema.XMLSchema(SCHEMAS / "junit-10.xsd")
    schema.validate(reports.path / "out.xml")
    text = (reports.path / "out.xml").read_text()
    assert "a.py:1:8: error: `os` imported but unused [F401]\n" in text
    assert "sub/a.sh:4:1: warning: Use 'cd ... || exit'" in text


def test_json_is_shown_as_the_failures_in_it(repo: Repo) -> None:
    repo.config(
        f"[gates.lint]\ncommand = 'cat {OUTPUTS}/clippy.txt; exit 1'\nfailures = 'clippy'\n"
        "[hooks.manual]\ngates = ['lint']\n"
    )
    lines = repo.gitgates("run").stdout.decode().splitlines()
    assert lines[1] == "  | src/lib.rs:2:9: unused_variables unused variable: `unused`"
    assert len(lines) == 6


def test_result_json_keeps_each_failure(reports: Repo) -> None:
    document = json.loads(reports.gitgates("run", "--format", "json").stdout)
    found = {result["name"]: result.get("failures") for result in document["results"]}
    assert found["own"] is None
    first = found["lint"][0]
    assert {**first, "fingerprint": ""} == {
        "fingerprint": "",
        "title": "a.py:1:8: F401 `os` imported but unused",
        "path": "a.py",
        "line": 1,
        "column": 8,
        "rule": "F401",
        "message": "`os` imported but unused",
        "severity": "error",
    }
    assert [*first, "accepted"] == [name.rstrip("*") for name in FAILURE]
    assert found["sh"][0].keys() == first.keys()
    run = json.loads(reports.gitgates("runs", "show", "latest", "--format", "json").stdout)
    (attempt,) = run["quality_gates"]["attempts"]
    assert attempt["results"][0]["failures"] == found["lint"]


def _commands(repo: Repo, *options: str) -> list[str]:
    env = {"GITHUB_ACTIONS": "true"}
    return repo.gitgates("run", *options, env=env).stderr.decode().splitlines()


def test_failures_are_annotated_in_github_actions(reports: Repo) -> None:
    lines = _commands(reports)
    assert lines[0] == (
        "::error file=a.py,line=1,col=8,title=lint%3A F401::`os` imported but unused"
    )
    assert (
        "::error file=pyproject.toml,line=1,title=own::own failed (exit status 3): boom: 100%25"
        in lines
    )
    assert lines[-1].startswith("::notice file=sub/")
    assert _commands(reports, "--format", "json") == lines
    said = reports.gitgates("run", env={"GITHUB_ACTIONS": "false"}).stderr
    assert said.startswith(b"gitgates: to see more: gitgates runs show latest")


def test_what_a_tool_prints_makes_no_other_command(repo: Repo) -> None:
    repo.write("out.txt", "a,b%:c.py:1:1: F401 x\n")
    evil = {"uri": "a.py,line=9::x%0A::stop-commands::x\n::error::", "uriBaseId": "%25"}
    place = {"physicalLocation": {"artifactLocation": evil}}
    message = {"text": "one\n::set-env name=A::b\r::add-mask::\x1b[1m%0A"}
    result = {"message": message, "ruleId": "R,a=b::\n::error::", "locations": [place]}
    repo.write("out.sarif", json.dumps({"runs": [{"results": [result]}]}))
    repo.config(
        "[gates.evil]\ncommand = 'cat out.sarif; exit 1'\nfailures = 'sarif'\n"
        "[hooks.manual]\ngates = ['evil']\n"
    )
    (line,) = _commands(repo)
    fields, _, message_text = line.removeprefix("::warning ").partition("::")
    assert fields == "file=pyproject.toml,line=1,title=evil%3A R%2Ca=b%3A%3A %3A%3Aerror%3A%3A"
    assert message_text.endswith("one ::set-env name=A::b ::add-mask::%250A")


def test_annotations_are_bounded(repo: Repo) -> None:
    repo.write("out.txt", "".join(f"a.py:{n}:1: F401 unused {n}\n" for n in range(1, 26)))
    repo.config(
        "[gates.lint]\ncommand = 'cat out.txt; exit 1'\nfailures = 'ruff'\n"
        "[hooks.manual]\ngates = ['lint']\n"
    )
    *commands, note = _commands(repo)
    assert len(commands) == 10
    assert note == "gitgates: 15 more failures have no annotation"


@pytest.mark.parametrize("option", ["--sarif", "--code-quality"])
def test_a_report_that_cannot_be_written_is_an_error(reports: Repo, option: str) -> None:
    done = reports.gitgates("run", "fine", option, "no/such/folder")
    assert done.returncode == 64
    assert f"{option} no/such/folder: cannot be written" in done.stderr.decode()


def test_accepted_failures_are_suppressed(repo: Repo) -> None:
    repo.config(
        "[gates.lint]\ncommand = 'cat out.txt; exit 1'\nfailures = 'ruff'\nbaseline = true\n"
        "[hooks.manual]\ngates = ['lint']\n"
    )
    repo.write("out.txt", "a.py:1:1: F401 old\n")
    repo.commit_all("base")
    repo.write("out.txt", "a.py:1:1: F401 old\na.py:2:1: F401 new\n")
    done = repo.gitgates(
        *("run", "--sarif", "out.sarif", "--code-quality", "out.json"),
        env={"GITHUB_ACTIONS": "true"},
    )
    (run,) = _valid_sarif((repo.path / "out.sarif").read_text())["runs"]
    states = {r["message"]["text"]: "suppressions" in r for r in run["results"]}
    assert states == {"old": True, "new": False}
    (issue,) = _valid_code_quality((repo.path / "out.json").read_text())
    assert issue["description"] == "new"
    assert done.stderr.decode().splitlines() == [
        "::error file=a.py,line=2,col=1,title=lint%3A F401::new"
    ]


def test_nothing_checked_is_no_clean_run(repo: Repo) -> None:
    repo.config(
        "[gates.docs]\ncommand = 'true'\nfiles = ['*.nothing']\n[hooks.manual]\ngates = ['docs']\n"
    )
    repo.gitgates("run", "--sarif", "out.sarif", "--code-quality", "out.json")
    assert _valid_sarif((repo.path / "out.sarif").read_text())["runs"] == []
    assert _valid_code_quality((repo.path / "out.json").read_text()) == []


def test_our_schema_of_the_configuration_is_valid(repo: Repo) -> None:
    schema = json.loads(repo.gitgates("schema").stdout)
    validator = jsonschema.validators.validator_for(schema)
    assert re.search("json-schema.org", schema["$schema"])
    validator.check_schema(schema)
