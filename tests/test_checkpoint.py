"""A rollback brings back exactly what there was, whatever an agent has done meanwhile."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from conftest import Repo
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_hide_property import Change, Changes, apply
from worktree_state import files, index, where

from gitgates.worktree import checkpoint
from gitgates.worktree.rollback import roll_back

COMMANDS = (
    ("git", "reset", "-q", "--hard"),
    ("git", "checkout", "-q", "-b", "other"),
    ("git", "checkout", "-q", "--detach"),
    ("git", "commit", "-qam", "by the agent", "--allow-empty"),
    ("git", "add", "-A"),
    ("git", "rm", "-rfq", "--cached", "."),
    ("git", "stash", "-q"),
    ("git", "clean", "-fdq"),
    ("git", "gc", "-q", "--prune=now"),
    ("git", "branch", "-D", "spare"),
    ("git", "commit", "-q", "--amend", "-m", "amended"),
    ("rm", "-f", ".git/index"),
    ("sh", "-c", "echo 'a' >> .gitignore"),
    ("sh", "-c", "rm -rf -- *"),
)
Acts = st.lists(st.one_of(Change, st.sampled_from(COMMANDS)), max_size=8)


def state(repo: Repo) -> tuple[object, ...]:
    """Return everything that a rollback brings back."""
    raw = (repo.path / ".git/index").read_bytes() if (repo.path / ".git/index").exists() else b""
    head = (repo.path / ".git/HEAD").read_bytes()
    branches = repo.git("for-each-ref", "refs/heads/main", "refs/heads/spare")
    # Last: it refreshes the index.
    return raw, head, branches, files(repo), index(repo), repo.git("status", "--porcelain=v2", "-z")


def act(repo: Repo, acts: list[tuple[str, ...]]) -> None:
    for one in acts:
        if one in COMMANDS:
            repo.ask(*one)
        else:
            apply(repo, [one])  # type: ignore[list-item]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(committed=Changes, staged=Changes, unstaged=Changes, acts=Acts)
def test_whatever_happens_all_is_as_before(
    committed: list[tuple[str, str, object]],
    staged: list[tuple[str, str, object]],
    unstaged: list[tuple[str, str, object]],
    acts: list[tuple[str, ...]],
) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        repo = Repo.init(folder / "repo")
        repo.write(".gitattributes", "a text eol=crlf\nb ident\n")
        apply(repo, committed)
        repo.commit_all("first")
        repo.git("branch", "spare")
        apply(repo, staged)
        repo.ask("git", "add", "-A")
        apply(repo, unstaged)
        repo.git("status")
        before = state(repo)
        point = checkpoint.take(where(repo), "r1")
        act(repo, acts)
        roll_back(checkpoint.load(point.folder_abs), where(repo))
        assert state(repo) == before
        assert not checkpoint.compare(point, where(repo)).paths
    finally:
        shutil.rmtree(folder)
