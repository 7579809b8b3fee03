"""What an agent's Stop has proved on one machine is not run again on another one."""

from __future__ import annotations

from pathlib import Path

import pytest
from claude import bash, write
from conftest import Repo
from proof_support import make_key, signer
from scene import CHECK, STOP, Scene

ALICE = "alice@example.com"
HOOKS = """
[hooks.pre-commit]
gates = ["check"]
[hooks.pre-push]
gates = ["check"]
verify = true
[proof]
trust = ["alice@example.com"]
allowed_signers = "allowed_signers"
push = true
"""
SHIP = "git checkout -qb topic && git add -A && git commit -qm work && git push -q origin topic"


def first_machine(folder: Path) -> Scene:
    """Return a repository in which an agent works, whose owner signs; its server is beside it."""
    folder.mkdir()
    scene = Scene(folder, f"{CHECK}reuse = true\n{STOP}{HOOKS}")
    key = make_key(folder / "key")
    scene.repo.write("allowed_signers", signer(ALICE, key))
    scene.commit()
    scene.repo.gitgates("install-hooks")
    scene.repo.add_origin()
    scene.repo.git("config", "gpg.format", "ssh")
    scene.repo.git("config", "user.signingKey", str(key))
    scene.repo.git("config", "user.name", "Alice")
    scene.repo.git("config", "user.email", ALICE)
    (folder / "ran").unlink(missing_ok=True)
    return scene


def second_machine(scene: Scene, folder: Path) -> Repo:
    """Return a clone in another folder, with hooks, and with the proofs of the server."""
    folder.mkdir()
    server = scene.repo.git("remote", "get-url", "origin").strip()
    scene.repo.git("clone", "-q", server, str(folder / "repo"))
    repo = Repo(folder / "repo")
    repo.gitgates("install-hooks")
    repo.git("checkout", "-q", "topic")
    assert b"new proof" in repo.gitgates("proof", "fetch").stdout
    return repo


def test_another_machine_runs_nothing_of_what_a_stop_has_proved(tmp_path: Path) -> None:
    scene = first_machine(tmp_path / "a")
    turns = (write(scene.at("good.txt"), "x"), "done", bash(f"{SHIP}; echo shipped: $?"), "shipped")
    printed = scene.run(*turns, prompts=("write it", "ship it")).told(3)
    assert "shipped: 0" in printed
    assert "reused         0.00 s  Stop, " in printed
    assert scene.ran() == 1
    repo = second_machine(scene, tmp_path / "b")
    verified = repo.gitgates("verify", "origin/main..HEAD")
    assert f"gated ({ALICE})  work" in verified.stdout.decode()
    pushed = repo.ask("git", "push", "origin", "HEAD:refs/heads/other")
    assert f"reused         0.00 s  {ALICE}" in pushed.stderr.decode()
    assert not (tmp_path / "b/ran").exists()


@pytest.mark.nightly
def test_proofs_of_an_agents_session_are_not_believed_where_they_do_not_count(
    tmp_path: Path,
) -> None:
    scene = first_machine(tmp_path / "a")
    config = scene.at("pyproject.toml").read_text()
    strict = '{ signers = ["alice@example.com"], agents = false }'
    scene.repo.write("pyproject.toml", config.replace('["alice@example.com"]', strict))
    scene.commit()
    scene.repo.git("push", "-q", "origin", "HEAD:main")
    (tmp_path / "a/ran").unlink(missing_ok=True)
    turns = (write(scene.at("good.txt"), "x"), "done", bash(f"{SHIP}; echo shipped: $?"), "shipped")
    assert "shipped: 0" in scene.run(*turns, prompts=("write it", "ship it")).told(3)
    repo = second_machine(scene, tmp_path / "b")
    verified = repo.gitgates("verify", "origin/main..HEAD")
    assert verified.returncode == 1
    assert "ran in an agent's session" in (verified.stdout + verified.stderr).decode()
    completed = repo.gitgates("verify", "origin/main..HEAD", "--run-missing")
    assert completed.returncode == 0
    assert "1 commit: 1 run here now" in completed.stdout.decode()
