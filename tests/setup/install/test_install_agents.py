"""install-hooks --agent claude and its way back, in real folders."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import forked
import pytest
from claude_support import ask
from conftest import Repo

from gitgates.core.errors import ConfigError, StateError
from gitgates.edit import user_file
from gitgates.hosts import agent_host
from gitgates.setup.install import agents

PROJECT = ".claude/settings.json"
LOCAL = ".claude/settings.local.json"
CONFIG = """
[gates.g]
command = "true"
timeout = 60
[hooks.Stop]
gates = ["g"]
[hooks.PostToolUse]
gates = ["g"]
enabled_tools = ["Edit", "Write"]
"""
TOOL_EVENTS = "PreToolUse, PostToolUse, PostToolUseFailure"
EVENTS = f"SessionStart, UserPromptSubmit, {TOOL_EVENTS}, SubagentStart, Stop"
FOREIGN = '{\n    "model": "opus",\n    "hooks": {"Stop": [{"hooks": []}]}\n}\n'
COMMAND = "command -v gitgates >/dev/null 2>&1 && exec gitgates agent-hook claude || "
NEXT = "next: gitgates doctor --prove\n"
# Of the programs that tests need, none but a system's own.
SYSTEM = "/usr/local/bin:/usr/bin:/bin"
BESIDE = Path(sys.executable).parent / "gitgates"


@pytest.fixture
def ready(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A configured repository, and a `gitgates` in the PATH."""
    repo.config(CONFIG)
    program = tmp_path / "bin" / "gitgates"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{SYSTEM}")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return repo


def settings(repo: Repo, name: str = PROJECT) -> Any:
    return json.loads((repo.path / name).read_text())


def commands(document: Any) -> set[str]:
    groups = [group for event in document["hooks"].values() for group in event]
    return {hook["command"] for group in groups for hook in group["hooks"]}


def test_the_project_gets_its_hooks_and_loses_them_again(ready: Repo) -> None:
    ready.config(CONFIG + '[hooks.pre-commit]\ngates = ["g"]\n')  # git's, not the agent's
    said = ask(ready, "install")
    assert said == f"{PROJECT}: gitgates hooks were added: {EVENTS}\n{NEXT}"
    hook = {"type": "command", "command": f"{COMMAND}:", "timeout": 5}
    wait = {**hook, "timeout": 105, "statusMessage": "gitgates: running the gates"}
    tools, save = "^(?!(?:Read|Grep|Glob)$)", {**hook, "timeout": 35}
    written = settings(ready)
    assert {
        event: commands({"hooks": {event: groups}}).pop().partition("'")[0]
        for event, groups in written["hooks"].items()
    } == dict.fromkeys(EVENTS.split(", "), f"{COMMAND}:") | dict.fromkeys(
        ("SessionStart", "Stop"), f"{COMMAND}echo "
    )
    for event in ("SessionStart", "Stop"):
        written["hooks"][event][0]["hooks"][0]["command"] = hook["command"]
    assert written == {
        "hooks": {
            "SessionStart": [{"hooks": [hook]}],
            "UserPromptSubmit": [{"hooks": [hook]}],
            "PreToolUse": [{"matcher": tools, "hooks": [save]}],
            "PostToolUse": [{"matcher": tools, "hooks": [wait]}],
            "PostToolUseFailure": [{"matcher": tools, "hooks": [save]}],
            "SubagentStart": [{"hooks": [hook]}],
            "Stop": [{"hooks": [{**wait, "timeout": 75}]}],
        }
    }
    assert ask(ready, "install") == f"{PROJECT}: gitgates hooks are already up to date\n{NEXT}"
    assert ask(ready, "uninstall") == f"{PROJECT}: removed; it contained only gitgates hooks\n"
    assert not (ready.path / ".claude").exists()
    assert ask(ready, "uninstall") == f"{PROJECT}: no gitgates hooks\n"


def test_foreign_settings_come_back_with_mode_and_link(ready: Repo) -> None:
    target = ready.write("elsewhere/mine.json", FOREIGN)
    target.chmod(0o600)
    link = ready.path / PROJECT
    link.parent.mkdir()
    link.symlink_to("../elsewhere/mine.json")
    ask(ready, "install")
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600
    assert settings(ready)["hooks"]["Stop"][0] == {"hooks": []}
    assert ask(ready, "uninstall") == f"{PROJECT}: gitgates hooks were removed\n"
    assert (link.is_symlink(), target.read_text()) == (True, FOREIGN)
    assert os.listdir(target.parent) == ["mine.json"]


def test_a_folder_that_holds_more_stays(ready: Repo) -> None:
    ready.write(".claude/agents/a.md")
    ask(ready, "install")
    ask(ready, "uninstall")
    assert os.listdir(ready.path / ".claude") == ["agents"]


