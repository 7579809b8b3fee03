"""What an agent's events other than the end of its work are answered with."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from agent_support import COUNT, Agent
from conftest import Repo
from session_support import begin

from gitgates.drivers.call import Call
from gitgates.files.memory import Memory
from gitgates.git.repo import find_repo
from gitgates.hosts import agent_host

CHECK = f"""
[gates.check]
command = '''{COUNT}; ! grep -nH BAD "$@"'''
files = ["*.py"]
pass_files = true
"""


def context(said: dict[str, Any]) -> str:
    inside = said.get("hookSpecificOutput", {})
    return str(inside.get("additionalContext", ""))


# After a tool


@pytest.mark.parametrize(
    ("enabled", "tool", "runs"),
    [
        ("", "Write", 1),
        ("", "mcp__serena__replace", 1),
        ("enabled_tools = []", "Write", 0),
        ('enabled_tools = ["Edit", "Write"]', "Write", 1),
        ('enabled_tools = ["Edit|Write"]', "Edit", 1),
        ('enabled_tools = ["Edit|Write"]', "Read", 0),
        ('enabled_tools = ["mcp__*"]', "mcp__serena__replace", 1),
        ('enabled_tools = ["mcp__*"]', "Write", 0),
    ],
)
def test_only_enabled_tools(repo: Repo, enabled: str, tool: str, runs: int) -> None:
    agent = begin(repo, f'{CHECK}[hooks.PostToolUse]\ngates = ["check"]\n{enabled}\n')
    agent.write("a.py", "BAD\n")
    said = agent.post(tool)
    assert agent.runs() == runs
    assert bool(said) is bool(runs)
    if runs:
        assert said["decision"] == "block"
        assert "a.py" in said["reason"]
        assert "BAD" in said["reason"]


@pytest.mark.parametrize("field", ["file_path", "notebook_path"])
@pytest.mark.parametrize("shape", ["absolute", "relative", "backslashes", "link", "dots"])
def test_the_file_just_written(repo: Repo, field: str, shape: str) -> None:
    agent = begin(repo, f'{CHECK}[hooks.PostToolUse]\ngates = ["check"]\n')
    agent.write("sub/a.py", "BAD\n")
    agent.write("other.py", "BAD\n")
    (repo.path / "link").symlink_to("sub")
    root = str(repo.path)
    path = {
        "absolute": f"{root}/sub/a.py",
        "relative": "sub/a.py",
        "backslashes": f"{root}\\sub\\a.py".replace("/", "\\") if field == "x" else "sub\\a.py",
        "link": f"{root}/link/a.py",
        "dots": f"{root}/sub/../sub/./a.py",
    }[shape]
    reason = agent.post(tool_input={field: path})["reason"]
    assert "sub/a.py" in reason or "1:BAD" in reason
    assert "other.py" not in reason


def test_a_file_outside_of_the_repository(repo: Repo, tmp_path: Path) -> None:
    agent = begin(repo, f'{CHECK}[hooks.PostToolUse]\ngates = ["check"]\n')
    (tmp_path / "far.py").write_text("BAD\n")
    assert agent.post(tool_input={"file_path": str(tmp_path / "far.py")}) == {}
    assert agent.runs() == 0


def test_a_warning_is_context(repo: Repo) -> None:
    settings = CHECK + 'on_fail = "CONTINUE"\n[hooks.PostToolUse]\ngates = ["check"]\n'
    agent = begin(repo, settings)
    agent.write("a.py", "BAD\n")
    said = agent.post()
    assert "decision" not in said
    assert "check" in context(said)


def test_only_an_edit_that_did_not_pass_leaves_results_behind(repo: Repo) -> None:
    agent = begin(repo, f'{CHECK}[hooks.PostToolUse]\ngates = ["check"]\n')
    results = repo.path / ".git/gitgates/runs"
    agent.write("a.py", "good\n")
    assert agent.post() == {}
    assert not list(results.glob("*/result.json"))
    agent.write("a.py", "BAD\n")
    agent.post()
    assert len(list(results.glob("*/result.json"))) == 1


@pytest.mark.parametrize("writes", ["true", "false"])
def test_a_fixer_says_that_the_file_changed(repo: Repo, writes: str) -> None:
    agent = begin(
        repo,
        f"""
