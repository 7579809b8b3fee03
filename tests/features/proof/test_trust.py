"""Whose proofs are believed: with real keys, and real ssh-keygen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Repo
from proof_support import CI, make_key, proof_by, signer, statement, trust_of, trusting

from gitgates.features.proof.trust import RefusedError


@pytest.fixture(scope="module")
def ci_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_key(tmp_path_factory.mktemp("keys") / "ci")


def refused(repo: Repo, envelope: bytes) -> str:
    """Return why a proof is not believed."""
    with pytest.raises(RefusedError) as caught:
        trust_of(repo).believed(envelope)
    return caught.value.reason


def test_a_trusted_signer_is_believed(repo: Repo, ci_key: Path) -> None:
    trusting(repo, signer(CI, ci_key))
    wanted = statement(hook="pre-commit")
    found = trust_of(repo).believed(proof_by(ci_key, **wanted._asdict()))
    assert found == wanted


def test_without_a_remote_nobody_is_believed(repo: Repo, ci_key: Path) -> None:
    trusting(repo, signer(CI, ci_key))
    repo.git("remote", "remove", "origin")
    assert re.search(
        r"^proof of ci@example.com about tree 1111111: nobody is trusted without a merge base: "
        r"no default branch found",
        refused(repo, proof_by(ci_key)),
    )
