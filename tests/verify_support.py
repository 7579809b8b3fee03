"""What tests of `gitgates verify` share: a repository whose commits are gated."""

from __future__ import annotations

import re
import shutil

from conftest import Repo
from hook_support import commit

from gitgates.features.evidence.checked_tree import CheckedTree
from gitgates.store.files import read_cached
from gitgates.store.proofs import Proof, read_all

CONFIG = """
[gates.py]
command = "! grep -n bad"
files = ["*.py"]
pass_files = true
[gates.all]
command = "true"
[hooks.pre-commit]
gates = ["py", "all"]
"""
PUSH = "[hooks.pre-push]\nverify = true\n"
ID = re.compile(r"\b[0-9a-f]{7}\b")


def gate(repo: Repo) -> None:
    """Have the commits of a repository gated; the first one, which is made, is not verified.

    It is made once for each worker, and copied.
    """
    made = Repo.blank.with_name("gated")
    if made.exists():
        shutil.copytree(made, repo.path, dirs_exist_ok=True)
        return
    repo.shim("pre-commit", "pre-merge-commit")
    repo.config(CONFIG)
    repo.write("a.py", "".join(f"a = {number}\n" for number in range(30)))
    repo.commit_all("base")
    repo.git("tag", "base")
    shutil.copytree(repo.path, made)


def verified(repo: Repo, *args: str) -> list[str]:
    """Return what is said of the commits since base: state, subject."""
    done = repo.gitgates("verify", "base..HEAD", *args)
    lines = [" ".join(line.split()[1:]) for line in done.stdout.decode().splitlines()]
    is_wrong = any(line.startswith(("bypassed", "failed")) for line in lines)
    assert (done.returncode, done.stderr) == (int(is_wrong), b"")
    return [line for line in lines if not line.startswith("gitgates verify")]


def append(repo: Repo, text: str, name: str = "a.py") -> None:
    with (repo.path / name).open("a") as file:
        file.write(text)


def change(repo: Repo, subject: str, *args: str, text: str = "", name: str = "a.py") -> None:
    """Commit a change of a file; by git alone where it has arguments."""
    append(repo, text or f"{subject} = 1\n", name)
    repo.git("add", name)
    if args or not (repo.path / ".git/hooks/pre-commit").exists():
        repo.git("commit", "-qm", subject, *args)
    else:
        done = commit(repo, subject)
        assert done.returncode == 0, done.stderr


def evidence(repo: Repo) -> list[Proof]:
    """Return what is recorded of commits."""
    return [proof for proof in read_all(str(repo.path / ".git/gitgates")) if proof.config]


def kept(repo: Repo) -> dict[str, list[CheckedTree]]:
    """Return what is kept of commits beside the log: tree → evidence."""
    value = read_cached(str(repo.path / ".git/gitgates/proofs/commits"))
    rows_by_tree = value[2] if value else {}
    return {tree: [CheckedTree(*row) for row in rows] for tree, rows in rows_by_tree.items()}


def notes(repo: Repo) -> dict[str, list[str]]:
    """Return what git itself finds in our notes: tree → lines."""
    listed = repo.git("notes", "--ref", "gitgates", "list").splitlines()
    trees = [line.split()[1] for line in listed]
    return {
        tree: repo.git("notes", "--ref", "gitgates", "show", tree).split("\n") for tree in trees
    }
