"""A snapshot is the tree of the working tree, and the user's repository does not notice it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Repo
from worktree_state import where, whole

from gitgates.core.errors import GitError
from gitgates.files.look import DEFAULT, Look, UnseenError
from gitgates.files.memory import TREES, Memory
from gitgates.files.prune import prune
from gitgates.files.stored import look_as_stored
from gitgates.git import object_store as own_objects
from gitgates.git.index import find_unstaged
from gitgates.git.repo import Repo as Repository
from gitgates.git.repo import find_repo, read_head
from gitgates.store.rescue import Rescue, StashJournal
from gitgates.worktree.checkouts import check_out
from gitgates.worktree.restore import Restorer
from gitgates.worktree.setup import WorktreeSettings
from gitgates.worktree.stash import stash

pytestmark = pytest.mark.slow


DAY_S = 24 * 3600.0


def everything(repo: Repo) -> tuple[object, ...]:
    """All that a snapshot must not change."""
    git_dir = Path(repo.git("rev-parse", "--absolute-git-dir"))
    index = git_dir / "index"
    return (
        whole(repo),
        repo.git("for-each-ref"),
        repo.git("count-objects", "-v"),
        (index.read_bytes(), index.stat().st_mtime_ns) if index.exists() else None,
        sorted(os.listdir(git_dir)),
    )


@pytest.fixture(autouse=True)
def _no_refresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking with `git status` must not be what changes the index."""
    monkeypatch.setenv("GIT_OPTIONAL_LOCKS", "0")


@pytest.fixture
def filled(repo: Repo) -> Repo:
    for name in ("a", "b", "dir/c", "dir/d"):
        repo.write(name, f"{name} first")
    repo.write(".gitignore", "*.log\nbuild/\n")
    repo.commit_all("first")
    (repo.path / ".git/gitgates").mkdir()
    return repo


@pytest.fixture
def untouched(filled: Repo) -> Iterator[Repo]:
    """The repository, with some of everything in it; at the end it must be as it was."""
    filled.write("a", "a staged")
    filled.git("add", "a")
    filled.write("a", "a unstaged")
    (filled.path / "b").unlink()
    filled.write("new", "untracked")
    filled.write("x.log", "ignored")
    filled.git("status")
    before = everything(filled)
    yield filled
    assert everything(filled) == before
    filled.git("fsck", "--strict")


def shot(repo: Repo) -> Look:
    """Take a snapshot twice: from nothing or what is kept, and from nothing. Both are the same."""
    first = look_as_stored(where(repo))
    state = Path(where(repo).state_abs)
    for name in ("index", "facts"):
        (state / f"files.{name}").unlink(missing_ok=True)
    assert look_as_stored(where(repo)) == first
    return first


def held(repo: Repo, tree: str) -> dict[str, str]:
    """What a tree holds: path → mode and content."""
    git = own_objects.reading_git(where(repo))
    found = {}
    for entry in git.out("ls-tree", "-r", "-z", tree).split(b"\0")[:-1]:
        meta, _tab, name = entry.partition(b"\t")
        mode, kind, object_id = meta.decode().split()
        content = git.out("cat-file", "blob", object_id) if kind == "blob" else object_id.encode()
        shown = "" if mode == "100644" else f"{mode} "
        found[os.fsdecode(name)] = shown + content.decode("utf-8", "backslashreplace")
    return found


FIRST = {
    ".gitignore": "*.log\nbuild/\n",
    "a": "a first",
    "b": "b first",
    "dir/c": "dir/c first",
    "dir/d": "dir/d first",
}
NOW = {
    **{name: text for name, text in FIRST.items() if name != "b"},
    "a": "a unstaged",
    "new": "untracked",
}


def test_tracked_and_untracked_without_what_is_ignored(untouched: Repo) -> None:
    taken = shot(untouched)
    assert held(untouched, taken.tree) == NOW
    assert taken == Look(tree=taken.tree, head=untouched.head())
    assert taken.is_whole