[gates.format]
command = ["sed", "-i", "s/BAD/good/"]
files = ["*.py"]
pass_files = true
writes = {writes}
[hooks.PostToolUse]
gates = ["format"]
""",
    )
    agent.write("a.py", "BAD\n")
    said = context(agent.post())
    assert "a.py" in said
    assert "again" in said
    assert agent.post() == {}


def test_a_fixer_that_is_given_no_files_says_so_too(repo: Repo) -> None:
    gate = '[gates.format]\ncommand = "sed -i s/BAD/good/ a.py"\nwrites = true\n'
    agent = begin(repo, f'{gate}[hooks.PostToolUse]\ngates = ["format"]\n')
    agent.write("a.py", "BAD\n")  # git does not know it yet
    assert "a.py" in context(agent.post())
    assert agent.post() == {}


def test_stop_after_a_tool(repo: Repo) -> None:
    agent = begin(repo, CHECK + 'on_fail = "STOP"\n[hooks.PostToolUse]\ngates = ["check"]\n')
    agent.write("a.py", "BAD\n")
    said = agent.post()
    assert said["continue"] is False
    assert "check" in said["stopReason"]
    assert "check" in said["systemMessage"]
    assert agent.outcomes() == ["stopped"]


def test_a_second_delivery_repeats_the_first(repo: Repo) -> None:
    agent = begin(repo, f'{CHECK}[hooks.PostToolUse]\ngates = ["check"]\n')
    agent.write("a.py", "BAD\n")
    first = agent.post(tool_use_id="same")
    agent.write("a.py", "good\n")
    assert agent.post(tool_use_id="same") == first
    assert agent.runs() == 1


# Before a tool


def test_a_tool_call_is_denied(repo: Repo) -> None:
    gate = f'[gates.refuse]\ncommand = "{COUNT.replace(chr(34), "")}; echo no; false"\n'
    agent = begin(repo, gate + '[hooks.PreToolUse]\ngates = ["refuse"]\nenabled_tools = ["Bash"]\n')
    said = agent.pre("Bash", "")
    own = said.pop("hookSpecificOutput")
    assert said == {}
    assert own["hookEventName"] == "PreToolUse"
    assert own["permissionDecision"] == "deny"
    assert "refuse" in own["permissionDecisionReason"]
    assert agent.pre("Write") == {}


def test_stop_before_a_tool_denies_it_too(repo: Repo) -> None:
    gate = '[gates.refuse]\ncommand = "false"\non_fail = "STOP"\n'
    agent = begin(repo, f'{gate}[hooks.PreToolUse]\ngates = ["refuse"]\n')
    said = agent.pre()
    assert said["continue"] is False
    assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "refuse" in said["stopReason"]


def test_a_mistake_in_the_settings_does_not_deny_the_edit_that_mends_it(repo: Repo) -> None:
    agent = begin(repo, '[hooks.PreToolUse]\ngates = ["nothing"]\n')
    assert agent.pre(path="a.py")["continue"] is False
    mending = agent.pre("Edit", "pyproject.toml")
    assert "permissionDecision" not in mending.get("hookSpecificOutput", {})
    assert "continue" not in mending


def test_after_the_edit_a_mistake_in_the_settings_stops(repo: Repo) -> None:
    agent = begin(repo, '[hooks.PostToolUse]\ngates = ["nothing"]\n')
    assert agent.post("Edit", "pyproject.toml")["continue"] is False


def test_a_missing_tool_does_not_lock_the_agent_out(repo: Repo) -> None:
    gate = '[gates.refuse]\ncommand = ["no-such-program-xyz"]\n'
    agent = begin(repo, f'{gate}[hooks.PreToolUse]\ngates = ["refuse"]\n')
    assert agent.pre()["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "permissionDecision" not in agent.pre()["hookSpecificOutput"]
    agent.prompt()
    assert agent.pre()["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_what_a_guardian_has_put_back_is_told_at_the_next_event_once(repo: Repo) -> None:
    agent = begin(repo, '[gates.check]\ncommand = "true"\n[hooks.PreToolUse]\ngates = ["check"]\n')
    repo.write(".git/gitgates/recovered", "a.py is back\nb.py is back\n")
    agent.pre()
    assert agent.said == ["a.py is back", "b.py is back"]
    agent.pre()
    assert len(agent.said) == 2


# Prompts and sessions


def test_the_rules_are_told(repo: Repo) -> None:
    agent = begin(repo, f'{CHECK}description = "No bad"\n[hooks.Stop]\ngates = ["check"]\n')
    for said in (agent.start(), agent.send("SubagentStart", agent_id="a", agent_type="x")):
        assert "check (No bad)" in context(said)
        assert len(context(said)) <= 1500


def test_a_prompt_is_refused(repo: Repo) -> None:
    gate = '[gates.refuse]\ncommand = "false"\n'
    agent = begin(repo, f'{gate}[hooks.UserPromptSubmit]\ngates = ["refuse"]\n')
    said = agent.prompt("another")
    assert said["decision"] == "block"
    assert "refuse" in said["reason"]


@pytest.mark.parametrize("event", ["SessionStart", "PostCompact", "SessionEnd", "StopFailure"])
def test_what_cannot_block_says_so(repo: Repo, event: str) -> None:
    gate = '[gates.refuse]\ncommand = "false"\n'
    agent = begin(repo, f'{gate}[hooks.{event}]\ngates = ["refuse"]\n')
    said = agent.send(event, source="resume", reason="other")
    assert "decision" not in said
    assert "refuse" in json.dumps(said)
    assert any("cannot block" in line for line in agent.said)


def test_real_prompts_are_kept_for_the_reviewer(repo: Repo) -> None:
    agent = begin(repo, f'{CHECK}[hooks.Stop]\ngates = ["check"]\n')
    agent.prompt("ä" * 33000)
    kept = [fact["text"] for fact in agent.facts() if fact["what"] == "prompt"]
    assert kept[0] == "do it"
    assert len(kept[1].encode()) == 65536
    journal = next((repo.path / ".git/gitgates/sessions").glob("*.jsonl"))
    assert journal.stat().st_mode & 0o777 == 0o600


# Sub-agents

SUB = f"""
[gates.check]
command = '''{COUNT}; ! grep -n BAD *.py'''
[hooks.SubagentStop]
gates = ["check"]
enabled_agents = ["worker"]
"""


@pytest.mark.parametrize(
    ("agent_type", "runs"), [("worker", 1), ("team:worker", 1), ("reviewer", 0), ("", 0)]
)
def test_sub_agents_are_gated_by_type(repo: Repo, agent_type: str, runs: int) -> None:
    agent = begin(repo, SUB)
    agent.write("a.py", "BAD\n")
    assert bool(agent.sub_stop(agent_type)) is bool(runs)
    assert agent.runs() == runs


def test_sub_agents_are_counted_apart(repo: Repo) -> None:
    agent = begin(repo, SUB + "max_retries = 1\n")
    agent.write("a.py", "BAD\n")
    assert agent.sub_stop("worker", "a1")["decision"] == "block"
    assert agent.sub_stop("worker", "a2")["decision"] == "block"
    agent.write("a.py", "BAD 2\n")
    assert "decision" not in agent.sub_stop("worker", "a1", stop_hook_active=True)


def test_stop_in_a_sub_agent_ends_the_main_thread(repo: Repo) -> None:
    gate = SUB.replace("[hooks", 'on_fail = "STOP"\n[hooks')
    agent = begin(repo, gate + '[hooks.Stop]\ngates = ["check"]\n')
    agent.write("a.py", "BAD\n")
    said = agent.sub_stop("worker")
    assert said["decision"] == "block"
    assert "continue" not in said
    agent.write("a.py", "BAD 2\n")
    assert agent.sub_stop("worker", stop_hook_active=True) == {}
    inside = agent.post(agent_id="a1", agent_type="worker")
    assert inside == {}
    main = agent.pre()
    assert main["continue"] is False
    assert "check" in main["stopReason"]
    assert "continue" not in agent.pre()


def test_a_new_prompt_is_not_stopped_for_a_sub_agent(repo: Repo) -> None:
    agent = begin(repo, SUB.replace("[hooks", 'on_fail = "STOP"\n[hooks'))
    agent.write("a.py", "BAD\n")
    agent.sub_stop("worker")
    said = agent.prompt("never mind")
    assert "continue" not in said
    assert "check" in context(said)
    assert "continue" not in agent.pre()


# Places


def test_a_linked_worktree_is_its_own(repo: Repo, tmp_path: Path) -> None:
    agent = begin(repo, f'{CHECK}[hooks.PostToolUse]\ngates = ["check"]\n')
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    (tmp_path / "linked/a.py").write_text("BAD\n")
    said = agent.post(tool_input={"file_path": str(tmp_path / "linked/a.py")})
    assert said["decision"] == "block"
    inside = repo.path / ".git/worktrees/linked/gitgates/sessions"
    assert len(list(inside.glob("*.jsonl"))) == 1


def test_cd_changes_nothing(repo: Repo) -> None:
    settings = CHECK.replace('"$@"', "*.py").replace('files = ["*.py"]\npass_files = true\n', "")
    agent = begin(repo, f'{settings}[hooks.Stop]\ngates = ["check"]\n')
    (repo.path / "deep/er").mkdir(parents=True)
    agent.write("a.py", "BAD\n")
    assert agent.stop(cwd=str(repo.path / "deep/er"))["decision"] == "block"


def test_no_repository(repo: Repo, tmp_path: Path) -> None:
    agent = Agent(repo)
    (tmp_path / "plain").mkdir()
    for event in ("SessionStart", "Stop"):
        assert agent.send(event, cwd=str(tmp_path / "plain")) == {}
    assert "not a git repository" in agent.said[0]
    assert list((tmp_path / "plain").iterdir()) == []


@pytest.mark.parametrize("settings", ['[hooks.Stop]\ngates = ["a"]\n', "no = toml"])
def test_no_repository_where_gates_are_configured(
    repo: Repo, tmp_path: Path, settings: str
) -> None:
    agent = Agent(repo)
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "gitgates.toml").write_text(settings)
    assert agent.send("SessionStart", cwd=str(plain)) == {
        "systemMessage": f"gitgates: {plain}: not a git repository, so "
        "nothing is checked in this session. Change to a repository, or create one with: git init"
    }
    assert agent.send("Stop", cwd=str(plain)) == {}  # once is enough


def test_no_configuration(repo: Repo) -> None:
    agent = Agent(repo)
    for event in ("SessionStart", "Stop", "Stop"):
        assert agent.send(event) == {}
    assert agent.said == []  # a client may show it at each event
    assert agent.facts() == []


def test_hooks_of_git_alone_are_none_of_the_agents_business(repo: Repo) -> None:
    config = f'{CHECK}[hooks.pre-commit]\ngates = ["check"]\n'
    agent = begin(repo, f"{config}[guard]\nenabled = false\n[undo]\nenabled = false\n")
    assert agent.start() == {}
    assert agent.facts() == []


def test_an_agent_that_a_gate_starts_is_not_gated(repo: Repo) -> None:
    hook = "python3 -m gitgates agent-hook claude"
    gate = f"command = '''{hook} < \"$PAYLOAD\" > answered; test ! -s answered'''"
    settings = f'[gates.nested]\n{gate}\n[gates.never]\ncommand = "false"\n'
    agent = begin(repo, settings + '[hooks.Stop]\ngates = ["nested"]\n[hooks.PreToolUse]\n')
    payload = repo.path.parent / "payload"
    payload.write_bytes(agent.payload("Stop", stop_hook_active=False))
    agent.env["PAYLOAD"] = str(payload)
    agent.write("a.py", "x\n")
    assert agent.stop() == {}
    assert (repo.path / "answered").exists()


def test_switched_off(repo: Repo) -> None:
    agent = begin(repo, f'{CHECK}[hooks.Stop]\ngates = ["check"]\n')
    agent.write("a.py", "BAD\n")
    agent.env["GITGATES"] = "0"
    child = agent.process("Stop", stop_hook_active=False)
    assert child.communicate(timeout=30) == (b"", b"")
    assert child.returncode == 0


def test_gates_do_not_get_the_agents_credentials(repo: Repo) -> None:
    tell = 'command = "env > told; false"\n'
    agent = begin(repo, f'[gates.tell]\n{tell}pass_env = ["ANTHROPIC_AUTH_TOKEN"]\n'
                        '[hooks.Stop]\ngates = ["tell"]\n')  # fmt: skip
    agent.env |= {"ANTHROPIC_API_KEY": "secret1", "ANTHROPIC_AUTH_TOKEN": "secret2"}
    agent.env |= {"CLAUDE_CODE_MESSAGING_TOKEN": "secret3"}
    agent.write("a.py", "x\n")
    agent.stop()
    told = (repo.path / "told").read_text()
    assert "secret1" not in told
    assert "secret2" in told
    assert "secret3" not in told


def test_the_payload_is_there_for_gates_that_ask(repo: Repo) -> None:
    gate = '[gates.tell]\ncommand = "cat > told"\npass_hook_input = true\n'
    agent = begin(repo, f'{gate}[hooks.PreToolUse]\ngates = ["tell"]\n')
    agent.pre("Bash", "", tool_input={"command": "ls"})
    assert json.loads((repo.path / "told").read_text())["tool_input"] == {"command": "ls"}


def test_a_journal_that_cannot_be_written_lets_the_agent_pass(repo: Repo) -> None:
    agent = begin(repo, f'{CHECK}[hooks.Stop]\ngates = ["check"]\n')
    agent.write("a.py", "BAD\n")
    sessions = repo.path / ".git/gitgates/sessions"
    subprocess.run(["rm", "-r", sessions], check=True)
    sessions.write_text("in the way")
    said = agent.stop()
    assert said.keys() == {"systemMessage"}
    assert "so gate results at Stop do not count" in said["systemMessage"]
    assert os.path.isfile(sessions)


@pytest.mark.slow
def test_a_git_that_hangs_does_not_hang_the_agent(repo: Repo, tmp_path: Path) -> None:
    agent = begin(repo, f'{CHECK}[hooks.Stop]\ngates = ["check"]\n')
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/git").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "bin/git").chmod(0o755)
    agent.env["PATH"] = f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}"
    agent.prompt_id = "late"
    child = agent.process("UserPromptSubmit", prompt="go on")
    answer, _log = child.communicate(timeout=5)  # what the settings tell the host to wait
    assert child.returncode == 0
    said = f"{answer.decode()} {agent.facts()}"
    assert "did not finish in time" in said or "the host's timeout was reached" in said


BY_NAME = f"""
[gates.check]
command = '''{COUNT}; ! ls | grep bad'''
[hooks.Stop]
gates = ["check"]
"""


def test_what_is_committed_in_a_worktree_made_by_the_session_is_checked(
    repo: Repo, tmp_path: Path
) -> None:
    agent = begin(repo, BY_NAME)
    linked = Repo(tmp_path / "linked")
    repo.git("worktree", "add", "-q", str(linked.path))
    assert agent.stop(cwd=str(linked.path)) == {}
    linked.write("bad.txt")
    linked.git("add", ".")
    linked.git("commit", "-qm", "hidden")
    assert agent.stop(cwd=str(linked.path))["decision"] == "block"


def test_the_place_where_the_session_began_is_checked_too(repo: Repo, tmp_path: Path) -> None:
    agent = begin(repo, BY_NAME)
    agent.env["CLAUDE_PROJECT_DIR"] = str(repo.path)
    elsewhere = Repo.init(tmp_path / "elsewhere")
    agent.write("bad.txt", "x")
    said = agent.stop(cwd=str(elsewhere.path))
    assert said["decision"] == "block"
    assert said["reason"].startswith(f"In {repo.path}: 1 of 1 gates failed")
    assert agent.stop(again=True, cwd=str(tmp_path))["decision"] == "block"


def test_a_file_that_is_gone_is_not_checked(repo: Repo) -> None:
    gate = '[gates.see]\ncommand = ["cat"]\npass_files = true\n'
    hooks = '[hooks.PostToolUse]\ngates = ["see"]\n[hooks.PreToolUse]\ngates = ["see"]\n'
    agent = begin(repo, gate + hooks)
    assert agent.post(path="gone.txt") == {}
    assert agent.pre(path="new.txt") != {}  # a gate may be about the name


def test_a_failure_in_another_worktree_says_where_that_is(repo: Repo, tmp_path: Path) -> None:
    agent = begin(repo, BY_NAME.replace("Stop", "PostToolUse"))
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"))
    (tmp_path / "linked/bad.txt").write_text("x")
    repo.write("bad.txt")
    there = agent.post(tool_input={"file_path": str(tmp_path / "linked/bad.txt")})["reason"]
    assert there.startswith(f"In {tmp_path / 'linked'}: 1 of 1 gate")
    assert agent.post(path="bad.txt")["reason"].startswith("1 of 1 gate")


def test_a_warning_before_a_tool_call_does_not_say_that_it_was_refused(repo: Repo) -> None:
    gate = '[gates.no]\ncommand = "false"\non_fail = "CONTINUE"\n'
    agent = begin(repo, gate + '[hooks.PreToolUse]\ngates = ["no"]\n')
    said = agent.pre()["hookSpecificOutput"]["additionalContext"]
    assert "not made" not in said
    assert "The tool call goes on." in said


def test_a_sub_agent_that_is_to_end_is_not_told_to_mend_anything(repo: Repo) -> None:
    gate = '[gates.no]\ncommand = "false"\non_fail = "STOP"\n'
    agent = begin(repo, gate + '[hooks.SubagentStop]\ngates = ["no"]\n')
    agent.write("bad.txt", "x")
    said = agent.sub_stop()["reason"]
    assert "end now" in said
    assert "Fix" not in said


def test_an_event_that_cannot_stop_does_not_say_that_it_did(repo: Repo) -> None:
    gate = '[gates.no]\ncommand = "false"\non_fail = "STOP"\n'
    agent = begin(repo, gate + '[hooks.SessionStart]\ngates = ["no"]\n')
    said = agent.start()["systemMessage"]
    assert said.startswith("gitgates at SessionStart: ")
    assert "SessionStart cannot stop the agent" in said


def test_the_breaker_counts_the_blocks_in_all_worktrees(repo: Repo, tmp_path: Path) -> None:
    agent = begin(repo, "breaker = { prompt = 3 }\n" + BY_NAME + "max_retries = 9\n")
    linked = Repo(tmp_path / "linked")
    repo.git("worktree", "add", "-q", str(linked.path))
    answers = []
    for number, place in enumerate([repo, linked, repo, linked, repo]):
        place.write("bad.txt", f"{number}")
        answers.append(agent.stop(again=number > 0, cwd=str(place.path)))
    assert ["decision" in one for one in answers] == [True, True, True, False, False]
    agent.prompt()
    repo.write("bad.txt", "new")
    assert "decision" in agent.stop()


def test_settings_that_go_away_are_said(repo: Repo) -> None:
    agent = begin(repo, BY_NAME)
    agent.write("bad.txt", "x")
    (repo.path / "pyproject.toml").unlink()
    assert "were removed" in agent.stop()["systemMessage"]
    repo.write("pyproject.toml", "[tool.gitgates]\n")
    assert "were removed" in agent.stop()["systemMessage"]


def test_a_gate_of_prompts_is_not_for_what_the_client_writes(repo: Repo) -> None:
    agent = begin(repo, '[gates.no]\ncommand = "false"\n[hooks.UserPromptSubmit]\ngates = ["no"]\n')
    assert agent.prompt("real")["decision"] == "block"
    assert agent.prompt("<task-notification> done") == {}


def test_the_rules_are_told_beside_what_a_gate_says(repo: Repo) -> None:
    gate = '[gates.no]\ncommand = "false"\n[hooks.SessionStart]\ngates = ["no"]\n'
    agent = begin(repo, gate)
    said = context(agent.start())
    assert "gitgates cannot-fix" in said
    assert "`no` failed" in said


def test_a_transcript_that_is_a_pipe_is_not_waited_for(repo: Repo) -> None:
    agent = begin(repo, BY_NAME)
    pipe = repo.path.parent / "pipe"
    os.mkfifo(pipe)
    agent.write("bad.txt", "x")
    assert agent.stop(transcript_path=str(pipe))["decision"] == "block"
    assert agent.stop(again=True, transcript_path=str(pipe))["decision"] == "block"


def test_a_sub_agent_that_does_nothing_more_stops_the_main_thread(repo: Repo) -> None:
    agent = begin(repo, SUB + 'max_retries = 1\non_exhausted = "stop"\n')
    agent.write("a.py", "BAD\n")
    assert agent.sub_stop("worker")["decision"] == "block"
    told = agent.sub_stop("worker", stop_hook_active=True)
    assert "end now" in told["reason"]
    assert "decision" not in agent.sub_stop("worker", stop_hook_active=True)
    assert agent.pre()["continue"] is False


def test_reading_a_call_writes_nothing_and_the_driver_notes_a_failed_snapshot(repo: Repo) -> None:
    agent = begin(repo, f'{CHECK}[hooks.Stop]\ngates = ["check"]\n')
    repo.git("config", "filter.broken.clean", "false")
    repo.git("config", "filter.broken.required", "true")
    repo.write(".gitattributes", "*.x filter=broken\n")
    repo.write("one.x", "x")
    payload = agent_host("claude").decode(agent.payload("Stop"), {})
    call = Call(payload, find_repo(str(repo.path), dict(os.environ)), say=agent.said.append)
    call.read()
    entries = agent.facts()
    assert (call.point.tree, call.tree, call.is_unchanged) == ("", "", False)
    assert call.changed_files.note == "snapshot not found; compared with HEAD instead"
    assert (agent.facts(), agent.said) == (entries, [])
    agent.stop()
    notes = [fact["text"] for fact in agent.facts() if fact["what"] == "note"]
    assert notes == agent.said == [call.snapshot_error]
    assert "clean filter 'broken' failed" in call.snapshot_error


def test_a_first_snapshot_that_is_gone_is_noted_once(repo: Repo) -> None:
    begin(repo, f'{CHECK}[hooks.Stop]\ngates = ["check"]\n')
    repo.write("b.py", "")  # in no commit, so this tree is in our objects alone
    agent = Agent(repo, "s2")
    agent.start()
    base = agent.state().beginning.tree
    agent.write("a.py", "BAD\n")
    memory = Memory(find_repo(str(repo.path), dict(os.environ))).folder_abs
    Path(f"{memory}/objects/{base[:2]}/{base[2:]}").unlink()
    agent.stop()
    notes = [fact["text"] for fact in agent.facts() if fact["what"] == "note"]
    assert [note.split(": ")[0] for note in notes] == [
        "the first snapshot of the session is missing"
    ]


@pytest.mark.parametrize("name", ["event", "key", "tree", "what"])
def test_a_damaged_journal_is_said_and_the_rest_counts(repo: Repo, name: str) -> None:
    """An entry that lacks a field is left out; `event` alone is nothing that a state needs."""
    agent = begin(repo, '[gates.check]\ncommand = "false"\n[hooks.Stop]\ngates = ["check"]\n')
    agent.prompt()
    agent.write("a.py", "x\n")
    path = repo.path / ".git/gitgates/sessions/s1.jsonl"
    path.write_bytes(path.read_bytes().replace(f'"{name}":'.encode(), f'"{name}_":'.encode()))
    agent.said.clear()
    assert agent.stop()["decision"] == "block"
    is_said = any("skipped damaged entries: " in text for text in agent.said)
    assert is_said is (name != "event")
    assert "Traceback" not in "".join(agent.said)
