"""The guard: each rule by several ways to write it, and what only looks like it."""

from __future__ import annotations

import functools
import os
import time
from typing import Any

import pytest
from agent_support import Agent
from conftest import Repo
from guard_cases import CONFIG, SHELL
from guard_support import FOUND, Guard, judged, places_known
from session_support import begin

from gitgates.config.keys import defaults
from gitgates.config.load import load
from gitgates.core.guarded import rules_by_name
from gitgates.core.types import Config
from gitgates.features.guard import rules
from gitgates.hosts import AGENTS, agent_host
from gitgates.setup.install.agent_needs import entries
from gitgates.shell import syntax as shell_syntax
from gitgates.verbs.approval import ACTIONS

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


@pytest.fixture(name="place")
def _place(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository, and a home beside it."""
    home = repo.path.parent / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return repo


@pytest.fixture(name="agent")
def _agent(place: Repo) -> Agent:
    return begin(place, CONFIG)


@pytest.fixture(name="guard")
def _guard(place: Repo) -> Guard:
    place.write("sub/a", "")
    return Guard(place, CONFIG)


def shell(agent: Agent, command: str) -> str:
    return judged(agent.pre("Bash", "", tool_input={"command": command}))


def test_each_rule_has_ways_to_write_it_and_look_alikes() -> None:
    assert sorted(RULES) == sorted(defaults("guard").keys() - {"enabled"})
    # Those with answers of their own are of other policies.
    assert sorted(SHELL) == sorted(name for name in RULES if "warn" in RULES[name].answers)
    assert [name for name, pair in SHELL.items() if min(map(len, pair)) < 3] == []


def answers(most: int | None = None) -> dict[str, str]:
    """Return the commands of each rule, and what is to be said of them."""
    pairs = [
        (one, text)
        for rule, (found, fine) in SHELL.items()
        for some, text in ((found, f"{RULES[rule].answer} {rule}"), (fine, ""))
        for one in some[:most]
    ]
    return dict(pairs)


def test_commands(guard: Guard) -> None:
    # With the first of these aliases, every command of git is read.
    guard.repo.git("config", "alias.sneaky", "commit --no-verify")
    guard.repo.git("config", "alias.ci", "commit")
    assert guard.shells(answers()) == answers()


def test_commands_in_a_session(agent: Agent) -> None:
    assert {one: shell(agent, one) for one in answers(1)} == answers(1)


def test_what_is_found_does_not_rest_on_an_alias_that_makes_every_command_be_read(
    guard: Guard,
) -> None:
    aliases = ("git sneaky ", "git ci ")
    found = {one: said for one, said in answers().items() if said and not one.startswith(aliases)}
    assert guard.shells(found) == found


# Edits


def test_each_agent_is_known_by_each_of_its_names(guard: Guard) -> None:
    expected = {}
    for host in map(agent_host, AGENTS):
        assert host.PROGRAMS or host.NAME == "generic"
        for program in host.PROGRAMS:
            for sign in host.AUTO_APPROVE_OPTIONS:
                option = sign.replace("=", " ") if sign.startswith("-") else f"--mode {sign}"
                command = f"npx -y {program}@latest {option} -p 'do it'"
                expected[command] = "ask nested_agent"
            expected[f"{program} -p 'do it'"] = ""
    assert guard.shells(expected) == expected


def test_the_settings_of_another_agent(guard: Guard) -> None:
    """Where they are: an agent may set up another one, and not take our hooks out of it."""
    assert guard.write(".codex/hooks.json") == ""
    guard.repo.write(".codex/hooks.json", "{}")
    assert guard.write(".codex/hooks.json") == "deny agent_settings"
    assert guard.shell("rm -rf .codex") == "deny agent_settings"
    assert guard.shell("rm -rf .gemini") == ""


PATHS = {
    ".git/hooks/pre-commit": "deny hooks_folder",
    "sub/../.git/hooks/new": "deny hooks_folder",
    "link/hooks/pre-commit": "deny hooks_folder",
    ".GIT/HOOKS/pre-commit": "deny hooks_folder",
    ".claude/settings.json": "deny agent_settings",
    ".claude/settings.local.json": "deny agent_settings",
    "../home/.claude/settings.json": "deny agent_settings",
    "gitgates.toml": "ask gate_settings",
    "gitgates.local.toml": "ask gate_settings",
    ".gitgates-baseline.json": "ask gate_settings",
    ".pre-commit-config.yaml": "ask gate_settings",
    ".orchestration/active_intents.yaml": "ask intents_file",
    ".git/gitgates/sessions/s1.jsonl": "deny state_folder",
    ".git/config": "deny git_folder",
    ".git/info/exclude": "ask git_exclude",
    ".claude/agents/reviewer.md": "ask reviewer_files",
    ".claude/skills/code-review/SKILL.md": "ask reviewer_files",
    "../home/.claude/commands/review.md": "ask reviewer_files",
    "hooks/pre-commit": "",
    ".github/hooks/pre-commit": "",
    "docs/settings.json": "",
    ".claude/agents/other.md": "",
    "sub/gitgates.toml": "",
    ".gitignore": "",
}


def test_a_file_that_a_tool_writes(guard: Guard) -> None:
    (guard.repo.path / "link").symlink_to(".git")
    root = guard.repo.path
    with places_known():
        for tool in ("Write", "Edit"):
            assert {path: guard.write(path, tool) for path in PATHS} == PATHS
        for path, expected in PATHS.items():
            notebook = {"notebook_path": str(root / path), "new_source": "x"}
            assert guard.says("NotebookEdit", **notebook) == expected, path


CHANGES: tuple[tuple[dict[str, Any], str], ...] = (
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
)  # fmt: skip


def test_other_tables_of_pyproject_may_be_edited(guard: Guard) -> None:
    path = str(guard.repo.write("pyproject.toml", EDITED))
    said = [guard.says("Edit", file_path=path, **change) for change, _expected in CHANGES]
    assert said == [expected for _change, expected in CHANGES]


def test_what_a_shell_writes_whole_is_read(guard: Guard) -> None:
    guard.repo.write("pyproject.toml", EDITED)
    more = EDITED.replace('name = "x"', 'name = "gitgates"') + "[tool.ruff]\n"
    for form in ("cat > pyproject.toml <<'E'\n{}E", "tee pyproject.toml <<'E'\n{}E"):
        assert guard.shell(form.format(more)) == ""
        assert guard.shell(form.format("[project]\n")) == "ask gate_settings"
        assert guard.shell(form.format(EDITED.replace("true", "false"))) == "ask gate_settings"
    assert guard.shell("cat >> pyproject.toml <<'E'\n[tool.ruff]\nE") == ""


def test_a_link_into_a_guarded_place_does_not_hide_it(guard: Guard) -> None:
    state = guard.repo.path / ".git/gitgates"
    state.mkdir()
    for name, goal in {"state": "gitgates", "hooks": "hooks"}.items():
        (guard.repo.path / f"to-{name}").symlink_to(f".git/{goal}")
    (guard.repo.path / "sub/out").symlink_to("/tmp")
    for rule, name in (("state_folder", "to-state"), ("hooks_folder", "to-hooks")):
        for command in (
            *("echo x >> {}/x", "echo x>{}/x", "cp a {}/x", "sed -i s/a/b/ {}/x", "rm -f {}/*"),
            *("cd {} && echo x > x", "tee {}/x < a", "curl -o {}/x https://h", "dd of={}/x"),
        ):
            assert guard.shell(command.format(name)) == f"deny {rule}", command
    assert guard.shell("echo x > sub/out/x; cp to-state/x to-hooks/y /tmp") == ""
    assert guard.shell("echo x > x", str(state)) == "deny state_folder"


def test_the_folder_that_a_command_is_run_in_is_followed(guard: Guard) -> None:
    """Another repository is none of ours; ours is, wherever the agent is."""
    other = guard.repo.path.parent / "other"
    guard.repo.git("init", "-q", str(other))
    guard.repo.commit_all("first")
    guard.repo.git("worktree", "add", "-q", "../linked")
    (guard.repo.path / "away").symlink_to(other)
    for command in (
        *("cd ../other && git commit -n", "git -C ../other commit -n", "cd away; git commit -n"),
        *("git --git-dir=../other/.git commit -n", "GIT_DIR=../other/.git git commit -n"),
        *("cd ../other && HUSKY=0 git commit", "cd ../other; pre-commit uninstall"),
        *("git -C ../other config core.hooksPath x", "cd ../other; rm -rf .git/hooks"),
        *("pushd ../other && git commit -n && popd", "(cd ../other && git commit -n) | cat"),
        *("cd ../other && cd .git && git config core.bare true", "git -C ../other/.git notes"),
        *("export GIT_DIR=../other/.git; git commit -n", "cd ../other || exit; git commit -n"),
        *("cd ../other && echo x > .git/hooks/x", "ls && cd ../other && echo x > .git/x && cd -"),
        "mkdir ../new && cd ../new && cat > pyproject.toml <<'X' && ls\n[tool.gitgates]\nX",
    ):
        assert guard.shell(command) == "", command
    for command, rule in {
        "cd ../other && cd ../repo && git commit -n": "no_verify",
        "cd ../other; cd -; git commit -n": "no_verify",
        "pushd ../other; popd; git commit -n": "no_verify",
        "(cd ../other); git commit -n": "no_verify",
        "git -C ../other -C ../repo commit -n": "no_verify",
        "git -C ../linked commit -n": "no_verify",
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
        assert guard.shell(command) == f"deny {rule}", command
    guard.env["CLAUDE_PROJECT_DIR"] = str(guard.repo.path)
    assert guard.shell("git commit -n", str(other)) == ""
    for command, rule in {
        "cd ../repo && rm -rf .git/hooks": "hooks_folder",
        "cd ../repo; git commit -n": "no_verify",
    }.items():
        assert guard.shell(command, str(other)) == f"deny {rule}"


def test_what_is_wrong_with_the_configuration_may_be_mended(agent: Agent) -> None:
    agent.repo.config(CONFIG.replace('["check"]', '["chekc"]'))
    path = str(agent.repo.path / "pyproject.toml")
    mend = {"file_path": path, "old_string": "chekc", "new_string": "check"}
    assert judged(agent.pre("Edit", "", tool_input=mend)) == ""


def test_a_pattern_means_guarded_files_that_are_there(guard: Guard) -> None:
    assert guard.shell("chmod 600 *.local.toml") == ""
    guard.repo.write("gitgates.local.toml", "")
    assert guard.shell("chmod 600 *.local.toml") == "ask gate_settings"
    assert guard.shell("rm -r ../*/.g[i]t") == "deny git_folder"
    assert guard.shell("rm -r ../*/*it") == ""


def test_find_may_leave_the_git_folder_out(guard: Guard) -> None:
    for command, said in (
        ("find . -path ./.git -prune -o -name '*.pyc' -exec rm {} +", ""),
        ("find . ! -path './.git/*' -type f -name '*.pyc' -delete", ""),
        ("find . -path './.git/*' -delete", "deny git_folder"),
        ("find .git -name '*.lock' -delete", "deny git_folder"),
    ):
        assert guard.shell(command) == said, command


def test_no_pattern_is_looked_for_in_the_file_system(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", lambda _path: pytest.fail("it may be endless"))
        assert guard.shell("rm /*/*/*/x-*; rm .git/hooks/*") == "deny hooks_folder"


def test_the_hooks_folder_that_is_configured_and_that_of_a_linked_worktree(guard: Guard) -> None:
    guard.repo.git("config", "core.hooksPath", ".husky")
    assert guard.write(".husky/pre-commit") == "deny hooks_folder"
    assert guard.shell("rm -r .husky") == "deny hooks_folder"
    guard.repo.commit_all("first")
    guard.repo.git("worktree", "add", "-q", "../linked")
    linked = Guard(Repo(guard.repo.path.parent / "linked"), CONFIG)
    assert linked.shell("rm ../repo/.git/hooks/pre-commit") == "deny hooks_folder"
    assert linked.shell("rm .git") == "deny git_folder"
    assert linked.shell("rm -r $(git rev-parse --git-dir)/gitgates") == "deny state_folder"


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


def test_each_rule_may_be_answered_in_another_way(repo: Repo) -> None:
    for settings, expected in {
        'no_verify = "ask"': "ask no_verify",
        'no_verify = "warn"': "warn no_verify",
        'no_verify = "off"': "",
        'uninstall = "off"': "deny no_verify",
    }.items():
        guard = Guard(repo, f"{CONFIG}[guard]\n{settings}\n")
        assert guard.shell(COMMAND) == expected, settings


def test_it_may_be_switched_off(repo: Repo) -> None:
    assert shell(begin(repo, f"{CONFIG}[guard]\nenabled = false\n"), COMMAND) == ""


def test_the_strongest_answer_counts(guard: Guard) -> None:
    both = f"echo x >> .git/info/exclude; {COMMAND}"
    assert guard.shell(both) == "deny no_verify"


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


ENDLESS = ("<<" * 60_000, "for ((" * 20_000, "| a" * 40_000, "${" * 60_000)


def test_what_takes_too_long_to_be_read_waits_for_a_person(
    guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_time = functools.partial(shell_syntax.read_command_line, longest_s=0.02)
    monkeypatch.setattr(rules, "read_command_line", in_time)
    for signs in ENDLESS:
        assert guard.shell(f"git commit --no-verify {signs}") in WAITS
        assert guard.shell(f"echo {signs}") == ""


@pytest.mark.nightly
@pytest.mark.parametrize("signs", ENDLESS)
def test_a_person_is_asked_in_time(agent: Agent, signs: str) -> None:
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
    guard = Guard(repo, CONFIG.replace('"off"', '"require"'))
    assert guard.shell("gitgates review skip --reason x") == "deny person_verbs"
    assert guard.shell("gitgates review skip --reason x --token abc") == ""
    assert guard.shell("gitgates review status") == ""


def test_the_verbs_are_those_that_want_a_person(repo: Repo) -> None:
    config = CONFIG.replace('"off"', '"require"')
    advice = 'title = "tests"\nid = "tests"\nhook_command = "true"\nhook_on_failure = "block"\n'
    guard = Guard(repo, f'{config}[[advice]]\n{advice}hook_trigger = "before-commit"\n')
    for action in {*ACTIONS, "approve"} - {"undo"}:  # its own turn, an agent may undo
        name = " tests" if action.startswith("advice ") else ""
        assert guard.shell(f"gitgates {action}{name}") == "deny person_verbs", action


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


@pytest.mark.samples(3)
@pytest.mark.parametrize("served", SERVED)
def test_the_guard_is_on_wherever_an_agents_hook_is(repo: Repo, served: str) -> None:
    agent = begin(repo, SERVED[served])
    answer = agent.pre("Bash", "", tool_input={"command": "git commit --no-verify -m x"})
    assert "no_verify" in FOUND.findall(str(answer))
    events = {one.event for one in entries(load(str(repo.path)) or Config(), "claude")}
    assert {"SessionStart", "PreToolUse", "Stop"} <= events
    # And so changed checks are told.
    repo.write(".git/info/exclude", "*.py\n")
    assert "info/exclude has changed" in agent.stop()["systemMessage"]
