"""Ways to have a wrong pass believed, in real clones: the gate runs, and it is said why.

Alice is trusted, and has proved a commit of the branch `topic`; CI has fetched it, and her proof.
Mallory may push whatever the server takes.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Repo, timeless
from hook_support import commit
from proof_support import envelope_of, make_key, sign_with, signer

from gitgates.engine.reuse.signed_keys import platform
from gitgates.features.evidence.commit_evidence import MISSING
from gitgates.features.evidence.verification import verify
from gitgates.features.proof.evidence import SignedEvidence
from gitgates.features.proof.notes import ProofNotes
from gitgates.features.proof.signing import statements_of
from gitgates.features.proof.statement import Statement, to_payload
from gitgates.git.commits import list_commits
from gitgates.git.repo import Repo as FoundRepo
from gitgates.git.repo import find_repo
from gitgates.store.files import read_cached, replace_cached

ALICE, MALLORY = "alice@example.com", "mallory@example.com"
CONFIG = """
[gates.all]
command = "checker && test ! -e broken"
reuse = true
[hooks.pre-commit]
gates = ["all"]
[hooks.pre-push]
verify = true
[proof]
trust = {trust}
allowed_signers = "signers"
"""
TRUST = f'["{ALICE}"]'
MINE = CONFIG.replace("{trust}", f'["{MALLORY}"]')
NOTES = "refs/notes/gitgates"
NOT_TRUSTED = "its signer is not trusted: [tool.gitgates.proof] has alice@example.com"
NO_KEY = "no key of alice@example.com in the allowed signers has signed it"
OTHER_TREE = "it is about another tree"
OTHER_FILES = "gate `all`: it ran on files other than the commit's"
RAN, BELIEVED = ": running all", "1 gate believed from alice@example.com, 0 run here now"


class Scene:
    """Clones of Alice and of CI, and the server between them."""

    def __init__(self, place: Path) -> None:
        self.alice, self.ci, self.folder = Repo(place / "alice"), Repo(place / "ci"), place
        self.env: dict[str, str] = {}  # of CI
        self.range = "refs/remotes/origin/main..HEAD"

    @property
    def keys(self) -> tuple[Path, Path]:
        """Of Alice, and of Mallory."""
        return self.folder / "key-of-alice", self.folder / "key-of-mallory"

    def make(self, trust: str = TRUST, **env: str) -> None:
        """Make the server, with a commit that Alice has proved."""
        for key in self.keys:
            key.exists() or make_key(key)
        alice = Repo.init(self.alice.path)
        alice.config(CONFIG.replace("{trust}", trust))
        alice.write("signers", signer(ALICE, self.keys[0]))
        alice.commit_all("base")
        alice.add_origin()
        alice.git("branch", "base")
        alice.shim("pre-commit")
        alice.git("config", "user.email", ALICE)
        sign_with(alice, self.keys[0])
        self.prove("a", **env)
        self.clone()

    def again(self, trust: str = TRUST, **env: str) -> None:
        """Make it anew, on another machine."""
        for name in ("alice", "ci", "origin.git"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        self.make(trust, **env)

    def prove(self, name: str, **env: str) -> None:
        """Have Alice commit a file, with its gates, and publish that and her proof."""
        self.alice.write(name, f"{name}\n")
        self.alice.git("add", ".")
        done = commit(self.alice, name, env=env)
        assert done.returncode == 0, done.stderr
        self.publish()

    def publish(self) -> None:
        sign_with(self.alice, self.keys[0])
        self.alice.git("push", "-q", "-f", "--no-verify", "origin", "HEAD:topic")
        done = self.alice.gitgates("proof", "push")
        assert (done.returncode, done.stderr) == (0, b"")

    def clone(self, *args: str) -> None:
        shutil.rmtree(self.ci.path, ignore_errors=True)
        url = f"file://{self.folder}/origin.git"
        self.alice.git("clone", "-q", "-b", "topic", *args, url, str(self.ci.path))
        self.ci.git("config", "remote.origin.url", "../origin.git")
        self.fetch()

    def fetch(self) -> None:
        """Fetch as CI does: all branches, all tags, all notes."""
        refspecs = (f"+{NOTES}:{NOTES}", "+refs/heads/*:refs/remotes/origin/*")
        self.ci.git("fetch", "-q", "--tags", "origin", *refspecs)
        self.ci.git("checkout", "-q", "--detach", "refs/remotes/origin/topic")

    def push(self, *refs: str) -> None:
        """Have Mallory push; CI fetches it."""
        self.ci.git("push", "-q", "-f", "--no-verify", "origin", *refs)
        self.fetch()

    def commit(self, name: str = "broken", text: str = "") -> None:
        """Have Mallory push a commit that no gate has seen."""
        self.ci.write(name, text)
        self.ci.commit_all(name)
        self.push("HEAD:topic")

    def note(self, *envelopes: bytes) -> None:
        """Have Mallory push a note about the tree of HEAD."""
        ProofNotes(found(self.ci)).add({self.ci.git("rev-parse", "HEAD^{tree}"): [*envelopes]})
        self.push(NOTES)

    def only_note(self, payload: bytes) -> None:
        """Have Alice say this, and nothing else, about the tree of HEAD."""
        self.ci.git("update-ref", "-d", NOTES)
        self.ci.git("push", "-q", "--no-verify", "origin", f":{NOTES}")
        self.note(envelope_of(payload, self.keys[0]))

    def envelopes(self, tree: str = "HEAD^{tree}") -> list[bytes]:
        return ProofNotes(found(self.ci)).of_tree(self.ci.git("rev-parse", tree))

    def statement(self) -> Statement:
        """Return what Alice says of her last commit."""
        here = found(self.alice)
        (statement,) = statements_of(here, list_commits(here.git, "HEAD^!"))
        now = round(time.time(), 3)
        return statement._replace(signer=ALICE, time_s=now, platform=platform())

    def about_head(self) -> Statement:
        """Return the same about the tree of HEAD, which Alice never has seen."""
        return self.statement()._replace(tree=self.ci.git("rev-parse", "HEAD^{tree}"), commits=())

    def judge(self) -> tuple[bool, str]:
        """Return whether the gate is missing as CI verifies, and all that is said of proofs."""
        said: list[str] = []
        here = find_repo(str(self.ci.path), {**os.environ, **self.env})
        found = verify(here, (self.range,), said.append)
        said += [reason for one in found for reason in one.refused]
        return any(one.gates.get("all") == MISSING for one in found), "; ".join(said)

    def verify(self, *args: str) -> str:
        """Verify as CI does; return all that is said."""
        done = self.ci.gitgates("verify", self.range, *args, env=self.env)
        return (done.stdout + done.stderr).decode()


def found(repo: Repo) -> FoundRepo:
    return find_repo(str(repo.path), dict(os.environ))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return [tmp_path_factory.mktemp("scene")]


@pytest.fixture
def scene(made: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """Return a copy of what is made once."""
    _program(tmp_path, "true")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin{os.pathsep}{os.environ['PATH']}")
    if not (made[0] / "ci").exists():
        Scene(made[0]).make()
    shutil.copytree(made[0], tmp_path, dirs_exist_ok=True, symlinks=True)
    return Scene(tmp_path)


def _program(folder: Path, text: str) -> None:
    path = folder / "bin/checker"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_what_is_true_is_believed(scene: Scene) -> None:
    _is_believed(scene)
    done = scene.ci.gitgates("explain", "pre-commit", "--all-files")
    assert f"reuse     {ALICE}, " in done.stdout.decode()


def test_what_is_installed_on_her_machine_is_her_business(scene: Scene) -> None:
    """Another program, other packages, variables, settings: `trust` decides, and she is named."""
    home = scene.folder / "home"
    home.mkdir()
    (home / ".checkrc").write_text("strict")
    scene.env |= {"HOME": str(home), "PYTEST_ADDOPTS": "-x", "PYTHONPATH": "/opt", "CI": "true"}
    _program(scene.folder, "exit 0  # of another version")
    _is_believed(scene)
    (scene.folder / "bin/checker").unlink()  # not even installed here
    assert BELIEVED in scene.verify()


def _is_believed(scene: Scene) -> None:
    said = scene.verify("--run-missing")
    assert (BELIEVED in said, RAN in said) == (True, False), said
    done = scene.ci.gitgates("run", "pre-commit", "--all-files", env=scene.env)
    assert f"all  reused         0.00 s  {ALICE}, " in timeless(done.stdout)


# What Mallory may push as a note.


def _moved(scene: Scene) -> None:
    envelopes = scene.envelopes()
    scene.commit()
    scene.note(*envelopes)


def _own(scene: Scene) -> None:
    scene.commit()
    payload = to_payload(scene.about_head()._replace(signer=MALLORY))
    scene.note(envelope_of(payload, scene.keys[1]))


def _in_her_name(scene: Scene) -> None:
    scene.commit()
    scene.note(envelope_of(to_payload(scene.about_head()), scene.keys[1]))


def _look_alike(scene: Scene) -> None:
    scene.commit()
    name = ALICE.replace("a", "\N{CYRILLIC SMALL LETTER A}", 1)
    scene.note(envelope_of(to_payload(scene.about_head()._replace(signer=name)), scene.keys[1]))


def _swapped(scene: Scene) -> None:
    (envelope,) = scene.envelopes()
    scene.commit()
    other = json.loads(envelope_of(to_payload(scene.about_head()), scene.keys[1]))
    scene.note(json.dumps(other | {"signatures": json.loads(envelope)["signatures"]}).encode())


def _of_git(scene: Scene) -> None:
    scene.commit()
    scene.note(envelope_of(to_payload(scene.about_head()), scene.keys[0], "git"))


def _unsigned(scene: Scene) -> None:
    tree = scene.ci.git("rev-parse", "HEAD^{tree}^{tree}")
    scene.commit()
    line = {"v": 1, "tree": tree, "base": "", "hook": "pre-commit", "gates": {"all": "passed"}}
    scene.ci.git("notes", "--ref=gitgates", "add", "-f", "-m", json.dumps(line), "HEAD^{tree}")
    scene.push(NOTES)


def _evidence_of_another_clone(scene: Scene) -> None:
    scene.commit()
    line = json.dumps({"v": 1, "gates": {"all": "passed"}, "base": "", "hook": "pre-commit"})
    scene.ci.git("notes", "--ref=gitgates", "add", "-f", "-m", line, "HEAD^{tree}")
    scene.ci.git("update-ref", "refs/gitgates/evidence", NOTES)
    scene.ci.git("update-ref", "-d", NOTES)


def _tree_of_any_size(scene: Scene) -> None:
    """Push a tree of few objects with more files than any computer can list."""
    scene.commit()
    blob = scene.ci.git("hash-object", "-w", "--stdin")
    kind, inner = "100644 blob", blob
    for _ in range(8):
        rows = "".join(f"{kind} {inner}\t{number:02x}\n" for number in range(256))
        made = scene.ci.ask("git", "mktree", stdin=rows.encode()).stdout.decode().strip()
        kind, inner = "040000 tree", made
    scene.push(f"{scene.ci.git('commit-tree', inner, '-m', 'x')}:{NOTES}")


def _named(scene: Scene, name: str, text: str = "x") -> None:
    """Write a note with a name that git would not give it."""
    head = f"commit {NOTES}\ncommitter m <m> 1 +0000\ndata 0\nfrom {NOTES}^0\n"
    file = f"M 100644 inline {json.dumps(name)}\ndata {len(text)}\n{text}\n"
    scene.ci.ask("git", "fast-import", "--quiet", stdin=(head + file).encode())


def _name_of_no_tree(scene: Scene) -> None:
    scene.commit()
    _named(scene, "z" * 40)
    _named(scene, " " * 39 + "0")
    scene.push(NOTES)


def _name_with_commands(scene: Scene) -> None:
    """Have what writes notes take the name of one for commands: to move what was fetched."""
    mine, tag = _commit_of_mine(scene), "refs/tags/" + "m" * 9
    name = f"a\ndata 0\nreset refs/remotes/origin/main\nfrom {tag}\nblob"
    assert len(name.replace("/", "")) == 64
    _named(scene, name)
    scene.push(NOTES, f"{mine}:{tag}")
    _named(scene, name, "of others")
    scene.ci.git("push", "-q", "--no-verify", "origin", NOTES)
    scene.ci.git("update-ref", NOTES, f"{NOTES}^")
    _named(scene, "0" * 40, "of CI")  # so that both are merged
    assert scene.ci.gitgates("proof", "fetch").returncode == 0
    scene.range = "HEAD^!"


# What Mallory may push beside notes.


def _commit_of_mine(scene: Scene) -> str:
    """Return a commit, the parent of what is judged, in which Mallory is trusted."""
    scene.ci.config(MINE)
    scene.ci.write("signers", signer(MALLORY, scene.keys[1]))
    scene.ci.commit_all("trust me")
    mine = scene.ci.head()
    _own(scene)
    return mine


def _tag_like_the_default_branch(scene: Scene) -> None:
    mine = _commit_of_mine(scene)
    scene.ci.git("remote", "set-head", "origin", "--delete")
    scene.push(f"{mine}:refs/tags/refs/remotes/origin/HEAD")
    scene.range = "HEAD^!"


def _branch_like_the_default_branch(scene: Scene) -> None:
    mine = _commit_of_mine(scene)
    scene.ci.git(
        "push", "-q", "--no-verify", "origin", "refs/remotes/origin/main:refs/heads/master"
    )
    scene.push(f"{mine}:refs/heads/main")
    scene.ci.git("remote", "set-head", "origin", "--delete")
    scene.range = "HEAD^!"


def _branch_head(scene: Scene) -> None:
    mine = _commit_of_mine(scene)
    scene.ci.git("remote", "set-head", "origin", "--delete")
    scene.push(f"{mine}:refs/heads/HEAD")
    assert scene.ci.git("rev-parse", "refs/remotes/origin/HEAD") == mine
    scene.range = "HEAD^!"


def _branch_of_this_repository(scene: Scene) -> None:
    mine = _commit_of_mine(scene)
    for name in ("main", "origin/main", "remotes/origin/main", "refs/remotes/origin/main"):
        scene.ci.git("update-ref", f"refs/heads/{name}", mine)
    scene.range = "HEAD^!"


def _tag_like_the_range(scene: Scene) -> None:
    scene.commit()
    scene.push("HEAD:refs/tags/origin/main")
    scene.range = "origin/main..HEAD"


def _replaced_base(scene: Scene) -> None:
    mine = _commit_of_mine(scene)
    base = scene.ci.git("rev-parse", "refs/remotes/origin/main")
    made = scene.ci.git("commit-tree", f"{mine}^{{tree}}", "-m", "as if it were merged")
    scene.push(f"{made}:refs/replace/{base}")
    scene.ci.git("fetch", "-q", "origin", "refs/replace/*:refs/replace/*")
    scene.range = "HEAD^!"


def _replaced_commit(scene: Scene) -> None:
    proved = scene.ci.head()
    scene.commit()
    scene.push(f"{proved}:refs/replace/{scene.ci.head()}")
    scene.ci.git("fetch", "-q", "origin", "refs/replace/*:refs/replace/*")
    scene.ci.git("--no-replace-objects", "checkout", "-q", "-f", "--detach", "origin/topic")
    scene.range = "HEAD^!"


def _shallow(scene: Scene) -> None:
    scene.commit()
    scene.prove("b")
    scene.clone("--depth=1", "--no-single-branch")
    scene.range = "HEAD"


# What Mallory may push as a branch.


def _trust_in_the_tree(scene: Scene) -> None:
    _commit_of_mine(scene)


def _key_in_the_tree(scene: Scene) -> None:
    scene.ci.write("signers", signer(ALICE, scene.keys[1]))
    _in_her_name(scene)


def _signers_as_git_says(scene: Scene, file: str) -> None:
    scene.ci.git("checkout", "-q", "refs/remotes/origin/main")
    config = (scene.ci.path / "pyproject.toml").read_text()
    scene.ci.write("pyproject.toml", config.replace('allowed_signers = "signers"', ""))
    scene.ci.commit_all("as git says")
    scene.ci.git("push", "-q", "origin", "HEAD:main")
    scene.ci.git("config", "gpg.ssh.allowedSignersFile", file)


def _tree_of_another_worktree(scene: Scene) -> None:
    """Have the file of the signers in a worktree where somebody looks at Mallory's branch."""
    other = scene.folder / "other"
    _signers_as_git_says(scene, str(other / "signers"))
    _in_her_name(scene)
    scene.ci.git("worktree", "add", "-q", "--detach", str(other))
    (other / "signers").write_text(signer(ALICE, scene.keys[1]))


