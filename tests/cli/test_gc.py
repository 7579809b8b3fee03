"""`gitgates gc`: what grows old goes, what somebody uses stays."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest
from conftest import Repo

from gitgates.core.types import Config
from gitgates.git.repo import find_repo
from gitgates.worktree.cache import cache_path
from gitgates.worktree.gc import collect, collect_if_due

DAY_S = 24 * 3600.0


@pytest.fixture
def sessions(repo: Repo) -> Path:
    folder = repo.path / ".git/gitgates/sessions"
    folder.mkdir(parents=True)
    return folder


def file(path: Path, days: float) -> Path:
    """Make a file of this age."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    then = time.time() - days * DAY_S
    os.utime(path, (then, then))
    return path


def gc(repo: Repo, config: Config | None = None) -> dict[str, int]:
    roots = find_repo(str(repo.path), dict(os.environ))
    gone = collect(roots, config or Config())
    return {what: number for what, number in gone.items() if number}


def test_journals_without_a_word_for_a_month_go_with_their_locks(
    repo: Repo, sessions: Path
) -> None:
    for name, days in (("old", 31), ("young", 29)):
        file(sessions / f"{name}.jsonl", days)
        file(sessions / f"{name}.1234abcd.lock", days)
    file(sessions / "left.1234abcd.lock", 2)
    file(sessions / "new.1234abcd.lock", 0.5)
    file(sessions / "other.txt", 400)
    assert gc(repo) == {"journals": 1}
    assert sorted(os.listdir(sessions)) == [
        "new.1234abcd.lock",
        "other.txt",
        "young.jsonl",
    ]


def test_a_journal_that_is_locked_stays(repo: Repo, sessions: Path) -> None:
    journal = file(sessions / "s.jsonl", 90)
    with journal.open("r+b") as held:
        fcntl.flock(held, fcntl.LOCK_SH)
        assert gc(repo).get("journals", 0) == 0
        assert journal.exists()
    assert gc(repo).get("journals", 0) == 1
    assert os.listdir(sessions) == []


def test_links_and_folders_are_not_journals(repo: Repo, sessions: Path, tmp_path: Path) -> None:
    mine = file(tmp_path / "mine", 90)
    (sessions / "a.jsonl").symlink_to(mine)
    os.mkfifo(sessions / "b.jsonl")
    (sessions / "c.jsonl").mkdir()
    assert gc(repo) == {}
    assert mine.exists()
    assert len(os.listdir(sessions)) == 3


def test_everything_old_goes_and_is_told(repo: Repo) -> None:
    repo.config("keep_runs = 2\n")
    state = repo.path / ".git/gitgates"
    file(state / "sessions/s.jsonl", 31)
    for number in range(4):
        file(state / f"runs/2020010{number}T000000Z-1/logs/a.log", 1)
    checkouts = Path(cache_path(find_repo(str(repo.path), dict(os.environ)))) / "checkouts"
    file(checkouts / "1/file", 20)
    file(checkouts / "1.lock", 20)
    kept = file(state / "kept/20200101T000000Z-1/a.txt", 40)
    blob = repo.git("hash-object", "-w", str(kept))
    repo.git("update-ref", "refs/gitgates/kept/20200101T000000Z-1/a", blob)
    file(kept.parent, 40)
    file(state / "objects/ab/cdef", 40)
    done = repo.gitgates("gc")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == (
        "removed 1 session journal, 2 runs, 1 private checkout, "
        "1 folder of kept files, 1 stored object\n"
    )
    assert sorted(os.listdir(state / "runs")) == ["20200102T000000Z-1", "20200103T000000Z-1"]
    assert repo.git("for-each-ref", "refs/gitgates") == ""
    assert repo.gitgates("gc").stdout == b"nothing to remove\n"


def test_without_any_state_there_is_nothing_to_do(repo: Repo) -> None:
    assert repo.gitgates("gc").stdout == b"nothing to remove\n"
    assert gc(repo) == {}


def test_with_settings_that_are_wrong_nothing_goes(repo: Repo, sessions: Path) -> None:
    repo.config("keep_runs = 'many'\n")
    journal = file(sessions / "s.jsonl", 90)
    assert repo.gitgates("gc").returncode == 78
    assert journal.exists()


def test_by_itself_it_is_done_once_a_day(repo: Repo, sessions: Path) -> None:
    roots = find_repo(str(repo.path), dict(os.environ))
    now = time.time()
    file(sessions / "a.jsonl", 90)
    assert collect_if_due(roots, Config(), now).get("journals", 0) == 1
    file(sessions / "b.jsonl", 90)
    assert collect_if_due(roots, Config(), now + 0.9 * DAY_S).get("journals", 0) == 0
    assert collect_if_due(roots, Config(), now + 1.1 * DAY_S).get("journals", 0) == 1
    file(sessions / "c.jsonl", 90)
    # The clock was wrong, and is right again.
    assert collect_if_due(roots, Config(), now - DAY_S).get("journals", 0) == 1


def test_by_itself_it_does_nothing_where_there_is_no_state(repo: Repo) -> None:
    roots = find_repo(str(repo.path), dict(os.environ))
    assert collect_if_due(roots, Config()) == {}
    assert not Path(roots.state_abs).exists()
