"""The doctor says why gates that may run on another machine do not."""

from __future__ import annotations

import json
import os
import sys

import pytest
from conftest import Repo

from gitgates.core.types import Config, make_gate
from gitgates.features.remote.checks import check
from gitgates.features.remote.worker import INSTALL
from gitgates.git.repo import find_repo

URL = "grpc://127.0.0.1:1"
SERVER = f'[remote]\nexecution = "{URL}"\n'
GATE = '[gates.test]\ncommand = "true"\nremote = true\n'


def found(repo: Repo, config: str, **env: str) -> list[tuple[str, str, str, str]]:
    repo.config(config)
    findings = json.loads(repo.gitgates("doctor", "--format", "json", env=env).stdout)["findings"]
    return [
        (one["severity"], one["where"], one["what"], one["mend"])
        for one in findings
        if one["check"] == "remote"
    ]


def test_what_is_configured(repo: Repo) -> None:
    here = "[tool.gitgates.remote]"
    for config, severity, where, what in (
        (SERVER + GATE, "ok", URL, "1 gate may run there; `gitgates remote check` asks the server"),
        (SERVER, "note", URL, "no gate has `remote`: nothing runs there"),
        (f"{SERVER}jobs = 0\n{GATE}", "note", URL, "`jobs` is 0: nothing runs there"),
        (GATE, "note", here, "1 gate with `remote`, but no `execution`: they run here"),
    ):
        assert found(repo, config) == [(severity, where, what, "")]


def test_nothing_of_it_is_configured(repo: Repo) -> None:
    assert found(repo, '[gates.test]\ncommand = "true"\n') == []


def test_a_gate_that_always_runs_here(repo: Repo) -> None:
    what = "has `remote`, but always runs here, because of `baseline`"
    assert found(repo, f"{SERVER}{GATE}baseline = true\n") == [("note", "gate test", what, "")]


def test_a_package_that_is_missing_is_a_problem(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gitgates.features.remote.execution", None)
    gate = make_gate(name="test", command="true", remote=True)
    config = Config(gates=(gate,), tables={"remote": {"execution": URL, "jobs": 1}})
    (finding,) = check(find_repo(str(repo.path), dict(os.environ)), config)
    what, _, mend = INSTALL.partition(": ")
    assert (finding.severity, finding.where, finding.mend) == ("problem", URL, mend)
    assert finding.what.startswith(f"{what} (")


@pytest.mark.thorough
def test_without_the_packages(repo: Repo) -> None:
    repo.write("path/grpc/__init__.py", "raise ImportError('too old')")
    (problem,) = found(repo, SERVER + GATE, PYTHONPATH=str(repo.path / "path"))
    what, _, mend = INSTALL.partition(": ")
    assert problem == ("problem", URL, f"{what} (too old): nothing runs there", mend)
