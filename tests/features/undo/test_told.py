"""What a call has removed or overwritten that no commit has is told, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from points_support import found, record
from template_support import copy_of

from gitgates.features.undo.told import told
from gitgates.files import points

if TYPE_CHECKING:
    from conftest import Repo

# Command → what is told of it; empty: nothing.
TOLD = {
    "rm -r data": "no commit has: data/users.csv. It was saved first",
    "rm own": "",
    "rm clean crlf": "",
    "rm shared": "no commit has: shared.",
    "git stash clear": "the stash entry “WIP on main",
    "git read-tree HEAD": "staged changes: staged.",
    "git checkout -q -- changed": "no commit has: changed.",
    "mv changed elsewhere": "",
    "git commit -qam all": "staged changes: staged.",
    "git branch -qD side": "the branch side.",
    "git branch -qD merged": "",
    "git stash -q && git stash drop -q": "no commit has: changed",
    "git add -A && git commit -qm all && git reset -q --hard HEAD~1": "no commit has: changed",
}


def begin(repo: Repo) -> None:
    """Make work of a person: ignored, changed, staged, in the stash and on branches."""
    repo.git("config", "core.autocrlf", "true")
    repo.git("config", "core.safecrlf", "false")
    for name in ("changed", "clean", "staged"):
        repo.write(name, "1\n")
    repo.write("crlf", b"1\r\n2\r\n")
    repo.write(".gitignore", "data/\n")
    repo.commit_all("one")
    repo.git("branch", "merged")
    repo.git("checkout", "-qb", "side")
    repo.git("commit", "-q", "--allow-empty", "-m", "side")
    repo.git("checkout", "-q", "main")
    repo.write("changed", "0\n")
    repo.git("stash", "-q")
    repo.write("data/users.csv", "1\n")
    repo.write("changed", "2\n")
    repo.write("staged", "2\n")
    repo.git("add", "staged")
    repo.write("staged", "3\n")


@pytest.mark.slow
@pytest.mark.samples(5)
@pytest.mark.parametrize(("command", "said"), TOLD.items())
def test_what_is_told(command: str, said: str) -> None:
    repo = copy_of(begin)
    record(repo)
    for name in ("own", "shared"):
        repo.write(name, "1\n")
    record(repo, "s")
    repo.write("shared", "1\n2\n")
    record(repo)
    assert repo.ask("sh", "-ec", command).returncode == 0
    record(repo, "s")
    point = points.latest(found(repo))
    assert point
    text = told(found(repo), point)
    assert said in text
    assert bool(said) == bool(text)
