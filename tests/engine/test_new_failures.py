"""At commits, pushes and by hand, only failures count that are not at the merge base."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from conftest import Repo
from hook_support import commit as commit_staged

from gitgates.core.agent_types import Payload
from gitgates.core.errors import ConfigError
from gitgates.core.types import Event, GateResult, Hook, Plan, Step, make_gate
from gitgates.engine.findings.baseline import KnownFailures, failures_in, parse_accepted
from gitgates.engine.findings.failures import MOST_FAILURES
from gitgates.git.repo import find_repo
from gitgates.store.proofs import read_all
from gitgates.verbs.approval import new_token

# Each line with BAD is a failure of its own.
CHECK = "echo x >> $COUNT; ! grep -nH BAD *.py"
GATE = f"""
[gates.check]
command = '''{CHECK}'''
failures = 'BAD \\w+'
baseline = true
[hooks.pre-commit]
gates = ["check"]
[hooks.pre-push]
gates = ["check"]
"""
BY_FILE = GATE.replace("baseline = true", 'baseline = "file"')
GIVEN = GATE.replace("-nH BAD *.py", '-nH BAD "$@"').replace(
    "baseline", "pass_files = true\nbaseline"
)
OUTPUTS = Path(__file__).resolve().parents[1] / "outputs"
FILE = ".gitgates-baseline.json"


@pytest.fixture(autouse=True)
def _count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNT", str(tmp_path / "count"))


def runs(repo: Repo) -> int:
    count = repo.path.parent / "count"
    return len(count.read_text().splitlines()) if count.exists() else 0


def begin(repo: Repo, config: str = GATE, **files: str) -> None:
    """Commit a configuration and files on main, and go on on a branch."""
    repo.config(config)
    for name, content in files.items():
        repo.write(f"{name}.py", content)
    repo.commit_all("first")
    repo.shim("pre-commit", "pre-push")
    repo.git("switch", "-qc", "topic")


def base_of(repo: Repo, branch: str = "main") -> str:
    return f"the merge base with {branch} ({repo.git('rev-parse', 'main')[:12]})"


def commit(repo: Repo, **files: str) -> tuple[int, str]:
    """Commit files; return the exit status, and what our hook has printed."""
    for name, content in files.items():
        repo.write(f"{name}.py", content)
    repo.git("add", ".")
    done = commit_staged(repo)
    return done.returncode, done.stderr.decode()


def bypass(repo: Repo, message: str) -> None:
    """Commit everything without our hooks."""
    repo.git("add", ".")
    repo.git("commit", "-q", "--no-verify", "-m", message)


def by_hand(repo: Repo, *args: str) -> tuple[int, str]:
    done = repo.gitgates("run", "pre-commit", *args)
    return done.returncode, done.stdout.decode() + done.stderr.decode()


def result_of(repo: Repo, *args: str) -> dict[str, object]:
    done = repo.gitgates("run", "pre-commit", "--format", "json", *args)
    document: dict[str, object] = json.loads(done.stdout)["results"][0]
    return document


def accept(repo: Repo, *args: str, command: str = "write") -> tuple[int, str]:
    """Run `gitgates baseline` as a person who has approved it."""
    token = new_token(find_repo(str(repo.path), dict(os.environ)), "baseline write")
    more = ("--token", token) if command == "write" else ()
    done = repo.gitgates("baseline", command, *args, *more)
    return done.returncode, done.stdout.decode() + done.stderr.decode()


# the merge base


def test_only_new_failures_refuse_a_commit(repo: Repo) -> None:
    begin(repo, old="BAD old\nBAD older\n")
    status, said = commit(repo, new="good\n")
    assert status == 0
    assert f"check: failed; runs on {base_of(repo)}" in said
    assert "check  accepted  " in said
    assert b"  gated  change\n" in repo.gitgates("verify", "main..HEAD").stdout
    assert f"2 accepted failures at {base_of(repo)}" in said
    assert "gitgates pre-commit: 1 gate with accepted failures only" in said
    assert "BAD" not in said  # its output is of no interest
    status, said = commit(repo, new="BAD new\n")
    assert status == 1
    assert "exit status 1; 1 new failure; 2 accepted failures at the merge base" in said
    assert "  | BAD new\n  full log: " in said
    assert "BAD old" not in said
    assert runs(repo) == 3  # on the base only once


def test_a_moved_line_is_no_new_failure_and_a_second_one_is(repo: Repo) -> None:
    begin(repo, GATE.replace("'BAD ", "'[a-z.]+:\\d+:BAD "), old="BAD old\n")
    assert commit(repo, old="\n\nBAD old\n")[0] == 0
    status, said = commit(repo, old="BAD old\nBAD old\n")
    assert status == 1
    assert "  | old.py:2:BAD old (number 2 of this kind)\n" in said


def test_a_pass_at_the_base_is_not_run_again(repo: Repo) -> None:
    repo.config(GATE)
    repo.shim("pre-commit")
    assert commit(repo, old="good\n")[0] == 0
    repo.git("switch", "-qc", "topic")
    ran = runs(repo)
    status, said = commit(repo, new="BAD new\n")
    assert status == 1
    assert "exit status 1; 1 new failure\n" in said
    assert runs(repo) == ran + 1


def test_gates_after_one_with_accepted_failures_run(repo: Repo) -> None:
    later = '[gates.later]\ncommand = "echo later fails; false"\n'
    begin(repo, later + GATE.replace('["check"]', '["check", "later"]'), old="BAD old\n")
    status, said = commit(repo, new="good\n")
    assert (status, "later fails" in said, "accepted" in said) == (1, True, True)


def test_only_paths_that_were_there_can_have_failed(repo: Repo) -> None:
    begin(repo, GIVEN, old="BAD old\n", other="BAD other\n")
    status, said = commit(repo, new="BAD new\n")
    assert (status, runs(repo)) == (1, 1)
    assert "exit status 1; 1 new failure\n" in said
    repo.write("new.py", "good\n")
    status, said = commit(repo, old="BAD old\n# changed\n")
    assert status == 0
    assert "1 accepted failure at the merge base" in said
    assert runs(repo) == 3
    assert commit(repo, old="BAD old\n# changed again\n")[0] == 0
    assert runs(repo) == 5  # other paths by now: `new.py` is committed
    assert commit(repo, old="BAD old\n# and again\n")[0] == 0
    assert runs(repo) == 6


def test_a_push_is_compared_with_the_default_branch_of_the_remote(repo: Repo) -> None:
    begin(repo, old="BAD old\n")
    repo.git("init", "-q", "--bare", "../origin")
    repo.git("remote", "add", "origin", "../origin")
    repo.git("push", "-q", "--no-verify", "origin", "main")
    repo.write("new.py", "BAD new\n")
    bypass(repo, "bypassed")
    pushed = repo.ask("git", "push", "origin", "topic")
    assert pushed.returncode == 1
    assert f"1 new failure; 1 accepted failure at {base_of(repo, 'origin/main')}" in (
        pushed.stderr.decode()
    )
    repo.write("new.py", "good\n")
    bypass(repo, "fixed")
    repo.write("dirty.py", "BAD dirty\n")  # in the private checkout it is not
    assert repo.ask("git", "push", "origin", "topic").returncode == 0


@pytest.mark.slow
def test_what_a_merge_brings_from_the_default_branch_is_not_new(repo: Repo) -> None:
    begin(repo, f'{GATE}[hooks.pre-merge-commit]\ngates = ["check"]\n', old="BAD old\n")
    repo.shim("pre-merge-commit")
    repo.write("topic.py", "good\n")
    bypass(repo, "topic")
    repo.git("switch", "-q", "main")
    repo.write("later.py", "BAD later\n")
    bypass(repo, "main goes on")
    repo.git("switch", "-q", "topic")
    repo.git("merge", "--no-commit", "main")
    assert by_hand(repo, "--all-files")[0] == 0
    repo.write("topic.py", "BAD topic\n")
    status, said = commit(repo)
    assert (status, f"1 new failure; 2 accepted failures at {base_of(repo)}" in said) == (1, True)
    repo.git("merge", "--abort")
    merged = repo.ask("git", "merge", "-m", "merge", "main")
    assert merged.returncode == 0
    assert f"2 accepted failures at {base_of(repo)}".encode() in merged.stderr


@pytest.mark.slow
def test_in_ci_the_named_commit_is_the_base(repo: Repo) -> None:
    """A push to main: HEAD is the default branch, and tells nothing."""
    begin(repo, old="BAD old\n")
    repo.git("switch", "-q", "main")
    repo.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "same")
    status, said = by_hand(repo, "--all-files")
    assert status == 1
    assert "1 failure; no baseline: this is the content of the merge base with main" in said
    repo.write("new.py", "BAD new\n")
    bypass(repo, "worse")
    status, said = by_hand(repo, "--from-ref", "topic", "--to-ref", "HEAD")
    assert status == 1
    assert "1 new failure; 1 accepted failure at the merge base with topic" in said
    repo.write("new.py", "good\n")
    bypass(repo, "fixed")
    assert by_hand(repo, "--from-ref", "topic")[0] == 0


@pytest.mark.slow
def test_a_shallow_clone_says_that_nothing_is_known(repo: Repo) -> None:
    begin(repo, old="BAD old\n")
    repo.write("new.py", "good\n")
    bypass(repo, "second")
    repo.git("switch", "-q", "main")
    repo.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "main goes on")
    url = repo.path.as_uri()
    repo.git("clone", "-q", "--depth", "1", "--no-single-branch", "-b", "topic", url, "../clone")
    clone = Repo(repo.path.parent / "clone")
    status, said = by_hand(clone, "--all-files")
    assert status == 1
    assert "1 failure; no baseline: HEAD and origin/" in said
    assert "git fetch --unshallow" in said


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("there", "why"),
    [
        ("exit 127", "no baseline: there, it could not be started (command not found)"),
        ("{ echo broken; exit 1; }", "there, no failure is recognised in its output"),
        ("kill -9 $$", "no baseline: there, it was killed by signal 9"),
        ("exec sleep 9", "no baseline: there, it timed out (limit 0.5 s)"),
    ],
)
def test_where_the_base_cannot_be_judged_everything_counts(
    repo: Repo, there: str, why: str
) -> None:
    repo.write(".gitignore", "here-only\n")
    gate = f"test -f here-only || {there}; {CHECK}"
    begin(
        repo, GATE.replace(CHECK, gate).replace("[hooks", "timeout = 0.5\n[hooks", 1), old="BAD\n"
    )
    repo.write("old.py", "BAD old\n")
    bypass(repo, "old")
    repo.git("branch", "-f", "main")
    repo.write("here-only")
    status, said = commit(repo, new="good\n")
    assert status == 1
    assert "exit status 1; 1 failure; no baseline" in said
    assert why in said
    assert "  | old.py:1:BAD old" in said


FAILED = GateResult(gate="g", status="failed", exit_status=1, output=b"BAD old\n")
UNKNOWN: dict[str, GateResult] = {
    "no failure is recognised in its output": FAILED._replace(output=b"broken\n"),
    "it printed nothing": FAILED._replace(output=b""),
    "it ended with exit status 139, as after a crash": FAILED._replace(exit_status=139),
    "it has not looked at everything: `stopping after 1 failures`": FAILED._replace(
        output=b"BAD old\n!!! stopping after 1 failures !!!\n"
    ),
    "it was killed by signal 9": FAILED._replace(status="killed", exit_status=None, signal=9),
    "it timed out (limit 1 s)": FAILED._replace(status="timed-out", reason="limit 1 s"),
    "it could not be started (command not found)": FAILED._replace(
        status="not-started", exit_status=127, reason="command not found"
    ),
}


def test_a_gate_that_crashes_has_no_known_failures() -> None:
    gate = make_gate(name="g", command="x", failures="BAD \\w+")
    assert len(failures_in(gate, FAILED, "/", {})) == 1
    assert [failures_in(gate, result, "/", {}) for result in UNKNOWN.values()] == [*UNKNOWN]


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("now", "why"),
    [
        ("echo BAD old; exit 139", "it ended with exit status 139, as after a crash"),
        ("echo BAD old; kill -9 $$", ""),
        ("echo broken; exit 1", "no failure is recognised in its output"),
        ("exit 1", "it printed nothing"),
        ("echo BAD old; echo '!!! stopping after 1 failures !!!'; exit 1", "it has not looked"),
        ("echo BAD old; exit 127", ""),
    ],
)
def test_a_gate_that_crashes_is_not_covered(repo: Repo, now: str, why: str) -> None:
    """Not even where it has crashed in the same way before, and all of it is accepted."""
    begin(repo, GATE.replace(CHECK, now), old="BAD old\n")
    repo.write(FILE, '{"check 5d1e": "BAD old", "version": 1}\n')
    status, said = commit(repo, new="good\n")
    assert status == 1
    assert "accepted" not in said
    assert (f"no baseline: {why}" if why else "check  ") in said


def test_a_new_warning_beside_known_errors_counts(repo: Repo) -> None:
    """It may be what fails the gate, as with `yamllint --strict`."""
    report = 'cat a.py; ! grep -q "\\[" a.py'
    config = GATE.replace(CHECK, report).replace("'BAD \\w+'", '"yamllint"')
    known = "a.yaml:1:1: [error] too many spaces (colons)\n"
    begin(repo, config, a=known)
    assert commit(repo, b="")[0] == 0
    status, said = commit(repo, a=f"{known}a.yaml:2:1: [warning] no start (document-start)\n")
    assert status == 1
    assert "1 new failure; 1 accepted failure" in said


def test_output_that_is_longer_than_its_log_is_not_covered(repo: Repo) -> None:
    begin(repo, "max_output = 50\nmax_log = 200\n" + GATE, old="BAD old\n" * 20)
    status, said = commit(repo, new="good\n")
    assert status == 1
    assert "no baseline: its output is longer than its log (`max_log`)" in said


def test_many_failures_are_all_compared(repo: Repo) -> None:
    """More than are shown, in an output of which the middle is in the log only."""
    many = "".join(f"BAD old{number}\n" for number in range(MOST_FAILURES + 10))
    begin(repo, "max_output = 1000\n" + GATE, old=many)
    status, said = commit(repo, new="good\n")
    assert status == 0
    assert f"{MOST_FAILURES + 10} accepted failures" in said
    status, said = commit(repo, old=many.replace("old500", "new500"))
    assert status == 1
    assert "  | BAD new500\n" in said


def test_what_passes_only_by_its_baseline_is_no_pass(repo: Repo, tmp_path: Path) -> None:
    reused = GATE.replace("baseline = true", "baseline = true\nreuse = true")
    begin(repo, reused, old="BAD old\n")
    repo.write("new.py", "good\n")
    first, again = result_of(repo), result_of(repo)
    for result in (first, again):
        assert (result["passed"], result["status"], result["verdict"]) == (False, "failed", "allow")
        assert (result["excused"], result["accepted"]) == (True, 1)
        assert result["duration_seconds"]  # it has run: nothing was reused
    assert commit(repo)[0] == 0
    state = find_repo(str(repo.path), dict(os.environ)).shared_state_abs
    # The second: in a commit that it has not blocked.
    assert {proof.status for proof in read_all(state)} == {"failed", "accepted"}
    junit = tmp_path / "junit.xml"
    assert by_hand(repo, "--junit", str(junit), "--from-ref", "main")[0] == 0
    suite = ET.parse(junit).getroot()[0]
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")
    assert "1 accepted failure at" in str(suite[0][0].get("message"))
    assert repo.gitgates("verify", "main..topic").returncode == 0


def test_a_shown_run_counts_what_was_accepted(repo: Repo) -> None:
    begin(repo, old="BAD old\n")
    repo.write("new.py", "BAD new\n")
    result = result_of(repo)
    assert result["accepted"] == 1
    assert result["new_failures"] == ["BAD new"]
    shown = repo.gitgates("runs", "show", "latest").stdout.decode()
    assert "1 new failure; 1 accepted failure at the merge base" in shown


def test_a_gate_that_changes_files_is_not_covered(repo: Repo) -> None:
    fixes = GATE.replace(CHECK, f"echo >> old.py; {CHECK}").replace(
        "baseline", "writes = true\nbaseline"
    )
    begin(repo, fixes, old="BAD old\n")
    status, said = commit(repo, old="BAD old\n# changed\n")
    assert status == 1
    assert "no baseline: it changed files" in said


def test_unstaged_work_neither_counts_nor_is_lost(repo: Repo) -> None:
    begin(repo, old="BAD old\n", other="good\n")
    repo.write("other.py", "BAD unstaged\n")
    repo.write("new.py", "good\n")
    repo.git("add", "new.py")
    done = repo.commit()
    assert done.returncode == 0
    assert b"1 accepted failure at the merge base" in done.stderr
    assert (repo.path / "other.py").read_text() == "BAD unstaged\n"


# the file of accepted failures


def test_accepted_failures_do_not_count(repo: Repo) -> None:
    begin(repo, BY_FILE, old="BAD old\n")
    assert commit(repo, new="good\n")[0] == 1  # nothing is compared with the merge base
    assert accept(repo) == (
        0,
        f"{FILE}: 1 accepted failure (1 added)\ngitgates: check: runs on all files\n",
    )
    status, said = commit(repo)
    assert status == 0
    assert f"1 accepted failure in {FILE}\n" in said
    status, said = commit(repo, new="BAD new\n")
    assert status == 1
    assert f"1 new failure; 1 accepted failure in {FILE}" in said


def test_what_an_agent_sees_before_it_stops_is_not_called_new(repo: Repo) -> None:
    """In its hooks, nothing is compared with the merge base."""
    begin(repo, GATE, old="BAD old\nBAD older\n")
    payload = Payload(host="claude", event="PostToolUse", kind="after-tool")
    gate = make_gate(name="check", command="x", failures="BAD \\w+", baseline=True)
    event = Event(host="claude", name="PostToolUse", root_abs=str(repo.path), payload=payload)
    plan = Plan(event, Hook(name="PostToolUse"), listed=("check",), steps=())
    known = KnownFailures(Step(gate), plan, find_repo(str(repo.path), dict(os.environ)), None)
    output = b"BAD old\nBAD older\n"
    judged = known.judge(GateResult(gate="check", status="failed", exit_status=1, output=output))
    assert (judged.reason, judged.findings.excused, known.is_due) == ("2 failures", "", False)


def test_both_are_counted(repo: Repo) -> None:
    begin(repo, GATE, old="BAD old\n")
    repo.write("new.py", "BAD new\n")
    assert accept(repo)[0] == 0
    lines = (repo.path / FILE).read_text().splitlines(keepends=True)
    (repo.path / FILE).write_text("".join(line for line in lines if "BAD old" not in line))
    status, said = commit(repo)
    assert status == 0
    assert f"2 accepted failures: 1 at {base_of(repo)}, 1 in {FILE}" in said


def test_the_file_only_shrinks(repo: Repo) -> None:
    begin(repo, BY_FILE, old="BAD old\nBAD older\n")
    assert accept(repo)[0] == 0
    before = (repo.path / FILE).read_bytes()
    repo.write("new.py", "BAD new\n")
    repo.git("add", ".")
    status, said = accept(repo)
    assert status == 1
    assert "  check: BAD new\n" in said
    assert "may only shrink; nothing was written" in said
    assert (repo.path / FILE).read_bytes() == before
    bypass(repo, "accepted")
    os.unlink(repo.path / FILE)
    assert accept(repo)[0] == 1  # it is still in HEAD
    assert not (repo.path / FILE).exists()
    repo.git("checkout", "-q", FILE)
    assert accept(repo, "--grow") == (
        0,
        f"{FILE}: 3 accepted failures (1 added)\ngitgates: check: runs on all files\n",
    )
    repo.write("old.py", "BAD older\n")
    assert "2 accepted failures (1 removed)" in accept(repo)[1]


def test_at_a_commit_the_file_counts_as_it_is_committed(repo: Repo) -> None:
    begin(repo, BY_FILE, old="BAD old\n")
    accept(repo)
    repo.git("commit", "-q", "--no-verify", "--allow-empty", "-m", "without it")
    done = repo.commit("untracked", "--allow-empty")
    assert done.returncode == 1
    assert f"1 new failure; {FILE} does not count, as git does not know it".encode() in done.stderr
    bypass(repo, "accepted")
    repo.write("new.py", "BAD new\n")
    repo.git("add", "new.py")
    assert accept(repo, "--grow")[0] == 0
    done = repo.commit()
    assert done.returncode == 1
    assert b"1 new failure; 1 accepted failure in" in done.stderr
    assert commit(repo)[0] == 0


def test_to_accept_needs_a_person(repo: Repo) -> None:
    begin(repo, BY_FILE, old="BAD old\n")
    refused = repo.gitgates("baseline", "write")
    assert refused.returncode == 64
    assert b"`gitgates baseline write` must be run by a person" in refused.stderr
    assert not (repo.path / FILE).exists()


def test_a_gate_without_files_any_more_has_no_failure(repo: Repo) -> None:
    other = '[gates.none]\ncommand = "false"\nfiles = ["*.rs"]\nfailures = "x"\nbaseline = true\n'
    begin(repo, other + BY_FILE.replace("baseline", 'files = ["*.py"]\nbaseline'), old="BAD old\n")
    assert "1 accepted failure (1 added)" in accept(repo)[1]
    repo.git("rm", "-q", "old.py")
    assert accept(repo, "--check", command="prune")[0] == 1
    status, said = accept(repo, command="prune")
    assert (status, "0 accepted failures (1 removed)" in said) == (0, True)


def test_prune_removes_what_is_fixed(repo: Repo) -> None:
    begin(repo, BY_FILE, old="BAD old\nBAD older\n")
    accept(repo)
    repo.write("old.py", "\n\n# moved\nBAD older\n")
    repo.write("new.py", "BAD new\n")
    before = (repo.path / FILE).read_bytes()
    status, said = accept(repo, "--check", command="prune")
    assert (status, "  check: BAD old\n" in said) == (1, True)
    assert (repo.path / FILE).read_bytes() == before
    status, said = accept(repo, command="prune")
    assert (status, "1 accepted failure (1 removed)" in said) == (0, True)
    document = json.loads((repo.path / FILE).read_bytes())
    assert [*document.values()] == ["BAD older", 1]
    assert accept(repo, "--check", command="prune")[0] == 0
    shown = accept(repo, "--format", "json", command="show")[1]
    assert [*json.loads(shown)["gates"]["check"].values()] == ["BAD older"]
    assert accept(repo, command="show")[1] == "check: 1 accepted failure\n  BAD older\n"


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("command", "how"),
    [
        ("prune", "kill -9 $$"),
        ("write", "exit 1"),
        *(("prune", how) for how in ("exit 1", "sleep 9", "nonesuch", "echo x; exit 3")),
        *(("write", how) for how in ("kill -9 $$", "sleep 9", "nonesuch", "echo x; exit 3")),
    ],
)
def test_a_gate_without_failures_leaves_the_file_as_it_is(
    repo: Repo, command: str, how: str
) -> None:
    begin(repo, BY_FILE, old="BAD old\n")
    accept(repo)
    before = (repo.path / FILE).read_bytes()
    repo.config(BY_FILE.replace(CHECK, how).replace("[hooks", "timeout = 0.5\n[hooks", 1))
    status, said = accept(repo, command=command)
    assert status == 1
    assert "check: nothing was written: " in said
    assert (repo.path / FILE).read_bytes() == before


def test_branches_that_fix_different_failures_merge(repo: Repo) -> None:
    begin(repo, BY_FILE, a="BAD a1\nBAD a2\n", b="BAD b1\nBAD b2\nBAD b3\n", c="BAD c\n")
    accept(repo)
    bypass(repo, "accepted")
    repo.git("switch", "-qc", "other")
    for branch, name in (("other", "a"), ("topic", "c")):
        repo.git("switch", "-q", branch)
        repo.write(f"{name}.py", "good\n")
        accept(repo, command="prune")
        bypass(repo, name)
    repo.git("merge", "-q", "--no-verify", "-m", "merge", "other")
    assert [*json.loads((repo.path / FILE).read_bytes())][-1] == "version"
    assert by_hand(repo)[0] == 0


UNREADABLE = {
    b"<<<<<<< HEAD\n": "is not JSON",
    b"\xff": "is not JSON",
    b"[]": 'expected an object with `"version": 1`',
    b'{"version": 2}': "needs a newer gitgates",
    b'{"check": "x", "version": 1}': "got `check`",
    b'{"check 12": 3, "version": 1}': "got `check 12`",
}


def test_what_is_wrong_with_a_file_is_said() -> None:
    for content, why in UNREADABLE.items():
        with pytest.raises(ConfigError) as caught:
            parse_accepted(content)
        assert why in f"{caught.value.message} {caught.value.hint}", content


@pytest.mark.samples(1)
@pytest.mark.parametrize(("content", "why"), UNREADABLE.items())
def test_a_file_that_cannot_be_read_accepts_nothing(repo: Repo, content: bytes, why: str) -> None:
    begin(repo, BY_FILE, old="BAD old\n")
    repo.write(FILE, content)
    status, said = commit(repo, new="good\n")
    assert status == 1
    assert f"no baseline: {FILE}: " in said
    done = repo.gitgates("baseline", "show")
    assert done.returncode == 78
    assert why in done.stderr.decode()


def test_what_cannot_be_done_is_said(repo: Repo) -> None:
    none = BY_FILE.replace('baseline = "file"', "")
    for args, config, why in (
        (("write",), none, "no gate has a baseline"),
        (("write", "nonesuch"), BY_FILE, "no gate `nonesuch`"),
        (("show",), BY_FILE, "there is no .gitgates-baseline.json"),
        (("prune",), BY_FILE, "there is no .gitgates-baseline.json"),
    ):
        repo.config(config)
        done = repo.gitgates("baseline", *args)
        assert (done.returncode, why in done.stderr.decode()) == (64, True), (args, done.stderr)
