"""What tests of proofs share: ssh keys, repositories that trust some, and envelopes of any kind."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from conftest import Repo

from gitgates.features.proof.envelope import Envelope
from gitgates.features.proof.statement import GateProof, Statement, to_payload
from gitgates.features.proof.trust import Trust, trust_at
from gitgates.git.repo import find_repo

CI = "ci@example.com"
CONFIG = """
[gates.all]
command = "true"
[gates.py]
command = "! grep -n bad"
files = ["*.py"]
pass_files = true
[hooks.pre-commit]
gates = ["all", "py"]
[proof]
trust = {trust}
allowed_signers = ".gitgates-signers"
"""
TREE, DEFINITION, KEY = "1" * 40, "2" * 64, "3" * 64
GATE = GateProof(
    gate="all", status="passed", definition=DEFINITION, is_exact=True, keys=(KEY,), time_s=1e9
)


def make_key(path: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    """Make a pair of keys; return the file of the private one."""
    size = ("-b", "1024") if kind == "rsa" else ()  # a usual one takes a second
    named = ("-N", passphrase, "-a", "1", "-C", "", "-f", str(path))
    argv = ("ssh-keygen", "-q", "-t", kind, *size, *named)
    subprocess.run(argv, check=True, stdin=subprocess.DEVNULL)
    return path


def signer(identity: str, key: Path, options: str = "") -> str:
    """Return a line of a file of allowed signers."""
    public = key.with_name(f"{key.name}.pub").read_text()
    return f"{identity} {options} {public}" if options else f"{identity} {public}"


def trusting(repo: Repo, signers: str, trust: str = '["ci@example.com"]') -> None:
    """Commit a configuration that trusts signers, with a file of their keys, and merge it."""
    repo.config(CONFIG.replace("{trust}", trust))
    repo.write(".gitgates-signers", signers)
    repo.commit_all("trust")
    merged(repo)


def merged(repo: Repo) -> None:
    """Have HEAD on the default branch of a remote, as after a push; the remote need not be there.

    To make it: make_origin.
    """
    if '[remote "origin"]' not in (repo.path / ".git/config").read_text():
        repo.git("remote", "add", "origin", "../origin.git")
    repo.git("update-ref", "refs/remotes/origin/main", "HEAD")


def make_origin(repo: Repo, main: str = "HEAD") -> None:
    """Make the remote of a repository that has been merged; `main`: the commit on that branch."""
    repo.git("init", "-q", "--bare", "../origin.git")
    repo.git("push", "-q", "--no-verify", "origin", f"{main}:refs/heads/main")


def sign_with(repo: Repo, key: Path) -> None:
    """Have git, and so gitgates, sign with a key in this repository."""
    repo.git("config", "gpg.format", "ssh")
    repo.git("config", "user.signingKey", str(key))


def trust_of(repo: Repo) -> Trust:
    """Return whose proofs count in a repository."""
    return trust_at(find_repo(str(repo.path), dict(os.environ)))


def statement(**fields: Any) -> Statement:
    """Return a statement about a gate that has passed just now."""
    now = time.time()
    gates = (GATE._replace(time_s=now),)
    return Statement(**{"tree": TREE, "signer": CI, "time_s": now, "gates": gates, **fields})


def signature_of(message: bytes, key: Path, namespace: str = "gitgates") -> bytes:
    """Return what ssh-keygen itself makes of a message."""
    argv = ("ssh-keygen", "-q", "-Y", "sign", "-n", namespace, "-f", str(key))
    return subprocess.run(argv, input=message, check=True, capture_output=True).stdout


def envelope_of(payload: bytes, key: Path, namespace: str = "gitgates") -> bytes:
    """Return an envelope of any payload, signed with a key."""
    unsigned = Envelope(payload, b"", "")
    return unsigned._replace(signature=signature_of(unsigned.signed, key, namespace)).to_line()


def proof_by(key: Path, **fields: Any) -> bytes:
    """Return the envelope of a statement with these fields, signed with a key."""
    return envelope_of(to_payload(statement(**fields)), key)


def edited(envelope: bytes, edit: Any) -> bytes:
    """Return an envelope whose payload was edited after it was signed."""
    document = json.loads(envelope)
    payload = json.loads(base64.b64decode(document["payload"]))
    edit(payload)
    document["payload"] = base64.b64encode(json.dumps(payload).encode()).decode()
    return json.dumps(document).encode()
