"""What was restored is not lost to a git command that had looked at the tree before."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from conftest import Repo
from process_support import wait_for
from test_concurrent_edits import arm
from worktree_state import files, whole

COMMITTED = "".join(f"line {n}\n" for n in range(20))
STAGED = "staged\n" + COMMITTED
MINE = STAGED + "mine\n"
# Git calls it whenever it has written an index: so it can be held between two of its own steps.
HOLD = """#!/bin/sh
[ "$HOLD_AT" ] || exit 0
echo x >> "$OUT/calls"
[ "$(wc -l < "$OUT/calls")" = "$HOLD_AT" ] || exit 0
touch "$OUT/held"
while [ ! -e "$OUT/on" ]; do sleep 0.01; done
"""


@pytest.fixture
def armed(repo: Repo, out: Path) -> Repo:
    """A repository with `a` partly staged, and `n` only announced."""
    gate = f"git stash create > {out}/stash"
    repo.config(f"[gates.g]\ncommand = '{gate}'\n[hooks.pre-commit]\ngates = ['g']\n")
    repo.write("a", COMMITTED)
    repo.commit_all("base")
    repo.shim("pre-commit")
    repo.write("a", STAGED)
    repo.git("add", "a")
    repo.write("a", MINE)
    repo.write("n", b"announced \xff\r\n")
    repo.git("add", "-N", "n")
    return repo


def test_what_a_reset_takes_that_has_seen_the_tree_before_is_named_and_comes_back(
    armed: Repo,
) -> None:
    """`git stash` in slow motion: it reads the tree, the run restores the files, it writes."""
    assert armed.commit().returncode == 0
    assert (armed.path / "a").read_text() == MINE
    armed.git("reset", "-q", "--hard")
    (armed.path / "n").unlink(missing_ok=True)
    before = files(armed)
    listed = armed.gitgates("recover", "--list").stdout.decode()
    assert sorted(re.findall(r"^(\S+)  restored \d{4}-", listed, re.MULTILINE)) == ["a", "n"]
    assert armed.gitgates("recover", "--show", "a").stdout.decode() == MINE
    doctor = armed.gitgates("doctor").stdout.decode()
    for name in ("a", "n"):
        what = rf"note .*`{name}` was restored .*, and has changed since"
        assert re.search(what, doctor), doctor
    assert files(armed) == before
    said = armed.gitgates("recover").stdout.decode()
    assert "restored a in a.recovered, next to the existing file" in said
    assert (armed.path / "a").read_text() == STAGED
    assert (armed.path / "a.recovered").read_text() == MINE
    assert (armed.path / "n").read_bytes() == b"announced \xff\r\n"
    assert armed.gitgates("recover").stdout == b"nothing to recover\n"
    assert armed.gitgates("recover", "--list").stdout == b"no stashed or kept files\n"
    assert b" was restored " not in armed.gitgates("doctor").stdout


@pytest.mark.samples(1)
@pytest.mark.parametrize("command", ["checkout -- .", "restore ."])
def test_what_is_only_announced_comes_back_where_git_has_written_an_empty_file(
    armed: Repo, command: str
) -> None:
    assert armed.commit().returncode == 0
    armed.git(*command.split())
    assert (armed.path / "n").read_bytes() == b""
    said = armed.gitgates("recover").stdout.decode()
    assert "restored n in n.recovered, next to the existing file" in said
    assert (armed.path / "n.recovered").read_bytes() == b"announced \xff\r\n"
    assert armed.gitgates("recover").stdout == b"nothing to recover\n"


@pytest.mark.samples(1)
@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("command", ["stash", "reset --hard", "checkout -f", "rebase other"])
def test_a_command_beside_that_goes_on_after_files_were_put_back(
    armed: Repo, out: Path, command: str, number: int
) -> None:
    """It is held wherever it has just written an index, until the commit has ended."""
    hook = armed.path / ".git/hooks/post-index-change"
    hook.write_text(HOLD)
    hook.chmod(0o755)
    armed.git("reset", "-q", "n")
    armed.git("branch", "other", armed.git("commit-tree", "-m", "o", "-p", "HEAD", "HEAD^{tree}"))
    gate = 'touch "$OUT/gate"; for i in $(seq 1000); do [ -e "$OUT/go" ] && break; sleep .01; done'
    arm(armed, gate)
    commit = start(armed, ["commit", "-qm", "x"], {})
    wait_for(out / "gate", commit)
    beside = start(armed, command.split(), {"HOLD_AT": str(number)})
    end = time.monotonic() + 10
    while not (out / "held").exists() and beside.poll() is None and time.monotonic() < end:
        time.sleep(0.002)
    (out / "go").touch()
    commit.communicate(timeout=30)
    (out / "on").touch()
    beside.communicate(timeout=30)
    armed.gitgates("recover")
    held = [path for path in armed.path.glob("a*") if path.read_text() == MINE]
    stashed = armed.ask("git", "show", "stash@{0}:a").stdout.decode()
    assert held or stashed == MINE, list(armed.path.iterdir())


def start(repo: Repo, args: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["git", *args],
        cwd=repo.path,
        env={**os.environ, **env},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def test_what_is_in_a_stash_or_a_commit_is_not_missing(armed: Repo) -> None:
    assert armed.commit().returncode == 0
    armed.git("rm", "-q", "--cached", "n")
    armed.git("stash", "-q", "--include-untracked")
    assert armed.gitgates("recover").stdout == b"nothing to recover\n"
    armed.git("stash", "pop", "-q")
    armed.git("add", "a", "n")
    assert armed.commit("rest").returncode == 0
    armed.git("checkout", "-q", "HEAD~2")
    assert armed.gitgates("recover", "--list").stdout == b"no stashed or kept files\n"
    assert b"restored" not in armed.gitgates("doctor").stdout


def test_what_was_edited_since_is_listed_and_comes_back_only_on_request(armed: Repo) -> None:
    assert armed.commit().returncode == 0
    (armed.path / "new").write_text(MINE + "edited\n")
    (armed.path / "new").rename(armed.path / "a")
    assert "a  restored" in armed.gitgates("recover", "--list").stdout.decode()
    before = files(armed)
    assert b"restored" not in armed.gitgates("doctor").stdout
    assert armed.gitgates("recover").stdout == b"nothing to recover\n"
    (run,) = (armed.path / ".git/gitgates/restored").iterdir()
    (run / "killed").touch()  # then an editor may have shown, and saved, what was committed
    doctor = armed.gitgates("doctor").stdout.decode()
    assert re.search(r"note .*`a` was restored .*, and has changed since", doctor), doctor
    said = armed.gitgates("recover").stdout.decode()
    assert "a has changed since it was restored" in said
    assert "gitgates recover --restore a" in said
    assert files(armed) == before
    assert armed.gitgates("recover", "--restore", "a").returncode == 0
    assert (armed.path / "a.recovered").read_text() == MINE
    assert (armed.path / "a").read_text() == MINE + "edited\n"
    assert armed.gitgates("recover", "--restore", "a").returncode == 64


@pytest.mark.thorough
def test_an_editor_that_writes_into_the_file_leaves_nothing_to_name(armed: Repo) -> None:
    assert armed.commit().returncode == 0
    with (armed.path / "a").open("a") as file:
        file.write("edited in place\n")
    assert armed.gitgates("recover", "--list").stdout == b"no stashed or kept files\n"


def test_a_folder_in_the_place_of_a_file_comes_back(armed: Repo) -> None:
    (armed.path / "a").unlink()
    armed.write("a/inside/x", "untracked\n")
    assert armed.commit().returncode == 0
    assert (armed.path / "a/inside/x").read_text() == "untracked\n"
    assert armed.gitgates("recover", "--list").stdout == b"no stashed or kept files\n"
    armed.git("reset", "-q", "--hard")
    assert (armed.path / "a").read_text() == STAGED
    armed.gitgates("recover")
    assert (armed.path / "a.recovered/inside/x").read_text() == "untracked\n"


def test_it_goes_after_a_day(armed: Repo) -> None:
    assert armed.commit().returncode == 0
    folder = armed.path / ".git/gitgates/restored"
    (run,) = folder.iterdir()
    assert run.stat().st_mode & 0o077 == 0
    yesterday = time.time() - 25 * 3600
    run.rename(folder / f"1.{int(yesterday * 1e9)}")
    os.utime(folder, (yesterday, yesterday))
    before = whole(armed)
    assert armed.gitgates("gc").returncode == 0
    assert list(folder.iterdir()) == []
    assert whole(armed) == before


@pytest.mark.thorough
def test_it_is_bounded(armed: Repo) -> None:
    folder = armed.path / ".git/gitgates/restored"
    for number in range(60):
        (folder / f"{number}.{time.time_ns() - 10**9 * number}").mkdir(parents=True)
    assert armed.commit().returncode == 0
    assert len(list(folder.iterdir())) == 50


def test_large_files_that_are_nowhere_else_are_bounded(armed: Repo) -> None:
    folder = armed.path / ".git/gitgates/restored"
    for number in (1, 2, 3):
        run = folder / f"1.{time.time_ns() - 10**9 * number}"
        run.mkdir(parents=True)
        with (run / "0").open("wb") as file:
            file.truncate(600 << 20)  # of holes
    armed.write("a", MINE + "x" * (2 << 20))
    assert armed.commit().returncode == 0
    assert len(list(folder.iterdir())) == 2


def test_the_only_copy_is_never_purged(repo: Repo) -> None:
    repo.config("[gates.g]\ncommand = 'true'\n[hooks.pre-commit]\ngates = ['g']\n")
    repo.write("a", "committed\n")
    repo.commit_all("base")
    repo.shim("pre-commit")
    repo.write("a", "staged\n")
    repo.git("add", "a")
    repo.write("a", "mine\n")
    assert repo.commit("staged").returncode == 0
    repo.git("checkout", "--", "a")  # as one that looked while it was hidden
    (second,) = (repo.path / ".git/gitgates/restored").glob("*/0")
    done = repo.gitgates("uninstall-hooks", "--purge")
    assert (done.returncode, second.read_text()) == (73, "mine\n")
    assert f"nothing was removed:\n  {second}\n" in done.stderr.decode()
    assert repo.gitgates("recover").returncode == 0
    assert repo.gitgates("uninstall-hooks", "--purge").returncode == 0
    assert (repo.path / "a.recovered").read_text() == "mine\n"