def test_a_clean_working_tree_has_the_tree_of_its_commit(filled: Repo) -> None:
    assert shot(filled).tree == filled.git("rev-parse", "HEAD^{tree}")


def test_what_changes_between_two_snapshots_is_seen(filled: Repo) -> None:
    look_as_stored(where(filled))
    filled.write("a", "a Second")  # longer
    filled.write("b", "b First")  # as long
    (filled.path / "dir/c").chmod(0o755)
    (filled.path / "dir/d").unlink()
    os.symlink("../a", filled.path / "dir/d")
    filled.write("extra/new", "new")
    assert held(filled, look_as_stored(where(filled)).tree) == {
        **FIRST,
        "a": "a Second",
        "b": "b First",
        "dir/c": "100755 dir/c first",
        "dir/d": "120000 ../a",
        "extra/new": "new",
    }
    filled.git("checkout", "-q", ".")
    (filled.path / "extra/new").unlink()
    assert held(filled, look_as_stored(where(filled)).tree) == FIRST


def test_files_folders_and_links_take_each_others_place(filled: Repo) -> None:
    look_as_stored(where(filled))
    (filled.path / "a").unlink()
    filled.write("a/inside", "folder now")
    for name in ("c", "d"):
        (filled.path / "dir" / name).unlink()
    (filled.path / "dir").rmdir()
    os.symlink("a", filled.path / "dir")
    taken = held(filled, shot(filled).tree)
    assert taken == {
        ".gitignore": FIRST[".gitignore"],
        "a/inside": "folder now",
        "b": "b first",
        "dir": "120000 a",
    }
    (filled.path / "dir").unlink()
    filled.write("dir", "file now")
    assert held(filled, shot(filled).tree) == {**taken, "dir": "file now"}


def test_ignore_rules_that_change_are_followed(filled: Repo, tmp_path: Path) -> None:
    filled.write("new.txt", "new")
    filled.write("deep/er/new.md", "new")
    assert {"new.txt", "deep/er/new.md"} <= held(filled, look_as_stored(where(filled)).tree).keys()
    filled.write(".git/info/exclude", "*.txt\n")
    (filled.path / "deep/.gitignore").write_text("*\n")  # ignores itself, too
    assert held(filled, look_as_stored(where(filled)).tree) == FIRST
    filled.write(".git/info/exclude", "")
    (filled.path / "deep/.gitignore").unlink()
    assert {"new.txt", "deep/er/new.md"} <= held(filled, look_as_stored(where(filled)).tree).keys()
    rules = tmp_path / "rules"
    rules.write_text("new.*\n")
    filled.git("config", "core.excludesFile", str(rules))
    assert held(filled, shot(filled).tree) == FIRST


def test_what_is_tracked_although_it_is_ignored(filled: Repo) -> None:
    filled.write("x.log", "one")
    look_as_stored(where(filled))
    filled.git("add", "-f", "x.log")
    assert held(filled, look_as_stored(where(filled)).tree)["x.log"] == "one"
    (filled.path / "x.log").unlink()
    assert "x.log" not in held(filled, look_as_stored(where(filled)).tree)
    filled.write("x.log", "two")
    assert held(filled, look_as_stored(where(filled)).tree)["x.log"] == "two"
    filled.git("rm", "-q", "-f", "--cached", "x.log")
    assert held(filled, shot(filled).tree) == FIRST


def test_deleted_written_again_and_ignored_by_then(filled: Repo) -> None:
    (filled.path / "a").unlink()
    look_as_stored(where(filled))
    filled.write(".git/info/exclude", "/a\n")
    filled.write("a", "again")
    assert held(filled, shot(filled).tree)["a"] == "again"


def test_gc_does_not_destroy_it(filled: Repo) -> None:
    filled.write("a", "staged once, then not")
    filled.git("add", "a")
    filled.write("new", "untracked")
    taken = look_as_stored(where(filled))
    expected = held(filled, taken.tree)
    filled.git("write-tree")
    filled.git("reset", "-q", "--hard")
    filled.git("reflog", "expire", "--expire=now", "--all")
    filled.git("gc", "-q", "--prune=now")
    assert held(filled, taken.tree) == expected
    assert expected["a"] == "staged once, then not"