def test_a_folder_that_is_a_link_stays(ready: Repo) -> None:
    (ready.path / "elsewhere").mkdir()
    (ready.path / ".claude").symlink_to("elsewhere")
    ask(ready, "install")
    assert os.listdir(ready.path / "elsewhere") == ["settings.json"]
    assert ask(ready, "uninstall") == f"{PROJECT}: removed; it contained only gitgates hooks\n"
    assert os.listdir(ready.path / ".claude") == []


def test_installing_gits_hooks_tells_of_the_agents(ready: Repo) -> None:
    told = "to install the hooks of Claude Code: gitgates install-hooks --agent claude\n"
    done = ready.gitgates("install-hooks")
    assert done.returncode == 78
    assert told in done.stderr.decode()
    done = ready.gitgates("install-hooks", "--hook-type", "pre-commit")
    assert told not in done.stdout.decode()
    ready.config(CONFIG + '[hooks.pre-commit]\ngates = ["g"]\n')
    done = ready.gitgates("install-hooks")
    assert (done.returncode, done.stdout.decode().endswith(f"gitgates: {told}")) == (0, True)


def test_other_needs_bring_it_up_to_date(ready: Repo) -> None:
    ask(ready, "install")
    ready.config(CONFIG.replace("timeout = 60", "timeout = 90"))
    assert f"{PROJECT}: gitgates hooks were updated" in ask(ready, "install")
    assert settings(ready)["hooks"]["Stop"][0]["hooks"][0]["timeout"] == 105


def test_print_writes_nothing(ready: Repo) -> None:
    said = ask(ready, "install", "--print")
    assert not (ready.path / ".claude").exists()
    ask(ready, "install")
    assert (ready.path / PROJECT).read_text() == said


def test_the_scope_says_which_file(ready: Repo, tmp_path: Path) -> None:
    ask(ready, "install", "--scope", "local")
    assert "Stop" in settings(ready, LOCAL)["hooks"]
    said = ask(ready, "install", "--scope", "user")
    mine = Path(os.environ["HOME"]) / ".claude/settings.json"
    assert str(mine) in said
    assert "these settings apply to all your projects" in said
    assert "Stop" in json.loads(mine.read_text())["hooks"]
    moved = tmp_path / "moved"
    done = ready.gitgates(
        "install-hooks", "--agent=claude", "--scope=user", env={"CLAUDE_CONFIG_DIR": str(moved)}
    )
    assert done.returncode == 0
    assert "Stop" in json.loads((moved / "settings.json").read_text())["hooks"]
    assert not (ready.path / PROJECT).exists()
    assert ask(ready, "uninstall", "--scope", "user") == (
        f"{mine}: removed; it contained only gitgates hooks\n"
        f"gitgates: hooks remain in {LOCAL}\n"
        "  To remove them: gitgates uninstall-hooks --agent claude --scope local\n"
    )


def test_no_home_no_settings_of_ones_own() -> None:
    with pytest.raises(StateError, match="HOME is not an absolute path"):
        agents.settings_file("claude", "user", "/r", {})


# The command


@pytest.mark.skipif(not BESIDE.exists(), reason="the package is not installed")
def test_in_a_virtual_environment_one_persons_settings_name_the_program(
    ready: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{BESIDE.parent}:{SYSTEM}")
    monkeypatch.setenv("VIRTUAL_ENV", str(BESIDE.parent.parent))
    ask(ready, "install", "--scope", "local")
    assert commands(settings(ready, LOCAL)) == {f"{BESIDE} agent-hook claude"}
    said = ask(ready, "install")
    assert all(command.startswith(COMMAND) for command in commands(settings(ready)))
    assert "gitgates: `gitgates` was not found in PATH" in said
    assert f"(only {BESIDE}, which is found only in its virtual environment)" in said


def test_a_virtual_environment_in_the_path_counts_if_it_is_there_for_good(tmp_path: Path) -> None:
    program = tmp_path / "venv/bin/gitgates"
    program.parent.mkdir(parents=True)
    (tmp_path / "venv/pyvenv.cfg").touch()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    env = {"PATH": f"/usr/bin:{program.parent}"}

    def missing(root: str, **more: str) -> str:
        return agents.start("claude", "project", {**env, **more}, f"{tmp_path}/{root}")[1]

    assert not missing("project")
    assert not missing("project", VIRTUAL_ENV=f"{tmp_path}/other")
    assert missing("project", VIRTUAL_ENV=f"{tmp_path}/venv")
    assert missing("")


def test_a_program_with_a_space_in_its_name_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = tmp_path / "my venv/bin/python"
    python.parent.mkdir(parents=True)
    beside = python.parent / "gitgates"
    beside.write_text("#!/bin/sh\n")
    beside.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    found = agents.start("claude", "user", {"PATH": "relative:/nowhere:."})
    assert found == (f"'{beside}' agent-hook claude", "")
    beside.unlink()
    command, missing = agents.start("claude", "user", {"PATH": "/nowhere"})
    assert command == f"{COMMAND}:"
    assert "`gitgates` was not found in PATH" in missing


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
def test_a_path_that_json_cannot_hold_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = tmp_path / os.fsdecode(b"\xff") / "gitgates"
    beside.parent.mkdir()
    beside.write_text("#!/bin/sh\n")
    beside.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(beside.parent / "python"))
    assert agents.start("claude", "local", {"PATH": "/nowhere"})[0] == f"{COMMAND}:"


