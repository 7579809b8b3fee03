"""The change of a session as a patch: its id, and its text for people; and names of all sorts."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Repo
from span_support import Colleague, Watched, copy_of, long_ago, right_now, text

from gitgates.core.agent_types import FileDifference
from gitgates.git import diff as own_change

pytestmark = pytest.mark.slow


def fill(repo: Repo) -> None:
    repo.write("base.py", text("base", 60))
    repo.write("far.py", text("far", 60))
    repo.commit_all("first")
    repo.add_origin()


@pytest.fixture
def copied(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Watched:
    long_ago(monkeypatch)
    watched = copy_of(fill, tmp_path_factory, tmp_path)
    right_now(monkeypatch)
    return watched


@pytest.fixture
def filled(copied: Watched) -> Repo:
    """The repository alone, to be watched later."""
    return copied.repo


@pytest.fixture
def watched(copied: Watched) -> Watched:
    """A session that has changed two files."""
    copied.repo.write("base.py", text("own", 2) + text("base", 60))
    copied.repo.write("new.py", text("new", 20))
    return copied


def test_the_id_is_that_of_git(watched: Watched) -> None:
    watched.repo.git("add", ".")
    diff = watched.repo.ask("git", "diff", "--cached").stdout
    expected = watched.repo.ask("git", "patch-id", "--stable", stdin=diff).stdout.split()[0]
    assert watched.patch_id() == expected.decode()


def test_settings_and_the_environment_do_not_change_it(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = watched.patch_id(), watched.diff("base.py", "new.py")
    for name, value in (
        *(("diff.noprefix", "true"), ("diff.context", "9"), ("diff.algorithm", "patience")),
        *(("diff.orderFile", "order"), ("diff.renames", "copies"), ("color.ui", "always")),
        *(("diff.external", "false"), ("diff.mnemonicPrefix", "true"), ("core.abbrev", "5")),
    ):
        watched.repo.git("config", name, value)
    watched.repo.write(".git/order", "new.py\n")
    monkeypatch.setenv("GIT_DIFF_OPTS", "--unified=0")
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    assert (watched.patch_id(), watched.diff("base.py", "new.py")) == before


def test_it_outlives_commit_reword_squash_and_rebase(watched: Watched, tmp_path: Path) -> None:
    repo = watched.repo
    before = watched.patch_id()
    repo.git("add", "base.py")
    repo.git("commit", "-qm", "one")
    repo.git("add", ".")
    repo.git("commit", "-qm", "two")
    assert watched.patch_id() == before
    repo.git("commit", "-q", "--amend", "-m", "other words")
    assert watched.patch_id() == before
    repo.git("reset", "-q", "--soft", "HEAD~2")
    repo.git("commit", "-qm", "both")
    assert watched.patch_id() == before
    colleague = Colleague(repo, tmp_path / "colleague")
    colleague.push("theirs.py", text("theirs", 500))
    repo.git("fetch", "-q", "origin")
    repo.git("rebase", "-q", "origin/main")
    assert watched.patch_id() == before
    colleague.push("base.py", text("base", 60) + text("theirs", 40))
    repo.git("fetch", "-q", "origin")
    repo.git("rebase", "-q", "origin/main")
    both = watched.patch_id()
    assert both != before  # others have changed a file of it
    repo.write("new.py", text("newer", 20))
    assert watched.patch_id() not in (before, both)


def test_another_binary_is_another_change(watched: Watched) -> None:
    watched.repo.write("x.bin", b"\0one")
    before = watched.patch_id()
    watched.repo.write("x.bin", b"\0two")
    assert watched.patch_id() != before


def test_a_huge_change_has_no_id(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched.patch_id()
    monkeypatch.setattr(own_change, "_MOST_LINES", 20)
    assert watched.patch_id() == ""


def test_a_submodule_has_no_size(watched: Watched) -> None:
    Repo.init(watched.repo.path / "module").git("commit", "-q", "--allow-empty", "-m", "first")
    watched.repo.git("add", "module")
    assert watched.found()["module"].submodule
    assert watched.patch_id()
    assert "+Subproject commit" in watched.diff("module")


def test_the_text_of_some_paths(watched: Watched) -> None:
    watched.repo.commit_all("own")
    assert watched.diff("base.py", "no.such").splitlines() == [
        "diff --git a/base.py b/base.py",
        "index "
        + "..".join(watched.repo.git("rev-parse", f"HEAD{up}:base.py") for up in ("~1", ""))
        + " 100644",
        "--- a/base.py",
        "+++ b/base.py",
        "@@ -1,3 +1,5 @@",
        "+own = 0",
        "+own = 1",
        " base = 0",
        " base = 1",
        " base = 2",
    ]


def test_the_text_shows_a_rename_and_only_what_is_new(watched: Watched, tmp_path: Path) -> None:
    repo = watched.repo
    Colleague(repo, tmp_path / "colleague").push("theirs.py", text("theirs", 500))
    repo.git("mv", "far.py", "renamed.py")
    repo.commit_all("own")
    repo.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    assert watched.diff("renamed.py", "theirs.py").splitlines() == [
        "diff --git a/far.py b/renamed.py",
        "similarity index 100%",
        "rename from far.py",
        "rename to renamed.py",
    ]


def test_the_text_of_more_paths_than_fit_into_a_call(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"many/{number}.py" for number in range(30)]
    for name in names:
        watched.repo.write(name, "x\n")
    whole = watched.diff(*names)
    monkeypatch.setattr(own_change, "_MOST_ARGS", 60)
    assert watched.diff(*names) == whole
    assert whole.count("diff --git") == 30


ODD = (
    *("a b.py", 'quo"te.py', "new\nline.py", "tab\t.py", "ünï.py", ":(top)x.py", "-dash", "*"),
    os.fsdecode(b"\xff\xfe.py"),
    "{a => b}/c",
)


def test_odd_names(watched: Watched) -> None:
    for name in ODD:
        watched.repo.write(name, text("odd", 9))
    found = watched.found()
    assert found.keys() == {*ODD, "base.py", "new.py"}
    assert all(found[name] == FileDifference(name, "A", added=9) for name in ODD)
    assert list(found) == sorted(found)
    assert watched.diff(*ODD).count("diff --git") == len(ODD)
    watched.repo.commit_all("odd")
    later = Watched(watched.repo)
    for name in ODD:
        (watched.repo.path / name).rename(watched.repo.path / f"x{name.replace('/', '_')}")
    assert {one.was for one in later.found().values() if one.same_content} == set(ODD)


def test_types_modes_and_links(filled: Repo) -> None:
    (filled.path / "link").symlink_to("base.py")
    filled.write("becomes-link", text("x", 5))
    filled.commit_all("more")
    watched = Watched(filled)
    for name in ("link", "becomes-link"):
        (filled.path / name).unlink()
        (filled.path / name).symlink_to("far.py")
    (filled.path / "base.py").chmod(0o755)
    (filled.path / "far.py").rename(filled.path / "moved.py")
    (filled.path / "moved.py").chmod(0o755)
    assert tuple(watched.found().values()) == (
        FileDifference("base.py", "M", same_content=True),
        FileDifference("becomes-link", "T", added=1, removed=5),
        FileDifference("link", "M", added=1, removed=1),
        FileDifference("moved.py", "R", was="far.py", same_content=True),
    )


def test_lines_that_attributes_of_the_session_hide(filled: Repo) -> None:
    filled.write("becomes-link", text("x", 5))
    filled.commit_all("more")
    watched = Watched(filled)
    filled.write(".gitattributes", "* -diff\n")
    filled.write("base.py", text("base", 10).replace("=", "  ="))
    filled.write("twin 1.py", text("twin", 7))
    filled.write("twin 2.py", text("twin", 7))
    (filled.path / "becomes-link").unlink()
    (filled.path / "becomes-link").symlink_to("far.py")
    assert watched.lines() == {
        ".gitattributes": (1, 0),
        "base.py": (0, 50),  # as if nothing hid them
        "becomes-link": (1, 5),
        "twin 1.py": (7, 0),
        "twin 2.py": (7, 0),
    }


CODE = text("work", 90)


@pytest.mark.samples(1)
@pytest.mark.parametrize("name", ["a.js", "a.PY", "Makefile", "src/b.tsx"])
def test_a_nul_does_not_hide_what_is_text_by_its_name(watched: Watched, name: str) -> None:
    watched.repo.write(name, CODE + "// \0\n")
    found = watched.found()[name]
    assert (found.binary, found.added, found.removed) == (False, 91, 0)
    assert "+work = 7\n" in watched.diff(name)
    watched.repo.write("x.bin", CODE.encode() + b"\0\xff\n")
    assert watched.found()["x.bin"].binary
    assert "+work = 7\n" not in watched.diff("x.bin")


def test_an_edit_of_a_text_with_a_nul_is_as_long_as_it_is(repo: Repo) -> None:
    repo.write("a.js", CODE + "// \0\n")
    repo.commit_all("first")
    watched = Watched(repo)
    repo.write("a.js", CODE.replace("work = 7\n", "work = 8\n") + "// \0\n")
    assert watched.lines() == {"a.js": (1, 1)}
