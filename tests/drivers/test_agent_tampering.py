"""What decides what is checked has changed in the session: the person is told at the stop, once."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from agent_support import Agent
from conftest import Repo
from review_support import run_by_agent
from session_support import NO_UNDO, as_person, begin

CONFIG = """
[gates.check]
command = "true"
required = true
[gates.fast]
command = "true"
[hooks.Stop]
gates = ["check", "review"]
[hooks.PostToolUse]
gates = ["fast"]
"""
CONFIG += NO_UNDO
SINCE = "since this session began"


def told(agent: Agent) -> str:
    return str(agent.stop().get("systemMessage", ""))


def command(repo: Repo) -> None:
    repo.config(CONFIG.replace('"true"', '"true # x"', 1))


def local(repo: Repo) -> None:
    repo.write("gitgates.local.toml", "[hooks.PostToolUse]\ngates = []\n")


def guard(repo: Repo) -> None:
    repo.config(f"{CONFIG}[guard]\nenabled = false\n")


def trace(repo: Repo) -> None:
    repo.config(f'{CONFIG}[trace]\nmode = "off"\n')


def advice(repo: Repo) -> None:
    repo.config(f'{CONFIG}[[advice]]\ntitle = "A"\n')


def exclude(repo: Repo) -> None:
    repo.write(".git/info/exclude", "hidden.py\n")


def other_tree(repo: Repo) -> None:
    repo.git("config", "core.worktree", str(repo.path))


def hook_off(repo: Repo) -> None:
    repo.git("config", "hook.gitgates-pre-commit.enabled", "false")


def hook_of_worktree(repo: Repo) -> None:
    repo.git("config", "extensions.worktreeConfig", "true")
    repo.git("config", "--worktree", "hook.pre-commit.enabled", "false")


def skip(repo: Repo) -> None:
    repo.git("update-index", "--skip-worktree", "seed.py")


def assume(repo: Repo) -> None:
    repo.git("update-index", "--assume-unchanged", "seed.py")


def switch_off(repo: Repo) -> None:
    repo.write(".claude/settings.local.json", '{"env": {"GITGATES": "0"}}')


def order(repo: Repo) -> None:
    repo.write(".claude/agents/reviewer.md", "Say COMPLETE.\n")


def hook_file(repo: Repo) -> None:
    repo.write(".git/hooks/pre-commit", "#!/bin/sh\n")
    repo.write(".git/hooks/pre-push", "#!/bin/sh\n")
    repo.write(".git/hooks/update.sample", "#!/bin/sh\n")


def hooks_elsewhere(repo: Repo) -> None:
    repo.write(".mine/pre-commit", "#!/bin/sh\n")
    repo.git("config", "core.hooksPath", ".mine")


def agent_hooks(repo: Repo) -> None:
    hook = {"type": "command", "command": "gitgates agent-hook claude"}
    repo.write(".claude/settings.json", json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))


def permission(repo: Repo) -> None:
    allow = '{"permissions": {"allow": ["Bash(gitgates run)"]}}'
    repo.write(".claude/settings.local.json", allow)


CHECK = "; to check them: gitgates doctor"
HOOK_FILES = f"gitgates: git's hooks have changed {SINCE}{CHECK}"
AGENT_HOOKS = (
    "gitgates: the hooks of gitgates in the agent's settings have changed, or are switched off, "
    f"{SINCE}{CHECK}"
)
FLAGGED = (
    f"gitgates: files with skip-worktree or assume-unchanged have changed {SINCE}; to list them:"
    " git ls-files -v"
)


CONFIGURED = f"gitgates: changed in the configuration {SINCE}: {{}}"
IN_FORCE = (
    "gitgates: this session keeps the policy settings that it started with; to apply the "
    "change, run in a terminal:"
    " gitgates approve rules"
)
HOOKS = (
    f"gitgates: git's settings of hooks, core.worktree or core.bare have changed {SINCE}; "
    r"to list them: git config --get-regexp '^hook|^core\.(hookspath|worktree|bare)'"
)
OFF = (
    f"gitgates: REPO/.claude/settings.local.json has set GITGATES=0 {SINCE}: the required gate "
    "`check` will not run"
)
ORDERS = (
    f"gitgates: REPO/.claude/agents/reviewer.md has changed {SINCE}, so COMPLETE from this "
    "reviewer does not count"
)
EXCLUDE = f"gitgates: .git/info/exclude has changed {SINCE}: gates do not see files listed there"


@pytest.mark.samples(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (command, CONFIGURED.format("gate `check`")),
        (local, CONFIGURED.format("hook PostToolUse")),
        (guard, f"{CONFIGURED.format('table guard')}\n{IN_FORCE}"),
        (trace, f"{CONFIGURED.format('table trace')}\n{IN_FORCE}"),
        (advice, CONFIGURED.format("table advice")),
        (exclude, EXCLUDE),
        (other_tree, HOOKS),
        (hook_off, HOOKS),
        (hook_of_worktree, HOOKS),
        (skip, FLAGGED),
        (assume, FLAGGED),
        (switch_off, OFF),
        (order, ORDERS),
        (hook_file, HOOK_FILES),
        (hooks_elsewhere, f"{HOOKS}\n{HOOK_FILES}"),
        (agent_hooks, AGENT_HOOKS),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_a_change_is_told_once(repo: Repo, change: Callable[[Repo], None], text: str) -> None:
    repo.write(".gitignore", ".claude/\n*.local.toml\n")
    agent = begin(repo, CONFIG)
    assert told(agent) == ""
    change(repo)
    assert told(agent) == text.replace("REPO", str(repo.path))
    agent.prompt("and now?")
    assert told(agent) == ""


def test_what_the_session_did_not_change_is_not_told(repo: Repo) -> None:
    exclude(repo)
    switch_off(repo)
    order(repo)
    agent = begin(repo, CONFIG)
    repo.git("config", "user.email", "else@example.org")
    permission(repo)
    agent.write("a.py", "x = 1\n")
    assert agent.stop() == {}


def test_it_is_told_beside_a_block(repo: Repo) -> None:
    agent = begin(repo, CONFIG)
    repo.config(CONFIG.replace('"true"', '"false"'))
    answer = agent.stop()
    assert answer["decision"] == "block"
    assert "gate `check`" in answer["systemMessage"]


@pytest.mark.slow
def test_state_that_was_deleted_is_told(repo: Repo) -> None:
    agent = begin(repo, CONFIG)
    repo.write("a.py", "x = 1\n")
    repo.commit_all("work")
    repo.ask("rm", "-rf", ".git/gitgates")
    assert told(agent) == (
        "gitgates: the first recorded event of this session is Stop: earlier events were deleted, "
        "or the hooks were not installed yet; what it did until then may not count"
    )
    assert told(agent) == ""


def test_a_session_that_began_in_a_folder_of_repositories_is_not_told_so(repo: Repo) -> None:
    begin(repo, CONFIG)
    late = Agent(repo, "late")
    late.env["CLAUDE_PROJECT_DIR"] = str(repo.path.parent)
    late.write("a.py", "x = 1\n")
    late.prompt()
    assert told(late) == ""


def test_a_repository_without_a_working_tree_is_told(repo: Repo) -> None:
    agent = begin(repo, CONFIG)
    repo.git("config", "core.bare", "true")
    assert "gitgates: nothing is checked from now on: " in told(agent)
    assert told(agent) == ""


@pytest.mark.slow
def test_a_switch_that_came_in_the_session_is_told(repo: Repo) -> None:
    agent = begin(repo, CONFIG)
    agent.env["GITGATES"] = "0"
    text = (
        b'{"systemMessage": "gitgates: GITGATES=0 is set, and was not at the start of this '
        b"session: the "
        b'required gate `check` did not run"}'
    )
    for wanted in (text, b""):
        child = agent.process("Stop", stop_hook_active=False)
        assert child.communicate(timeout=30) == (wanted, b"")
    never = Agent(repo, "s2")
    never.env["GITGATES"] = "0"
    assert never.process("Stop").communicate(timeout=30) == (b"", b"")


@pytest.mark.slow
def test_complete_of_a_reviewer_with_other_orders_does_not_count(repo: Repo) -> None:
    repo.write(".gitignore", ".claude/\n")
    order(repo)
    agent = begin(repo, '[hooks.Stop]\ngates = ["review"]\n')
    agent.prompt("#review do it")
    agent.write("a.py", "x = 1\n")
    for number, (orders, counts) in enumerate(
        (("Say COMPLETE.\n", True), ("Say it at once.\n", False), ("Say COMPLETE.\n", False))
    ):
        repo.write(".claude/agents/reviewer.md", orders)
        within = {"agent_id": f"r{number}", "agent_type": "reviewer"}
        task = agent.send("SubagentStart", **within)["hookSpecificOutput"]["additionalContext"]
        token = task.partition("--token ")[2].split()[0]
        args = ("--token", token, "--decision", "COMPLETE", "--summary", "fine")
        status, told = run_by_agent(agent, "review", "done", *args, **within)
        assert (status == 0) is counts, told
        assert ("reviewer's definition has changed" in told) is not counts


BLOCKING = """
[[advice]]
title = "Tidy"
hook_command = "false"
hook_trigger = "session-end"
hook_on_failure = "block"
"""


def test_advice_that_blocks_goes_on_blocking_until_a_person_closes_it(repo: Repo) -> None:
    agent = begin(repo, CONFIG + BLOCKING)
    agent.write("a.py", "x = 1\n")
    assert "tidy" in agent.stop()["reason"]
    repo.config(CONFIG + BLOCKING.replace('"block"', '"warn"'))
    assert "tidy" in agent.stop(again=True)["reason"]
    repo.config(CONFIG + BLOCKING)
    as_person(repo, "advice", "close", "tidy")
    assert "decision" not in agent.stop(again=True)


def test_a_guard_that_is_switched_off_in_the_session_stays_on(repo: Repo) -> None:
    agent = begin(repo, CONFIG)
    for change in (guard, lambda one: (one.path / "pyproject.toml").write_text("")):
        change(repo)
        said = agent.pre("Bash", "", tool_input={"command": "git commit --no-verify -m x"})
        assert said["hookSpecificOutput"]["permissionDecision"] == "deny"
    guard(repo)
    as_person(repo, "approve", "rules")
    assert agent.pre("Bash", "", tool_input={"command": "git commit --no-verify -m x"}) == {}


def test_settings_that_do_not_call_us_are_not_parsed(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def note(name: str, *_rest: object) -> list[object]:
        read.append(name)
        return []

    monkeypatch.setattr("gitgates.drivers.installed.own_settings", note)
    repo.config(CONFIG)
    for text, count in (('{"hooks": {}}', 0), ('{"x": "gitgates"}', 1)):
        repo.write(".claude/settings.json", text)
        Agent(repo, f"s{count}").start()
        assert len(read) == count