def _link_in_the_tree(scene: Scene) -> None:
    """Have a link in the tree lead to a file of git's, in which there is text of Mallory's."""
    _signers_as_git_says(scene, "signers")
    scene.ci.write(".git/FETCHED", signer(ALICE, scene.keys[1]))
    (scene.ci.path / "signers").unlink()
    (scene.ci.path / "signers").symlink_to(".git/FETCHED")
    _in_her_name(scene)


def _revocation_in_the_tree(scene: Scene) -> None:
    """Empty the file of revoked keys, in which Alice's key is."""
    scene.alice.git("checkout", "-q", "base")
    scene.alice.ask("ssh-keygen", "-q", "-k", "-f", "revoked", f"{scene.keys[0]}.pub")
    scene.alice.git("add", "revoked")
    scene.alice.git("commit", "-qm", "revoke", "--no-verify")
    scene.alice.git("push", "-q", "origin", "HEAD:main")
    scene.alice.write("revoked")
    scene.prove("c")
    scene.fetch()
    scene.ci.git("config", "gpg.ssh.revocationFile", "revoked")


def _submodule(scene: Scene) -> None:
    """Hide the commit of a submodule from the patch that Alice has proved."""
    patch = scene.alice.head()
    scene.ci.git("checkout", "-q", "refs/remotes/origin/main")
    scene.ci.write(
        ".gitmodules", '[submodule "sub"]\n\tpath = sub\n\turl = ../sub\n\tignore = all\n'
    )
    scene.ci.git("update-index", "--add", "--cacheinfo", f"160000,{patch},sub")
    scene.ci.git("add", ".gitmodules")
    scene.ci.git("commit", "-qm", "a submodule")
    scene.ci.git("cherry-pick", patch)
    scene.ci.git("update-index", "--cacheinfo", f"160000,{'1' * 40},sub")
    scene.ci.git("commit", "-q", "--amend", "--no-edit")
    scene.push("HEAD:topic")
    scene.range = "HEAD^!"


