"""An agent wants to stop: what its session changed is checked, and failures go back to it."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from agent_support import COUNT, Agent
from conftest import Repo
from session_support import begin

from gitgates.files.look import DEFAULT
from gitgates.worktree.locks import Lock

NO_BAD = f"""
[gates.check]
description = "No bad words"
command = '''{COUNT}; ! grep -n BAD *.py'''
[hooks.Stop]
gates = ["check"]
"""
WAY_OUT = "gitgates cannot-fix check --reason"


@pytest.fixture(name="agent")
def _agent(repo: Repo) -> Agent:
    return begin(repo, NO_BAD)


def test_a_failing_gate_blocks_and_a_fix_lets_go(agent: Agent) -> None:
    agent.write("a.py", "BAD\n")
    said = agent.stop()
    assert said.keys() == {"decision", "reason"}
    assert said["decision"] == "block"
    for part in ("check", "failed", "exit status 1", "a.py:1:BAD", "ttempt 1 of 4", WAY_OUT):
        assert part in said["reason"], said["reason"]
    agent.write("a.py", "good\n")
    assert agent.stop(again=True) == {}
    assert agent.outcomes() == ["blocked", "passed"]


def test_the_name_of_a_headless_run_alone_switches_nothing_off(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITGATES_HEADLESS", "r1")
    agent.write("a.py", "BAD\n")
    assert agent.stop()["decision"] == "block"
    agent.repo.write(".git/gitgates/headless/r1/run.json")  # now the run is there
    assert agent.stop(again=True) == {}


def test_a_session_that_changed_nothing_is_left_alone(agent: Agent) -> None:
    assert agent.stop() == {}
    agent.write("a.py", "BAD\n")
    agent.repo.path.joinpath("a.py").unlink()
    assert agent.stop() == {}
    assert agent.runs() == 0


def test_what_no_tree_holds_is_a_change_too(repo: Repo) -> None:
    agent = begin(repo, '[gates.check]\ncommand = "false"\n[hooks.Stop]\ngates = ["check"]\n')
    os.truncate(repo.write("large.bin"), DEFAULT.max_file + 1)
    assert agent.stop()["decision"] == "block"
    later = Agent(repo, "s2")
    later.start()
    later.prompt()
    assert later.stop() == {}
    os.truncate(repo.write("made.bin"), DEFAULT.max_file + 1)
    assert later.stop()["decision"] == "block"


def test_a_submodule_that_the_session_changed_is_checked(repo: Repo, tmp_path: Path) -> None:
    inner = Repo.init(tmp_path / "inner")
    inner.write("b.py", "b\n")
    inner.git("add", ".")
    inner.git("commit", "-qm", "b")
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(inner.path), "sub")
    agent = begin(repo, '[gates.check]\ncommand = "false"\n[hooks.Stop]\ngates = ["check"]\n')
    assert agent.stop() == {}
    agent.write("sub/b.py", "c\n")
    assert agent.stop()["decision"] == "block"


def test_what_was_dirty_before_the_session_is_not_the_agents(repo: Repo) -> None:
    repo.write("a.py", "BAD\n")
    agent = begin(repo, NO_BAD)
    repo.write("b.py", "BAD\n")
    fresh = Agent(repo, "s2")
    fresh.start()
    fresh.prompt()
    assert fresh.stop() == {}
    assert agent.stop()["decision"] == "block"


def test_committing_hides_nothing(agent: Agent) -> None:
    agent.write("a.py", "BAD\n")
    agent.repo.git("add", ".")
    agent.repo.git("commit", "-qm", "hidden")
    assert agent.stop()["decision"] == "block"


def test_paths_are_what_the_session_changed(repo: Repo) -> None:
    config = NO_BAD.replace("[hooks", 'files = ["*.py"]\npass_files = true\n[hooks')
    agent = begin(repo, config.replace("! grep -n BAD *.py", 'echo "$@" >> seen'))
    agent.write("b.txt", "x\n")
    assert agent.stop() == {}
    assert agent.runs() == 0
    agent.write("c.py", "x\n")
    agent.write("d.py", "x\n")
    agent.repo.git("add", "c.py")
    agent.repo.git("commit", "-qm", "c")
    assert agent.stop(again=True) == {}
    assert (repo.path / "seen").read_text() == "c.py d.py\n"


def test_retries_are_used_up_and_the_next_prompt_starts_afresh(agent: Agent) -> None:
    for number in (1, 2, 3):
        agent.write("a.py", f"BAD {number}\n")
        assert f"ttempt {number} of 4" in agent.stop(again=number > 1)["reason"]
    agent.write("a.py", "BAD 4\n")
    said = agent.stop(again=True)
    assert said.keys() == {"systemMessage"}
    for part in ("check", "after 4 attempts", ".git/gitgates/runs/"):
        assert part in said["systemMessage"]
    assert agent.outcomes() == ["blocked", "blocked", "blocked", "exhausted"]
    shown = agent.repo.gitgates("runs", "show", "latest").stdout
    assert b"**Total Attempts:** 4 of 4 allowed\n" in shown
    told = agent.prompt("go on")
    assert "check" in told["hookSpecificOutput"]["additionalContext"]
    assert "ttempt 1 of 4" in agent.stop()["reason"]


def test_the_count_restarts_when_the_gates_pass(agent: Agent) -> None:
    agent.write("a.py", "BAD\n")
    assert "ttempt 1 of 4" in agent.stop()["reason"]
    agent.write("a.py", "good\n")
    assert agent.stop(again=True) == {}
    agent.write("a.py", "BAD again\n")
    assert "ttempt 1 of 4" in agent.stop(again=True)["reason"]


def test_on_exhausted_stop(repo: Repo) -> None:
    agent = begin(repo, NO_BAD + 'max_retries = 1\non_exhausted = "stop"\n')
    agent.write("a.py", "BAD\n")
    assert agent.stop()["decision"] == "block"
    agent.write("a.py", "BAD 2\n")
    said = agent.stop(again=True)
    assert said["continue"] is False
    assert "check" in said["stopReason"]
    assert "let the agent stop" not in said["stopReason"]
    assert "decision" not in said


@pytest.mark.parametrize("changed", ["BAD 2\n", ""])
def test_an_agent_that_is_stopped_was_not_let_go(repo: Repo, changed: str) -> None:
    agent = begin(repo, NO_BAD + 'max_retries = 1\non_exhausted = "stop"\n')
    agent.write("a.py", "BAD\n")
    agent.stop()
    if changed:
        agent.write("a.py", changed)
    said = agent.stop(again=True)["stopReason"]
    assert "stopped after 2 attempts" in said or "stopped the agent after 2 attempts" in said
    assert "let go" not in said
    assert "let the agent stop" not in said


def test_a_gate_that_takes_the_journal_away_does_not_block_for_ever(repo: Repo) -> None:
    gate = "[gates.check]\ncommand = 'rm -rf .git/gitgates; false'\n"
    agent = begin(repo, f'{gate}[hooks.Stop]\ngates = ["check"]\n')
    agent.write("a.py", "BAD\n")
    for again in (False, True):
        agent.write("a.py", f"BAD {again}\n")
        said = agent.stop(again=again)
        assert said.keys() == {"systemMessage"}
        assert "removed while gates ran" in said["systemMessage"]


def test_no_retry_tells_the_person_and_lets_go(repo: Repo) -> None:
    agent = begin(repo, NO_BAD + "max_retries = 0\n")
    agent.write("a.py", "BAD\n")
    said = agent.stop()
    assert said.keys() == {"systemMessage"}
    assert "check" in said["systemMessage"]


def test_breaker_of_a_prompt(repo: Repo) -> None:
    agent = begin(repo, "breaker = { prompt = 2 }\n" + NO_BAD + "max_retries = 9\n")
    for number in (1, 2):
        agent.write("a.py", f"BAD {number}\n")
        assert agent.stop(again=number > 1)["decision"] == "block"
    agent.write("a.py", "BAD 3\n")
    assert "2 blocks in this prompt" in agent.stop(again=True)["systemMessage"]
    agent.prompt()
    agent.write("a.py", "BAD 4\n")
    assert agent.stop()["decision"] == "block"


def test_breaker_of_a_session(repo: Repo) -> None:
    agent = begin(repo, "breaker = { session = 3 }\n" + NO_BAD + "max_retries = 1\n")
    for number in (1, 2, 3):
        agent.write("a.py", f"BAD {number}\n")
        assert agent.stop()["decision"] == "block"
        agent.prompt()
    agent.write("a.py", "BAD 4\n")
    assert "3 blocks in this session" in agent.stop()["systemMessage"]


def test_gates_that_failed_run_again_though_nothing_came_between(agent: Agent) -> None:
    agent.write("a.py", "BAD\n")
    assert "ttempt 1 of 4" in agent.stop()["reason"]
    second = agent.stop(again=True)["reason"]
    assert "attempt 2 of 4" in second
    assert "a.py:1:BAD" in second
    third = agent.stop(again=True, last_assistant_message="still done")["reason"]
    assert third.count("ttempt 3 of 4") == third.count("ttempt ") - third.count("since attempt 1")
    assert "no further attempt" in third
    assert agent.stop(again=True, last_assistant_message="really").keys() == {"systemMessage"}
    assert agent.runs() == 4


def test_a_failure_that_comes_back_ends_the_loop(repo: Repo) -> None:
    agent = begin(repo, NO_BAD + "max_retries = 9\n")
    for number, word in enumerate(("BAD one", "BAD two", "BAD one")):
        agent.write("a.py", f"{word}\n")
        said = agent.stop(again=number > 0)
    assert "the same failures recurred" in said["systemMessage"]
    assert agent.outcomes()[-1] == "not-converging"


def without_runs(text: str) -> str:
    return re.sub(r"runs/[^/]+/", "runs/RUN/", text)


def test_a_failure_is_sent_in_full_once(repo: Repo) -> None:
    agent = begin(repo, BY_NAME + "max_retries = 4\n")
    agent.write("out.txt", failing("a", "b"))
    assert "E  a is wrong" in agent.stop()["reason"]
    agent.write("a.py", "tried\n")
    head = "1 of 1 gates failed (`check`). This was attempt {} of 5.\n\n"
    unchanged = (
        "## `check` failed (exit status 1)\nUnchanged since attempt 1:\n"
        "- FAILED a\n- FAILED b\nFull log: .git/gitgates/runs/RUN/logs/attempt-{}/check.log\n\n"
        "## What to do now\n"
    )
    second = without_runs(agent.stop(again=True)["reason"])
    assert second.startswith((head + unchanged).format(2, 2))
    third = without_runs(agent.stop(again=True, last_assistant_message="so?")["reason"])
    assert third.startswith((head + unchanged).format(3, 3))
    agent.write("out.txt", failing("b", "c"))
    fourth = without_runs(agent.stop(again=True, last_assistant_message="well")["reason"])
    assert "New:\n- FAILED c\nUnchanged since attempt 1:\n- FAILED b\nGone:\n- FAILED a\n" in fourth
    assert "```\n[... 6 lines as in an earlier attempt ...]\n== c ==\n" in fourth


def test_of_the_first_attempt_as_well_no_line_is_sent_twice(repo: Repo) -> None:
    agent = begin(repo, BY_NAME)
    agent.write("out.txt", failing("a", "b"))
    agent.stop()
    agent.write("out.txt", failing("a", "b", "c"))
    assert "lines as in an earlier attempt ...]" in agent.stop(again=True)["reason"]


def test_an_edit_that_only_the_event_before_it_tells_of(repo: Repo) -> None:
    agent = begin(
        repo,
        "[gates.check]\ncommand = 'true'\n"
        "[hooks.PreToolUse]\ngates = ['check']\n[hooks.Stop]\ngates = ['check']\n",
    )
    agent.pre("Write", "pyproject.toml", tool_use_id="w1")
    agent.repo.write("pyproject.toml", "[tool.gitgates]\n[[[")
    assert "gitgates check" in agent.stop()["reason"]


BY_NAME = """
[gates.check]
command = "cat out.txt; test ! -e out.txt"
failures = "FAILED .*"
[hooks.Stop]
gates = ["check"]
"""


def failing(*names: str) -> str:
    return "".join(
        f"== {one} ==\n\n>  try {one}\nE  {one} is wrong\nat {one}\nFAILED {one}\n" for one in names
    )


def test_what_is_new_and_gone_is_said(repo: Repo) -> None:
    agent = begin(repo, NO_BAD.replace("[hooks", "failures = 'BAD \\w+'\n[hooks"))
    agent.write("a.py", "BAD one\nBAD two\n")
    agent.stop()
    agent.write("a.py", "BAD two\nBAD three\n")
    reason = agent.stop(again=True)["reason"]
    assert "BAD one" in reason  # gone
    assert "BAD three" in reason  # new
    assert "ttempt 2 of 4" in reason


@pytest.mark.parametrize("gate", ["no-such-program-xyz", "./missing.sh"])
def test_what_cannot_run_blocks_once_and_never_passes(repo: Repo, gate: str) -> None:
    agent = begin(repo, f'[gates.check]\ncommand = ["{gate}"]\n[hooks.Stop]\ngates = ["check"]\n')
    agent.write("a.py", "x\n")
    first = agent.stop()
    assert first["decision"] == "block"
    assert "could not" in first["reason"]
    agent.write("a.py", "y\n")
    assert agent.stop(again=True).keys() == {"systemMessage"}
    assert agent.outcomes() == ["blocked", "could-not-run"]


def test_a_gates_own_limit_is_named_as_such(repo: Repo) -> None:
    slow = '[gates.slow]\ncommand = "sleep 30"\ntimeout = 0.3\n'
    agent = begin(repo, slow + '[hooks.Stop]\ngates = ["slow"]\n')
    agent.write("a.py", "x\n")
    assert "## `slow` timed out (limit 0.3 s)\n" in agent.stop()["reason"]


def test_the_limit_of_all_gates(repo: Repo) -> None:
    agent = begin(
        repo,
        """
