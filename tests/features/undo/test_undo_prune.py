"""Which save points go, and that no other one is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Repo
from points_support import SETTINGS, files_of, found, record, saved, undo

from gitgates.core.errors import GitError, StateError
from gitgates.features.undo import points, states
from gitgates.features.undo.private_git import PrivateGit

DAY_S = 86400.0
LATER_S = time.time() + 30 * DAY_S  # objects are old enough to go then


def fill(repo: Repo, count: int) -> None:
    """Make points that have a file of their own each."""
    repo.write("a", "0\n")
    repo.commit_all("base")
    record(repo)
    for number in range(count):
        repo.write("a", f"{number}\n" * 99)
        repo.write(f"of-{number}", str(number))
        record(repo, "s")


def ids(repo: Repo) -> list[int]:
    """Return the ids of all points."""
    return [point.id for point in points.points_of(found(repo))]


def test_nothing_is_old(repo: Repo) -> None:
    fill(repo, 3)
    assert not points.prune(found(repo), SETTINGS, time.time(), at_once=True)
    assert ids(repo) == [1, 2, 3]


def test_it_looks_once_in_an_hour(repo: Repo) -> None:
    fill(repo, 3)
    points.prune(found(repo), SETTINGS, time.time())
    settings = SETTINGS._replace(keep_s=0.0)
    points.prune(found(repo), settings, time.time())
    assert ids(repo) == [1, 2, 3]
    points.prune(found(repo), settings, time.time() + 3700.0)
    assert ids(repo) == []


def test_old_ones_go_and_the_present_state_stays(repo: Repo) -> None:
    fill(repo, 3)
    now, files = saved(repo), files_of(repo.path)
    size = PrivateGit(found(repo)).size()
    points.prune(found(repo), SETTINGS, LATER_S, at_once=True)
    assert ids(repo) == []
    assert PrivateGit(found(repo)).size() < size
    assert saved(repo) == now
    repo.write("a", "agent\n")
    assert record(repo, "s"), "the files are compared with the last state, as before"
    undo(repo, "--last")
    assert files_of(repo.path) == files


def test_the_oldest_go_above_the_size(repo: Repo) -> None:
    fill(repo, 8)
    settings = SETTINGS._replace(
        max_size_bytes=PrivateGit(found(repo)).size() - 1, keep_s=60 * DAY_S
    )
    said = points.prune(found(repo), settings, LATER_S, at_once=True)
    assert "max_size" in said
    left = ids(repo)
    assert left
    assert left == list(range(9 - len(left), 9)), "the newest stay"
    for point in points.points_of(found(repo)):
        for state in (point.before, point.after):
            tree = states.load(found(repo), state).tree
            PrivateGit(found(repo)).reading.out("rev-list", "--objects", tree)
    undo(repo, str(left[0]))
    assert (repo.path / "a").read_text() == f"{left[0] - 2}\n" * 99


def test_those_of_the_last_hour_stay_whatever_they_take(repo: Repo) -> None:
    fill(repo, 4)
    settings = SETTINGS._replace(max_size_bytes=1)
    assert not points.prune(found(repo), settings, time.time(), at_once=True)
    assert ids(repo) == [1, 2, 3, 4]
    assert points.prune(found(repo), settings, time.time() + 2 * 3600, at_once=True)
    assert ids(repo) == []


def test_a_point_that_is_made_meanwhile_stays(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(repo, 2)
    listed = points.points_of

    def and_one_more(*args: object, **fields: object) -> list[points.SavePoint]:
        before = listed(*args, **fields)  # type: ignore[arg-type]
        repo.write("a", "meanwhile\n")
        assert record(repo, "s")
        return before

    with monkeypatch.context() as context:
        context.setattr(points, "points_of", and_one_more)
        points.prune(found(repo), SETTINGS._replace(keep_s=0.0), time.time() + 60.0, at_once=True)
    assert ids(repo) == [3]
    undo(repo, "--last")
    assert (repo.path / "a").read_text() == "1\n" * 99


def test_ids_are_not_given_again(repo: Repo) -> None:
    fill(repo, 2)
    points.prune(found(repo), SETTINGS, LATER_S, at_once=True)
    repo.write("a", "agent\n")
    assert record(repo, "s") == 3


def test_a_linked_worktree_keeps_its_state(repo: Repo) -> None:
    fill(repo, 1)
    repo.git("worktree", "add", "-q", "--detach", "../linked")
    linked = Repo(repo.path.parent / "linked")
    linked.write("only-here", "1\n")
    record(linked)
    points.prune(found(repo), SETTINGS, LATER_S, at_once=True)
    assert saved(linked)["only-here"] == b"1\n"


def test_a_pruning_that_is_killed_loses_no_point(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(repo, 4)
    (first, *_rest) = points.points_of(found(repo))
    truncate = os.ftruncate

    def truncate_and_die(fd: int, size: int) -> None:
        truncate(fd, size)
        raise KeyboardInterrupt

    with monkeypatch.context() as context:
        context.setattr(os, "ftruncate", truncate_and_die)
        with pytest.raises(KeyboardInterrupt):
            points.drop(found(repo), PrivateGit(found(repo)), [first], LATER_S)
    assert ids(repo) == [2, 3, 4]
    repo.write("a", "agent\n")
    assert record(repo, "s") == 5
    assert ids(repo) == [2, 3, 4, 5]
    points.prune(found(repo), SETTINGS, time.time(), at_once=True)
    assert ids(repo) == [2, 3, 4, 5]
    (first, *_rest) = points.points_of(found(repo))
    points.drop(found(repo), PrivateGit(found(repo)), [first], LATER_S)
    assert ids(repo) == [3, 4, 5]


# A full disk


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB; it takes the right to mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if not shutil.which("mount") or subprocess.run(mount, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.slow
def test_a_full_disk(disk: Path) -> None:
    repo = Repo.init(disk / "repo")
    fill(repo, 2)
    before = files_of(repo.path)
    repo.write("a", "agent\n")
    assert record(repo, "s") == 3
    room = os.statvfs(disk)
    (disk / "filler").write_bytes(b"x" * room.f_bsize * room.f_bavail)
    repo.write("of-0").chmod(0o600)
    (repo.path / "of-1").unlink()
    with pytest.raises((StateError, GitError)) as caught:
        record(repo, "s")
    assert "space" in str(caught.value).lower()
    assert ids(repo) == [1, 2, 3]
    done = repo.gitgates("undo", "3")
    assert done.returncode, "what it would take away is saved first, and cannot be"
    assert (repo.path / "a").read_text() == "agent\n"
    (disk / "filler").unlink()
    assert record(repo, "s") == 4
    undo(repo, "3")
    assert files_of(repo.path) == before
