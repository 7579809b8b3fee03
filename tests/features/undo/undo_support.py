"""What the tests of answers share: a repository in which there is something to lose."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gitgates.features.undo.unsavable import Surroundings
from gitgates.files.look import DEFAULT, Limits, look
from gitgates.git.repo import find_repo

if TYPE_CHECKING:
    from conftest import Repo


def begin(repo: Repo) -> None:
    """Make branches, tags, stash entries, a linked worktree and an untracked file."""
    repo.write("base", "1\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "one")
    repo.git("branch", "merged")
    repo.git("tag", "kept")
    for name in ("lost", "side"):
        repo.git("checkout", "-q", "-b", name)
        repo.git("commit", "-q", "--allow-empty", "-m", name)
        repo.git("checkout", "-q", "main")
    repo.git("tag", "-f", "lost", "refs/heads/lost")
    repo.git("branch", "-qD", "lost")
    repo.git("commit", "-q", "--allow-empty", "-m", "only in the reflog")
    repo.git("reset", "-q", "--hard", "HEAD~1")
    for content in ("2\n", "3\n"):
        repo.write("base", content)
        repo.git("stash", "-q")
    repo.git("worktree", "add", "-q", "--detach", "../linked")
    repo.write("../linked/other", "1\n")
    repo.git("config", "alias.br", "branch")
    repo.git("config", "alias.wipe", "!git checkout .")
    repo.write("new", "1\n")


def place_of(repo: Repo, cwd: str = "", *, limits: Limits = DEFAULT) -> Surroundings:
    """Return where a line is run, with what a look finds; nothing is temporary there."""
    env = {name: value for name, value in os.environ.items() if name != "TMPDIR"}
    found = find_repo(str(repo.path), env)
    seen = look(found, limits, ignored=True)
    return Surroundings(os.path.join(found.root_abs, cwd), found, env, seen, temporary=())
