"""A repository that a group shares, and one in which another user has committed once."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from conftest import SRC, Repo
from hook_support import commit

from gitgates.files.points import Author, record
from gitgates.git.repo import find_repo

CONFIG = "[gates.g]\ncommand = 'true'\n[hooks.pre-commit]\ngates = ['g']\n"
ALICE, BOB, GROUP = 12001, 12002, 12000  # nobody has these numbers


def use(repo: Repo) -> None:
    """Leave state of each kind: a run, evidence, what was restored."""
    repo.config(CONFIG)
    repo.write("a", "committed\n")
    repo.commit_all("base")
    repo.shim("pre-commit")
    repo.write("a", "staged\n")
    repo.git("add", "a")
    repo.write("a", "mine\n")
    assert commit(repo).returncode == 0
    assert repo.gitgates("run", "--all-files").returncode == 0
    repo.gitgates("verify")


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("value", "file", "folder"),
    [
        ("group", 0o660, 0o2770),
        ("true", 0o660, 0o2770),
        ("all", 0o664, 0o2775),
        ("0640", 0o640, 0o2750),
        ("umask", 0o600, 0o700),
    ],
)
def test_state_is_shared_as_git_shares_its_own(
    repo: Repo, value: str, file: int, folder: int
) -> None:
    repo.git("config", "core.sharedRepository", value)
    use(repo)
    state = repo.path / ".git/gitgates"
    assert stat.S_IMODE(state.stat().st_mode) == folder
    proofs = next((state / "proofs").glob("??")).relative_to(state)
    for name in ("lock", proofs, "config.marshal"):
        assert stat.S_IMODE((state / name).stat().st_mode) == file, name
    (run,) = (state / "runs").iterdir()
    assert stat.S_IMODE(run.stat().st_mode) == folder
    assert stat.S_IMODE((run / "result.json").stat().st_mode) == file
    if value == "group":
        shared = [state / "runs", state / "restored", *(state / "restored").iterdir()]
        assert all(path.stat().st_mode & 0o070 == 0o070 for path in shared)


def other_python() -> str:
    """Return an interpreter that any user can start: root's own often lies in its home."""
    found = shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin")
    if os.geteuid() or not found or not shutil.which("setpriv"):
        pytest.skip("needs root, setpriv, and a python3 of the system")
    return found