def _other_definition(scene: Scene) -> None:
    """Make the same change on a base where the gate is another one."""
    patch = scene.ci.head()
    scene.ci.git("checkout", "-q", "refs/remotes/origin/main")
    scene.ci.config(CONFIG.replace("{trust}", TRUST).replace("-e broken", "-e a"))
    scene.ci.commit_all("another gate")
    scene.ci.git("cherry-pick", patch)
    scene.push("HEAD:topic")
    scene.range = "HEAD^!"


# What Alice has honestly signed, and what does not hold here.


def _failure_that_was_let_through(scene: Scene) -> None:
    config = '[gates.all]\non_fail = "CONTINUE"\n'
    scene.alice.write("gitgates.local.toml", config)
    scene.alice.write(".git/info/exclude", "gitgates.local.toml\n")
    scene.prove("broken")
    scene.fetch()


def _untracked_file_of_hers(scene: Scene) -> None:
    config = CONFIG.replace("{trust}", TRUST).replace("! -e broken", "-e forgotten")
    scene.alice.config(config)
    scene.alice.write("forgotten")
    scene.alice.git("commit", "-qam", "needs a file")
    scene.publish()
    scene.fetch()
    scene.range = "HEAD^!"


def _working_tree_of_hers(scene: Scene) -> None:
    scene.alice.write("gitgates.local.toml", '[hooks.pre-commit]\nunstaged = "keep"\n')
    scene.alice.write(".git/info/exclude", "gitgates.local.toml\n")
    scene.alice.write("broken")
    scene.alice.write("new")  # so that it runs
    scene.alice.git("add", "broken", "new")
    (scene.alice.path / "broken").unlink()
    scene.alice.git("commit", "-qm", "broken")
    scene.publish()
    scene.fetch()


