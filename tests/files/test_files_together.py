"""Several looks at once, a person's git beside them, and processes that are killed."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Repo
from files_support import listed, present, repository, seen

from gitgates.files.memory import Memory
from gitgates.files.points import Author, points, record

pytestmark = pytest.mark.slow


@pytest.fixture
def filled(repo: Repo) -> Repo:
    for number in range(60):
        repo.write(f"d{number % 7}/{number}", f"{number}\n" * 20)
    repo.write(".gitignore", "*.log\n")
    repo.commit_all("first")
    return repo


def in_child(work: Callable[[], object]) -> int:
    """Start a process that does something, and ends with 0 if that went well."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            os.setpgid(0, 0)
            work()
            status = 0
        except BaseException:
            traceback.print_exc()  # it would end unseen
            sys.stderr.flush()
            raise
        finally:
            os._exit(status)
    with contextlib.suppress(OSError):  # it may have ended
        os.setpgid(pid, pid)
    return pid


def change(repo: Repo, rand: random.Random) -> None:
    for _ in range(rand.randint(1, 20)):
        number = rand.randrange(80)
        repo.write(f"d{number % 7}/{number}", str(rand.random()) * rand.randint(1, 50))
    repo.write("x.log", str(rand.random()))


def test_points_of_several_processes_are_one_chain(filled: Repo) -> None:
    def work(number: int) -> None:
        rand = random.Random(number)
        for _ in range(3):
            change(filled, rand)
            record(repository(filled), Author("session", str(number)))

    pids = [in_child(lambda number=number: work(number)) for number in range(3)]  # type: ignore[misc]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0, 0, 0]
    every = points(repository(filled))
    assert [point.parent for point in every] == ["", *(point.id for point in every[:-1])]
    assert len({point.number for point in every}) == len(every)
    assert listed(filled, seen(filled).tree) == present(filled)


def test_a_persons_git_beside_looks_fails_as_little_as_they_do(filled: Repo) -> None:
    def work() -> None:
        for _ in range(6):
            record(repository(filled), Author())

    pid = in_child(work)
    rand = random.Random(1)
    for number in range(4):
        change(filled, rand)
        filled.git("add", "-A")
        filled.git("commit", "-qm", str(number))
        filled.git("gc", "-q", "--prune=now")
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert listed(filled, seen(filled).tree) == present(filled)


def kill_and_go_on(repo: Repo, rand: random.Random, longest_s: float) -> None:
    change(repo, rand)
    pid = in_child(lambda: record(repository(repo), Author("session", "killed")))
    time.sleep(rand.random() * longest_s)
    os.killpg(pid, signal.SIGKILL) if rand.random() < 0.5 else os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    if rand.random() < 0.3:
        repo.git("add", "-A")
    record(repository(repo), Author())
    found = seen(repo)
    assert listed(repo, found.tree) == present(repo)
    last = points(repository(repo))[-1]
    assert last.tree == found.tree
    checked = Memory(repository(repo)).reading.ask("rev-list", "--objects", last.id)
    assert not checked.exit_status, checked.stderr


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.samples(1, "nightly")
def test_a_kill_at_any_moment_loses_nothing(filled: Repo, seed: int) -> None:
    rand = random.Random(seed)
    for _ in range(6):
        kill_and_go_on(filled, rand, 0.15)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.nightly
def test_many_kills_lose_nothing(filled: Repo, seed: int) -> None:
    rand = random.Random(seed + 100)
    for _ in range(15):
        kill_and_go_on(filled, rand, 0.3)


def test_a_full_file_system(tmp_path: Path) -> None:
    """In a namespace of its own, if that is permitted."""
    script = """
        set -e
        mount -t tmpfs -o size=1100k tmpfs "$1"
        git init -q "$1/r"; cd "$1/r"; echo a > a; git add a
        git -c user.name=a -c user.email=a commit -qm a
        head -c 600000 /dev/urandom > large
        export HOME=/nonexistent XDG_STATE_HOME=
        "$2" -c '
import os
from gitgates.core.errors import GitgatesError
from gitgates.files.look import look
from gitgates.git.repo import find_repo
repo = find_repo(os.getcwd(), dict(os.environ))
try:
    look(repo)
except GitgatesError as error:
    print("refused", error.message)
os.unlink("large")
found = look(repo)
print(found.tree == repo.git.out("rev-parse", "HEAD^{tree}").decode().strip())
'
    """

    done = subprocess.run(
        ("unshare", "-rm", "sh", "-c", script, "sh", str(tmp_path), sys.executable),
        capture_output=True,
        text=True,
        check=False,
    )
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("no namespaces here")
    assert done.stdout.startswith("refused"), done.stderr
    assert done.stdout.endswith("True\n"), done.stdout