[gates.slow]
command = "sleep 30"
on_fail = "CONTINUE"
[gates.later]
command = "true"
[hooks.Stop]
gates = ["slow", "later"]
timeout = 0.5
""",
    )
    agent.write("a.py", "x\n")
    reason = agent.stop()["reason"]
    assert "slow" in reason
    assert "timed out" in reason
    assert "later" in reason
    assert agent.outcomes() == ["blocked"]


@pytest.mark.parametrize(
    ("fields", "runs"),
    [
        ({"permission_mode": "plan"}, 0),
        ({"background_tasks": [{"type": "subagent", "status": "running"}]}, 0),
        ({"background_tasks": [{"type": "subagent", "status": "completed"}]}, 1),
        ({"background_tasks": [{"type": "shell", "status": "running"}]}, 1),
        ({"background_tasks": None}, 1),
    ],
)
def test_when_it_is_left_alone(agent: Agent, fields: dict[str, Any], runs: int) -> None:
    agent.write("a.py", "BAD\n")
    assert bool(agent.stop(**fields)) is bool(runs)
    assert agent.runs() == runs


def test_a_stop_is_put_off_three_times_a_prompt(agent: Agent) -> None:
    agent.write("a.py", "BAD\n")
    tasks = [{"type": "subagent", "status": "running"}]
    said = [agent.stop(background_tasks=tasks, last_assistant_message=f"{n}") for n in range(4)]
    assert [bool(one) for one in said] == [False, False, False, True]
    agent.prompt()
    assert agent.stop(background_tasks=tasks) == {}


def test_a_task_notification_is_no_new_prompt(agent: Agent) -> None:
    agent.write("a.py", "BAD\n")
    agent.stop()
    agent.prompt("<task-notification>\n<task-id>x</task-id>")
    agent.write("a.py", "BAD 2\n")
    assert "ttempt 2 of 4" in agent.stop()["reason"]


def test_a_warning_reaches_the_agent_with_the_next_prompt(repo: Repo) -> None:
    agent = begin(repo, NO_BAD.replace("[hooks", 'on_fail = "CONTINUE"\n[hooks'))
    agent.write("a.py", "BAD\n")
    said = agent.stop()
    assert said.keys() == {"systemMessage"}
    assert "check" in said["systemMessage"]
    told = agent.prompt()["hookSpecificOutput"]["additionalContext"]
    assert "check" in told
    assert "a.py:1:BAD" in told
    assert agent.prompt() == {}


def test_a_rescue_is_told_in_whole_sentences(repo: Repo) -> None:
    gates = "[gates.a]\ncommand = 'false'\non_fail = 'b'\n[gates.b]\ncommand = 'true'\n"
    agent = begin(repo, f'{gates}[hooks.Stop]\ngates = ["a"]\n')
    agent.write("a.py", "x\n")
    said = "`a` failed (exit status 1), but `b` fixed it."
    assert agent.stop() == {"systemMessage": f"gitgates passed Stop with a warning. {said}"}
    told = agent.prompt()["hookSpecificOutput"]["additionalContext"]
    assert told.startswith("The gates passed.")


def test_no_warning_of_what_has_been_undone(repo: Repo) -> None:
    agent = begin(repo, NO_BAD.replace("[hooks", 'on_fail = "CONTINUE"\n[hooks'))
    agent.write("a.py", "BAD\n")
    assert agent.stop().keys() == {"systemMessage"}
    (repo.path / "a.py").unlink()
    assert agent.stop(last_assistant_message="undone") == {}
    assert agent.prompt() == {}


def test_stop_ends_the_agent(repo: Repo) -> None:
    agent = begin(repo, NO_BAD.replace("[hooks", 'on_fail = "STOP"\n[hooks'))
    agent.write("a.py", "BAD\n")
    said = agent.stop()
    assert said["continue"] is False
    assert "check" in said["stopReason"]
    assert "decision" not in said


def test_an_undefined_gate_stops_with_the_reason(repo: Repo) -> None:
    agent = begin(repo, '[hooks.Stop]\ngates = ["nothing"]\n')
    agent.write("a.py", "x\n")
    assert "`nothing` is listed but not defined" in agent.stop()["stopReason"]


def test_an_observing_gate_decides_nothing(repo: Repo) -> None:
    agent = begin(repo, NO_BAD.replace("[hooks", "observe = true\n[hooks"))
    agent.write("a.py", "BAD\n")
    said = agent.stop()
    assert said.keys() == {"systemMessage"}
    assert "only observes" in said["systemMessage"]
    assert agent.outcomes() == ["passed"]


def test_broken_settings_block_until_they_are_mended(agent: Agent) -> None:
    good = (agent.repo.path / "pyproject.toml").read_text()
    agent.write("pyproject.toml", good + "\n[tool.gitgates.hooks.Stop\n")
    reason = agent.stop()["reason"]
    assert reason.startswith(
        "The gate configuration could not be read, so nothing was checked (attempt 1 of 4).\n\n"
        "pyproject.toml"
    )
    assert reason.endswith(
        "\n\nFix that part of the file, then run: gitgates check\n"
        "If somebody else is editing it right now, do not touch the file, and end your turn "
        "again: after the last attempt you may stop, and the person is told."
    )
    assert agent.pre("Edit", "pyproject.toml") == {}
    assert agent.stop(again=True)["decision"] == "block"
    agent.write("pyproject.toml", good)
    assert agent.stop(again=True) == {}


def test_broken_settings_do_not_block_for_ever(agent: Agent) -> None:
    agent.write("pyproject.toml", "[tool.gitgates]\njobs = \n")
    said = [agent.stop(again=True, last_assistant_message=f"{n}") for n in range(5)]
    assert ["decision" in one for one in said] == [True, True, True, False, False]
    assert "systemMessage" in said[-1]


def test_double_delivery_in_sequence_repeats_the_first_answer(agent: Agent) -> None:
    agent.write("a.py", "BAD\n")
    assert agent.stop() == agent.stop()
    assert agent.runs() == 1
    assert agent.state().blocks() == 1


@pytest.mark.slow
def test_double_delivery_at_once_runs_once(repo: Repo) -> None:
    agent = begin(repo, NO_BAD.replace("! grep", "sleep 0.3; ! grep"))
    agent.write("a.py", "BAD\n")
    for again in (False, True):
        agent.write("a.py", f"BAD {again}\n")
        pair = [agent.process("Stop", stop_hook_active=again) for _ in range(2)]
        answers = [child.communicate(timeout=30)[0] for child in pair]
        assert answers[0] == answers[1]
        assert json.loads(answers[0])["decision"] == "block"
    assert agent.runs() == 2
    assert agent.state().blocks() == 2


def test_a_session_whose_beginning_was_missed_is_measured_from_head(repo: Repo) -> None:
    begin(repo, NO_BAD)
    late = Agent(repo, "late")
    assert "recorded event of this session is Stop" in late.stop()["systemMessage"]
    late.write("a.py", "BAD\n")
    assert "compared with HEAD" in late.stop()["reason"]


def test_what_stands_in_for_a_missed_beginning_stays(repo: Repo) -> None:
    begin(repo, NO_BAD)
    late = Agent(repo, "late")
    late.write("a.py", "BAD\n")
    assert "compared with HEAD" in late.stop()["reason"]
    late.post("Edit", "other.py")  # what is there now is no beginning
    assert late.stop(again=True)["decision"] == "block"
    late.prompt("go on")
    repo.commit_all("what existed before")
    assert "compared with HEAD" in late.stop()["reason"]


def test_a_cycle_is_one_run(agent: Agent) -> None:
    agent.write("a.py", "BAD\n")
    agent.stop()
    agent.write("a.py", "good\n")
    assert agent.stop(again=True, last_assistant_message="I took the bad word out") == {}
    runs = sorted((agent.repo.path / ".git/gitgates/runs").iterdir())
    assert len(runs) == 1
    result = json.loads((runs[0] / "result.json").read_text())
    gates = result["quality_gates"]
    assert (gates["retry_attempts"], gates["max_retries"]) == (1, 3)
    assert gates["final_status"] == "passed"
    first, second = gates["attempts"]
    assert (first["verdict"], second["verdict"]) == ("blocked", "passed")
    assert second["agent_fixes"] == "I took the bad word out"
    assert first["results"][0]["output"] == "a.py:1:BAD\n"
    assert (runs[0] / first["results"][0]["log"]).read_text() == "a.py:1:BAD\n"
    assert "I took the bad word out" in (runs[0] / "summary.md").read_text()
    listed = agent.repo.gitgates("runs", "list").stdout.decode()
    assert runs[0].name in listed


def test_a_stopped_turn_is_shown_as_such(repo: Repo) -> None:
    agent = begin(repo, NO_BAD.replace("[hooks", 'on_fail = "STOP"\n[hooks'))
    agent.write("a.py", "BAD\n")
    agent.stop()
    assert "stopped" in repo.gitgates("runs").stdout.decode()


def test_talk_after_a_pass_runs_nothing_again(agent: Agent) -> None:
    agent.write("a.py", "good\n")
    assert agent.stop() == {}
    agent.prompt("and why is that?")
    assert agent.stop(last_assistant_message="because") == {}
    agent.write("a.py", "good\n")  # a tool was used, and the content is the same
    assert agent.stop(last_assistant_message="well") == {}
    assert agent.runs() == 1
    agent.prompt()
    agent.repo.write("a.py", "BAD\n")
    assert agent.stop()["decision"] == "block"


def test_a_gate_that_changes_files_without_saying_so(repo: Repo) -> None:
    gates = """
