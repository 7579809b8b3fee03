"""What is asked about: what no save point holds, if a command names it or is about its folder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from conftest import Repo
from template_support import copy_of
from undo_support import begin, place_of

from gitgates.core.types import Config
from gitgates.features.undo.answer import answer
from gitgates.files import ignored
from gitgates.files.look import Limits

if TYPE_CHECKING:
    from pathlib import Path

LIMITS = Limits(max_file=1000, max_ignored=1 << 20)
_OUTSIDE = "it is outside the repository"
_GIT = "it is `.git` itself"
_UNKNOWN = "only the shell knows which path it is"
_LARGE = "it is too large"
_OTHER = "it is in another worktree or repository"
_NESTED = "it is a repository of its own"
# Command → why what it destroys cannot be saved; `{out}` is a folder beside the repository.
UNSAVABLE = {
    "rm {out}/file": _OUTSIDE,
    "rm -rf {out}": _OUTSIDE,
    "echo x > {out}/file": _OUTSIDE,
    "mv new {out}/file": _OUTSIDE,
    "cp new {out}/file": _OUTSIDE,
    "tee {out}/file": _OUTSIDE,
    "truncate -s 0 {out}/file": _OUTSIDE,
    "dd if=new of={out}/file": _OUTSIDE,
    "shred -u {out}/file": _OUTSIDE,
    "rsync -a --delete sub/ {out}/": _OUTSIDE,
    "find {out} -type f -delete": _OUTSIDE,
    "tar cf x.tar --remove-files {out}/file": _OUTSIDE,
    "rsync -a --remove-source-files {out}/ new/": _OUTSIDE,
    "zip -qmr x.zip {out}": _OUTSIDE,
    "curl -s https://example.org/x -o {out}/file": _OUTSIDE,
    "wget -qO {out}/file https://example.org/x": _OUTSIDE,
    "git archive -o {out}/file HEAD": _OUTSIDE,
    "tar cf /dev/null . --remove-files": _GIT,
    "rm -rf .git": _GIT,
    "rm -rf .git/objects": _GIT,
    "rm -rf .*": _GIT,
    "rm -rf ../repo": _GIT,
    "rm -rf $PWD": _GIT,
    "find . -delete": _GIT,
    "find . -type f ! -name '*.py' -delete": _GIT,
    "find . -mindepth 1 -maxdepth 1 -exec rm -rf {} +": _GIT,
    "ls -A | grep -v src | xargs rm -rf": _GIT,
    "cd .. && rm -rf *": _GIT,
    "rm -rf $X": _UNKNOWN,
    'rm -rf "$X"/*': _UNKNOWN,
    "rm -rf {out}/$X": _UNKNOWN,
    "rm large": _LARGE,
    "rm -rf sub": _LARGE,
    "find sub -type f -delete": _LARGE,
    "sed -i s/x/y/ large": _LARGE,
    "sed -n -i p large": _LARGE,
    "sort -n a -o large": _LARGE,
    "cp -a new {out}/file": _OUTSIDE,
    "awk -i inplace 1 large": _LARGE,
    "curl -o large https://example.org/x": _LARGE,
    "git clean -f": _LARGE,
    "git clean -fdx": _LARGE,
    "git clean -ffd": _NESTED,
    "rm -rf nested": _OTHER,
    "git ls-files -o | xargs rm": _LARGE,
    "ls | xargs rm -rf": _NESTED,
    "find . -name untracked -delete": _NESTED,
    r"find . -name 'chang*' -exec rm {} \;": _NESTED,
    "rm nested/untracked": "it is",
    "cd {out}/repo && git reset --hard": _OTHER,
    "git -C {out}/repo clean -fd": _OTHER,
    "rm {out}/repo/changed": _OTHER,
    "rm -rf {out}/repo": _OTHER,
    "rm -rf ../linked": _OTHER,
    "rm ../linked/other": _OTHER,
    "git worktree remove --force ../linked": _OTHER,
    "git tag -d lost": "a save point has only branches",
    "git -C . update-ref -d refs/tags/lost": "a save point has only branches",
    "git gc --prune=now": "no branch",
    "git reflog expire --expire=now --all": "no branch",
}
# The same, where nothing is lost, or all can be saved.
FINE = (
    *("rm .env", "git clean -fdx .env", "git clean -nfdx", "rm {out}/repo/clean", "rm clean"),
    *("rsync -n --delete sub/ {out}/", "git prune -n"),
    *("rm {out}/nowhere", "sed -i s/1/2/ {out}/file", "rm -rf {out}/node_modules", "git stash"),
    *("rm -rf {out}/empty", "echo x > {out}/$X", "rm sub/$X", "rm -rf ${X:-nowhere}", "git gc"),
    *("rm -f .git/index.lock .git/MERGE_HEAD", "for f in *.tmp; do rm -rf $f; done"),
    *("ls | while read f; do rm $f; done", "find . -path ./.git -prune -o -name x -exec rm {} +"),
    *("find . ! -path './.git/*' -name x -delete", "find . -name '*.pyc' -delete"),
    *("tar cf data.tar data", "curl -O https://example.org/x", "awk 1 large", "git archive HEAD"),
    *("git reset --hard", "git checkout .", "git stash clear"),
    *("git branch -D side", "git switch -f side", "git rebase --abort", "git tag -d kept"),
    *("find . -name clean -delete", "find . -name 'cl*' -exec rm {} +"),
    *("rm -rf data", "mv new elsewhere", "cp new copy", "find data -exec rm {} +", "echo rm -rf /"),
    *("docker run x rm -rf /", "git commit -m 'rm -rf .git'", "rm 'unterminated", "", "git", "rm"),
)


@pytest.fixture(name="work")
def _work() -> Repo:
    return copy_of(surrounded)


def surrounded(repo: Repo) -> None:
    """Make what is beside the repository, and what is large or nested in it."""
    begin(repo)
    out = repo.path.parent / "out"
    for path in ("node_modules/x", "file"):
        repo.write(f"../out/{path}", "1\n")
    (out / "empty").mkdir()
    for folder in (out / "repo", repo.path / "nested"):
        _fill(Repo.init(folder))
    for name in ("large", "sub/large"):
        repo.write(name, "x" * 1001)
    repo.write(".gitignore", ".env\ndata/\n")
    repo.write(".env", "SECRET=1\n")
    repo.write("data/users.csv", "1\n")


def _fill(other: Repo) -> None:
    for name in ("changed", "clean"):
        other.write(name, "1\n")
    other.git("add", ".")
    other.git("commit", "-qm", "one")
    other.write("changed", "2\n")
    other.write("untracked", "2\n")


def asked(repo: Repo, command: str) -> str:
    found = answer(command, place_of(repo, limits=LIMITS), Config())
    return found.text if found else ""


def test_what_cannot_be_saved_has_its_reason(work: Repo) -> None:
    out, wrong = work.path.parent / "out", {}
    for command, reason in UNSAVABLE.items():
        text = asked(work, command.replace("{out}", str(out)))
        if reason not in text:
            wrong[command] = text
    assert wrong == {}


def test_what_can_be_saved_has_none(work: Repo) -> None:
    out: Path = work.path.parent / "out"
    texts = {command: asked(work, command.replace("{out}", str(out))) for command in FINE}
    assert {command: text for command, text in texts.items() if text} == {}


def test_what_is_ignored_and_another_commit_has_is_asked_about(work: Repo) -> None:
    commands = ("git checkout big", "git merge big", "git pull", "git reset --hard big", "git am x")
    work.write("data/big", "x" * 1001)
    assert [asked(work, command) for command in commands] == [""] * len(commands)
    work.git("checkout", "-qb", "big")
    work.git("add", "-f", "data/big")
    work.git("commit", "-qm", "big", "--", "data/big")
    work.git("checkout", "-q", "-")
    work.write("data/big", "y" * 1001)
    for command in (*commands, "git restore --source=big data/big"):
        assert _LARGE in asked(work, command), command


def test_what_is_beyond_the_number_of_ignored_files_is_asked_about(
    work: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ignored, "_MOST_FILES", 0)
    work.write("data/new/1", "1\n")
    for command in (
        *("rm data/users.csv", "rm -rf data", "cp new data/new/1", "git clean -fdx"),
        "find . -name '*.csv' -delete",
    ):
        assert "very many ignored files" in asked(work, command), command
    for command in ("rm .env", "cp new data/other", "git clean -fd .env"):
        assert "very many" not in asked(work, command), command


def test_what_is_temporary_is_not_asked_about(work: Repo) -> None:
    out = str(work.path.parent / "out")
    place = place_of(work, limits=LIMITS)._replace(temporary=(out,))
    assert answer(f"rm -rf {out}", place, Config()) is None


def test_changes_in_a_submodule_are_asked_about(work: Repo) -> None:
    work.git("submodule", "--quiet", "add", "../out/repo", "module")
    work.git("commit", "-qm", "module")
    for command in ("git reset --hard", "rm -rf module", "git submodule foreach git status"):
        assert asked(work, command) == "", command
    work.write("module/clean", "changed\n")
    for command in (
        *("rm -rf module", "git submodule update --force", "git submodule deinit -f module"),
        *("git submodule foreach git checkout .", "cd module && git checkout ."),
        "git -C module reset --hard",
    ):
        assert "repository" in asked(work, command), command
    for command in (
        *("git reset --hard", "git rm -rf module", "git rm -f ./module"),
        *("git checkout -f side", "git restore ."),
    ):
        assert "repository" in asked(work, command), command
    assert asked(work, "git rm -f new") == ""


def test_worktrees_inside_are_asked_about(work: Repo) -> None:
    (work.path / "large").unlink()
    work.git("worktree", "add", "-q", "--detach", "trees/one")
    commands = (
        *("rm -rf trees", "git clean -ffd", "git clean -ffd trees", "find trees -type f -delete"),
        *("find . -name own -delete", "ls -d trees | xargs rm -rf"),
    )
    for command in commands:
        assert _OTHER not in asked(work, command), command
    work.write("trees/one/own", "1\n")
    for command in commands:
        assert _OTHER in asked(work, command), command
    for command in ("git clean -fd trees", "rm -rf data", "find . -name '*.pyc' -delete"):
        assert _OTHER not in asked(work, command), command


def test_without_a_save_point_what_would_be_lost_is_asked_about(work: Repo) -> None:
    place = place_of(work, limits=LIMITS)._replace(look=None)
    for command in ("rm .env", "echo x > .env", "git clean -fdx", "git stash clear"):
        found = answer(command, place, Config())
        assert found, command
        assert "no save point" in found.text, command
    for command in ("rm clean", "ls", "git commit -m x", "cp new copy"):
        assert answer(command, place, Config()) is None, command


def test_names_of_any_characters(work: Repo) -> None:
    for name in ("a b", "é", "tab\t", "new\nline", "-dash"):
        work.write(name, os.urandom(600).hex())
    for command in ("rm -- -dash", "rm 'a b'", "rm $'new\\nline'", "rm é"):
        assert _LARGE in asked(work, command), command
