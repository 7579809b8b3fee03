"""The reviewer and its command beside an agent's hooks: written, renewed, taken out, left alone."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from claude_support import ask
from config_support import table, with_tables
from conftest import Repo
from each_case import each_case

from gitgates.core.types import Config, Hook
from gitgates.features.review.config import Review
from gitgates.setup.install import agents

AGENT = ".claude/agents/reviewer.md"
COMMAND = ".claude/commands/gitgates/review.md"
SETTINGS = ".claude/settings.json"
CONFIG = '[hooks.Stop]\ngates = ["review"]\n'
EVENTS = (
    "SessionStart, UserPromptSubmit, UserPromptExpansion, PreToolUse, PostToolUse, "
    "PostToolUseFailure, SubagentStart, SubagentStop, Stop"
)
NEXT = (
    "next: gitgates doctor --prove\n"
    "gitgates: if Claude Code asks before it runs commands, allow these in its permissions: "
    "Bash(gitgates review:*)\n"
)
PLUGIN = Path(__file__).resolve().parents[3] / "gitgates/plugin/claude"
LEFT = "was edited after gitgates wrote it; left unchanged"


@pytest.fixture
def ready(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository that asks for reviews, and a `gitgates` in the PATH."""
    repo.config(CONFIG)
    program = tmp_path / "bin" / "gitgates"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/local/bin:/usr/bin:/bin")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return repo


def told(said: str, path: str) -> list[str]:
    """Return what was said of one file."""
    lines = (line.partition(": ") for line in said.splitlines())
    return [what for where, _, what in lines if where == path]


def text(repo: Repo, path: str) -> str:
    return (repo.path / path).read_text()


def everything(path: Path) -> dict[str, bytes]:
    return {str(p.relative_to(path)): p.read_bytes() for p in path.rglob("*") if p.is_file()}


def without_mark(content: str) -> str:
    first, mark, rest = content.split("\n", 2)
    assert mark.startswith("# written by `gitgates install-hooks --agent claude`")
    return f"{first}\n{rest}"


def test_it_is_written_and_leaves_nothing_behind(ready: Repo) -> None:
    said = ask(ready, "install")
    assert said == (
        f"{SETTINGS}: gitgates hooks were added: {EVENTS}\n{AGENT}: written\n"
        f"{COMMAND}: written\n{NEXT}"
    )
    assert without_mark(text(ready, AGENT)) == (PLUGIN / "agents/reviewer.md").read_text()
    skill = (PLUGIN / "skills/review/SKILL.md").read_text()
    command = skill.replace("`gitgates:reviewer`", "`reviewer`")
    assert without_mark(text(ready, COMMAND)) == command
    assert "gitgates:reviewer" not in command
    assert ask(ready, "install") == (
        f"{SETTINGS}: gitgates hooks are already up to date\n"
        f"{AGENT}: already exists\n{COMMAND}: already exists\n{NEXT}"
    )
    assert ask(ready, "uninstall") == (
        f"{SETTINGS}: removed; it contained only gitgates hooks\n{AGENT}: removed\n"
        f"{COMMAND}: removed\n"
    )
    assert not (ready.path / ".claude").exists()


def test_what_others_have_there_comes_back_byte_for_byte(ready: Repo) -> None:
    ready.write(SETTINGS, '{"model": "opus"}')
    ready.write(".claude/agents/mine.md", "---\nname: mine\n---\n")
    ready.write(".claude/commands/gitgates/status.md", "mine, too\r\n")
    before = everything(ready.path / ".claude")
    ask(ready, "install")
    ask(ready, "uninstall")
    assert everything(ready.path / ".claude") == before


def test_without_a_review_there_are_no_files(ready: Repo) -> None:
    ready.config('[gates.g]\ncommand = "true"\n[hooks.Stop]\ngates = ["g"]\n')
    assert "agents" not in ask(ready, "install")
    assert os.listdir(ready.path / ".claude") == ["settings.json"]


@pytest.mark.parametrize("content", [b"---\nname: reviewer\n---\nMine\n", b"", b"\xff\n"])
def test_a_file_that_is_not_ours_is_never_touched(ready: Repo, content: bytes) -> None:
    path = ready.write(AGENT, content)
    if content == b"\xff\n":
        assert "is not valid UTF-8" in ask(ready, "install", status=78)
        assert not (ready.path / SETTINGS).exists()
        return
    said = ask(ready, "install")
    assert told(said, AGENT) == [
        "already exists, was not created by gitgates, and is used unchanged"
    ]
    assert told(said, COMMAND) == ["written"]
    assert told(ask(ready, "uninstall"), AGENT) == []
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["reviewer", '"reviewer"', "'reviewer' ", "reviewer # ours"])
def test_an_agent_of_that_name_in_another_file_is_used(ready: Repo, name: str) -> None:
    ready.write(".claude/agents/team/strict.md", f"---\nname: {name}\n---\nMine\n")
    said = ask(ready, "install")
    path = ".claude/agents/team/strict.md"
    assert told(said, path) == ["defines the agent `reviewer`, and is used unchanged"]
    assert not (ready.path / AGENT).exists()


