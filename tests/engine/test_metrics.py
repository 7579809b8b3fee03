"""Numbers in the output of gates: read, recorded for the content measured, held by a ratchet."""

from __future__ import annotations

import json
import sys

import pytest
from config_support import read
from conftest import Repo
from hook_support import commit

from gitgates.core.types import make_gate
from gitgates.engine.findings.metrics import find_numbers
from gitgates.store.proofs import append, read_all

COVERAGE = r"""
[gates.test]
command = "cat report.txt"
metrics = { coverage = { pattern = 'TOTAL.*?([\d.]+)%', better = "higher" } }
[hooks.pre-commit]
gates = ["test"]
[hooks.pre-push]
gates = ["test"]
[hooks.manual]
gates = ["test"]
"""
LOADED = """
import atexit, sys
from gitgates.__main__ import main
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
main()
"""
RATCHET = COVERAGE.replace("metrics", "ratchet = true\nmetrics")


def report(repo: Repo, percent: str) -> None:
    repo.write("report.txt", f"a.py 10%\nTOTAL 120 lines {percent}%\n")


def measured(repo: Repo) -> list[tuple[float, str, str]]:
    """Return number, commit and tree of all that is recorded, oldest first."""
    proofs = sorted(read_all(str(repo.path / ".git/gitgates")), key=lambda proof: proof.time_s)
    found = [proof for proof in proofs if proof.numbers]
    return [(proof.numbers["coverage"], proof.base, proof.content) for proof in found]


@pytest.fixture
def ratchet(repo: Repo) -> Repo:
    """Return a repository in which 80 % was measured for the only commit of main."""
    repo.config(RATCHET)
    repo.shim("pre-commit", "pre-push")
    report(repo, "80")
    repo.git("add", ".")
    assert commit(repo, "first").returncode == 0
    assert measured(repo) == [(80, "", repo.git("rev-parse", "HEAD^{tree}"))]
    return repo


# What is configured


WRONG = [
    ("7", "", "got 7, expected a table of `pattern` and `better`. Try metrics = { coverage"),
    ("{ pattern = '(x)' }", "", 'got { pattern = "(x)" }, expected a table of `pattern` and'),
    ("{ pattern = '(x)', better = 'more' }", ".better", 'got "more", expected higher or lower'),
    (
        "{ pattern = '(', better = 'lower' }",
        ".pattern",
        (
            'got "(", expected a regular expression with one group, which is the number. '
            "Python says: missing ), unterminated subpattern at position 0."
        ),
    ),
    (
        "{ pattern = 'x', better = 'lower' }",
        ".pattern",
        (
            'got "x", expected a regular expression with one group, which is the number. '
            "It has 0 groups; use (?:…) for the others."
        ),
    ),
    ("{ pattern = '(a)(b)', better = 'lower' }", ".pattern", 'got "(a)(b)", expected a regul'),
    ("{ pattern = 5, better = 'lower' }", ".pattern", "got 5, expected a regular expression w"),
]


def test_a_mistake_is_named_with_its_place() -> None:
    for metric, place, message in WRONG:
        _config, said, _deferred = read(f"[gates.g]\ncommand = 'x'\nmetrics.cover = {metric}\n")
        expected = f"gitgates.toml: gates.g.metrics.cover{place}: {message}"
        assert said.startswith(expected), (metric, said)


def test_a_ratchet_without_numbers_is_a_mistake() -> None:
    _config, said, _deferred = read("[gates.g]\ncommand = 'x'\nratchet = true\n")
    assert said == ("gitgates.toml: gates.g.ratchet: requires `metrics`")


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("output", "found"),
    [
        (b"TOTAL 10%\nTOTAL 92.5%\nother 7%\n", {"n": 92.5}),
        (b"TOTAL 92%\nTOTAL ...%\n", {"n": 92}),  # the second is no number
        (b"\x1b[32mTOTAL\x1b[0m \x1b[1m3%\x1b[0m\n", {"n": 3}),
        (b"none here\n", {}),
        (b"TOTAL " + b"9" * 400 + b"%\n", {}),
    ],
)
def test_the_last_match_that_is_a_number_counts(output: bytes, found: dict[str, float]) -> None:
    gate = make_gate(name="g", metrics=(("n", r"^TOTAL ([\d.]+)%", "higher"),))
    assert find_numbers(gate, output) == found


# What is recorded, and for which content


