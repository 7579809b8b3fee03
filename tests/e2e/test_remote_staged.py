"""What a gate on a real server sees of a commit and of a push: their content, not the user's."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from casd_support import Casd, needs_casd, serving_casd
from conftest import Repo

pytestmark = needs_casd

CONFIG = """
jobs = 1
[gates.busy]
command = "sleep 1"
[gates.goes]
command = "test -e .git && echo here; echo saw $(cat a b made); exit 1"
remote = true
ignored_inputs = ["made"]
env = {{ PATH = "/usr/bin:/bin" }}
timeout = "20s"
[hooks.pre-commit]
strategy = "collect"
gates = ["busy", "goes"]
[hooks.pre-push]
strategy = "collect"
gates = ["busy", "goes"]
[remote]
execution = "{url}"
"""


@pytest.fixture(name="casd")
def _casd(tmp_path: Path) -> Iterator[Casd]:
    with serving_casd(tmp_path / "casd") as casd:
        yield casd


def saw(done: subprocess.CompletedProcess[bytes]) -> str:
    """Return what a gate has seen that has kept git from going on."""
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.decode().splitlines() if "| saw" in line]
    assert "| here" not in done.stderr.decode()
    return line.partition("saw ")[2]


def test_it_is_the_content_of_the_commit_or_push(
    repo: Repo, casd: Casd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITGATES_POOL", str(tmp_path / "pool"))
    for name in ("a", "b", "made"):
        repo.write(name, f"{name}0\n")
    repo.write(".gitignore", "made\n")
    repo.config(CONFIG.format(url=casd.url))
    repo.commit_all("base")
    repo.shim("pre-commit", "pre-push")
    repo.write("a", "a1\n")
    repo.git("add", "a")
    repo.write("a", "a2\n")
    repo.write("b", "b2\n")
    assert saw(repo.ask("git", "commit", "-qm", "staged")) == "a1 b0 made0"
    assert saw(repo.ask("git", "commit", "-qm", "one", "b")) == "a0 b2 made0"
    assert saw(repo.ask("git", "commit", "-qam", "all")) == "a2 b2 made0"
    repo.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "topic")
    linked = Repo(tmp_path / "linked")
    for name in ("made", "a"):
        linked.write(name, f"{name}3\n")
    linked.git("add", "a")
    linked.write("a", "a4\n")
    assert saw(linked.ask("git", "commit", "-qm", "linked")) == "a3 b0 made3"
    linked.git("commit", "-qm", "linked", "--no-verify")
    repo.git("init", "-q", "--bare", str(tmp_path / "origin"))
    repo.git("remote", "add", "origin", str(tmp_path / "origin"))
    assert saw(repo.ask("git", "push", "origin", "topic")) == "a3 b0 made0"
