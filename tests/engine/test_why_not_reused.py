"""Who has asked for reuse is told why there is none: in the run, and by `gitgates explain`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import Repo
from observed_support import needs_strace
from reuse_support import WHOLE, Checker

pytestmark = needs_strace


@pytest.fixture(name="at")
def _at(repo: Repo, out: Path) -> Checker:
    repo.write("a.txt", "one\n")
    repo.commit_all("first")
    return Checker(repo, out)


WHY = {
    "python3 -c 'import socket; socket.socket().connect_ex((\"127.0.0.1\", 9))'": (
        "connects to localhost:9"
    ),
    "date +%N > x.log; cat x.log > y.log; cat y.log": "",
    "cat x.log; date +%N > x.log": "it changes x.log, which it has read",
    "cat < $OUT/fifo": "it reads {out}/fifo, which is not a file",
    "unshare -Ur true": "creates its own namespaces",
}


@pytest.mark.samples(3)
@pytest.mark.parametrize("command", WHY)
def test_in_the_run(at: Checker, command: str) -> None:
    os.mkfifo(at.out / "fifo")
    gate = WHOLE.changed(command=command)
    for _ in range(2):
        writer = subprocess.Popen(["sh", "-c", f"echo > {at.out}/fifo"])
        assert at.run(gate)[0].status == "passed"
        writer.kill()
        writer.wait()
    why = WHY[command].format(out=at.out)
    said = f"the pass of whole cannot be reused: {why}"
    # What changes may settle: it is said when it has not.
    expected = [said] if why.startswith("it changes") else [said, said]
    assert at.messages.texts == (expected if why else [])


def test_a_gate_that_traces(at: Checker) -> None:
    """Under strace, it could not: it runs again, and is not observed any more for a day."""
    gate = WHOLE.changed(command="echo >> $OUT/log; strace -o /dev/null true")
    for runs in (2, 1):
        assert at.run(gate)[0].status == "passed"
        assert len(at.log()) == runs
    ptrace = "uses ptrace itself, as debuggers and sanitizers do"
    assert at.messages.texts == [
        f"whole: runs again, without strace: {ptrace}",
        f"the pass of whole cannot be reused: {ptrace}",
    ]


CONFIG = """\
[gates.test]
command = "cat *.txt"
reuse = true
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
    never = "never, because of `pass_hook_input`, `metrics` or `git_env`"
    fixed = {"number": never, "plain": None}
    assert explained(repo) == {"test": "no pass yet", "lint": "no pass yet", **fixed}
    assert repo.gitgates("run", "--all-files").returncode == 0
    assert explained(repo) == {"test": "manual", "lint": "2 of 2 files", **fixed}
    assert explained(repo, MODE="x")["test"] == "no: the variable MODE is set now"
    repo.write("b.txt", "3")
    assert explained(repo) == {"test": "no: b.txt changed", "lint": "1 of 2 files", **fixed}
    tools = repo.path.parent / "tools"
    tools.mkdir()
    for name in ("git", "sh", "cat"):
        (tools / name).symlink_to(str(shutil.which(name)))
    no_strace = "impossible: strace is not installed: install the package `strace`"
    assert explained(repo, PATH=str(tools))["test"] == no_strace
    assert explained(repo, GITGATES_REUSE="0")["test"] == "never, because of GITGATES_REUSE=0"


def test_a_gate_that_reads_too_many_files(at: Checker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gitgates.observed.reads._MOST_PATHS", 10)
    for _ in range(2):
        assert at.run(WHOLE)[0].status == "passed"
    why = "reads and writes more than 10 files"
    assert at.messages.texts == [f"the pass of whole cannot be reused: {why}"] * 2
    outputs = at.repo.path / ".git/gitgates/strace"
    monkeypatch.setattr(
        "gitgates.engine.reuse.observing.observed", None
    )  # it is not observed again
    assert at.run(WHOLE)[0].status == "passed"
    assert list(outputs.iterdir()) == []
