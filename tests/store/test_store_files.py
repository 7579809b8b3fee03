"""Files on disk: replaced at once, locked with a deadline, removed whatever their modes are."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import pytest

from gitgates.store.files import lock_file, read_state, remove_tree, replace_file


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_of_state_is_private_whatever_it_was(tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(b"old")
    path.chmod(0o644)
    replace_file(str(path), b"new")
    assert (path.read_bytes(), mode_of(path)) == (b"new", 0o600)
    assert os.listdir(tmp_path) == ["state"]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755])
def test_somebodys_file_keeps_its_mode(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "pyproject.toml"
    path.write_bytes(b"old")
    path.chmod(mode)
    replace_file(str(path), b"new", mode=None)
    assert (path.read_bytes(), mode_of(path)) == (b"new", mode)


def test_a_new_file_gets_what_the_umask_leaves(tmp_path: Path) -> None:
    umask = os.umask(0o027)
    try:
        replace_file(str(tmp_path / "new"), b"", mode=None)
    finally:
        os.umask(umask)
    assert mode_of(tmp_path / "new") == 0o640


def test_what_was_refused_at_the_last_moment_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def refuse() -> None:
        raise PermissionError("changed meanwhile")

    with pytest.raises(PermissionError, match="changed meanwhile"):
        replace_file(str(path), b"new", check=refuse)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


def test_a_link_is_replaced_and_its_target_is_not(tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    (tmp_path / "file").symlink_to("mine")
    replace_file(str(tmp_path / "file"), b"new")
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert read_state(str(tmp_path / "file")) == b"new"
    assert read_state(str(tmp_path / "none")) is None


def test_a_lock_is_waited_for_until_the_deadline(tmp_path: Path) -> None:
    path_abs = str(tmp_path / "lock")
    held = lock_file(path_abs)
    before = time.monotonic()
    assert lock_file(path_abs, wait_s=0.05) == -1
    assert time.monotonic() - before >= 0.05
    os.close(held)
    shared = [lock_file(path_abs, shared=True) for _ in range(2)]
    assert min(shared) >= 0
    assert lock_file(path_abs) == -1
    for fd in shared:
        os.close(fd)


def test_a_lock_on_a_file_that_was_removed_is_none(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    held = lock_file(str(path))
    path.unlink()
    other = lock_file(str(path))
    assert min(held, other) >= 0
    assert os.fstat(other).st_ino == path.stat().st_ino
    assert lock_file(str(path)) == -1
    for fd in (held, other):
        os.close(fd)


def test_what_is_not_there_is_not_locked_unless_it_is_to_be_made(tmp_path: Path) -> None:
    assert lock_file(str(tmp_path / "none"), flags=os.O_RDWR) == -1
    with pytest.raises(FileNotFoundError):
        lock_file(str(tmp_path / "no/folder"))


def test_a_tree_goes_whatever_its_modes_are_and_nothing_behind_its_links(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/file").touch()
    tree = tmp_path / "tree"
    (tree / "a/b").mkdir(parents=True)
    (tree / "a/b/file").touch(0o400)
    (tree / "link").symlink_to(tmp_path / "mine")
    os.mkfifo(tree / "fifo")
    (tree / "a/b").chmod(0)
    (tree / "a").chmod(0o500)
    remove_tree(str(tree))
    assert os.listdir(tmp_path) == ["mine"]
    (tmp_path / "link").symlink_to(tmp_path / "mine")
    with pytest.raises(NotADirectoryError):
        remove_tree(str(tmp_path / "link"))
    assert os.listdir(tmp_path / "mine") == ["file"]
