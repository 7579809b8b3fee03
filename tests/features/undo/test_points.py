"""A save point is taken where something has changed, and has every byte of it."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from changes_support import by_agent, by_person, files_of, undo
from template_support import copy_of

from gitgates.features.undo.moments import recorded
from gitgates.files.memory import Memory
from gitgates.git.repo import find_repo

if TYPE_CHECKING:
    from conftest import Repo


def _clear(repo: Repo) -> None:
    for entry in list(os.scandir(os.fsencode(repo.path))):
        if entry.name == b".git":
            continue
        if entry.is_dir(follow_symlinks=False):
            shutil.rmtree(entry.path)
        else:
            os.unlink(entry.path)


def _fill(repo: Repo) -> None:
    """Commit files that git converts, and put those beside them that it does not know."""
    repo.git("config", "core.autocrlf", "true")
    repo.git("config", "core.safecrlf", "false")
    repo.git("config", "filter.case.clean", "tr a-z A-Z")
    repo.git("config", "filter.case.smudge", "tr A-Z a-z")
    repo.write(
        ".gitattributes",
        "*.case filter=case\n*.id ident\n*.u16 text working-tree-encoding=UTF-16LE\n*.lf eol=lf\n",
    )
    repo.write("crlf.txt", b"one\r\ntwo\r\n")
    repo.write("mixed.txt", b"one\r\ntwo\nthree\r")
    repo.write("unix.lf", b"one\ntwo\n")
    repo.write("filtered.case", "Mixed Case\n")
    repo.write("with.id", "$Id$\n")
    repo.write("wide.u16", "wide\n".encode("utf-16-le"))
    repo.write("deep/er/file.py", "x = 1\n")
    repo.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    repo.commit_all("base")
    repo.write("filtered.case", "Neither This\n")
    repo.write("with.id", "$Id: what was not committed $\n")
    repo.write("wide.u16", b"\xff\xfeodd")
    repo.write("binary", bytes(range(256)) * 30)
    repo.write("empty")
    repo.write("private", "secret\n").chmod(0o600)
    repo.write("read-only", "fixed\n").chmod(0o444)
    repo.write("run.sh", "#!/bin/sh\nexit 1\n").chmod(0o711)
    for name in (
        "-dash",
        "tab\tand\nline",
        '"quoted"',
        "a b",
        "ünïcode",
        ":(glob)*",
        "back\\slash",
    ):
        repo.write(name, f"{name}\n")
    with open(os.fsencode(repo.path) + b"/not-\xff\xfe-utf8", "wb") as file:
        file.write(b"\0")
    (repo.path / "link").symlink_to("deep/er")
    (repo.path / "dangling").symlink_to("nowhere\nat all")


@pytest.fixture(name="filled")
def _filled() -> Repo:
    return copy_of(_fill)


def test_every_byte_and_mode_comes_back(filled: Repo) -> None:
    before = files_of(filled.path)
    by_person(filled)
    _clear(filled)
    assert by_agent(filled)
    undo(filled, "1")
    assert files_of(filled.path) == before


def test_what_git_converted_comes_back_as_it_was(filled: Repo) -> None:
    before = files_of(filled.path)
    by_person(filled)
    filled.git("checkout", "-q", "-f", "HEAD", "--", ".")
    filled.git("clean", "-q", "-fd")
    assert by_agent(filled)
    undo(filled, "1")
    assert files_of(filled.path) == before


def test_there_is_no_point_where_nothing_changed(filled: Repo) -> None:
    by_person(filled)
    os.utime(filled.path / "crlf.txt", (1, 1))
    filled.write("binary", bytes(range(256)) * 30)
    index = (filled.path / ".git/index").read_bytes()
    filled.git("status")  # which notes the new times in the index
    assert (filled.path / ".git/index").read_bytes() != index
    assert by_agent(filled) is None
    assert by_agent(filled) is None
    assert recorded(find_repo(str(filled.path), dict(os.environ))) == []


pytestmark = pytest.mark.slow

# Each of these in `make thorough`; here, those at once that do not need the same files.
AT_ONCE = (
    (
        "same size and time",
        "executable",
        "mode of a new file",
        "link",
    ),
    ("link for a file", "file for a folder", "folder for a link"),
    ("folder for a file", "file for a link", "link for a folder"),
    ("renamed", "case"),
)
CHANGES = {
    "same size and time": "cp -p deep/er/file.py ../before; echo x = 2 > deep/er/file.py; "
    "touch -r ../before deep/er/file.py",
    "executable": "chmod 700 private",
    "mode of a new file": "echo 1 > new; chmod 604 new",
    "link": "ln -sfn deep link",
    "link for a file": "rm -f empty; ln -s deep empty",
    "folder for a file": "rm -f empty; mkdir empty; echo 1 > empty/in",
    "file for a folder": "rm -r deep; echo 1 > deep",
    "file for a link": "rm link; echo 1 > link",
    "folder for a link": "rm link; mkdir link; echo 1 > link/in",
    "link for a folder": "rm -r deep; ln -s . deep",
    "renamed": "mv deep deeper",
    "case": "mv empty EMPTY",
}


@pytest.mark.samples(len(AT_ONCE))
@pytest.mark.parametrize("names", [*AT_ONCE, *((name,) for name in CHANGES)], ids=", ".join)
def test_any_change_is_a_point_and_is_undone_and_redone(
    filled: Repo, names: tuple[str, ...]
) -> None:
    os.utime(filled.path / "deep/er/file.py")  # a copy has old times, which git does not doubt
    by_person(filled)
    before = files_of(filled.path)
    for name in names:
        assert filled.ask("sh", "-ec", CHANGES[name]).returncode == 0, name
    after = files_of(filled.path)
    assert by_agent(filled)
    assert by_agent(filled) is None
    undo(filled, "--last")
    assert files_of(filled.path) == before
    undo(filled, verb="redo")
    assert files_of(filled.path) == after
    undo(filled, "1")
    assert files_of(filled.path) == before


def test_a_change_of_the_index_only_is_a_point(filled: Repo) -> None:
    by_person(filled)
    before = filled.git("ls-files", "--stage")
    filled.git("add", "empty")
    assert by_agent(filled)
    undo(filled, "1")
    assert filled.git("ls-files", "--stage") != before
    undo(filled, "1", "--index")
    assert filled.git("ls-files", "--stage") == before


def test_ignored_files_are_saved_unless_they_can_be_made_again(repo: Repo) -> None:
    repo.write(".gitignore", ".env\ndata/\nnode_modules/\n")
    repo.write(".env", "KEY=1\n").chmod(0o600)
    repo.write("data/users.csv", b"1\r\n")
    repo.write("node_modules/x", "1\n")
    by_person(repo)
    (repo.path / ".env").unlink()
    shutil.rmtree(repo.path / "data")
    shutil.rmtree(repo.path / "node_modules")
    assert by_agent(repo)
    undo(repo, "1")
    assert (repo.path / ".env").read_text() == "KEY=1\n"
    assert (repo.path / ".env").stat().st_mode & 0o777 == 0o600
    assert (repo.path / "data/users.csv").read_bytes() == b"1\r\n"
    assert not (repo.path / "node_modules").exists()


def test_what_only_the_index_has_outlives_gc(repo: Repo) -> None:
    repo.write("file", "1\n")
    repo.commit_all("base")
    repo.write("file", "2, staged\n")
    repo.git("add", "file")
    repo.write("file", "3\n")
    staged = repo.git("ls-files", "--stage")
    by_person(repo)
    repo.git("reset", "-q", "--hard")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    assert by_agent(repo)
    undo(repo, "1", "--index")
    assert (repo.path / "file").read_text() == "3\n"
    assert repo.git("ls-files", "--stage") == staged
    assert repo.git("show", ":file") == "2, staged"


def test_what_only_the_stash_or_a_branch_has_outlives_gc(repo: Repo) -> None:
    repo.write("file", "1\n")
    repo.commit_all("base")
    for number in (2, 3):
        repo.write("file", f"{number}\n")
        repo.write(f"new{number}", f"{number}\n")
        repo.git("stash", "push", "-q", "-u", "-m", f"stash {number}")
    stash = repo.git("stash", "list", "--format=%H %gs")
    by_person(repo)
    repo.git("stash", "clear")
    repo.git("gc", "-q", "--prune=now")
    assert by_agent(repo)
    out = undo(repo, "1")
    assert repo.git("stash", "list", "--format=%H %gs") == stash
    assert "stash 3" in out
    repo.git("stash", "pop", "-q")
    assert ((repo.path / "file").read_text(), (repo.path / "new3").read_text()) == ("3\n", "3\n")


def test_points_are_not_in_the_repository_of_the_user(filled: Repo) -> None:
    refs, objects = filled.git("for-each-ref"), filled.git("count-objects", "-v")
    by_person(filled)
    _clear(filled)
    by_agent(filled)
    assert (filled.git("for-each-ref"), filled.git("count-objects", "-v")) == (refs, objects)


def test_all_begins_anew_where_the_points_were_removed(filled: Repo) -> None:
    by_person(filled)
    filled.write("empty", "1\n")
    assert by_agent(filled)
    shutil.rmtree(Memory(find_repo(str(filled.path), dict(os.environ))).folder_abs)
    before = files_of(filled.path)
    assert by_person(filled) is None
    assert undo(filled) == ""
    _clear(filled)
    assert by_agent(filled)
    undo(filled, "1")
    assert files_of(filled.path) == before
