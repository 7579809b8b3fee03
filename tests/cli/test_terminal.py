"""On a terminal: colour, and a live line once something takes longer than a moment."""

from __future__ import annotations

import os
import pty

import pytest
from conftest import Repo
from terminal_support import on_terminal

from gitgates.report.text import open_terminal


@pytest.fixture
def slow(repo: Repo) -> Repo:
    repo.config("[gates.slow]\ncommand = 'sleep 0.4'\n[hooks.manual]\ngates = ['slow']\n")
    return repo


@pytest.mark.slow
def test_a_live_line_is_drawn_and_taken_away(slow: Repo) -> None:
    written = on_terminal(slow, "run")
    assert b"\r\x1b[Krunning: slow 0 s" in written
    end = written.rpartition(b"\r\x1b[K")[2]
    assert end.startswith(b"slow  \x1b[32mpassed")


def test_a_quick_run_draws_nothing(repo: Repo) -> None:
    repo.config("[gates.a]\ncommand = 'true'\n[hooks.manual]\ngates = ['a']\n")
    assert b"\x1b[K" not in on_terminal(repo, "run")


@pytest.mark.slow
def test_a_dumb_terminal_gets_plain_text(slow: Repo) -> None:
    assert b"\x1b" not in on_terminal(slow, "run", env={"TERM": "dumb"})


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"NO_COLOR": "1", "TERM": "dumb"}])
def test_what_a_dumb_terminal_can_do(env: dict[str, str]) -> None:
    ours, theirs = pty.openpty()
    terminal = open_terminal(theirs, env)
    os.close(ours)
    os.close(theirs)
    assert (terminal.colour, terminal.live) == (False, False)


def test_no_color_and_force_color(repo: Repo) -> None:
    repo.config("[gates.a]\ncommand = 'true'\n[hooks.manual]\ngates = ['a']\n")
    assert b"\x1b[32m" not in on_terminal(repo, "run", env={"NO_COLOR": "1"})
    assert b"\x1b[32m" in repo.gitgates("run", env={"FORCE_COLOR": "1"}).stdout
    assert b"\x1b" not in repo.gitgates("run").stdout
