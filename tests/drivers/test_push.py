"""Real pushes: of each kind, the paths that gates get are what the remote does not have yet."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import forked
import pytest
from conftest import Repo
from each_case import each_case
from test_githook import RECORD, arm, change, seen

_PREPARED: list[Path] = []


@pytest.fixture
def pushing(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, out: Path) -> Repo:
    """A repository that records what its pushes to `origin` are about; main already exists."""
    if not _PREPARED:
        folder = tmp_path_factory.mktemp("pushing")
        repo = Repo.init(folder / "repo")
        arm(repo, "pre-push")
        repo.write("base", "x")
        repo.commit_all("base")
        repo.add_origin()
        assert seen(out) == ["base", "pyproject.toml"]
        (out / "always").unlink()
        _PREPARED.append(folder)
    shutil.copytree(_PREPARED[0], tmp_path, symlinks=True, dirs_exist_ok=True)
    return Repo(tmp_path / "repo")


def test_push_of_an_existing_branch(pushing: Repo, out: Path) -> None:
    change(pushing, "one")
    change(pushing, "two")
    pushing.git("push", "-q", "origin", "main")
    assert seen(out) == ["one", "two"]


def test_push_of_a_new_branch_is_about_its_own_commits(pushing: Repo, out: Path) -> None:
    pushing.git("checkout", "-qb", "feature")
    change(pushing, "feature-file")
    pushing.git("push", "-q", "origin", "feature")
    assert seen(out) == ["feature-file"]


def test_push_of_two_branches_is_about_both(pushing: Repo, out: Path) -> None:
    pushing.git("checkout", "-qb", "b1")
    change(pushing, "f1")
    pushing.git("checkout", "-qb", "b2", "main")
    change(pushing, "f2")
    pushing.git("checkout", "-q", "main")
    pushing.git("push", "-q", "origin", "b1", "b2")
    assert seen(out) == ["f1", "f2"]


def test_forced_push(pushing: Repo, out: Path) -> None:
    pushing.git("checkout", "-qb", "topic")
    change(pushing, "first")
    pushing.git("push", "-q", "origin", "topic")
    seen(out)
    pushing.git("reset", "-q", "--hard", "main")
    change(pushing, "other")
    pushing.git("push", "-qf", "origin", "topic")
    assert seen(out) == ["other"]


def test_forced_push_over_commits_that_are_not_here(pushing: Repo, out: Path) -> None:
    other = Repo(pushing.path.parent / "other")
    pushing.git("clone", "-q", "../origin.git", str(other.path))
    change(other, "unknown")
    other.git("push", "-q", "origin", "main")
    change(pushing, "mine")
    pushing.git("push", "-qf", "origin", "main")
    assert seen(out) == ["mine"]


def test_push_of_a_tag(pushing: Repo, out: Path) -> None:
    change(pushing, "released")
    pushing.git("tag", "-am", "v1", "v1")
    pushing.git("push", "-q", "origin", "v1")
    assert seen(out) == ["released"]


@pytest.mark.parametrize("unstaged", ["", "unstaged = 'keep'\n"])
def test_a_push_of_no_commit_checks_nothing(pushing: Repo, out: Path, unstaged: str) -> None:
    pushing.git("push", "-q", "--no-verify", "origin", "main:doomed")
    gates = "[gates.asked]\ncommand = 'cat >$OUT/asked; true'\npass_hook_input = true\n"
    hook = f"[hooks.pre-push]\ngates = ['record', 'always', 'asked']\n{unstaged}"
    pushing.config(RECORD + gates + hook)
    pushing.git("tag", "blob", "HEAD:base")
    pushing.git("tag", "tree", "HEAD^{tree}")
    done = pushing.ask("git", "push", "origin", ":doomed", "blob", "tree")
    assert done.returncode == 0
    assert b"always  skipped      no commit is pushed\n" in done.stderr
    assert (seen(out), seen(out, "always")) == (None, None)
    # What git says of the push is there to be checked, for a gate that asks for it.
    asked = seen(out, "asked") or []
    assert [line.split()[2] for line in asked] == [
        "refs/heads/doomed",
        "refs/tags/blob",
        "refs/tags/tree",
    ]


def test_a_commit_and_a_tag_on_it_are_checked_once(pushing: Repo, out: Path) -> None:
    change(pushing, "released")
    pushing.git("tag", "-am", "v1", "v1")
    pushing.git("push", "-q", "--follow-tags", "origin", "main")
    assert (seen(out), seen(out, "always")) == (["released"], ["ran"])
    # Another commit is checked by itself, and what is deleted beside it adds nothing.
    pushing.git("push", "-q", "--no-verify", "origin", "main:doomed")
    pushing.git("branch", "old", "HEAD~1")
    change(pushing, "next")
    pushing.git("push", "-q", "origin", "main", "old:refs/heads/older", ":doomed")
    assert seen(out, "always") == ["ran", "ran"]


@pytest.mark.parametrize("by_url", [False, True])
def test_what_any_remote_has_is_not_new_to_an_unknown_one(
    pushing: Repo, out: Path, *, by_url: bool
) -> None:
    change(pushing, "mine")
    pushing.git("init", "-q", "--bare", "../mirror.git")
    pushing.git("remote", "add", "mirror", "../mirror.git")
    done = pushing.ask("git", "push", "../mirror.git" if by_url else "mirror", "main")
    assert seen(out) == ["mine"]
    assert b"the push is compared with the branches of other remotes\n" in done.stderr
    assert b"gitgates: no branches of `" in done.stderr
    # What is known of the remote itself counts, also where others have more.
    pushing.git("push", "-q", "--no-verify", "origin", "main")
    change(pushing, "more")
    pushing.git("push", "-q", "--no-verify", "origin", "main")
    done = pushing.ask("git", "push", "../mirror.git" if by_url else "mirror", "main")
    assert seen(out) == ["more"]
    assert b"was compared" not in done.stderr


def test_a_push_is_named_by_the_branch_that_it_changes(pushing: Repo) -> None:
    change(pushing, "one")
    pushing.write("untracked", "x")
    done = pushing.ask("git", "push", "origin", "HEAD:main")
    assert b"checking what is pushed to main in a private checkout\n" in done.stderr


def test_nothing_to_push_runs_nothing(pushing: Repo, out: Path) -> None:
    pushing.git("push", "-q", "origin", "main")
    assert seen(out, "always") is None


def test_a_file_that_the_push_takes_away_again_is_no_path(pushing: Repo, out: Path) -> None:
    change(pushing, "brief")
    pushing.git("rm", "-q", "brief")
    pushing.git("commit", "-qm", "away")
    change(pushing, "stays")
    pushing.git("push", "-q", "origin", "main")
    assert seen(out) == ["stays"]


def test_a_merge_is_pushed_with_what_it_resolved(pushing: Repo, out: Path) -> None:
    pushing.git("checkout", "-qb", "side")
    change(pushing, "base", "side")
    pushing.git("checkout", "-q", "main")
    change(pushing, "base", "main")
    pushing.ask("git", "merge", "side")
    pushing.write("base", "resolved")
    pushing.git("commit", "-qam", "merge")
    pushing.git("push", "-q", "origin", "main")
    assert seen(out) == ["base"]


@pytest.mark.slow
def test_what_is_pushed_is_checked_however_it_is_named(pushing: Repo, out: Path) -> None:
    branches = ("next\u0085line", "line\u2028separator", "paragraph\u2029separator")
    sources = (":/some words", "main^{/some words}", "topic@{0 days ago}", *branches)
    change(pushing, "some words")
    pushing.git("checkout", "-qb", "topic")
    for source in sources[1:]:
        pushing.git("commit", "-q", "--allow-empty", "-m", "each tip is checked by itself")
        if source in branches:
            pushing.git("branch", source)
    change(pushing, "last")
    named = [f"{source}:refs/heads/{number}" for number, source in enumerate(sources)]
    pushing.git("push", "-q", "origin", *named, "main:a\u2028b")
    # The first two and the last are one commit.
    assert seen(out, "always") == ["ran"] * 5
    assert set(seen(out) or []) == {"some words", "last"}


def test_a_push_that_is_not_understood_is_refused(pushing: Repo, out: Path) -> None:
    pushing.git("commit", "-q", "--allow-empty", "-m", "two\nlines")
    done = pushing.ask("git", "push", "origin", "HEAD^{/two\nlines}:refs/heads/lines")
    assert b"pre-push: git gave the line 'HEAD^{/two'; expected" in done.stderr
    assert (done.returncode, seen(out, "always")) == (1, None)
    assert pushing.git("ls-remote", "origin", "refs/heads/lines") == ""


@each_case(
    "line",
    [
        b"refs/heads/a\0b ID refs/heads/x ID",
        b"refs/heads/a ID refs/heads/x",
        b"refs/heads/a 12 refs/heads/x ID",
        b"refs/heads/a ID  ID",
        b"refs/heads/a ID refs/heads/x ID\r",
        b"\xff\x1b[31m",
        b"",
    ],
)
def test_no_line_of_a_push_is_passed_over(repo: Repo, line: bytes) -> None:
    stdin = b"(delete) ID refs/heads/x ID\n%b\n" % line
    stdin = stdin.replace(b"ID", b"1" * 40)
    args = ("git-hook", "x", "pre-push", "origin", "url")
    done = forked.run(args, str(repo.path), dict(os.environ), stdin, hosts=True)
    assert done.returncode == 74
    assert done.stderr.startswith(b"gitgates: pre-push: git gave the line ")
    assert b"nothing is pushed" in done.stderr
    assert b"\x1b" not in done.stderr


def test_a_push_that_only_deletes_matches_gates_that_are_given_no_paths(pushing: Repo) -> None:
    config = "[gates.types]\ncommand = 'test -e base'\nfiles = ['base']\n"
    pushing.config(config + "[hooks.pre-push]\ngates = ['types']\n")
    pushing.commit_all("configure")
    pushing.git("push", "-q", "origin", "main")
    pushing.git("rm", "-q", "base")
    pushing.git("commit", "-qm", "gone")
    done = pushing.ask("git", "push", "origin", "main")
    assert done.returncode == 1
    assert b"gitgates pre-push: blocked by `types`" in done.stderr
