"""What a look finds, beyond what random work shows: limits, repositories inside, other formats."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import pytest
from conftest import Repo
from files_support import listed, object_id, present, repository, seen

from gitgates.core.errors import StateError
from gitgates.files.look import Limits, TimeOver, look
from gitgates.files.memory import Memory
from gitgates.files.stored import committed_tree
from gitgates.git.index import find_unstaged
from gitgates.git.repo import Git
from gitgates.store.rescue import Rescue, StashJournal
from gitgates.worktree.restore import Restorer
from gitgates.worktree.stash import stash

pytestmark = pytest.mark.slow


@pytest.fixture
def filled(repo: Repo) -> Repo:
    for name in ("a", "dir/b", "dir/c"):
        repo.write(name, f"{name} first")
    repo.write(".gitignore", "*.log\nbuild/\nnode_modules/\n")
    repo.commit_all("first")
    return repo


def test_a_clean_tree_is_that_of_the_commit(filled: Repo) -> None:
    found = seen(filled)
    assert found.tree == filled.git("rev-parse", "HEAD^{tree}")
    assert found.head == filled.git("rev-parse", "HEAD")
    assert found.is_whole


def test_nothing_of_the_users_repository_changes(filled: Repo) -> None:
    filled.write("a", "changed")
    filled.write("new", "untracked")
    git_dir = filled.path / ".git"
    before = _contents(git_dir)
    seen(filled)
    assert _contents(git_dir) == before


def _contents(folder: Path) -> dict[str, bytes]:
    places = [p for p in folder.rglob("*") if p.is_file() and "gitgates" not in p.parts]
    return {str(place): place.read_bytes() for place in places}


def test_bytes_are_stored_as_they_are(repo: Repo) -> None:
    repo.git("config", "core.autocrlf", "true")
    repo.write(".gitattributes", "c ident\nd filter=up\n")
    repo.git("config", "filter.up.clean", "tr a-z A-Z")
    repo.git("config", "filter.up.smudge", "tr A-Z a-z")
    for name, content in (("a", b"1\r\n2\r\n"), ("b", b"1\n2\n"), ("c", b"$Id$\n"), ("d", b"x\n")):
        repo.write(name, content)
    repo.commit_all("first")
    repo.git("rm", "-q", "--cached", "-r", ".")
    repo.git("reset", "-q", "--hard")
    found = seen(repo)
    assert listed(repo, found.tree) == present(repo)
    assert (repo.path / "a").read_bytes() == b"1\r\n2\r\n"
    assert committed_tree(repository(repo), found) == repo.git("rev-parse", "HEAD^{tree}")


def test_what_is_too_large_is_left_out_until_it_is_not(filled: Repo) -> None:
    filled.write("large", "x" * 100)
    filled.write("a", "x" * 100)  # tracked
    limits = Limits(max_file=50, max_ignored=50)
    for _ in range(2):
        found = seen(filled, limits)
        assert set(found.left_out) == {"large", "a"}
        assert set(listed(filled, found.tree)) == {".gitignore", "dir/b", "dir/c"}
        assert not found.is_whole
    filled.write("large", "x")
    filled.write("a", "x")
    found = seen(filled, limits)
    assert not found.left_out
    assert listed(filled, found.tree) == present(filled)


def test_ignored_files_are_saved_unless_they_can_be_made_again(filled: Repo) -> None:
    filled.write("a.log", "log")
    filled.write("build/data.csv", "data")
    filled.write("build/cache/CACHEDIR.TAG", "tag")
    filled.write("build/cache/x", "cached")
    filled.write("node_modules/x/y", "installed")
    filled.write("build/x.pyc", "compiled")
    found = seen(filled)
    assert set(listed(filled, found.ignored)) == {"a.log", "build/data.csv"}
    again = seen(filled)
    assert again.ignored == found.ignored
    filled.write("build/data.csv", "datb")
    changed = seen(filled)
    assert listed(filled, changed.ignored)["build/data.csv"][1] == object_id(b"datb")
    assert changed.tree == found.tree


def test_the_largest_ignored_files_are_left_out_together(filled: Repo) -> None:
    for number in range(4):
        filled.write(f"{number}.log", "x" * 10 * (number + 1))
    found = seen(filled, Limits(max_ignored=60))
    assert set(listed(filled, found.ignored)) == {"0.log", "1.log", "2.log"}
    assert set(found.ignored_out) == {"3.log"}
    assert found.is_whole


def test_permissions_are_noted(filled: Repo) -> None:
    filled.write(".env.log", "secret").chmod(0o600)
    (filled.path / "a").chmod(0o640)
    (filled.path / "dir").chmod(0o2775)
    found = seen(filled)
    assert found.modes == {"a": 0o640, ".env.log": 0o600}
    assert found.folders == {"dir": 0o2775}
    (filled.path / "a").chmod(0o644)
    (filled.path / "dir").chmod(0o755)
    found = seen(filled)
    assert (found.modes, found.folders) == ({".env.log": 0o600}, {})


def test_sockets_and_pipes_are_no_files(filled: Repo) -> None:
    os.mkfifo(filled.path / "pipe")
    place = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(filled.path)
    try:
        place.bind("socket")
    finally:
        os.chdir(here)
        place.close()
    (filled.path / "a").unlink()
    os.mkfifo(filled.path / "a")  # in the place of a tracked one
    found = seen(filled)
    assert set(listed(filled, found.tree)) == {".gitignore", "dir/b", "dir/c"}


def _inner(path: Path) -> Repo:
    inner = Repo.init(path)
    inner.write("x", "inside")
    inner.commit_all("inner")
    return inner


def test_a_submodule_is_its_commit_and_dirty_ones_are_named(filled: Repo, tmp_path: Path) -> None:
    _inner(tmp_path / "inner")
    filled.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", "../inner", "sub")
    filled.git("commit", "-qm", "sub")
    found = seen(filled)
    assert found.tree == filled.git("rev-parse", "HEAD^{tree}")
    assert found.is_whole
    sub = Repo(filled.path / "sub")
    sub.write("x", "dirty")
    assert seen(filled).unseen == ("submodules have uncommitted changes: sub",)
    sub.commit_all("more")
    moved = seen(filled)
    assert moved.is_whole
    assert moved.tree != found.tree
    filled.git("rm", "-q", "--cached", "sub")
    assert seen(filled).left_out == {"sub": "a repository of its own"}
    filled.git("reset", "-q")
    assert seen(filled).tree == moved.tree


def test_another_repository_inside_is_left_out_and_a_worktree_is_not_there(filled: Repo) -> None:
    _inner(filled.path / "nested")
    Repo.init(filled.path / "deep/empty")
    found = seen(filled)
    assert set(found.left_out) == {"nested", "deep/empty"}
    filled.git("worktree", "add", "-q", ".claude/worktrees/w", "-b", "w")
    again = seen(filled)
    assert set(again.left_out) == {"nested", "deep/empty"}
    assert again.tree == found.tree
    linked = Repo(filled.path / ".claude/worktrees/w")
    assert seen(linked).tree == found.tree
    assert Memory(repository(linked)).folder_abs == Memory(repository(filled)).folder_abs


def test_a_folder_whose_repository_is_gone_is_like_any_other(filled: Repo) -> None:
    filled.write("gone/.git", "gitdir: /nowhere\n")
    filled.write("gone/file", "work")
    found = seen(filled)
    assert ("gone/file" in listed(filled, found.tree), found.left_out) == (True, {})


def test_an_unborn_branch_and_an_empty_folder(repo: Repo) -> None:
    assert listed(repo, seen(repo).tree) == {}
    repo.write("a", "first")
    assert listed(repo, seen(repo).tree) == present(repo)


def test_sha256(tmp_path: Path) -> None:
    subprocess.run(("git", "init", "-q", "--object-format=sha256", tmp_path / "r"), check=True)
    repo = Repo(tmp_path / "r")
    repo.write("a", "1")
    repo.write("empty", "")
    repo.commit_all("first")
    assert seen(repo).tree == repo.git("rev-parse", "HEAD^{tree}")
    repo.write("a", "2")
    repo.git("commit", "-qam", "second")
    assert seen(repo).tree == repo.git("rev-parse", "HEAD^{tree}")


def test_worktrees_of_a_bare_repository(filled: Repo, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    filled.git("clone", "-q", "--bare", ".", str(bare))
    subprocess.run(("git", "-C", bare, "worktree", "add", "-q", tmp_path / "w"), check=True)
    linked = Repo(tmp_path / "w")
    assert seen(linked).tree == linked.git("rev-parse", "HEAD^{tree}")


def test_a_sparse_checkout_has_what_is_there(filled: Repo) -> None:
    filled.git("sparse-checkout", "set", "--cone", "--sparse-index", "other")
    assert listed(filled, seen(filled).tree) == present(filled)
    assert set(present(filled)) == {"a", ".gitignore"}


def test_a_git_folder_of_another_name(filled: Repo) -> None:
    (filled.path / ".git").rename(filled.path / "meta")
    env = {"GIT_DIR": str(filled.path / "meta"), "GIT_WORK_TREE": str(filled.path)}
    from gitgates.git.repo import find_repo

    found = look(find_repo(str(filled.path), {**os.environ, **env}), ignored=True)
    tree = Git(cwd_abs=str(filled.path), env={**os.environ, **env}).resolve("HEAD^{tree}")
    assert found.tree == tree
    assert found.ignored == ""


def test_what_another_run_has_stashed_is_there(filled: Repo) -> None:
    filled.write("a", "staged")
    filled.git("add", "a")
    filled.write("a", "not staged")
    expected = seen(filled).tree
    real = repository(filled)
    rescue = Rescue(f"{real.state_abs}/rescue")
    pid = os.fork()
    if not pid:
        draft = StashJournal(root_abs=real.root_abs, pid=os.getpid(), started="")
        unstaged = find_unstaged(real.git)
        stash(real.git, rescue, unstaged, draft=draft, step=lambda _step: None)
        os._exit(0)
    os.waitpid(pid, 0)
    assert (filled.path / "a").read_text() == "staged"
    assert seen(filled).tree == expected
    Restorer(real, rescue, lambda _step: None).restore(rescue.read())
    assert seen(filled).tree == expected


def test_a_look_that_takes_too_long_goes_on_the_next_time(filled: Repo) -> None:
    for number in range(8):
        filled.write(f"data/{number}", os.urandom(1_000_000))
    real, late = repository(filled), 0
    for tries in range(16):
        try:
            found = look(real, deadline_s=time.monotonic() + 0.001 * 2**tries)
        except TimeOver:
            late += 1
        else:
            break
    assert late
    assert listed(filled, found.tree) == present(filled)


def test_a_full_disk_is_an_error_and_nothing_more(filled: Repo) -> None:
    import resource

    before = seen(filled).tree
    filled.write("large", os.urandom(500_000))
    pid = os.fork()
    if not pid:
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        try:
            look(repository(filled))
        except Exception:  # noqa: BLE001 - which one depends on who cannot write
            os._exit(7)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    (filled.path / "large").rename(filled.path / "x.log")
    assert seen(filled).tree == before


def test_a_read_only_object_store(filled: Repo) -> None:
    objects = filled.path / ".git/objects"
    for folder in (objects, *objects.iterdir()):
        folder.chmod(0o555)
    try:
        filled.write("a", "changed")
        assert listed(filled, seen(filled).tree) == present(filled)
    finally:
        for folder in (objects, *objects.iterdir()):
            folder.chmod(0o755)


def test_state_that_cannot_be_written_is_an_expected_error(filled: Repo) -> None:
    (filled.path / ".git/gitgates").write_text("in the way")
    with pytest.raises(StateError, match="files cannot be saved"):
        seen(filled)