def _tolerance_of_hers(scene: Scene) -> None:
    """Have her own settings let a number get worse."""
    metrics = 'metrics = { n = { pattern = "n=(\\\\d+)", better = "lower" } }\nratchet = true'
    config = CONFIG.replace("{trust}", TRUST).replace("reuse = true", metrics)
    scene.alice.git("checkout", "-q", "base")
    scene.alice.config(config.replace("checker && test ! -e broken", "cat numbers"))
    scene.alice.write("numbers", "n=1")
    scene.prove("numbered")
    scene.alice.git("push", "-q", "--no-verify", "origin", "HEAD:main")
    scene.alice.write("numbers", "n=9")
    scene.alice.write("gitgates.local.toml", "[gates.all]\ntolerance = 100.0\n")
    scene.alice.write(".git/info/exclude", "gitgates.local.toml\n")
    scene.prove("worse")
    scene.fetch()


def _skipped_by_her(scene: Scene) -> None:
    statement = scene.statement()
    (gate,) = statement.gates
    gates = (gate._replace(status="skipped", keys=()), gate._replace(gate="other", keys=()))
    scene.commit()
    tree = scene.ci.git("rev-parse", "HEAD^{tree}")
    payload = to_payload(statement._replace(tree=tree, commits=(), gates=gates))
    scene.note(envelope_of(payload, scene.keys[0]))