@pytest.mark.slow
def test_before_a_commit_it_is_the_tree_being_committed(repo: Repo) -> None:
    repo.config(COVERAGE)
    repo.shim("pre-commit")
    report(repo, "80")
    repo.git("add", ".")
    assert commit(repo, "first").returncode == 0
    first = repo.head()
    report(repo, "85")
    repo.git("add", ".")
    repo.write("report.txt", "TOTAL 10%\n")  # hidden, and not a part of it
    repo.write("untracked", "")
    index = (repo.path / ".git/index").stat().st_ino
    assert repo.commit("second").returncode == 0
    assert (repo.path / "report.txt").read_text() == "TOTAL 10%\n"
    assert (repo.path / ".git/index").stat().st_ino != index
    assert repo.commit("third", "-a").returncode == 0  # from another index than the usual one
    trees = [repo.git("rev-parse", f"HEAD~{n}^{{tree}}") for n in (2, 1, 0)]
    second = repo.git("rev-parse", "HEAD~1")
    expected = [(80, "", trees[0]), (85, first, trees[1]), (10, second, trees[2])]
    assert measured(repo) == expected
    assert not list((repo.path / ".git/gitgates").glob("*.index"))


@pytest.mark.slow
def test_by_hand_it_is_what_the_working_tree_holds(repo: Repo) -> None:
    repo.config(COVERAGE)
    report(repo, "80.5")
    repo.commit_all("first")
    assert repo.gitgates("run", "manual").returncode == 0
    report(repo, "81")
    assert repo.gitgates("run", "manual").returncode == 0
    repo.commit_all("second")
    trees = [repo.git("rev-parse", f"{name}^{{tree}}") for name in ("HEAD~1", "HEAD")]
    first = repo.git("rev-parse", "HEAD~1")
    assert measured(repo) == [(80.5, first, trees[0]), (81, first, trees[1])]


@pytest.mark.slow
def test_before_a_push_it_is_the_pushed_commit(repo: Repo) -> None:
    repo.config(COVERAGE)
    report(repo, "80")
    repo.commit_all("first")
    repo.add_origin()
    repo.shim("pre-push")
    report(repo, "81")
    repo.commit_all("second")
    report(repo, "10")  # neither committed nor pushed
    assert repo.ask("git", "push", "-q", "origin", "main").returncode == 0
    assert measured(repo) == [(81, repo.head(), repo.git("rev-parse", "HEAD^{tree}"))]


def test_a_run_shows_them(repo: Repo) -> None:
    repo.config(COVERAGE)
    report(repo, "80")
    repo.commit_all("first")
    repo.gitgates("run", "manual")
    shown = repo.gitgates("runs", "show", "latest").stdout.decode()
    assert "| test | ✅ Pass (coverage 80) |" in shown
    document = json.loads(repo.gitgates("runs", "show", "latest", "--format", "json").stdout)
    assert document["quality_gates"]["attempts"][0]["results"][0]["metrics"] == {"coverage": 80}


def test_what_cannot_be_recorded_is_said_and_changes_no_verdict(repo: Repo) -> None:
    repo.config(COVERAGE)
    report(repo, "80")
    repo.commit_all("first")
    (repo.path / ".git/gitgates").mkdir()
    (repo.path / ".git/gitgates/proofs").write_text("in the way")
    done = repo.gitgates("run", "manual")
    assert done.returncode == 0
    assert b"the metrics of test were not recorded: Not a directory" in done.stdout + done.stderr


# The ratchet


def test_a_number_that_got_worse_fails_the_gate(ratchet: Repo) -> None:
    base = ratchet.head()
    ratchet.git("switch", "-qc", "work")
    report(ratchet, "79.5")
    ratchet.git("add", ".")
    done = commit(ratchet, "worse")
    assert done.returncode == 1
    where = f"at the merge base with main ({base[:12]})"
    assert f"`coverage` is 79.5, and was 80 {where}".encode() in done.stderr
    assert measured(ratchet)[-1][0] == 79.5
    report(ratchet, "80.1")
    ratchet.git("add", ".")
    assert commit(ratchet, "better").returncode == 0


@pytest.mark.slow
def test_it_is_compared_with_the_merge_base_and_not_with_the_last_commit(ratchet: Repo) -> None:
    ratchet.git("switch", "-qc", "work")
    for percent in ("90", "85"):  # worse than before, and still better than main
        report(ratchet, percent)
        ratchet.git("add", ".")
        assert commit(ratchet, percent).returncode == 0
    ratchet.git("switch", "-q", "main")
    ratchet.git("merge", "-q", "work")  # no hook: its tree was measured on the branch
    report(ratchet, "84")
    ratchet.git("add", ".")
    assert b"is 84, and was 85 at the merge base with main" in commit(ratchet, "worse").stderr


@pytest.mark.slow
def test_lower_may_be_better(repo: Repo) -> None:
    repo.config(RATCHET.replace("higher", "lower"))
    repo.shim("pre-commit")
    for percent, status in (("8", 0), ("9", 1), ("7.5", 0)):
        report(repo, percent)
        repo.git("add", ".")
        assert commit(repo, percent).returncode == status


