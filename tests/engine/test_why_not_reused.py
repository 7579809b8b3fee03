"""Who has asked for reuse is told why there is none: in the run, and by `gitgates explain`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from conftest import Repo
from reuse_support import BY_FILE, WHOLE, Checker


@pytest.fixture(name="at")
def _at(repo: Repo, out: Path) -> Checker:
    repo.write("a.txt", "one\n")
    repo.commit_all("first")
    return Checker(repo, out)


@pytest.mark.parametrize(
    ("meanwhile", "said"),
    [
        ("echo > .coverage", ".coverage changed while it ran"),
        ("touch a.txt", "a.txt changed while it ran"),
        ("rm a.txt; mkdir x; touch x/1 x/2", "a.txt, x/1, x/2 changed while it ran"),
        ('touch "$OUT/../bin/probe"', "its programs, packages or variables changed while it ran"),
        ("git init -q x; touch x/y", "`x/` is a repository of its own"),
    ],
)
def test_what_changed_while_a_gate_ran(at: Checker, meanwhile: str, said: str) -> None:
    assert at.run(WHOLE, MEANWHILE=meanwhile)[0].status == "passed"
    how = "cannot be reused" if "own" in said else "was not recorded for reuse"
    if "own" in said:
        at.run(WHOLE)
    assert at.messages.texts == [f"the pass of whole {how}: {said}"]


def test_a_file_that_appears_beside_those_that_pass(at: Checker) -> None:
    """Linters of imports look at which files there are."""
    at.tool("probe-files", '#!/bin/sh\necho "$*" >> "$OUT/log"\n[ ! "$NEW" ] || touch new.txt\n')
    assert at.one(BY_FILE, paths=("a.txt",), NEW="1") == "passed"
    assert at.messages.texts == [
        "the pass of by-file was not recorded for reuse: new.txt changed while it ran"
    ]
    (at.repo.path / "new.txt").unlink()
    results = [at.run(BY_FILE, paths=("a.txt",))[0] for _ in range(2)]
    assert [result.reused for result in results] == ["", "1 of 1 files"]


def test_a_program_that_cannot_be_told(at: Checker) -> None:
    at.tool("uv", "#!/bin/sh\n")
    at.run(WHOLE._replace(command="uv run pytest"))
    assert at.messages.texts == [
        (
            "the pass of whole cannot be reused: what a launcher of Python starts is in no "
            "environment of the project"
        )
    ]
    at.tool("npx", "#!/bin/sh\n")
    known = WHOLE._replace(command="npx eslint .")
    assert at.run(known)[0].status == "passed"
    assert len(at.messages.texts) == 1  # nobody asked


CONFIG = """\
[gates.test]
command = "cat *.txt"
reuse = true
env_inputs = ["MODE"]
[gates.lint]
command = "cat"
files = ["*.txt"]
pass_files = true
reuse = "by-file"
[gates.number]
command = "echo 1"
reuse = true
metrics = { n = { pattern = '([0-9]+)', better = "higher" } }
[gates.plain]
command = "true"
[hooks.manual]
gates = ["test", "lint", "number", "plain"]
"""


def explained(repo: Repo, **env: str) -> dict[str, str | None]:
    """Return gate → what `gitgates explain` says of its reuse."""
    done = repo.gitgates("explain", "manual", "--all-files", "--format", "json", env=env)
    gates = json.loads(done.stdout)["gates"]
    return {
        gate["name"]: gate["reuse"] and re.sub(", [0-9]+ s ago", "", gate["reuse"])
        for gate in gates
    }


@pytest.mark.slow
def test_explain(repo: Repo) -> None:
    repo.config(CONFIG)
    repo.write("a.txt", "1")
    repo.write("b.txt", "2")
    repo.commit_all("first")
    none = "no pass yet with these files"
    never = "never, because of `pass_hook_input`, `metrics` or `git_env`"
    fixed = {"number": never, "plain": None}
    assert explained(repo) == {"test": none, "lint": none, **fixed}
    assert repo.gitgates("run", "--all-files").returncode == 0
    assert explained(repo) == {"test": "manual", "lint": "2 of 2 files", **fixed}
    other = "no, it passed with another command, program, package or variable"
    assert explained(repo, MODE="x")["test"] == other
    repo.write("b.txt", "3")
    assert explained(repo) == {"test": none, "lint": "1 of 2 files", **fixed}
    repo.git("init", "-q", "inner")
    repo.write("inner/x", "")
    assert explained(repo)["test"] == "impossible: `inner/` is a repository of its own"
    assert explained(repo, GITGATES_REUSE="0")["test"] == "never, because of GITGATES_REUSE=0"
