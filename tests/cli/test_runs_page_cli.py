"""`gitgates runs page`: where it is written, and which commits it shows as bypasses."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Repo

CONFIG = """
[gates.lint]
command = 'true'
[gates.test]
command = '! grep -q bad a.txt'
[hooks.pre-commit]
gates = ["lint", "test"]
"""


@pytest.fixture(name="worked")
def _worked(repo: Repo) -> Repo:
    """A repository with a refused commit, its repair, a bypass and a skip."""
    repo.config(CONFIG)
    repo.write("a.txt", "a\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "first", "--no-verify")
    repo.shim("pre-commit")
    repo.write("a.txt", "bad\n")
    repo.git("add", ".")
    assert repo.commit("refused").returncode == 1
    repo.write("a.txt", "good\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "repaired")
    repo.write("a.txt", "more\n")
    repo.git("commit", "-qam", "with <b>skip</b>", env={"SKIP": "lint"})
    return repo


def texts(html: str) -> str:
    """Return the texts of a page, on one line."""
    return " ".join(re.sub(r"<style>.*?</style>|<.*?>", " ", html, flags=re.DOTALL).split())


@pytest.mark.slow
def test_the_page_of_a_repository(worked: Repo) -> None:
    refs = worked.git("for-each-ref")
    done = worked.gitgates("runs", "page")
    path = worked.path / ".git/gitgates/runs.html"
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == f"written: {path}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert worked.git("for-each-ref") == refs  # no notes, as `verify` would write
    assert worked.git("status", "--porcelain") == ""
    shown = texts(path.read_text())
    assert "Runs 1: 0 passed, 1 failed" in shown
    assert "Gate Found Fixed Seconds per fix test 1 1" in shown  # by the commit that passed
    assert "Looked at: 3 commits" in shown
    first, repaired, skipped = worked.git("log", "--reverse", "--format=%h", "--abbrev=12").split()
    assert f"{first} first bypassed the gates: lint, test" in shown
    assert f"{skipped} with &lt;b&gt;skip&lt;/b&gt; skipped: lint" in shown
    assert repaired not in shown
    assert "lint SKIP pre-commit" in shown
    assert "git, pre-commit fixed: test" in shown


@pytest.mark.slow
def test_the_page_goes_where_it_is_asked_to(worked: Repo, tmp_path: Path) -> None:
    assert (
        worked.gitgates("runs", "page", "--output", "../x.html").stdout == b"written: ../x.html\n"
    )
    printed = worked.gitgates("runs", "page", "--output", "-").stdout.decode()
    assert printed.startswith("<!doctype html>")
    assert texts(printed)[:60] == texts((tmp_path / "x.html").read_text())[:60]
    done = worked.gitgates("runs", "page", "--output", "no/x.html")
    assert (done.returncode, done.stdout) == (64, b"")
    assert done.stderr == b"gitgates: no/x.html: cannot be written: No such file or directory\n"


def test_the_page_before_the_first_commit(repo: Repo) -> None:
    done = repo.gitgates("runs", "page", "--output", "-")
    assert done.returncode == 0
    assert "Looked at: 0 commits" in texts(done.stdout.decode())