def test_a_snapshot_can_be_laid_out(untouched: Repo) -> None:
    roots = where(untouched)
    with check_out(roots, look_as_stored(roots).tree, WorktreeSettings()) as place:
        inside = Repo(Path(place.root_abs))
        assert {name: (inside.path / name).read_text() for name in NOW} == NOW
        assert inside.git("status", "--porcelain") == "M  a\nD  b\nA  new"
        inside.git("fsck")


@pytest.mark.skipif(os.geteuid() == 0, reason="root can write everywhere")
def test_where_the_users_objects_can_only_be_read(filled: Repo) -> None:
    filled.write("a", "changed")
    filled.write("new", "untracked")
    for folder, _folders, _names in os.walk(filled.path / ".git/objects"):
        Path(folder).chmod(0o500)
    assert held(filled, shot(filled).tree) == {**FIRST, "a": "changed", "new": "untracked"}
    for folder, _folders, _names in os.walk(filled.path / ".git/objects"):
        Path(folder).chmod(0o700)


def test_a_git_folder_of_another_name(filled: Repo) -> None:
    (filled.path / ".git").rename(filled.path / "dotfiles")
    env = {
        **os.environ,
        "GIT_DIR": str(filled.path / "dotfiles"),
        "GIT_WORK_TREE": str(filled.path),
    }
    roots = find_repo(str(filled.path), env)
    assert look_as_stored(roots) == Look(
        tree=filled.git("rev-parse", "HEAD^{tree}", env=env),
        head=filled.git("rev-parse", "HEAD", env=env),
    )


def test_a_tree_that_was_seen_is_kept_for_a_month(filled: Repo) -> None:
    filled.write("new", "untracked")
    roots, memory = where(filled), Memory(where(filled))
    seen = [look_as_stored(roots).tree]
    filled.write("new", "changed")
    seen.append(look_as_stored(roots).tree)
    for above, _folders, names in os.walk(f"{memory.folder_abs}/objects"):
        for name in names:
            os.utime(f"{above}/{name}", (0, 0))
    prune(roots, time.time() + 29 * DAY_S, max_size=0, at_once=True)
    assert held(filled, seen[0])["new"] == "untracked"
    assert held(filled, seen[1])["new"] == "changed"
    os.utime(f"{memory.folder_abs}/{TREES}/{seen[0]}", (0, 0))
    prune(roots, time.time(), max_size=0, at_once=True)
    with pytest.raises(GitError):
        held(filled, seen[0])
    assert held(filled, seen[1])["new"] == "changed"
    assert look_as_stored(roots).tree == seen[1]


@pytest.mark.thorough
def test_a_large_untracked_file_is_left_out(filled: Repo) -> None:
    filled.write("grows", "small")
    assert held(filled, look_as_stored(where(filled)).tree)["grows"] == "small"
    for name in ("grows", "large", "a"):
        os.truncate(filled.write(name), DEFAULT.max_file + (name != "a"))
    taken = shot(filled)
    assert taken.left_out == dict.fromkeys(("grows", "large"), "larger than 100 MiB")
    assert taken.doubts == ("left out: `grows`, `large`",)
    git = own_objects.reading_git(where(filled))
    assert git.lines("ls-tree", "--name-only", taken.tree) == [".gitignore", "a", "b", "dir"]


def test_other_repositories_are_left_out(filled: Repo) -> None:
    Repo.init(filled.path / "empty").write("x", "no commit yet")
    filled.git("worktree", "add", "-q", "-b", "agent", "agents/one")
    taken = shot(filled)
    assert held(filled, taken.tree) == FIRST
    assert taken.left_out == {"empty": "a repository of its own"}
    assert not taken.is_whole


