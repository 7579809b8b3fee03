"""What others have signed counts in `gitgates verify`: of whom, for which gates; and what not."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from proof_support import make_key, make_origin, proof_by, sign_with, signer, trusting
from verify_support import append, change, notes

from gitgates.features.proof.envelope import LARGEST
from gitgates.features.proof.evidence import SignedEvidence
from gitgates.features.proof.notes import ProofNotes
from gitgates.features.proof.signing import signed, statements_of
from gitgates.features.proof.statement import Statement
from gitgates.git.commits import list_commits
from gitgates.git.repo import Git, find_repo

pytestmark = pytest.mark.slow

ALICE = "alice@example.com"
BOTH = "bypassed the gates: all, py"


@pytest.fixture
def alice(repo: Repo) -> Repo:
    """Return a repository whose signer is trusted, with a commit that is pushed and merged.

    It is made once for each worker, and copied.
    """
    made = Repo.blank.with_name("signing")
    if not made.exists():
        first = Repo.init(made / repo.path.name)
        first.shim("pre-commit", "pre-merge-commit")
        first.write("a.py", "".join(f"a = {number}\n" for number in range(30)))
        key = make_key(made / "alice")
        trusting(first, signer(ALICE, key), f'["{ALICE}"]')
        make_origin(first)
        first.git("tag", "base")
        sign_with(first, key)
    shutil.copytree(made, repo.path.parent, dirs_exist_ok=True)
    return repo


def other(repo: Repo, *args: str) -> Repo:
    """Return a clone on another machine, with the proofs of the remote."""
    path = repo.path.parent / f"other-{len(list(repo.path.parent.iterdir()))}"
    origin = f"file://{repo.path.parent}/origin.git"
    repo.git("clone", "-q", "-b", "topic", *args, origin, str(path))
    clone = Repo(path)
    assert clone.gitgates("proof", "fetch").returncode == 0
    return clone


def publish(repo: Repo) -> None:
    repo.git("push", "-q", "--no-verify", "-f", "origin", "HEAD:topic")
    done = repo.gitgates("proof", "push")
    assert (done.returncode, done.stderr) == (0, b"")


def said(repo: Repo, *args: str) -> tuple[list[str], str]:
    """Return what is said of each commit since base, and at the end; and of what was refused."""
    done = repo.gitgates("verify", "origin/main..HEAD", *args)
    lines = [line.partition("  ")[2] for line in done.stdout.decode().splitlines()]
    rest = [line for line in done.stdout.decode().splitlines() if " commit" in line]
    return [" ".join(line.split()) for line in lines if line][:9] + rest, done.stderr.decode()


def craft(repo: Repo, **fields: Any) -> None:
    """Sign what the log has of HEAD, changed, in place of what it says."""
    here = find_repo(str(repo.path), dict(os.environ))
    (statement,) = statements_of(here, list_commits(here.git, "HEAD^!"))
    gates = tuple(proof._replace(**fields) for proof in statement.gates)
    (envelope,) = signed(here, [statement._replace(gates=gates)])
    ProofNotes(here).add({statement.tree: [envelope]})
    repo.git("push", "-q", "--no-verify", "-f", "origin", "HEAD:topic", "refs/notes/gitgates")


def test_a_trusted_signer_is_believed_and_named(alice: Repo) -> None:
    change(alice, "one")
    publish(alice)
    change(alice, "round", "--no-verify")
    publish(alice)
    ci = other(alice)
    lines, refused = said(ci)
    believed = f"2 commits: 2 gates believed from {ALICE}, 0 run here now"
    assert (lines, refused) == ([f"gated ({ALICE}) one", f"{BOTH} round", believed], "")
    done = ci.gitgates("verify", "origin/main..HEAD", "--run-missing")
    assert done.stdout.count(b": running ") == 1
    assert done.stdout.decode().endswith(f"2 gates believed from {ALICE}, 2 run here now\n")
    assert (
        said(ci)[0][-1]
        == f"2 commits: 2 gates believed from {ALICE}, 2 recorded here, 0 run here now"
    )
    document = json.loads(ci.gitgates("verify", "origin/main..HEAD", "--format", "json").stdout)
    one, round_ = document["commits"]
    assert (one["state"], one["signers"]) == ("gated", {"all": ALICE, "py": ALICE})
    assert (round_["state"], round_["signers"], round_["refused"]) == ("gated", {}, [])


def test_a_run_of_the_commit_believes_them_if_asked_to(alice: Repo) -> None:
    change(alice, "one")
    publish(alice)
    ci = other(alice)

    def ends(*args: str) -> list[str]:
        ref = ("--from-ref", "origin/main")
        done = ci.gitgates("run", "pre-commit", *ref, "--format", "json", *args)
        results = json.loads(done.stdout)["results"]
        return [result.get("reused") or result["status"] for result in results]

    assert ends() == ["passed", "passed"]
    assert ends("--believe-proofs") == [f"signed by {ALICE}"] * 2
    assert ends("--believe-proofs", "--no-reuse") == ["passed", "passed"]
    ci.write("a.py", "a = 1\n")
    assert ends("--believe-proofs") == ["passed", "passed"]
    ci.commit_all("another tree")
    assert ends("--believe-proofs") == ["passed", "passed"]


def test_a_push_that_is_verified_believes_them(alice: Repo) -> None:
    change(alice, "one")
    publish(alice)
    bob = other(alice)
    bob.shim("pre-push")
    bob.write("gitgates.local.toml", "[hooks.pre-push]\nverify = true\n")
    for has_proofs in (True, False):
        bob.git("update-ref", "-d", "refs/remotes/origin/topic")
        if not has_proofs:
            bob.git("update-ref", "-d", "refs/notes/gitgates")
        done = bob.ask("git", "push", "origin", "HEAD:topic", "HEAD:refs/heads/new")
        assert done.returncode == 0
        assert (b"one: running all, py" in done.stderr) is not has_proofs
        bob.git("push", "-q", "--no-verify", "origin", ":new")


def test_a_fetch_names_what_does_not_count(alice: Repo) -> None:
    change(alice, "one")
    publish(alice)
    bob = other(alice)
    here = find_repo(str(alice.path), dict(os.environ))
    tree = alice.git("rev-parse", "HEAD^{tree}").strip()
    statements = statements_of(here, list_commits(here.git, "HEAD^!"))
    _all, proof = statements[0].gates
    for gate in (proof._replace(definition="5" * 64), proof._replace(gate="else")):
        statements.append(statements[0]._replace(gates=(gate,)))
    envelopes = [*signed(here, statements), b"[]"]
    ProofNotes(here).add({tree: envelopes, "7" * 40: envelopes[:1]})
    alice.git("push", "-q", "--no-verify", "origin", "refs/notes/gitgates")
    done = bob.gitgates("proof", "fetch")
    assert done.stdout == b"origin: 5 new proofs\n"
    reasons = sorted(line.rpartition(b": ")[2] for line in done.stderr.splitlines())
    assert reasons == [
        b"it had another definition",
        b"it has fields that DSSE does not have",
        b"it is about another tree",
        b"it says nothing about the gates that are configured here",
    ]


def test_what_is_not_believed_is_said_with_its_reason(alice: Repo, tmp_path: Path) -> None:
    change(alice, "one")
    sign_with(alice, make_key(tmp_path / "mallory"))
    publish(alice)
    lines, refused = said(other(alice))
    assert lines[:-1] == [f"{BOTH} one"]
    (line,) = refused.splitlines()
    assert ": not believed: proof of test@example.invalid about tree " in line
    assert "its signer is not trusted" in line
    document = json.loads(
        other(alice).gitgates("verify", "origin/main..HEAD", "--format", "json").stdout
    )
    assert "its signer is not trusted" in document["commits"][0]["refused"][0]
    assert said(alice) == (["gated one", "1 commit: 2 recorded here, 0 run here now"], "")


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("is_exact", False, "it ran on files other than the commit's"),
        ("gate", "", "nothing about the gate"),
        ("definition", "5" * 64, "definition"),
        ("origin", "carol@example.com", "carol@example.com"),
    ],
)
def test_what_differs_is_not_counted(alice: Repo, field: str, value: object, reason: str) -> None:
    change(alice, "one")
    if field == "gate":
        here = find_repo(str(alice.path), dict(os.environ))
        (statement,) = statements_of(here, list_commits(here.git, "HEAD^!"))
        (envelope,) = signed(here, [statement._replace(gates=statement.gates[:1])])
        ProofNotes(here).add({statement.tree: [envelope]})
        alice.git("push", "-q", "--no-verify", "origin", "HEAD:topic", "refs/notes/gitgates")
        expected = f"bypassed the gates: {statement.gates[1].gate} one"
    else:
        craft(alice, **{field: value})
        expected = f"{BOTH} one"
    lines, refused = said(other(alice))
    assert lines[0] == expected
    assert reason in refused


def test_a_note_that_was_moved_to_another_tree_is_refused(alice: Repo) -> None:
    change(alice, "one")
    publish(alice)
    change(alice, "bad", "--no-verify", text="bad\n")
    (envelope,) = notes(alice)[alice.git("rev-parse", "HEAD~^{tree}")]
    alice.git("notes", "--ref", "gitgates", "add", "-m", envelope, "HEAD^{tree}")
    publish(alice)
    lines, refused = said(other(alice))
    assert lines[:2] == [f"gated ({ALICE}) one", f"{BOTH} bad"]
    assert "it is about another tree" in refused


def test_a_rebase_is_gated_on_another_base(alice: Repo) -> None:
    change(alice, "one")
    publish(alice)
    alice.git("checkout", "-qb", "more", "base")
    alice.write("b.txt", "b\n")
    alice.commit_all("more")
    alice.git("push", "-q", "origin", "HEAD:main")
    alice.git("checkout", "-q", "main")
    alice.git("rebase", "-q", "more")
    alice.git("push", "-q", "-f", "origin", "HEAD:topic")
    ci = other(alice)
    assert said(ci)[0][0] == f"gated on another base ({ALICE}) one"
    assert said(ci, "--strict")[0][0] == f"{BOTH} one"
    # A base on which the gate is another one.
    config = (alice.path / "pyproject.toml").read_text()
    alice.git("checkout", "-q", "more")
    alice.write("pyproject.toml", config.replace("grep -n bad", "grep -n worse"))
    alice.commit_all("another gate")
    alice.git("push", "-q", "origin", "HEAD:main")
    alice.git("checkout", "-q", "main")
    alice.git("rebase", "-q", "more")
    alice.git("push", "-q", "-f", "origin", "HEAD:topic")
    lines, refused = said(other(alice))
    assert lines[0] == "bypassed the gates: py one"
    assert "gate `py`: it had another definition" in refused


def test_an_amend_and_a_squash_are_followed(alice: Repo) -> None:
    change(alice, "one")
    publish(alice)
    append(alice, "two = 1\n", "b.py")
    alice.git("add", ".")
    alice.git("commit", "-q", "--amend", "--no-edit")
    publish(alice)
    assert said(other(alice))[0][0] == f"gated ({ALICE}) one"
    change(alice, "three")
    publish(alice)
    ci = other(alice)
    made = ci.git("commit-tree", "HEAD^{tree}", "-p", "origin/main", "-m", "all")
    ci.git("branch", "branch", "HEAD")
    ci.git("reset", "-q", "--hard", made)
    assert said(ci)[0][0] == f"gated ({ALICE}) all"  # all is a gate of the tree, py of a squash


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    "how", [("--depth=1",), ("--filter=tree:0",), ("--filter=blob:none",), ("--single-branch",)]
)
def test_clones_that_lack_something(alice: Repo, how: tuple[str, ...]) -> None:
    alice.git("-C", "../origin.git", "config", "uploadpack.allowFilter", "true")
    change(alice, "one")
    publish(alice)
    clone = other(alice, *how)
    depth = ["--depth=2"] if (clone.path / ".git/shallow").exists() else []
    clone.git("fetch", "-q", *depth, "origin", "topic", "+main:refs/remotes/origin/main")
    assert said(clone)[0][0] == f"gated ({ALICE}) one"


def test_damaged_notes_are_no_proofs_and_stay(alice: Repo) -> None:
    change(alice, "one")
    publish(alice)
    tree = alice.git("rev-parse", "HEAD^{tree}")
    (envelope,) = notes(alice)[tree]
    junk = [
        b"\0\xff\r\x85",
        b'{"payload":',
        b"x" * (LARGEST + 1),
        b'{"payload":"%s"}' % (b"A" * 999),
    ]
    content = b"\n".join((*junk, envelope.encode(), *junk, b"torn"))
    blob = alice.ask("git", "hash-object", "-w", "--stdin", stdin=content).stdout.decode().strip()
    folder = alice.git("rev-parse", "HEAD^{tree}")
    above, name = tree[:2], tree[2:]

    def tree_of(*entries: str) -> str:
        listed = "".join(f"{entry}\n" for entry in entries).encode()
        return alice.ask("git", "mktree", "--missing", stdin=listed).stdout.decode().strip()

    note = tree_of(f"100644 blob {blob}\t{name}")
    made = tree_of(
        f"040000 tree {note}\t{above}",
        f"040000 tree {folder}\t{'7' * 40}",
        f"160000 commit {'8' * 40}\tx",
    )
    head = alice.git("commit-tree", made, "-p", "refs/notes/gitgates", "-m", "x")
    alice.git("update-ref", "refs/notes/gitgates", head)
    alice.git("push", "-q", "--no-verify", "origin", "refs/notes/gitgates")
    clone = other(alice)
    assert said(clone)[0][0] == f"gated ({ALICE}) one"
    sign_with(clone, Path(alice.git("config", "user.signingKey")))
    change(clone, "two", "--no-verify")
    assert clone.gitgates("verify", "HEAD^!", "--run-missing").returncode == 0
    assert clone.gitgates("proof", "push").returncode == 0
    assert (
        clone.ask("git", "cat-file", "blob", f"refs/notes/gitgates:{above}/{name}").stdout
        == content
    )
    assert len(notes(clone)) == 2
    tip = clone.git("rev-parse", "refs/notes/gitgates^{tree}")
    (clone.path / ".git/objects" / tip[:2] / tip[2:]).unlink()
    (clone.path / ".git/gitgates/proof/notes").unlink()
    lines, refused = said(clone)
    assert lines[0] == f"{BOTH} one"
    assert "others' proofs cannot be read: refs/notes/gitgates" in refused


def test_a_signed_statement_is_not_signed_again(alice: Repo) -> None:
    change(alice, "one")
    publish(alice)
    tip = alice.git("rev-parse", "refs/notes/gitgates")
    assert alice.gitgates("proof", "push").stdout == b"origin: no new proofs were signed\n"
    assert alice.git("rev-parse", "refs/notes/gitgates") == tip
    statement = Statement(tree=alice.git("rev-parse", "HEAD^{tree}"))
    assert ProofNotes(find_repo(str(alice.path), dict(os.environ))).unsigned([statement])


def test_a_flood_of_forged_proofs_takes_a_limited_time(
    alice: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    thief = make_key(tmp_path / "thief")
    tree = alice.git("rev-parse", "HEAD^{tree}")
    forged = [proof_by(thief, tree=tree, signer=ALICE, hook=f"hook-{n}") for n in range(3)]
    here = find_repo(str(alice.path), dict(os.environ))
    ProofNotes(here).add({tree: forged})
    monkeypatch.setattr("gitgates.features.proof.evidence._LIMIT_S", 1e-6)
    statements, reasons = SignedEvidence(here, pytest.fail).of_tree(tree)
    assert statements == []
    assert "its signature is not valid" in reasons[0]
    assert [reason.rpartition(": ")[2] for reason in reasons[1:]] == [
        "verifying so many takes longer than 1e-06 s"
    ] * 2


def test_numbers_travel_with_what_is_signed(alice: Repo) -> None:
    config = alice.path / "pyproject.toml"
    measured = (
        'command = "cat number"\nratchet = true\n'
        'metrics = {lines = {pattern = "([0-9]+)", better = "higher"}}'
    )
    text = config.read_text().replace('command = "true"', measured)
    config.write_text(text)
    alice.write("number", "80")
    alice.commit_all("measured")
    alice.git("push", "-q", "origin", "HEAD:main")
    publish(alice)
    clone = other(alice)
    clone.shim("pre-commit")
    clone.write("number", "70")
    clone.git("add", ".")
    worse = clone.commit("worse")
    assert worse.returncode == 1
    assert b"`lines` is 70, and was 80 at the merge base" in worse.stderr
    clone.git("update-ref", "-d", "refs/notes/gitgates")
    unknown = clone.commit("unknown")
    assert b"no `lines` is recorded for the merge base" in unknown.stderr


def test_one_envelope_at_several_trees_hides_none(alice: Repo) -> None:
    change(alice, "one")
    publish(alice)
    trees = alice.git("log", "-2", "--format=%T").split()
    alice.git("notes", "--ref", "gitgates", "copy", "-f", *trees)
    alice.git("push", "-q", "--no-verify", "origin", "refs/notes/gitgates")
    assert said(other(alice))[0][0] == f"gated ({ALICE}) one"


def test_an_amended_commit_counts_with_what_was_checked_before(alice: Repo) -> None:
    change(alice, "one")
    alice.write("c.py", "c = 1\n")
    alice.git("add", "c.py")
    alice.git("commit", "-q", "--amend", "-m", "amended")
    alice.git("commit", "-q", "--amend", "-m", "and again", "--allow-empty")
    publish(alice)
    lines, errors = said(other(alice))
    assert lines[:1] == [f"gated ({ALICE}) and again"]
    assert errors == ""


def test_notes_of_many_commits_are_read_at_once(
    alice: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        change(alice, f"change {number}")
    publish(alice)
    repo = find_repo(str(other(alice).path), dict(os.environ))
    trees = [commit.tree for commit in list_commits(repo.git, "origin/main..HEAD")]
    notes_of = ProofNotes(repo)
    notes_of.read(trees)
    unread: list[str] = []

    def one_by_one(_git: Git, names: Iterable[str], _largest: int) -> list[tuple[str, bytes]]:
        unread.extend(names)
        return []

    monkeypatch.setattr("gitgates.features.proof.notes.iterate_blobs", one_by_one)
    assert [len(notes_of.of_tree(tree)) for tree in trees] == [1] * 4
    assert unread == []
