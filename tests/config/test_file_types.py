"""`types` of a gate: what a file is by its name, its `#!` line and its mode."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Repo

from gitgates.config.file_types import of_types
from gitgates.core.types import make_gate

FILES = {
    "a.py": "",
    "tool": "#!/usr/bin/env python3\n",
    "run.sh": "#!/bin/sh\n",
    "notes": "words\n",
    "stub.pyi": "",
    "data": "\0\1",
}


@pytest.mark.parametrize(
    ("types", "types_or", "expected"),
    [
        (("python",), (), "a.py tool gone.py"),
        (("python", "executable"), (), "tool"),
        (("text", "!executable"), (), "a.py notes stub.pyi gone.py"),
        ((), ("python", "pyi"), "a.py tool stub.pyi gone.py"),
        (("!python",), ("text", "binary"), "run.sh notes stub.pyi data"),
        (("symlink",), (), "link"),
        (("file",), (), "a.py tool run.sh notes stub.pyi data gone.py"),
        (("rust",), (), ""),
    ],
)
def test_paths_of_types(
    tmp_path: Path, types: tuple[str, ...], types_or: tuple[str, ...], expected: str
) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    for name in ("tool", "run.sh"):
        (tmp_path / name).chmod(0o755)
    os.symlink("a.py", tmp_path / "link")
    gate = make_gate(name="g", types=types, types_or=types_or)
    paths = (*FILES, "link", "gone.py")
    assert of_types(paths, gate, str(tmp_path)) == tuple(expected.split())


SHELL = """
[gates.shell]
command = "false"
pass_files = true
types = ["shell"]
[hooks.pre-commit]
gates = ["shell"]
[hooks.pre-push]
gates = ["shell"]
"""


PYTHON = "#!/usr/bin/env python3\n"


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("view", "now"), [("hide", PYTHON), ("checkout", None), ("hide", None), ("checkout", PYTHON)]
)
def test_what_is_staged_has_the_type(repo: Repo, view: str, now: str | None) -> None:
    repo.config(SHELL.replace("[hooks.pre-push]", f'unstaged = "{view}"\n[hooks.pre-push]'))
    repo.commit_all("first")
    repo.shim("pre-commit")
    repo.write("tool", "#!/bin/sh\n")
    (repo.path / "tool").chmod(0o755)
    repo.git("add", "tool")
    if now:
        repo.write("tool", now)
    else:
        os.unlink(repo.path / "tool")
    assert repo.commit().returncode == 1


def test_what_is_pushed_has_the_type(repo: Repo) -> None:
    """Also where the working tree does not have that file."""
    repo.config(SHELL)
    repo.commit_all("first")
    repo.git("init", "-q", "--bare", "../origin")
    repo.git("remote", "add", "origin", "../origin")
    repo.git("push", "-q", "origin", "main")
    repo.git("switch", "-qc", "topic")
    repo.write("tool", "#!/bin/sh\n")
    (repo.path / "tool").chmod(0o755)
    repo.commit_all("tool")
    repo.git("switch", "-q", "main")
    repo.shim("pre-push")
    assert repo.ask("git", "push", "origin", "topic").returncode == 1


def test_a_verified_commit_has_the_type(repo: Repo) -> None:
    repo.config(SHELL)
    repo.commit_all("first")
    repo.write("tool", "#!/bin/sh\n")
    (repo.path / "tool").chmod(0o755)
    repo.commit_all("tool")
    repo.git("rm", "-q", "tool")
    repo.commit_all("gone")
    done = repo.gitgates("verify", "HEAD~2..HEAD")
    assert done.returncode == 1
    assert b"bypassed the gates: shell" in done.stdout