def test_submodules_are_in_it_and_dirty_ones_make_it_unprovable(
    filled: Repo, tmp_path: Path
) -> None:
    library = Repo.init(tmp_path / "library")
    library.write("x", "in the library")
    library.commit_all("x")
    filled.git("submodule", "--quiet", "add", str(library.path), "lib")
    filled.git("commit", "-qm", "submodule")
    assert shot(filled).doubts == ()
    inner = Repo(filled.path / "lib")
    inner.write("x", "changed")
    dirty = shot(filled)
    assert dirty.doubts == ("submodules have uncommitted changes: lib",)
    inner.git("commit", "-qam", "y")
    moved = shot(filled)
    assert moved.doubts == ()
    assert held(filled, moved.tree)["lib"] == f"160000 {inner.head()}"
    inner.write("new", "untracked")
    assert not shot(filled).is_whole


@pytest.mark.samples(1)
@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_files_that_git_is_told_not_to_look_at(filled: Repo, flag: str) -> None:
    assert look_as_stored(where(filled)).is_whole
    filled.git("update-index", flag, "a")
    filled.write("a", "changed")
    taken = shot(filled)
    assert taken.is_whole
    assert held(filled, taken.tree)["a"] == "changed"
    filled.git("update-index", flag.replace("--", "--no-"), "a")
    assert held(filled, look_as_stored(where(filled)).tree)["a"] == "changed"


def test_a_sparse_working_tree_keeps_what_is_not_there(filled: Repo) -> None:
    filled.git("sparse-checkout", "set", "--cone", "other")
    assert not (filled.path / "dir").exists()
    filled.write("a", "changed")
    filled.write("other/new", "new")
    taken = shot(filled)
    assert held(filled, taken.tree) == {**FIRST, "a": "changed", "other/new": "new"}
    filled.git("sparse-checkout", "disable")
    assert shot(filled).is_whole


def test_a_failing_filter_is_no_snapshot(filled: Repo) -> None:
    look_as_stored(where(filled))
    filled.git("config", "filter.broken.clean", "false")
    filled.git("config", "filter.broken.required", "true")
    filled.write(".gitattributes", "*.x filter=broken\n")
    filled.write("one.x", "x")
    with pytest.raises(GitError, match="clean filter 'broken' failed") as caught:
        look_as_stored(where(filled))
    assert caught.value.exit_status == 74
    filled.git("config", "filter.broken.clean", "tr x y")
    assert held(filled, shot(filled).tree)["one.x"] == "y"


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everything")
@pytest.mark.parametrize("name", ["new", "dir", "a"])
def test_what_cannot_be_read_is_no_snapshot(filled: Repo, name: str) -> None:
    filled.write("new", "untracked")
    filled.write("a", "changed")
    (filled.path / name).chmod(0)
    with pytest.raises(UnseenError):
        look_as_stored(where(filled))
    (filled.path / name).chmod(0o700)


def test_line_endings_are_as_git_would_store_them(filled: Repo) -> None:
    filled.git("config", "core.autocrlf", "true")
    filled.git("config", "core.safecrlf", "true")
    filled.write("mixed", "one\r\ntwo\n")
    assert held(filled, shot(filled).tree)["mixed"] == "one\ntwo\n"


def test_before_the_first_commit(repo: Repo) -> None:
    empty = shot(repo)
    assert held(repo, empty.tree) == {}
    repo.write("a", "untracked")
    assert held(repo, shot(repo).tree) == {"a": "untracked"}
    repo.git("add", "-N", "a")
    assert held(repo, shot(repo).tree) == {"a": "untracked"}
    repo.git("add", "a")
    taken = shot(repo)
    repo.git("rm", "-q", "--cached", "a")
    repo.git("gc", "-q", "--prune=now")
    assert held(repo, taken.tree) == {"a": "untracked"}


