"""The table `[tool.gitgates.proof]`."""

from __future__ import annotations

import json

import pytest
from config_support import fatal, read


def test_identities_are_short_for_a_table() -> None:
    short = read('[proof]\ntrust = ["ci@x"]')[0].tables["proof"]
    assert short == read('[proof]\ntrust = { signers = ["ci@x"] }')[0].tables["proof"]
    assert short["trust"] == {"signers": ("ci@x",), "agents": True, "max_age_s": 0.0}
    assert (short["allowed_signers"], short["push"]) == ("", False)


def test_conditions_are_read() -> None:
    config = read('[proof]\ntrust = { signers = ["a"], agents = false, max_age = "30d" }')[0]
    trust = config.tables["proof"]["trust"]
    assert trust == {"signers": ("a",), "agents": False, "max_age_s": 30 * 86400.0}


def test_without_the_table_there_is_none() -> None:
    assert "proof" not in read("jobs = 1")[0].tables
    assert not read("[proof]")[0].tables["proof"]["trust"]["signers"]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (
            '"ci@x"',
            'trust: got "ci@x", expected identities, such as ["ci@example.com"], or a table',
        ),
        ("[1]", "trust[0]: got 1, expected text in quotes"),
        ("{ signer = [] }", "Did you mean `signers`?"),
        ('{ agents = "no" }', 'trust.agents: got "no", expected true or false'),
        ('{ max_age = "old" }', 'trust: got { max_age = "old" }, expected days or hours'),
    ],
)
def test_wrong_values_are_named(value: str, problem: str) -> None:
    assert problem in fatal(f"[proof]\ntrust = {value}")


@pytest.mark.parametrize("value", ["/etc/signers", "../signers", 1])
def test_the_file_of_signers_is_in_the_repository(value: object) -> None:
    problem = fatal(f"[proof]\nallowed_signers = {json.dumps(value)}")
    assert "expected a file inside the repository, relative to its root" in problem
    assert "gpg.ssh.allowedSignersFile" in problem
