"""Advice: nothing is lost by two verbs at once, a push runs it once, a warning says why."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import Repo
from session_support import begin

from gitgates.drivers.rules import with_approvals
from gitgates.store.log import Journal

ADVICE = """
[[advice]]
title = "Tidy"
hook_command = "{}"
hook_trigger = "{}"
hook_on_failure = "{}"
"""


@pytest.mark.thorough
@pytest.mark.slow
def test_advice_that_is_added_at_once_is_all_there(repo: Repo) -> None:
    repo.write("gitgates.toml", "")

    def add(number: int) -> int:
        args = [sys.executable, "-m", "gitgates", "advice", "add", f"Number {number}"]
        return subprocess.run(args, cwd=repo.path, capture_output=True, check=False).returncode

    with ThreadPoolExecutor(6) as pool:
        assert set(pool.map(add, range(6))) == {0}
    assert (repo.path / "gitgates.toml").read_text().count("title = ") == 6


@pytest.mark.thorough
@pytest.mark.slow
def test_of_gates_that_are_proposed_meanwhile_nothing_is_lost(repo: Repo) -> None:
    repo.write("Makefile", "lint:\n\truff check .\n")
    base = "# notes\n" * 20_000  # reading it takes its time
    for _each in range(3):
        repo.write("gitgates.toml", base)
        verbs = [["advice", "add", "One"], ["init"], ["advice", "add", "Two"]]
        started = [
            subprocess.Popen(
                [sys.executable, "-m", "gitgates", *verb],
                cwd=repo.path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for verb in verbs
        ]
        assert [one.wait() for one in started] == [0, 0, 0]
        text = (repo.path / "gitgates.toml").read_text()
        assert (text.count("title = "), text.count("[gates.lint]")) == (2, 1)


@pytest.mark.slow
def test_a_push_of_several_branches_runs_it_once(repo: Repo, tmp_path: Path) -> None:
    count = tmp_path / "count"
    repo.config(ADVICE.format(f"echo x >> {count}", "before-push", "block"))
    repo.commit_all("first")
    repo.git("init", "-q", "--bare", str(tmp_path / "origin.git"))
    repo.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    for name in ("one", "two"):
        repo.git("checkout", "-qb", name, "main")
        repo.write(name, name)
        repo.commit_all(name)
    repo.shim("pre-push")
    repo.git("push", "-q", "origin", "main", "one", "two")
    assert count.read_text() == "x\n"


def test_a_warning_at_a_stop_says_what_was_put_out(repo: Repo) -> None:
    failing = "echo the changelog lacks a line; echo more; exit 1"
    agent = begin(repo, ADVICE.format(failing, "session-end", "warn"))
    agent.write("a.py", "x = 1\n")
    said = agent.stop()
    assert "decision" not in said
    assert "\n  | the changelog lacks a line\n  | more" in said["systemMessage"]


@pytest.mark.parametrize("verb", ["close tidy", "remove tidy", "edit tidy --priority 4"])
def test_the_guard_leaves_advice_that_blocks_to_a_person(repo: Repo, verb: str) -> None:
    agent = begin(repo, ADVICE.format("true", "session-end", "block") + '[[advice]]\ntitle = "B"\n')
    command = {"command": f"gitgates advice {verb}"}
    said = agent.pre("Bash", "", tool_input=command)["hookSpecificOutput"]
    assert said["permissionDecision"] == "deny"
    assert "person_verbs" in said["permissionDecisionReason"]
    for other in (f"gitgates advice {verb} --token x", "gitgates advice close b"):
        assert agent.pre("Bash", "", tool_input={"command": other}) == {}


def test_what_a_person_has_closed_is_no_rule_of_the_session(tmp_path: Path) -> None:
    rules = {"settings": {}, "gates": {}, "advice": [{"id": "a"}, {"id": "b"}]}
    closed = {"table": "advice", "id": "a", "is": []}
    journal = Journal(f"{tmp_path}/approved-rules.jsonl")
    journal.append({"what": "rules", "t": 2.0, "rules": closed})
    left = with_approvals({"t": 1.0, "rules": rules}, [str(tmp_path)])
    assert left == {**rules, "advice": [{"id": "b"}]}
