"""What hiding costs, counted in git calls. Seconds are the business of `make bench`.

The last one is for the record of what was checked: of which tree.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from conftest import Repo

HOOK = "[gates.g]\ncommand = 'true'\n[hooks.pre-commit]\ngates = ['g']\n"


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which every call of git by a hook leaves a line."""
    real = shutil.which("git")
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "calls"
    wrapper = folder / "git"
    wrapper.write_text(f'#!/bin/sh\necho "$*" >> {log}\nexec {real} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return log


def hook_calls(repo: Repo, calls: Path, unstaged: str) -> list[str]:
    """Return the git commands, one word each, that the pre-commit hook runs."""
    repo.config(f"{HOOK}unstaged = '{unstaged}'\n")
    repo.git("add", "pyproject.toml")
    for _warm in range(2):  # the first time, the configuration is parsed and kept
        calls.unlink(missing_ok=True)
        done = repo.ask(str(repo.path / ".git/hooks/pre-commit"))
        assert done.returncode == 0, done.stderr
    if not calls.exists():
        return []
    words = [line.split() for line in calls.read_text().splitlines()]
    known = ("diff", "checkout-index", "cat-file", "rev-parse", "ls-files", "status", "write-tree")
    return [next((word for word in line if word in known), " ".join(line)) for line in words]


@pytest.fixture
def armed(repo: Repo) -> Repo:
    repo.config(HOOK)
    repo.write("a", "a\n")
    repo.commit_all("base")
    repo.shim("pre-commit")
    repo.write("a", "staged\n")
    repo.git("add", "a")
    return repo


def test_with_nothing_unstaged_hiding_is_one_git_call(armed: Repo, calls: Path) -> None:
    assert hook_calls(armed, calls, "hide") == ["status", "write-tree"]


def test_with_nothing_hidden_git_is_asked_once_what_is_staged(armed: Repo, calls: Path) -> None:
    armed.write("a", "not staged\n")
    assert hook_calls(armed, calls, "keep") == ["diff", "write-tree"]


def test_hiding_and_putting_back_is_two_git_calls(armed: Repo, calls: Path) -> None:
    armed.write("a", "not staged\n")
    assert hook_calls(armed, calls, "hide") == ["status", "checkout-index", "write-tree"]
    assert (armed.path / "a").read_text() == "not staged\n"