class User:
    """Runs commands as another user than root."""

    _can_run = False

    def __init__(self, number: int, folder: Path) -> None:
        self.number, self.folder = number, folder
        program = folder / "bin/gitgates"
        path = os.pathsep.join((str(SRC), str(Path(click.__file__).parents[1])))
        program.parent.mkdir(exist_ok=True)
        program.write_text(
            f"#!/bin/sh\nPYTHONDONTWRITEBYTECODE=1 PYTHONPATH={path} exec {other_python()} "
            '-m gitgates "$@"\n'
        )
        program.chmod(0o755)
        if not User._can_run and self.ask("gitgates --version").returncode:
            pytest.skip("the python3 of the system cannot run gitgates as another user")
        User._can_run = True

    def ask(self, command: str) -> subprocess.CompletedProcess[bytes]:
        """Run a shell command in the repository."""
        bounds = ("--clear-groups", "--inh-caps=-all", "--bounding-set=-all")
        env = {
            "PATH": f"{self.folder}/bin:/usr/bin:/bin",
            "HOME": str(self.folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": str(self.folder / "gitconfig"),
            "GIT_EDITOR": "true",
        }
        who = (f"--reuid={self.number}", f"--regid={GROUP}")
        return subprocess.run(
            ["setpriv", *who, *bounds, "sh", "-c", f"umask 002; {command}"],
            cwd=self.folder / "repo",
            env=env,
            capture_output=True,
            check=False,
            timeout=60,
        )


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can go into, unlike pytest's own."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        safe = "[safe]\n\tdirectory = *\n[user]\n\tname = T\n\temail = t@example.invalid\n"
        (Path(folder) / "gitconfig").write_text(safe)
        (Path(folder) / "gitconfig").chmod(0o644)
        yield Path(folder)


def give(path: Path, user: int) -> None:
    """Give all of a repository to a user and the group."""
    subprocess.run(["chown", "-R", f"{user}:{GROUP}", str(path)], check=True)


def partly(text: str) -> str:
    return f"echo {text} >> a && git add a && echo more >> a && git commit -qm {text}"


@pytest.mark.slow
@pytest.mark.samples(1, "nightly")
@pytest.mark.parametrize("who", [(ALICE, BOB), (ALICE, BOB, ALICE)], ids=["two", "three"])
def test_a_group_shares_hidden_work_runs_and_evidence(place: Path, who: tuple[int, ...]) -> None:
    (place / "repo").mkdir()
    users = [User(number, place) for number in who]
    repo = Repo.init(place / "repo")
    repo.git("config", "core.sharedRepository", "group")
    repo.config(CONFIG)
    repo.write("a", "a\n")
    repo.commit_all("base")
    repo.shim("pre-commit")
    give(repo.path, ALICE)
    subprocess.run(["chmod", "-R", "g+rwX", str(repo.path)], check=True)
    for user in users:
        # Git itself does not share the file of its message.
        done = user.ask(f"rm -f .git/COMMIT_EDITMSG; {partly(str(user.number))}")
        assert done.returncode == 0, done.stderr
        assert user.ask("gitgates run --all-files").returncode == 0
        done = user.ask("gitgates verify HEAD~1..HEAD")
        assert done.stdout.split()[1] == b"gated", (done.stdout, done.stderr)
    assert len(users[1].ask("gitgates runs").stdout.splitlines()) == 1 + len(who)
    doctor = users[1].ask("gitgates doctor").stdout
    assert b"cannot be read or written" not in doctor, doctor


def used_by_root(place: Path, *, first: str = "nobody") -> tuple[Repo, User]:
    """Return a repository of a person, in which root has committed once."""
    (place / "repo").mkdir()
    bob = User(BOB, place)
    repo = Repo.init(place / "repo")
    repo.config(CONFIG)
    repo.write("a", "a\n")
    repo.commit_all("base")
    repo.shim("pre-commit")
    give(repo.path, BOB)
    if first == "the person":
        assert bob.ask(partly("mine")).returncode == 0
    repo.git("config", "--global", "safe.directory", "*")
    assert repo.ask("sh", "-c", partly("root")).returncode == 0
    repo.gitgates("run", "--all-files")
    repo.gitgates("verify")
    for path in (repo.path / ".git").iterdir():
        if path.name != "gitgates":
            give(path, BOB)
    give(repo.path / "a", BOB)
    return repo, bob


@pytest.mark.slow
@pytest.mark.samples(1)
@pytest.mark.parametrize("first", ["nobody", "the person"])
def test_after_a_commit_of_root_the_command_that_mends_it_is_named(place: Path, first: str) -> None:
    repo, bob = used_by_root(place, first=first)
    state = repo.path / ".git/gitgates"
    mend = f"sudo chown -R {BOB} '{state}'"
    doctor = bob.ask("gitgates doctor")
    assert doctor.returncode == 1
    assert b"of root cannot be read or written" in doctor.stdout
    verified = bob.ask("gitgates verify HEAD~1..HEAD")
    assert verified.returncode == 73
    committed = bob.ask(partly("two"))
    listed = bob.ask("gitgates runs")
    # The person's own files of the log are theirs: what they commit is recorded in others.
    for done in (doctor, verified, listed, *((committed,) if first == "nobody" else ())):
        said = (done.stdout + done.stderr).decode()
        assert mend in said, said
        assert "Traceback" not in said
    if first == "nobody":
        assert committed.returncode == 1
        assert b"no runs found" not in listed.stdout
        assert mend in bob.ask("gitgates recover --list").stderr.decode()


@pytest.mark.thorough
def test_that_command_mends_it(place: Path) -> None:
    repo, bob = used_by_root(place)
    state = repo.path / ".git/gitgates"
    subprocess.run(["chown", "-R", str(BOB), str(state)], check=True)
    assert bob.ask(partly("three")).returncode == 0
    assert b"cannot be read" not in bob.ask("gitgates doctor").stdout
    assert bob.ask("gitgates verify HEAD~1..HEAD").stdout.split()[1] == b"gated"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_state_that_cannot_be_read_is_no_traceback(repo: Repo) -> None:
    use(repo)
    state = repo.path / ".git/gitgates"
    state.chmod(0)
    try:
        for verb in ("verify", "runs", "recover --list"):
            done = repo.gitgates(*verb.split())
            assert done.returncode == 73
            assert f"chmod -R u+rwX '{state}'".encode() in done.stderr
            assert b"Traceback" not in done.stderr
        assert b"cannot be read" in repo.gitgates("doctor").stdout
    finally:
        state.chmod(0o700)


def test_a_folder_of_ones_own_that_is_read_only_is_named_with_the_way_out(place: Path) -> None:
    (place / "repo").mkdir()
    bob = User(BOB, place)
    repo = Repo.init(place / "repo")
    repo.config(CONFIG)
    repo.write("a", "a\n")
    repo.commit_all("base")
    repo.shim("pre-commit")
    give(repo.path, BOB)
    assert bob.ask(partly("first")).returncode == 0
    (repo.path / ".git/gitgates").chmod(0o500)
    done = bob.ask(partly("second"))
    assert done.returncode == 1
    assert b"gitgates/rescue: cannot be created: Permission denied" in done.stderr
    assert b"Commit with no unstaged changes, or make its folder writable" in done.stderr
    assert (repo.path / "a").read_bytes() == b"a\nfirst\nmore\nsecond\nmore\n"
    assert bob.ask("git add a && git commit -qm all").returncode == 0


def test_the_memory_of_files_is_shared_too(repo: Repo) -> None:
    repo.git("config", "core.sharedRepository", "group")
    repo.write("a", "1\n")
    for number in range(2):
        repo.write("b", f"{number}\n")
        record(find_repo(str(repo.path), dict(os.environ)), Author())
    state = repo.path / ".git/gitgates"
    for path in (state / "files.git/objects").glob("??/*"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o440, path
    for name in ("files.git/config", "files.git/number", "files.index"):
        assert stat.S_IMODE((state / name).stat().st_mode) == 0o660, name
