"""Whatever is killed, and when: nothing is lost, and `gitgates recover` finishes an undo."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Repo
from points_support import CONFIG, LIMITS, files_of, found, record, saved, seeds, undo
from process_support import wait_for

from gitgates.core.errors import StateError
from gitgates.features.undo import cli, put_back
from gitgates.features.undo.moments import recorded
from gitgates.files import points
from gitgates.files.memory import Memory

FILES = 6
SIGINT_STATUS = 130
LONGEST_S = 0.15  # from the journal on, an undo of these files takes less
_OURS = "import os, sys, time; from gitgates.git.repo import find_repo; "
_OURS += "from gitgates.files import points, prune; from points_support import LIMITS; "
_OURS += "repo = find_repo(os.getcwd(), dict(os.environ)); "
RECORD = _OURS + "points.record(repo, points.Author('session', 's'), points.NO_FACTS, LIMITS)"
PRUNE = _OURS + "prune.prune(repo, time.time() + 9e5, keep_s=0.0, at_once=True)"


@pytest.fixture
def worked(repo: Repo) -> Repo:
    """A repository in which an agent has changed files, and a person some of them since."""
    repo.config(CONFIG)
    for number in range(FILES):
        repo.write(f"d/{number}", f"{number}\r\n" * 9)
    repo.commit_all("base")
    repo.write("d/0", "unstaged\n").chmod(0o600)
    record(repo)
    for number in range(FILES - 1):
        repo.write(f"d/{number}", "agent\n").chmod(0o755)
    (repo.path / f"d/{FILES - 1}").unlink()
    repo.write("new/file", "agent\n")
    record(repo, "s")
    repo.write("d/1", "person\n")
    record(repo)
    return repo


def begin(repo: Repo, *argv: str, **env: str) -> subprocess.Popen[bytes]:
    """Start a process that is to be killed, in a group of its own."""
    path = os.pathsep.join((str(Path(__file__).parent), *sys.path))
    return subprocess.Popen(
        [sys.executable, *argv],
        cwd=repo.path,
        env={**os.environ, "PYTHONPATH": path, **env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def await_start(process: subprocess.Popen[bytes], has_begun: Callable[[], bool]) -> None:
    """Wait until a process is at what it is to be killed in, or has ended."""
    while process.poll() is None and not has_begun():
        time.sleep(0.001)


def kill(process: subprocess.Popen[bytes], *, whole: bool) -> None:
    """Kill a process, or it and the gits that it has started; those that are left go on."""
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if whole else os.kill)(process.pid, signal.SIGKILL)
    process.wait()


def kept(repo: Repo) -> set[bytes]:
    """Return the contents of what was kept beside."""
    return {path.read_bytes() for path in repo.path.rglob(".git/gitgates/**/kept/*/**/[0-9]")}


def check_finished(repo: Repo, before: object, now: object) -> None:
    """Check that it is as before the undo or after it, that nothing is lost, and all works."""
    done = repo.gitgates("recover")
    assert done.returncode == 0, done.stderr
    files = files_of(repo.path)
    assert not put_back.is_under_way(found(repo))
    assert files in (before, now), sorted(files.items() ^ dict(now).items())  # type: ignore[call-overload]
    if files == now:
        undo(repo, "--last")
        assert files_of(repo.path) == before
    assert b"person\n" in kept(repo)
    redone = repo.gitgates("redo")
    assert redone.returncode == 0, redone.stderr
    assert files_of(repo.path)["new/file"][1] == b"agent\n"


@pytest.fixture
def expected(worked: Repo) -> dict[str, tuple[int, bytes]]:
    """What an undo makes of it."""
    files = {f"d/{number}": (0o100644, b"%d\r\n" % number * 9) for number in range(FILES)}
    files |= {"d/0": (0o100600, b"unstaged\n")}
    config = worked.path / "pyproject.toml"
    return {**files, "pyproject.toml": (0o100644, config.read_bytes())}


STEPS = [f"take-out {number}" for number in range(1, FILES + 2)]
STEPS += [f"put-back {number}" for number in range(1, FILES + 1)]


@pytest.mark.slow
@pytest.mark.samples(3, "nightly")
@pytest.mark.parametrize("step", ["take-out 3", "put-back 2", "forget 1", *STEPS])
def test_an_undo_is_killed_at_a_step(
    worked: Repo, expected: dict[str, tuple[int, bytes]], tmp_path: Path, step: str
) -> None:
    now = files_of(worked.path)
    env = {"GITGATES_PAUSE_AT": f"{step} {tmp_path}"}
    process = begin(worked, "-m", "gitgates", "undo", "--last", **env)
    wait_for(tmp_path / "reached", process)
    kill(process, whole=False)
    assert put_back.is_under_way(found(worked))
    check_finished(worked, expected, now)


def test_an_undo_is_killed_while_its_point_is_recorded(
    worked: Repo, expected: dict[str, tuple[int, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = files_of(worked.path)
    with monkeypatch.context() as patched:

        def killed(*_args: object, **_kwargs: object) -> None:
            raise KeyboardInterrupt

        def record_and_die(*args: Any, **kwargs: Any) -> None:
            patched.setattr(points, "replace_cached", killed)
            points.record(*args, **kwargs)

        patched.setattr(put_back, "record", record_and_die)
        assert worked.gitgates("undo", "--last").returncode == SIGINT_STATUS
    assert put_back.is_under_way(found(worked))
    check_finished(worked, expected, now)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, thorough=20, nightly=129))
def test_an_undo_is_killed(worked: Repo, expected: dict[str, tuple[int, bytes]], seed: int) -> None:
    now, chance, ours = files_of(worked.path), random.Random(seed), found(worked)
    process = begin(worked, "-m", "gitgates", "undo", "--last")
    await_start(process, lambda: put_back.is_under_way(ours))
    time.sleep(chance.uniform(0.0, LONGEST_S))
    kill(process, whole=chance.random() < 0.5)
    check_finished(worked, expected, now)


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, thorough=15, nightly=84))
def test_a_save_is_killed(worked: Repo, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(FILES):
        worked.write(f"d/{number}", f"{seed}\n").chmod(0o640)
    worked.git("add", "d/1")
    now = {path: each[1] for path, each in files_of(worked.path).items()}
    process = begin(worked, "-c", RECORD)
    index = Path(found(worked).state_abs, "files.index")
    looked_ns = index.stat().st_mtime_ns
    await_start(process, lambda: index.stat().st_mtime_ns != looked_ns)
    time.sleep(chance.uniform(0.0, 0.1))
    kill(process, whole=chance.random() < 0.5)
    record(worked, "s")
    assert saved(worked) == now
    (*_, point) = recorded(found(worked))
    modes = points.state_of(found(worked), point).modes
    assert {f"d/{number}": 0o640 for number in range(FILES)}.items() <= modes.items()


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds(1, thorough=10, nightly=39))
def test_pruning_is_killed(worked: Repo, seed: int) -> None:
    chance = random.Random(seed)
    process = begin(worked, "-c", PRUNE)
    await_start(process, Path(Memory(found(worked)).folder_abs, "pruned").exists)
    time.sleep(chance.uniform(0.0, 0.05))
    kill(process, whole=chance.random() < 0.5)
    now = {path: each[1] for path, each in files_of(worked.path).items()}
    assert not record(worked)
    assert saved(worked) == now
    for point in points.points(found(worked)):
        assert points.state_of(found(worked), point)
    worked.write("d/2", "later\n")
    record(worked, "s")
    undo(worked, "--last")
    assert (worked.path / "d/2").read_bytes() == b"agent\n"


def test_what_cannot_be_kept_is_not_replaced(worked: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    worked.write("d/2", "person, too\n")
    record(worked)
    (point,) = [each for each in recorded(found(worked)) if each.author.name]
    with monkeypatch.context() as context:
        context.setattr(put_back, "make_folder", _full)
        with pytest.raises(StateError, match="could be put back"):
            go_back(worked, point)
    contents = {path.read_bytes() for path in worked.path.rglob("*") if path.is_file()}
    assert {b"person\n", b"person, too\n"} <= contents
    assert worked.gitgates("recover").returncode == 0
    assert {b"person\n", b"person, too\n"} <= kept(worked)


def go_back(repo: Repo, point: points.Point) -> None:
    """Undo a point in this process."""
    cli.go_back(found(repo), LIMITS, [point], cli.Request())


def _full(_path: str) -> None:
    raise OSError(28, "No space left on device")
