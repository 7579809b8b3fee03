"""Tasks of a queue that land when they have passed; what is ejected goes back to its agent."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from conftest import Repo
from test_headless_limits import Claude

CONFIG = """\
[gates.test]
command = "test -e a.txt"
[gates.whole]
command = "! test -e red.txt"
[hooks.headless]
gates = ["test"]
[hooks.pre-push]
gates = ["whole"]
[undo]
enabled = false
"""


@pytest.mark.slow
def test_an_ejected_task_is_the_next_turn_of_its_agent(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = tmp_path / "client"
    monkeypatch.setenv("PATH", f"{client}{os.pathsep}{os.environ['PATH']}")
    claude = Claude(client)
    claude.turns("touch red.txt; echo more >> a.txt", "rm red.txt")
    repo.config(CONFIG)
    repo.write("a.txt", "first\n")
    repo.commit_all("first")
    tasks = tmp_path / "tasks.toml"
    tasks.write_text('[[tasks]]\nid = "t"\nprompt = "add more"\n')
    done = repo.gitgates("headless", "--tasks", str(tasks), "--land", "--format", "json")
    row = json.loads(done.stdout)["tasks"][0]
    assert (done.returncode, row["landing"], row["branch"]) == (0, "landed", "headless/t-again"), (
        row
    )
    assert claude.prompts[1].startswith("`headless/t` was not landed on `main`.\nThe gates ran on ")
    assert "--resume s-1" in (client / "arguments").read_text().splitlines()[1]
    assert (repo.path / "a.txt").read_text() == "first\nmore\n"
    assert not (repo.path / "red.txt").exists()
    subjects = repo.git("log", "--first-parent", "--format=%s").splitlines()
    assert subjects == ["Merge branch 'headless/t-again'", "first"]
    again = repo.gitgates("headless", "--tasks", str(tasks), "--land")
    assert (again.returncode, len(claude.prompts)) == (0, 2)