def _system_of_hers(scene: Scene) -> None:
    scene.only_note(to_payload(scene.statement()._replace(platform="Darwin arm64")))


def _agent(scene: Scene) -> None:
    scene.again(f'{{ signers = ["{ALICE}"], agents = false }}', CLAUDECODE="1")


def _old(scene: Scene) -> None:
    scene.again(f'{{ signers = ["{ALICE}"], max_age = "0.001s" }}')


def _of_somebody_else(scene: Scene) -> None:
    statement = scene.statement()
    gates = tuple(each._replace(origin="bob@example.com", keys=()) for each in statement.gates)
    scene.only_note(to_payload(statement._replace(gates=gates)))


def _revoked(scene: Scene) -> None:
    scene.alice.git("checkout", "-q", "base")
    scene.alice.write("signers", "# nobody\n" + signer("bob@example.com", scene.keys[1]))
    scene.alice.git("commit", "-qam", "revoke", "--no-verify")
    scene.alice.git("push", "-q", "origin", "HEAD:main")
    scene.fetch()
    scene.range = "HEAD^!"


# What is kept in the clone.


def _verified_by_another(scene: Scene) -> None:
    """Take the list of verified signatures from a clone in which Mallory is trusted."""
    other = Scene(scene.folder / "other")
    shutil.copytree(scene.ci.path, other.ci.path)
    for key in scene.keys:
        shutil.copy(f"{key}.pub", other.folder)
        shutil.copy(key, other.folder)
    shutil.copytree(scene.folder / "origin.git", other.folder / "origin.git")
    shutil.copytree(scene.alice.path, other.alice.path)
    mine = _commit_of_mine(other)
    other.ci.git("push", "-q", "--no-verify", "origin", f"{mine}:main")
    other.fetch()
    other.range = "HEAD^!"
    assert "believed from mallory@example.com" in other.verify()
    state = ".git/gitgates/proof"
    (envelope,) = other.envelopes()  # the very same
    scene.ci.git("fetch", "-q", str(other.ci.path), "HEAD")
    scene.ci.git("push", "-q", "-f", "--no-verify", "origin", "FETCH_HEAD:topic")
    scene.fetch()
    scene.note(envelope)
    shutil.copytree(other.ci.path / state, scene.ci.path / state, dirs_exist_ok=True)
    scene.range = "HEAD^!"


