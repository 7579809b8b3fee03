"""A call that makes no sense: said once, on standard error, with exit status 64."""

from __future__ import annotations

import os

import forked
import pytest
from conftest import Repo

from gitgates.cli import EVERY_DAY, VERBS


def refused(repo: Repo, *args: str) -> str:
    """Return what a call that makes no sense is told."""
    done = repo.gitgates(*args)
    assert (done.returncode, done.stdout) == (64, b"")
    return done.stderr.decode()


def test_alone_it_shows_its_help_once(repo: Repo) -> None:
    told = refused(repo)
    assert told == repo.gitgates("--help").stdout.decode()
    assert told.count("Usage:") == 1


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--nope"], "No such option '--nope'."),
        (["--"], "Missing command."),
        (["chekc"], "no such command: chekc. Did you mean `check`?"),
    ],
)
def test_a_call_of_no_verb(repo: Repo, args: list[str], told: str) -> None:
    usage = "  Usage: gitgates [OPTIONS] COMMAND [ARGS]...\n"
    assert refused(repo, *args) == f"gitgates: {told}\n{usage}"


def test_the_help_shows_the_verbs_of_every_day_or_all(repo: Repo) -> None:
    short, whole = (repo.gitgates("--help", *more).stdout.decode() for more in ([], ["--all"]))
    assert [verb for verb in VERBS if f"\n  {verb} " in short] == [
        verb for verb in VERBS if verb in EVERY_DAY
    ]
    assert [verb for verb in VERBS if f"\n  {verb} " in whole] == [*VERBS]
    assert max(map(len, (short + whole).splitlines())) <= 80
    assert repo.gitgates("help").stdout.decode() == short
    assert repo.gitgates("help", "run").stdout == repo.gitgates("run", "--help").stdout


def test_the_list_of_hooks_and_gates(repo: Repo) -> None:
    repo.config(
        '[gates.a]\ncommand = "true"\n[gates.b]\ncommand = "true"\n'
        '[hooks.pre-commit]\ngates = ["a"]\n'
    )
    assert repo.gitgates("list").stdout == b"pre-commit  a\nin no hook  b\n"


INTERNAL: list[list[str]] = [
    [],
    ["--help"],
    ["a"],
    ["a", "b", "c"],
    ["/", "no/such/folder", "1"],
    ["/", "/", "one"],
    ["/", "/", "1", "lock"],
    ["/", "/", "1", "lock", "inode"],
    ["rel", "/", "1"],
]


def test_rescue_is_not_for_people(repo: Repo) -> None:
    repo.write("rel/x")
    for args in INTERNAL:
        done = forked.run(("rescue", *args), str(repo.path), {**os.environ}, b"", hosts=True)
        assert (done.returncode, done.stdout) == (64, b""), args
        assert done.stderr.decode() == (
            "gitgates: `rescue` is internal: gitgates starts it when a run was killed\n"
            "  Use this instead: gitgates recover\n"
        ), args
