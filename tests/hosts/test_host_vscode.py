"""VS Code's agent mode, which runs the hooks of Claude Code and Copilot with payloads of its own.

tests/payloads/vscode.json: made after its source and documentation, named there. And what no agent
that we know has sent.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from claude_support import damaged
from conftest import Repo
from doctor_support import examine
from payload_support import row_of

from gitgates.core.agent_types import Payload
from gitgates.core.types import BLOCK, Verdict
from gitgates.drivers.agent import respond
from gitgates.hosts import agent_host

HOST = agent_host("vscode")
PAYLOADS: list[dict[str, Any]] = json.loads(
    (Path(__file__).resolve().parents[1] / "payloads/vscode.json").read_text("utf-8")
)
ENTRIES = ("claude", "copilot")  # as its hooks are called
CONFIG = """
[gates.check]
command = "test ! -e bad.txt || { echo BAD-IS-THERE; exit 1; }"
[hooks.PostToolUse]
enabled_tools = ["Edit", "Write"]
gates = ["check"]
[hooks.Stop]
gates = ["check"]
"""
UNSAID = ("host", "can", "transcript_abs", "tool_input")


def tell(repo: Repo, entry: str, event: str, session: str = "s", **fields: Any) -> dict[str, Any]:
    payload = {
        "timestamp": f"2026-03-29T10:30:0{len(fields)}.000Z",
        "hook_event_name": event,
        "session_id": session,
        "transcript_path": str(repo.path.parent / "transcript.jsonl"),
        "cwd": str(repo.path),
        **fields,
    }
    return send(payload, entry)


def send(payload: dict[str, Any], entry: str = "claude") -> dict[str, Any]:
    answer = respond(json.dumps(payload).encode(), {}, lambda _text: None, entry)
    return json.loads(answer) if answer else {}


def denied(answer: dict[str, Any]) -> str:
    own = answer.get("hookSpecificOutput", {})
    return own["permissionDecisionReason"] if own.get("permissionDecision") == "deny" else ""


@pytest.mark.parametrize("entry", ENTRIES)
def test_what_each_payload_means_by_whichever_settings_it_comes(entry: str) -> None:
    usual = row_of(Payload())
    found = []
    for one in PAYLOADS:
        payload = agent_host(entry).decode(json.dumps(one["payload"]).encode(), {})
        assert payload.host == "vscode"
        said = {
            name: value
            for name, value in row_of(payload).items()
            if value != usual[name] and name not in UNSAID
        }
        found.append({**one, "means": json.loads(json.dumps(said))})
    assert found == PAYLOADS


@pytest.mark.samples(3)
@pytest.mark.parametrize(
    "payload",
    sorted((one["payload"] for one in PAYLOADS), key=lambda one: -len(str(one))),
    ids=lambda payload: str(payload.get("tool_name") or payload.get("hook_event_name")),
)
def test_a_damaged_payload_is_decoded(payload: dict[str, Any]) -> None:
    for one in damaged(payload):
        agent_host("claude").decode(json.dumps(one).encode(), {})


@pytest.mark.parametrize("name", ["copilot", "claude"])
def test_the_payloads_of_those_clients_are_theirs(name: str) -> None:
    folder = Path(__file__).resolve().parents[1]
    if name == "claude":
        known = [one for _event, one in json.loads((folder / "claude_payloads.json").read_text())]
    else:
        rows = json.loads((folder / "payloads/copilot.json").read_text())
        known = [row["payload"] for row in rows]
    for one in known:
        payload = agent_host(name).decode(json.dumps(one).encode(), {})
        assert (payload.host, payload.unread) == (name, ""), one


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_guard_refuses_in_its_terminal(repo: Repo, entry: str) -> None:
    repo.config(CONFIG)
    shell: dict[str, Any] = {"tool_name": "run_in_terminal", "tool_use_id": "1"}
    said = tell(repo, entry, "PreToolUse", **shell, tool_input={"command": "git commit -nm x"})
    assert "rule `no_verify`" in denied(said)
    fine = tell(repo, entry, "PreToolUse", "s2", **shell, tool_input={"command": "git status"})
    assert fine == {}


@pytest.mark.parametrize("entry", ENTRIES)
def test_its_settings_may_change_but_for_hooks(repo: Repo, entry: str) -> None:
    repo.config(CONFIG)
    edit: dict[str, Any] = {"tool_name": "create_file", "tool_use_id": "1"}
    file = str(repo.path / ".vscode/settings.json")
    off = {"filePath": file, "content": '{"chat.useHooks": false}'}
    assert "rule `agent_settings`" in denied(
        tell(repo, entry, "PreToolUse", **edit, tool_input=off)
    )
    fine = {"filePath": file, "content": '{"editor.tabSize": 4}'}
    edit["tool_use_id"] = "2"
    assert tell(repo, entry, "PreToolUse", **edit, tool_input=fine) == {}


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_end_is_blocked_where_it_looks_for_that(repo: Repo, entry: str) -> None:
    repo.config(CONFIG)
    tell(repo, entry, "SessionStart", source="new")
    tell(repo, entry, "UserPromptSubmit", prompt="go")
    repo.write("bad.txt", "x\n")
    said = tell(repo, entry, "Stop", stop_hook_active=False)
    own = said["hookSpecificOutput"]
    assert (own["hookEventName"], own["decision"]) == ("Stop", "block")
    assert "BAD-IS-THERE" in own["reason"]
    assert HOST.is_block(0, json.dumps(said).encode())


def test_a_prompt_is_blocked_as_its_documentation_says() -> None:
    prompt = {"hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "go"}
    payload = HOST.decode(json.dumps(prompt).encode(), {})
    said = json.loads(HOST.encode(payload, Verdict(BLOCK, to_agent="why")))
    assert said == {"decision": "block", "reason": "why", "continue": False, "stopReason": "why"}


def test_an_edit_is_checked_and_told_once_for_both_settings(repo: Repo) -> None:
    repo.config(CONFIG)
    tell(repo, "claude", "SessionStart", source="new")
    repo.write("bad.txt", "x\n")
    fields: dict[str, Any] = {
        "tool_name": "create_file",
        "tool_input": {"filePath": str(repo.path / "bad.txt"), "content": "x\n"},
        "tool_use_id": "call_1",
        "tool_response": "",
    }
    first = tell(repo, "claude", "PostToolUse", **fields)
    assert first["decision"] == "block"
    assert "BAD-IS-THERE" in first["reason"]
    assert tell(repo, "copilot", "PostToolUse", **fields) == first


# What nobody that we know has sent

OTHER = {"trajectory_id": "c1", "execution_id": "e1", "model": "m", "transcript_path": None}
SHELL = {"tool_name": "Shell", "tool_input": {"command": "git commit -nm x"}, "tool_use_id": "1"}


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"hook_event_name": "PreToolUse", "session_id": "s1", **SHELL}, "the tool `Shell`"),
        ({"hook_event_name": "PreToolUse", **SHELL}, "an event `PreToolUse` without a session"),
        ({"hook_event_name": "preToolUse", **SHELL}, "the event `preToolUse`"),
        (SHELL, "an event without a name"),
    ],
)
def test_what_cannot_be_read_is_told_once_and_found_by_doctor(
    repo: Repo, fields: dict[str, Any], what: str
) -> None:
    repo.config(CONFIG)
    payload = {**OTHER, "cwd": str(repo.path), **fields}
    first = send(payload)
    assert f"gitgates: {what} is unknown to Claude Code" in first["systemMessage"]
    again = send({**payload, "tool_use_id": "2"})
    assert "systemMessage" not in again
    (found,) = [one for one in examine(repo) if what in one.what]
    assert found.severity == "note"


def test_without_a_configuration_nothing_is_told(repo: Repo) -> None:
    payload = {**OTHER, "cwd": str(repo.path), "hook_event_name": "preToolUse", **SHELL}
    assert send(payload) == {}


def test_tools_of_servers_are_no_shells_that_we_do_not_know(repo: Repo) -> None:
    repo.config(CONFIG)
    fields = {"tool_name": "mcp__x__run", "tool_input": {"command": "x"}, "tool_use_id": "1"}
    payload = {"hook_event_name": "PreToolUse", "session_id": "s", "cwd": str(repo.path), **fields}
    assert send(payload) == {}
