"""Passes that one machine has signed, and another believes: real clones, keys, notes and hooks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cache_support import CacheServer, serving
from conftest import Repo, timeless
from hook_support import commit

from gitgates.features.proof.notes import ProofNotes
from gitgates.features.proof.signing import signed, statements_of
from gitgates.features.remote.transfer import unwrapped, wrapped
from gitgates.git.commits import list_commits
from gitgates.git.repo import find_repo
from gitgates.store.proofs import Proof, read_all

pytestmark = pytest.mark.slow

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
        """Sign what was recorded of commits, and note it."""
        repo = find_repo(str(self.repo.path), {**os.environ, **self.env})
        statements = statements_of(repo, list_commits(repo.git, *revisions))
        notes = ProofNotes(repo)
        for statement, envelope in zip(statements, signed(repo, statements), strict=True):
            notes.add({statement.tree: [envelope]})

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


def payload(envelope: str) -> bytes:
    return b64decode(json.loads(envelope)["payload"])


def change(machine: Machine, **files: str) -> None:
    for name, text in files.items():
        machine.repo.write(f"{name}.txt", text)
    machine.git("add", ".")
    done = commit(machine.repo, env=machine.env)
    assert done.returncode == 0, done.stderr


def rows(machine: Machine, hook: str = "pre-commit") -> dict[str, Proof]:
    """Return what the log of a machine has of the last commit, by gate."""
    found = read_all(str(machine.repo.path / ".git/gitgates"))
    return {row.gate: row for row in found if row.config and row.hook == hook}


@pytest.fixture(name="proved")
def _proved(machines: tuple[Machine, Machine]) -> tuple[Machine, Machine]:
    """Return both, where the first has proved a commit, and the second has fetched it."""
    first, second = machines
    change(first, a="new\n", b="new\n")
    assert first.ran() == ["whole", "files a.txt b.txt"]
    first.publish()
    second.clone()
    return first, second


def test_what_one_has_proved_no_other_runs(proved: tuple[Machine, Machine]) -> None:
    first, second = proved
    assert all(
        row.sharing.key and row.sharing.exact and not row.sharing.maker
        for row in rows(first).values()
    )
    said = timeless(second.run("run", "--all-files").encode())
    assert "whole  reused         0.00 s  a@example.com, " in said
    assert second.ran() == []
    explained = second.run("explain", "pre-commit", "--all-files")
    assert "reuse     a@example.com, " in explained
    # In the hook of git, too; what is believed is not claimed as one's own.
    second.repo.shim("pre-commit")
    second.git("commit", "-q", "--allow-empty", "-m", "again")
    assert second.ran() == []
    (row,) = [row for row in rows(second).values() if row.gate == "whole"]
    assert (row.status, row.sharing.maker) == ("passed", "signer a@example.com")
    second.sign("HEAD", "--not", "--remotes")
    again = second.git("rev-parse", "HEAD^{tree}")
    (line,) = [
        envelope
        for envelope in second.git("notes", "--ref", "gitgates", "show", again).splitlines()
        if b"b@example.com" in payload(envelope)
    ]
    assert b'"from":"a@example.com"' in payload(line).replace(b'": "', b'":"')


def test_it_holds_on_another_commit_as_a_whole(machines: tuple[Machine, Machine]) -> None:
    """What was proved of single files is not put together."""
    first, second = machines
    change(first, a="new\n")
    change(first, b="new\n")
    first.publish()
    first.ran()
    second.clone()
    assert "2 gates passed" in second.run("run", "--all-files")
    assert second.ran() == ["files a.txt b.txt"]


def _write(name: str, text: str) -> Callable[[Machine], object]:
    return lambda machine: machine.repo.write(name, text)


def _settings(text: str) -> Callable[[Machine], object]:
    """Change the settings of the second machine alone."""

    def change(machine: Machine) -> None:
        machine.repo.write(".git/info/exclude", "gitgates.local.toml\n")
        machine.repo.write("gitgates.local.toml", f"[gates.whole]\n{text}\n")

    return change


# What differs on the second machine → the gates that run there. What is installed makes none run.
OTHERS: dict[str, tuple[Callable[[Machine], object], set[str]]] = {
    "another file": (_write("c.md", ""), {"whole", "files"}),
    "content of a file": (_write("a.txt", "other\n"), {"whole", "files"}),
    "what its files depend on": (_write("check.toml", "x"), {"whole", "files"}),
    "a lock file": (_write("uv.lock", "x"), {"whole", "files"}),
    "what git leaves out": (_write(".git/info/exclude", "x"), set()),
    "another program": (
        lambda machine: (machine.home / "bin/check-files").write_text(CHECK + "\n"),
        set(),
    ),
    "another command": (_settings('command = "echo whole >> $LOG"'), {"whole"}),
    "not reused": (_settings("reuse = false"), {"whole"}),
    "too old": (_settings('max_age = "0.001s"'), {"whole"}),
}


def test_what_differs_runs(proved: tuple[Machine, Machine]) -> None:
    _first, second = proved
    ran = {}
    for name, (differ, _expected) in OTHERS.items():
        differ(second)
        second.run("run", "--all-files")
        ran[name] = {line.split()[0] for line in second.ran()}
        # What it has seen itself.
        shutil.rmtree(second.repo.path / ".git/gitgates/proofs", ignore_errors=True)
        second.git("reset", "-q", "--hard")
        second.repo.write(".git/info/exclude", "")
        second.git("clean", "-qfd")
        (second.home / "bin/check-files").write_text(CHECK)
    assert ran == {name: expected for name, (_differ, expected) in OTHERS.items()}
    second.run("run", "--all-files")
    assert second.ran() == []


def test_runs_that_ask_for_none(proved: tuple[Machine, Machine]) -> None:
    _first, second = proved
    second.run("run", "--all-files", "--no-reuse")
    assert len(second.ran()) == 2
    said = second.run("run", "--all-files", "--audit-reuse")
    assert len(second.ran()) == 2
    assert "2 gates would have been reused, and passed again" in said


@pytest.mark.samples(1)
@pytest.mark.parametrize("revision", ["HEAD^", "main"])  # a branch from before, and as merged
def test_who_is_trusted_no_longer(proved: tuple[Machine, Machine], revision: str) -> None:
    first, second = proved
    second.run("run", "--all-files")
    assert second.ran() == []
    first.repo.config(CONFIG.replace("a@example.com", "c@example.com"))
    first.git("commit", "-qam", "revoke", "--no-verify")
    first.git("push", "-q", "origin", "main")
    second.fetch()
    # The same content as before: also of the file, in which the second still trusts the first.
    second.git("checkout", "-q", revision)
    second.repo.config(CONFIG)
    said = second.run("run", "--all-files")
    assert second.ran() == ["whole", "files a.txt b.txt"]
    assert said.count("is not believed: proof of a@example.com about tree") == 1
    assert "its signer is not trusted: [tool.gitgates.proof] has c@example.com" in said


def test_a_key_in_the_tree_alone(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    first.repo.config(CONFIG.replace("a@", "nobody@"))
    first.git("commit", "-qam", "trust nobody", "--no-verify")
    first.git("push", "-q", "origin", "main")
    second.clone()
    for machine in machines:
        machine.repo.config(CONFIG)
        machine.git("switch", "-qc", "topic")
        machine.git("commit", "-qam", "trust me", "--no-verify")
    first.ran()
    change(first, a="new\n")
    first.sign("HEAD^!")
    first.git("push", "-q", "origin", "topic", "refs/notes/gitgates")
    second.git("fetch", "-q", "origin", "topic", "refs/notes/*:refs/notes/*")
    second.git("reset", "-q", "--hard", "FETCH_HEAD")
    assert first.ran() == ["whole", "files a.txt"]
    explained = second.run("explain", "pre-commit", "--all-files")
    assert "reuse     no pass yet; of others: proof of a@example.com" in explained
    assert "has nobody@example.com" in second.run("run", "--all-files")
    assert len(second.ran()) == 2


def test_passes_of_agents(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    first.repo.config(
        CONFIG.replace('["a@example.com"]', '{signers = ["a@example.com"], agents = false}')
    )
    first.git("commit", "-qam", "no agents", "--no-verify")
    first.git("push", "-q", "origin", "main")
    first.repo.write("a.txt", "new\n")
    first.run("run", CLAUDECODE="1")
    assert len(first.ran()) == 2
    change(first, a="new\n")  # a person commits what the agent has checked
    assert first.ran() == []
    makers = {gate: row.sharing.maker for gate, row in rows(first).items()}
    assert makers == {"whole": "agent", "files": "agent"}
    assert all(row.sharing.key for row in rows(first).values())
    first.publish()
    second.clone()
    said = second.run("run", "--all-files")
    assert len(second.ran()) == 2
    assert "ran in an agent's session, and `agents` is false" in said


def test_gates_of_a_push(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    first.repo.config(CONFIG.replace("hooks.pre-commit", "hooks.pre-push"))
    first.git("commit", "-qam", "gates before a push", "--no-verify")
    first.git("push", "-q", "origin", "main")
    first.repo.shim("pre-push")
    change(first, a="new\n")
    first.repo.write("untracked", "")  # so that it is checked in a private checkout
    first.git("push", "-q", "origin", "main:refs/heads/topic")
    assert first.ran() == ["whole", "files a.txt"]
    base = first.git("rev-parse", "origin/main")
    assert {row.base for row in rows(first, "pre-push").values()} == {base}
    assert all(row.sharing.key and row.sharing.exact for row in rows(first, "pre-push").values())
    first.sign("HEAD^!")
    first.git("push", "-q", "--no-verify", "origin", "main", "refs/notes/gitgates")
    second.clone()
    second.repo.shim("pre-push")
    second.repo.write("untracked", "")
    done = second.repo.ask("git", "push", "origin", "HEAD:refs/heads/other", env=second.env)
    assert b"whole  reused         0.00 s  a@example.com, " in timeless(done.stderr).encode()
    assert second.ran() == []


@pytest.fixture(name="cache")
def _cache(machines: tuple[Machine, Machine]) -> Iterator[CacheServer]:
    """Serve a cache that both machines ask, and write to."""
    first, second = machines
    with serving(CacheServer()) as server:
        remote = f'[remote]\nverdicts = "{server.url}"\nwrite = "always"\n'
        first.repo.config(CONFIG + remote)
        first.git("commit", "-qam", "cache", "--no-verify")
        first.git("push", "-q", "origin", "main")
        second.clone()
        yield server


def test_passes_of_a_cache(machines: tuple[Machine, Machine], cache: CacheServer) -> None:
    first, second = machines
    first.run("run", "--all-files")
    assert first.ran() == ["whole", "files a.txt b.txt"]
    assert len(cache.entries) == 2  # a key for each gate
    assert second.run("run", "--all-files").count("a@example.com, ") == 2
    assert second.ran() == []
    assert len(cache.entries) == 2  # what is believed is not signed again
    cache.asked.clear()
    first.run("run", "--all-files")
    assert (first.ran(), cache.asked) == ([], [])  # what is known here is not asked for


def _swap(server: CacheServer) -> None:
    one, other = server.entries
    server.entries |= {one: server.entries[other], other: server.entries[one]}


def _of(server: CacheServer, change: Callable[[bytes], bytes]) -> None:
    for key, entry in server.entries.items():
        server.entries[key] = wrapped(change(unwrapped(entry)))


def _edited(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def edit(envelope: bytes) -> bytes:
        document = json.loads(envelope)
        text = b64decode(document["payload"])
        assert old in text
        document["payload"] = b64encode(text.replace(old, new)).decode()
        return json.dumps(document, separators=(",", ":")).encode()

    return edit


POISONED: dict[str, Callable[[CacheServer], None]] = {
    "garbage": lambda server: _of(server, lambda _: b"{}"),
    "nothing": lambda server: _of(server, lambda _: b""),
    "other bytes": lambda server: server.entries.update(dict.fromkeys(server.entries, b"x")),
    "another signer": lambda server: _of(server, _edited(b"a@example.com", b"b@example.com")),
    "another gate": lambda server: _of(server, _edited(b'"whole"', b'"other"')),
    "another version": lambda server: _of(server, _edited(b'"v": 2', b'"v": 0')),
}


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    "names", [("garbage", "another signer"), (*POISONED,)], ids=["some", "all"]
)
def test_a_poisoned_cache(
    machines: tuple[Machine, Machine], cache: CacheServer, names: tuple[str, ...]
) -> None:
    first, second = machines
    first.run("run", "--all-files")
    first.ran()
    entries = {**cache.entries}
    for name in names:
        cache.entries = {**entries}
        POISONED[name](cache)
        said = second.run("run", "--all-files")
        assert second.ran() == ["whole", "files a.txt b.txt"], name
        assert "gitgates pre-commit: 2 gates passed" in said
        shutil.rmtree(second.repo.path / ".git/gitgates")  # what has passed, too
    cache.entries = entries
    second.run("run", "--all-files")
    assert second.ran() == []


def test_an_entry_for_another_key(machines: tuple[Machine, Machine], cache: CacheServer) -> None:
    first, second = machines
    first.run("run", "whole", "--all-files")
    first.run("run", "files", "--all-files")
    first.ran()
    _swap(cache)
    said = second.run("run", "--all-files")
    assert len(second.ran()) == 2
    assert "it says nothing about the gate `whole`" in said


def test_without_a_key_to_sign_with(machines: tuple[Machine, Machine], cache: CacheServer) -> None:
    first, _second = machines
    (first.home / "key").unlink()
    (first.home / "key.pub").unlink()
    done = first.repo.gitgates("run", "--all-files", env=first.env)
    assert (done.returncode, cache.entries) == (0, {})
    assert b"the passes of this run were not signed for others: " in done.stdout
    assert b"\\n" not in done.stdout  # the hint is in the same line


def test_what_verify_reuses_did_not_run_here(machines: tuple[Machine, Machine]) -> None:
    first, second = machines
    change(first, a="new\n")
    change(first, b="new\n")
    first.publish()
    first.ran()
    second.clone()
    second.git("reset", "-q", "--hard", "HEAD~2")
    second.repo.write("b.txt", "new\n")
    second.git("commit", "-qam", "only b", "--no-verify")
    said = second.run("verify", "HEAD^!", "--run-missing", "--strict")
    assert second.ran() == ["whole"]
    assert "1 commit: 1 gate believed from a@example.com, 1 run here now\n" in said


def test_what_was_believed_counts_as_long_as_its_signer(proved: tuple[Machine, Machine]) -> None:
    first, second = proved
    second.repo.shim("pre-commit")
    second.git("switch", "-qc", "topic")
    second.repo.write("c.txt", "")
    second.git("add", ".")
    second.git("commit", "-qm", "one", "--no-verify")
    first.git("fetch", "-q", str(second.repo.path), "topic")
    first.git("switch", "-qd", "FETCH_HEAD")
    first.run("verify", "HEAD^!", "--run-missing")
    first.sign("HEAD^!")
    first.git("push", "-q", "origin", "refs/notes/gitgates")
    second.git("fetch", "-q", "origin", "refs/notes/*:refs/notes/*")
    second.git("commit", "-q", "--amend", "-m", "two")  # with the passes of the first
    second.git("update-ref", "-d", "refs/notes/gitgates")
    first.ran()
    gated = "1 commit: 1 recorded here, 0 run here now"
    assert gated in second.run("verify", "HEAD^!")
    first.git("switch", "-q", "main")
    first.repo.config(CONFIG.replace("a@example.com", "c@example.com"))
    first.git("commit", "-qam", "revoke", "--no-verify")
    first.git("push", "-q", "origin", "main")
    second.git("fetch", "-q", "origin")
    assert "bypassed the gates: whole" in second.run("verify", "HEAD^!")
    assert second.ran() == []