def test_names_that_are_no_text(filled: Repo) -> None:
    names = [b"caf\xe9", b"new\nline", b'"quoted"', b"-dash", b"tab\t", b":(glob)*"]
    for name in names:
        with open(os.path.join(os.fsencode(filled.path), name), "wb") as file:
            file.write(b"x")
    assert held(filled, shot(filled).tree) == {
        **FIRST,
        **dict.fromkeys(map(os.fsdecode, names), "x"),
    }
    filled.write(".git/info/exclude", "caf*\nnew*\n")
    taken = held(filled, look_as_stored(where(filled)).tree)
    assert sorted(set(taken) - set(FIRST)) == ['"quoted"', "-dash", ":(glob)*", "tab\t"]


def test_in_a_linked_worktree_and_both_at_once(filled: Repo, tmp_path: Path) -> None:
    filled.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked")
    linked.write("a", "on the branch")
    before = everything(filled)
    assert held(linked, shot(linked).tree) == {**FIRST, "a": "on the branch"}
    assert held(filled, shot(filled).tree) == FIRST
    assert everything(filled) == before


def test_a_conflict_in_a_merge(filled: Repo) -> None:
    filled.git("checkout", "-q", "-b", "other")
    filled.write("a", "other")
    filled.git("commit", "-qam", "other")
    filled.git("checkout", "-q", "main")
    filled.write("a", "main")
    filled.git("commit", "-qam", "main")
    filled.ask("git", "merge", "other")
    before = everything(filled)
    taken = held(filled, shot(filled).tree)
    assert taken["a"].startswith("<<<<<<< HEAD\nmain")
    assert everything(filled) == before


def test_many_at_once(untouched: Repo) -> None:
    readers = []
    for _number in range(4):
        (read, write), pid = os.pipe(), os.fork()
        if not pid:
            status = 1
            try:
                os.write(write, look_as_stored(where(untouched)).tree.encode())
                status = 0
            finally:
                os._exit(status)
        os.close(write)
        readers.append((read, pid))
    trees = set()
    for read, pid in readers:
        trees.add(os.read(read, 100).decode())
        os.close(read)
        assert os.waitpid(pid, 0)[1] == 0
    assert [held(untouched, tree) for tree in trees] == [NOW]


LEFT = ["facts", "torn facts", "index", "locked", "garbage", "written"]


@pytest.mark.samples(1)
@pytest.mark.parametrize("left", LEFT)
def test_what_a_killed_snapshot_leaves_does_no_harm(untouched: Repo, left: str) -> None:
    expected = look_as_stored(where(untouched))
    state = Path(where(untouched).state_abs)
    match left:
        case "facts" | "index":
            (state / f"files.{left}").unlink()
        case "torn facts":
            os.truncate(state / "files.facts", 7)
        case "locked":
            (state / "files.index.lock").touch()
        case "written":
            env = {"GIT_INDEX_FILE": str(state / "files.index")}
            where(untouched)._replace(env={**os.environ, **env}).git.out(
                "rm", "--cached", "-r", "."
            )
        case _:
            (state / "files.index").write_bytes(b"no index")
    assert look_as_stored(where(untouched)) == expected


def test_what_has_not_changed_is_not_written_again(filled: Repo) -> None:
    state = Path(where(filled).state_abs)

    def written() -> list[tuple[int, int]]:
        found = [(state / f"files.{name}").stat() for name in ("index", "facts")]
        return [(stat.st_ino, stat.st_ctime_ns) for stat in found]

    taken = look_as_stored(where(filled))
    before = written()
    assert look_as_stored(where(filled)) == taken
    assert written() == before
    (filled.path / "more").write_text("1\n")
    filled.git("add", "more")
    assert look_as_stored(where(filled)).tree != taken.tree
    assert not set(written()) & set(before)


