"""The guard: each rule by several ways to write it, and what only looks like it."""

from __future__ import annotations

import os
import re
import time
from typing import Any

import pytest
from agent_support import Agent, begin
from conftest import Repo
from guard_cases import CONFIG, SHELL

from gitgates.config.load import load
from gitgates.config.tables import defaults
from gitgates.core.guarded import rules_by_name
from gitgates.core.types import Config
from gitgates.hosts import AGENTS, agent_host
from gitgates.session.approval import ACTIONS
from gitgates.setup.install.agents import entries
from gitgates.setup.install.config_hooks import render
from gitgates.shell import syntax as shell_syntax

EDITED = """\
[project]
name = "x"

[tool.gitgates.gates.check]
command = "true"
[tool.gitgates.hooks.Stop]
gates = ["check"]
"""
WAITS = ("ask unreadable", "deny no_verify")
LONGEST_S = 12.0  # that a command may take, however busy the machine is
RULES = rules_by_name()
FOUND = re.compile(r"gitgates: guard rule `(\w+)`: ")


@pytest.fixture(name="agent")
def _agent(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Agent:
    home = repo.path.parent / "home"
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("HOME", str(home))
    repo.git("config", "alias.sneaky", "commit --no-verify")
    repo.git("config", "alias.ci", "commit")
    repo.write("sub/a", "")
    return begin(repo, CONFIG)


def judged(answer: dict[str, Any]) -> str:
    """Return the answer to a tool call, and the rule: `deny no_verify`; empty for none."""
    own = answer.get("hookSpecificOutput", {})
    text = own.get("permissionDecisionReason", own.get("additionalContext", ""))
    found = FOUND.match(text)
    return f"{own.get('permissionDecision', 'warn')} {found[1]}" if found else text


def shell(agent: Agent, command: str) -> str:
    return judged(agent.pre("Bash", "", tool_input={"command": command}))


def test_each_rule_has_ways_to_write_it_and_look_alikes() -> None:
    assert sorted(RULES) == sorted(defaults("guard").keys() - {"enabled"})
    # Those with answers of their own are of other policies.
    assert sorted(SHELL) == sorted(name for name in RULES if "warn" in RULES[name].answers)
    assert [name for name, pair in SHELL.items() if min(map(len, pair)) < 3] == []


@pytest.mark.samples(4)
@pytest.mark.parametrize("rule", SHELL)
def test_commands(agent: Agent, rule: str) -> None:
    found, fine = SHELL[rule]
    expected = f"{RULES[rule].answer} {rule}"
    assert {one: shell(agent, one) for one in found} == dict.fromkeys(found, expected)
    assert {one: shell(agent, one) for one in fine} == dict.fromkeys(fine, "")


def test_what_hides_a_persons_own_hooks_of_git(agent: Agent) -> None:
    commands = {
        "HOME=/tmp/x git commit -m x": "deny hooks_path",
        "env XDG_CONFIG_HOME=/tmp/x git push": "deny hooks_path",
        "GIT_CONFIG_GLOBAL=/dev/null git commit -m x": "deny hooks_path",
        "env -u HOME git commit -m x": "deny hooks_path",
        "env --unset=XDG_CONFIG_HOME git commit -m x": "deny hooks_path",
        "env -i PATH=$PATH git commit -m x": "deny hooks_path",
        "env - git commit -m x": "deny hooks_path",
        "unset HOME; git commit -m x": "deny hooks_path",
        "rm ~/.gitconfig": "deny hooks_path",
        "echo > $HOME/.gitconfig": "deny hooks_path",
        "cat ~/.gitconfig": "",
        "HOME=/tmp/x make test": "",
        "HOME=/tmp/x git -C /tmp commit -m x": "",
        "env -u HOME make test": "",
        "env -u LANG git commit -m x": "",
        "env FOO=1 git commit -im x": "",
        "unset HOME; make test": "",
    }
    assert {one: shell(agent, one) for one in commands} == dict.fromkeys(commands, "")
    key, own = "hook.gitgates-pre-commit.command", f"{os.environ['HOME']}/.gitconfig"
    agent.repo.git("config", key, render("pre-commit", "local"))
    assert {one: shell(agent, one) for one in commands} == dict.fromkeys(commands, "")
    agent.repo.git("config", "--file", own, key, render("pre-commit", "global"))
    assert {one: shell(agent, one) for one in commands} == commands


def test_what_is_found_does_not_rest_on_an_alias_that_makes_every_command_be_read(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(repo.path.parent / "home"))
    repo.write("sub/a", "")
    agent = begin(repo, CONFIG)
    aliases = ("git sneaky ", "git ci ")
    found = {
        one: f"{RULES[rule].answer} {rule}"
        for rule, (ways, _fine) in SHELL.items()
        for one in ways
        if not one.startswith(aliases)
    }
    assert {one: shell(agent, one) for one in found} == found


# Edits


def test_each_agent_is_known_by_each_of_its_names(agent: Agent) -> None:
    for host in map(agent_host, AGENTS):
        assert host.PROGRAMS or host.NAME == "generic"
        for program in host.PROGRAMS:
            for sign in host.UNASKED:
                option = sign.replace("=", " ") if sign.startswith("-") else f"--mode {sign}"
                command = f"npx -y {program}@latest {option} -p 'do it'"
                assert shell(agent, command) == "ask nested_agent", command
            assert shell(agent, f"{program} -p 'do it'") == ""


def test_the_settings_of_another_agent(agent: Agent) -> None:
    """Where they are: an agent may set up another one, and not take our hooks out of it."""
    assert judged(agent.pre("Write", ".codex/hooks.json")) == ""
    agent.repo.write(".codex/hooks.json", "{}")
    assert judged(agent.pre("Write", ".codex/hooks.json")) == "deny agent_settings"
    assert shell(agent, "rm -rf .codex") == "deny agent_settings"
    assert shell(agent, "rm -rf .gemini") == ""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".git/hooks/pre-commit", "deny hooks_folder"),
        ("sub/../.git/hooks/new", "deny hooks_folder"),
        ("link/hooks/pre-commit", "deny hooks_folder"),
        (".GIT/HOOKS/pre-commit", "deny hooks_folder"),
        (".claude/settings.json", "deny agent_settings"),
        (".claude/settings.local.json", "deny agent_settings"),
        ("../home/.claude/settings.json", "deny agent_settings"),
        ("gitgates.toml", "ask gate_settings"),
        ("gitgates.local.toml", "ask gate_settings"),
        (".gitgates-baseline.json", "ask gate_settings"),
        (".pre-commit-config.yaml", "ask gate_settings"),
        (".orchestration/active_intents.yaml", "ask intents_file"),
        (".git/gitgates/sessions/s1.jsonl", "deny state_folder"),
        (".git/config", "deny git_folder"),
        (".git/info/exclude", "ask git_exclude"),
        (".claude/agents/reviewer.md", "ask reviewer_files"),
        (".claude/skills/code-review/SKILL.md", "ask reviewer_files"),
        ("../home/.claude/commands/review.md", "ask reviewer_files"),
        ("hooks/pre-commit", ""),
        (".github/hooks/pre-commit", ""),
        ("docs/settings.json", ""),
        (".claude/agents/other.md", ""),
        ("sub/gitgates.toml", ""),
        (".gitignore", ""),
    ],
)
def test_a_file_that_a_tool_writes(agent: Agent, path: str, expected: str) -> None:
    (agent.repo.path / "link").symlink_to(".git")
    for tool in ("Write", "Edit"):
        assert judged(agent.pre(tool, path)) == expected
    notebook = {"notebook_path": str(agent.repo.path / path), "new_source": "x"}
    assert judged(agent.pre("NotebookEdit", "", tool_input=notebook)) == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"old_string": '"x"', "new_string": '"y"'}, ""),
        ({"old_string": '"true"', "new_string": '"false"'}, "ask gate_settings"),
        ({"old_string": "tool.gitgates", "new_string": "tool.other"}, "ask gate_settings"),
        ({"old_string": "", "new_string": "# gitgates\n"}, ""),
        ({"old_string": "e", "new_string": "E"}, ""),  # no TOML, or the first of them alone
        ({"old_string": "true", "new_string": "no", "replace_all": True}, "ask gate_settings"),
        ({"edits": [{"old_string": "x", "new_string": "y"}]}, ""),
        ({"edits": [{"old_string": "x", "new_string": "true"},
                    {"old_string": "true", "new_string": "z", "replace_all": True}]},
         "ask gate_settings"),
        ({"content": EDITED + "# more\n[tool.ruff]\n"}, ""),
        ({"content": EDITED.replace("check", "lint")}, "ask gate_settings"),
        ({"content": '[project]\nname = "x"\n'}, "ask gate_settings"),
        ({"content": "["}, ""),
    ],
)  # fmt: skip
def test_other_tables_of_pyproject_may_be_edited(
    agent: Agent, change: dict[str, Any], expected: str
) -> None:
    agent.repo.write("pyproject.toml", EDITED)
    path = str(agent.repo.path / "pyproject.toml")
    assert judged(agent.pre("Edit", "", tool_input={"file_path": path, **change})) == expected


