"""What the tests of losses share: a repository in which there is something to lose."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gitgates.features.undo.losses import Situation, find_losses
from gitgates.git.repo import find_repo

if TYPE_CHECKING:
    from conftest import Repo

    from gitgates.features.undo.losses import Loss


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


def situation_of(repo: Repo, **fields: Any) -> Situation:
    """Return where a line is run: in the root, where nothing is temporary."""
    env = dict(os.environ)
    known = {"cwd_abs": str(repo.path), "repo": find_repo(str(repo.path), env), "env": env}
    return Situation(**{**known, "temporary": (), **fields})


def losses(repo: Repo, command: str, **fields: Any) -> list[Loss]:
    """Return what a command would destroy."""
    return list(find_losses(command, situation_of(repo, **fields)))
