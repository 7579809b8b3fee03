"""What a pass depends on, and what is the first thing that is not as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from gitgates.observed.reads import Observation
from gitgates.observed.settled import dependencies
from gitgates.observed.state import Reader
from gitgates.observed.syscalls import ABSENT, CONTENT, LISTED, PROGRAM, THERE
from gitgates.observed.unchanged import Dependencies, first_difference, states_before

ROOT = Path(__file__).resolve().parents[2]
READ = THERE | CONTENT
LONG_AGO, SINCE_EVER = 2 * 10**18, 1  # no file is newer than that; each one is


class Place:
    """A root with some files, another folder beside it, and one for temporary files."""

    def __init__(self, top: Path) -> None:
        self.root, self.out, self.temporary = top / "root", top / "out", top / "tmp"
        self.since_ns = top.stat().st_ctime_ns
        for folder in (self.root / "sub", self.out, self.temporary):
            folder.mkdir(parents=True)
        (self.root / "a").write_text("a")
        (self.root / "sub" / "b").write_text("b")
        (self.out / "c").write_text("c")
        (self.root / "link").symlink_to("sub")
        self.digests: dict[str, str] = {}

    def reader(self, scratch: Callable[[str], bool] | None = None) -> Reader:
        return Reader(str(self.root), self.digests, (str(self.temporary),), scratch)

    def path(self, name: str) -> str:
        folders = {"OUT": self.out, "TMP": self.temporary}
        top, _, rest = name.partition("/")
        return str(folders[top] / rest) if top in folders else str(self.root / name)

    def run(
        self,
        reads: Mapping[str, int],
        made: tuple[str, ...] = (),
        changed: tuple[str, ...] = (),
        *,
        last: Dependencies | None = None,
        began_ns: int = LONG_AGO,
    ) -> Dependencies:
        seen = Observation(
            reads={self.path(name): how for name, how in reads.items()},
            written=frozenset(map(self.path, (*made, *changed))),
            made=frozenset(map(self.path, made)),
            unreusable="",
            spoilt="",
        )
        reader = self.reader()
        before = states_before(last, reader) if last else {}
        return dependencies(seen, reader, before, max(began_ns, self.since_ns))

    def difference(self, was: Dependencies) -> str:
        return first_difference(was, self.reader())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


def _in_place(path: Path, text: str) -> None:
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _without(path: Path) -> Path:
    if path.is_dir() and not path.is_symlink():
        path.rmdir()
    else:
        path.unlink()
    return path


# What is changed → what is said.
CHANGES: dict[str, tuple[Callable[[Place], object], str]] = {
    "nothing": (lambda _: None, ""),
    "another file": (lambda p: (p.out / "other").write_text(""), ""),
    "content": (lambda p: (p.root / "a").write_text("b"), "a changed"),
    "content, not size and time": (lambda p: _in_place(p.root / "a", "b"), "a changed"),
    "only the time": (lambda p: os.utime(p.root / "a"), ""),
    "permissions": (lambda p: (p.root / "a").chmod(0o600), "a changed"),
    "outside": (lambda p: (p.out / "c").write_text("d"), "OUT/c changed"),
    "through a link": (lambda p: (p.root / "sub" / "b").write_text("c"), "link/b changed"),
    "a link": (lambda p: _without(p.root / "link").symlink_to("../out"), "link leads elsewhere"),
    "what was absent": (lambda p: (p.root / "no").write_text(""), "no is there now"),
    "what was there": (lambda p: (p.root / "a").unlink(), "a is gone"),
    "another kind": (lambda p: _without(p.root / "a").mkdir(), "a changed"),
    "names": (lambda p: (p.root / "sub" / "new").write_text(""), "other files are in sub"),
    "names in a folder that was only looked at": (lambda p: (p.out / "new").write_text(""), ""),
    "the kind of a name": (
        lambda p: _without(p.root / "sub" / "d").write_text(""),
        "other files are in sub",
    ),
    "Python's cache": (lambda p: (p.root / "sub" / "__pycache__").mkdir(), ""),
    "a program": (
        lambda p: (p.out / "tool").write_text("#!"),
        "the program OUT/tool changed",
    ),
}


@pytest.mark.samples(8)
@pytest.mark.parametrize("case", CHANGES)
def test_changes(place: Place, case: str) -> None:
    change, expected = CHANGES[case]
    (place.root / "sub" / "d").mkdir()
    (place.out / "tool").write_text("#!/bin/sh")
    reads = {"sub": THERE | LISTED, "a": READ, "OUT/c": READ, "link": THERE, "no": ABSENT}
    found = place.run({**reads, "link/b": READ, "OUT": THERE, "OUT/tool": READ | PROGRAM})
    assert (found.unreusable, place.difference(found)) == ("", "")
    change(place)
    assert place.difference(found) == expected.replace("OUT", str(place.out))


def test_each_path_is_looked_at(place: Place) -> None:
    found = place.run({"a": READ, "sub": LISTED, "OUT": THERE, "link": THERE, "no": ABSENT})
    states = {key: state.split(" names:")[0] for key, state in found.states.items()}
    digest = found.states["a"].rpartition(" ")[2]
    assert states == {
        "a": f"file 644 {digest}",
        "sub": "folder 755",
        str(place.out): "folder 755",
        "link": "link 'sub' to folder 755",
        "no": "-",
    }
    assert (found.root_abs, found.programs, found.changed) == (str(place.root), frozenset(), ())


def test_the_interpreter_of_a_program_counts(place: Place) -> None:
    shell = shutil.copy("/bin/sh", place.out / "sh")
    (place.root / "tool").write_text(f"#!{shell}\n")
    found = place.run({"tool": READ | PROGRAM})
    assert {"tool", str(shell)} < found.programs
    os.unlink(shell)
    assert place.difference(found) == f"the program {shell} is gone"


def test_a_folder_in_the_root_counts_by_its_names(place: Place) -> None:
    """Where the index was read: there, the time of a folder may stand for them."""
    (place.root / ".git").mkdir()
    (place.root / ".git" / "index").write_text("")
    found = place.run({"sub": THERE, ".git": THERE, "OUT": THERE})
    (place.root / "sub" / "first").write_text("")
    assert place.difference(found) == ""
    found = place.run({".git/index": READ, "sub": THERE, ".git": THERE, "OUT": THERE})
    (place.root / ".git" / "COMMIT_EDITMSG").write_text("")
    (place.out / "new").write_text("")
    assert place.difference(found) == ""
    (place.root / "sub" / "new").write_text("")
    assert place.difference(found) == "other files are in sub"


# What somebody else changes while it runs.
MEANWHILE: dict[str, tuple[dict[str, int], str]] = {
    "a file that is as new as the run": ({"a": READ}, "a changed while it ran"),
    "a folder": ({"OUT": LISTED}, "OUT changed while it ran"),
    "a folder of which no names count": ({"OUT": THERE}, ""),
    "what was not there": ({"OUT/c": ABSENT}, "OUT/c changed while it ran"),
    "what was there": ({"no": THERE}, "no changed while it ran"),
    "what was first there and then not": ({"no": THERE | ABSENT}, "no changed while it ran"),
    "nothing": ({"no": ABSENT}, ""),
}


@pytest.mark.samples(3)
@pytest.mark.parametrize("case", MEANWHILE)
def test_what_changed_while_it_ran_is_not_what_it_has_read(place: Place, case: str) -> None:
    reads, expected = MEANWHILE[case]
    found = place.run(reads, began_ns=SINCE_EVER)
    assert found.unreusable == expected.replace("OUT", str(place.out))


def test_a_link_that_leads_nowhere_is_both_there_and_not(place: Place) -> None:
    (place.root / "dangling").symlink_to("no")
    found = place.run({"dangling": THERE | ABSENT})
    assert (found.unreusable, found.states) == ("", {"dangling": "link 'no' to -"})


def test_a_change_of_its_own_has_to_settle(place: Place) -> None:
    first = place.run({"a": READ}, made=("a",))
    assert first.unreusable == "it changes a, which it has read"
    second = place.run({"a": READ}, made=("a",), last=first)
    assert (second.unreusable, second.changed) == ("", ("a",))
    before = states_before(second, place.reader())
    (place.root / "a").write_text("more")  # as the third run does
    seen = Observation({place.path("a"): READ}, frozenset({place.path("a")}), frozenset(), "", "")
    third = dependencies(seen, place.reader(), before, LONG_AGO)
    assert third.unreusable == "it changes a, which it has read"


def test_what_it_makes_and_removes_again_has_settled(place: Place) -> None:
    found = place.run({"no": ABSENT, "sub": LISTED}, made=("no", "sub/gone"), began_ns=SINCE_EVER)
    assert found.unreusable == "it changes sub, which it has read"  # was `sub/gone` there before?
    reads = {"no": ABSENT, "sub": LISTED, "sub/gone": ABSENT, "sub/b": THERE}
    found = place.run(reads, made=("no", "sub/gone"), changed=("sub/b",))
    assert found.unreusable == "it changes sub/b, which it has read"
    found = place.run({**reads, "sub/b": 0}, made=("no", "sub/gone"), began_ns=LONG_AGO)
    assert found.unreusable == ""


def test_what_it_makes_where_nothing_was_has_to_settle(place: Place) -> None:
    first = place.run({"a": ABSENT, ".": THERE}, made=("a",), began_ns=SINCE_EVER)
    assert first.unreusable == "it changes a, which it has read"
    second = place.run({"a": THERE, ".": THERE}, changed=("a",), last=first, began_ns=LONG_AGO)
    assert second.unreusable == ""


def test_a_folder_that_it_removes_and_makes_settles_with_the_second_run(place: Place) -> None:
    """As does `rm -rf build; mkdir build`: only the second one finds something to list."""
    first = place.run({"sub": ABSENT}, made=("sub",))
    assert first.unreusable == "it changes sub, which it has read"
    second = place.run({"sub": THERE | LISTED}, made=("sub",), last=first)
    assert second.unreusable == ""
    third = place.run({"sub": THERE}, made=("sub",), last=second)
    assert third.unreusable == ""
    before = states_before(third, place.reader())
    (place.root / "sub" / "c").write_text("")
    seen = Observation(
        {place.path("sub"): THERE | LISTED}, frozenset(), frozenset({place.path("sub")}), "", ""
    )
    found = dependencies(seen, place.reader(), before, LONG_AGO)
    assert found.unreusable == "it changes sub, which it has read"


def test_the_folder_of_git_settles(place: Place) -> None:
    """As `git status` writes its index, and a lock for it."""
    (place.root / ".git").mkdir()
    for last in (None, place.run({".git": THERE}, made=(".git/index.lock",), began_ns=SINCE_EVER)):
        found = place.run({".git": THERE}, changed=(".git/index",), last=last, began_ns=SINCE_EVER)
    assert (found.unreusable, found.states) == ("", {".git": "git"})


def test_a_new_log_in_a_folder_that_it_lists_has_to_settle(place: Place) -> None:
    found = place.run({"OUT": LISTED}, changed=("OUT/c",), began_ns=SINCE_EVER)
    assert found.unreusable == f"it changes {place.out}, which it has read"
    assert found.changed == (str(place.out),)
    (place.out / "another").write_text("")  # a log of the next run
    seen = Observation(
        {str(place.out): LISTED}, frozenset({place.path("OUT/another")}), frozenset(), "", ""
    )
    before = states_before(found, place.reader())
    (place.out / "another").unlink()
    again = dependencies(seen, place.reader(), before, SINCE_EVER)
    assert again.unreusable == f"it changes {place.out}, which it has read"


def test_its_own_change_by_another_name(place: Place) -> None:
    found = place.run({"link/b": READ}, changed=("sub/b",), began_ns=SINCE_EVER)
    assert found.unreusable == "it changes link/b, which it has read"


def test_in_a_cache_the_state_after_the_run_counts(place: Place) -> None:
    (place.root / "sub" / "CACHEDIR.TAG").write_text("")
    (place.root / "sub" / "lastfailed").write_text("")
    reads = {"sub/b": READ, "sub": ABSENT, "sub/no": ABSENT}
    found = place.run(reads, made=("sub", "sub/b", "sub/no"), began_ns=SINCE_EVER)
    assert (found.unreusable, found.changed) == ("", ("sub/b", "sub", "sub/no"))
    assert place.difference(found) == ""
    (place.root / "sub" / "b").write_text("of somebody else")
    assert place.difference(found) == "sub/b changed"
    decides = place.run({"sub/lastfailed": READ}, changed=("sub/lastfailed",))
    assert decides.unreusable == "it changes sub/lastfailed, which it has read"


def test_a_cache_that_is_not_there_makes_no_difference(place: Place) -> None:
    """But for one that is only read, such as an environment, and for what decides what runs."""
    for cache in ("own", "env"):
        (place.root / cache).mkdir()
        for name in ("CACHEDIR.TAG", "data", "lastfailed"):
            (place.root / cache / name).write_text("x")
    reads = {".": LISTED, "own/data": READ, "own": THERE}
    found = place.run(reads, changed=("own/data",))
    (place.root / "own" / "data").write_text("y")
    assert place.difference(found) == "own/data changed"
    shutil.rmtree(place.root / "own")
    assert place.difference(found) == ""
    found = place.run({"env/data": READ})
    (place.root / "own").mkdir()
    assert place.difference(found) == ""
    shutil.rmtree(place.root / "env")
    assert place.difference(found) == "env/data is gone"
    (place.root / "own" / "CACHEDIR.TAG").write_text("")
    (place.root / "own" / "lastfailed").write_text("")
    found = place.run({"own/lastfailed": READ}, changed=("own/data",))
    shutil.rmtree(place.root / "own")
    assert place.difference(found) == "own/lastfailed is gone"


def test_the_folder_of_git_counts_by_what_is_read_in_it(place: Place) -> None:
    (place.root / ".git").mkdir()
    found = place.run({".git": READ | LISTED, ".": LISTED})
    (place.root / ".git" / "index.lock").write_text("")
    assert place.difference(found) == ""
    shutil.rmtree(place.root / ".git")
    (place.root / ".git").write_text("gitdir: elsewhere")  # of a linked worktree
    assert place.difference(found) == ""
    (place.root / ".git").unlink()
    assert place.difference(found) == ".git is gone"


@pytest.mark.parametrize("state", [".git/gitgates", ".git/worktrees/x/gitgates"])
def test_our_own_state_counts_only_by_the_files_that_are_read(place: Place, state: str) -> None:
    runs = place.root / state / "runs"
    runs.mkdir(parents=True)
    (runs / "log").write_text("")
    began_ns = runs.stat().st_ctime_ns - 1
    walked = {state: READ | LISTED, f"{state}/runs": READ | LISTED, f"{state}/runs/log": THERE}
    was = place.run({"a": READ, **walked}, began_ns=began_ns)
    assert [key for key in was.states if "gitgates" in key] == []
    (runs / "new").write_text("")
    assert (was.unreusable, place.difference(was)) == ("", "")
    read = place.run({f"{state}/runs/log": READ})
    (runs / "log").write_text("more")
    assert place.difference(read) == f"{state}/runs/log changed"


def test_what_a_cache_only_has_counts_as_anything(place: Place) -> None:
    (place.root / "sub" / "CACHEDIR.TAG").write_text("")  # uv makes one in an environment
    found = place.run({"sub/b": READ})
    (place.root / "sub" / "b").write_text("c")
    assert place.difference(found) == "sub/b changed"


def test_temporary_files_of_its_own_are_left_out(place: Place) -> None:
    (place.temporary / "others").write_text("")
    reads = {"TMP/new": ABSENT, "TMP/new/x": THERE, "TMP/others": READ, "TMP": READ | LISTED}
    found = place.run(reads, made=("TMP/new",), began_ns=LONG_AGO)
    assert (found.unreusable, {*found.states}) == (
        "",
        {place.path("TMP/others"), place.path("TMP")},
    )
    (place.temporary / "more").write_text("")
    assert place.difference(found) == ""  # it has changed the listing itself
    (place.temporary / "others").write_text("changed")
    assert place.difference(found) == f"{place.path('TMP/others')} changed"


def test_temporary_files_of_others_that_it_changes_count(place: Place) -> None:
    (place.temporary / "state").write_text("1")
    found = place.run({"TMP/state": READ}, changed=("TMP/state",))
    assert (found.unreusable, place.difference(found)) == ("", "")
    (place.temporary / "state").write_text("2")
    assert place.difference(found) == f"{place.path('TMP/state')} changed"


def test_the_folder_of_what_it_makes_counts(place: Place) -> None:
    found = place.run({}, made=("new", "new/a", "sub/report"))
    assert {*found.states} == {".", "sub"}
    (place.root / "sub" / "b").unlink()
    (place.root / "sub").rmdir()
    assert place.difference(found) == "sub is gone"


@pytest.mark.parametrize("path", ["sub/b", "link/b"])
def test_a_folder_in_place_of_another_one(place: Place, path: str) -> None:
    """While it runs, by somebody else: the file in it is as old as before."""
    assert place.run({"sub/b": READ}).unreusable == ""
    began_ns = max(path.stat().st_ctime_ns for path in (place.root, place.root / "sub" / "b")) + 1
    while time.time_ns() < began_ns + 20_000_000:
        time.sleep(0.001)
    if path == "link/b":
        _without(place.root / "link").symlink_to("sub")
    else:
        (place.root / "sub").rename(place.root / "sub2")
        (place.root / "sub2").rename(place.root / "sub")
    found = place.run({path: READ}, began_ns=began_ns)
    assert found.unreusable == f"{path[:-2]} changed while it ran"
    own = place.run({path: READ, path[:-2]: 0}, changed=(path[:-2],), began_ns=began_ns)
    assert own.unreusable != found.unreusable


def test_a_relative_interpreter_is_not_known(place: Place) -> None:
    (place.root / "tool").write_text("#!sub/b\n")
    found = place.run({"tool": READ | PROGRAM})
    assert found.unreusable == "runs a script whose interpreter is sub/b"


@pytest.mark.skipif(os.geteuid() != 0, reason="root alone gives files to others")
def test_the_owner_of_a_file_counts(place: Place) -> None:
    found = place.run({"a": THERE})
    os.chown(place.root / "a", 1, -1)
    assert place.difference(found) == "a changed"


def test_a_root_among_temporary_files_counts(tmp_path: Path) -> None:
    place = Place(tmp_path.resolve())
    place.temporary = tmp_path.resolve()
    assert place.run({"a": READ}, made=("a",)).unreusable == "it changes a, which it has read"


def test_scratch_is_left_out(place: Place) -> None:
    reader = place.reader(lambda path: path == "sub/b")
    reads = {place.path("sub/b"): READ, place.path("sub"): THERE | LISTED}
    seen = Observation(reads, frozenset({place.path("sub/b")}), frozenset(), "", "")
    found = dependencies(seen, reader, {}, LONG_AGO)
    assert (found.unreusable, {*found.states}) == ("", {"sub"})
    (place.root / "sub" / "b").unlink()
    assert first_difference(found, reader) == ""


def test_a_pass_holds_in_another_worktree(place: Place) -> None:
    found = place.run({"a": READ, "sub": LISTED, "OUT/c": READ, "OUT/no": ABSENT})
    shutil.copytree(place.root, place.root.parent / "twin", symlinks=True)
    place.root = place.root.parent / "twin"
    assert place.difference(found) == ""
    (place.root / "a").write_text("b")
    assert place.difference(found) == "a changed"


def test_what_is_above_another_worktree_counts(place: Place) -> None:
    top = place.root.parent
    found = place.run({"a": READ, str(top / "config"): ABSENT, "OUT": THERE})
    other = top / "deep" / "er"
    shutil.copytree(place.root, other, symlinks=True)
    place.root = other
    assert place.difference(found) == ""
    (top / "deep" / "config").write_text("")
    assert place.difference(found) == f"{top}/deep/config is there now"
    place.root = top / "root"
    assert place.difference(found) == ""


def test_what_is_only_above_the_first_worktree_counts(place: Place) -> None:
    first, second = place.root.parent / "x" / "root", place.root.parent / "y" / "root"
    for root in (first, second):
        shutil.copytree(place.root, root)
    place.root = first
    (first.parent / "config").write_text("")
    found = place.run({"a": READ, f"{first.parent}/config": READ, str(first.parent): THERE})
    place.root = second
    assert place.difference(found) == f"{first.parent}/config is not above this worktree"


def test_digests_are_kept(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = {"a": READ, "sub": LISTED}
    place.run(reads)
    assert place.digests == {}  # too new: another change might look the same
    now_ns = time.time_ns() + 10**10
    monkeypatch.setattr("time.time_ns", lambda: now_ns)
    found = place.run(reads)
    assert {*place.digests.values()} == {
        state.rpartition(" ")[2].removeprefix("names:") for state in found.states.values()
    }
    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", lambda *_: pytest.fail("it is known"))
        patch.setattr("os.scandir", lambda *_: pytest.fail("it is known"))
        assert place.difference(found) == ""


def test_a_large_file_is_told_by_its_times(place: Place) -> None:
    with (place.root / "large").open("wb") as file:
        file.truncate((64 << 20) + 1)
    found = place.run({"large": READ})
    assert place.difference(found) == ""
    os.utime(place.root / "large")
    assert place.difference(found) == "large changed"


def test_special_files(place: Place) -> None:
    os.mkfifo(place.root / "fifo")
    (place.root / "loop").symlink_to("loop")
    found = place.run({"fifo": THERE, "loop": 0, "a/b": 0})
    assert found.states == {
        "fifo": "special 644",
        "loop": "link 'loop' to error 40",
        "a/b": "error 20",
    }
    assert place.difference(found) == ""


def test_what_comes_through_a_pipe_is_not_known(place: Place) -> None:
    os.mkfifo(place.root / "fifo")
    (place.root / "to").symlink_to("fifo")
    assert place.run({"to": READ}).unreusable == "it reads to, which is not a file"


def test_reasons_are_handed_on(place: Place) -> None:
    seen = Observation({}, frozenset(), frozenset(), "connects to x", "uses ptrace")
    found = dependencies(seen, place.reader(), {}, LONG_AGO)
    assert (found.unreusable, found.spoilt) == ("connects to x", "uses ptrace")


def test_hooks_load_little_to_look_again() -> None:
    program = "import gitgates.observed.unchanged, gitgates.observed.environment, sys\n"
    program += "print(*{'re', 'typing', 'enum', 'hashlib', 'functools'} & {*sys.modules})"
    loaded = subprocess.run(
        [sys.executable, "-S", "-c", program], cwd=ROOT, capture_output=True, check=True
    )
    assert loaded.stdout.split() == []