def test_what_a_shell_writes_whole_is_read(agent: Agent) -> None:
    agent.repo.write("pyproject.toml", EDITED)
    more = EDITED.replace('name = "x"', 'name = "gitgates"') + "[tool.ruff]\n"
    for form in ("cat > pyproject.toml <<'E'\n{}E", "tee pyproject.toml <<'E'\n{}E"):
        assert shell(agent, form.format(more)) == ""
        assert shell(agent, form.format("[project]\n")) == "ask gate_settings"
        assert shell(agent, form.format(EDITED.replace("true", "false"))) == "ask gate_settings"
    assert shell(agent, "cat >> pyproject.toml <<'E'\n[tool.ruff]\nE") == ""


def test_a_link_into_a_guarded_place_does_not_hide_it(agent: Agent) -> None:
    for name, goal in {"state": "gitgates", "hooks": "hooks"}.items():
        (agent.repo.path / f"to-{name}").symlink_to(f".git/{goal}")
    (agent.repo.path / "sub/out").symlink_to("/tmp")
    for rule, name in (("state_folder", "to-state"), ("hooks_folder", "to-hooks")):
        for command in (
            *("echo x >> {}/x", "echo x>{}/x", "cp a {}/x", "sed -i s/a/b/ {}/x", "rm -f {}/*"),
            *("cd {} && echo x > x", "tee {}/x < a", "curl -o {}/x https://h", "dd of={}/x"),
        ):
            assert shell(agent, command.format(name)) == f"deny {rule}", command
    assert shell(agent, "echo x > sub/out/x; cp to-state/x to-hooks/y /tmp") == ""
    inside = agent.pre(
        "Bash", "", tool_input={"command": "echo x > x"}, cwd=f"{agent.repo.path}/.git/gitgates"
    )
    assert judged(inside) == "deny state_folder"


