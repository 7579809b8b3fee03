"""Whose proofs are believed: with real keys, and real ssh-keygen."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from conftest import Repo
from proof_support import (
    CI,
    CONFIG,
    make_key,
    make_origin,
    merged,
    proof_by,
    signer,
    statement,
    trust_of,
    trusting,
)

from gitgates.features.proof.trust import RefusedError, Trust, _matches


@pytest.fixture(scope="module")
def ci_key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_key(tmp_path_factory.mktemp("keys") / "ci")


def refusal(trust: Trust, envelope: bytes) -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        trust.believed(envelope)
    return caught.value


def refused(repo: Repo, envelope: bytes) -> str:
    """Return why a proof is not believed in a repository."""
    return refusal(trust_of(repo), envelope).reason


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
        r"no default branch found: main, master; to have it: git fetch origin NAME:refs/remotes/"
        r"origin/NAME && git remote set-head origin NAME$",
        refused(repo, proof_by(ci_key)),
    )


def test_what_is_not_merged_does_not_count(repo: Repo, ci_key: Path) -> None:
    thief = make_key(repo.path.parent / "thief")
    trusting(repo, signer(CI, ci_key))
    mine = signer(CI, thief) + signer("me@x", thief)
    repo.write(".gitgates-signers", mine)
    repo.config(CONFIG.replace("{trust}", '["*"]'))
    forged, own = proof_by(thief), proof_by(thief, signer="me@x")
    for commits in (True, False):  # in the working tree, then committed
        assert "no key of ci@example.com" in refused(repo, forged)
        assert "its signer is not trusted" in refused(repo, own)
        if commits:
            repo.commit_all("trust me")
    repo.git("branch", "master")
    repo.git("config", "init.defaultBranch", "master")  # a branch of here is none of the remote
    assert "its signer is not trusted" in refused(repo, own)
    merged(repo)
    assert trust_of(repo).believed(own).signer == "me@x"


def test_a_key_that_leaves_the_file_is_revoked(repo: Repo, ci_key: Path) -> None:
    trusting(repo, signer(CI, ci_key))
    envelope = proof_by(ci_key)
    assert trust_of(repo).believed(envelope)
    trusting(repo, signer("bob@example.com", ci_key))
    assert "no key of ci@example.com in the allowed signers has signed it" in refused(
        repo, envelope
    )
    repo.git("rm", "-q", ".gitgates-signers")
    repo.git("commit", "-qm", "none")
    merged(repo)
    assert "the allowed signers cannot be read: there is no .gitgates-signers in" in refused(
        repo, envelope
    )


def test_a_branch_from_before_a_revocation_does_not_bring_the_key_back(
    repo: Repo, ci_key: Path
) -> None:
    trusting(repo, signer(CI, ci_key))
    repo.git("branch", "before")
    trusting(repo, "# nobody\n")
    repo.git("checkout", "-q", "before")
    repo.write("a")
    repo.commit_all("a")
    envelope = proof_by(ci_key)
    assert "no key of ci@example.com in the allowed signers has signed it" in refused(
        repo, envelope
    )
    repo.git("checkout", "-q", "main")
    trusting(repo, signer(CI, ci_key), "[]")
    repo.git("checkout", "-q", "before")
    assert "trusts nobody, at origin/main, which is newer than HEAD" in refused(repo, envelope)
    repo.git("checkout", "-q", "main")
    trusting(repo, signer(CI, ci_key))
    repo.git("checkout", "-q", "before")
    assert trust_of(repo).believed(envelope)


def test_the_file_of_gits_own_settings_counts(repo: Repo, ci_key: Path) -> None:
    own = repo.path.parent / "own_signers"
    own.write_text(signer(CI, ci_key))
    repo.config('[proof]\ntrust = ["ci@example.com"]\n')
    repo.commit_all("trust")
    merged(repo)
    envelope = proof_by(ci_key)
    assert "neither [tool.gitgates.proof] nor git's gpg.ssh.allowedSignersFile names" in refused(
        repo, envelope
    )
    repo.git("config", "gpg.ssh.allowedSignersFile", str(own))
    assert trust_of(repo).believed(envelope)
    own.unlink()
    assert "the allowed signers cannot be read: " in refused(repo, envelope)
    repo.write("signers", signer(CI, ci_key))  # of the repository: what was merged counts
    repo.git("config", "gpg.ssh.allowedSignersFile", "signers")
    assert "there is no signers in the merge base" in refused(repo, envelope)
    repo.commit_all("signers")
    merged(repo)
    assert trust_of(repo).believed(envelope)


def test_a_revoked_key_is_refused_at_once(repo: Repo, ci_key: Path) -> None:
    trusting(repo, signer(CI, ci_key))
    envelope = proof_by(ci_key)
    assert trust_of(repo).believed(envelope)  # which is remembered
    revoked = repo.path.parent / "revoked"
    repo.ask("ssh-keygen", "-q", "-k", "-f", str(revoked), f"{ci_key}.pub")
    repo.git("config", "gpg.ssh.revocationFile", str(revoked))
    assert "its signature is not valid: " in refused(repo, envelope)
    revoked.unlink()
    assert "its signature is not valid: " in refused(repo, envelope)


def test_a_digest_tells_which_revoked_keys_were_merged(repo: Repo, ci_key: Path) -> None:
    trusting(repo, signer(CI, ci_key))
    repo.git("config", "gpg.ssh.revocationFile", "revoked")
    base = repo.git("rev-parse", "HEAD")
    digests = set()
    for keys in ("", "ssh-ed25519 AAAA\n", Path(f"{ci_key}.pub").read_text()):
        repo.write("revoked", keys)
        repo.commit_all("revoke")
        merged(repo)
        tip = repo.git("rev-parse", "HEAD")
        repo.git("checkout", "-q", base)  # which has none of them
        digests.add(trust_of(repo).digest)
        repo.git("checkout", "-q", tip)
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("trust", "options", "is_timed"),
    [
        (f'["{CI}"]', "", False),
        (f'["{CI}"]', 'valid-before="20990101"', True),
        (f'{{ signers = ["{CI}"], max_age = "2h" }}', "", True),
    ],
)
def test_a_digest_changes_where_belief_depends_on_the_time(
    repo: Repo,
    ci_key: Path,
    monkeypatch: pytest.MonkeyPatch,
    trust: str,
    options: str,
    is_timed: bool,  # noqa: FBT001 - a parameter
) -> None:
    trusting(repo, signer(CI, ci_key, options), trust=trust)
    digests = set()
    for time_s in (1.8e9, 1.8e9 + 86400.0):
        monkeypatch.setattr("gitgates.features.proof.trust.time.time", lambda time_s=time_s: time_s)
        digests.add(trust_of(repo).digest)
    assert len(digests) == 1 + is_timed


def test_a_signature_is_verified_once(repo: Repo, ci_key: Path) -> None:
    trusting(repo, signer(CI, ci_key))
    envelope = proof_by(ci_key)
    trust = trust_of(repo)
    assert trust.believed(envelope)
    gone = trust._replace(settings=trust.settings._replace(program="no-such-program"))
    assert gone.believed(envelope)
    assert "it cannot be verified: no-such-program" in str(refusal(gone, proof_by(ci_key)))
    (repo.path / ".git/gitgates/proof/verified").write_bytes(b"damaged")
    assert "it cannot be verified: no-such-program" in str(refusal(gone, envelope))


def test_a_key_that_expires_is_asked_for_each_time(repo: Repo, ci_key: Path) -> None:
    trusting(repo, signer(CI, ci_key, 'valid-before="20990101"'))
    envelope = proof_by(ci_key)
    trust = trust_of(repo)
    assert trust.believed(envelope)
    gone = trust._replace(settings=trust.settings._replace(program="no-such-program"))
    assert "it cannot be verified" in str(refusal(gone, envelope))


def test_without_valid_settings_nobody_is_believed(repo: Repo, ci_key: Path) -> None:
    repo.write(".gitgates-signers", signer(CI, ci_key))
    for settings, reason in (
        ("[proof]\ntrust = []\n", "[tool.gitgates.proof] trusts nobody, at the merge base with"),
        ("", "[tool.gitgates.proof] trusts nobody, at the merge base with origin/main"),
        ("[proof]\ntrust = 7\n", "the settings at the merge base with origin/main"),
    ):
        repo.config(settings)
        repo.commit_all("settings")
        merged(repo)
        assert reason in refused(repo, proof_by(ci_key)), settings


def test_before_the_first_commit_nobody_is_believed(repo: Repo, ci_key: Path) -> None:
    assert "without a merge base: there is no commit yet" in refused(repo, proof_by(ci_key))


def test_a_shallow_clone_without_the_merge_base_believes_nobody(repo: Repo, ci_key: Path) -> None:
    trusting(repo, signer(CI, ci_key))
    make_origin(repo)
    repo.git("checkout", "-qb", "work")
    for name in ("a", "b"):
        repo.write(name)
        repo.commit_all(name)
    repo.git("push", "-q", "origin", "work")
    repo.git("checkout", "-q", "main")
    repo.write("c")
    repo.commit_all("c")
    repo.git("push", "-q", "origin", "main")
    folder = repo.path.parent
    url = f"file://{folder}/origin.git"
    argv = ("clone", "-q", "--depth=1", "--no-single-branch", "-b", "work", url, f"{folder}/new")
    repo.git(*argv)
    other, envelope = Repo(folder / "new"), proof_by(ci_key)
    assert "HEAD and origin/HEAD have no common commit here; in a shallow clone: git" in refused(
        other, envelope
    )
    other.git("fetch", "-q", "--unshallow")
    assert trust_of(other).believed(envelope)


def test_patterns() -> None:
    pairs = {
        ("ci@x", "ci@x"): True,
        ("ci@x", "ci@xy"): False,
        ("*", "anybody"): True,
        ("*@x", "a@x"): True,
        ("*@x", "a@x.y"): False,
        ("a*b*c", "a1b2b3c"): True,
        ("a*b*c", "acb"): False,
        ("ab*ba", "aba"): False,
        ("a.c", "abc"): False,
        ("a?", "ab"): False,
    }
    assert {pair: _matches(*pair) for pair in pairs} == pairs
