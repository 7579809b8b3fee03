"""A command that is not found: which program that is, and whether PATH is why."""

from __future__ import annotations

import pytest
from conftest import Repo

from gitgates.core.types import GateResult, make_gate
from gitgates.engine.plan.command import with_program

NOT_FOUND = "command not found"


@pytest.mark.parametrize(
    ("output", "program"),
    [
        (b"lint: 1: ruff: not found\n", "ruff"),
        (b"lint: line 3: ./scripts/lint: command not found\n", "./scripts/lint"),
        (b"> web@1.0.0 lint\n> eslint .\n\nsh: 1: eslint: not found\n", "eslint"),
        (b"zsh:1: command not found: ruff\n", "ruff"),
        ("env: ‘node’: No such file or directory\n".encode(), "node"),
        (b"/bin/sh: mypy: not found\r\n", "mypy"),
        (b"page: not found at all\n", ""),
        (b"", ""),
    ],
)
def test_the_program_is_named_in_the_words_of_the_shell(output: bytes, program: str) -> None:
    result = GateResult(gate="lint", status="not-started", reason=NOT_FOUND, output=output)
    named = with_program(result, make_gate(name="lint"), {"PATH": "/opt/bin:/usr/bin"})
    assert named.reason == (f"{NOT_FOUND}: {program}" if program else NOT_FOUND)


def test_a_bare_path_is_named(repo: Repo) -> None:
    gates = "[gates.a]\ncommand = 'nonesuch -x'\n[gates.b]\ncommand = ['nonesuch']\n"
    own = "[gates.own]\ncommand = 'nonesuch'\nenv = { PATH = '/opt/x:/usr/bin' }\n"
    hook = "[hooks.manual]\ngates = ['a', 'b', 'own']\nstrategy = 'collect'\n"
    repo.config(gates + own + hook)
    done = repo.gitgates("run", env={"PATH": "/usr/bin:/bin"}).stdout.decode()
    bare = "; PATH is only /usr/bin:/bin, as in a client that was not started from a terminal"
    *lines, last = done.splitlines()
    said = {line.split()[0]: line.partition(NOT_FOUND)[2] for line in lines if NOT_FOUND in line}
    missing = ": nonesuch"
    assert {gate: said[gate] for gate in ("a", "b", "own")} == {
        "a": missing + bare,
        "b": missing + bare,
        "own": missing,
    }
    assert last == "gitgates manual: blocked by `a`, `b`, `own`"
