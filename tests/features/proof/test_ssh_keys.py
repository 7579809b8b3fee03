"""Sign with every kind of key that git signs with, and say what to do where one cannot be used."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Repo
from proof_support import CI, make_key, proof_by, sign_with, signer, statement, trust_of, trusting

from gitgates.core.errors import ConfigError
from gitgates.features.proof.envelope import read_envelope
from gitgates.features.proof.signing import signed
from gitgates.features.proof.statement import RefusedError, Statement
from gitgates.git.repo import find_repo


def sign(repo: Repo, **env: str) -> bytes:
    """Sign a statement, as a verb does."""
    (envelope,) = signed(find_repo(str(repo.path), {**os.environ, **env}), [statement(signer="")])
    return envelope


def believed(repo: Repo, envelope: bytes) -> Statement:
    return trust_of(repo).believed(envelope)


def refused(repo: Repo, **env: str) -> str:
    """Return why nothing can be signed, without the folder of the test."""
    with pytest.raises(ConfigError) as caught:
        sign(repo, **env)
    return str(caught.value).replace(f"{repo.path.parent}/", "")


@pytest.fixture
def agent() -> Iterator[str]:
    """Return the socket of an ssh-agent."""
    socket = f"/tmp/gitgates-agent-{os.getpid()}"
    process = subprocess.Popen(("ssh-agent", "-D", "-a", socket), stdout=subprocess.DEVNULL)
    until = time.monotonic() + 5
    while not os.path.exists(socket) and time.monotonic() < until:
        time.sleep(0.01)
    yield socket
    process.terminate()
    process.wait()


def add(socket: str, key: Path, passphrase: str = "") -> None:
    """Add a key to an agent, with its passphrase."""
    ask = key.with_name("ask")
    ask.write_text(f"#!/bin/sh\necho {passphrase}\n")
    ask.chmod(0o700)
    env = {**os.environ, "SSH_AUTH_SOCK": socket, "SSH_ASKPASS": str(ask)}
    argv = ("ssh-add", "-q", str(key))
    env["SSH_ASKPASS_REQUIRE"] = "force"
    subprocess.run(argv, env=env, check=True, stdin=subprocess.DEVNULL)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_every_kind_of_key_is_believed(repo: Repo, kind: str) -> None:
    key = make_key(repo.path.parent / "key", kind)
    trusting(repo, signer(CI, key))
    sign_with(repo, key)
    envelope = sign(repo)
    assert believed(repo, envelope).signer == CI
    listed = repo.ask("ssh-keygen", "-l", "-f", str(key)).stdout.split()
    assert read_envelope(envelope).keyid == listed[1].decode()


def test_a_key_of_ci_is_a_file(repo: Repo) -> None:
    key = make_key(repo.path.parent / "key")
    trusting(repo, signer(CI, key))
    key.with_name("key.pub").unlink()  # a secret of CI is one file
    assert believed(repo, sign(repo, GITGATES_PROOF_KEY=str(key))).signer == CI


@pytest.mark.slow
def test_a_key_with_a_passphrase_signs_by_the_agent(repo: Repo, agent: str) -> None:
    key = make_key(repo.path.parent / "key", passphrase="secret")
    trusting(repo, signer(CI, key))
    sign_with(repo, key)
    started = time.monotonic()
    assert refused(repo) == (
        'ssh-keygen cannot sign with key: Load key "key": incorrect passphrase supplied to decrypt '
        "private key\n  It cannot be asked for here. Add the key to the agent: ssh-add key"
    )
    assert time.monotonic() - started < 3
    add(agent, key, "secret")
    assert believed(repo, sign(repo, SSH_AUTH_SOCK=agent)).signer == CI
    public = key.with_name("key.pub").read_text().strip()
    for name in ("key", "key.pub"):
        key.with_name(name).unlink()  # only the agent has it
    for literal in (public, f"key::{public}"):
        repo.git("config", "user.signingKey", literal)
        assert believed(repo, sign(repo, SSH_AUTH_SOCK=agent)).signer == CI
    repo.git("config", "--unset", "user.signingKey")
    repo.git("config", "gpg.ssh.defaultKeyCommand", "ssh-add -L")
    assert believed(repo, sign(repo, SSH_AUTH_SOCK=agent)).signer == CI


@pytest.mark.slow
def test_a_certificate_of_a_trusted_authority_is_believed(repo: Repo) -> None:
    folder = repo.path.parent
    authority, key = make_key(folder / "ca"), make_key(folder / "key")
    argv = ("ssh-keygen", "-q", "-s", str(authority), "-I", "x", "-n", CI, str(key))
    subprocess.run(argv, check=True)
    trusting(repo, signer("*@example.com", authority, "cert-authority"))
    sign_with(repo, folder / "key-cert.pub")
    repo.git("config", "user.email", CI)
    assert believed(repo, sign(repo)).signer == CI
    trusting(repo, signer("*@example.com", authority, "cert-authority"), '["*@example.com"]')
    other = proof_by(folder / "key-cert.pub", signer="bob@example.com")  # whom it is not for
    with pytest.raises(RefusedError, match=r"bob@example.com about .*: its signature is not valid"):
        believed(repo, other)


def test_the_identity_is_that_of_the_allowed_signers(repo: Repo) -> None:
    key = make_key(repo.path.parent / "key")
    trusting(repo, signer("*@x,ann@x,bob@x", key), '["*@x"]')
    sign_with(repo, key)
    assert believed(repo, sign(repo)).signer == "ann@x"
    repo.git("config", "user.email", "bob@x")
    assert believed(repo, sign(repo)).signer == "bob@x"


def test_a_key_that_cannot_be_used_is_named_with_what_to_do(repo: Repo) -> None:
    trusting(repo, "")
    set_key = (
        "Set git's signing key: git config gpg.format ssh, and git config user.signingKey "
        "FILE; in CI, GITGATES_PROOF_KEY."
    )
    assert refused(repo) == f"there is no key to sign proofs with\n  {set_key}"
    key = repo.path.parent / "key"
    sign_with(repo, key)
    assert refused(repo) == (
        "ssh-keygen cannot sign with key: Couldn't load public key key: No such file or directory\n"
        "  Name the private key, or the public key of one that is in the agent."
    )
    make_key(key)
    key.with_name("key.pub").unlink()
    key.chmod(0o644)
    assert re.search(
        r"cannot sign with key: .*too open.*\n  .*chmod 600 key$", refused(repo), re.DOTALL
    )
    key.write_text("junk")
    key.chmod(0o600)
    assert refused(repo).startswith("ssh-keygen cannot sign with key: ")
    repo.git("config", "gpg.ssh.program", "no-such-program")
    assert refused(repo) == (
        "no-such-program could not be run: not found\n  Install OpenSSH 8.2 or later."
    )
    left = [*(repo.path / ".git/gitgates/proof").iterdir()]
    assert left == []


def test_a_program_that_hangs_is_ended(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitgates.features.proof.ssh_keys.LIMIT_S", 0.3)
    key = make_key(repo.path.parent / "key")
    trusting(repo, signer(CI, key))
    sign_with(repo, key)
    envelope = sign(repo)
    program = repo.write("hang", "#!/bin/sh\nsleep 60 & wait\n")
    program.chmod(0o755)
    repo.git("config", "gpg.ssh.program", str(program))
    started = time.monotonic()
    assert refused(repo) == f"{program} could not be run: no end after 0 s".replace(
        f"{repo.path.parent}/", ""
    )
    with pytest.raises(RefusedError, match=r"it cannot be verified: .* could not be run"):
        believed(repo, envelope)
    assert time.monotonic() - started < 3


def test_a_program_that_is_too_old_is_named(repo: Repo) -> None:
    old = repo.write("old", "#!/bin/sh\nprintf 'unknown option -- Y\\nusage: x\\n' >&2\nexit 1\n")
    old.chmod(0o755)
    trusting(repo, "")
    sign_with(repo, make_key(repo.path.parent / "key"))
    repo.git("config", "gpg.ssh.program", str(old))
    assert refused(repo).endswith("unknown option -- Y\n  It needs OpenSSH 8.2 or later.")


def test_a_user_without_an_entry_is_told_so(repo: Repo) -> None:
    program = repo.write("nobody", "#!/bin/sh\necho 'No user exists for uid 4711' >&2\nexit 255\n")
    program.chmod(0o755)
    key = make_key(repo.path.parent / "key")
    trusting(repo, signer(CI, key))
    sign_with(repo, key)
    envelope = sign(repo)
    repo.git("config", "gpg.ssh.program", str(program))
    assert refused(repo).endswith(
        "No user exists for uid 4711\n  ssh-keygen needs an entry for this user in /etc/passwd."
    )
    with pytest.raises(RefusedError, match="it cannot be verified: No user exists for uid 4711"):
        believed(repo, envelope)
