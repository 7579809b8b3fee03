"""What a headless run tells: while it goes on, and afterwards."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import page_support
import pytest
from conftest import Repo
from terminal_support import on_terminal
from test_headless import CONFIG, agent, headless, result

from gitgates.report import text
from gitgates.report.artifacts import summary
from gitgates.report.page import page

TIMES = re.compile(r"\d+\.\d+ ?s(econds)?")


@pytest.fixture
def work(repo: Repo) -> Repo:
    repo.config(CONFIG)
    repo.write("a.txt", "bad\n")
    repo.commit_all("first")
    return repo


def test_a_run_without_an_attempt(work: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "no/such")
    command = agent(work, "echo no quota >&2; exit 3", "exit 4")
    done = headless(work, "go", "--agent-command", command)
    assert done.returncode == 1
    assert b"gitgates: sh: exit status 3\n" in done.stdout + done.stderr
    assert b"the agent's client failed twice: exit status 4" in done.stdout
    assert work.git("status", "--porcelain") == ""
    assert b"note: GITHUB_STEP_SUMMARY: no/such: No such file" in done.stdout
    folder = next((work.path / ".git/gitgates/runs").iterdir())
    shown = re.sub(r"\d+\.\d s(econds)?", "TIME", (folder / "summary.md").read_text())
    assert (
        shown
        == """\
## Quality Gates - Iterative Fix Cycle

**Final Status:** ❌ Could not run, after 0 attempts: exit status 4

**Run:** ❌ the agent's client failed twice: exit status 4
**Prompt:** go
**Client:** sh

**Agent Action:** (TIME) the client failed: exit status 3 no quota

**Agent Action:** (TIME) the client failed: exit status 4

**Total Duration:** TIME
**Agent:** 2 turns, TIME
**Total Attempts:** 0 of 3 allowed
"""
    )
    html = (folder / "report.html").read_text()
    assert "<dd>0 of 3 allowed</dd>" in html
    assert "Attempt 1" not in html
    assert "exit status 4" in html
    listed = json.loads(work.gitgates("runs", "list", "--format", "json").stdout)
    assert [one["attempts"] for one in listed["runs"]] == [0]


def test_what_a_run_tells(work: Repo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    step = tmp_path / "step.md"
    step.write_text("# Before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(step))
    command = agent(work, "echo other > a.txt", "echo good > a.txt")
    more = ("--junit", "../gates.xml", "--agent-command", command)
    done = headless(work, "make it *good*", *more)
    assert done.returncode == 0
    check_lines(done.stdout.decode())
    (suite,) = ET.parse(tmp_path / "gates.xml").getroot()
    cases = {case.get("name"): [child.tag for child in case] for case in suite}
    assert cases == {"test": [], "lint": [], "build": [], "headless": []}
    shown = next((work.path / ".git/gitgates/runs").glob("*/summary.md")).read_text()
    assert step.read_text() == f"# Before\n{shown}"
    shown = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", "TIME", TIMES.sub("0.0s", shown))
    assert (
        shown.replace(work.head(), "COMMIT")
        == """\
## Quality Gates - Iterative Fix Cycle

**Final Status:** ✅ All gates passed after 2 attempts

**Run:** ✅ all gates passed
**Prompt:** make it \\*good\\*
**Client:** sh
**Commit:** COMMIT

**Agent Action:** (0.0s) did turn 1

### Attempt 1 - Failed
*Timestamp: TIME*

| Gate | Status | Duration | Exit Code |
|------|--------|----------|-----------|
| test | ❌ Fail | 0.0s | 1 |
| lint | ✅ Pass | 0.0s | 0 |
| build | ✅ Pass | 0.0s | 0 |

**Agent Action:** (0.0s) did turn 2

---

### Attempt 2 - Passed
*Timestamp: TIME*

| Gate | Status | Duration |
|------|--------|----------|
| test | ✅ Pass | 0.0s |
| lint | ✅ Pass | 0.0s |
| build | ✅ Pass | 0.0s |