def test_a_relative_folder_of_the_path_does_not_count(
    ready: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = ready.write("bin/gitgates", "#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(ready.path)
    assert agents.start("claude", "project", {"PATH": "bin:"})[1]
    assert not agents.start("claude", "project", {"PATH": str(program.parent)})[1]


# Refused


@pytest.mark.parametrize("verb", ["install", "uninstall"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": 1,}', f"gitgates: {PROJECT}:1:"),
        (b'{"hooks": []}', f"gitgates: {PROJECT}: `hooks` is an array, expected an object"),
        (b'{"a": "\xff"}', "is not valid UTF-8: byte 7"),
    ],
)
def test_broken_settings_are_left_alone(ready: Repo, verb: str, content: bytes, said: str) -> None:
    path = ready.write(PROJECT, content)
    assert said in ask(ready, verb, status=78)
    assert path.read_bytes() == content
    assert os.listdir(path.parent) == ["settings.json"]


def test_a_folder_in_the_place_of_the_file(ready: Repo) -> None:
    (ready.path / PROJECT).mkdir(parents=True)
    assert "cannot be read: Is a directory" in ask(ready, "install", status=78)


@pytest.mark.parametrize("verb", ["install-hooks", "uninstall-hooks"])
def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(ready: Repo, verb: str) -> None:
    (ready.path / ".claude").mkdir()
    os.mkfifo(ready.path / ".claude/settings.json")
    done = ready.gitgates(verb, "--agent", "claude")
    assert done.returncode == 78
    assert b"settings.json: is not a regular file" in done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(ready: Repo) -> None:
    folder = ready.path / ".claude"
    folder.mkdir(mode=0o500)
    assert "cannot be written: Permission denied" in ask(ready, "install", status=73)
    assert os.listdir(folder) == []


def test_a_file_in_the_place_of_the_folder(ready: Repo) -> None:
    ready.write(".claude", "x")
    assert "cannot be written" in ask(ready, "install", status=73)


def test_what_somebody_writes_meanwhile_stays(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text("theirs")
    for after in ("ours", None):
        with pytest.raises(StateError, match="was modified by another process just now"):
            user_file.replace(str(path), "before", after)
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["settings.json"]


def test_an_unreadable_file_is_a_matter_of_configuration(tmp_path: Path) -> None:
    assert user_file.read(str(tmp_path / "no")) is None
    with pytest.raises(ConfigError, match="cannot be read"):
        user_file.read(str(tmp_path))


def test_with_hooks_of_git_alone_the_guard_is_installed(repo: Repo) -> None:
    repo.config('[gates.g]\ncommand = "true"\n[hooks.pre-commit]\ngates = ["g"]\n')
    said = ask(repo, "install")
    assert "Claude Code gets only the guard" in said
    assert "gitgates init --agent claude" in said
    hooks = json.loads((repo.path / ".claude/settings.json").read_text())["hooks"]
    assert re.search(hooks["PreToolUse"][0]["matcher"], "Bash")
    assert "Stop" in hooks


def test_nothing_is_needed(repo: Repo) -> None:
    gates = '[gates.g]\ncommand = "true"\n[hooks.pre-commit]\ngates = ["g"]\n'
    repo.config(f"{gates}[guard]\nenabled = false\n[undo]\nenabled = false\n")
    said = ask(repo, "install", status=78)
    assert "the configuration defines no agent hooks" in said
    assert '+gates = ["g"]\n' in said
    assert "install-hooks --agent claude --yes" in said
    assert not (repo.path / ".claude").exists()


@pytest.mark.slow
def test_from_nothing_to_a_blocked_stop_in_one_command(repo: Repo) -> None:
    repo.write("Makefile", "lint:\n\tfalse\n")
    repo.commit_all("first")
    assert "Stop" in ask(repo, "install", "--yes")
    assert (
        (repo.path / "gitgates.toml")
        .read_text()
        .endswith('[hooks.Stop]\ngates = ["lint"]\nstrategy = "collect"\n')
    )
    base = {"session_id": "s", "cwd": str(repo.path), "transcript_path": "", "prompt_id": "1"}

    def fire(event: str) -> dict[str, object]:
        payload = json.dumps({**base, "hook_event_name": event, "source": "startup"}).encode()
        env = {**os.environ}
        done = forked.run(("agent-hook", "claude"), str(repo.path), env, payload, hosts=True)
        answer: dict[str, object] = json.loads(done.stdout or b"{}")
        return answer

    fire("SessionStart")
    repo.write("changed.py", "x = 1\n")
    assert fire("Stop")["decision"] == "block"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("install-hooks", "--agent", "claude", "--force"), "--force cannot be used with --agent"),
        (
            ("install-hooks", "--agent", "claude", "-t", "pre-push"),
            "--hook-type cannot be used with",
        ),
        (
            ("install-hooks", "--agent", "claude", "--via", "husky"),
            "--via cannot be used with",
        ),
        (("install-hooks", "--scope", "user"), "--scope requires --agent"),
        (("install-hooks", "--print"), "--print requires --agent"),
        (("install-hooks", "--claude-md"), "--claude-md requires --agent"),
        (("uninstall-hooks", "--scope", "user"), "--scope requires --agent"),
        (
            ("uninstall-hooks", "--agent", "claude", "--force"),
            "--force cannot be used with --agent",
        ),
        (("install-hooks", "--agent", "nobody"), "'nobody' is not one of 'claude', "),
    ],
)
def test_options_that_do_not_go_together(ready: Repo, args: tuple[str, ...], said: str) -> None:
    done = ready.gitgates(*args)
    assert done.returncode == 64
    assert said in done.stderr.decode()