def test_the_folder_that_a_command_is_run_in_is_followed(agent: Agent) -> None:
    """Another repository is none of ours; ours is, wherever the agent is."""
    other = agent.repo.path.parent / "other"
    agent.repo.git("init", "-q", str(other))
    agent.repo.git("worktree", "add", "-q", "../linked")
    (agent.repo.path / "away").symlink_to(other)
    for command in (
        *("cd ../other && git commit -n", "git -C ../other commit -n", "cd away; git commit -n"),
        *("git --git-dir=../other/.git commit -n", "GIT_DIR=../other/.git git commit -n"),
        *("cd ../other && HUSKY=0 git commit", "cd ../other; pre-commit uninstall"),
        *("git -C ../other config core.hooksPath x", "cd ../other; rm -rf .git/hooks"),
        *("pushd ../other && git commit -n && popd", "(cd ../other && git commit -n) | cat"),
        *("cd ../other && cd .git && git config core.bare true", "git -C ../other/.git notes"),
        *("export GIT_DIR=../other/.git; git commit -n", "cd ../other || exit; git commit -n"),
        "ln -s other ../l && cd ../l && git commit -n",
        *("cd ../other && echo x > .git/hooks/x", "ls && cd ../other && echo x > .git/x && cd -"),
        "mkdir ../new && cd ../new && cat > pyproject.toml <<'X' && ls\n[tool.gitgates]\nX",
    ):
        assert shell(agent, command) == "", command
    for command, rule in {
        "cd ../other && cd ../repo && git commit -n": "no_verify",
        "cd ../other; cd -; git commit -n": "no_verify",
        "pushd ../other; popd; git commit -n": "no_verify",
        "(cd ../other); git commit -n": "no_verify",
        "git -C ../other -C ../repo commit -n": "no_verify",
        "git -C ../linked commit -n": "no_verify",
        "ln -s repo ../l && cd ../l && git commit -n": "no_verify",
        "ln -s $PWD ../l; git -C ../l commit -n": "no_verify",
        "cd ../other; git --git-dir=../repo/.git commit -n": "no_verify",
        "cd ../other; GIT_DIR=../repo/.git git commit -n": "no_verify",
        "cd ../other; rm -rf ../repo/.git/hooks": "hooks_folder",
        "cd ../other; git -C ../repo config core.hooksPath x": "hooks_path",
        "cd ../linked && rm -rf $(git rev-parse --git-common-dir)/hooks": "hooks_folder",
        "cd ../nowhere || git commit -n": "no_verify",
        "cd ../nowhere && true; git commit -n": "no_verify",
        "bash -c 'cd ../other'; git commit -n": "no_verify",
        "cd .git && ls && echo x > hooks/x": "hooks_folder",
        "ls && cat > .git/hooks/x <<X && ls\nX": "hooks_folder",
        "{ cd ../other && ls; } > .git/hooks/x": "hooks_folder",
        "ls && { cd ../other; ls; } > .git/hooks/x": "hooks_folder",
    }.items():
        assert shell(agent, command) == f"deny {rule}", command
    there = {"tool_input": {"command": "git commit -n"}, "cwd": str(other)}
    env = {"CLAUDE_PROJECT_DIR": str(agent.repo.path)}
    agent.env |= env
    assert judged(agent.pre("Bash", "", **there)) == ""
    for command, rule in {
        "cd ../repo && rm -rf .git/hooks": "hooks_folder",
        "cd ../repo; git commit -n": "no_verify",
    }.items():
        there["tool_input"] = {"command": command}
        assert judged(agent.pre("Bash", "", **there)) == f"deny {rule}"


