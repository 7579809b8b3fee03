"""`gitgates proof`: sign, list, show, verify, export and import, between two clones."""

from __future__ import annotations

import json

import pytest
from conftest import Repo
from hook_support import commit
from proof_support import CI, make_key, make_origin, sign_with, signer, trusting


@pytest.fixture
def signing(repo: Repo) -> Repo:
    """Return a repository with a commit that its gates passed, and a key that it trusts."""
    key = make_key(repo.path.parent / "key")
    trusting(repo, signer(CI, key))
    sign_with(repo, key)
    repo.shim("pre-commit")
    repo.write("a.py", "a = 1\n")
    repo.git("add", ".")
    assert commit(repo, "one").returncode == 0
    return repo


def lines(repo: Repo, *args: str, status: int = 0) -> list[str]:
    """Return what a verb prints, with single spaces."""
    done = repo.gitgates("proof", *args)
    assert (done.returncode, done.stderr) == (status, b""), done.stderr
    return [" ".join(line.split()) for line in done.stdout.decode().splitlines()]


def test_sign_then_list_and_verify(signing: Repo) -> None:
    head = signing.head()[:7]
    assert lines(signing, "list") == [f"{head} no proof"]
    assert lines(signing, "verify", "HEAD", status=1) == ["HEAD: no proof"]
    assert lines(signing, "sign") == [f"{head} signed: all, py one"]
    assert lines(signing, "list") == [f"{head} {CI} all, py believed"]
    tree = signing.git("rev-parse", "HEAD^{tree}")[:7]
    assert lines(signing, "verify", "HEAD") == [f"proof of {CI} about tree {tree}: believed"]
    assert lines(signing, "sign") == [f"{head} already signed one"]


def test_sign_says_which_gates_others_will_run(signing: Repo) -> None:
    signing.write("b.py", "b = 1\n")
    signing.git("add", "b.py")
    assert commit(signing, "two", env={"SKIP": "py"}).returncode == 0
    signing.write("untracked", "")
    signing.write("c.py", "c = 1\n")
    signing.git("add", "c.py")
    assert commit(signing, "three").returncode == 0
    skipped = "others will run py again: skipped, not passed"
    why = "it ran on files other than the commit's, or on a server"
    said = lines(signing, "sign", "HEAD~2..")
    assert said[1::2] == [skipped, f"others will run all, py again: {why}"]
    assert lines(signing, "sign", "HEAD~2..")[1::2] == said[1::2]  # signed already
    assert f"py passed not believed: {why} 0.0 s" in lines(signing, "show", "HEAD")


def test_export_then_import_into_another_clone(signing: Repo) -> None:
    lines(signing, "sign")
    folder = signing.path.parent
    make_origin(signing, "HEAD~")
    signing.git("push", "-q", "origin", "HEAD:work")
    signing.git("clone", "-q", str(folder / "origin.git"), str(folder / "other"))
    name = f"{folder}/HEAD-1"
    said = lines(signing, "export", "HEAD", "--output", str(folder))
    command = (
        f"ssh-keygen -Y verify -n gitgates -I {CI} -f ALLOWED_SIGNERS -s {name}.sig < {name}.pae"
    )
    assert said == [f"{name}.json: believed", command]
    plain = command.replace("ALLOWED_SIGNERS", ".gitgates-signers")
    done = signing.ask("sh", "-c", plain)
    assert done.stdout.startswith(f'Good "gitgates" signature for {CI} with ED25519'.encode())
    other = Repo(folder / "other")
    tree = signing.git("rev-parse", "HEAD^{tree}")[:7]
    title = f"proof of {CI} about tree {tree}"
    assert lines(other, "verify", f"{name}.json") == [f"{title}: believed"]
    assert lines(other, "import", f"{name}.json") == [f"{name}.json: {title}: added, believed"]
    assert lines(other, "verify", "origin/work") == [f"{title}: believed"]
    paragraph = "\n".join(lines(other, "show", "--markdown", "origin/work"))
    assert paragraph.startswith("Gates of `pre-commit` on tree `")
    assert f"commit `{signing.head()[:7]}`: passed: `all`, `py`. Signed by " in paragraph
    shown = lines(other, "show", "origin/work")
    assert shown[:2] == [title, "believed"]
    assert shown[3] == f"commit {signing.head()}"
    document = json.loads(other.gitgates("proof", "list", "origin/work", "--format", "json").stdout)
    (listed,) = document["commits"]
    assert [proof["believed"] for proof in listed["proofs"]] == [True]
    assert [g["status"] for g in listed["proofs"][0]["statement"]["gates"]] == ["passed", "passed"]


def test_what_is_no_proof_is_not_imported(signing: Repo) -> None:
    signing.write("junk.json", "{}")
    done = signing.gitgates("proof", "import", "junk.json")
    assert done.returncode == 1
    assert done.stderr.decode() == (
        "gitgates: junk.json: not a proof of a commit: it is not an envelope: it has fields "
        "that DSSE does not have\n"
    )
    assert lines(signing, "verify", "junk.json", status=1) == [
        "not believed: it is not an envelope: it has fields that DSSE does not have"
    ]
    done = signing.gitgates("proof", "show", "nothing")
    assert done.returncode == 64
    assert done.stderr.startswith(b"gitgates: `nothing` is neither a commit nor a file: ")
