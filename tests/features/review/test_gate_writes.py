"""What gates of ours write is no work of the agent: it is not weighed, and ends no review."""

from __future__ import annotations

from typing import Any

import pytest
from agent_support import Agent
from conftest import Repo
from session_support import begin
from test_agent_review import LINES, reason, say

ENDING = """
[gates.format]
command = "sed -i 's/ =/:=/; s/;$//' *.py"
writes = true
[hooks.Stop]
gates = ["format", "review"]
"""
AFTER_EDITS = ENDING.replace("hooks.Stop", "hooks.PostToolUse").replace(
    'gates = ["format", "review"]', 'enabled_tools = ["Write"]\ngates = ["format"]'
)
EACH = AFTER_EDITS + '[hooks.Stop]\ngates = ["review"]\n'
MANY = "".join(f"name_{number} = {number}\n" for number in range(100))


def work(repo: Repo, config: str = ENDING) -> Agent:
    return begin(repo, config, files={"a.py": MANY})


def edit(agent: Agent, name: str, content: str) -> None:
    agent.pre("Write", name)
    agent.repo.write(name, content)
    agent.post("Write", name)


def shell(agent: Agent, command: str) -> None:
    known: dict[str, Any] = {"tool_input": {"command": command}, "tool_use_id": command}
    agent.pre("Bash", **known)
    assert agent.repo.ask("sh", "-c", command).returncode == 0
    agent.post("Bash", **known)


def text(repo: Repo, name: str = "a.py") -> str:
    return (repo.path / name).read_text()


@pytest.mark.samples(1)
@pytest.mark.parametrize("config", [ENDING, EACH], ids=["at the end", "after an edit"])
def test_a_line_of_the_agent_and_a_formatter_ask_for_no_review(repo: Repo, config: str) -> None:
    agent = work(repo, config)
    edit(agent, "a.py", MANY.replace("name_5 = 5", "name_5 = 6"))
    assert "decision" not in agent.stop()
    assert text(repo).count(":=") == 100
    edit(agent, "a.py", text(repo).replace("name_7:= 7", "name_7 = 8"))
    # Both before the formatter and after it: all of the file counts.
    assert "`a.py` +100 −100 (code)" in reason(agent.stop())


def test_a_file_that_only_gates_write_is_not_weighed(repo: Repo) -> None:
    agent = work(repo)
    shell(agent, "touch b.txt")
    assert "decision" not in agent.stop()
    shell(agent, "echo 1 >> b.txt; sed -i s/99$/98/ a.py")
    assert "decision" not in agent.stop()


def test_a_file_that_a_gate_makes_is_not_weighed(repo: Repo) -> None:
    made = ENDING.replace("sed -i 's/ =/:=/; s/;$//' *.py", "seq 1 90 > made.py")
    agent = work(repo, made)
    edit(agent, "b.py", "b = 1\n")
    assert "decision" not in agent.stop()
    edit(agent, "b.py", "b = 2\n")
    assert "decision" not in agent.stop()
    edit(agent, "c.py", LINES)
    assert "`c.py` +60 −0 (code)" in reason(agent.stop())


@pytest.mark.samples(1)
@pytest.mark.parametrize("config", [ENDING, EACH], ids=["at the end", "after an edit"])
def test_what_the_agent_writes_is_weighed_all_the_same(repo: Repo, config: str) -> None:
    agent = work(repo, config)
    edit(agent, "a.py", MANY + LINES)
    assert "`a.py` +60 −0 (code)" in reason(agent.stop())
    shell(agent, "sed -i '/^name_[1-9].:=/s/$/0/' a.py")
    assert "`a.py` +160 −100 (code)" in reason(agent.stop(again=True))


@pytest.mark.samples(1)
@pytest.mark.parametrize("config", [ENDING, EACH], ids=["at the end", "after an edit"])
def test_a_review_stays_valid_over_a_formatter(repo: Repo, config: str) -> None:
    agent = work(repo, config)
    edit(agent, "a.py", MANY + LINES)
    assert say(agent, "review", "done", "--summary", "fine").returncode == 0
    assert "decision" not in agent.stop()
    assert text(repo).count(":=") == 160
    edit(agent, "a.py", text(repo).replace("name_7:= 7", "name_7 = 8"))
    assert "decision" not in agent.stop()
    shell(agent, "sed -i 's/$/0/' a.py")
    reason(agent.stop())
