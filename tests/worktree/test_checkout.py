"""A private checkout holds exactly one tree, and the user's repository does not notice it."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import Repo
from worktree_state import where, whole

from gitgates.core.errors import GitError
from gitgates.git.checkout import tree_of_index
from gitgates.git.repo import find_repo
from gitgates.store.slots import KEPT_FREE, prune_slots
from gitgates.worktree.cache import cache_path
from gitgates.worktree.checkouts import Checkout, check_out
from gitgates.worktree.setup import WorktreeSettings

pytestmark = pytest.mark.slow


def everything(repo: Repo) -> tuple[object, ...]:
    """All that a private checkout must not change."""
    return (
        whole(repo),
        repo.git("for-each-ref"),
        repo.git("worktree", "list", "--porcelain"),
        repo.git("config", "--list", "--local"),
        (repo.path / ".git/HEAD").read_bytes() if (repo.path / ".git").is_dir() else b"",
        repo.git("count-objects", "-v"),
    )


@pytest.fixture
def filled(repo: Repo) -> Repo:
    for name in ("a", "b", "dir/c", "dir/d"):
        repo.write(name, f"{name} first")
    repo.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    os.symlink("a", repo.path / "link")
    repo.commit_all("first")
    return repo


@pytest.fixture
def untouched(filled: Repo) -> Iterator[Repo]:
    """The repository, with some of everything in it; at the end it must be as it was."""
    filled.write("a", "a staged")
    filled.git("add", "a")
    filled.write("a", "a unstaged")
    filled.write("new", "untracked")
    before = everything(filled)
    yield filled
    assert everything(filled) == before
    filled.git("fsck", "--strict")


PLAIN = WorktreeSettings()


def out(repo: Repo, treeish: str = "HEAD", settings: WorktreeSettings = PLAIN) -> Checkout:
    return check_out(where(repo), treeish, settings)


def inside(place: Checkout) -> Repo:
    return Repo(Path(place.root_abs))


def held(place: Checkout) -> dict[str, str]:
    """What is in it: path → content, or `-> target`; an x before what can be executed."""
    found = {}
    for folder, folders, names in os.walk(place.root_abs):
        if folder == place.root_abs:
            folders.remove(".git")
        for name in (*folders, *names):
            path = Path(folder, name)
            shown = os.path.relpath(path, place.root_abs)
            if path.is_symlink():
                found[shown] = f"-> {path.readlink()}"
            elif path.is_file():
                mark = "x " if path.stat().st_mode & stat.S_IXUSR else ""
                found[shown] = mark + path.read_bytes().decode("utf-8", "backslashreplace")
            elif not os.listdir(path):
                found[shown] = "empty folder"
    return found


FIRST = {
    "a": "a first",
    "b": "b first",
    "dir/c": "dir/c first",
    "dir/d": "dir/d first",
    "run.sh": "x #!/bin/sh\n",
    "link": "-> a",
}


def test_a_commit_with_modes_and_links(untouched: Repo) -> None:
    with out(untouched) as place:
        assert held(place) == FIRST
        assert inside(place).head() == untouched.head()
        assert place.notes == ()
        assert place.root_abs == f"{cache_path(where(untouched))}/checkouts/1"
        assert not place.root_abs.startswith(str(untouched.path))


def test_the_index_is_laid_out_as_it_would_be_committed(untouched: Repo) -> None:
    roots = where(untouched)
    with check_out(roots, tree_of_index(roots, f"{roots.git_dir_abs}/index"), PLAIN) as place:
        assert held(place) == {**FIRST, "a": "a staged"}
        assert inside(place).git("status", "--porcelain") == "M  a"
        assert inside(place).git("branch", "--show-current") == "main"


def test_the_second_layout_writes_only_what_differs(filled: Repo) -> None:
    filled.write("b", "b second")
    filled.git("rm", "-q", "dir/d")
    filled.git("commit", "-qam", "second")
    with out(filled, "HEAD~1") as place:
        before = {name: os.lstat(f"{place.root_abs}/{name}") for name in FIRST}
    with out(filled) as place:
        assert held(place) == {
            **{name: text for name, text in FIRST.items() if name != "dir/d"},
            "b": "b second",
        }
        for name in ("a", "dir/c", "run.sh", "link"):
            assert os.path.samestat(before[name], os.lstat(f"{place.root_abs}/{name}"))
            assert before[name].st_ctime_ns == os.lstat(f"{place.root_abs}/{name}").st_ctime_ns


def test_what_gates_left_is_gone(untouched: Repo, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "c").write_text("not ours")
    with out(untouched) as place:
        root = inside(place)
        root.write("a", "a firsT")  # as long as before
        os.utime(root.path / "a", ns=(0, 0))
        (root.path / "b").unlink()
        root.write("b/now/a/folder", "x")
        (root.path / "run.sh").chmod(0o600)
        (root.path / "link").unlink()
        (root.path / "link").write_text("no link")
        for name in ("c", "d"):
            (root.path / "dir" / name).unlink()
        (root.path / "dir").rmdir()
        os.symlink(elsewhere, root.path / "dir")
        root.write("cache/deep/x", "left")
        root.write(".gitignore", "*")
        Repo.init(root.path / "another").write("x", "in a repository")
        root.git("add", "-f", "cache")
        root.git("update-index", "--assume-unchanged", "a")
    with out(untouched) as place:
        assert held(place) == FIRST
        assert inside(place).git("status", "--porcelain") == ""
    assert (elsewhere / "c").read_text() == "not ours"


def test_folders_that_a_gate_made_unwritable_are_gone_too(untouched: Repo) -> None:
    with out(untouched) as place:
        inside(place).write("modules/x/y", "read only")
        (Path(place.root_abs) / "modules/x").chmod(0o500)
        (Path(place.root_abs) / "modules").chmod(0o500)
        (Path(place.root_abs) / "dir").chmod(0o500)
    with out(untouched) as place:
        assert held(place) == FIRST


def test_a_gates_commits_stashes_and_settings_stay_inside(untouched: Repo) -> None:
    with out(untouched) as place:
        root = inside(place)
        assert root.git("rev-parse", "--show-toplevel") == place.root_abs
        assert root.git("log", "--format=%s") == "first"
        root.write("a", "changed")
        root.git("stash")
        root.write("a", "changed again")
        root.git("commit", "-qam", "by a gate")
        root.git("tag", "v1")
        root.git("branch", "other")
        root.git("config", "user.name", "Somebody")
        root.git("gc", "-q", "--prune=now")
        root.git("worktree", "add", "-q", "linked")
    with out(untouched) as place:
        root = inside(place)
        assert root.git("log", "--format=%s") == "first"
        assert root.git("tag") == ""
        assert root.git("config", "user.name") == "Test"
        assert held(place) == FIRST


def test_the_repository_inside_knows_branches_tags_and_remotes(filled: Repo) -> None:
    filled.git("tag", "-am", "one", "v1")
    filled.git("remote", "add", "origin", "https://example.invalid/x")
    filled.git("update-ref", "refs/remotes/origin/main", "HEAD")
    filled.write("b", "b second")
    filled.git("commit", "-qam", "second")
    filled.git("checkout", "-q", "-b", "feature")
    with out(filled) as place:
        root = inside(place)
        assert root.git("branch", "--show-current") == "feature"
        assert root.git("describe", "--tags") == filled.git("describe", "--tags")
        assert root.git("merge-base", "origin/main", "HEAD") == filled.git("rev-parse", "v1^{}")
        assert root.git("diff", "--name-only", "origin/main") == "b"
        assert root.git("remote", "get-url", "origin") == "https://example.invalid/x"
    with out(filled, "v1") as place:
        assert inside(place).head() == filled.git("rev-parse", "v1^{}")
        assert inside(place).git("branch", "--show-current") == ""
        assert inside(place).git("status", "--porcelain") == ""


def test_filters_and_line_endings_are_applied(filled: Repo) -> None:
    filled.git("config", "filter.shout.smudge", "tr a-z A-Z")
    filled.git("config", "filter.shout.clean", "tr A-Z a-z")
    filled.write(".gitattributes", "*.txt text eol=crlf\n*.loud filter=shout\n")
    filled.write("t.txt", "one\r\ntwo\r\n")
    filled.write("x.loud", "HEY")
    filled.commit_all("filters")
    with out(filled) as place:
        assert (held(place)["t.txt"], held(place)["x.loud"]) == ("one\r\ntwo\r\n", "HEY")
        assert inside(place).git("status", "--porcelain") == ""
    filled.write(".gitattributes", "*.txt text eol=lf\n")
    filled.git("commit", "-qm", "other attributes", "--", ".gitattributes")
    with out(filled) as place:
        assert (held(place)["t.txt"], held(place)["x.loud"]) == ("one\ntwo\n", "hey")
    filled.write(".gitattributes", "*.loud filter=shout\n")
    filled.git("commit", "-qm", "again", "--", ".gitattributes")
    filled.git("config", "core.autocrlf", "true")
    with out(filled) as place:
        assert (held(place)["t.txt"], held(place)["x.loud"]) == ("one\r\ntwo\r\n", "HEY")
    filled.git("config", "core.autocrlf", "false")
    filled.git("config", "filter.shout.smudge", "cat")
    with out(filled) as place:
        assert (held(place)["t.txt"], held(place)["x.loud"]) == ("one\ntwo\n", "hey")


def test_a_missing_required_filter_is_an_error(filled: Repo) -> None:
    filled.write("x.loud", "hey")
    filled.commit_all("file")
    filled.write(".gitattributes", "*.loud filter=shout\n")
    filled.git("add", ".gitattributes")
    filled.git("commit", "-qm", "filters")
    filled.git("config", "filter.shout.smudge", "false")
    filled.git("config", "filter.shout.required", "true")
    with pytest.raises(GitError, match="smudge filter shout failed"):
        out(filled)
    filled.git("config", "filter.shout.smudge", "cat")
    with out(filled) as place:
        assert held(place)["x.loud"] == "hey"


def test_submodules_are_left_empty_and_said(filled: Repo, tmp_path: Path) -> None:
    library = Repo.init(tmp_path / "library")
    library.write("x", "in the library")
    library.commit_all("x")
    filled.git("submodule", "--quiet", "add", str(library.path), "lib")
    filled.git("commit", "-qm", "submodule")
    filled.git("config", "submodule.recurse", "true")
    with out(filled) as place:
        assert held(place)["lib"] == "empty folder"
        assert place.notes == ("submodules are not checked out: lib",)
        inside(place).write("lib/left", "by a gate")
    with out(filled) as place:
        assert held(place)["lib"] == "empty folder"
        inside(place).write("lib/left", "by a gate")
    with out(filled, "HEAD~1") as place:
        assert held(place) == FIRST


@pytest.mark.parametrize("name", ["vendor", "vendor/lib"])
@pytest.mark.parametrize("is_setup", [False, True])
def test_what_a_link_for_a_submodule_leads_to_stays(
    filled: Repo, tmp_path: Path, name: str, *, is_setup: bool
) -> None:
    library = Repo.init(tmp_path / "library")
    library.write("x", "in the library")
    library.commit_all("x")
    filled.git("submodule", "--quiet", "add", str(library.path), "vendor/lib")
    filled.git("commit", "-qm", "submodule")
    filled.write("vendor/lib/x", "edited")
    command = f"rm -rf {name} && ln -s {filled.path}/{name} {name}"
    settings = PLAIN._replace(setup=(command,)) if is_setup else PLAIN
    with out(filled, settings=settings) as place:
        if is_setup:
            assert held(place)["vendor/lib"] == "empty folder"
        subprocess.run(command, shell=True, check=True, cwd=place.root_abs)  # as a gate might
    with out(filled, settings=settings) as place:
        assert held(place)["vendor/lib"] == "empty folder"
    assert (filled.path / "vendor/lib/x").read_text() == "edited"


def test_two_at_once_get_two_folders(untouched: Repo) -> None:
    with out(untouched) as one, out(untouched) as two:
        assert [os.path.basename(place.root_abs) for place in (one, two)] == ["1", "2"]
        assert held(one) == held(two) == FIRST
    with out(untouched) as place:
        assert os.path.basename(place.root_abs) == "1"


def test_few_free_folders_are_kept(untouched: Repo) -> None:
    places = [out(untouched) for _number in range(KEPT_FREE + 2)]
    folder = os.path.dirname(places[0].root_abs)
    for place in places:
        place.close()
    names = sorted(name for name in os.listdir(folder) if name.isdigit())
    assert names == [str(number + 1) for number in range(KEPT_FREE)]
    os.utime(f"{folder}/1.lock", (0, 0))
    prune_slots(folder)
    assert "1" not in os.listdir(folder)


@pytest.mark.samples(1)
@pytest.mark.parametrize("left", ["no state", "torn state", "half a tree", "git's lock"])
def test_a_layout_that_was_killed_is_done_again(untouched: Repo, left: str) -> None:
    with out(untouched) as place:
        base = place.root_abs
    written = os.stat(f"{base}/b").st_ctime_ns
    match left:
        case "no state":
            os.unlink(f"{base}.state")
        case "torn state":
            os.truncate(f"{base}.state", 9)
        case "half a tree":
            os.unlink(f"{base}.state")
            os.unlink(f"{base}.index")
            os.unlink(f"{base}/a")
            os.truncate(f"{base}/b", 0)
        case _:
            Path(f"{base}.index.lock").touch()
    with out(untouched) as place:
        assert held(place) == FIRST
        assert os.stat(f"{base}/b").st_ctime_ns != written


def test_in_a_linked_worktree(filled: Repo, tmp_path: Path) -> None:
    filled.git("worktree", "add", "-q", "-b", "other", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked")
    linked.write("a", "on the branch")
    linked.git("commit", "-qam", "other")
    before = everything(linked), everything(filled)
    with out(linked) as place:
        assert held(place) == {**FIRST, "a": "on the branch"}
        assert inside(place).git("branch", "--show-current") == "other"
        assert place.root_abs == f"{cache_path(where(filled))}/checkouts/1"  # which they share
    assert (everything(linked), everything(filled)) == before


def test_before_the_first_commit(repo: Repo) -> None:
    repo.write("a", "staged")
    repo.git("add", "a")
    roots = where(repo)
    with check_out(roots, tree_of_index(roots, f"{roots.git_dir_abs}/index"), PLAIN) as place:
        assert held(place) == {"a": "staged"}
        assert inside(place).git("status", "--porcelain") == "A  a"
    with pytest.raises(GitError, match="`HEAD` is neither a commit nor a tree"):
        out(repo)


def test_a_sparse_working_tree_does_not_make_the_checkout_sparse(filled: Repo) -> None:
    filled.git("sparse-checkout", "set", "--no-cone", "/a")
    before = everything(filled)
    with out(filled) as place:
        assert held(place) == FIRST
        assert inside(place).git("status", "--porcelain") == ""
    assert everything(filled) == before


def test_the_variables_that_git_gives_its_hooks_do_no_harm(untouched: Repo) -> None:
    env = {
        **os.environ,
        "GIT_DIR": ".git",
        "GIT_INDEX_FILE": ".git/index",
        "GIT_PREFIX": "dir/",
    }
    roots = where(untouched)._replace(env=env)
    with check_out(roots, "HEAD", PLAIN) as place:
        assert held(place) == FIRST


def test_odd_names(repo: Repo) -> None:
    odd = Repo.init(repo.path.parent / 'a "b": c\\d')
    names = [b"caf\xe9", b"new\nline", b'"quoted"', b"-dash", b"trailing "]
    for name in names:
        with open(os.path.join(os.fsencode(odd.path), name), "wb") as file:
            file.write(name)
    odd.commit_all("odd")
    with out(odd) as place:
        assert sorted(os.listdir(os.fsencode(place.root_abs))) == sorted([b".git", *names])
        assert inside(place).git("status", "--porcelain") == ""
        assert inside(place).git("log", "--format=%s") == "odd"


def test_a_sha256_repository(repo: Repo) -> None:
    path = repo.path.parent / "sha256"
    repo.git("init", "-q", "--object-format=sha256", str(path))
    modern = Repo(path)
    modern.write("a", "x")
    modern.commit_all("modern")
    with out(modern) as place:
        assert held(place) == {"a": "x"}
        assert inside(place).head() == modern.head()


def test_settings_of_one_worktree_and_of_another_place(filled: Repo) -> None:
    filled.git("config", "extensions.worktreeConfig", "true")
    filled.git("config", "--worktree", "my.key", "here")
    filled.git("config", "core.worktree", str(filled.path))
    with out(filled) as place:
        root = inside(place)
        assert root.git("config", "my.key") == "here"
        assert root.git("rev-parse", "--show-toplevel") == place.root_abs
        assert root.git("status", "--porcelain") == ""
        found = find_repo(place.root_abs, os.environ)
        assert found == place.repo._replace(env=found.env)
