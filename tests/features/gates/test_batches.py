"""Gates of a step of an agent, and what becomes of them where an agent does not tell its end."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import pytest

from gitgates.config.load import load
from gitgates.drivers.agent import respond
from gitgates.hosts import agent_host
from gitgates.setup.install import agent_needs

if TYPE_CHECKING:
    from conftest import Repo

GATE = '[gates.check]\ncommand = "echo ran >> ../ran; echo NO; exit 1"\n'
BATCH = '[hooks.PostToolBatch]\ngates = ["check"]\n'
CALLS = {
    "Write": {"file_path": "a.txt", "content": "x"},
    "Edit": {"file_path": "b.txt", "old_string": "x", "new_string": "y"},
    "Read": {"file_path": "a.txt"},
    "Bash": {"command": "make"},
}


def ran(repo: Repo) -> int:
    file = repo.path.parent / "ran"
    return len(file.read_text().splitlines()) if file.exists() else 0


def tell(repo: Repo, event: str, host: str = "claude", **fields: Any) -> dict[str, Any]:
    payload = {"session_id": "s", "cwd": str(repo.path), "hook_event_name": event, **fields}
    said: list[str] = []
    answer = respond(json.dumps(payload).encode(), dict(os.environ), said.append, host)
    assert said == []
    return json.loads(answer) if answer else {}


def step(repo: Repo, *tools: str) -> dict[str, Any]:
    """Return the answer to the end of a step with these tools."""
    calls = [
        {"tool_name": tool, "tool_input": CALLS[tool], "tool_use_id": f"{ran(repo)}-{number}"}
        for number, tool in enumerate(tools)
    ]
    return tell(repo, "PostToolBatch", tool_calls=calls)


def test_a_step_is_told_of_its_files_and_its_tools() -> None:
    calls = [{"tool_name": tool, "tool_input": CALLS[tool]} for tool in CALLS]
    data = {"hook_event_name": "PostToolBatch", "tool_calls": [*calls, 7]}
    payload = agent_host("claude").decode(json.dumps(data).encode(), {})
    assert payload.tool.paths == ("a.txt", "b.txt")  # not what it has read
    assert [call.name for call in payload.tool.calls] == [*CALLS]
    assert [call.kind for call in payload.tool.calls] == ["writes", "writes", "reads", "shell"]


@pytest.mark.parametrize(
    ("tools", "selected", "runs"),
    [
        (("Write", "Edit", "Bash"), "", 1),
        (("Read", "Bash"), "", 1),
        (("Read",), "", 0),
        ((), "", 0),
        (("Read", "Bash"), 'enabled_tools = ["Edit", "Write"]\n', 0),
        (("Read", "Edit"), 'enabled_tools = ["Edit", "Write"]\n', 1),
        (("Read",), 'enabled_tools = ["Read"]\n', 0),
    ],
)
def test_once_where_a_tool_may_have_changed_something(
    repo: Repo, tools: tuple[str, ...], selected: str, runs: int
) -> None:
    repo.config(GATE + BATCH + selected)
    said = step(repo, *tools)
    assert ran(repo) == runs
    assert ("NO" in str(said)) == bool(runs)
    assert "decision" not in said  # which would end the turn


def test_two_steps_with_the_same_edits_are_two(repo: Repo) -> None:
    repo.config(GATE + BATCH)
    repo.write("a.txt", "x")
    for _ in range(2):
        assert "NO" in str(step(repo, "Write"))
    assert ran(repo) == 2


PATCH = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** End Patch"


def test_an_agent_without_that_event_runs_them_after_each_tool(repo: Repo) -> None:
    repo.config(GATE + BATCH)
    config = load(str(repo.path))
    assert config
    entries = {entry.event: entry for entry in agent_needs.entries(config, "codex")}
    assert "PostToolBatch" not in entries
    assert entries["PostToolUse"].matcher is None  # for save points, too
    assert entries["PostToolUse"].timeout_s > 300  # those of the gates
    (limit,) = [text for text in agent_needs.limits(config, "codex") if "Batch" in text]
    assert limit == "Codex has no event PostToolBatch: its gates run after each tool instead"
    for number, tool in enumerate(("apply_patch", "Bash")):
        fields = {"tool_input": {"command": PATCH}, "tool_use_id": str(number)}
        tell(repo, "PostToolUse", "codex", tool_name=tool, tool_response="", **fields)
    tell(repo, "PostToolUse", "codex", tool_name="view_image", tool_use_id="9")
    assert ran(repo) == 2


def test_but_not_where_others_run_after_each_tool(repo: Repo) -> None:
    repo.config(
        f'{GATE}[gates.fine]\ncommand = "true"\n{BATCH}[hooks.PostToolUse]\ngates = ["fine"]\n'
    )
    config = load(str(repo.path))
    assert config
    (limit,) = [text for text in agent_needs.limits(config, "codex") if "Batch" in text]
    assert limit == "Codex has no event PostToolBatch: its gates do not run there"
    fields = {"tool_name": "Bash", "tool_input": {"command": "x"}, "tool_use_id": "1"}
    assert tell(repo, "PostToolUse", "codex", tool_response="", **fields) == {}
    assert ran(repo) == 0


def test_nor_is_it_told_more_than_after_a_tool(repo: Repo) -> None:
    repo.config(GATE + BATCH)
    config = load(str(repo.path))
    assert config
    instead, why = [text for text in agent_needs.limits(config, "kimi") if "Batch" in text]
    assert instead == "Kimi Code has no event PostToolBatch: its gates run after each tool instead"
    assert why.startswith("PostToolBatch: Kimi Code shows nobody the output of gates there")
