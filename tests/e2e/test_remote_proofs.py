"""A pass on a server is no proof for others: a commit whose gate has run there, or is reused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from casd_support import needs_casd, serving_casd
from conftest import Repo
from proof_support import make_key, sign_with, signer

from gitgates.features.proof.signing import statements_of
from gitgates.git.commits import list_commits
from gitgates.git.repo import find_repo
from gitgates.store.proofs import read_all

CONFIG = """
jobs = 1
[gates.busy]
command = "sleep 1"
[gates.goes]
command = "test -e file"
remote = true
reuse = true
inputs = ["file"]
env = {{ PATH = "/usr/bin:/bin" }}
timeout = "20s"
[hooks.pre-commit]
strategy = "collect"
gates = ["busy", "goes"]
[remote]
execution = "{url}"
[proof]
trust = ["me@example.com"]
allowed_signers = "signers"
"""


@needs_casd
def test_it_has_no_keys_and_nobody_believes_it(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITGATES_POOL", str(tmp_path / "pool"))
    key = make_key(tmp_path / "key")
    sign_with(repo, key)
    repo.write("signers", signer("me@example.com", key))
    repo.write("file", "text\n")
    with serving_casd(tmp_path / "casd") as casd:
        repo.config(CONFIG.format(url=casd.url))
        repo.commit_all("base")
        repo.shim("pre-commit")
        for name in ("first", "second"):
            repo.write(name, "")
            repo.git("add", ".")
            repo.git("commit", "-qm", name)
    rows = [row for row in read_all(str(repo.path / ".git/gitgates")) if row.gate == "goes"]
    assert len(rows) == 3  # of two commits, and for reuse
    assert all(row.action_digest for row in rows)
    found = find_repo(str(repo.path), dict(os.environ))
    statements = statements_of(found, list_commits(found.git, "HEAD~2..HEAD"))
    gates = [gate for each in statements for gate in each.gates if gate.gate == "goes"]
    assert [(gate.status, gate.keys, gate.is_exact) for gate in gates] == [
        ("passed", (), False)
    ] * 2
