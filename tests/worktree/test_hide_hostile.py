"""Windows that a hostile reader of the code found: each is a way in which bytes could be lost."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from conftest import Repo
from test_concurrent_edits import LINES, MINE, arm, commit_while, kill_everything, paused
from worktree_state import whole

from gitgates.config import LOCAL_FILE

needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks into /proc")


@pytest.fixture
def armed(repo: Repo) -> Repo:
    """A repository with `a` and `z` changed and not staged, and `c` staged."""
    for name in ("a", "c", "d/f", "z"):
        repo.write(name, LINES)
    repo.git("add", ".")
    repo.git("commit", "-qm", "base")
    repo.shim("pre-commit")
    repo.write("a", MINE)
    repo.write("z", MINE)
    repo.write("c", "staged\n")
    repo.git("add", "c")
    return repo


def kept_texts(repo: Repo) -> list[str]:
    return sorted(
        p.read_text() for p in (repo.path / ".git/gitgates/kept").rglob("*") if p.is_file()
    )


@pytest.mark.samples(2)
@needs_proc
@pytest.mark.parametrize("step", ["put-back 2", "take-out 2", "put-back 1", "forget 1"])
def test_a_change_that_conflicts_survives_a_kill(armed: Repo, tmp_path: Path, step: str) -> None:
    arm(armed, "echo THEIRS > a; echo THEIRS > z")
    kill_everything(paused(armed, step, tmp_path / "p"), armed)
    armed.gitgates("recover")
    assert (armed.path / "a").read_text() == (armed.path / "z").read_text() == MINE
    assert kept_texts(armed) == ["THEIRS\n", "THEIRS\n"]


@pytest.mark.thorough
def test_after_a_merge_the_persons_own_text_is_kept_too(armed: Repo) -> None:
    said = commit_while(armed, "sed -i s/line\\ 15/theirs/ a")
    assert (armed.path / "a").read_text() == MINE.replace("line 15", "theirs")
    assert kept_texts(armed) == [MINE]
    assert "your previous version is in" in said


@pytest.mark.thorough
def test_a_file_that_is_cut_off_is_not_merged(armed: Repo) -> None:
    commit_while(armed, "head -c 40 a > t; cat t > a")
    assert (armed.path / "a").read_text() == MINE


def test_a_reset_by_a_gate_takes_nothing_from_the_person(repo: Repo) -> None:
    repo.write("a", LINES)
    repo.git("add", ".")
    repo.git("commit", "-qm", "base")
    repo.shim("pre-commit")
    staged = LINES.replace("line 10\n", "staged\n")
    repo.write("a", staged)
    repo.git("add", "a")
    repo.write("a", staged.replace("line 2\n", "mine\n"))
    arm(repo, "git reset -q --hard")
    repo.commit()
    assert (repo.path / "a").read_text() == staged.replace("line 2\n", "mine\n")


@pytest.mark.samples(1)
@needs_proc
@pytest.mark.parametrize("step", ["move-aside 1", "show 1", "hidden 1", "put-back 1", "forget 1"])
def test_a_worktree_on_another_file_system(tmp_path: Path, step: str) -> None:
    folders = [Path(name) for name in ("/dev/shm", tempfile.gettempdir()) if os.path.isdir(name)]
    others = [folder for folder in folders if folder.stat().st_dev != tmp_path.stat().st_dev]
    if not others:
        pytest.skip("there is only one file system")
    root = others[0] / f"gitgates-test-{os.getpid()}-{step[:4]}"
    subprocess.run(
        ["git", "init", "-q", f"--separate-git-dir={tmp_path}/far.git", root], check=True
    )
    try:
        repo = Repo(root)
        repo.write("a", LINES)
        repo.write("c", "x")
        repo.config("[gates.g]\ncommand = 'true'\n[hooks.pre-commit]\ngates = ['g']\n")
        repo.git("add", ".")
        repo.git("commit", "-qm", "base")
        repo.shim("pre-commit")
        repo.write("a", MINE)
        repo.write("c", "y")
        repo.git("add", "c")
        before = whole(repo)
        process = paused(repo, step, tmp_path / "p")
        os.killpg(process.pid, signal.SIGKILL)
        (tmp_path / "p/go").touch()  # for the recovery, which comes by there, too
        process.communicate()
        end = time.monotonic() + 10
        while (tmp_path / "far.git/gitgates/rescue").exists() and time.monotonic() < end:
            time.sleep(0.01)
        assert whole(repo)[0] == before[0]
        done = repo.commit()
        assert done.returncode == 0, done.stderr
        assert whole(repo)[0] == before[0]
        assert b"merged" not in done.stderr
    finally:
        subprocess.run(["rm", "-rf", str(root)], check=True)


def test_a_linked_worktree_is_not_removed_while_work_is_hidden(armed: Repo, tmp_path: Path) -> None:
    armed.config("[gates.g]\ncommand = 'true'\n[hooks.pre-commit]\ngates = ['g']\n")
    armed.git("add", "pyproject.toml")
    armed.git("commit", "-qm", "x", "--no-verify")
    armed.git("worktree", "add", "-q", "../linked")
    linked = Repo(armed.path.parent / "linked")
    linked.write("a", MINE)
    process = paused(linked, "hidden 1", tmp_path / "p", "--allow-empty")
    refused = armed.ask("git", "worktree", "remove", "../linked")
    assert refused.returncode != 0
    assert b"gitgates: unstaged work is hidden" in refused.stderr
    (tmp_path / "p/go").touch()
    process.communicate(timeout=30)
    assert (linked.path / "a").read_text() == MINE
    assert armed.git("worktree", "list", "--porcelain").count("locked") == 0


@pytest.mark.thorough
def test_one_path_that_is_in_the_way_does_not_hold_up_the_others(armed: Repo) -> None:
    armed.write("d/f", MINE)
    said = commit_while(armed, "rm -r d; echo blocker > d")
    for name in ("a", "d/f", "z"):
        assert (armed.path / name).read_text() == MINE
    assert "`d`: `d/f` needs a folder there; the other version is in" in said
    assert "blocker\n" in kept_texts(armed)


@pytest.mark.thorough
def test_nothing_is_put_back_through_a_link(armed: Repo, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_text("precious\n")
    armed.write("d/f", MINE)
    commit_while(armed, f"rm -r d; ln -s {outside} d")
    assert (outside / "f").read_text() == "precious\n"
    assert (armed.path / "d/f").read_text() == MINE
    assert not (armed.path / "d").is_symlink()


def test_a_second_write_while_it_is_put_back(armed: Repo, tmp_path: Path) -> None:
    arm(armed, "echo THEIRS1 > a")
    process = paused(armed, "put-back 2", tmp_path / "p")  # z is back, a is next
    armed.write("a", "THEIRS2\n")
    (tmp_path / "p/go").touch()
    _, said = process.communicate(timeout=30)
    assert process.returncode == 0, said
    assert (armed.path / "a").read_text() == MINE
    assert kept_texts(armed) == ["THEIRS1\n", "THEIRS2\n"]


@pytest.mark.thorough
def test_an_execute_bit_that_a_gate_sets_is_carried_over(armed: Repo) -> None:
    said = commit_while(armed, "chmod +x a")
    assert os.access(armed.path / "a", os.X_OK)
    assert (armed.path / "a").read_text() == MINE
    assert "`a`: its execute bit was changed in the meantime" in said


@pytest.mark.thorough
def test_a_change_that_keeps_size_and_time_is_seen(armed: Repo) -> None:
    commit_while(armed, "touch -r a ref; tr l L < a > t; cat t > a; touch -r ref a")
    assert kept_texts(armed) != []


def test_recover_says_that_a_run_is_alive(armed: Repo, tmp_path: Path) -> None:
    arm(armed)
    process = paused(armed, "hidden 1", tmp_path / "p")
    done = armed.gitgates("recover")
    assert done.returncode == 75
    assert b"the working tree is in use by gitgates (process" in done.stderr
    (tmp_path / "p/go").touch()
    process.communicate(timeout=30)


@pytest.mark.thorough
def test_a_second_commit_sees_what_it_commits(armed: Repo, tmp_path: Path) -> None:
    arm(armed, "cat a > $OUT/seen; [ -e $OUT/hold ] && cp $OUT/seen $OUT/first; true")
    env = {**os.environ, "OUT": str(tmp_path), "GITGATES_PAUSE_AT": f"hidden 1 {tmp_path}/p"}
    (tmp_path / "p").mkdir()
    commit = ["git", "commit", "-qm", "x", "--allow-empty"]
    first = subprocess.Popen(commit, cwd=armed.path, env=env, stderr=subprocess.PIPE)
    while not (tmp_path / "p/reached").exists():
        assert first.poll() is None
        time.sleep(0.005)
    env.pop("GITGATES_PAUSE_AT")
    second = subprocess.Popen(commit, cwd=armed.path, env=env, stderr=subprocess.PIPE)
    assert second.stderr
    assert b"waiting for" in second.stderr.readline()
    (tmp_path / "p/go").touch()
    first.communicate(timeout=30)
    second.communicate(timeout=30)
    assert (tmp_path / "seen").read_text() == LINES


@pytest.mark.samples(1)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_waiting_for_the_lock_heeds_signals(
    armed: Repo, tmp_path: Path, number: signal.Signals
) -> None:
    arm(armed)
    first = paused(armed, "hidden 1", tmp_path / "p")
    run = [sys.executable, "-m", "gitgates", "run", "pre-commit"]
    second = subprocess.Popen(run, cwd=armed.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert second.stdout
    assert b"waiting for" in second.stdout.readline()
    second.send_signal(number)
    _, said = second.communicate(timeout=10)
    assert second.returncode == 130
    assert re.search(rb"interrupted by signal \d+ while waiting", said)
    (tmp_path / "p/go").touch()
    first.communicate(timeout=30)


def test_a_gate_that_removes_the_rescue_folder_is_named(armed: Repo) -> None:
    arm(armed, "rm -rf .git/gitgates")
    done = armed.commit()
    assert done.returncode == 1
    assert b"a gate removed" in done.stderr
    assert b"`a`, `z`" in done.stderr
    assert b"Traceback" not in done.stderr


@needs_proc
def test_a_process_that_got_the_number_of_a_gate_is_left_alone(armed: Repo, tmp_path: Path) -> None:
    arm(armed)
    process = paused(armed, "hidden 1", tmp_path / "p")
    kill_everything(process, armed)
    stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
    groups = armed.path / ".git/gitgates/rescue/groups"
    groups.write_text(f"{stranger.pid} 1@another-boot\n")
    assert armed.gitgates("recover").returncode == 0
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


@pytest.mark.samples(1)
@pytest.mark.parametrize("kind", ["merge", "cherry-pick"])
def test_the_state_of_a_merge_stays(repo: Repo, kind: str) -> None:
    repo.write("a", LINES)
    repo.write("b", LINES)
    repo.git("add", ".")
    repo.git("commit", "-qm", "base")
    repo.git("checkout", "-qb", "side")
    repo.write("a", LINES.replace("line 2", "side"))
    repo.git("commit", "-qam", "side")
    repo.git("checkout", "-q", "main")
    repo.write("a", LINES.replace("line 2", "main"))
    repo.git("commit", "-qam", "main")
    assert repo.ask("git", kind, "side").returncode == 1
    repo.write("a", MINE)
    repo.git("add", "a")
    repo.write("a", MINE + "unstaged\n")
    repo.write("b", MINE)
    repo.shim("pre-commit")
    arm(repo, "false")
    state = [name for name in os.listdir(repo.path / ".git") if name.isupper()]
    kept = {name: (repo.path / ".git" / name).read_bytes() for name in state}
    before = whole(repo)
    assert repo.ask("git", "commit", "--no-edit").returncode == 1
    assert whole(repo) == before
    assert {name: (repo.path / ".git" / name).read_bytes() for name in state} == kept
    arm(repo, "true")
    assert repo.ask("git", "commit", "--no-edit").returncode == 0
    parents = repo.git("rev-list", "--parents", "-1", "HEAD").split()[1:]
    assert len(parents) == (2 if kind == "merge" else 1)
    assert whole(repo)[0] == before[0] | {LOCAL_FILE: whole(repo)[0][LOCAL_FILE]}


def test_where_nothing_can_be_saved_nothing_moves(armed: Repo) -> None:
    arm(armed)
    armed.write(".git/gitgates", "a file in the place of our folder")
    before = whole(armed)
    done = armed.commit()
    assert done.returncode == 1
    assert b".git/gitgates: cannot be written" in done.stderr
    assert b"Traceback" not in done.stderr
    assert whole(armed) == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MiB; it takes the right to mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if not shutil.which("mount") or subprocess.run(mount, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


@pytest.mark.slow
@pytest.mark.samples(1)
@pytest.mark.parametrize("free", [(0, 2, 7), range(8)], ids=["some", "all"])
def test_on_a_full_disk_nothing_is_lost_and_it_is_said(
    small_disk: Path, free: Iterable[int]
) -> None:
    repo = Repo.init(small_disk / "repo")
    for name in ("a", "b", "z"):
        repo.write(name, LINES)
    arm(repo)
    repo.commit_all("base")
    repo.shim("pre-commit")
    repo.write("a", MINE)
    repo.write("b", "staged")
    repo.git("add", "b")
    statuses = set()
    for pages in free:
        shutil.rmtree(repo.path / ".git/gitgates", ignore_errors=True)
        fill = small_disk / "fill"
        room = os.statvfs(small_disk)
        fill.write_bytes(b"x" * (room.f_bsize * max(room.f_bavail - pages, 0)))
        done = repo.commit()
        fill.unlink()
        statuses.add(done.returncode)
        assert b"Traceback" not in done.stderr
        assert b"internal error" not in done.stderr
        assert (repo.path / "a").read_text() == MINE
        assert not (repo.path / ".git/gitgates/rescue").exists()
        if done.returncode == 1:
            assert re.search(rb"cannot be written|unable to write", done.stderr)
        repo.write("b", f"staged {pages}")
        repo.git("add", "b")
    assert statuses >= {0, 1}


def test_what_was_kept_a_month_ago_is_removed(armed: Repo) -> None:
    commit_while(armed, "echo THEIRS > a")
    folder = next((armed.path / ".git/gitgates/kept").iterdir())
    assert armed.git("for-each-ref", "refs/gitgates") != ""
    os.utime(folder, (1, 1))
    armed.write("c", "again\n")
    armed.git("add", "c")
    commit_while(armed, "echo OTHERS > a")
    assert not folder.exists()
    assert folder.name not in armed.git("for-each-ref", "refs/gitgates")
