"""A call that makes no sense: said once, on standard error, with exit status 64."""

from __future__ import annotations

import os

import forked
import pytest
from conftest import Repo


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
