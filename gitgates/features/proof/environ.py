"""The environment names of proofs."""

from __future__ import annotations

KEY = "GITGATES_PROOF_KEY"
NAMES = (
    (
        KEY,
        "you",
        "the file of the ssh key to sign proofs with, as in CI; default: git's `user.signingKey`",
    ),
)
