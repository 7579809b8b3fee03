"""Passes that one machine has signed, and another believes: real clones, keys, notes and hooks."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import Repo

CONFIG = """
[gates.whole]
command = "echo whole >> $LOG; ! grep -qs BAD a.txt"
reuse = true
[gates.files]
command = ["check-files"]
files = ["*.txt"]
pass_files = true
reuse = "by-file"
inputs = ["check.toml"]
[hooks.pre-commit]
gates = ["whole", "files"]
[proof]
trust = ["a@example.com"]
allowed_signers = "signers"
"""
CHECK = '#!/bin/sh\necho "files $*" >> "$LOG"\n! grep -qs BAD "$@"\n'
# What a gate runs; `LOG` is a file of the test, and no input of it.
SIGN = """
import sys
from gitgates.features.proof.notes import ProofNotes
from gitgates.features.proof.signing import signed, statements_of
from gitgates.git.commits import list_commits
from gitgates.git.repo import find_repo
import os
repo = find_repo(os.getcwd(), dict(os.environ))
statements = statements_of(repo, list_commits(repo.git, *sys.argv[1:]))
notes = ProofNotes(repo)
for statement, envelope in zip(statements, signed(repo, statements)):
    notes.add({statement.tree: [envelope]})
"""


class Machine:
    """A clone on a machine of its own: another folder, home, user and key."""

    def __init__(self, place: Path, name: str) -> None:
        self.name, self.place = name, place
        self.home = place / f"home-of-{name}"
        self.repo = Repo(place / f"code-{name}/project")
        (self.home / "bin").mkdir(parents=True)
        check = self.home / "bin/check-files"
        check.write_text(CHECK)
        check.chmod(0o755)
        key = self.home / "key"
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key), "-C", name]
        subprocess.run(make, check=True)
        config = self.home / "gitconfig"
        config.write_text(
            f"[user]\nname = {name}\nemail = {name}@example.com\nsigningKey = {key}\n"
            "[gpg]\nformat = ssh\n[init]\ndefaultBranch = main\n"
        )
        self.env = {
            "HOME": str(self.home),
            "GIT_CONFIG_GLOBAL": str(config),
            "PATH": f"{self.home}/bin{os.pathsep}{os.environ['PATH']}",
            "XDG_CONFIG_HOME": str(self.home / ".config"),
            "LOG": str(place / "log"),
        }

    @property
    def signer(self) -> str:
        return f"{self.name}@example.com {(self.home / 'key.pub').read_text()}"

    def git(self, *args: str, **env: str) -> str:
        return self.repo.git(*args, env={**self.env, **env})

    def run(self, *args: str, **env: str) -> str:
        """Run gitgates; return what it says."""
        done = self.repo.gitgates(*args, env={**self.env, **env})
        return (done.stdout + done.stderr).decode()

    def clone(self) -> None:
        self.repo.path.parent.mkdir()
        origin = str(self.place / "origin.git")
        subprocess.run(
            ["git", "clone", "-q", origin, self.repo.path],
            check=True,
            env={**os.environ, **self.env},
        )
        self.fetch()

    def fetch(self) -> None:
        self.git("pull", "-q", "--ff-only")
        self.git("fetch", "-q", "origin", "refs/notes/*:refs/notes/*")

    def sign(self, *revisions: str) -> None:
        done = self.repo.ask("python3", "-c", SIGN, *revisions, env=self.env)
        assert done.returncode == 0, done.stderr.decode()

    def publish(self) -> None:
        """Sign what was committed, and push it."""
        self.sign("HEAD", "--not", "--remotes")
        self.git("push", "-q", "origin", "main", "refs/notes/gitgates")

    def ran(self) -> list[str]:
        """Return what gates have run on any machine since the last call."""
        log = self.place / "log"
        lines = log.read_text().splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines


@pytest.fixture(name="machines")
def _machines(tmp_path: Path) -> tuple[Machine, Machine]:
    first, second = Machine(tmp_path, "a"), Machine(tmp_path, "b")
    subprocess.run(
        ["git", "init", "-q", "--bare", "-b", "main", tmp_path / "origin.git"], check=True
    )
    first.repo.path.parent.mkdir()
    Repo.init(first.repo.path)
    first.repo.config(CONFIG)
    for name in ("a.txt", "b.txt", "check.toml"):
        first.repo.write(name, f"{name}\n")
    first.repo.write("signers", first.signer + second.signer)
    first.git("add", ".")
    first.git("commit", "-qm", "base")
    first.git("remote", "add", "origin", str(tmp_path / "origin.git"))
    first.git("push", "-q", "-u", "origin", "main")
    first.repo.shim("pre-commit")
    return first, second


def change(machine: Machine, **files: str) -> None:
    for name, text in files.items():
        machine.repo.write(f"{name}.txt", text)
    machine.git("add", ".")
    machine.git("commit", "-qm", "change")


def test_what_one_has_proved_no_other_runs(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    change(first, a="new\n", b="new\n")
    assert first.ran() == ["whole", "files a.txt b.txt"]
    first.publish()
    second.clone()
    said = second.run("run", "--all-files")
    assert second.ran() == []
    assert "a@example.com" in said
    print(said)
