"""Old save points go at the end of a turn; and what happens where nothing can be saved."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_support import begin
from conftest import Repo
from points_support import files_of, found, record, undo

from gitgates.core.errors import GitError, StateError
from gitgates.features.undo.moments import recorded
from gitgates.files.memory import Memory

CHECKED = '[gates.g]\ncommand = "true"\n[hooks.Stop]\ngates = ["g"]\n'


def ids(repo: Repo) -> list[int]:
    """Return the ids of all points."""
    return [point.number for point in recorded(found(repo))]


def test_old_points_go_at_the_end_of_a_turn(repo: Repo) -> None:
    agent = begin(repo, f'{CHECKED}[undo]\nkeep = "0.01s"\n')
    for number in range(3):
        agent.pre("Write", "a.py", tool_use_id=f"t{number}")
        repo.write("a.py", f"{number}\n")
        agent.post("Write", "a.py", tool_use_id=f"t{number}")
    assert ids(repo) == [1, 2, 3]
    mark = Path(Memory(found(repo)).folder_abs, "pruned")
    agent.stop()
    os.utime(mark, (1, 1))
    agent.prompt()
    agent.stop()
    assert ids(repo) == []
    assert (repo.path / "a.py").read_text() == "2\n"


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
    repo.write("a", "0\n")
    repo.commit_all("base")
    record(repo)
    for number in range(2):
        repo.write("a", f"{number}\n" * 99)
        repo.write(f"of-{number}", str(number))
        record(repo, "s")
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