**Total Duration:** 0.0s
**Agent:** 2 turns, 0.0s
**Total Attempts:** 2 of 3 allowed
"""
    )


@pytest.mark.thorough
def check_lines(output: str) -> None:
    """Check the lines about two attempts."""
    lines = TIMES.sub("TIME", output).splitlines()
    gates = [["test", "failed"], ["lint", "passed"], ["build", "passed"]]
    assert [line for line in lines if line.startswith("gitgates: ")][1:] == [
        "gitgates: attempt 1 of 3: sh is working",
        "gitgates: turn 1 of sh: TIME",
        "gitgates: attempt 1 of 3: gates",
        "gitgates: attempt 2 of 3: sh is working",
        "gitgates: turn 2 of sh: TIME",
        "gitgates: attempt 2 of 3: gates",
        "gitgates: attempt 2 of 3: commit",
    ]
    ended = sorted(line.split()[:2] for line in lines[4:7])
    assert ended == sorted(gates)
    assert "\x1b" not in output


def test_turns_without_an_attempt_are_told(work: Repo) -> None:
    command = agent(work, "echo worse > a.txt", "echo no money >&2; exit 3", "exit 3")
    assert headless(work, "go", "--agent-command", command).returncode == 1
    document = result(work)
    assert (document["headless"]["status"], document["headless"]["rolled_back"]) == ("failed", True)
    found = re.findall(r"the client failed: exit status 3( no money)?", summary(document))
    assert found == [" no money", ""]
    assert page(document).partition("After the last attempt")[2].count("exit status 3") == 2


def test_a_run_that_failed_in_spite_of_its_gates_is_not_shown_as_passed() -> None:
    document = page_support.one_attempt()
    document["headless"] |= {"status": "failed", "outcome": "a gate moved HEAD"}
    assert "<title>gitgates headless: failed</title>" in page(document)
    assert '<p class="bad"><strong>a gate moved HEAD</strong></p>' in page(document)
    assert "**Run:** ❌ a gate moved HEAD" in summary(document)


def test_what_is_known_of_a_gate_beside_its_status() -> None:
    document = page_support.one_attempt()
    results = document["quality_gates"]["attempts"][0]["results"]
    results[0] |= {"metrics": {"coverage": 91.5}, "action": "BLOCK", "verdict": "block"}
    results[1] |= {"passed": False, "status": "failed", "observed": True, "verdict": "warn"}
    shown = re.findall(r'<td class="(?!num)[a-z]+">(.+?)</td>', page(document))
    assert shown == [
        "passed: on_pass: BLOCK, coverage 91.5",
        "failed: observed",
        "skipped: no path",
    ]
    assert "| ✅ Pass (on_pass: BLOCK, coverage 91.5) |" in summary(document)
    assert "| ⚠️ Fail (observed) |" in summary(document)


def test_hostile_text_stays_text() -> None:
    document = page_support.hostile()
    shown = page(document)
    assert not [one for one in ("<script", "<img", "\x1b", "\u202e", "\x00") if one in shown]
    assert "&lt;script&gt;" in shown
    assert shown.startswith("<!doctype html>")
    outside = re.sub(r"(?ms)^(`{3,}).*?^\1$", "", summary(document))
    assert not re.findall(r"(?<!\\)<", outside)


def test_tokens_and_time_of_the_agent_in_the_summary() -> None:
    shown = summary(page_support.one_attempt())
    assert "**Agent Action:** (12.3 s, 2,345 tokens) I have mended the login." in shown
    assert "**Agent:** 1 turn, 12.3 seconds, 2,345 tokens" in shown


@pytest.mark.thorough
@pytest.mark.parametrize(("last", "status"), [("echo good > a.txt", 0), ("true", 1)])
def test_junit_has_the_last_attempt_and_the_run(work: Repo, last: str, status: int) -> None:
    command = agent(work, "echo TODO > a.txt", last)
    done = headless(work, "go", "--junit", "../gates.xml", "--agent-command", command)
    assert done.returncode == status
    (suite,) = ET.parse(work.path.parent / "gates.xml").getroot()
    assert suite.get("name") == "gitgates headless"
    cases = {case.get("name"): [child.tag for child in case] for case in suite}
    failed = ["failure"] if status else []
    listed = ["failure", "system-out"] if status else []  # what `lint` found
    assert cases == {"test": failed, "lint": listed, "build": [], "headless": failed}


def test_junit_that_cannot_be_written_is_said_before_anything_is_done(work: Repo) -> None:
    done = headless(work, "go", "--junit", "no/such.xml", "--agent-command", agent(work, "true"))
    assert done.returncode == 64
    assert b"--junit no/such.xml: cannot be written" in done.stderr
    assert not (work.path.parent / "agent/prompt1").exists()


@pytest.mark.samples(1)
@pytest.mark.parametrize("turn", ["echo good > a.txt", "echo worse > a.txt"])
def test_json_is_one_document_on_standard_output(work: Repo, turn: str) -> None:
    options = ("--format", "json", "--max-retries", "0", "--agent-command", agent(work, turn))
    done = headless(work, "go", *options)
    document = json.loads(done.stdout)
    assert document["outcome"] == ("exhausted" if done.returncode else "passed")
    assert Path(document["result"]).is_file()
    assert b"attempt 1 of 1: sh is working" in done.stderr


def test_json_of_a_run_that_could_not_begin(work: Repo) -> None:
    done = headless(work, " ", "--format", "json", "--agent-command", "true")
    assert json.loads(done.stdout)["error"]["message"] == "TASK is empty"


@pytest.mark.slow
def test_progress_on_a_terminal(work: Repo) -> None:
    command = agent(work, "sleep 1.2; echo worse > a.txt")
    args = ("headless", "go", "--max-retries", "0", "--agent-command", command)
    written = on_terminal(work, *args).decode()
    drawn = [part.partition("\r")[0] for part in written.split("\r\x1b[K")]
    phases = ["sh is working, 0 s", "sh is working, 1 s", "gates, 0 s"]
    found = [line for line in drawn if line.startswith("attempt")]
    assert found[:3] == [f"attempt 1 of 1: {phase}" for phase in phases]
    assert "keeping the agent's work, 0 s" in drawn
    assert "attempt 1 of 1: sh is working\r\n" not in written
    last = written.rpartition("\r\x1b[K")[2]
    assert last.startswith("gitgates headless: the gates still failed")


def test_what_takes_long_is_repeated_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    now = [1000.0]
    monkeypatch.setattr("gitgates.report.text.time.monotonic", lambda: now[0])
    console = text.Console(text.Terminal(1))
    console.phase("attempt 1 of 4: claude at work")
    assert console.live  # it is told the time while gates run
    for _ in range(700):
        now[0] += 1
        console.tick()
    console.phase("")
    console.tick()
    assert capfd.readouterr().out == (
        "gitgates: attempt 1 of 4: claude at work\n"
        "gitgates: attempt 1 of 4: claude at work, 5 m 00 s\n"
        "gitgates: attempt 1 of 4: claude at work, 10 m 00 s\n"
    )