def test_what_a_person_has_edited_stays(ready: Repo) -> None:
    ask(ready, "install")
    edited = text(ready, AGENT) + "And be kind.\n"
    ready.write(AGENT, edited)
    ready.config(CONFIG + '[review]\nreviewer_model = "sonnet"\n')
    assert told(ask(ready, "install"), AGENT) == [LEFT]
    said = ask(ready, "uninstall")
    assert (told(said, AGENT), told(said, COMMAND)) == ([LEFT], ["removed"])
    assert text(ready, AGENT) == edited
    assert os.listdir(ready.path / ".claude") == ["agents"]


def test_other_line_ends_are_no_edit(ready: Repo) -> None:
    ask(ready, "install")
    ready.write(AGENT, text(ready, AGENT).replace("\n", "\r\n").encode())
    assert told(ask(ready, "install"), AGENT) == ["already exists"]
    assert told(ask(ready, "uninstall"), AGENT) == ["removed"]


def test_the_configuration_names_the_agent_and_its_model(ready: Repo) -> None:
    ask(ready, "install")
    ready.config(CONFIG + '[review]\nreviewer = "checker"\nreviewer_model = "vendor:x[1m]"\n')
    said = ask(ready, "install")
    checker = ".claude/agents/checker.md"
    assert (told(said, AGENT), told(said, checker)) == (["removed"], ["written"])
    assert told(said, COMMAND) == ["updated"]
    content = text(ready, checker)
    assert "\nname: checker\n" in content
    assert '\nmodel: "vendor:x[1m]"\n' in content
    assert "`checker`" in text(ready, COMMAND)
    ready.config(CONFIG + '[review]\nreviewer = "checker"\nreviewer_model = "inherit"\n')
    assert told(ask(ready, "install"), checker) == ["updated"]
    assert "\nmodel: inherit\n" in text(ready, checker)


def test_where_no_review_is_wanted_any_more_the_files_go(ready: Repo) -> None:
    ask(ready, "install")
    ready.write(COMMAND, text(ready, COMMAND) + "x")
    ready.config('[gates.g]\ncommand = "true"\n[hooks.Stop]\ngates = ["g"]\n')
    said = ask(ready, "install")
    assert (told(said, AGENT), told(said, COMMAND)) == (["removed"], [LEFT])
    assert not (ready.path / ".claude/agents").exists()


@pytest.mark.parametrize(
    "reviewer",
    ["kit:checker", "../../evil", "a/b", ".hidden", "Explore", "general-purpose"],
)
def test_no_file_is_written_for_an_agent_of_others(ready: Repo, reviewer: str) -> None:
    ready.config(f'{CONFIG}[review]\nreviewer = "{reviewer}"\n')
    said = ask(ready, "install")
    assert (
        f"gitgates: no file written for the reviewer `{reviewer}`: a plugin, or Claude "
        "Code itself, must provide it\n"
    ) in said
    assert sorted(everything(ready.path / ".claude")) == [
        "commands/gitgates/review.md",
        SETTINGS[8:],
    ]
    assert f"`{reviewer}`" in text(ready, COMMAND)


def test_print_shows_them_and_writes_nothing(ready: Repo) -> None:
    said = ask(ready, "install", "--print")
    assert not (ready.path / ".claude").exists()
    ask(ready, "install")
    assert said == (
        text(ready, SETTINGS)
        + f"\n{AGENT}:\n\n{text(ready, AGENT)}\n{COMMAND}:\n\n{text(ready, COMMAND)}"
    )


def test_the_persons_own_settings_have_them_in_their_own_folder(
    ready: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(mine))
    said = ask(ready, "install", "--scope", "user")
    assert told(said, f"{mine}/agents/reviewer.md") == ["written"]
    assert not (ready.path / ".claude").exists()
    ask(ready, "uninstall", "--scope", "user")
    assert everything(mine) == {}
    assert os.listdir(mine) == []


