"""`gitgates run --audit-reuse` finds passes that are wrong, and nothing else."""

from __future__ import annotations

import json

import pytest
from conftest import Repo
from observed_support import needs_strace

pytestmark = [pytest.mark.slow, needs_strace]

# What depends on a variable that says nothing about a result, as a rule.
CONFIG = """\
[gates.hidden]
command = "sh hidden.sh"
reuse = true
on_fail = "CONTINUE"
[gates.fixer]
command = "sh fix.sh"
writes = true
reuse = true
[gates.right]
command = "! grep -q BAD src/a"
reuse = true
[hooks.manual]
gates = ["fixer", "hidden", "right"]
strategy = "collect"
"""
BAD = {"SSH_TTY": "bad"}


@pytest.fixture(name="project")
def _project(repo: Repo) -> Repo:
    repo.config(CONFIG)
    repo.write("hidden.sh", '[ "$SSH_TTY" != bad ]\n')
    repo.write("fix.sh", '[ "$SSH_TTY" != worse ] || echo other > src/a\n')
    repo.write("src/a", "good\n")
    repo.commit_all("first")
    done = repo.gitgates("run", "--audit-reuse")
    assert done.returncode == 0
    assert b"gitgates: nothing was compared: no pass would have been reused\n" in done.stdout
    done = repo.gitgates("run", "--audit-reuse")
    assert done.returncode == 0
    text = b"gitgates: no difference: 3 gates would have been reused, and passed again\n"
    assert text in done.stdout
    return repo


def test_a_wrong_pass(project: Repo) -> None:
    assert project.gitgates("run", "hidden", env=BAD).returncode == 0  # it is reused
    done = project.gitgates("run", "--audit-reuse", env=BAD)
    assert done.returncode == 1
    lines = done.stdout.decode().splitlines()
    note = "gitgates: gate `hidden` failed (exit status 1); its pass would have been reused "
    notes = [line.partition("(manual, ")[0] for line in lines if "reused (" in line]
    assert notes == [note]
    assert lines[-1] == "gitgates manual: blocked: wrong passes would have been reused: `hidden`"
    done = project.gitgates("run", "hidden")
    assert b"reused" not in done.stdout  # the failure has ended it


@pytest.mark.samples(1)
@pytest.mark.parametrize("fmt", ["jsonl", "json"])
def test_as_json(project: Repo, fmt: str) -> None:
    for env, status, verdict in ((BAD, 1, "blocked"), ({}, 0, "passed")):
        done = project.gitgates("run", "--audit-reuse", "--format", fmt, env=env)
        document = json.loads(done.stdout if fmt == "json" else done.stdout.splitlines()[-1])
        assert (done.returncode, document["exit_status"]) == (status, status)
        assert document["verdict"] == verdict
        first = "gate `hidden` failed (exit status 1); its pass would" if env else "no difference: "
        assert document["notes"][0].startswith(first)


def test_a_fixer_that_changes_files(project: Repo) -> None:
    done = project.gitgates("run", "fixer", "--audit-reuse", env={"SSH_TTY": "worse"})
    assert done.returncode == 1
    assert b"gate `fixer` changed 1 file: src/a; its pass would have been reused" in done.stdout


def test_in_a_hook_of_git(project: Repo) -> None:
    project.config(CONFIG.replace("hooks.manual", "hooks.pre-commit"))
    project.gitgates("install-hooks")
    project.commit_all("second")
    project.git("commit", "-q", "--allow-empty", "-m", "reused", env=BAD)
    done = project.ask(
        "git", "commit", "--allow-empty", "-m", "audited", env={"GITGATES_REUSE": "audit", **BAD}
    )
    assert done.returncode == 1
    assert b"blocked: wrong passes would have been reused: `hidden`" in done.stderr