def test_a_number_that_is_gone_fails_the_gate(ratchet: Repo) -> None:
    ratchet.write("report.txt", "no tests ran\n")
    ratchet.git("add", ".")
    done = commit(ratchet, "hide it")
    assert done.returncode == 1
    assert b"`coverage` is not in its output, and was 80 at the merge base with main" in done.stderr


def test_where_there_is_no_earlier_number_it_only_records(repo: Repo) -> None:
    report(repo, "80")
    repo.commit_all("before the gate")
    repo.config(RATCHET)
    repo.shim("pre-commit")
    report(repo, "10")
    repo.git("add", ".")
    assert commit(repo, "second").returncode == 0
    assert [number for number, _commit, _tree in measured(repo)] == [10]


def test_the_same_content_is_compared_with_nothing(ratchet: Repo) -> None:
    (proof,) = (one for one in read_all(str(ratchet.path / ".git/gitgates")) if one.numbers)
    append(str(ratchet.path / ".git/gitgates"), [proof._replace(numbers={"coverage": 99})])
    assert ratchet.gitgates("run", "manual").returncode == 0


@pytest.mark.slow
def test_the_remotes_default_branch_comes_first(ratchet: Repo) -> None:
    ratchet.add_origin()
    ratchet.git("remote", "set-head", "origin", "main")
    report(ratchet, "90")
    ratchet.git("add", ".")
    assert commit(ratchet, "better").returncode == 0
    report(ratchet, "85")
    ratchet.git("add", ".")
    assert commit(ratchet, "worse than main, better than what is pushed").returncode == 0
    report(ratchet, "79")
    ratchet.git("add", ".")
    done = commit(ratchet, "worse")
    assert b"is 79, and was 80 at the merge base with origin/HEAD" in done.stderr
    ratchet.git("commit", "--no-verify", "-qm", "all the same")
    pushed = ratchet.ask("git", "push", "-q", "origin", "main")
    assert pushed.returncode != 0
    assert b"is 79, and was 80 at the merge base with origin/HEAD" in pushed.stderr


def test_a_default_branch_of_another_name(repo: Repo) -> None:
    repo.git("switch", "-qc", "trunk")
    repo.git("config", "init.defaultBranch", "trunk")
    repo.config(RATCHET)
    repo.shim("pre-commit")
    report(repo, "80")
    repo.git("add", ".")
    assert commit(repo, "first").returncode == 0
    repo.git("switch", "-qc", "work")
    report(repo, "70")
    repo.git("add", ".")
    assert b"and was 80 at the merge base with trunk (" in commit(repo, "worse").stderr


def test_content_that_cannot_be_told_fails_the_ratchet_alone(ratchet: Repo) -> None:
    lock = ratchet.path / ".git/gitgates/files.lock"
    lock.mkdir()
    done = ratchet.gitgates("run", "manual")
    assert done.returncode == 1
    assert b"its metrics cannot be compared: " in done.stdout + done.stderr
    assert b"files cannot be saved: Is a directory" in done.stdout + done.stderr
    ratchet.config(COVERAGE)
    assert ratchet.gitgates("run", "manual").returncode == 0


@pytest.mark.slow
def test_gates_without_numbers_load_nothing_of_this(repo: Repo) -> None:
    for config, loads in ((COVERAGE, True), ("[gates.a]\ncommand = 'true'\n", False)):
        repo.config(f"{config}[hooks.pre-merge-commit]\ngates = ['{'test' if loads else 'a'}']\n")
        repo.commit_all("settings")
        done = repo.ask(sys.executable, "-c", LOADED, "run", "pre-merge-commit", "--all-files")
        assert (b"gitgates.engine.findings.metrics" in done.stderr.split()) is loads


@pytest.mark.slow
def test_what_a_headless_run_measures_is_what_it_commits(ratchet: Repo) -> None:
    ratchet.config(f"{RATCHET}[hooks.headless]\ngates = ['test']\nmax_retries = 1\n")
    ratchet.git("commit", "-qam", "settings")
    agent = ratchet.path.parent / "agent.sh"
    agent.write_text(
        "grep -q 'was 80' && echo TOTAL 83% > report.txt || { echo TOTAL 79% > report.txt; }\n"
    )
    ratchet.git("switch", "-qc", "work")
    done = ratchet.gitgates("headless", "--agent-command", f"sh {agent}", "mend it")
    assert done.returncode == 0, done.stderr
    assert b"test: coverage" in next(ratchet.path.rglob("report.html")).read_bytes()
    tree = ratchet.git("rev-parse", "HEAD^{tree}")
    found = [(number, tree) for number, _commit, tree in measured(ratchet)]
    assert found[-3][0] == 79
    assert found[-2:] == [(83, tree), (83, tree)]  # of the hook headless, and of pre-commit