def test_files_stay_while_other_settings_beside_them_need_them(ready: Repo) -> None:
    ask(ready, "install")
    ask(ready, "install", "--scope", "local")
    assert told(ask(ready, "uninstall"), AGENT) == []
    assert (ready.path / AGENT).exists()
    assert told(ask(ready, "uninstall", "--scope", "local"), AGENT) == ["removed"]
    assert not (ready.path / ".claude").exists()


def test_a_link_is_somebody_elses(ready: Repo) -> None:
    ask(ready, "install")
    target = ready.write("elsewhere.md", text(ready, AGENT))
    (ready.path / AGENT).unlink()
    (ready.path / AGENT).symlink_to(target)
    assert told(ask(ready, "install"), AGENT) == [
        "already exists, was not created by gitgates, and is used unchanged"
    ]
    ask(ready, "uninstall")
    assert (ready.path / AGENT).is_symlink()
    assert target.exists()


@pytest.mark.parametrize("path", [AGENT, COMMAND])
def test_a_link_to_what_is_not_there_is_not_written_through(
    ready: Repo, tmp_path: Path, path: str
) -> None:
    (ready.path / path).parent.mkdir(parents=True)
    (ready.path / path).symlink_to(tmp_path / "outside.md")
    said = ask(ready, "install")
    assert told(said, path) == ["is a broken symbolic link; left unchanged"]
    assert not (tmp_path / "outside.md").exists()
    assert told(ask(ready, "uninstall"), path) == []
    assert (ready.path / path).is_symlink()


def test_folders_that_are_links_stay(ready: Repo) -> None:
    (ready.path / "shared").mkdir()
    (ready.path / ".claude").mkdir()
    (ready.path / ".claude/agents").symlink_to("../shared")
    ask(ready, "install")
    assert os.listdir(ready.path / "shared") == ["reviewer.md"]
    ask(ready, "uninstall")
    assert os.listdir(ready.path / ".claude") == ["agents"]
    assert os.listdir(ready.path / "shared") == []


def test_a_file_in_the_place_of_their_folder(ready: Repo) -> None:
    ready.write(".claude/agents", "x")
    done = ready.gitgates("install-hooks", "--agent", "claude")
    assert done.returncode == 73
    assert done.stdout.decode() == f"{SETTINGS}: gitgates hooks were added: {EVENTS}\n"
    assert done.stderr.decode() == (
        f"gitgates: {ready.path}/{AGENT}: cannot be written: File exists\n"
        "  It was not changed; the changes above were made. Fix its folder, and try again.\n"
    )
    assert "no gitgates hooks" not in ask(ready, "uninstall")
    assert os.listdir(ready.path / ".claude") == ["agents"]


def test_a_pipe_in_its_place_is_not_waited_for(ready: Repo) -> None:
    (ready.path / ".claude/agents").mkdir(parents=True)
    os.mkfifo(ready.path / AGENT)
    assert "reviewer.md: is not a regular file" in ask(ready, "install", status=78)
    assert not (ready.path / SETTINGS).exists()
    assert "no gitgates hooks" in ask(ready, "uninstall")


@each_case(
    ("review", "paths"),
    [
        (table(Review), ["agents/reviewer.md", "commands/gitgates/review.md"]),
        (table(Review, mode="off"), ["agents/reviewer.md", "commands/gitgates/review.md"]),
        (table(Review, prefix=""), ["agents/reviewer.md", "commands/gitgates/review.md"]),
        (table(Review, mode="off", prefix=""), []),
    ],
)
def test_what_is_wanted(review: Review, paths: list[str]) -> None:
    config = with_tables(Config(hooks=(Hook(name="Stop", gates=("review",)),)), review)
    assert list(agents.needed_texts(config, "claude")) == paths


def test_the_settings_of_a_review(ready: Repo) -> None:
    ask(ready, "install")
    hooks = json.loads(text(ready, SETTINGS))["hooks"]
    heard = {
        event: (groups[0].get("matcher"), groups[0]["hooks"][0]["timeout"])
        for event, groups in hooks.items()
    }
    assert heard == {
        "SessionStart": (None, 5),
        "UserPromptSubmit": (None, 5),
        "UserPromptExpansion": (None, 30),
        "PreToolUse": ("^(?!(?:Read|Grep|Glob)$)", 35),
        "PostToolUse": ("^(?!(?:Read|Grep|Glob)$)", 45),
        "PostToolUseFailure": ("^(?!(?:Read|Grep|Glob)$)", 35),
        "SubagentStart": (None, 30),
        "SubagentStop": (r"^(.*:)?(code\-reviewer|reviewer)$", 60),
        "Stop": (None, 60),
    }
