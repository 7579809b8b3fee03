"""Proofs are moved by git: to a bare repository, from it, by many at once, and past any damage."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Repo
from proof_support import make_key, sign_with
from verify_support import CONFIG, PUSH, change, notes

from gitgates.core.errors import GitError
from gitgates.features.proof.notes import ProofNotes
from gitgates.features.proof.transfer import Transfer, default_remote
from gitgates.git.repo import Repo as Found
from gitgates.git.repo import find_repo

REF = "refs/notes/gitgates"
GITGATES = (sys.executable, "-m", "gitgates")
# What an ssh client is to git: it starts the other side's program by a shell.
SSH = '#!/bin/sh\nwhile [ "$1" != host ]; do shift; done\nshift\nexec sh -c "$*"\n'


def found(repo: Repo) -> Found:
    return find_repo(str(repo.path), dict(os.environ))


def add(repo: Repo, *trees: str, line: str = '{"payload":"x"}') -> None:
    ProofNotes(found(repo)).add({tree: [line.encode()] for tree in trees})


def clone(repo: Repo, name: str, *args: str) -> Repo:
    path = repo.path.parent / name
    repo.git("clone", "-q", *args, str(repo.path.parent / "origin.git"), str(path))
    return Repo(path)


def refs(repo: Repo, *args: str) -> dict[str, str]:
    lines = repo.git(*args, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split() for line in lines)


@pytest.fixture
def pushed(repo: Repo) -> Repo:
    repo.write("a")
    repo.commit_all("a")
    repo.add_origin()
    return repo


TREE, OTHER, THIRD = ("1" * 40, "2" * 40, "3" * 40)


def test_notes_go_to_a_remote_and_come_from_there(pushed: Repo) -> None:
    add(pushed, TREE, OTHER)
    other = clone(pushed, "other")
    assert other.gitgates("proof", "fetch").stdout == b"origin: no new proofs\n"
    assert REF not in refs(other)
    assert pushed.gitgates("proof", "push").returncode == 0
    assert other.gitgates("proof", "fetch").stdout == b"origin: 2 new proofs\n"
    assert other.gitgates("proof", "fetch").stdout == b"origin: no new proofs\n"
    assert notes(other) == notes(pushed)
    assert refs(other)[REF] == refs(pushed)[REF]


def test_both_sides_are_kept(pushed: Repo) -> None:
    other = clone(pushed, "other")
    add(pushed, TREE, OTHER, line='{"payload":"a"}')
    add(other, OTHER, THIRD, line='{"payload":"b"}')
    add(other, OTHER, line='{"payload":"a"}')
    for repo in (pushed, other):
        assert repo.gitgates("proof", "push").returncode == 0
    assert pushed.gitgates("proof", "fetch").returncode == 0
    a, b = '{"payload":"a"}', '{"payload":"b"}'
    assert {tree: sorted(lines) for tree, lines in notes(pushed).items()} == {
        TREE: [a],
        OTHER: [a, b],
        THIRD: [b],
    }
    assert refs(pushed)[REF] == refs(other)[REF]
    # What was removed there comes back: nobody can take away what another has.
    other.git("notes", "--ref", "gitgates", "remove", TREE)
    other.git("push", "-q", "--no-verify", "origin", REF)
    assert pushed.gitgates("proof", "fetch").returncode == 0
    assert len(notes(pushed)) == 3
    assert pushed.gitgates("proof", "push").returncode == 0
    assert other.gitgates("proof", "fetch").returncode == 0
    assert len(notes(other)) == 3


def test_what_a_person_has_written_into_a_note_stays_as_it_is(pushed: Repo) -> None:
    tree, text = pushed.git("rev-parse", "HEAD^{tree}"), "why\n\nwhy\n\n\N{BULLET} why"
    blob = pushed.ask("git", "hash-object", "-w", "--stdin", stdin=text.encode()).stdout
    pushed.git("notes", "--ref=gitgates", "add", "-C", blob.decode().strip(), tree)
    for line in ("{}", "[]", "{}"):
        add(pushed, tree, line=line)
    noted = pushed.git("rev-parse", f"{REF}:{tree}")
    assert pushed.ask("git", "cat-file", "blob", noted).stdout == f"{text}\n{{}}\n[]\n".encode()


def test_no_other_ref_moves_and_no_hook_runs(pushed: Repo) -> None:
    remote = Repo(pushed.path.parent / "origin.git")
    before = refs(remote)
    pushed.git("config", "push.default", "matching")
    pushed.git("config", "push.followTags", "true")
    pushed.git("config", "remote.origin.push", "refs/heads/*:refs/heads/*")
    pushed.git("config", "fetch.prune", "true")
    pushed.git("config", "remote.origin.tagOpt", "--tags")
    for hook in ("pre-push", "reference-transaction", "post-checkout"):
        path = pushed.write(f".git/hooks/{hook}", "#!/bin/sh\necho ran >>ran\n")
        path.chmod(0o755)
    pushed.write("b")
    pushed.git("add", "b")
    pushed.git("-c", "core.hooksPath=/dev/null", "commit", "-qm", "b")
    pushed.git("-c", "core.hooksPath=/dev/null", "tag", "-a", "-m", "v1", "v1")
    add(pushed, TREE)
    local = refs(pushed)
    assert pushed.gitgates("proof", "push").returncode == 0
    assert refs(remote) == {**before, REF: local[REF]}
    pushed.git("config", "--add", "remote.origin.fetch", "+refs/*:refs/remotes/all/*")
    assert pushed.gitgates("proof", "fetch").returncode == 0
    assert refs(pushed) == {**local, "refs/gitgates/notes/origin": local[REF]}
    assert not (pushed.path / "ran").exists()


@pytest.mark.slow
@pytest.mark.samples(1)
@pytest.mark.parametrize(("transport", "count"), [("ssh", 3), ("file", 20), ("ssh", 20)])
def test_many_clones_push_at_once(pushed: Repo, transport: str, count: int, tmp_path: Path) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    bare = pushed.path.parent / "origin.git"
    url = f"file://{bare}" if transport == "file" else f"ssh://host{bare}"
    env = {**os.environ, "GIT_SSH_COMMAND": str(ssh), "GIT_SSH_VARIANT": "simple"}
    clones = [clone(pushed, f"clone-{number}") for number in range(count)]
    for number, each in enumerate(clones):
        each.git("remote", "set-url", "origin", url)
        add(each, f"{number + 1:040x}", TREE, line=f'{{"payload":"{number}"}}')
    began = time.monotonic()
    running = [
        subprocess.Popen(
            (*GITGATES, "proof", "push"), cwd=each.path, env=env, stdout=-3, stderr=subprocess.PIPE
        )
        for each in clones
    ]
    said = [each.communicate()[1] for each in running]
    assert ([each.returncode for each in running], b"".join(said)) == ([0] * count, b"")
    print(f"{time.monotonic() - began:.1f} s")
    assert pushed.gitgates("proof", "fetch").returncode == 0
    kept = notes(pushed)
    assert len(kept) == count + 1
    assert sorted(kept[TREE]) == sorted(f'{{"payload":"{number}"}}' for number in range(count))


# With a push


@pytest.fixture
def pushing(repo: Repo, tmp_path: Path) -> Repo:
    """Return a repository that pushes its proofs with its commits."""
    repo.shim("pre-commit", "pre-push")
    repo.config(f"{CONFIG}{PUSH}[proof]\npush = true\n")
    repo.write("a.py")
    repo.commit_all("base")
    repo.add_origin()
    sign_with(repo, make_key(tmp_path / "key"))
    change(repo, "one")
    return repo


def push(repo: Repo, *args: str, **env: str) -> list[str]:
    """Push, which has to succeed; return what gitgates says."""
    done = repo.ask("git", "push", "-q", *(args or ("origin", "main")), env=env)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stderr.decode().splitlines() if "gitgates" in line]


def origin_of(repo: Repo) -> Repo:
    return Repo(repo.path.parent / "origin.git")


@pytest.mark.slow
def test_a_push_publishes_the_proofs_of_its_commits(pushing: Repo) -> None:
    change(pushing, "later")
    assert push(pushing, "origin", "main~1:main") == []
    one, later = pushing.git("log", "-2", "--format=%T").split()[::-1]
    assert notes(origin_of(pushing)).keys() == {one}
    assert push(pushing, str(origin_of(pushing).path), "main") == []  # by its address
    assert notes(origin_of(pushing)).keys() == {one, later}
    assert push(pushing, "origin", "main:other") == []  # brings no commit
    pushing.git("push", "-q", "origin", ":other")


@pytest.mark.slow
def test_a_refused_push_publishes_nothing(pushing: Repo) -> None:
    change(pushing, "round", "--no-verify", text="bad\n")
    assert pushing.ask("git", "push", "-q", "origin", "main").returncode == 1
    assert REF not in refs(origin_of(pushing))
    assert REF not in refs(pushing)


@pytest.mark.slow
def test_a_push_needs_no_proofs(pushing: Repo, tmp_path: Path) -> None:
    pushing.git("config", "--unset", "user.signingKey")
    (line,) = push(pushing)
    assert line.startswith(
        "gitgates: the proofs were not pushed: there is no key to sign proofs with. Set git's "
        "signing key"
    )
    pushing.git("config", "user.signingKey", str(tmp_path / "key"))
    hook = origin_of(pushing).path / "hooks/update"
    hook.write_text("#!/bin/sh\ncase $1 in refs/notes/*) echo none here >&2; exit 1;; esac\n")
    hook.chmod(0o755)
    change(pushing, "two")
    (line,) = push(pushing)
    assert "the proofs were not pushed: origin: proofs cannot be pushed: remote: none here" in line
    done = pushing.gitgates("proof", "push")
    assert (done.returncode, b"hook declined" in done.stderr) == (74, True)
    assert REF not in refs(origin_of(pushing))


@pytest.mark.slow
def test_a_server_that_no_longer_answers_is_not_waited_for(pushed: Repo, tmp_path: Path) -> None:
    add(pushed, TREE)
    silent = tmp_path / "ssh"
    silent.write_text("#!/bin/sh\nsleep 300\n")
    silent.chmod(0o755)
    here = find_repo(str(pushed.path), {**os.environ, "GIT_SSH_COMMAND": str(silent)})
    began = time.monotonic()
    with pytest.raises(GitError, match=r"^ssh://host/x.git: no answer within 0.5 s$"):
        Transfer(here, "ssh://host/x.git", limit_s=0.5, unattended=True).push()
    assert time.monotonic() - began < 5
    done = pushed.gitgates("proof", "fetch", "file:///none.git")
    assert done.returncode == 74
    assert b"file:///none.git: proofs cannot be fetched: fatal: '/none.git' does not" in done.stderr


@pytest.mark.slow
def test_notes_that_a_person_pushes_are_no_code(pushing: Repo) -> None:
    pushing.gitgates("proof", "sign", "HEAD^!")
    pushing.write("gitgates.local.toml", "")
    change(pushing, "bad", "--no-verify", text="bad\n")
    assert push(pushing, "origin", REF) == []
    mixed = pushing.ask("git", "push", "origin", REF, "main")
    assert mixed.returncode == 1
    assert b"bad: running" in mixed.stderr
    assert b"notes" not in mixed.stderr
    framework = {
        "PRE_COMMIT_REMOTE_NAME": "origin",
        "PRE_COMMIT_REMOTE_BRANCH": REF,
        "PRE_COMMIT_TO_REF": pushing.git("rev-parse", REF),
    }
    pushing.config(f"{CONFIG}[hooks.pre-push]\ngates = ['no']\n[gates.no]\ncommand = 'false'\n")
    stage = ("pre-commit-hook", "pre-push")
    assert pushing.gitgates(*stage, env=framework).returncode == 0
    pushing.commit_all("configure", no_verify=True)
    framework["PRE_COMMIT_REMOTE_BRANCH"] = "refs/heads/main"
    framework["PRE_COMMIT_TO_REF"] = pushing.head()
    assert pushing.gitgates(*stage, env=framework).returncode == 1


# Other kinds of repositories


@pytest.mark.slow
def test_a_mirror_and_a_fork(pushed: Repo) -> None:
    parent = pushed.path.parent
    pushed.git("clone", "-q", "--mirror", str(parent / "origin.git"), str(parent / "mirror"))
    mirror = Repo(parent / "mirror")
    mirror.git("worktree", "add", "-q", "../of-mirror", "main")
    linked = Repo(parent / "of-mirror")
    add(linked, TREE)
    assert linked.gitgates("proof", "push").returncode == 0
    pushed.git("clone", "-q", "--bare", str(parent / "origin.git"), str(parent / "fork.git"))
    pushed.git("remote", "add", "fork", str(parent / "fork.git"))
    add(pushed, OTHER)
    assert pushed.gitgates("proof", "push", "fork").returncode == 0
    assert notes(Repo(parent / "fork.git")).keys() == {OTHER}
    assert pushed.gitgates("proof", "fetch").stdout == b"origin: 1 new proof\n"
    assert notes(origin_of(pushed)).keys() == {TREE}
    pushed.git("push", "-q", "--mirror", "fork")
    assert notes(Repo(parent / "fork.git")).keys() == {TREE, OTHER}
    assert "evidence" not in "".join(refs(Repo(parent / "fork.git")))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["--object-format=sha256", "--ref-format=reftable"])
def test_formats_of_repositories(tmp_path: Path, kind: str) -> None:
    repos = [Repo(tmp_path / name) for name in ("one", "two")]
    for repo in (Repo(tmp_path / "origin.git"), *repos):
        repo.path.mkdir()
        bare = ["--bare"] if repo.path.name == "origin.git" else []
        if repo.ask("git", "init", "-q", kind, *bare).returncode:
            pytest.skip(f"git has no {kind}")
    trees = [number * (64 if "sha256" in kind else 40) for number in "12"]
    for repo, tree in zip(repos, trees, strict=True):
        repo.git("remote", "add", "origin", "../origin.git")
        add(repo, tree)
        assert repo.gitgates("proof", "push").returncode == 0
    assert notes(repos[1]).keys() == {*trees}
    assert ProofNotes(found(repos[1])).of_tree(trees[0])


def test_a_remote_whose_name_is_in_no_ref(pushed: Repo) -> None:
    add(pushed, TREE)
    pushed.git("config", "remote.my server.url", str(origin_of(pushed).path))
    assert pushed.gitgates("proof", "push", "my server").returncode == 0
    assert REF in refs(origin_of(pushed))
    done = pushed.gitgates("proof", "fetch", "my server")
    assert (done.returncode, done.stdout) == (0, b"my server: no new proofs\n")


def test_the_remote_that_is_meant(repo: Repo) -> None:
    done = repo.gitgates("proof", "fetch")
    assert (done.returncode, b"Specify an address as REMOTE" in done.stderr) == (64, True)
    repo.git("remote", "add", "only", "../x.git")
    git = found(repo).git
    assert default_remote(git) == "only"
    repo.git("remote", "add", "other", "../y.git")
    assert b"Specify one as REMOTE: only, other" in repo.gitgates("proof", "fetch").stderr
    repo.git("remote", "add", "origin", "../z.git")
    assert default_remote(git) == "origin"
    repo.git("config", "branch.main.remote", "other")
    assert default_remote(git) == "other"
