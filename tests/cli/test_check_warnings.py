"""What `gitgates check` warns about: pipes that hide a failure, checks before fixers."""

from __future__ import annotations

import pytest
from conftest import Repo

from gitgates.cli.check import find_pipes
from gitgates.core.types import Config, make_gate


@pytest.mark.parametrize(
    ("command", "lost"),
    [
        ("false | tail", "false"),
        ("ruff check . 2>&1 | tee log", "ruff"),
        ("cd web && A=1 npx tsc | head -5; true", "npx"),
        ("git ls-files | xargs mypy | tail", "xargs"),
        ("ruff check .|tail", "ruff"),
        ("git ls-files '*.py' | xargs ruff", ""),
        ("! git diff | grep -q TODO", ""),
        ("ruff check . || exit 3", ""),
        ("grep 'a | b' file", ""),
        ("set -o pipefail; ruff check . | tail", ""),
        ("echo 'open | tail", ""),
    ],
)
def test_a_failure_that_is_lost(command: str, lost: str) -> None:
    found = [
        text for _name, text in find_pipes(Config(gates=(make_gate(name="g", command=command),)))
    ]
    assert [text.startswith(f"a failure of `{lost}` is lost") for text in found] == [True] * bool(
        lost
    )


def test_check_names_the_better_order(repo: Repo) -> None:
    gates = ["lint", "format", "types"]
    tables = "".join(f'[gates.{name}]\ncommand = "x"\n' for name in gates)
    tables = tables.replace("[gates.format]\n", "[gates.format]\nwrites = true\n")
    repo.config(f"{tables}[hooks.pre-commit]\ngates = {gates}\n[hooks.manual]\ngates = ['types']\n")
    said = repo.gitgates("check").stderr.decode()
    better = "gate `lint` runs again if `format` changes files; better: [format, lint, types]"
    assert said == f"gitgates: pre-commit: {better}\n"


def test_check_warns_of_it(repo: Repo) -> None:
    repo.config('[gates.t]\ncommand = "false | tail"\n[hooks.pre-commit]\ngates = ["t"]\n')
    done = repo.gitgates("check")
    assert done.returncode == 0
    assert (
        b"gate `t`: a failure of `false` is lost: the exit status is that of `tail`" in done.stderr
    )
