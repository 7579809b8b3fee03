"""The doctor looks at Claude Code's settings: does it call us, once, in time, and do we answer?"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from doctor_support import Said, examine

from gitgates.git.repo import find_repo
from gitgates.hosts.agents.claude.settings import Settings
from gitgates.setup.doctor.agents import check_agents
from gitgates.setup.doctor.hooks import survey

pytestmark = pytest.mark.slow  # each asks the doctor, who starts what is installed

PROJECT = ".claude/settings.json"
LOCAL = ".claude/settings.local.json"
INSTALL = "gitgates install-hooks --agent claude"
CONFIG = """
[gates.g]
command = "true"
timeout = 60
[hooks.Stop]
gates = ["g"]
[undo]
enabled = false
[hooks.PreToolUse]
gates = ["g"]
enabled_tools = ["Edit", "mcp__serena__*"]
"""
EVENTS = "SessionStart, UserPromptSubmit, PreToolUse, SubagentStart, Stop"


@pytest.fixture
def ready(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A configured repository, and a `gitgates` in the PATH that answers nothing."""
    repo.config(CONFIG)
    program = tmp_path / "bin" / "gitgates"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/local/bin:/usr/bin:/bin")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    program_says(tmp_path, "cat >/dev/null")
    return repo


def program_says(tmp_path: Path, script: str) -> None:
    program = tmp_path / "bin" / "gitgates"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def install(repo: Repo, *args: str) -> None:
    done = repo.gitgates("install-hooks", "--agent", "claude", *args)
    assert done.returncode == 0, done.stderr


def change(repo: Repo, name: str = PROJECT, **more: Any) -> Any:
    """Change settings: whole keys, or with `hooks` given, one event."""
    path = repo.path / name
    settings = json.loads(path.read_text()) if path.exists() else {}
    hooks = {**settings.get("hooks", {}), **more.pop("hooks", {})}
    settings |= more | ({"hooks": hooks} if hooks else {})
    repo.write(name, json.dumps(settings))
    return settings


def agents(repo: Repo) -> list[Said]:
    return [one for one in examine(repo) if one.check in ("agent", "twice")]


def only(repo: Repo) -> Said:
    (found,) = agents(repo)
    return found


def test_nothing_to_do_with_agents(repo: Repo) -> None:
    repo.config('[gates.g]\ncommand = "true"\n[hooks.pre-commit]\ngates = ["g"]\n')
    repo.write(PROJECT, '{"disableAllHooks": true}')
    assert agents(repo) == []


def test_installed_and_alive(ready: Repo) -> None:
    install(ready)
    assert agents(ready) == []
    said = ready.gitgates("doctor").stdout.decode()
    assert f"ok       {PROJECT}: hooks are installed, for guard, gates\n" in said


def test_not_installed(ready: Repo) -> None:
    found = only(ready)
    assert found == Said(
        "note",
        "agent",
        PROJECT,
        f"no coding agent runs the gates: none calls gitgates at {EVENTS}",
        INSTALL,
    )
    assert ready.ask("sh", "-c", f"exit 0; {found.mend}").returncode == 0


@pytest.mark.parametrize(("scope", "name"), [("project", PROJECT), ("local", LOCAL)])
def test_an_event_is_missing(ready: Repo, scope: str, name: str) -> None:
    install(ready, "--scope", scope)
    settings = json.loads((ready.path / name).read_text())
    del settings["hooks"]["Stop"]
    ready.write(name, json.dumps(settings))
    mend = INSTALL if scope == "project" else f"{INSTALL} --scope local"
    assert only(ready) == Said("problem", "agent", name, "does not call gitgates at Stop", mend)


MATCHER = "^(Edit|mcp__serena__.*|Write|NotebookEdit|Bash|PowerShell)$"


def test_a_matcher_that_misses_tools(ready: Repo) -> None:
    install(ready)
    settings = json.loads((ready.path / PROJECT).read_text())
    group = settings["hooks"]["PreToolUse"][0]
    assert group["matcher"] == MATCHER
    change(ready, hooks={"PreToolUse": [{**group, "matcher": "edit|mcp__serena"}]})
    what = "its matcher at PreToolUse is `edit|mcp__serena`, where install-hooks writes "
    assert only(ready).what == f"{what}`{MATCHER}`"
    for fine in ("", "*"):
        change(ready, hooks={"PreToolUse": [{**group, "matcher": fine}]})
        assert agents(ready) == []


def test_a_timeout_that_is_too_short(ready: Repo) -> None:
    install(ready)
    hook = {"type": "command", "command": "gitgates agent-hook claude", "timeout": 30}
    change(ready, hooks={"Stop": [{"hooks": [hook]}]})
    assert only(ready).what == (
        "Claude Code ends Stop after 30 s, and then lets everything through; "
        "the gates may take until 75 s"
    )
    del hook["timeout"]  # the client's own, which is long enough
    change(ready, hooks={"Stop": [{"hooks": [hook]}]})
    assert agents(ready) == []


def test_a_hook_of_somebodys_own_that_speaks_of_us(ready: Repo) -> None:
    install(ready)
    hook = {"type": "command", "command": "gitgates agent-hok claude"}
    change(ready, hooks={"Stop": [{"hooks": [hook]}]})
    assert only(ready).what == "does not call gitgates at Stop"


# Whether it is there


def test_the_command_is_gone(ready: Repo, tmp_path: Path) -> None:
    install(ready)
    (tmp_path / "bin/gitgates").unlink()
    found = only(ready)
    assert found.severity == "problem"
    assert found.what.startswith("`gitgates` was not found in PATH, where these hooks look for")
    assert found.mend == "To install it there, in a clone of gitgates: uv tool install ."


