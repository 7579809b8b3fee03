"""An output that cannot be written is said; a reader that goes away changes nothing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from conftest import Repo

FINE = "[gates.a]\ncommand = 'true'\n[hooks.pre-commit]\ngates = ['a']\n"
FAILING = FINE.replace("true", "false")
LOST = b"gitgates: standard output cannot be written: "
VERBS = [
    ["run"],
    ["run", "--format", "jsonl"],
    ["--help"],
    ["doctor"],
    ["explain", "pre-commit", "--format", "json"],
    ["schema"],
    ["--version"],
    ["check"],
    ["check", "--format", "json"],
    ["completion", "bash"],
    ["doctor", "--format", "json"],
    ["explain", "commit-msg"],
    ["explain", "pre-commit"],
    ["recover", "--list"],
    ["run", "--format", "json"],
]
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has such a device")


def ended(repo: Repo, *args: str, after: str) -> tuple[int, bytes]:
    """Run gitgates from a shell, which can close what Python cannot; return status and stderr."""
    script = f'exec "$0" -m gitgates "$@" {after}'
    done = repo.ask("sh", "-c", script, sys.executable, *args)
    assert done.stdout == b""
    return done.returncode, done.stderr


def into_full(repo: Repo, *args: str) -> tuple[int, bytes]:
    """Run gitgates where standard output is full; return status and stderr."""
    with open("/dev/full", "wb", buffering=0) as full:
        done = repo.gitgates(*args, stdout=full.fileno())
    return done.returncode, done.stderr


def without_reader(repo: Repo, *args: str) -> tuple[int, bytes]:
    """Run gitgates into a pipe whose reader is gone already; return status and stderr."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = repo.gitgates(*args, stdout=writer)
    finally:
        os.close(writer)
    return done.returncode, done.stderr


@pytest.mark.samples(4, "nightly")
@needs_full
@pytest.mark.parametrize("args", VERBS, ids=" ".join)
def test_an_output_that_cannot_be_written_is_said(repo: Repo, args: list[str]) -> None:
    repo.config(FINE)
    assert into_full(repo, *args) == (73, LOST + b"No space left on device\n")


@needs_full
def test_a_quiet_run_says_it_too(repo: Repo) -> None:
    repo.config(FAILING)
    wanted = (73, LOST + b"No space left on device\n")
    assert into_full(repo, "run", "-q") == wanted


@needs_full
def test_what_is_to_be_done_is_done_all_the_same(repo: Repo) -> None:
    repo.config(FINE)
    assert into_full(repo, "install-hooks")[0] == 73
    assert Path(repo.path / ".git/hooks/pre-merge-commit").exists()
    assert into_full(repo, "run", "--junit", "x.xml")[0] == 73
    assert b"<testsuite" in (repo.path / "x.xml").read_bytes()


def test_an_output_that_is_closed_is_one_that_cannot_be_written(repo: Repo) -> None:
    repo.config(FINE)
    assert ended(repo, "check", after=">&-") == (73, LOST + b"Bad file descriptor\n")


@pytest.mark.samples(4)
@pytest.mark.parametrize("args", VERBS, ids=" ".join)
def test_a_reader_may_go_away(repo: Repo, args: list[str]) -> None:
    repo.config(FINE)
    status = repo.gitgates(*args).returncode
    assert without_reader(repo, *args) == (status, b"")


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("args", "status"),
    [(["check"], 78), (["check", "--format", "json"], 78), (["run", "--nonsense"], 64)],
)
def test_a_failure_stays_one_whoever_reads(repo: Repo, args: list[str], status: int) -> None:
    repo.config(FINE + "strange = 1\n")
    assert without_reader(repo, *args)[0] == status
    script = '{ "$0" -m gitgates "$@" 2>&1; echo $? >status; } | true'
    repo.ask("sh", "-c", script, sys.executable, *args)
    assert (repo.path / "status").read_text() == f"{status}\n"


def test_a_run_that_blocks_stays_one_whoever_reads(repo: Repo) -> None:
    repo.config(FAILING)
    assert without_reader(repo, "run") == (1, b"gitgates: to see more: gitgates runs show latest\n")


@pytest.mark.samples(1)
@needs_full
@pytest.mark.parametrize("after", ["2>/dev/full", "2>&-"])
def test_what_is_lost_on_standard_error_changes_no_status(repo: Repo, after: str) -> None:
    repo.config(FINE + "strange = 1\n")
    assert ended(repo, "check", after=after) == (78, b"")
    assert ended(repo, "check", after=f">/dev/full {after}") == (78, b"")
    repo.config(FINE)
    assert ended(repo, "--version", after=f">/dev/full {after}") == (73, b"")


@pytest.mark.samples(1)
@needs_full
@pytest.mark.parametrize("after", ["2>/dev/full", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_an_entry_keeps_its_status_without_its_streams(repo: Repo, after: str) -> None:
    repo.config(FINE + "strange = 1\n")
    repo.git("add", ".")
    hook = ("git-hook", str(repo.path / "no-shim"))
    assert ended(repo, *hook, "pre-commit", after=after) == (78, b"")
    assert ended(repo, *hook, "nonsense", after=after) == (64, b"")
    repo.config(FAILING)
    repo.git("add", ".")
    assert ended(repo, *hook, "pre-commit", after=after) == (1, b"")
    stage = ("pre-commit-hook", "pre-commit", "x")
    assert ended(repo, *stage, after=f">/dev/full {after}") == (1, b"")


def test_a_file_does_not_take_the_place_of_a_closed_stream(repo: Repo) -> None:
    repo.config(FAILING)
    repo.git("add", ".")
    before = {path: path.read_bytes() for path in (repo.path / ".git").glob("*") if path.is_file()}
    ended(repo, "git-hook", "no-shim", "pre-commit", after=">&- 2>&-")
    ended(repo, "run", after="<&- >&- 2>&-")
    after = {path: path.read_bytes() for path in before}
    written = [p for p in (repo.path / ".git/gitgates").rglob("*") if p.is_file()]
    assert after == before
    assert [p for p in written if b"gitgates pre-commit: blocked" in p.read_bytes()] == []