def test_what_is_wrong_with_the_configuration_may_be_mended(agent: Agent) -> None:
    agent.repo.config(CONFIG.replace('["check"]', '["chekc"]'))
    path = str(agent.repo.path / "pyproject.toml")
    mend = {"file_path": path, "old_string": "chekc", "new_string": "check"}
    assert judged(agent.pre("Edit", "", tool_input=mend)) == ""


def test_a_pattern_means_guarded_files_that_are_there(agent: Agent) -> None:
    assert shell(agent, "chmod 600 *.local.toml") == ""
    agent.repo.write("gitgates.local.toml", "")
    assert shell(agent, "chmod 600 *.local.toml") == "ask gate_settings"
    assert shell(agent, "rm -r ../*/.g[i]t") == "deny git_folder"
    assert shell(agent, "rm -r ../*/*it") == ""


def test_no_pattern_is_looked_for_in_the_file_system(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", lambda _path: pytest.fail("it may be endless"))
        assert shell(agent, "rm /*/*/*/x-*; rm .git/hooks/*") == "deny hooks_folder"


def test_the_hooks_folder_that_is_configured_and_that_of_a_linked_worktree(agent: Agent) -> None:
    agent.repo.git("config", "core.hooksPath", ".husky")
    assert judged(agent.pre("Write", ".husky/pre-commit")) == "deny hooks_folder"
    assert shell(agent, "rm -r .husky") == "deny hooks_folder"
    agent.repo.git("worktree", "add", "-q", "../linked")
    linked = Agent(Repo(agent.repo.path.parent / "linked"), "s2")
    assert shell(linked, "rm ../repo/.git/hooks/pre-commit") == "deny hooks_folder"
    assert shell(linked, "rm .git") == "deny git_folder"
    assert shell(linked, "rm -r $(git rev-parse --git-dir)/gitgates") == "deny state_folder"


# Answers

NO_VERIFY = """\
gitgates: guard rule `no_verify`: git commit --no-verify -m a b
It skips git hooks. Fix what the gates report; for what cannot be fixed: \
gitgates cannot-fix GATE --reason "why".\
"""
COMMAND = "git commit --no-verify -m 'a b'"


def test_the_answer_says_what_and_why_and_what_to_do_instead(agent: Agent) -> None:
    said = agent.pre("Bash", "", tool_input={"command": COMMAND})
    own = {"permissionDecision": "deny", "permissionDecisionReason": NO_VERIFY}
    assert said == {"hookSpecificOutput": {"hookEventName": "PreToolUse", **own}}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('no_verify = "ask"', "ask no_verify"),
        ('no_verify = "warn"', "warn no_verify"),
        ('no_verify = "off"', ""),
        ("enabled = false", ""),
        ('uninstall = "off"', "deny no_verify"),
    ],
)
def test_each_rule_may_be_answered_in_another_way(repo: Repo, settings: str, expected: str) -> None:
    agent = begin(repo, f"{CONFIG}[guard]\n{settings}\n")
    assert shell(agent, COMMAND) == expected


