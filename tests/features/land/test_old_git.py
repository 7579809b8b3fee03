"""A git that cannot merge in memory: branches are merged in a private checkout."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from conftest import Repo
from land_support import begin, branch, first_parents, land, runs

# What git 2.31, the oldest that we support, answers to what came later.
_OLD = """#!/bin/sh
case " $* " in
*" version "*) echo "git version 2.31.0"; exit ;;
*" merge-tree --write-tree "*) echo "usage: git merge-tree <base> <a> <b>" >&2; exit 129 ;;
*" worktree list --porcelain -z "*) echo "error: unknown switch" >&2; exit 129 ;;
esac
exec {git} "$@"
"""


@pytest.mark.slow
def test_branches_land_and_a_conflict_is_ejected(
    repo: Repo, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin(repo)
    for name in ("a", "b"):
        branch(repo, name, {f"{name}.txt": f"{name}\n", "shared.txt": f"{name}\n"})
    branch(repo, "c", {"c.txt": "c\n"})
    repo.write("c.txt", "a person's\n")
    old = tmp_path / "old"
    old.mkdir()
    (old / "git").write_text(_OLD.format(git=shutil.which("git")))
    (old / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{old}{os.pathsep}{os.environ['PATH']}")
    status, rows = land(repo, "a", "b", "c")
    states = [rows[name]["state"] for name in ("a", "b", "c")]
    assert (status, states, runs(out)) == (1, ["landed", "ejected", "landed"], 1)
    assert first_parents(repo) == ["Merge branch 'c'", "Merge branch 'a'", "base"]
    assert repo.git("show", "main:shared.txt", "main:c.txt") == "a\nc"
    said = rows["b"]["feedback"]
    assert "`b` conflicts with `main` in 1 file. No gate has run." in said
    assert "<<<<<<< HEAD\na\n=======\nb\n>>>>>>>" in said
    assert repo.git("status", "--porcelain") == "?? c.txt"
