"""What git keeps beside files, and what no save point can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from conftest import Repo
from template_support import copy_of
from undo_support import begin, losses

if TYPE_CHECKING:
    from pathlib import Path

    from gitgates.features.undo.losses import Loss


@pytest.fixture(name="work")
def _work() -> Repo:
    """Return a repository with a branch `side`, two stash entries and an untracked file `new`."""
    return copy_of(begin)


def told(found: list[Loss]) -> list[str]:
    """Return the losses as `what`, with the reason why it cannot be saved."""
    return [": ".join([loss.what, *(one.why for one in loss.unsavable)]) for loss in found]


STASHED = ["the stash entry stash@{0}"]
SIDE = ["the branch side"]
COMMITS = ["the commits of the branch"]
# Command → what is lost, and why it cannot be saved.
KEPT = {
    "git stash drop": STASHED,
    "git stash drop -q stash@{0}": STASHED,
    "git stash pop": STASHED,
    "git stash drop 1": ["the stash entry stash@{1}"],
    "git stash drop 7": [],
    "git stash clear": ["all stash entries"],
    "git branch -D side": SIDE,
    "git branch -d -f side": SIDE,
    "git branch --delete --force side": SIDE,
    "git branch -qD side nowhere": SIDE,
    "git branch -D merged": [],
    "git branch -M merged side": SIDE,
    "git branch -f side HEAD": SIDE,
    "git checkout -B side": SIDE,
    "git switch -C side": SIDE,
    "git switch -Cnowhere": [],
    "git update-ref -d refs/heads/side": SIDE,
    "echo 'delete refs/heads/side' | git update-ref --stdin": SIDE,
    "git br -D side": SIDE,
    "git wipe": ["uncommitted changes"],
    "git tag -d lost": ["the ref refs/tags/lost: a save point has branches and the stash, and no "],
    "git tag -d kept": [],
    "git rebase side": COMMITS,
    "git filter-branch --all": COMMITS,
    "git filter-repo --path a": ["all commits: it removes the commits that a save point refers to"],
    "git gc --prune=now": ["objects that only the reflog names, or nothing: "],
    "git reflog expire --expire=now --all": ["objects that only the reflog names, or nothing: "],
    "git rebase --abort": ["uncommitted changes"],
    "git merge --abort": ["uncommitted changes"],
    "git worktree remove --force ../linked": ["untracked files"],
    "git worktree remove -f ../elsewhere": [],
}


def test_what_git_keeps(work: Repo) -> None:
    work.write("base", "changed\n")
    for command, wanted in KEPT.items():
        found = told(losses(work, command))
        assert len(found) == len(wanted), (command, found)
        assert all(map(str.startswith, found, wanted)), (command, found)


def test_a_stash_of_the_same_line_may_be_dropped(work: Repo) -> None:
    work.git("stash", "clear")
    assert told(losses(work, "git stash -u && git stash drop")) == STASHED
    (work.path / "new").unlink()
    assert losses(work, "git stash && git stash drop") == []


_OUTSIDE = "it is outside of the repository"
_GIT = "it is `.git` itself"
_UNKNOWN = "only the shell knows which path it is"
# Command → why what it destroys cannot be saved; `{out}` is a folder beside the repository.
UNSAVABLE = {
    "rm {out}/file": _OUTSIDE,
    "rm -rf {out}": _OUTSIDE,
    "echo x > {out}/file": _OUTSIDE,
    "mv new {out}/file": _OUTSIDE,
    "find {out} -type f -delete": _OUTSIDE,
    "rm -rf .git": _GIT,
    "rm -rf .git/objects": _GIT,
    "rm -rf .*": _GIT,
    "rm -rf ../repo": _GIT,
    "rm -rf $PWD": _GIT,
    "find . -delete": _GIT,
    "cd .. && rm -rf *": _GIT,
    "rm -rf $X": _UNKNOWN,
    'rm -rf "$X"/*': _UNKNOWN,
    "rm -rf {out}/$X": _UNKNOWN,
    "rm large": "it is larger than 1,000 bytes",
    "git clean -f": "it is larger than 1,000 bytes",
    "rm -rf nested": "it is a repository of its own",
    "git clean -ffd": "it is a repository of its own",
    "cd {out}/repo && git reset --hard": "it is in another worktree or repository",
    "git -C {out}/repo clean -fd": "it is in another worktree or repository",
    "rm {out}/repo/changed": "it is in another worktree or repository",
    "rm -rf {out}/repo": "it is in another worktree or repository",
}


def test_what_cannot_be_saved_has_its_reason(work: Repo) -> None:
    out = _surroundings(work)
    for command, reason in UNSAVABLE.items():
        found = losses(work, command.replace("{out}", str(out)), max_file_bytes=1000)
        reasons = {one.why for loss in found for one in loss.unsavable}
        assert any(why.startswith(reason) for why in reasons), (command, found)


# The same, where nothing is lost, or all can be saved.
FINE: dict[str, dict[str, Any]] = {
    "rm .env": {},
    "git clean -fdx .env": {},
    "rm -rf {out}": {"temporary": None},
    "rm {out}/repo/clean": {},
    "cd {out}/repo && git checkout clean": {},
    "rm {out}/nowhere": {},
    "sed -i s/1/2/ {out}/file": {},
    "rm -rf {out}/node_modules": {},
    "rm -rf {out}/empty": {},
    "echo x > {out}/$X": {},
    "rm sub/$X": {},
    "rm -f .git/index.lock .git/MERGE_HEAD": {},
    "rm -rf ${X:-nowhere}": {},
    "for f in *.tmp; do rm -rf $f; done": {},
    "ls | while read f; do rm $f; done": {},
}


def test_what_can_be_saved_has_none(work: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    out = _surroundings(work)
    monkeypatch.setenv("TMPDIR", str(out))
    for command, fields in FINE.items():
        found = losses(work, command.replace("{out}", str(out)), **fields)
        assert [loss for loss in found if loss.unsavable] == [], command


def _surroundings(work: Repo) -> Path:
    """Make what is beside the repository, and what is large or nested in it."""
    out = work.path.parent / "out"
    for path in ("node_modules/x", "file"):
        work.write(f"../out/{path}", "1\n")
    (out / "empty").mkdir()
    for folder in (out / "repo", work.path / "nested"):
        other = Repo.init(folder)
        for name in ("changed", "clean"):
            other.write(name, "1\n")
        other.git("add", ".")
        other.git("commit", "-qm", "one")
        other.write("changed", "2\n")
        other.write("untracked", "2\n")
    work.write("large", "x" * 1001)
    work.write(".gitignore", ".env\n")
    work.write(".env", "SECRET=1\n")
    return out


def test_changes_in_a_submodule_are_not_saved_with_the_repository(work: Repo) -> None:
    _surroundings(work)
    work.git("submodule", "--quiet", "add", "../out/repo", "sub")
    work.git("commit", "-qm", "sub")
    for command in ("git reset --hard", "git checkout .", "rm -rf sub"):
        assert losses(work, command) == [], command
    work.write("sub/clean", "changed\n")
    for command in ("rm -rf sub", "git submodule update --force", "git submodule deinit -f sub"):
        (loss,) = losses(work, command)
        assert (loss.paths, loss.unsavable[0].why) == (("sub",), "it is a repository of its own")
    for command in ("git reset --hard", "git checkout ."):
        assert losses(work, command) == [], command
    (loss,) = losses(work, "cd sub && git checkout .")
    assert loss.unsavable[0].why == "it is in another worktree or repository"


def test_a_linked_worktree_is_as_much_ours(work: Repo) -> None:
    linked = Repo(work.path.parent / "linked")
    linked.write("base", "changed\n")
    (loss,) = losses(linked, "git reset --hard")
    assert (loss.paths, loss.root_abs, loss.unsavable) == (("base",), str(linked.path), ())
    (loss,) = losses(linked, "rm ../repo/new")
    assert loss.unsavable[0].why == "it is in another worktree or repository"
    assert told(losses(linked, "rm -rf ../repo")) == [f"../repo: {_GIT}"]
    assert told(losses(linked, "git stash clear")) == ["all stash entries"]


def test_names_of_any_characters(work: Repo) -> None:
    names = ("a b", "é", 'q"', "tab\t", "new\nline", "-dash", "*")
    for name in names:
        work.write(name, "1\n")
    assert set(losses(work, "git clean -f")[0].paths) == {*names, "new"}
    assert losses(work, "rm -- -dash '*' 'a b'")[0].paths == ("*", "-dash", "a b")
    assert losses(work, "rm $'new\\nline'")[0].paths == ("new\nline",)