def _index_of_another(scene: Scene) -> None:
    """Have the index lead from the tree of HEAD to the note of the proved one."""
    scene.verify()
    index_abs = str(scene.ci.path / ".git/gitgates/proof/notes")
    version, _tip, blobs, records = read_cached(index_abs)
    scene.commit()
    tree = bytes.fromhex(scene.ci.git("rev-parse", "HEAD^{tree}"))[:8]
    rows = {records[at : at + 12] for at in range(0, len(records), 12)}
    rows |= {tree + number.to_bytes(4, "big") for number in range(len(blobs))}
    tip = scene.ci.git("rev-parse", NOTES)
    replace_cached(index_abs, (version, tip, blobs, b"".join(sorted(rows))))


def _index_of_another_version(scene: Scene) -> None:
    scene.verify()
    envelopes = scene.envelopes()
    scene.commit()
    scene.note(*envelopes)
    replace_cached(str(scene.ci.path / ".git/gitgates/proof/notes"), (2, "of", "another version"))


WAYS: dict[Callable[[Scene], None], str] = {
    _moved: OTHER_TREE,
    _in_her_name: NO_KEY,
    _unsigned: "bypassed the gates: all",
    _tree_of_any_size: "others' proofs cannot be read: ",
    _name_with_commands: NOT_TRUSTED,
    _tag_like_the_default_branch: NOT_TRUSTED,
    _branch_like_the_default_branch: "which of origin/main, origin/master is the default branch?",
    _replaced_base: NOT_TRUSTED,
    _shallow: "nobody is trusted without a merge base: HEAD and origin/HEAD have no common commit",
    _key_in_the_tree: NO_KEY,
    _tree_of_another_worktree: NO_KEY,
    _revocation_in_the_tree: "its signature is not valid",
    _submodule: "bypassed the gates: all",
    _failure_that_was_let_through: "gate `all`: failed, not passed",
    _untracked_file_of_hers: OTHER_FILES,
    _tolerance_of_hers: "bypassed the gates: all",
    _system_of_hers: "gate `all`: it ran on Darwin arm64, but this is ",
    _of_somebody_else: "bob@example.com ran it, and only whoever ran a gate is believed",
    _verified_by_another: NOT_TRUSTED,
    _index_of_another: OTHER_TREE,
    # Each of these is like another one, or is in test_forgeries, too.
    _own: NOT_TRUSTED,
    _look_alike: NOT_TRUSTED,
    _swapped: "its signature is not valid",
    _of_git: "namespace does not match",
    _evidence_of_another_clone: "bypassed the gates: all",
    _name_of_no_tree: "bypassed the gates: all",
    _branch_head: NOT_TRUSTED,
    _branch_of_this_repository: NOT_TRUSTED,
    _replaced_commit: "bypassed the gates: all",
    _trust_in_the_tree: NOT_TRUSTED,
    _link_in_the_tree: NO_KEY,
    _other_definition: "gate `all`: it had another definition",
    _working_tree_of_hers: OTHER_FILES,
    _skipped_by_her: "gate `all`: skipped, not passed",
    _agent: "gate `all` ran in an agent's session, and `agents` is false",
    _old: "and max_age is 0.0 days",
    _revoked: NO_KEY,
    _index_of_another_version: OTHER_TREE,
}


