"""Where the task of a headless run comes from."""

from __future__ import annotations

import pytest
from conftest import Repo
from test_headless import CONFIG, agent, prompts

TASK = "# Make it good\n\n- in `a.txt`\n- \N{GREEK SMALL LETTER PI}\n"


@pytest.fixture
def work(repo: Repo) -> Repo:
    repo.config(CONFIG)
    repo.write("a.txt", "bad\n")
    repo.commit_all("first")
    return repo


def test_a_task_is_read_whole_and_names_the_commit(work: Repo) -> None:
    command = agent(work, "echo good > a.txt")
    stdin = f"\ufeff{TASK}\r\n".encode()
    done = work.gitgates("headless", "-", "--agent-command", command, stdin=stdin)
    assert done.returncode == 0, done.stderr
    assert prompts(work) == [TASK.strip()]
    body = work.git("log", "-1", "--format=%B")
    assert body.startswith(
        "Make it good\n\n- in `a.txt`\n- \N{GREEK SMALL LETTER PI}\n\ndid turn 1"
    )


NO_TASK: tuple[tuple[tuple[str, ...], bytes, str], ...] = (
    ((), b"", "TASK is empty"),
    (("-",), b" \n", "TASK is empty"),
    (("-",), b"a" * (1 << 20) + b"b", "TASK is longer than 1 MiB"),
)


def test_what_is_no_task_is_named(work: Repo) -> None:
    command = agent(work, "echo good > a.txt")
    for arguments, stdin, said in NO_TASK:
        done = work.gitgates("headless", *arguments, "--agent-command", command, stdin=stdin)
        assert done.returncode == 64, said
        assert said in done.stderr.decode()
    assert prompts(work) == []
