"""Cursor: hooks without groups, flat answers, and its payloads by Claude Code's settings.

By its documentation: there is no client here. tests/payloads/cursor.json names the pages.
"""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

import forked
import pytest
from doctor_support import examine

from gitgates.core.agent_types import Payload
from gitgates.core.types import BLOCK, Verdict
from gitgates.drivers.agent import respond
from gitgates.hosts import agent_host

if TYPE_CHECKING:
    from conftest import Repo

CONFIG = """
[gates.check]
command = "test ! -e bad.txt || { echo BAD-IS-THERE; exit 1; }"
timeout = 100
[hooks.PostToolUse]
enabled_tools = ["Edit", "Write"]
gates = ["check"]
[hooks.Stop]
gates = ["check"]
"""
HOST = agent_host("cursor")


def send(repo: Repo, event: str, entry: str = "cursor", **fields: Any) -> dict[str, Any]:
    """Return the answer to an event, as the client sends it: with a mark at the beginning."""
    payload = {
        "conversation_id": "c1",
        "generation_id": "g1",
        "hook_event_name": event,
        "cursor_version": "3.18.9",
        "workspace_roots": [str(repo.path)],
        "transcript_path": None,
        **fields,
    }
    said: list[str] = []
    env = {"CURSOR_PROJECT_DIR": str(repo.path)}
    raw = b"\xef\xbb\xbf" + json.dumps(payload).encode()
    answer = respond(raw, env, said.append, entry)
    assert said == []
    return json.loads(answer) if answer else {}


def tool(repo: Repo, event: str, name: str, entry: str = "cursor", **given: Any) -> dict[str, Any]:
    fields: dict[str, Any] = {"tool_name": name, "tool_input": given, "cwd": ""}
    return send(repo, event, entry, tool_use_id=f"{name}{len(str(given))}", **fields)


def test_a_turn_is_held_to_its_gates(repo: Repo) -> None:
    repo.config(CONFIG)
    rules = send(repo, "sessionStart", session_id="c1", composer_mode="agent")
    assert rules["additional_context"].startswith("gitgates checks the work in this repository.")
    assert send(repo, "beforeSubmitPrompt", prompt="go") == {}
    repo.write("bad.txt", "x\n")
    said = tool(repo, "postToolUse", "Write", file_path=str(repo.path / "bad.txt"), content="x\n")
    assert [*said] == ["additional_context"]
    assert "BAD-IS-THERE" in said["additional_context"]
    said = send(repo, "stop", status="completed", loop_count=0)
    assert [*said] == ["followup_message"]
    assert "attempt 1 of 4" in said["followup_message"]
    # That comes back as a prompt, which is not the person's.
    back = said["followup_message"]
    assert send(repo, "beforeSubmitPrompt", prompt=back, generation_id="g2") == {}
    said = send(repo, "stop", status="completed", loop_count=1, generation_id="g2")
    assert "attempt 2 of 4" in said["followup_message"]
    (repo.path / "bad.txt").unlink()
    assert send(repo, "stop", status="completed", loop_count=2, generation_id="g2") == {}


@pytest.mark.parametrize("status", ["aborted", "error"])
def test_a_turn_that_did_not_end_is_not_kept_going(repo: Repo, status: str) -> None:
    repo.config(CONFIG)
    send(repo, "sessionStart")
    repo.write("bad.txt", "x\n")
    assert send(repo, "stop", status=status, loop_count=0) == {}
    assert send(repo, "stop", status="completed", loop_count=0)["followup_message"]


@pytest.mark.parametrize("entry", ["cursor", "claude"])
def test_the_guard_refuses_by_whichever_settings_it_comes(repo: Repo, entry: str) -> None:
    repo.config(CONFIG)
    event = "preToolUse" if entry == "cursor" else "PreToolUse"
    said = tool(repo, event, "Shell", entry, command="git commit -nm x")
    assert said["permission"] == "deny"
    assert "rule `no_verify`" in said["agent_message"]
    assert said["user_message"] == said["agent_message"]
    assert tool(repo, event, "Shell", entry, command="git status") == {}
    hooks = str(repo.path / ".cursor/hooks.json")
    said = tool(repo, event, "StrReplace", entry, path=hooks, old_string="gitgates", new_string="")
    assert "rule `agent_settings`" in said["agent_message"]