@pytest.mark.samples(22)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_whatever_is_forged_a_gate_is_missing(scene: Scene, way: Callable[[Scene], None]) -> None:
    way(scene)
    is_missing, said = scene.judge()
    assert is_missing, said
    assert WAYS[way] in (f"bypassed the gates: all; {said}"), said


@pytest.mark.slow
@pytest.mark.samples(2)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_gate_runs_whatever_is_forged(scene: Scene, way: Callable[[Scene], None]) -> None:
    way(scene)
    said = scene.verify()
    assert (WAYS[way] in said, "bypassed the gates: all" in said) == (True, True), said
    assert RAN in scene.verify("--run-missing")


def test_a_tag_is_not_taken_for_the_branch_of_a_range(scene: Scene) -> None:
    _tag_like_the_range(scene)
    done = scene.ci.gitgates("verify", scene.range)
    assert (done.returncode, done.stdout) == (64, b"")
    assert b"refname 'origin/main' is ambiguous" in done.stderr


@pytest.mark.slow
@pytest.mark.samples(2)
@pytest.mark.parametrize("way", [_moved, _key_in_the_tree, _own, _in_her_name, _tree_of_any_size])
def test_a_push_is_not_let_through(scene: Scene, way: Callable[[Scene], None]) -> None:
    way(scene)
    scene.ci.shim("pre-push")
    scene.ci.git("update-ref", "-d", "refs/remotes/origin/topic")
    done = scene.ci.ask("git", "push", "origin", "HEAD:refs/heads/other")
    said = done.stderr.decode()
    assert (WAYS[way] in said, RAN in said) == (True, True), said
    assert bool(done.returncode) == (scene.ci.path / "broken").exists()


