"""The protocol for any other agent: the example of its page, run, and what it understands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import forked
import pytest

from gitgates.drivers.agent import respond
from gitgates.hosts import agent_host

if TYPE_CHECKING:
    from conftest import Repo

PAGE = Path(__file__).resolve().parents[2] / "docs/how-to/generic-hook.md"
CONFIG = """
[gates.check]
command = "test ! -e bad.txt || { echo BAD-IS-THERE; exit 1; }"
[hooks.PostToolUse]
enabled_tools = ["Edit"]
gates = ["check"]
[hooks.Stop]
gates = ["check"]
"""
# What its model does, and writes down what it was told.
MODEL = """
steps = [
    ("sh", "shell", {"command": "git commit -nm x"}),
    ("save", "writes", {"file_path": "bad.txt", "content": "x"}),
    "done",
    ("sh", "shell", {"command": "rm bad.txt"}),
    "really done",
]
def next_step(told):
    with open("../told", "a") as file:
        file.write(f"{told!r}\\n")
    return steps.pop(0)
"""
TOOLS = """
import subprocess
from pathlib import Path
functions = {
    "save": lambda file_path, content: Path(file_path).write_text(content),
    "sh": lambda command: subprocess.getoutput(command),
}
"""
HOST = agent_host("generic")


def example() -> str:
    """Return the agent of the page."""
    found = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found
    return found[1]


def test_the_example_has_no_more_than_twenty_lines() -> None:
    assert len([line for line in example().splitlines() if line.strip()]) <= 20


def test_the_example_is_held_to_the_gates(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs in this process, and starts gitgates in forks: nine programs take two seconds."""
    repo.config(CONFIG)
    folder = repo.path.parent
    for name, text in (("model", MODEL), ("tools", TOOLS)):
        module = ModuleType(name)
        exec(text, vars(module))
        monkeypatch.setitem(sys.modules, name, module)
    run = subprocess.run

    def started(argv: Any, **more: Any) -> Any:
        if argv[0] != "gitgates":
            return run(argv, **more)
        assert more.keys() == {"input", "stdout"}
        done = forked.run(
            tuple(argv[1:]), str(repo.path), {**os.environ}, more["input"], hosts=True
        )
        assert (done.returncode, done.stderr) == (0, b"")
        return done

    monkeypatch.setattr(subprocess, "run", started)
    monkeypatch.setattr(sys, "argv", ["agent.py", "Do it"])
    monkeypatch.chdir(repo.path)
    exec(compile(example(), "agent.py", "exec"), {})
    first, refused, edited, stopped, removed = (folder / "told").read_text().splitlines()
    assert "gitgates checks the work in this repository." in first
    assert "rule `no_verify`" in refused
    assert "BAD-IS-THERE" in edited
    assert "This was attempt 1 of 4." in stopped
    assert removed == "''"
    assert not (repo.path / "bad.txt").exists()


def decode(**fields: Any) -> Any:
    return HOST.decode(json.dumps({"hook_event_name": "PreToolUse", **fields}).encode(), {})


@pytest.mark.parametrize(
    ("name", "said", "kind", "others"),
    [
        ("save_file", "writes", "writes", ("Edit", "Write")),
        ("Bash", None, "shell", ()),
        ("Bash", "harmless", "harmless", ()),
        ("frob", None, "other", ()),
        ("frob", 7, "other", ()),
        ("look", "reads", "reads", ("Read",)),
    ],
)
def test_a_tool_is_of_the_kind_that_is_said(
    name: str, said: object, kind: str, others: tuple[str, ...]
) -> None:
    payload = decode(tool_name=name, tool_kind=said, session_id="s")
    assert (payload.tool.kind, payload.tool.other_names, payload.unread) == (kind, others, "")


def test_what_it_does_not_know_is_told(repo: Repo) -> None:
    repo.config(CONFIG)
    payload = {"hook_event_name": "PreToolUse", "session_id": "s", "cwd": str(repo.path)}
    tool = {"tool_name": "sh", "tool_kind": "terminal", "tool_input": {"command": "x"}}
    data = json.dumps({**payload, **tool}).encode()
    answer = json.loads(respond(data, {}, lambda _text: None, "generic"))
    assert "the tool_kind `terminal` (not one of writes, reads, shell," in answer["systemMessage"]


@pytest.mark.parametrize("attended", [True, False])
def test_only_a_person_who_is_there_is_asked(repo: Repo, *, attended: bool) -> None:
    repo.config(CONFIG + '[guard]\ndestructive = "ask"\n')
    repo.write("a.txt", "x")
    call = {
        "hook_event_name": "PreToolUse",
        "session_id": "s",
        "cwd": str(repo.path),
        "tool_name": "sh",
        "tool_kind": "shell",
        "tool_input": {"command": "rm -rf /etc"},
        "attended": attended,
    }
    answer = json.loads(respond(json.dumps(call).encode(), {}, lambda _text: None, "generic"))
    decision = answer["hookSpecificOutput"]["permissionDecision"]
    assert decision == ("ask" if attended else "deny")


@pytest.mark.parametrize("proves", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_the_needed_events_are_written_to_a_file_and_proved(repo: Repo, *, proves: bool) -> None:
    repo.config(CONFIG)
    assert repo.gitgates("install-hooks", "--agent", "generic").returncode == 0
    hooks = json.loads((repo.path / ".agents/gitgates/hooks.json").read_text())["hooks"]
    assert hooks["Stop"][0]["hooks"][0]["command"] == "gitgates agent-hook generic"
    assert "matcher" not in hooks["PostToolUse"][0]  # its names of tools are not known
    if proves:
        said = repo.gitgates("doctor", "--prove").stdout.decode()
        assert "hooks.json: proved: Stop is blocked if a gate fails\n" in said
    assert repo.gitgates("uninstall-hooks", "--agent", "generic").returncode == 0
    assert not (repo.path / ".agents").exists()
