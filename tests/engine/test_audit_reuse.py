"""`gitgates run --audit-reuse` finds wrong declarations, and nothing else."""

from __future__ import annotations

import json

import pytest
from conftest import Repo

pytestmark = pytest.mark.slow

CONFIG = """\
[gates.narrow]
command = "! grep -q BAD src lib -r"
reuse = true
inputs = ["src/"]
on_fail = "CONTINUE"
[gates.variable]
command = "! env | grep -qx MODE=bad"
reuse = true
on_fail = "CONTINUE"
[gates.ignored]
command = "! grep BAD x.log"
reuse = true
on_fail = "CONTINUE"
[gates.fixer]
command = "cmp -s lib/b src/b || cp lib/b src/b"
writes = true
reuse = true
inputs = ["src/"]
[gates.right]
command = "! grep -q BAD src -r"
reuse = true
inputs = ["src/"]
[hooks.manual]
gates = ["fixer", "narrow", "variable", "ignored", "right"]
strategy = "collect"
"""


@pytest.fixture(name="project")
def _project(repo: Repo) -> Repo:
    repo.config(CONFIG)
    repo.write(".gitignore", "*.log\n")
    for name in ("src/a", "src/b", "lib/a", "lib/b", "x.log"):
        repo.write(name, "good\n")
    repo.commit_all("first")
    done = repo.gitgates("run", "--audit-reuse")
    assert done.returncode == 0
    assert b"gitgates: nothing was compared: no pass would have been reused\n" in done.stdout
    done = repo.gitgates("run", "--audit-reuse")
    assert done.returncode == 0
    text = b"gitgates: no difference: 5 gates would have been reused, and passed again\n"
    assert text in done.stdout
    return repo


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("name", "gate", "how"),
    [
        ("lib/a", "narrow", "failed (exit status 1)"),
        ("", "variable", "failed (exit status 1)"),
        ("x.log", "ignored", "failed (exit status 1)"),
    ],
)
def test_a_wrong_declaration(project: Repo, name: str, gate: str, how: str) -> None:
    env = {} if name else {"MODE": "bad"}
    if name:
        project.write(name, "BAD\n")
    assert project.gitgates("run", gate, env=env).returncode == 0  # the pass is reused, or ignored
    done = project.gitgates("run", "--audit-reuse", env=env)
    assert done.returncode == 1
    lines = done.stdout.decode().splitlines()
    note = f"gitgates: gate `{gate}` {how}; its pass would have been reused "
    notes = [line.partition("(manual, ")[0] for line in lines if "reused (" in line]
    assert notes == [note]
    assert lines[-1] == f"gitgates manual: blocked: wrong passes would have been reused: `{gate}`"


@pytest.mark.samples(1)
@pytest.mark.parametrize("fmt", ["jsonl", "json"])
def test_as_json(project: Repo, fmt: str) -> None:
    project.write("x.log", "BAD\n")
    done = project.gitgates("run", "--audit-reuse", "--format", fmt)
    document = json.loads(done.stdout if fmt == "json" else done.stdout.splitlines()[-1])
    assert (done.returncode, document["exit_status"], document["verdict"]) == (1, 1, "blocked")
    assert document["notes"][0].startswith("gate `ignored` failed (exit status 1); its pass would")
    project.write("x.log", "good\n")
    done = project.gitgates("run", "--audit-reuse", "--format", fmt)
    document = json.loads(done.stdout if fmt == "json" else done.stdout.splitlines()[-1])
    assert (done.returncode, document["exit_status"]) == (0, 0)
    assert document["notes"][0].startswith("no difference: 5 gates ")


def test_a_fixer_that_changes_files(project: Repo) -> None:
    project.write("lib/b", "other\n")
    done = project.gitgates("run", "fixer", "--audit-reuse")
    assert done.returncode == 1
    assert b"gate `fixer` changed 1 file: src/b; its pass would have been reused" in done.stdout


def test_in_a_hook_of_git(project: Repo) -> None:
    project.config(CONFIG.replace("hooks.manual", "hooks.pre-commit"))
    project.gitgates("install-hooks")
    project.commit_all("second")
    project.write("x.log", "BAD\n")
    project.git("commit", "-q", "--allow-empty", "-m", "reused")
    env = {"GITGATES_REUSE": "audit"}
    done = project.ask("git", "commit", "--allow-empty", "-m", "audited", env=env)
    assert done.returncode == 1
    assert b"blocked: wrong passes would have been reused: `ignored`" in done.stderr
