"""`gitgates run NAME…`: hooks and gates by name, and gates that are left out."""

from __future__ import annotations

import json

import pytest
from conftest import Repo, timeless

from gitgates.store.log import read_ledger

CONFIG = """
[gates.lint]
command = 'echo "lint in $GITGATES_HOOK"'
[gates.types]
command = 'echo "types in $GITGATES_HOOK"'
[gates.secrets]
command = 'echo "secrets in $GITGATES_HOOK"'
required = true
[gates.pre-push]
command = 'echo "the gate"'
[gates.commit-msg]
command = 'echo "the gate"'
[hooks.pre-commit]
gates = ["lint", "types", "secrets"]
[hooks.pre-push]
gates = ["types"]
"""


@pytest.fixture(name="named")
def _named(repo: Repo) -> Repo:
    repo.config(CONFIG)
    repo.commit_all("base")
    return repo


NAMES = [
    ("lint", ["lint in manual"]),
    ("types lint types", ["types in manual", "lint in manual"]),
    ("lint --gate types", ["lint in manual", "types in manual"]),
    ("pre-push", ["types in pre-push"]),
    ("pre-push lint", ["lint in pre-push"]),
    ("pre-push pre-push", ["the gate"]),
    ("lint commit-msg", ["lint in manual", "the gate"]),
    ("--gate pre-push", ["the gate"]),
]


def test_names_of_hooks_and_gates(named: Repo) -> None:
    found = []
    for names, _ran in NAMES:
        done = named.gitgates("run", "-v", *names.split())
        lines = done.stdout.decode().splitlines()
        found.append((names, [line[4:] for line in lines if line.startswith("  | ")]))
        assert done.returncode == 0, names
    assert found == NAMES


def test_a_hook_without_gates_that_has_the_name_of_a_gate(named: Repo) -> None:
    done = named.gitgates("run", "commit-msg")
    assert done.returncode == 78
    assert done.stderr.decode() == (
        "gitgates: hook `commit-msg` has no gates; nothing was checked\n"
        "  To run the gate of that name: gitgates run --gate commit-msg\n"
    )


def test_what_is_skipped_is_shown_and_recorded_and_a_required_gate_says_so(named: Repo) -> None:
    skips = ("--skip", "lint", "--skip", "secrets")
    done = named.gitgates("run", *skips, env={"SKIP": "types"})
    assert done.returncode == 0
    assert timeless(done.stdout) == (
        "lint     skipped      named in --skip\n"
        "types    skipped      named in SKIP\n"
        "secrets  passed         0.00 s\n"
        "gitgates: gate `secrets` is required: --skip does not skip it\n"
        "gitgates pre-commit: 1 gate passed, 2 gates skipped\n"
    )
    entries = read_ledger(f"{named.path}/.git/gitgates")
    assert [(entry["gates"], entry["by"]) for entry in entries] == [
        (["lint", "types"], "--skip, SKIP")
    ]
    stats = json.loads(named.gitgates("runs", "stats", "--format", "json").stdout)
    overrides = {gate["name"]: gate["overrides"] for gate in stats["gates"]}
    assert overrides == {"lint": 1, "types": 1, "secrets": 0}


def test_skipping_also_what_a_commit_would_check(named: Repo) -> None:
    named.write("new.txt", "x")
    named.git("add", ".")
    done = named.gitgates("run", "--staged", "--skip", "types", "--format", "json")
    results = {result["name"]: result for result in json.loads(done.stdout)["results"]}
    assert (results["types"]["status"], results["lint"]["status"]) == ("skipped", "passed")
