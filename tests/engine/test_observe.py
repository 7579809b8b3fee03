"""A gate that only observes, for people: the commit goes through, and the note is printed."""

from __future__ import annotations

import json

import pytest
from conftest import Repo, timeless

CONFIG = """
[gates.new]
command = "echo new speaks; exit 1"
observe = true
on_fail = "STOP"
[gates.check]
command = "CHECK"
[hooks.pre-commit]
gates = ["new", "check"]
"""
NOTE = (
    "gitgates: gate `new` only observes: it failed (exit status 1), which would have led to STOP\n"
)
NEW_FAILED = "new    failed         0.00 s  exit status 1\n  | new speaks\n"


def test_the_commit_goes_through_and_the_note_is_printed(repo: Repo) -> None:
    repo.config(CONFIG.replace("CHECK", "true"))
    repo.shim("pre-commit")
    repo.git("add", ".")
    done = repo.commit()
    assert done.returncode == 0, done.stderr
    assert timeless(done.stderr) == (
        f"{NEW_FAILED}check  passed         0.00 s\n{NOTE}"
        "gitgates pre-commit: 1 gate passed, 1 gate only observed\n"
    )
    assert repo.git("log", "--format=%s") == "change"


def test_another_gate_blocks_all_the_same(repo: Repo) -> None:
    repo.config(CONFIG.replace("CHECK", "exit 3"))
    repo.shim("pre-commit")
    repo.git("add", ".")
    done = repo.commit()
    assert done.returncode == 1
    assert timeless(done.stderr) == (
        f"{NEW_FAILED}check  failed         0.00 s  exit status 3\n{NOTE}"
        "gitgates pre-commit: blocked by `check`\n"
        "gitgates: to see more: gitgates runs show latest; "
        "to skip this once: GITGATES_SKIP=check git commit\n"
    )


ALONE = CONFIG.replace('["new", "check"]', '["new"]')


def test_run_says_so_too(repo: Repo) -> None:
    repo.config(ALONE)
    done = repo.gitgates("run", "pre-commit")
    assert done.returncode == 0
    assert timeless(done.stdout + done.stderr) == (
        "new  failed         0.00 s  exit status 1\n  | new speaks\n"
        f"{NOTE}gitgates pre-commit: 1 gate only observed\n"
    )


def test_quiet_still_tells_of_it(repo: Repo) -> None:
    repo.config(ALONE)
    done = repo.gitgates("run", "pre-commit", "-q")
    assert done.returncode == 0
    assert NOTE in (done.stdout + done.stderr).decode()


def test_run_as_json(repo: Repo) -> None:
    repo.config(ALONE)
    done = repo.gitgates("run", "pre-commit", "--format", "json")
    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["verdict"] == "passed"
    assert [gate["status"] for gate in found["results"]] == ["failed"]
    assert found["notes"] == [NOTE.removeprefix("gitgates: ").rstrip()]


@pytest.mark.parametrize(
    ("on_pass", "note"),
    [
        ("CONTINUE", ""),
        (
            "check",
            "gitgates: gate `new` only observes: it passed, which would have led to gate `check`\n",
        ),
    ],
)
def test_a_pass_is_only_told_of_where_it_leads_somewhere(
    repo: Repo, on_pass: str, note: str
) -> None:
    config = CONFIG.replace("exit 1", "exit 0").replace("CHECK", "true")
    repo.config(config.replace("observe = true", f'observe = true\non_pass = "{on_pass}"'))
    done = repo.gitgates("run", "pre-commit")
    assert done.returncode == 0
    assert timeless(done.stdout + done.stderr) == (
        "new    passed         0.00 s\ncheck  passed         0.00 s\n"
        f"{note}gitgates pre-commit: 2 gates passed\n"
    )
