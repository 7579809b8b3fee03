"""What an undo gives back, byte for byte, and what it leaves alone."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from conftest import Repo
from points_support import CONFIG, MOST, files_of, record, undo
from template_support import copy_of

from gitgates.files import ignored

ODD = (
    "ü",
    "new\nline",
    "tab\t",
    '"q"',
    " space ",
    "-dash",
    "a\\b",
    ":(glob)*",
    "*",
    os.fsdecode(b"\xff"),
)


@pytest.fixture
def begun() -> Repo:
    """A repository with files of every kind, some of them staged, whose state is recorded."""
    return copy_of(begin)


def begin(repo: Repo) -> None:
    repo.config(CONFIG)
    repo.git("config", "core.autocrlf", "input")
    repo.git("config", "filter.x.clean", "tr a-z A-Z")
    repo.git("config", "filter.x.smudge", "tr A-Z a-z")
    repo.write(".gitattributes", "*.t text eol=lf ident filter=x\n")
    repo.write("a", "1\n")
    repo.write("d/run", "#!/bin/sh\n").chmod(0o755)
    repo.write("c.t", b"a\r\nb\r\n$Id: 1$\r\n")
    repo.ask("git", "add", ".")
    repo.git("commit", "-qm", "base")
    repo.write("c.t", b"a\r\nc\n")
    repo.write("a", "staged\n")
    repo.git("add", "a")
    repo.write("a", "unstaged\n")
    (repo.path / "d/run").chmod(0o700)
    for name in ODD:
        repo.write(f"odd/{name}", name.encode("utf-8", "surrogateescape"))
        repo.write(f"{name}/f", "1\n").chmod(0o600)
    (repo.path / "link").symlink_to("nowhere")
    (repo.path / "folder").symlink_to("d")
    (repo.path / "empty/er").mkdir(parents=True)
    record(repo)


def wreck(root: Path) -> None:
    """Destroy everything."""
    for entry in list(root.iterdir()):
        if entry.name == ".git":
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def swap(root: Path) -> None:
    """Put a folder in the place of each file, and a file in that of each folder."""
    for entry in list(root.iterdir()):
        if entry.name in (".git", "pyproject.toml"):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
            entry.write_bytes(b"file\r\n")
        else:
            entry.unlink()
            entry.mkdir()
            (entry / "inside").write_bytes(b"\0")


def relink(root: Path) -> None:
    """Change modes, links and line endings only."""
    (root / "a").chmod(0o640)
    (root / "d/run").chmod(0o644)
    (root / "c.t").write_bytes(b"a\nc\n")
    (root / "link").unlink()
    (root / "link").symlink_to("a")
    (root / "folder").unlink()
    (root / "folder").write_bytes(b"no link\n")
    (root / "empty/er").rmdir()


@pytest.mark.slow
@pytest.mark.parametrize("change", [wreck, swap, relink])
def test_every_byte_comes_back(begun: Repo, change: object) -> None:
    before, index = files_of(begun.path), begun.git("ls-files", "--stage", "-z")
    assert callable(change)
    change(begun.path)
    begun.git("read-tree", "HEAD")
    after, other_index = files_of(begun.path), begun.git("ls-files", "--stage", "-z")
    assert record(begun, "s")
    undo(begun, "--last", "--index")
    assert files_of(begun.path) == before
    assert begun.git("ls-files", "--stage", "-z") == index
    assert begun.git("cat-file", "blob", ":a") == "staged"
    done = begun.gitgates("redo", "--index")
    assert done.returncode == 0, done.stderr
    assert files_of(begun.path) == after
    assert begun.git("ls-files", "--stage", "-z") == other_index
    kept = [*(begun.path / ".git/gitgates").rglob("kept/*/**")]
    assert not kept, done.stdout[-300:]


def test_git_cannot_take_away_what_was_staged(begun: Repo) -> None:
    begun.git("reset", "-q", "--hard")
    assert record(begun, "s")
    begun.git("reflog", "expire", "--expire=now", "--all")
    begun.git("gc", "-q", "--prune=now")
    undo(begun, "--last", "--index")
    assert begun.git("cat-file", "blob", ":a") == "staged"
    assert (begun.path / "a").read_bytes() == b"unstaged\n"


def test_stash_and_branches_come_back(begun: Repo) -> None:
    begun.git("stash", "push", "-q", "-m", "mine", "a")
    begun.git("branch", "topic")
    record(begun)
    stash, topic = begun.git("rev-parse", "stash@{0}"), begun.git("rev-parse", "topic")
    begun.git("stash", "drop", "-q")
    begun.git("branch", "-qD", "topic")
    assert record(begun, "s")
    begun.git("gc", "-q", "--prune=now")
    undo(begun, "--last")
    assert begun.git("rev-parse", "stash@{0}") == stash
    assert begun.git("stash", "list", "--format=%gs") == "On main: mine"
    assert begun.git("rev-parse", "topic") == topic
    assert begun.git("stash", "show", "-p", "stash@{0}")


def test_commits_are_moved_away_only_when_asked(begun: Repo) -> None:
    base = begun.git("rev-parse", "main")
    begun.git("commit", "-qam", "by the agent")
    own = begun.git("rev-parse", "main")
    record(begun, "s")
    said = undo(begun, "--last").stdout
    assert b"by the agent" in said
    assert b"--branch" in said
    assert begun.git("rev-parse", "main") == own
    begun.gitgates("redo")
    undo(begun, "--last", "--branch")
    assert begun.git("rev-parse", "main") == base
    assert own in begun.git("for-each-ref", "--format=%(objectname)", "refs/gitgates/undone")


# What is not in a point


def test_what_was_ignored_stays(begun: Repo) -> None:
    begun.write(".gitignore", ".env\n")
    begun.write(".env", "secret\n")
    record(begun)
    begun.write(".gitignore", "")
    begun.write("new", "1\n")
    record(begun, "s")
    undo(begun, "--last")
    assert (begun.path / ".env").read_bytes() == b"secret\n"
    assert not (begun.path / "new").exists()
    assert (begun.path / ".gitignore").read_bytes() == b".env\n"


@pytest.mark.parametrize("folder", ["data", "node_modules"])
def test_what_was_ignored_and_not_saved_stays(
    begun: Repo, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ignored, "_MOST_FILES", 1)
    paths = [begun.write(f"{folder}/{number}", "1\n") for number in range(5)]
    begun.write(".gitignore", f"{folder}/\n")
    record(begun)
    begun.write(".gitignore", "")
    begun.write("new", "1\n")
    record(begun, "s")
    undo(begun, "--last")
    assert all(path.exists() for path in paths)
    assert not (begun.path / "new").exists()


@pytest.mark.parametrize("content", [b"small\n", None])
def test_what_was_left_out_stays_as_it_is(begun: Repo, content: bytes | None) -> None:
    path = begun.write("large", b"x" * (MOST + 1))
    record(begun)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    begun.write("a", "agent\n")
    record(begun, "s")
    said = undo(begun, "--last").stdout
    what = "is left as it is" if content else "does not come back"
    assert f"`large`: {what}".encode() in said
    assert (path.read_bytes() if path.exists() else None) == content
    assert (begun.path / "a").read_bytes() == b"unstaged\n"


def test_a_repository_that_is_none_any_more_stays(begun: Repo) -> None:
    begun.git("init", "-q", "nested")
    begun.write("nested/x", "1\n")
    record(begun)
    shutil.rmtree(begun.path / "nested/.git")
    record(begun, "s")
    undo(begun, "--last")
    assert (begun.path / "nested/x").read_bytes() == b"1\n"


def test_a_large_file_is_kept(begun: Repo) -> None:
    begun.write("a", b"x" * (MOST + 1))
    record(begun, "s")
    said = undo(begun, "--last").stdout
    assert (begun.path / "a").read_bytes() == b"unstaged\n"
    assert b"is kept in" in said
    kept = list((begun.path / ".git/gitgates").rglob("kept/*/a"))
    assert [path.read_bytes() for path in kept] == [b"x" * (MOST + 1)]


# Several at once


def test_two_sessions_and_a_person(begun: Repo) -> None:
    lines = [f"{number}\n" for number in range(20)]
    begun.write("t", "".join(lines))
    record(begun)
    for number, session in ((2, "one"), (9, "two"), (16, "")):
        lines[number] = f"{session or 'person'}\n"
        begun.write("t", "".join(lines))
        begun.write(f"of-{session}", session)
        record(begun, session)
    said = undo(begun, "--session", "one").stdout
    lines[2] = "2\n"
    assert (begun.path / "t").read_text() == "".join(lines)
    assert b"merged" in said
    assert not (begun.path / "of-one").exists()
    assert (begun.path / "of-two").exists()
    assert (begun.path / "of-").exists()


def test_a_conflict_is_kept_beside(begun: Repo) -> None:
    begun.write("a", "agent\n")
    record(begun, "s")
    begun.write("a", "person\n")
    record(begun)
    said = undo(begun, "--last").stdout
    assert (begun.path / "a").read_bytes() == b"unstaged\n"
    kept = list((begun.path / ".git/gitgates").rglob("kept/*/a"))
    assert [path.read_bytes() for path in kept] == [b"person\n"]
    assert str(kept[0]).encode() in said


def test_a_path_alone(begun: Repo) -> None:
    for name in ("a", "d/run", "d/new"):
        begun.write(name, "agent\n")
    record(begun, "s")
    refused = begun.gitgates("undo", "--last", "d", "nowhere")
    assert refused.returncode == 64, refused
    assert b"`nowhere`: no change to undo touches it" in refused.stderr
    assert (begun.path / "d/new").exists()
    undo(begun, "--last", "d")
    assert (begun.path / "a").read_bytes() == b"agent\n"
    assert (begun.path / "d/run").read_bytes() == b"#!/bin/sh\n"
    assert not (begun.path / "d/new").exists()


def test_a_dry_run_changes_nothing(begun: Repo) -> None:
    begun.write("a", "agent\n")
    record(begun, "s")
    now = files_of(begun.path)
    said = undo(begun, "--last", "--dry-run").stdout
    assert b"-agent" in said
    assert b"+unstaged" in said
    assert files_of(begun.path) == now


def test_the_list(begun: Repo) -> None:
    begun.write("a", "<agent>\n")
    point = record(begun, "s")
    assert b"session s" in undo(begun).stdout
    (listed, *_) = json.loads(undo(begun, "--format", "json").stdout)["points"]
    assert (listed["id"], listed["session"], listed["files"]) == (point, "s", ["a"])
    assert (listed["lines_added"], listed["lines_removed"]) == (1, 1)


def test_a_linked_worktree(begun: Repo) -> None:
    begun.git("worktree", "add", "-q", "--detach", "../linked")
    linked = Repo(begun.path.parent / "linked")
    record(linked)
    linked.write("a", "linked\n")
    record(linked, "s")
    main = files_of(begun.path)
    undo(linked, "--last")
    assert (linked.path / "a").read_bytes() == b"1\n"
    assert files_of(begun.path) == main


def test_a_submodule_stays(begun: Repo, tmp_path: Path) -> None:
    other = Repo.init(tmp_path / "other")
    other.write("x", "1\n")
    other.commit_all("one")
    begun.git("submodule", "add", "-q", str(other.path), "sub")
    record(begun)
    begun.write("sub/x", "person\n")
    begun.write("a", "agent\n")
    record(begun, "s")
    undo(begun, "--last")
    assert (begun.path / "sub/x").read_bytes() == b"person\n"
    assert (begun.path / "a").read_bytes() == b"unstaged\n"


def test_a_sparse_checkout(begun: Repo) -> None:
    begun.git("reset", "-q", "--hard")
    begun.git("sparse-checkout", "set", "--no-cone", "/*", "!/d/")
    record(begun)
    begun.write("a", "agent\n")
    record(begun, "s")
    undo(begun, "--last")
    assert (begun.path / "a").read_bytes() == b"1\n"
    assert not (begun.path / "d").exists()


def test_two_undos_in_a_second_move_away_both_commits(begun: Repo) -> None:
    own = []
    for number in range(2):
        begun.git("commit", "-q", "--allow-empty", "-m", f"by the agent, {number}")
        own.append(begun.git("rev-parse", "main"))
        record(begun, "s")
        undo(begun, "--last", "--branch")
    refs = begun.git("for-each-ref", "--format=%(objectname)", "refs/gitgates/undone").split()
    assert {*own} <= {*refs}
