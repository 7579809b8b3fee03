"""What a save point holds: everything that changes, whatever git thinks of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time

import pytest
from conftest import Repo
from points_support import CONFIG, MOST, SETTINGS, found, record, saved

from gitgates.core.errors import LockError
from gitgates.features.undo import points, states
from gitgates.features.undo.undoing import changes

LARGE = b"x" * (MOST + 1)


@pytest.fixture
def kept(repo: Repo) -> Repo:
    """A repository with a commit, whose state is recorded."""
    repo.config(CONFIG)
    repo.write("a", "1\n")
    repo.write(".gitignore", ".env\n*.log\n")
    repo.commit_all("base")
    assert not record(repo), "the first state is no change"
    return repo


def test_nothing_has_changed(kept: Repo) -> None:
    assert not record(kept)
    os.utime(kept.path / "a")
    assert not record(kept), "another time is no change"


def test_what_is_as_committed_is_not_copied(kept: Repo) -> None:
    objects = kept.path / ".git/gitgates/undo/git/objects"
    blob = kept.git("rev-parse", "HEAD:a")
    assert not (objects / blob[:2] / blob[2:]).exists()
    assert saved(kept)["a"] == b"1\n"


CONTENTS = (b"", b"\r\n", b"a\r\nb\n\r", b"\0\xff", b"$Id$\n", "ü".encode("utf-16"))


def test_raw_bytes(kept: Repo) -> None:
    kept.git("config", "core.autocrlf", "true")
    kept.git("config", "filter.x.clean", "tr a-z A-Z")
    kept.git("config", "filter.x.smudge", "tr A-Z a-z")
    kept.write(
        ".gitattributes", "*.t text eol=crlf ident filter=x\n*.u working-tree-encoding=UTF-16\n"
    )
    written = {
        f"{number}{suffix}": content
        for number, content in enumerate(CONTENTS)
        for suffix in ("", ".t", ".u")
    }
    for name, content in written.items():
        kept.write(name, content)
        kept.ask("git", "add", name)  # some of them cannot be
    assert record(kept)
    assert written.items() <= saved(kept).items()


def test_a_file_beside_one_that_is_too_large(kept: Repo) -> None:
    kept.write("new/large", LARGE)
    assert record(kept)
    kept.write("new/small", "1\n")
    assert record(kept), "git lists the folder only, as before"
    assert "new/small" in saved(kept)


def test_a_file_that_was_too_large(kept: Repo) -> None:
    kept.write("large", LARGE)
    assert record(kept)
    assert "large" not in saved(kept)
    kept.write("large", "1\n")
    assert record(kept), "git lists the name only, as before"
    assert saved(kept)["large"] == b"1\n"


def test_a_tracked_file_that_is_too_large_now(kept: Repo) -> None:
    kept.write("a", LARGE)
    assert record(kept)
    assert "a" not in saved(kept)
    assert (
        "max_file" in states.load(found(kept), states.current(found(kept).state_abs)).left_out["a"]
    )
    assert not record(kept)


def test_an_empty_folder_in_one(kept: Repo) -> None:
    (kept.path / "d").mkdir()
    assert record(kept)
    (kept.path / "d/e").mkdir()
    assert record(kept)
    assert states.load(found(kept), states.current(found(kept).state_abs)).folders == ("d/e",)


def test_a_folder_with_a_link_to_a_folder(kept: Repo) -> None:
    (kept.path / "d").mkdir()
    (kept.path / "d/link").symlink_to("..")
    assert record(kept)
    assert saved(kept)["d/link"] == b".."


def test_a_tracked_file_that_is_ignored(kept: Repo) -> None:
    kept.write("x.log", "1\n")
    kept.git("add", "-f", "x.log")
    assert record(kept)
    assert saved(kept)["x.log"] == b"1\n"
    kept.git("commit", "-qm", "forced")
    kept.write("x.log", "2\n")
    assert record(kept)
    (kept.path / "x.log").unlink()
    assert record(kept)
    assert "x.log" not in saved(kept)
    kept.write("x.log", "3\n")
    assert record(kept), "neither git's index nor its list of untracked files has changed"
    assert saved(kept)["x.log"] == b"3\n"


def test_an_ignored_file_that_is_included(kept: Repo) -> None:
    settings = SETTINGS._replace(include=(".env",))
    kept.write(".env", "1\n")
    kept.write("y.log", "1\n")
    assert record(kept, settings=settings)
    assert ".env" in saved(kept)
    assert "y.log" not in saved(kept)
    kept.write(".env", "2\n")
    assert record(kept, settings=settings)


@pytest.mark.parametrize("step", ["_note_modes", "git_fields"])
def test_a_run_that_is_killed_has_hidden_nothing(
    kept: Repo, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    kept.write("a", "2\n")
    (kept.path / "a").chmod(0o600)
    kept.git("add", "a")
    with monkeypatch.context() as context:
        context.setattr(states, step, _die)
        with pytest.raises(KeyboardInterrupt):
            record(kept)
    assert record(kept), "our index has the change, and no state has"
    assert saved(kept)["a"] == b"2\n"
    assert states.load(found(kept), states.current(found(kept).state_abs)).modes == {"a": 0o600}


def _die(*_args: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.samples(2)
@pytest.mark.parametrize("content", [b"", b"junk", None])
def test_our_index_is_damaged(kept: Repo, content: bytes | None) -> None:
    index = next((kept.path / ".git/gitgates").rglob("undo.index"))
    index.unlink()
    if content is not None:
        index.write_bytes(content)
    kept.write("a", "2\n")
    assert record(kept)
    assert saved(kept)["a"] == b"2\n"


def test_a_lock_that_a_killed_git_has_left(kept: Repo) -> None:
    index = next((kept.path / ".git/gitgates").rglob("undo.index"))
    index.with_name("undo.index.lock").touch()
    kept.write("a", "2\n")
    assert record(kept)


def test_another_repository_in_it(kept: Repo) -> None:
    kept.git("init", "-q", "nested")
    kept.write("nested/x", "1\n")
    kept.write("no-repository/.git", "")
    kept.write("no-repository/x", "1\n")
    kept.git("worktree", "add", "-q", "--detach", "linked/one")
    assert record(kept)
    assert not record(kept)
    files = saved(kept)
    assert "no-repository/x" in files
    assert not [path for path in files if path.startswith(("nested", "linked"))]
    assert {*states.load(found(kept), states.current(found(kept).state_abs)).left_out} == {
        "nested",
        "linked/one",
    }


def test_before_the_first_commit(repo: Repo) -> None:
    repo.write("a", "1\n")
    record(repo)
    repo.git("add", "a")
    assert record(repo)
    repo.write("a", "2\n")
    assert record(repo)
    assert saved(repo)["a"] == b"2\n"


def test_a_linked_worktree_has_points_of_its_own(kept: Repo) -> None:
    kept.git("worktree", "add", "-q", "--detach", "../linked")
    linked = Repo(kept.path.parent / "linked")
    record(linked)
    linked.write("b", "1\n")
    assert record(linked)
    assert not record(kept)
    assert "b" in saved(linked)


def test_a_sparse_checkout(kept: Repo) -> None:
    kept.write("in/f", "1\n")
    kept.write("out/f", "1\n")
    kept.commit_all("two folders")
    kept.git("sparse-checkout", "set", "in")
    record(kept)
    assert "out/f" not in saved(kept)
    kept.write("in/f", "2\n")
    assert record(kept)
    shutil.rmtree(kept.path / "in")
    assert record(kept)
    assert not record(kept)


def test_work_that_gates_have_stashed_is_waited_for(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = repo.path.parent / "go"
    gate = f"command = 'while [ ! -e {go} ]; do sleep 0.02; done'\n"
    repo.config(f'[gates.g]\n{gate}[hooks.pre-commit]\ngates = ["g"]\n')
    repo.write("a.py", "one\n")
    repo.commit_all("base")
    assert repo.gitgates("install-hooks").returncode == 0
    repo.write("a.py", "two\n")
    repo.git("add", "a.py")
    repo.write("a.py", "two\nunstaged\n")
    record(repo)
    commit = subprocess.Popen(["git", "commit", "-qm", "two"], cwd=repo.path)
    rescue = repo.path / ".git/gitgates/rescue"
    while not rescue.is_dir():
        assert commit.poll() is None
        time.sleep(0.01)
    monkeypatch.setattr(states, "_HIDDEN_S", 0.1)
    with pytest.raises(LockError, match="have stashed unstaged work"):
        record(repo)
    go.touch()
    assert commit.wait(20) == 0
    record(repo)
    assert saved(repo)["a.py"] == b"two\nunstaged\n"
    ours = found(repo)
    for point in points.points_of(ours):  # a commit changes no file
        before, after = (states.load(ours, state) for state in (point.before, point.after))
        assert changes(ours, before, after) == {}


def test_the_order_in_which_modes_were_found_is_no_change(
    kept: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    later_s = time.time() + 100  # no mode is recent
    monkeypatch.setattr("gitgates.features.undo.states.time.time", lambda: later_s)
    for name in ("b", "c"):
        kept.write(name, "1\n")
        (kept.path / name).chmod(0o600)
        record(kept)
    first = states.current(found(kept).state_abs)
    written = kept.path / "b"
    for mode in (0o644, 0o600):
        written.write_text(f"{mode}\n")
        written.chmod(mode)
        record(kept)
    written.write_text("1\n")
    record(kept)
    assert states.current(found(kept).state_abs) == first
