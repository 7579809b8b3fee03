"""Points keep what a worktree held, whatever becomes of the user's repository."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest
from conftest import Repo
from files_support import Files, ignored, listed, present, repository, seen

from gitgates.files.changes import Version, changed_by, changes, changes_to
from gitgates.files.look import look
from gitgates.files.memory import Memory
from gitgates.files.points import (
    NO_FACTS,
    SESSION,
    Author,
    Facts,
    Point,
    hold,
    latest,
    look_and_record,
    points,
    record,
    state_of,
)
from gitgates.files.prune import prune, size
from gitgates.git.object_store import read_blobs

pytestmark = pytest.mark.slow
AGENT = Author(SESSION, "s1")
PERSON = Author()
DAY_S = 24 * 3600.0


@pytest.fixture
def filled(repo: Repo) -> Repo:
    for name in ("a", "dir/b"):
        repo.write(name, f"{name} first\n")
    repo.write(".gitignore", "*.log\n")
    repo.commit_all("first")
    return repo


def recorded(repo: Repo, author: Author = AGENT, facts: Facts = NO_FACTS) -> Point:
    point = record(repository(repo), author, facts)
    assert point
    return point


def own(repo: Repo) -> set[str]:
    return set(changed_by(repository(repo), points(repository(repo)), lambda who: who == AGENT))


def test_a_point_has_everything(filled: Repo) -> None:
    first = recorded(filled, PERSON)
    assert (first.parent, first.number) == ("", 0)
    assert record(repository(filled), AGENT) is None
    filled.write("a", "changed\n")
    filled.write(".env.log", "secret").chmod(0o600)
    filled.write("staged", "staged\n")
    filled.git("add", "staged")
    facts = Facts(event="PostToolUse", prompt=3, prompt_text="do", tool="Bash", what="x \udce9\n")
    point = recorded(filled, AGENT, facts)
    assert points(repository(filled)) == [first, point]
    assert latest(repository(filled)) == point
    assert (point.author, point.facts, point.parent) == (AGENT, facts, first.id)
    assert listed(filled, point.tree) == present(filled)
    assert listed(filled, point.ignored) == ignored(filled)
    state = state_of(repository(filled), point)
    assert state.branch == filled.git("symbolic-ref", "HEAD")
    assert state.refs == {state.branch: point.head}
    assert state.modes == {".env.log": 0o600}
    index = (filled.path / ".git/index").read_bytes()
    git = Memory(repository(filled)).reading
    assert read_blobs(git, [state.index_blob]) == {state.index_blob: index}
    blamed = Memory(repository(filled)).reading.out(
        "blame", "--first-parent", "--porcelain", Memory(repository(filled)).ref, "--", "files/a"
    )
    assert b"author session s1\n" in blamed


def test_changes_between_points(filled: Repo) -> None:
    first = recorded(filled, PERSON)
    filled.write("a", "changed\n")
    (filled.path / "dir/b").unlink()
    filled.write("x.log", "log")
    second = recorded(filled)
    found = changes_to(repository(filled), second, first)
    assert set(found) == {"a", "dir/b", "x.log"}
    assert found["dir/b"].after is None
    assert found["x.log"].before is None
    assert set(changes(repository(filled), first.tree, second.tree)) == {"a", "dir/b"}
    filled.write(".gitignore", "")
    third = recorded(filled, PERSON)
    # What is not ignored any more has not changed.
    assert set(changes_to(repository(filled), third, second)) == {".gitignore"}


def test_what_a_session_has_changed(filled: Repo) -> None:
    recorded(filled, PERSON)
    filled.write("a", "agent\n")
    filled.write("tmp", "for a moment\n")
    recorded(filled)
    filled.write("dir/b", "person\n")
    recorded(filled, PERSON)
    (filled.path / "tmp").unlink()
    filled.git("add", "a")
    filled.git("commit", "-qm", "agent's")
    recorded(filled)
    assert own(filled) == {"a"}


def _old(repo: Repo, *args: str) -> None:
    """Run git yesterday."""
    then = str(int(time.time() - DAY_S))
    stamp = {"GIT_AUTHOR_DATE": f"{then} +0000", "GIT_COMMITTER_DATE": f"{then} +0000"}
    repo.git(*args, env=stamp)


@pytest.fixture
def branched(filled: Repo) -> Repo:
    filled.git("checkout", "-qb", "other")
    filled.write("theirs", "theirs\n")
    filled.git("add", "-A")
    _old(filled, "commit", "-qm", "theirs")
    filled.git("checkout", "-q", "-")
    return filled


@pytest.mark.parametrize("how", ["merge", "cherry-pick", "checkout", "rebase"])
def test_what_older_commits_bring_is_nobodys(branched: Repo, how: str) -> None:
    recorded(branched, PERSON)
    branched.write("mine", "mine\n")
    recorded(branched)
    branched.git("add", "mine")
    branched.git("commit", "-qm", "mine")
    recorded(branched)
    options = {"merge": ("--no-edit",), "checkout": ("-q",)}.get(how, ())
    branched.git(how, *options, "other")
    recorded(branched)
    assert own(branched) == {"mine"}


def test_an_old_stash_is_nobodys_and_the_sessions_own_is_its(filled: Repo) -> None:
    filled.write("a", "old\n")
    filled.git("stash", "-q")
    recorded(filled, PERSON)
    filled.git("stash", "pop", "-q")
    recorded(filled)
    assert own(filled) == set()
    filled.write("dir/b", "new\n")
    recorded(filled)
    filled.git("stash", "-q")
    recorded(filled)
    filled.git("stash", "pop", "-q")
    recorded(filled)
    assert own(filled) == {"dir/b"}


def test_what_a_session_removes_beside_a_merge_is_its(branched: Repo) -> None:
    branched.write("later", "later\n")
    branched.commit_all("later")
    branched.write("x", "stashed\n")
    branched.git("stash", "-uq")
    recorded(branched, PERSON)
    branched.git("merge", "-q", "--no-edit", "other")
    (branched.path / "later").unlink()
    recorded(branched)
    assert own(branched) == {"later"}


@pytest.mark.parametrize("ahead_s", [0, 1])
def test_an_edit_and_its_commit_in_one_call_are_the_sessions(
    filled: Repo, ahead_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = time.time() + ahead_s
    monkeypatch.setattr(time, "time", lambda: now_s)
    recorded(filled, PERSON)
    filled.write("a", "changed\n")
    filled.git("commit", "-qam", "changed")
    filled.write("dir/b", "amended\n")
    filled.git("commit", "-qa", "--amend", "--no-edit")
    recorded(filled)
    assert own(filled) == {"a", "dir/b"}


def _is_whole(repo: Repo, point: Point, files: Files) -> bool:
    memory = Memory(repository(repo))
    everything = memory.reading.ask("rev-list", "--objects", "--first-parent", point.id)
    names = [f"{object_id}" for _mode, object_id in listed(repo, point.tree).values()]
    blobs = read_blobs(memory.reading, names)
    return (
        not everything.exit_status
        and listed(repo, point.tree) == files
        and set(blobs) == {object_id for _mode, object_id in files.values()}
    )


def test_what_git_throws_away_is_kept(filled: Repo) -> None:
    filled.write("a", "second\n")
    filled.git("commit", "-qam", "second")
    filled.git("branch", "side")
    lost = filled.git("rev-parse", "HEAD")
    filled.write("staged", "only staged\n")
    filled.git("add", "staged")
    filled.write("a", "stashed\n")
    filled.git("stash", "-q")
    stashed = filled.git("rev-parse", "stash")
    filled.write("staged", "only staged\n")
    filled.git("add", "staged")
    point = recorded(filled, PERSON)
    files = present(filled)
    filled.git("reset", "-q", "--hard", "HEAD~1")
    filled.git("branch", "-D", "side")
    filled.git("stash", "clear")
    filled.git("reflog", "expire", "--expire=now", "--all")
    filled.git("gc", "-q", "--prune=now")
    assert filled.ask("git", "cat-file", "-e", lost).returncode
    assert _is_whole(filled, point, files)
    reading = Memory(repository(filled)).reading
    for commit in (lost, stashed):
        assert not reading.ask("rev-list", "--objects", commit).exit_status
    prune(repository(filled), time.time(), at_once=True, max_size=0)
    assert _is_whole(filled, point, files)
    for commit in (lost, stashed):
        assert not reading.ask("rev-list", "--objects", commit).exit_status


def test_commits_that_are_held_stay(filled: Repo) -> None:
    filled.write("a", "second\n")
    filled.git("commit", "-qam", "second")
    commit = filled.git("rev-parse", "HEAD")
    hold(repository(filled), [commit])
    filled.git("reset", "-q", "--hard", "HEAD~1")
    filled.git("reflog", "expire", "--expire=now", "--all")
    filled.git("gc", "-q", "--prune=now")
    assert not Memory(repository(filled)).reading.ask("rev-list", "--objects", commit).exit_status


def test_the_memory_survives_the_removal_of_the_repository(filled: Repo) -> None:
    point, files = recorded(filled, PERSON), present(filled)
    (filled.path / "a").unlink()
    shutil.rmtree(filled.path / ".git")
    Repo.init(filled.path)
    assert latest(repository(filled)) == point
    assert _is_whole(filled, point, files)
    assert recorded(filled).parent == point.id


def test_a_repository_that_was_moved_has_its_points_and_a_copy_has_none(filled: Repo) -> None:
    point = recorded(filled, PERSON)
    moved = Repo(filled.path.parent / "moved")
    filled.path.rename(moved.path)
    assert latest(repository(moved)) == point
    copy = Repo(filled.path.parent / "copy")
    shutil.copytree(moved.path, copy.path, symlinks=True)
    assert points(repository(copy)) == []
    assert recorded(copy).parent == ""
    assert latest(repository(moved)) == point


def test_without_a_home_the_memory_is_in_the_repository(filled: Repo) -> None:
    real = repository(filled)
    homeless = {name: value for name, value in real.env.items() if name != "HOME"}
    memory = Memory(real._replace(env={**homeless, "XDG_STATE_HOME": ""}))
    assert memory.folder_abs == f"{real.shared_state_abs}/files.git"
    elsewhere = Path("/proc/self")  # where nothing can be written
    memory = Memory(real._replace(env={**homeless, "XDG_STATE_HOME": str(elsewhere)}))
    assert memory.folder_abs == f"{real.shared_state_abs}/files.git"


@pytest.mark.parametrize("missing", ["HEAD", "objects", "refs", "config"])
def test_a_damaged_memory_is_begun_anew_and_says_so(filled: Repo, missing: str) -> None:
    recorded(filled, PERSON)
    folder = Path(Memory(repository(filled)).folder_abs)
    place = folder / missing
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink()
    filled.write("a", "changed\n")
    done = look_and_record(repository(filled), AGENT)
    assert done.point
    assert done.point.parent == ""
    assert any("damaged" in note for note in done.look.notes)
    assert _is_whole(filled, done.point, present(filled))


def test_a_new_memory_with_the_inode_of_the_old_one_lacks_nothing(
    filled: Repo, tmp_path: Path
) -> None:
    """As some file systems give a folder the number of one that is gone."""
    recorded(filled, PERSON)
    memory = Memory(repository(filled))
    objects, aside = Path(memory.folder_abs) / "objects", tmp_path / "objects"
    objects.rename(aside)
    shutil.rmtree(memory.folder_abs)
    memory.prepare()
    objects.rmdir()
    for folder in aside.iterdir():
        shutil.rmtree(folder)
    aside.rename(objects)
    point = recorded(filled, PERSON)
    assert _is_whole(filled, point, present(filled))


@pytest.mark.parametrize("part", ["commits", "all objects", "index", "facts"])
def test_damaged_objects_are_written_again(filled: Repo, part: str) -> None:
    filled.write("new", "new\n")
    point = recorded(filled, PERSON)
    folder = Path(Memory(repository(filled)).folder_abs)
    state = filled.path / ".git/gitgates"
    if part == "commits":
        (folder / "objects" / point.id[:2] / point.id[2:]).unlink()
    elif part == "all objects":
        for place in (folder / "objects").rglob("*"):
            if place.is_file():
                place.unlink()
    elif part == "index":
        (state / "files.index").write_bytes(b"DIRC and no more")
    else:
        (state / "files.facts").write_bytes(b"no facts")
    filled.write("a", "changed\n")
    filled.write("dir/c", "more\n")
    done = look_and_record(repository(filled), AGENT)
    assert done.point
    assert _is_whole(filled, done.point, present(filled))


def test_old_points_go_and_the_rest_stays(filled: Repo) -> None:
    real = repository(filled)
    contents = {}
    for _ in range(6):
        filled.write("a", os.urandom(20_000))
        contents[recorded(filled).number] = present(filled)
    assert prune(real, time.time(), at_once=True) == ""
    assert len(points(real)) == 6
    middle = points(real)[3]
    time.sleep(0.01)
    assert prune(real, middle.time_s + 1000, keep_s=1000.0 + 0.001, at_once=True) == ""
    kept = points(real)
    assert [point.number for point in kept] == [3, 4, 5]
    assert kept[0].parent == ""
    assert all(_is_whole(filled, point, contents[point.number]) for point in kept)
    told = prune(real, time.time(), at_once=True, max_size=1)
    assert "were removed" in told
    assert [point.number for point in points(real)] == [5]
    filled.write("a", "again\n")
    assert recorded(filled).number == 6


def test_what_was_looked_at_stays_though_no_point_has_it(filled: Repo) -> None:
    filled.git("worktree", "add", "-q", str(filled.path.parent / "w"))
    linked, real = Repo(filled.path.parent / "w"), repository(filled)
    recorded(filled)
    recorded(linked)
    for number in range(60):  # so many go into a pack
        linked.write(f"many/{number}", os.urandom(50))
    found = look(repository(linked))
    packs = list(Path(Memory(real).folder_abs, "objects/pack").glob("*.pack"))
    for pack in packs:
        os.utime(pack, (1, 1))
    prune(real, time.time(), at_once=True, max_size=1)
    assert look(repository(linked)).tree == found.tree
    done = recorded(linked)
    assert len(packs) == 1
    assert _is_whole(linked, done, present(linked))


def test_numbers_count_over_all_worktrees(filled: Repo) -> None:
    filled.git("worktree", "add", "-q", str(filled.path.parent / "w"))
    linked = Repo(filled.path.parent / "w")
    worktrees = (filled, linked, filled, linked)
    made = []
    for number, worktree in enumerate(worktrees):
        worktree.write("a", f"{number}")
        made.append(recorded(worktree))
    assert [point.number for point in made] == [0, 0, 1, 2]
    assert points(repository(linked)) == [made[1], made[3]]
    every = points(repository(filled), everywhere=True)
    assert {point.id for point in every} == {point.id for point in made}


def test_the_size_is_what_nobody_else_needs(filled: Repo) -> None:
    filled.write("large", os.urandom(200_000))
    filled.commit_all("large")
    recorded(filled)
    assert size(Memory(repository(filled))) < 100_000
    filled.write("untracked", os.urandom(200_000))
    recorded(filled)
    assert size(Memory(repository(filled))) > 200_000


def test_versions_are_those_of_git(filled: Repo) -> None:
    first = seen(filled).tree
    (filled.path / "a").chmod(0o755)
    (filled.path / "link").symlink_to("a")
    found = changes(repository(filled), first, seen(filled).tree)
    assert found["a"].before
    assert found["a"].after == found["a"].before._replace(mode=0o100755)
    assert isinstance(found["link"].after, Version)
    assert found["link"].after.mode == 0o120000


def test_a_stash_whose_log_has_expired_is_held(filled: Repo) -> None:
    filled.write("a", "stashed\n")
    filled.git("stash", "-q")
    tip = filled.git("rev-parse", "refs/stash")
    filled.git("reflog", "expire", "--expire=now", "--all")
    filled.write("a", "again\n")
    assert [each[0] for each in state_of(repository(filled), recorded(filled)).stash] == [tip]


def test_points_are_found_though_somebody_has_packed_their_refs(filled: Repo) -> None:
    point, memory = recorded(filled), Memory(repository(filled))
    filled.git("--git-dir", memory.folder_abs, "pack-refs", "--all")
    assert latest(memory.repo) == point
