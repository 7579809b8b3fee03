"""At a stop in a linked worktree, the person is told whose changes conflict with its own."""

from __future__ import annotations

import pytest
from agent_support import Agent, begin
from conftest import Repo

CONFIG = """
[land]
{key}
[gates.check]
command = "true"
[hooks.Stop]
gates = ["check"]
"""


def agents(repo: Repo, key: str = "") -> list[Agent]:
    """Return a session in each of two linked worktrees."""
    repo.write("shared.txt", "one\n")
    repo.write(".gitattributes", "crlf.txt eol=crlf\n")
    repo.write("crlf.txt", "one\n")
    begin(repo, CONFIG.format(key=key))
    for name in ("first", "second"):
        repo.git("worktree", "add", "-q", f"../{name}")
    started = [Agent(Repo(repo.path.parent / name), name) for name in ("first", "second")]
    for agent in started:
        agent.start()
        agent.prompt()
    return started


@pytest.mark.slow
@pytest.mark.parametrize("key", ["", "conflicts = false"])
def test_a_conflict_with_another_worktree_is_told_once(repo: Repo, key: str) -> None:
    first, second = agents(repo, key)
    first.edit("shared.txt", "first\n")
    first.edit("own.txt", "first\n")
    assert first.stop() == {}
    second.edit("shared.txt", "second\n")
    second.edit("mine.txt", "second\n")
    answer = second.stop()
    if key:
        assert answer == {}
        return
    text = f"gitgates: what {first.repo.path} has not landed yet conflicts with this: shared.txt"
    assert answer == {"systemMessage": text}
    second.prompt("more")
    second.edit("mine.txt", "more\n")
    assert second.stop() == {}
    assert repo.git("fsck", "--unreachable", "--no-reflogs") == ""  # none of ours
