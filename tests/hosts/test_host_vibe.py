"""Turns of Mistral Vibe, which tells of no prompt, and whose ends of a turn all look the same."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

import pytest

from gitgates.drivers import call
from gitgates.drivers.agent import respond
from gitgates.hosts import agent_settings

if TYPE_CHECKING:
    from conftest import Repo

CONFIG = """
[gates.check]
command = "test ! -e bad.txt"
[hooks.Stop]
gates = ["check"]
max_retries = 2
"""
SESSION = "5d0d4c8a-0000-4000-8000-000000000000"


@pytest.fixture(autouse=True)
def _each_event_begins_when_it_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where each has a process of its own."""
    monkeypatch.setattr(call, "process_start_time", time.time)


class Vibe:
    """A session of it: what we answer to its events."""

    def __init__(self, repo: Repo) -> None:
        self.repo, self.calls = repo, 0

    def ask(self, event: str, **more: Any) -> dict[str, Any]:
        payload = {
            "session_id": SESSION,
            "cwd": str(self.repo.path),
            "parent_session_id": None,
            "hook_event_name": event,
            **more,
        }
        said: list[str] = []
        answer = respond(json.dumps(payload).encode(), os.environ, said.append, "vibe")
        assert said == []
        found: dict[str, Any] = json.loads(answer or b"{}")
        return found

    def write(self, name: str) -> None:
        self.calls += 1
        tool = {
            "tool_name": "file_system.write_file",
            "tool_call_id": f"call{self.calls}",
            "tool_input": {"file_path": str(self.repo.path / name), "content": "x\n"},
        }
        self.ask("pre_tool", **tool)
        self.repo.write(name, "x\n")
        self.ask("post_tool", **tool, tool_status="success")

    def stop(self, **more: Any) -> str:
        """End a turn; return what it is told, or else the person."""
        answer = self.ask("post_agent", **more)
        assert answer.keys() <= {"decision", "reason", "system_message"}
        return str(answer.get("reason") or answer.get("system_message") or "")


def test_equal_ends_are_several_and_each_turn_begins_anew(repo: Repo) -> None:
    repo.config(CONFIG)
    repo.commit_all("first")
    vibe = Vibe(repo)
    for name in ("bad.txt", "b.txt"):
        vibe.write(name)
        told = [vibe.stop() for _ in range(3)]
        assert "This was attempt 1 of 3." in told[0]
        assert "This was attempt 2 of 3." in told[1]
        assert told[2].startswith("gitgates let the agent stop after 3 attempts")
    (repo.path / "bad.txt").unlink()
    vibe.write("c.txt")
    assert vibe.stop() == ""


def test_the_end_of_a_sub_agent_is_none_of_the_turn(repo: Repo) -> None:
    repo.config(CONFIG)
    repo.commit_all("first")
    vibe = Vibe(repo)
    vibe.write("bad.txt")
    assert vibe.stop(session_id="child-1", parent_session_id=SESSION) == ""
    assert "This was attempt 1 of 3." in vibe.stop()


def test_what_the_first_tool_of_a_session_writes_is_to_be_reviewed(repo: Repo) -> None:
    repo.config('[hooks.Stop]\ngates = ["review"]\n')
    repo.commit_all("first")
    vibe = Vibe(repo)
    command = {"command": "seq 200 > a.py"}
    vibe.ask("pre_tool", tool_name="file_system.bash", tool_call_id="call1", tool_input=command)
    repo.write("a.py", "x = 1\n" * 200)
    assert "there is no evidence of one: 200 weighted lines" in vibe.stop()


def test_what_was_there_before_a_refused_first_tool_is_not_of_the_session(repo: Repo) -> None:
    repo.config("[intents]\nrequired = true\n[hooks.Stop]\n")
    repo.commit_all("first")
    repo.write("mine.txt", "x\n")
    vibe = Vibe(repo)
    command = {"command": "touch a.txt"}
    told = vibe.ask(
        "pre_tool", tool_name="file_system.bash", tool_call_id="call1", tool_input=command
    )
    assert "requires an intent to be selected" in told["reason"]
    assert vibe.stop() == ""


def test_trust_is_that_of_the_nearest_folder() -> None:
    settings, file = agent_settings("vibe"), "/home/me/work/repo/.vibe/hooks.toml"
    for text, trusted in (
        ("trusted = []\nuntrusted = []\n", False),
        ('trusted = ["/home/me/work"]\n', True),
        ('trusted = ["/home/me/work"]\nuntrusted = ["/home/me/work/repo"]\n', False),
        ('trusted = ["/home/me/other"]\n', False),
        ("trusted = 3", None),
        ("no TOML", None),
    ):
        assert settings.is_trusted(text, file, "") is trusted


def test_the_session_is_named_where_commands_could_not_tell_it(repo: Repo) -> None:
    repo.config(CONFIG)
    vibe = Vibe(repo)
    vibe.write("bad.txt")
    assert "--session" not in vibe.stop()
    vibe.ask("pre_tool", tool_name="file_system.bash", tool_input={}, session_id="another")
    option = f"--session {SESSION}"
    assert vibe.stop().endswith(f"add `{option}` to the gitgates commands that you run.")
    done = repo.gitgates("cannot-fix", "check", *option.split(), "--reason", "not mine")
    assert done.returncode == 0, done.stderr
