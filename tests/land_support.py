"""What tests of `gitgates land` share: a repository with branches that change a file each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from conftest import Repo

from gitgates.features.land.queue import Landing
from gitgates.git.repo import Repo as OpenRepo
from gitgates.git.repo import find_repo

if TYPE_CHECKING:
    from pathlib import Path

BY = "Test <test@example.invalid>"
# Files that say so are bad, alone or together.
CONFIG = """jobs = 1
[gates.check]
command = "echo run >> $OUT/runs; ! grep -h bad *.txt && test ! -e red.txt -o ! -e green.txt"
[hooks.pre-push]
gates = ["check"]
"""


def begin(repo: Repo, config: str = CONFIG) -> None:
    """Commit the configuration and a file to main; go to another branch."""
    repo.write("gitgates.toml", config)
    repo.write("shared.txt", "one\n")
    repo.commit_all("base")
    repo.git("checkout", "-q", "-b", "elsewhere")


def branch(repo: Repo, name: str, files: dict[str, str], base: str = "main") -> str:
    """Make a branch with a commit that writes some files; return that commit."""
    repo.git("checkout", "-q", "-b", name, base)
    for path, content in files.items():
        repo.write(path, content)
    repo.commit_all(f"write {' '.join(files)}")
    tip = repo.head()
    repo.git("checkout", "-q", "elsewhere")
    return tip


def entry(name: str, tip: str, **fields: Any) -> Landing:
    return Landing(
        **{
            "number": 1,
            "branch": name,
            "tip": tip,
            "target": "main",
            "by": BY,
            "queued_s": 1.0,
            **fields,
        }
    )


def opened(repo: Repo) -> OpenRepo:
    import os

    return find_repo(str(repo.path), dict(os.environ))


def land(repo: Repo, *args: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Run `gitgates land`; return its exit status, and the entries by branch."""
    done = repo.gitgates("land", "--format=json", *args)
    assert done.stdout, done.stderr
    rows = json.loads(done.stdout)["entries"]
    return done.returncode, {row["branch"]: row for row in rows}


def runs(out: Path) -> int:
    """Return how often the gate has run."""
    path = out / "runs"
    return len(path.read_text().splitlines()) if path.exists() else 0


def first_parents(repo: Repo) -> list[str]:
    return repo.git("log", "--first-parent", "--format=%s", "main").splitlines()
