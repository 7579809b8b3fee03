"""A commit whose hook starts no interpreter: for tests of what our hook does with a commit.

What git gives to hooks and does with them, and where the hook itself may be another one, needs a
commit in earnest: `Repo.commit`.
"""

from __future__ import annotations

import os
import subprocess

import forked
from conftest import Repo

_AS_GIT = {"GIT_EDITOR": ":", "GIT_INDEX_FILE": ".git/index", "GIT_PREFIX": ""}


def commit(
    repo: Repo, message: str = "change", *, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run our hook on what is staged, as git does; commit it if the hook lets it pass.

    Not for a linked worktree, whose index has another place.
    """
    shim = ".git/hooks/pre-commit"
    assert (repo.path / shim).exists(), "no hook would run"
    whole = {**os.environ, **_AS_GIT, **(env or {})}
    hook = ("git-hook", shim, "pre-commit")
    ran = forked.run(hook, str(repo.path), whole, b"", hosts=True)
    if ran.returncode:
        return ran
    made = repo.ask("git", "commit", "-q", "--no-verify", "-m", message, env=env)
    made.stderr = ran.stderr + made.stderr
    return made
