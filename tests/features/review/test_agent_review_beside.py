"""What a person writes while the agent works is not the agent's, whatever else it runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import pytest
from agent_support import Agent
from conftest import Repo
from session_support import begin
from test_agent_review import LINES, REVIEW, reason

WHOLE = ("^(?!(?:Read)$)", "")  # matchers of any tool that may write
MANY = "".join(f"name_{number} = {number}\n" for number in range(100))


@pytest.fixture(name="agent")
def _agent(repo: Repo) -> Agent:
    return begin(repo, REVIEW, files={"a.py": MANY})


def during(
    agent: Agent, tool: str, tool_input: dict[str, Any], do: Callable[[], object], **fields: Any
) -> None:
    """Have an agent use a tool, as its client tells of it."""
    use = os.urandom(4).hex()
    known: dict[str, Any] = {"tool_input": tool_input, "tool_use_id": use, **fields}
    agent.pre(tool, **known)
    do()
    agent.post(tool, **known)


def shell(agent: Agent, command: str, meanwhile: Callable[[], object] = int) -> None:
    def run() -> None:
        agent.repo.ask("sh", "-c", command)
        meanwhile()

    during(agent, "Bash", {"command": command}, run)


def edit(agent: Agent, name: str, old: str, new: str) -> None:
    path = agent.repo.path / name

    def replace() -> None:
        path.write_text(path.read_text().replace(old, new, 1))

    tool_input = {"file_path": str(path), "old_string": old, "new_string": new}
    during(agent, "Edit", tool_input, replace)


def theirs(agent: Agent, name: str = "theirs.py") -> Callable[[], None]:
    def write() -> None:
        agent.repo.write(name, LINES)

    return write


@pytest.mark.parametrize("matcher", ["Bash", "Bash|Edit|Write|NotebookEdit", *WHOLE])
def test_hooks_that_do_not_hear_of_each_tool_tell_of_nobody_else(
    agent: Agent, matcher: str
) -> None:
    hook = {"type": "command", "command": "gitgates agent-hook claude"}
    hooks = {"PostToolUse": [{"matcher": matcher, "hooks": [hook]}]}
    agent.repo.write(".claude/settings.json", json.dumps({"hooks": hooks}))
    shell(agent, "true > made")
    theirs(agent)()
    is_heard, answer = matcher in WHOLE, agent.stop()
    assert ("decision" in answer) != is_heard
    assert ("gitgates install-hooks --agent claude" in answer.get("reason", "")) != is_heard


@pytest.mark.samples(2)
@pytest.mark.parametrize("command", ["grep -rn x . | sort", "git log --oneline | head -3"])
def test_a_command_that_reads_leaves_authorship_as_it_is(agent: Agent, command: str) -> None:
    edit(agent, "a.py", "name_5 = 5\n", "name_5 = 6\n")
    during(agent, "Bash", {"command": command}, theirs(agent))
    assert "decision" not in agent.stop()


def test_of_any_other_command_counts_what_it_changes_while_it_runs(agent: Agent) -> None:
    theirs(agent, "before.py")()
    shell(agent, "echo 1 > own.txt")
    theirs(agent, "between.py")()
    shell(agent, "sed -i s/99$/98/ a.py")
    theirs(agent, "after.py")()
    assert "decision" not in agent.stop()
    agent.prompt()
    shell(agent, "seq 60 > own.py")
    theirs(agent, "later.py")()
    said = reason(agent.stop())
    assert "`own.py` +60" in said
    assert "later.py" not in said


def test_what_changes_while_such_a_command_runs_counts(agent: Agent) -> None:
    shell(agent, "make test", meanwhile=theirs(agent))
    assert "`theirs.py` +60" in reason(agent.stop())


@pytest.mark.parametrize("fields", [{}, {"run_in_background": True}])
def test_a_command_in_the_background_may_write_until_the_end(
    agent: Agent, fields: dict[str, bool]
) -> None:
    command = "make watch" if fields else "make watch & sleep 1"
    during(agent, "Bash", {"command": command, **fields}, int)
    shell(agent, "ls")
    shell(agent, "true")
    theirs(agent)()
    assert "`theirs.py` +60" in reason(agent.stop())


def test_a_command_that_was_refused_has_not_run(agent: Agent) -> None:
    refused = {"command": "git commit --no-verify -m x"}
    assert agent.pre("Bash", tool_input=refused, tool_use_id="r1")
    theirs(agent)()
    edit(agent, "a.py", "name_5 = 5\n", "name_5 = 6\n")
    assert "decision" not in agent.stop()


def test_a_command_of_a_sub_agent_that_still_runs_may_write(agent: Agent) -> None:
    other = {"agent_id": "w1", "agent_type": "worker"}
    command = {"command": "make all"}
    agent.pre("Bash", tool_input=command, tool_use_id="w", **other)
    theirs(agent)()
    shell(agent, "make test")
    assert "`theirs.py` +60" in reason(agent.stop())


def test_a_file_that_both_edit_counts_with_all_of_it(agent: Agent) -> None:
    repo = agent.repo
    edit(agent, "a.py", "name_5 = 5\n", "name_5 = 6\nname_5b = 6\n")
    text = (repo.path / "a.py").read_text()
    repo.write("a.py", text.replace("name_50 = 50\n", f"name_50 = 50\n{LINES}"))
    edit(agent, "a.py", "name_90 = 90\n", "name_90 = 91\n")
    assert "`a.py` +63" in reason(agent.stop())


@pytest.mark.parametrize("old", ["name_7 = 7\n", "name_7 ="])
def test_what_an_agent_takes_out_or_writes_anew_is_its_own(agent: Agent, old: str) -> None:
    path = agent.repo.path / "a.py"

    def write() -> None:
        path.write_text(old)

    during(agent, "Write", {"file_path": str(path), "content": old}, write)
    assert "−99" in reason(agent.stop()) or "−100" in reason(agent.stop(again=True))


def test_edits_of_parts_of_lines_are_its_own(agent: Agent) -> None:
    path = agent.repo.path / "a.py"
    tool_input = {"old_string": "name_", "new_string": "", "replace_all": True}

    def replace() -> None:
        path.write_text(path.read_text().replace("name_", ""))

    during(agent, "Edit", {"file_path": str(path), **tool_input}, replace)
    assert "`a.py` +100 −100" in reason(agent.stop())


def test_lines_that_a_formatter_has_rewritten_are_its_own(agent: Agent) -> None:
    edit(agent, "a.py", "name_5 = 5\n", LINES)
    text = (agent.repo.path / "a.py").read_text()
    agent.repo.write("a.py", text.replace(" = ", " := "))
    assert "`a.py` +" in reason(agent.stop())


def test_what_two_sessions_may_have_written_counts_for_both(agent: Agent) -> None:
    """Also where one has been started by a command of the other."""
    other = Agent(agent.repo, "s2")
    known: dict[str, Any] = {"tool_input": {"command": "make test"}, "tool_use_id": "u1"}
    agent.pre("Bash", **known)
    other.start()
    other.prompt()
    edit_input = {"file_path": str(agent.repo.path / "theirs.py"), "content": LINES}
    during(other, "Write", edit_input, theirs(agent))
    agent.post("Bash", **known)
    for session in (agent, other):
        assert "`theirs.py` +60" in reason(session.stop())