def test_the_strongest_answer_counts(agent: Agent) -> None:
    both = f"echo x >> .git/info/exclude; {COMMAND}"
    assert shell(agent, both) == "deny no_verify"


def test_where_nobody_can_be_asked_it_is_refused(agent: Agent) -> None:
    agent.env["CLAUDE_CODE_SESSION_ATTENDED"] = "0"
    assert judged(agent.pre("Write", "gitgates.toml")) == "deny gate_settings"


def test_without_a_parser_the_person_is_asked(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell_syntax, "_parser", lambda: None)
    said = agent.pre("Bash", "", tool_input={"command": 'echo "--no-verify"'})
    assert judged(said) == "ask unreadable"
    reason = said["hookSpecificOutput"]["permissionDecisionReason"]
    assert "the parser for commands cannot be loaded" in reason
    assert shell(agent, "echo hello") == ""


@pytest.mark.samples(1)
@pytest.mark.parametrize("signs", ["<<" * 60_000, "for ((" * 20_000, "| a" * 40_000, "${" * 60_000])
def test_what_takes_too_long_to_be_read_waits_for_a_person(agent: Agent, signs: str) -> None:
    began = time.monotonic()
    assert shell(agent, f"git commit --no-verify {signs}") in WAITS
    assert shell(agent, f"echo {signs}") == ""
    assert time.monotonic() - began < LONGEST_S


@pytest.mark.thorough
def test_many_commands_end_in_time(agent: Agent) -> None:
    began = time.monotonic()
    assert shell(agent, "rm -rf a/.git/b;" * 7_000) in ("", "ask unreadable")
    assert time.monotonic() - began < LONGEST_S


def test_a_review_may_not_be_skipped_in_the_strict_form(repo: Repo) -> None:
    agent = begin(repo, CONFIG.replace('"off"', '"require"'))
    assert shell(agent, "gitgates review skip --reason x") == "deny person_verbs"
    assert shell(agent, "gitgates review skip --reason x --token abc") == ""
    assert shell(agent, "gitgates review status") == ""


def test_the_verbs_are_those_that_want_a_person(repo: Repo) -> None:
    config = CONFIG.replace('"off"', '"require"')
    advice = 'title = "tests"\nid = "tests"\nhook_command = "true"\nhook_on_failure = "block"\n'
    agent = begin(repo, f'{config}[[advice]]\n{advice}hook_trigger = "before-commit"\n')
    for action in {*ACTIONS, "approve"} - {"undo"}:  # its own turn, an agent may undo
        name = " tests" if action.startswith("advice ") else ""
        assert shell(agent, f"gitgates {action}{name}") == "deny person_verbs", action


def test_it_is_off_where_nothing_is_checked(repo: Repo) -> None:
    assert shell(begin(repo, GATE), COMMAND) == ""  # a gate that no hook lists
    gates = f'{GATE}[hooks.pre-commit]\ngates = ["check"]\n'
    assert shell(begin(repo, gates, "s2"), COMMAND) == "deny no_verify"
    assert shell(begin(repo, f"{gates}[guard]\nenabled = false\n", "s3"), COMMAND) == ""


# Where it is on

GATE = '[gates.check]\ncommand = "true"\n'
SERVED = {
    "gates of git": f'{GATE}[hooks.pre-commit]\ngates = ["check"]\n',
    "gates after an edit": f'{GATE}[hooks.PostToolUse]\ngates = ["check"]\n',
    "intents": "[intents]\n",
    "advice that only tells": '[[advice]]\ntitle = "A"\ndescription = "B"\n',
    "the trace": '[trace]\nmode = "on"\n',
}


@pytest.mark.parametrize("served", SERVED)
def test_the_guard_is_on_wherever_an_agents_hook_is(repo: Repo, served: str) -> None:
    agent = begin(repo, SERVED[served])
    answer = agent.pre("Bash", "", tool_input={"command": "git commit --no-verify -m x"})
    assert "no_verify" in FOUND.findall(str(answer))
    events = {one.event for one in entries(load(str(repo.path)) or Config(), "claude")}
    assert {"SessionStart", "PreToolUse", "Stop"} <= events


@pytest.mark.parametrize("served", SERVED)
def test_changed_checks_are_told_wherever_an_agents_hook_is(repo: Repo, served: str) -> None:
    agent = begin(repo, SERVED[served])
    repo.write(".git/info/exclude", "*.py\n")
    assert "info/exclude has changed" in agent.stop()["systemMessage"]
