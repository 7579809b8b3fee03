"""Proofs are moved by git: to a bare repository, from it, by many at once, and past any damage."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import Repo
from verify_support import notes

from gitgates.features.proof.notes import ProofNotes
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
@pytest.mark.parametrize("transport", ["file", "ssh"])
def test_twenty_clones_push_at_once(pushed: Repo, transport: str, tmp_path: Path) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(SSH)
    ssh.chmod(0o755)
    bare = pushed.path.parent / "origin.git"
    url = f"file://{bare}" if transport == "file" else f"ssh://host{bare}"
    env = {**os.environ, "GIT_SSH_COMMAND": str(ssh), "GIT_SSH_VARIANT": "simple"}
    clones = [clone(pushed, f"clone-{number}") for number in range(20)]
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
    assert ([each.returncode for each in running], b"".join(said)) == ([0] * 20, b"")
    print(f"{time.monotonic() - began:.1f} s")
    assert pushed.gitgates("proof", "fetch").returncode == 0
    kept = notes(pushed)
    assert len(kept) == 21
    assert sorted(kept[TREE]) == sorted(f'{{"payload":"{number}"}}' for number in range(20))
