"""The doctor in worktrees, and with core.hooksPath."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Repo
from doctor_support import CONFIG, HOOKS, Said, committed, examine, follow, healthy

INSTALL = "gitgates install-hooks"


def linked(repo: Repo, name: str = "linked") -> Repo:
    """Add a linked worktree beside the repository."""
    committed(repo)
    path = repo.path.parent / name
    repo.git("worktree", "add", "-q", "-b", "other", str(path))
    return Repo(path)


def not_there(repo: Repo, folder: str, mend: str = INSTALL) -> list[Said]:
    """Return the findings of hooks that are not in a folder."""
    del repo
    return [
        Said(
            "problem",
            "hook",
            os.path.join(folder, hook),
            f"{hook} is not installed: git runs none of its gates",
            mend,
        )
        for hook in HOOKS
    ]


# -- worktrees --


def test_linked_worktree_shares_the_hooks(repo: Repo) -> None:
    other = linked(healthy(repo))
    assert examine(repo) == []
    assert examine(other) == []


def test_worktree_that_is_gone(repo: Repo) -> None:
    other = linked(healthy(repo))
    other.path.rename(other.path.parent / "moved")
    what = "a worktree that git lists, and that no longer exists"
    assert examine(repo) == [Said("note", "worktree", str(other.path), what, "git worktree prune")]


def test_submodule_is_no_worktree_that_is_gone(repo: Repo, tmp_path: Path) -> None:
    committed(healthy(repo))
    outer = tmp_path / "outer"
    repo.git("init", "-q", str(outer))
    add = ("submodule", "--quiet", "add", str(repo.path), "sub")
    repo.git("-C", str(outer), "-c", "protocol.file.allow=always", *add)
    sub = Repo(outer / "sub")
    assert sub.gitgates("install-hooks").returncode == 0
    assert examine(sub) == []


def test_worktrees_of_a_bare_repository(repo: Repo, tmp_path: Path) -> None:
    repo.config(CONFIG)
    committed(repo)
    repo.git("clone", "-q", "--bare", ".", str(tmp_path / "bare.git"))
    bare = Repo(tmp_path / "bare.git")
    bare.git("worktree", "add", "-q", str(tmp_path / "tree"))
    tree = Repo(tmp_path / "tree")
    assert len(examine(tree)) == 3
    assert tree.gitgates("install-hooks").returncode == 0
    assert examine(tree) == []


def test_left_over_in_another_worktree(repo: Repo) -> None:
    other = linked(healthy(repo), "the other")
    git_dir = other.git("rev-parse", "--absolute-git-dir")
    Path(git_dir, "gitgates/rescue").mkdir(parents=True)
    Path(git_dir, "gitgates/rescue/journal").write_text("{}")
    (found,) = examine(repo)
    assert found[:3] == ("problem", "left over", str(other.path))
    assert found.mend == f"(cd '{other.path}' && gitgates recover)"


def test_inside_of_a_hooks_environment(repo: Repo) -> None:
    other = linked(healthy(repo))
    git_dir = other.git("rev-parse", "--absolute-git-dir")
    assert examine(other, GIT_DIR=git_dir, GIT_INDEX_FILE=f"{git_dir}/index") == []


# -- core.hooksPath --


def test_hooks_path_that_points_nowhere(repo: Repo) -> None:
    healthy(repo)
    repo.git("config", "core.hooksPath", "/no/such/folder")
    what = (
        "core.hooksPath is `/no/such/folder` (local setting, .git/config): that folder does "
        "not exist, so git runs no hooks"
    )
    mend = "git config --unset-all core.hooksPath"
    assert examine(repo) == [
        Said("problem", "hooksPath", str(repo.path), what, mend),
        *not_there(repo, "/no/such/folder"),
    ]
    follow(repo, mend)
    assert examine(repo) == []


@pytest.mark.parametrize("value", ["", "/dev/null"])
def test_hooks_path_that_is_no_folder(repo: Repo, value: str) -> None:
    healthy(repo)
    repo.git("config", "core.hooksPath", value)
    first, *_rest = examine(repo)
    assert (first.severity, first.check) == ("problem", "hooksPath")


def test_own_hooks_path(repo: Repo) -> None:
    repo.write("hooks/keep")
    repo.git("config", "core.hooksPath", "hooks")
    healthy(repo)
    assert (repo.path / "hooks/pre-commit").exists()
    assert examine(repo) == []


def test_global_hooks_path(repo: Repo, tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    healthy(repo)
    repo.git("config", "--global", "core.hooksPath", str(shared))
    file = os.environ["GIT_CONFIG_GLOBAL"]
    what = (
        f"core.hooksPath is `{shared}` (global setting, {file}): other repositories also use "
        "that folder for hooks"
    )
    mend = f"git config --file {file} --unset-all core.hooksPath"
    assert examine(repo) == [
        Said("note", "hooksPath", str(repo.path), what, mend),
        *not_there(repo, str(shared)),
    ]


def test_hooks_path_of_one_worktree(repo: Repo) -> None:
    other = linked(healthy(repo))
    folder = other.path.parent / "others hooks"
    folder.mkdir()
    repo.git("config", "extensions.worktreeConfig", "true")
    other.git("config", "--worktree", "core.hooksPath", str(folder))
    found = examine(repo)
    assert found == not_there(repo, str(folder), f"(cd {other.path} && {INSTALL})")
    for mend in {one.mend for one in found}:
        follow(repo, mend)
    assert examine(repo) == []


def test_relative_hooks_path_in_a_linked_worktree(repo: Repo) -> None:
    repo.write("hooks/keep")
    repo.write(".gitignore", "hooks/\n")
    repo.git("config", "core.hooksPath", "hooks")
    other = linked(healthy(repo))
    found = examine(repo)
    assert found[0][:3] == ("problem", "hooksPath", str(other.path))
    assert "that folder does not exist, so git runs no hooks" in found[0].what
    assert found[0].mend == f"(cd {other.path} && git config --unset-all core.hooksPath)"
    assert [one.where for one in found[1:]] == [f"{other.path}/hooks/{hook}" for hook in HOOKS]


def test_huskys_folder_is_missing_in_a_worktree(repo: Repo) -> None:
    repo.write(".husky/_/.gitignore", "*")
    repo.git("config", "core.hooksPath", ".husky/_")
    other = linked(healthy(repo))
    first, *_rest = examine(repo)
    assert first[:3] == ("problem", "hooksPath", str(other.path))
    assert "that folder does not exist, so git runs no hooks" in first.what
    assert first.mend.startswith(f"(cd {other.path} && npm install)   # or: ")