@pytest.mark.samples(2)
@pytest.mark.parametrize("way", [_revoked, _agent, _old])
def test_a_run_does_not_reuse_it(scene: Scene, way: Callable[[Scene], None]) -> None:
    way(scene)
    done = scene.ci.gitgates("run", "pre-commit", "--all-files", env=scene.env)
    assert f"{ALICE}, " not in done.stdout.decode()
    assert b"all  passed" in done.stdout


@pytest.mark.slow
@pytest.mark.samples(1)
@pytest.mark.parametrize("count", [100, 10_000])
def test_any_number_of_proofs_takes_some_seconds(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """So many envelopes claim to be of Alice, before the one that is."""
    (envelope,) = scene.envelopes()
    document = json.loads(envelope)
    tree = scene.ci.git("rev-parse", "HEAD^{tree}")
    forged = [
        json.dumps(document | {"signatures": [document["signatures"][0] | {"keyid": str(at)}]})
        for at in range(count)
    ]
    text = "\n".join(line.replace('"sig": "LS0', '"sig": "LS1') for line in forged).encode()
    blob = scene.ci.ask("git", "hash-object", "-w", "--stdin", stdin=text).stdout.decode().strip()
    scene.ci.git("update-ref", "-d", NOTES)
    scene.ci.git("notes", "--ref=gitgates", "add", "-C", blob, tree)
    began_s = time.monotonic()
    assert RAN in scene.verify("--run-missing")
    assert time.monotonic() - began_s < 20
    monkeypatch.setattr("gitgates.features.proof.evidence._LIMIT_S", 0.0)
    monkeypatch.setattr("gitgates.features.proof.notes._MOST_LINES", 2)
    _statements, refused = SignedEvidence(found(scene.ci), print).of_tree(tree)
    assert refused[-1:] == ["proofs were not read: verifying so many takes longer than 0 s"]


def test_there_are_many_ways() -> None:
    """Beside the 68 of test_forgeries, and those in which test_passes poisons a cache."""
    assert len(WAYS) >= 38
