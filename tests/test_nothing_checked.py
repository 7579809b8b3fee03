"""A gate that exits with status 0 and had nothing to check has not passed."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import forked
import pytest
from agent_support import begin
from conftest import Repo, timeless
from verify_support import gate, kept

from gitgates.core.types import GateResult, make_gate
from gitgates.engine.findings.nothing_checked import without_empty_pass

OUTPUTS = Path(__file__).parent / "outputs"

IDLE = 'echo "no tests ran in 0.01s"'


def _status(output: bytes, **gate: object) -> tuple[str, str]:
    result = GateResult(gate="g", status="passed", exit_status=0, output=output)
    judged = without_empty_pass(result, make_gate(name="g", **gate))
    return judged.status, judged.reason


def _statuses(folder: str) -> dict[str, tuple[str, str]]:
    """Return what is said of each output in a folder."""
    return {path.stem: _status(path.read_bytes()) for path in (OUTPUTS / folder).iterdir()}


def test_a_tool_that_had_nothing_to_check_has_not_passed() -> None:
    judged = _statuses("nothing")
    assert {name: status for name, (status, _why) in judged.items()} == dict.fromkeys(
        judged, "unchecked"
    )
    assert [name for name, (_status, why) in judged.items() if not why or "\n" in why] == []


def test_a_tool_that_has_checked_something_passes() -> None:
    judged = _statuses("work")
    assert judged == dict.fromkeys(judged, ("passed", ""))


def test_eslint_that_ignores_one_of_two_files_has_checked_the_other() -> None:
    output = (OUTPUTS / "nothing/eslint-ignored.txt").read_bytes()
    result = GateResult(gate="g", status="passed", exit_status=0, output=output)
    statuses = [
        without_empty_pass(result, make_gate(name="g"), paths).status
        for paths in (("a.js",), ("a.js", "b.js"))
    ]
    assert statuses == ["unchecked", "passed"]


LOOK_LIKE_IT = (
    b"",
    b"fine\n",
    b"10 passing (3ms)\n",
    b"100 tests 0 failures\n",
    b"3 files skipped in the second folder\n",
    b"contests 0\n",
    b"\xff\xfe no test\n",
    b"All 12 checks done; no tests were harmed\n",
)


def test_an_output_that_only_looks_like_it_passes() -> None:
    assert {output: _status(output) for output in LOOK_LIKE_IT} == dict.fromkeys(
        LOOK_LIKE_IT, ("passed", "")
    )


@pytest.mark.parametrize(
    "line", [b"1" * 100_000, b"a" * 100_000, b" " * 100_000, b"1 skipped" + b", 1 a" * 20_000]
)
def test_an_output_with_a_long_line_is_read_at_once(line: bytes) -> None:
    began = time.monotonic()
    assert _status(line + b"\nno tests were harmed\n") == ("passed", "")
    assert time.monotonic() - began < 3


def test_hooks_of_pre_commit_that_match_no_file_are_a_skip() -> None:
    idle = b"ruff.........................(no files to check)Skipped\n"
    done = b"ruff.....................................Passed\n"
    by_person = b"ruff....................................Skipped\n"
    for how in ({"pre_commit": ()}, {"command": "pre-commit run"}):
        assert _status(idle + idle, **how)[0] == "skipped"
        assert _status(idle + done, **how)[0] == "passed"
        assert _status(idle + by_person, **how)[0] == "unchecked"


@pytest.fixture
def idle(repo: Repo) -> Repo:
    """A repository whose gate `test` ends well and has nothing to check; `lint` does check."""
    gate(repo)
    repo.config(_config("[hooks.manual]\ngates = ['lint', 'test']\n"))
    repo.commit_all("gates")
    repo.git("tag", "-f", "base")
    return repo


def _config(more: str) -> str:
    gates = f"[gates.test]\ncommand = '{IDLE}'\n[gates.lint]\ncommand = 'true'\n"
    return gates + "[hooks.pre-commit]\ngates = ['lint', 'test']\n" + more


SAID = "test  unchecked      0.00 s  nothing was checked: no tests ran in 0.01s"
SUMMARY = "passed with a warning: gate `test` checked nothing (no tests ran in 0.01s)"


def test_a_run_says_so_in_its_text_and_in_each_format(idle: Repo) -> None:
    done = idle.gitgates("run")
    assert done.returncode == 0
    assert timeless(done.stdout).splitlines() == [
        "lint  passed         0.00 s",
        SAID,
        "  | no tests ran in 0.01s",
        f"gitgates manual: {SUMMARY}",
    ]
    document = json.loads(idle.gitgates("run", "--format", "json").stdout)
    assert [(g["name"], g["status"], g["verdict"]) for g in document["results"]] == [
        ("lint", "passed", "allow"),
        ("test", "unchecked", "warn"),
    ]
    lines = idle.gitgates("run", "--format", "jsonl").stdout.splitlines()
    ended = {one["name"]: one for one in map(json.loads, lines) if one["event"] == "gate-ended"}
    assert (ended["test"]["status"], ended["lint"]["status"]) == ("unchecked", "passed")
    assert json.loads(lines[-1])["reason"] == SUMMARY.removeprefix("passed with a warning: ")
    idle.gitgates("run", "--junit", "junit.xml")
    suite = ET.parse(idle.path / "junit.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("skipped"), suite.get("failures")) == ("2", "1", "0")
    skipped = suite.find("testcase[@name='test']/skipped")
    assert skipped is not None
    assert skipped.get("message") == "nothing was checked: no tests ran in 0.01s"


def test_what_is_kept_of_a_run_and_its_statistics_say_so(idle: Repo) -> None:
    idle.gitgates("run")
    assert b"Nothing checked" in idle.gitgates("runs", "show", "latest").stdout
    shown = json.loads(idle.gitgates("runs", "show", "latest", "--format", "json").stdout)
    results = shown["quality_gates"]["attempts"][0]["results"]
    assert [(r["status"], r["passed"]) for r in results] == [("passed", True), ("unchecked", False)]
    assert (
        json.loads(idle.gitgates("runs", "list", "--format", "json").stdout)["runs"][0]["failed"]
        == []
    )
    stats = json.loads(idle.gitgates("runs", "stats", "--format", "json").stdout)["gates"]
    assert {one["name"]: one["unchecked"] for one in stats} == {"lint": 0, "test": 2}


def test_a_commit_is_made_and_is_no_evidence_of_the_gate(idle: Repo) -> None:
    idle.write("b.py", "b = 1\n")
    idle.git("add", "b.py")
    done = idle.commit("add b")
    assert done.returncode == 0
    assert SUMMARY in done.stderr.decode()
    done = idle.gitgates("verify", "base..HEAD")
    assert done.returncode == 1
    assert "nothing was checked: test  add b" in done.stdout.decode()
    (checked,) = kept(idle)[idle.git("rev-parse", "HEAD^{tree}")]
    assert checked.gates == {"lint": "passed", "test": "unchecked"}
    again = idle.gitgates("verify", "base..HEAD", "--run-missing")
    assert again.returncode == 1
    assert "nothing was checked: test  add b" in again.stdout.decode()


def test_a_gate_that_leads_to_one_that_checks_nothing_is_no_evidence(idle: Repo) -> None:
    chain = _config("").replace("['lint', 'test']", "['lint']")
    idle.config(chain.replace("command = 'true'\n", "command = 'true'\non_pass = 'test'\n"))
    idle.git("commit", "-qam", "chain")
    assert "nothing was checked: lint" in idle.gitgates("verify", "HEAD^!").stdout.decode()


def test_a_push_that_verifies_is_refused(idle: Repo) -> None:
    idle.config(_config("[hooks.pre-push]\nverify = true\n"))
    idle.commit_all("verify pushes")
    idle.add_origin()
    idle.write("c.py", "c = 1\n")
    idle.commit_all("add c")
    idle.shim("pre-push")
    done = idle.ask("git", "push", "-q", "origin", "HEAD:main")
    assert done.returncode == 1
    assert "not pushed: nothing was checked by `test`" in done.stderr.decode()


def test_the_framework_shows_it_and_goes_on(idle: Repo) -> None:
    args = ("pre-commit-hook", "pre-commit", "pyproject.toml")
    done = forked.run(args, str(idle.path), {**os.environ}, b"", hosts=True)
    assert done.returncode == 0
    assert SUMMARY in done.stdout.decode()


def test_an_agent_may_stop_and_the_person_is_told_once(repo: Repo) -> None:
    agent = begin(repo, _config("[hooks.Stop]\ngates = ['lint', 'test']\n"))
    agent.pre()
    repo.write("a.py", "a = 1\n")
    agent.post()
    answer = agent.stop()
    assert answer.keys() == {"systemMessage"}
    assert "`test` checked nothing (no tests ran in 0.01s)" in answer["systemMessage"]
    assert agent.stop(last_assistant_message="still done") == {}  # on the same content
    assert agent.state().rounds[-1].statuses == (("test", "unchecked"),)
    shown = repo.gitgates("explain", "Stop").stdout.decode()
    assert "they passed on the same content, except `test`, which checked nothing" in shown


def test_a_base_on_which_a_gate_checks_nothing_excuses_no_failure(repo: Repo) -> None:
    command = "if [ -e a.py ]; then echo BAD a; exit 1; else echo no tests ran; fi"
    gates = f"[gates.test]\ncommand = '{command}'\nfailures = 'BAD'\nbaseline = true\n"
    agent = begin(repo, f"{gates}[hooks.Stop]\ngates = ['test']\n")
    agent.write("a.py", "a = 1\n")
    assert "it had nothing to check on the session's first snapshot" in agent.stop()["reason"]


def test_a_hook_of_advice_says_so_and_comes_again(repo: Repo) -> None:
    hook = f"title = 'Test'\nhook_command = '{IDLE}'\nhook_trigger = 'session-end'\n"
    agent = begin(repo, f"[[advice]]\n{hook}hook_on_failure = 'block'\n")
    for text in ("a = 1\n", "a = 2\n"):
        agent.write("a.py", text)
        assert "checked nothing (no tests ran in 0.01s)" in json.dumps(agent.stop())
    assert [one["status"] for one in agent.facts() if one["what"] == "advice"] == 2 * ["unchecked"]


@pytest.mark.samples(2)
@pytest.mark.parametrize("unstaged", ["hide", "checkout", "keep"])
def test_where_a_gate_looks_makes_no_difference(idle: Repo, unstaged: str) -> None:
    idle.config(_config(f"unstaged = '{unstaged}'\n"))
    idle.write("b.py", "b = 1\n")
    idle.git("add", "--all")
    idle.write("b.py", "b = 2\n")
    assert SUMMARY in idle.commit("add b").stderr.decode()


def test_after_an_edit_the_agent_is_told(repo: Repo) -> None:
    agent = begin(repo, _config("[hooks.PostToolUse]\ngates = ['test']\n"))
    agent.pre()
    repo.write("a.py", "a = 1\n")
    told = agent.post()["hookSpecificOutput"]["additionalContext"]
    assert "1 checked nothing (`test`)" in told
    assert "failed" not in told


@pytest.mark.parametrize("rescue", [f"command = '{IDLE}'", "command = 'true'\nfiles = ['*.none']"])
def test_a_failure_is_not_saved_by_a_gate_that_looked_at_nothing(repo: Repo, rescue: str) -> None:
    repo.config(
        "[gates.first]\ncommand = 'false'\non_fail = 'second'\n"
        f"[gates.second]\n{rescue}\n[hooks.manual]\ngates = ['first']\n"
    )
    repo.commit_all("gates")
    repo.write("a.py", "a = 1\n")
    done = repo.gitgates("run")
    assert done.returncode == 1
    assert "blocked by `second`" in done.stdout.decode()


def test_neither_action_is_for_it_and_one_that_observes_does_not_warn(repo: Repo) -> None:
    for more, shown in (
        ("on_pass = 'BLOCK'", SUMMARY),
        ("on_fail = 'STOP'", SUMMARY),
        ("observe = true", "1 gate checked nothing"),
    ):
        repo.config(f"[gates.test]\ncommand = '{IDLE}'\n{more}\n[hooks.manual]\ngates = ['test']\n")
        done = repo.gitgates("run", "--all-files")
        assert (done.returncode, shown in done.stdout.decode()) == (0, True), done.stdout


def test_a_fixer_that_changed_a_file_has_looked_at_it(repo: Repo) -> None:
    repo.config(
        f"[gates.fix]\ncommand = 'echo x > a.py; {IDLE}'\nwrites = true\n"
        "[hooks.manual]\ngates = ['fix']\n"
    )
    repo.write("a.py", "a\n")
    repo.commit_all("base")
    assert "fix  passed" in repo.gitgates("run", "--all-files").stdout.decode()


def test_a_configuration_without_gates_and_a_trace_without_records_say_so(repo: Repo) -> None:
    repo.write("pyproject.toml", "[tool.gitgates]\n")
    repo.commit_all("base")
    done = repo.gitgates("check")
    assert done.stdout == b"pyproject.toml: 0 gates, 0 hooks, no problems, 1 warning\n"
    assert b"declares no gate" in done.stderr
    assert "declares no gate" in repo.gitgates("doctor").stdout.decode()
    assert repo.gitgates("run").returncode == 78
    done = repo.gitgates("trace", "verify")
    assert done.stdout == b"the ledger has no records; nothing was verified\n"