def test_the_commit_is_that_of_git_however_it_is_stored(filled: Repo, tmp_path: Path) -> None:
    def head(repo: Repo) -> tuple[str, str, str]:
        return (
            look_as_stored(where(repo)).head,
            read_head(where(repo)),
            repo.ask("git", "rev-parse", "--verify", "-q", "HEAD").stdout.decode().strip(),
        )

    commit = filled.git("rev-parse", "HEAD").strip()
    assert head(filled) == (commit, commit, commit)
    filled.git("worktree", "add", "-q", str(tmp_path / "linked"), "-b", "a/b")
    assert head(Repo(tmp_path / "linked")) == (commit, commit, commit)
    filled.git("pack-refs", "--all")
    assert head(filled) == (commit, "", commit)
    filled.git("checkout", "-q", "--detach")
    assert head(filled) == (commit, commit, commit)
    filled.git("symbolic-ref", "refs/heads/link", "refs/heads/a/b")
    filled.git("symbolic-ref", "HEAD", "refs/heads/link")
    assert head(filled) == (commit, "", commit)
    filled.git("symbolic-ref", "HEAD", "refs/heads/unborn")
    assert head(filled) == ("", "", "")


def test_the_variables_that_git_gives_its_hooks_do_no_harm(untouched: Repo) -> None:
    roots = where(untouched)
    index = str(untouched.path / ".git/index.lock")
    names = {"GIT_DIR": ".git", "GIT_INDEX_FILE": index, "GIT_PREFIX": "dir/"}
    taken = look_as_stored(roots._replace(env={**roots.env, **names}))
    assert held(untouched, taken.tree) == NOW


def hide(roots: Repository, rescue: Rescue) -> None:
    git = roots.git
    unstaged = find_unstaged(git)
    draft = StashJournal(root_abs=roots.root_abs, pid=os.getpid(), started="")
    stash(git, rescue, unstaged, draft=draft, step=lambda _step: None)


def hide_in_another_process(repo: Repo) -> None:
    """Hide what is unstaged, and be killed."""
    pid = os.fork()
    if not pid:
        status = 1
        try:
            roots = where(repo)
            rescue = Rescue(f"{roots.state_abs}/rescue")
            hide(roots, rescue)
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0


def put_back(repo: Repo) -> None:
    roots = where(repo)
    rescue = Rescue(f"{roots.state_abs}/rescue")
    Restorer(roots, rescue, lambda _step: None).restore(rescue.read())


def test_what_another_run_has_hidden_counts_as_in_its_place(filled: Repo) -> None:
    filled.git("config", "filter.up.clean", "tr a-z A-Z")
    filled.write("t.up", "lower")
    filled.write(".gitattributes", "*.up filter=up\n")
    filled.commit_all("filter")
    filled.write("b", "b staged")
    filled.git("add", "b")
    filled.write("a", "a unstaged")
    filled.write("t.up", "other")
    filled.write("announced", "with -N")
    filled.git("add", "-N", "announced")
    (filled.path / "dir/c").unlink()
    filled.write("dir/c/inside", "folder now")
    filled.write("dir/c/x.log", "ignored")
    (filled.path / "dir/d").unlink()
    os.symlink("nowhere", filled.path / "dir/d")
    filled.write("new", "untracked")
    before, state = shot(filled), whole(filled)
    hide_in_another_process(filled)
    assert (filled.path / "a").read_text() == "a first"
    hidden = whole(filled)
    during = look_as_stored(where(filled))
    assert held(filled, during.tree) == held(filled, before.tree)
    assert during.tree == before.tree
    assert (during.doubts, during.is_whole) == ((), False)
    assert whole(filled) == hidden
    put_back(filled)
    assert whole(filled) == state
    assert look_as_stored(where(filled)) == before


def test_the_run_that_hides_takes_what_its_gates_see(filled: Repo) -> None:
    filled.write("a", "a staged")
    filled.git("add", "a")
    filled.write("a", "a unstaged")
    roots = where(filled)
    rescue = Rescue(f"{roots.state_abs}/rescue")
    hide(roots, rescue)
    taken = look_as_stored(roots)
    assert (held(filled, taken.tree)["a"], taken.is_whole) == ("a staged", True)
    put_back(filled)
    assert held(filled, look_as_stored(roots).tree)["a"] == "a unstaged"
