"""A ratchet that has nothing to compare with says so, and is no pass; it can measure the base."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from config_support import fatal
from conftest import Repo
from hook_support import commit
from process_support import has_ended, wait_for

GATE = r"""
[gates.test]
command = "echo x >> $COUNT; cat report.txt"
metrics = { coverage = { pattern = 'TOTAL.*?([\d.]+)%', better = "higher" } }
ratchet = true
[hooks.pre-commit]
gates = ["test"]
[hooks.manual]
gates = ["test"]
"""
MEASURE = GATE.replace("ratchet = true", 'ratchet = "measure"')
FROM_NOW_ON = "comparison starts with the next run: "


def report(repo: Repo, percent: str) -> None:
    repo.write("report.txt", f"TOTAL {percent}%\n")


@pytest.fixture(autouse=True)
def _count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))
    return tmp_path / "count"


def runs(repo: Repo) -> int:
    """Return how often the gate has run, in all clones."""
    count = repo.path.parent / "count"
    return len(count.read_text().splitlines()) if count.exists() else 0


def said(repo: Repo) -> tuple[int, str]:
    """Return the exit status of a run, and the line of the gate without its time."""
    done = repo.gitgates("run")
    line = next(one for one in done.stdout.decode().splitlines() if one.startswith("test"))
    return done.returncode, " ".join(word for word in line.split()[1:] if word != "s")


def clone_of(repo: Repo, *options: str) -> Repo:
    """Return a clone, which has no state of ours, with lower coverage."""
    repo.git("clone", "-q", *options, repo.path.as_uri(), "../clone")
    clone = Repo(repo.path.parent / "clone")
    clone.shim("pre-commit")
    report(clone, "50")
    return clone


@pytest.fixture(name="gated")
def _gated(repo: Repo) -> Repo:
    """Return a repository whose only commit has a coverage of 80 %, which was measured."""
    repo.config(GATE)
    repo.shim("pre-commit")
    report(repo, "80")
    repo.git("add", ".")
    assert commit(repo, "first").returncode == 0
    return repo


def base_of(repo: Repo, branch: str = "origin/HEAD") -> str:
    return f"the merge base with {branch} ({repo.git('rev-parse', 'HEAD')[:12]})"


def test_a_fresh_clone_compares_nothing_and_says_so(gated: Repo) -> None:
    clone = clone_of(gated)
    why = f"no `coverage` is recorded for {base_of(clone)}"
    status, line = said(clone)
    assert status == 0
    assert line.startswith("unchecked ")
    assert line.endswith(f'nothing was compared: {why}; `ratchet = "measure"` measures it')
    shown = clone.gitgates("runs", "show", "latest", "--format", "json").stdout
    result = json.loads(shown)["quality_gates"]["attempts"][0]["results"][0]
    assert (result["passed"], result["status"]) == (False, "unchecked")
    assert result["metrics"] == {"coverage": 50}
    clone.git("add", ".")
    done = commit(clone, "worse")
    assert done.returncode == 0
    assert f"passed with a warning: gate `test` compared nothing ({why}".encode() in done.stderr
    assert b"nothing was checked" in clone.gitgates("verify", "HEAD~..HEAD").stdout


@pytest.mark.slow
def test_the_base_is_measured_once_where_nothing_is_recorded(gated: Repo) -> None:
    gated.config(MEASURE)
    gated.git("add", ".")
    assert commit(gated, "measure").returncode == 0
    gated.write("report.txt", "TOTAL 1%")  # of the other clone: nobody looks at it
    clone = clone_of(gated)
    clone.write("untracked", "mine")
    before, ran = clone.git("status", "--porcelain"), runs(gated)
    status, line = said(clone)
    assert status == 1
    assert line.endswith(f"`coverage` is 50, and was 80 at {base_of(clone)}")
    assert runs(gated) == ran + 2
    assert clone.git("status", "--porcelain") == before
    report(clone, "81")
    assert said(clone)[0] == 0
    assert runs(gated) == ran + 3
    report(clone, "79")
    clone.git("add", ".")
    assert b"was 80 at the merge base" in commit(clone, "worse").stderr


@pytest.mark.thorough
@pytest.mark.slow
def test_a_base_that_has_no_number_when_measured_is_nothing_to_fall_behind(gated: Repo) -> None:
    gated.config(MEASURE)
    gated.git("rm", "-qf", "report.txt")
    gated.write("report.txt", "no number\n")
    gated.git("add", ".")
    gated.git("commit", "-qm", "none", "--no-verify")
    clone = clone_of(gated)
    for more in (2, 1):
        ran = runs(gated)
        status, line = said(clone)
        assert status == 0
        assert line.startswith("passed ")
        assert line.endswith(f"{FROM_NOW_ON}{base_of(clone)} has no `coverage` yet")
        assert runs(gated) == ran + more  # measured once
    clone.config(MEASURE.replace("TOTAL.*?", "(?:TOTAL|no) .*?"))
    ran = runs(gated)
    assert said(clone)[0] == 0
    assert runs(gated) == ran + 2  # another definition might find it


@pytest.mark.samples(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("test -e new && cat report.txt || exec sleep 60", "timed out (limit 1 s)"),
        ("./run", "could not be started (command not found: ./run)"),
    ],
)
def test_a_base_that_cannot_be_measured_is_no_pass(gated: Repo, command: str, why: str) -> None:
    config = MEASURE.replace("echo x >> $COUNT; cat report.txt", command)
    config = config.replace("ratchet", "timeout = 1\nratchet")
    gated.config(config)
    gated.git("commit", "-qam", "another command", "--no-verify")
    clone = clone_of(gated)
    clone.write("new")
    clone.write("run", "cat report.txt").chmod(0o755)
    status, line = said(clone)
    assert status == 0
    assert line.startswith("unchecked ")
    assert line.endswith(f"nothing was compared: at {base_of(clone)}, it {why}")


@pytest.mark.thorough
@pytest.mark.slow
def test_interrupted_while_it_measures_the_base_nothing_is_left(gated: Repo) -> None:
    command = "test -e new && cat report.txt || { echo $$ > $COUNT; exec sleep 60; }"
    gated.config(MEASURE.replace("echo x >> $COUNT; cat report.txt", command))
    gated.git("commit", "-qam", "another command", "--no-verify")
    clone = clone_of(gated)
    clone.write("new")
    count = Path(os.environ["COUNT"])
    count.unlink()
    program = [sys.executable, "-m", "gitgates", "run"]
    process = subprocess.Popen(program, cwd=clone.path, stdout=subprocess.PIPE, stderr=-2)
    wait_for(count, process)
    process.send_signal(signal.SIGTERM)
    output, _error = process.communicate(timeout=30)
    assert process.returncode == 130, output
    assert has_ended(int(count.read_text() or 0))
    clone.write("report.txt", "TOTAL 90%\n")
    assert clone.gitgates("run", env={"GITGATES_SKIP": "test"}).returncode == 0


def test_the_first_commit_and_a_gate_that_is_new_are_compared_from_now_on(repo: Repo) -> None:
    repo.config(GATE)
    repo.shim("pre-commit")
    report(repo, "80")
    repo.git("add", ".")
    assert f"{FROM_NOW_ON}no earlier commit found" in commit(repo).stderr.decode()
    name = base_of(repo, "main")
    lines = """, lines = { pattern = '(9)', better = "higher" } }\n"""
    repo.config(GATE.replace(" }\nratchet", f"{lines}ratchet"))
    report(repo, "89")
    repo.git("add", ".")
    said = commit(repo).stderr.decode()
    assert "1 gate passed" in said
    assert f"{FROM_NOW_ON}{name} does not ask for `lines`" in said


@pytest.mark.slow
def test_without_a_merge_base_nothing_is_compared(gated: Repo) -> None:
    report(gated, "81")
    gated.git("commit", "-qam", "second", "--no-verify")
    gated.git("branch", "work", "HEAD~")
    clone = clone_of(gated, "--depth=1", "--no-single-branch")
    clone.git("switch", "-qf", "work")
    report(clone, "50")
    why = "HEAD and origin/HEAD have no common commit here"
    assert said(clone)[1].endswith(f"{why}; in a shallow clone: git fetch --unshallow")
    clone.git("switch", "-qfc", "trunk")
    clone.git("remote", "remove", "origin")
    clone.git("branch", "-qD", "main", "work")
    report(clone, "50")
    assert said(clone)[1].endswith("compared: no default branch found: main, master")


def test_a_tolerance_is_absolute_and_in_the_unit_of_the_number(gated: Repo) -> None:
    config = GATE.replace("ratchet = true", "ratchet = true\ntolerance = 0.5")
    gated.config(config)
    gated.git("switch", "-qc", "work")
    for percent, status in (("79.5", 0), ("79.4", 1)):
        report(gated, percent)
        assert said(gated)[0] == status
    gated.config(config.replace("higher", "lower"))
    for percent, status in (("80.5", 0), ("80.6", 1)):
        report(gated, percent)
        assert said(gated)[0] == status


def test_a_number_at_its_tolerance_passes_however_floats_are_rounded(gated: Repo) -> None:
    assert 80 - 79.6 > 0.4
    gated.config(GATE.replace("ratchet = true", "ratchet = true\ntolerance = 0.4"))
    gated.git("switch", "-qc", "work")
    report(gated, "79.6")
    assert said(gated)[0] == 0


def test_settings_that_make_no_sense() -> None:
    gate = GATE.split("[hooks", maxsplit=1)[0]
    assert fatal(gate.replace("ratchet = true", "ratchet = 'always'")) == (
        'gitgates.toml: gates.test.ratchet: got "always", expected true, false or "measure"'
    )
    assert fatal(gate.replace("ratchet = true", "tolerance = 1")) == (
        "gitgates.toml: gates.test.tolerance: requires `ratchet`"
    )