# CLAUDE.md


def test_the_rules_go_to_claude_md_and_out_again(ready: Repo) -> None:
    path = ready.write("CLAUDE.md", "# Mine")
    said = ask(ready, "install", "--claude-md")
    assert "CLAUDE.md: the rules of the gates were written\n" in said
    explained = ready.gitgates("explain", "--for-agent")
    assert path.read_text() == (
        "# Mine\n<!-- gitgates: begin -->\n"
        f"{explained.stdout.decode().strip()}\n<!-- gitgates: end -->"
    )
    assert "CLAUDE.md: the rules of the gates are already up to date\n" in ask(
        ready, "install", "--claude-md"
    )
    assert ask(ready, "uninstall").endswith("CLAUDE.md: the rules of the gates were removed\n")
    assert path.read_text() == "# Mine"


def test_a_claude_md_of_our_own_goes_again(ready: Repo) -> None:
    ask(ready, "install", "--claude-md")
    said = ask(ready, "uninstall")
    assert said.endswith("CLAUDE.md: removed; it contained only the rules of the gates\n")
    assert not (ready.path / "CLAUDE.md").exists()


def test_the_rules_stay_while_another_scope_has_our_hooks(ready: Repo) -> None:
    ask(ready, "install", "--claude-md")
    ask(ready, "install", "--scope", "local")
    ask(ready, "uninstall")
    assert "gitgates: begin" in (ready.path / "CLAUDE.md").read_text()
    ask(ready, "uninstall", "--scope", "local")
    assert not (ready.path / "CLAUDE.md").exists()


def test_half_a_block_refuses_before_anything_is_written(ready: Repo) -> None:
    ready.write("CLAUDE.md", "<!-- gitgates: begin -->\n")
    assert "the end of the gitgates block is unknown" in ask(
        ready, "install", "--claude-md", status=78
    )
    assert not (ready.path / ".claude").exists()


def test_a_claude_md_that_is_not_ours_to_read_does_not_matter(ready: Repo) -> None:
    ask(ready, "install")
    (ready.path / "CLAUDE.md").write_bytes(b"caf\xe9\n")
    assert "it contained only gitgates hooks" in ask(ready, "uninstall")


def test_half_a_block_is_left_alone_and_the_hooks_are_out(ready: Repo) -> None:
    ask(ready, "install")
    ready.write("CLAUDE.md", "<!-- gitgates: begin -->\n")
    said = ask(ready, "uninstall", status=78)
    assert "the file was not changed" in said
    assert not (ready.path / ".claude").exists()


@pytest.mark.parametrize("name", ["claude", "codex", "kimi", "droid", "opencode"])
def test_a_relative_home_is_none(repo: Repo, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "some/where")
    for variable in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    repo.config(CONFIG)
    done = repo.gitgates("install-hooks", "--agent", name, "--scope", "user")
    assert done.returncode == 73
    assert b"HOME is not an absolute path" in done.stderr
    assert not (repo.path / "some").exists()


def test_a_relative_folder_of_settings_counts_for_nothing() -> None:
    env = {"HOME": "/home/me", "XDG_CONFIG_HOME": "config"}
    assert agent_host("opencode").home(env) == "/home/me/.config/opencode"