def test_the_event_of_a_shell_is_understood_too_and_may_ask(repo: Repo) -> None:
    repo.config(CONFIG)
    said = send(repo, "beforeShellExecution", command="git commit -nm x", cwd="", sandbox=False)
    assert said["permission"] == "deny"
    payload = Payload(
        host="cursor",
        kind="before-tool",
        can=HOST.decode(b'{"hook_event_name": "beforeShellExecution", "command": "x"}', {}).can,
    )
    asked = json.loads(HOST.encode(payload, Verdict(ask=True, to_agent="May it?")))
    assert asked == {"permission": "ask", "user_message": "May it?", "agent_message": "May it?"}


def test_stops_without_events_of_prompts_are_one_turn(repo: Repo) -> None:
    repo.config(CONFIG)
    send(repo, "sessionStart")
    repo.write("bad.txt", "bad\n")
    answers = [send(repo, "stop", status="completed", loop_count=0)]
    for loop in range(1, 8):
        stop: dict[str, Any] = {"status": "completed", "loop_count": loop}
        answers.append(send(repo, "stop", **stop, generation_id=f"g{loop + 1}"))
    blocked = [bool(answer.get("followup_message")) for answer in answers]
    assert blocked[0]
    assert not any(blocked[4:])
    new = send(repo, "stop", status="completed", loop_count=0, generation_id="another")
    assert new.get("followup_message"), "a new prompt of the person has all its attempts"


def test_a_prompt_and_a_sub_agent_are_refused_in_their_forms() -> None:
    for event, form in (
        ("beforeSubmitPrompt", {"continue": False, "user_message": "why"}),
        ("subagentStart", {"permission": "deny", "user_message": "why"}),
        ("subagentStop", {"followup_message": "why"}),
    ):
        kind, can = HOST.PROTOCOL.events[event]
        payload = Payload(host="cursor", kind=kind, can=can)
        assert json.loads(HOST.encode(payload, Verdict(BLOCK, to_agent="why"))) == form


def test_its_settings_hold_what_it_knows_and_nothing_else(repo: Repo) -> None:
    repo.config(CONFIG)
    done = repo.gitgates("install-hooks", "--agent", "cursor")
    assert done.returncode == 0, done.stderr
    settings = json.loads((repo.path / ".cursor/hooks.json").read_text())
    assert settings["version"] == 1
    command = {"type": "command", "command": "gitgates agent-hook cursor"}
    assert settings["hooks"]["stop"] == [{**command, "timeout": 115, "loop_limit": 50}]
    (before,) = settings["hooks"]["preToolUse"]
    assert {*before} == {*command, "timeout", "matcher"}
    assert {*settings["hooks"]} <= {*HOST.PROTOCOL.events}
    assert re.search(before["matcher"], "Shell")
    assert repo.gitgates("uninstall-hooks", "--agent", "cursor").returncode == 0
    assert not (repo.path / ".cursor/hooks.json").exists()


def test_hooks_of_others_stay_and_an_unknown_event_is_found(repo: Repo) -> None:
    repo.config(CONFIG)
    theirs = '{\n  "version": 1,\n  "hooks": {"notification": [{"command": "x"}], "stop": []}\n}\n'
    repo.write(".cursor/hooks.json", theirs)
    repo.gitgates("install-hooks", "--agent", "cursor")
    found = [one.what for one in examine(repo) if "notification" in one.what]
    assert found == ["has the event `notification`: Cursor ignores a file with unknown ones"]
    repo.gitgates("uninstall-hooks", "--agent", "cursor")
    assert (repo.path / ".cursor/hooks.json").read_text() == theirs


@pytest.mark.thorough
def test_doctor_proves_that_its_stop_blocks(repo: Repo) -> None:
    repo.config(CONFIG)
    repo.gitgates("install-hooks", "--agent", "cursor")
    said = repo.gitgates("doctor", "--prove").stdout.decode()
    assert "ok       .cursor/hooks.json: proved: Stop is blocked if a gate fails\n" in said


def test_where_both_settings_have_our_hooks_its_own_answer(repo: Repo) -> None:
    repo.config(CONFIG)
    event = {
        "hook_event_name": "preToolUse",
        "conversation_id": "c",
        "cursor_version": "3",
        "tool_name": "Shell",
        "tool_input": {"command": "git commit -nm x"},
    }

    def started(agent: str) -> bytes:
        env = {**os.environ, "CURSOR_PROJECT_DIR": str(repo.path)}
        raw = json.dumps(event).encode()
        return forked.run(("agent-hook", agent), str(repo.path), env, raw, hosts=True).stdout

    repo.gitgates("install-hooks", "--agent", "claude")
    assert b'"permission": "deny"' in started("claude")
    repo.gitgates("install-hooks", "--agent", "cursor")
    assert b'"permission": "deny"' in started("cursor")
    assert started("claude") == b""
