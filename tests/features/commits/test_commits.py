"""Files of others, and secrets, in the commit of an agent; a person's commit is not looked at."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
from agent_support import Agent, begin
from conftest import Repo

CONFIG = """
[gates.check]
command = "true"
[hooks.pre-commit]
gates = ["check"]
[commits]
own_files = "{}"
"""
HAS = "this commit has files that its session has not changed: draft.md, old.py, sub/.env; and "


def commit(agent: Agent, *, person: bool = False) -> tuple[int, str]:
    env = {} if person else {"CLAUDECODE": "1", "CLAUDE_CODE_SESSION_ID": agent.session}
    is_heard = agent.facts() and not person
    with agent.call("git add -A && git commit -qm x") if is_heard else nullcontext():
        agent.repo.git("add", "-A")
        done = agent.repo.ask("git", "commit", "-qm", "x", env=env)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(("answer", "status"), [("warn", 0), ("block", 1)])
def test_what_is_not_its_own_is_named(repo: Repo, answer: str, status: int) -> None:
    repo.write("old.py", "x = 1\n")
    agent = begin(repo, CONFIG.format(answer))
    repo.shim("pre-commit")
    agent.edit("own.py", "x = 1\n")
    repo.write("draft.md", "a peer's\n")
    repo.write("old.py", "x = 2\n")
    repo.write("sub/.env", "KEY=1\n")
    ended, said = commit(agent)
    assert ended == status
    assert f"{HAS}new files that look like secrets: sub/.env (variables with secrets)" in said
    assert "own.py" not in said


def test_its_own_commit_a_persons_and_that_of_an_unknown_session_pass(repo: Repo) -> None:
    agent = begin(repo, CONFIG.format("block"))
    repo.shim("pre-commit")
    agent.edit("own.py", "x = 1\n")
    passed = "1 gate passed\n"
    status, said = commit(agent)
    assert (status, said.endswith(passed), "this commit" in said) == (0, True, False)
    repo.write("draft.md", "a person's\n")
    status, said = commit(agent, person=True)
    assert (status, said.endswith(passed), "this commit" in said) == (0, True, False)
    repo.write("draft.md", "by one of whom nothing is known\n")
    status, said = commit(Agent(repo, "unheard"))
    assert (status, "is not known" in said) == (0, True)
