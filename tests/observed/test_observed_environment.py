"""Which variables count, and what is said of one that is not as it was."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gitgates.observed.environment import (
    INDEX,
    VOLATILE,
    VOLATILE_ENDS,
    VOLATILE_STARTS,
    environment_difference,
    environment_state,
    temporary_folders,
)

ENV = {"PATH": "/w/.venv/bin:/usr/bin", "CI": "", "PWD": "/w", "SSH_TTY": "x", "X_SESSION_ID": "1"}
CHANGES = {
    "": {},
    "the variable CI has another value": {"CI": "true"},
    "the variable A is set now": {"A": ""},
    "the variable PATH has another value": {"PATH": "/usr/bin"},
}


@pytest.mark.parametrize("says", CHANGES)
def test_changes(says: str) -> None:
    was, now = environment_state(ENV, "/w"), environment_state(ENV | CHANGES[says], "/w")
    assert environment_difference(was, now) == says


def test_a_variable_that_is_gone() -> None:
    was, now = environment_state(ENV, "/w"), environment_state({"CI": ""}, "/w")
    assert environment_difference(was, now) == "the variable PATH is no longer set"


def test_what_says_who_sits_where_does_not_count() -> None:
    other = {"PWD": "/x", "_": "x", "COLUMNS": "9", "SSH_CLIENT": "y", "A_SESSION_ID": "2"}
    assert environment_state(ENV, "/w") == environment_state(ENV | other, "/w")
    was, marked = environment_state(ENV, "/w"), environment_state({**ENV, "AGENT": "1"}, "/w")
    assert environment_difference(was, marked) == "the variable AGENT is set now"
    assert environment_difference(was, marked, lambda: ["AGENT"]) == ""


def test_what_the_command_names_counts() -> None:
    was = environment_state(ENV, "/w", 'test "$PWD" = /w')
    now = environment_state({**ENV, "PWD": "/x"}, "/w", 'test "$PWD" = /w')
    assert environment_difference(was, now) == "the variable PWD has another value"


def test_the_root_may_be_another_one() -> None:
    there = {name: value.replace("/w/", "/x/y/") for name, value in ENV.items()}
    assert environment_state(there, "/x/y") == environment_state(ENV, "/w")
    assert environment_state({"A": "/w2/bin"}, "/w") != environment_state({"A": "/x2/bin"}, "/x")


def test_values_are_not_kept() -> None:
    assert "secret" not in str(environment_state({"TOKEN": "secret"}, "/w"))


def test_folders_for_temporary_files() -> None:
    usual = ("/tmp", "/var/tmp", "/dev/shm")
    assert temporary_folders({"TMPDIR": "/t", "TMP": "", "TEMP": "relative"}) == ("/t", *usual)


def test_the_page_names_what_does_not_count() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/reuse.md").read_text()
    shown = {*re.findall(r"`([A-Za-z_]+)`", page[page.index("## Variables that do not") :])}
    assert {*VOLATILE, *VOLATILE_STARTS, *VOLATILE_ENDS, INDEX} <= shown
