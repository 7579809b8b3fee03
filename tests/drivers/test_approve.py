"""What takes a person: a terminal, or a token that was printed to one."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest
from conftest import Repo
from terminal_support import on_terminal

from gitgates.cli.approve import command
from gitgates.core.errors import StateError, UsageError
from gitgates.git import repo as repository
from gitgates.verbs.approval import ACTIONS, LASTS_S, new_token, require_person

if TYPE_CHECKING:
    from pathlib import Path

SKIP, SCOPE = "review skip", "intent approve-scope"


@pytest.fixture
def here(repo: Repo) -> repository.Repo:
    return repository.find_repo(str(repo.path), {**os.environ})


def approvals(here: repository.Repo) -> list[str]:
    return os.listdir(f"{here.shared_state_abs}/approvals")


def test_a_token_is_for_one_use(here: repository.Repo) -> None:
    token = new_token(here, SKIP)
    assert token not in approvals(here)[0]
    require_person(here, SKIP, f" {token}\n")
    assert approvals(here) == []
    with pytest.raises(UsageError, match="the token is not valid: it was already used, is older"):
        require_person(here, SKIP, token)


def test_a_token_is_for_one_command(here: repository.Repo) -> None:
    token = new_token(here, SCOPE)
    with pytest.raises(UsageError, match="not for `gitgates review skip`"):
        require_person(here, SKIP, token)
    require_person(here, SCOPE, token)


@pytest.mark.parametrize("gone_s", [LASTS_S + 1, -60])
def test_a_token_expires(
    here: repository.Repo, monkeypatch: pytest.MonkeyPatch, gone_s: float
) -> None:
    token, old = new_token(here, SKIP), new_token(here, SKIP)
    now = os.stat(f"{here.shared_state_abs}/approvals/{approvals(here)[0]}").st_mtime
    monkeypatch.setattr(time, "time", lambda: now + gone_s)
    with pytest.raises(UsageError, match="the token is older than 10 minutes"):
        require_person(here, SKIP, token)
    new_token(here, SKIP)
    assert len(approvals(here)) == 1
    with pytest.raises(UsageError, match="not valid"):
        require_person(here, SKIP, old)


@pytest.mark.parametrize("token", ["", " ", "../../ledger.jsonl", "\0", "\udcff"])
def test_without_a_token_and_a_terminal_it_is_refused(here: repository.Repo, token: str) -> None:
    with pytest.raises(UsageError):
        require_person(here, SKIP, token)


def test_what_it_says(here: repository.Repo) -> None:
    with pytest.raises(UsageError) as raised:
        require_person(here, SKIP, arguments=", with --session s1", otherwise="Or not. ")
    assert str(raised.value) == (
        "`gitgates review skip` must be run by a person in a terminal, not by an agent\n"
        "  Or not. The person can run it in a terminal outside the agent, with --session s1, "
        "or run `gitgates approve review skip` there and pass on the token: --token TOKEN."
    )


def test_it_is_printed_to_a_terminal(repo: Repo, here: repository.Repo) -> None:
    token, note = on_terminal(repo, "approve", "review", "skip").decode().split("\r\n")[:2]
    assert note == (
        "gitgates: allows `gitgates review skip --token TOKEN` to record that a change needs no "
        "independent review"
        ": once, within 10 minutes"
    )
    require_person(here, SKIP, token)


@pytest.mark.parametrize("variable", ["CLAUDECODE", "CLAUDE_CODE_SESSION_ID"])
def test_an_agent_gets_none_even_in_a_terminal(repo: Repo, variable: str) -> None:
    said = on_terminal(repo, "approve", "review", "skip", env={variable: "1"})
    assert said.startswith(b"gitgates: a token is only printed to a terminal\r\n")
    assert not (repo.path / ".git/gitgates/approvals").exists()


@pytest.mark.parametrize(
    ("args", "message", "hint"),
    [
        (["review", "skip"], "a token is only printed to a terminal", "Run this in a"),
        (["gitgates", "review", "skip"], "a token is only printed to a terminal", "Run"),
        (
            ["review", "skp"],
            "not a command that a person approves: 'review skp'",
            "Did you mean `review skip`?",
        ),
        (
            ["push"],
            "not a command that a person approves: 'push'",
            "Known: " + ", ".join(ACTIONS) + ".",
        ),
    ],
)
def test_what_is_refused(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, args: list[str], message: str, hint: str
) -> None:
    monkeypatch.chdir(repo.path)
    with pytest.raises(UsageError) as raised:
        command(args, standalone_mode=False)
    assert (raised.value.message, raised.value.hint[: len(hint)]) == (message, hint)


def test_a_folder_that_cannot_be_written_is_named(here: repository.Repo, tmp_path: Path) -> None:
    os.makedirs(here.shared_state_abs, exist_ok=True)
    os.symlink(tmp_path / "nowhere", f"{here.shared_state_abs}/approvals")
    with pytest.raises(StateError, match="approvals: cannot be written"):
        new_token(here, SKIP)
