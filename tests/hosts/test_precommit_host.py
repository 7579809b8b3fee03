"""What the pre-commit framework hands over, as an event, and the environment it has changed."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING

import forked
import pytest
import yaml
from install_support import ROOT

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.types import Event, RefUpdate
from gitgates.entry import precommit
from gitgates.hosts.precommit import ENVIRONMENT_MARKS, decode, undo_venv

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Repo

ZEROS, OLD, NEW = "0" * 40, "1" * 40, "2" * 40
TO = {
    "PRE_COMMIT_REMOTE_NAME": "origin",
    "PRE_COMMIT_REMOTE_URL": "/far.git",
    "PRE_COMMIT_LOCAL_BRANCH": "refs/heads/main",
    "PRE_COMMIT_REMOTE_BRANCH": "refs/heads/main",
    "PRE_COMMIT_TO_REF": NEW,
}


def event(stage: str, *files: str, cwd: str = "/repo", **env: str) -> Event:
    found = decode(stage, files, env, ("/repo", cwd))
    assert found.within_framework
    assert (found.host, found.name, found.root_abs) == ("pre-commit", stage, "/repo")
    return found


def test_the_manifest_is_valid_and_has_each_stage() -> None:
    path = ROOT / ".pre-commit-hooks.yaml"
    import_module("pre_commit.clientlib").load_manifest(str(path))
    hooks = yaml.safe_load(path.read_text())
    known = {name: hook for name, hook in HOOK_POINTS.items() if hook.framework}
    assert {hook["id"]: hook["stages"] for hook in hooks} == {
        f"gitgates-{name}": [name] for name in known
    }
    for hook in hooks:
        (stage,) = hook["stages"]
        assert hook["entry"] == f"gitgates pre-commit-hook {stage}"
        assert (hook["language"], hook["always_run"], hook["require_serial"]) == (
            *("python", True, True),
        )
        takes = known[stage].scope in ("staged", "message", "pushed", "caller")
        assert hook["pass_filenames"] is takes, stage


@pytest.mark.parametrize("stage", ["pre-commit", "pre-merge-commit", "manual"])
def test_files_are_below_the_root(stage: str) -> None:
    assert event(stage, "a b", "../x", "./c", cwd="/repo/web").paths == ("web/a b", "x", "web/c")
    assert event(stage).paths == ()  # as of a commit that only deletes


@pytest.mark.parametrize("stage", ["commit-msg", "prepare-commit-msg"])
def test_a_message(stage: str) -> None:
    found = event(stage, ".git/COMMIT_EDITMSG", PRE_COMMIT_COMMIT_MSG_SOURCE="template")
    message = "/repo/.git/COMMIT_EDITMSG"
    assert (found.message_file_abs, found.paths) == (message, None)
    assert found.argv == (message, *["template"] * (stage == "prepare-commit-msg"))


def test_a_push_has_what_git_told() -> None:
    found = event("pre-push", "a", **TO)
    assert (found.argv, found.paths) == (("origin", "/far.git"), ("a",))
    assert found.refs == (RefUpdate("refs/heads/main", NEW, "refs/heads/main", ZEROS),)
    assert found.stdin == f"refs/heads/main {NEW} refs/heads/main {ZEROS}\n".encode()
    again = event("pre-push", "a", **TO, PRE_COMMIT_FROM_REF=OLD)
    assert again.stdin == f"refs/heads/main {NEW} refs/heads/main {OLD}\n".encode()
    notes = event("pre-push", **{**TO, "PRE_COMMIT_REMOTE_BRANCH": "refs/notes/x"})
    assert (notes.refs, notes.stdin) == ((), b"")


@pytest.mark.parametrize(
    ("stage", "env", "argv"),
    [
        ("post-commit", {}, ()),
        ("post-merge", {"PRE_COMMIT_IS_SQUASH_MERGE": "1"}, ("1",)),
        ("post-rewrite", {"PRE_COMMIT_REWRITE_COMMAND": "amend"}, ("amend",)),
        (
            "post-checkout",
            {
                "PRE_COMMIT_CHECKOUT_TYPE": "1",
                "PRE_COMMIT_FROM_REF": OLD,
                "PRE_COMMIT_TO_REF": NEW,
            },
            (OLD, NEW, "1"),
        ),
        (
            "pre-rebase",
            {"PRE_COMMIT_PRE_REBASE_BRANCH": "b", "PRE_COMMIT_PRE_REBASE_UPSTREAM": "up"},
            ("up", "b"),
        ),
    ],
)
def test_other_hooks_have_their_arguments(
    stage: str, env: dict[str, str], argv: tuple[str, ...]
) -> None:
    found = event(stage, **env)
    assert (found.argv, found.paths, found.message_file_abs) == (argv, None, "")


def test_the_persons_environment_is_put_back(tmp_path: Path) -> None:
    """Only from an environment that the framework has made."""
    theirs, framework = tmp_path / "persons", tmp_path / "made"
    for folder in (theirs, framework):
        (folder / "bin").mkdir(parents=True)
    path = f"{framework}/bin:/usr/lib/git-core:{theirs}/bin:/bin"
    env = {"VIRTUAL_ENV": str(framework), "PATH": path, "X": "y"}
    rest = path.removeprefix(f"{framework}/bin:")
    original_env = precommit._original_env  # noqa: SLF001 - what its gates start with
    assert undo_venv(env, has_venv=True) == {"X": "y", "PATH": rest, "VIRTUAL_ENV": str(theirs)}
    assert undo_venv(env, has_venv=False) == {"X": "y", "PATH": rest}
    assert original_env(env) == env
    for mark in ENVIRONMENT_MARKS:
        (framework / mark).touch()
        assert original_env(env) == {"X": "y", "PATH": rest}
        (framework / mark).unlink()
    (framework / mark).touch()
    (theirs / "pyvenv.cfg").touch()
    assert original_env(env)["VIRTUAL_ENV"] == str(theirs)


# The hook itself


def hook(repo: Repo, stage: str, *files: str, **env: str) -> tuple[int, str]:
    args = ("pre-commit-hook", stage, *files)
    done = forked.run(args, str(repo.path), {**os.environ, **env}, b"", hosts=True)
    assert done.stderr == b""
    return done.returncode, done.stdout.decode()


def test_a_fixer_that_does_not_say_so(repo: Repo) -> None:
    repo.config("[gates.fix]\ncommand = 'sed -i s/BAD/good/ *.txt'\n"
                "[hooks.pre-commit]\ngates = ['fix']\n")  # fmt: skip
    path = repo.write("c.txt", "BAD\n")
    repo.git("add", "c.txt")
    status, said = hook(repo, "pre-commit", "c.txt")
    assert status == 1
    assert "it changed 1 file: c.txt; gates that fix" in said
    assert path.read_text() == "good\n"
    assert hook(repo, "pre-commit", "c.txt")[0] == 0  # the same bytes anew are no change


def test_a_commit_that_only_deletes(repo: Repo) -> None:
    repo.config("[gates.whole]\ncommand = 'test -e \"a b\"'\nfiles = ['a b']\n"
                "[hooks.pre-commit]\ngates = ['whole']\n")  # fmt: skip
    repo.write("a b")
    repo.commit_all("start")
    repo.git("rm", "-q", "a b")
    status, said = hook(repo, "pre-commit")
    assert status == 1
    assert "gitgates pre-commit: blocked by `whole`" in said
    assert hook(repo, "pre-commit", GITGATES="0") == (0, "")