[gates.check]
command = "echo ran >> .git/ran"
[gates.fix]
command = "sed -i s/BAD/good/ a.py"
[hooks.Stop]
gates = ["check", "fix"]
"""
    agent = begin(repo, gates)
    ran = repo.path / ".git/ran"
    agent.write("a.py", "BAD\n")
    assert agent.stop() == {}
    repo.write("a.py", "BAD\n")
    assert agent.stop() == {}
    assert ran.read_text() == "ran\n" * 2  # the pass on the old content was none
    said = agent.prompt("and now?")["hookSpecificOutput"]["additionalContext"]
    assert "The gates passed." in said
    assert "A gate changed files; read them again before the next edit: a.py." in said
    assert agent.stop() == {}
    assert agent.stop() == {}
    assert ran.read_text() == "ran\n" * 3  # on the new content


def test_a_pass_without_a_gate_that_was_skipped_is_none_with_it(repo: Repo) -> None:
    config = NO_BAD.replace('["check"]', '["check", "other"]')
    agent = begin(repo, config + '[gates.other]\ncommand = "true"\n')
    agent.env["GITGATES_SKIP"] = "check"
    agent.write("a.py", "BAD\n")
    assert agent.stop() == {}
    del agent.env["GITGATES_SKIP"]
    agent.prompt("and now?")
    assert agent.stop()["decision"] == "block"


def test_settings_that_changed_make_the_gates_run_again(agent: Agent) -> None:
    agent.write("a.py", "good\n")
    assert agent.stop() == {}
    agent.prompt()
    agent.repo.config(NO_BAD + "max_retries = 5\n")
    agent.stop()
    assert agent.runs() == 2


def test_what_is_gone_counts_for_gates_that_are_given_no_files(repo: Repo) -> None:
    files = 'files = ["*.py"]\n'
    agent = begin(repo, NO_BAD.replace("! grep -n BAD *.py", "false").replace("[h", f"{files}[h"))
    (repo.path / "seed.py").unlink()
    assert agent.stop()["decision"] == "block"
    given = "pass_files = true\n"
    repo.config((NO_BAD.replace("[h", f"{files}{given}[h")).replace("! grep -n BAD *.py", "false"))
    assert "decision" not in agent.stop(again=True)


def test_gates_that_find_the_tree_in_use_block_once(repo: Repo) -> None:
    agent = begin(repo, NO_BAD + "timeout = 0.5\n")
    agent.write("a.py", "good\n")
    lock = Lock(f"{repo.path}/.git/gitgates")
    assert lock.acquire(alone=True)
    try:
        said = agent.stop()
        assert said["decision"] == "block"
        assert "waiting for another run" in said["reason"]
        agent.write("a.py", "good too\n")
        assert "nothing was checked" in agent.stop(again=True)["systemMessage"]
    finally:
        lock.release()
    assert agent.outcomes() == ["blocked", "could-not-run"]
    assert "nothing was checked" in agent.prompt()["hookSpecificOutput"]["additionalContext"]


def test_the_next_prompt_hears_only_the_last_word_on_a_stop(repo: Repo) -> None:
    agent = begin(repo, NO_BAD + "max_retries = 0\n")
    for number in (1, 2):
        agent.write("a.py", f"BAD {number}\n")
        agent.stop(last_assistant_message=str(number))
    told = agent.prompt()["hookSpecificOutput"]["additionalContext"]
    assert told.count("let the agent stop") == 1


CANCELS = """
[gates.slow]
command = "touch $OUT/up; echo working; sleep 60"
[gates.check]
command = "until [ -e $OUT/up ]; do sleep 0.01; done; exit 1"
[hooks.Stop]
gates = ["slow", "check"]
strategy = "collect"
fail_fast = true
"""


@pytest.mark.slow
@pytest.mark.usefixtures("out")
def test_what_was_cancelled_is_no_failure_to_repair(repo: Repo) -> None:
    agent = begin(repo, CANCELS)
    agent.write("a.py", "x\n")
    reason = agent.stop()["reason"]
    assert "`check` failed (exit status 1)" in reason
    assert "Did not run, which is not a pass: `slow` (cancelled: another gate blocked)" in reason
    assert "working" not in reason


def test_a_gate_that_passes_on_what_it_failed_on_is_flaky(repo: Repo, out: Path) -> None:
    command = 'echo x >> "$OUT/runs"; test -e "$OUT/up"'
    agent = begin(
        repo, f"[gates.check]\ncommand = '''{command}'''\n[hooks.Stop]\ngates = ['check']\n"
    )
    agent.write("a.py", "good\n")
    assert agent.stop()["decision"] == "block"
    (out / "up").touch()
    said = agent.stop(again=True)["systemMessage"]
    assert "`check` is flaky (failed before, then passed on the same content)" in said
    assert agent.outcomes() == ["blocked", "passed"]
    agent.stop()
    assert (out / "runs").read_text() == "x\nx\nx\n"  # that was no pass