def test_it_is_there_in_a_virtual_environment_only(
    ready: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(ready)
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    found = only(ready)
    assert found.severity == "note"
    assert found.what.startswith("`gitgates` was not found in PATH")


def in_process(repo: Repo) -> list[Any]:
    with contextlib.chdir(repo.path):
        found = list(check_agents(survey(find_repo(str(repo.path), dict(os.environ)))))
    return [one for one in found if one.severity != "ok"]


# Switches


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"disableAllHooks": True}, "`disableAllHooks` is true: Claude Code runs no hooks"),
        ({"env": {"GITGATES": "0"}}, "its `env` sets GITGATES=0: hooks run no gates"),
    ],
)
def test_a_switch_in_any_settings(ready: Repo, settings: dict[str, Any], what: str) -> None:
    install(ready)
    mine = Path(os.environ["HOME"]) / ".claude/settings.json"
    for name in (PROJECT, LOCAL, str(mine)):
        before = (ready.path / name).read_text() if (ready.path / name).exists() else None
        change(ready, name, **settings)
        assert (only(ready).severity, only(ready).what) == ("problem", what)
        assert only(ready).where == name
        (ready.path / name).unlink()
        if before:
            ready.write(name, before)
    assert agents(ready) == []


def test_settings_that_count_more_switch_it_on_again(ready: Repo) -> None:
    install(ready)
    change(ready, env={"GITGATES": "0"})
    assert only(ready).where == PROJECT
    change(ready, LOCAL, env={"GITGATES": "1"})
    assert agents(ready) == []
    change(ready, disableAllHooks=True)
    assert only(ready).where == PROJECT
    change(ready, LOCAL, disableAllHooks=False)
    assert agents(ready) == []


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"async": True}, "`async` is true"),
        ({"if": "Bash(git *)"}, '`if` is "Bash(git *)"'),
        ({"shell": "powershell"}, '`shell` is "powershell"'),
        ({"timeout": "75"}, '`timeout` is "75"'),
        ({"timeout": True}, "`timeout` is true"),
        ({"async": "no"}, '`async` is "no"'),
        ({"statusMessage": 5}, "`statusMessage` is 5"),
    ],
)
def test_a_hook_that_is_not_waited_for(ready: Repo, more: dict[str, Any], what: str) -> None:
    install(ready)
    settings = json.loads((ready.path / PROJECT).read_text())
    settings["hooks"]["Stop"][0]["hooks"][0] |= more
    ready.write(PROJECT, json.dumps(settings))
    found = only(ready)
    what = f"calls gitgates at Stop, but its {what}: Claude Code may skip it, or not wait for it"
    assert (found.severity, found.what) == ("problem", what)
    assert ready.gitgates(*found.mend.split()[1:]).returncode == 0
    assert agents(ready) == []


@pytest.mark.samples(1)
@pytest.mark.parametrize("matcher", [5, None])
def test_a_matcher_that_is_no_text(ready: Repo, matcher: object) -> None:
    install(ready)
    settings = json.loads((ready.path / PROJECT).read_text())
    settings["hooks"]["Stop"][0]["matcher"] = matcher
    ready.write(PROJECT, json.dumps(settings))
    what = (
        f"calls gitgates at Stop, but its `matcher` is {json.dumps(matcher)}: Claude Code "
        "may skip it"
    )
    assert only(ready).what == f"{what}, or not wait for it"
    install(ready)
    assert agents(ready) == []


def test_settings_of_the_machine(
    ready: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(ready)
    managed = tmp_path / "managed.json"
    managed.write_text('{"allowManagedHooksOnly": true, "disableAllHooks": true}')
    monkeypatch.setattr(Settings, "MANAGED", str(managed))
    assert [one.what.split(":")[0] for one in in_process(ready)] == [
        "`disableAllHooks` is true",
        "`allowManagedHooksOnly` is true",
    ]


def test_broken_settings(ready: Repo) -> None:
    install(ready)
    ready.write(LOCAL, '{"a": 1,}')
    found = only(ready)
    assert found.where == LOCAL
    assert found.what.startswith("cannot be read: 1:")
    ready.write(LOCAL, "[]")
    assert only(ready).what == "cannot be read: the file is an array, expected an object"


def test_of_broken_settings_nobody_knows_what_they_hold(ready: Repo) -> None:
    install(ready)
    path = ready.path / PROJECT
    path.write_text(path.read_text().replace("{", '{"a": 1, "a": 2,', 1))
    assert only(ready).what.endswith('duplicate key "a"')


# The plugin


def test_the_plugin_alone_is_enough(ready: Repo, tmp_path: Path) -> None:
    ready.write(PROJECT, '{"enabledPlugins": {"gitgates@gitgates": true, "other@x": true}}')
    assert agents(ready) == []
    (tmp_path / "bin/gitgates").unlink()
    assert only(ready).where == "plugin gitgates@gitgates"
    ready.write(LOCAL, '{"enabledPlugins": {"gitgates@gitgates": false}}')
    assert only(ready).what.startswith("no coding agent runs the gates")


def test_the_plugin_waits_ten_minutes_and_no_more(ready: Repo) -> None:
    ready.config(CONFIG.replace("timeout = 60", "timeout = 900"))
    ready.write(PROJECT, '{"enabledPlugins": {"gitgates@gitgates": true}}')
    found = only(ready)
    assert "ends Stop after 600 s" in found.what
    assert found.mend == f"in Claude Code: /plugin uninstall gitgates; then: {INSTALL}"
