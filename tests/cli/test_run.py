"""`gitgates run`: what it runs, on which paths, what it prints, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from conftest import SRC, Repo, timeless
from process_support import has_ended

from gitgates.store.runs import log_abs

ECHO = "[gates.echo]\ncommand = 'printf \"%s\\n\" \"$@\"'\npass_files = true\nfiles = ['*.txt']\n"


@pytest.fixture
def echo(repo: Repo) -> Repo:
    """A repository whose gate prints the paths that it gets; a.txt and sub/b.txt are committed."""
    repo.config(ECHO + "[hooks.manual]\ngates = ['echo']\n")
    repo.write("a.txt", "a\n")
    repo.write("sub/b.txt", "b\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "base")
    return repo


def paths(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """Return what the echo gate was given, from a run with `-v`."""
    lines = done.stdout.decode("utf-8", "surrogateescape").splitlines()
    return [line.removeprefix("  | ") for line in lines if line.startswith("  | ")]


def test_the_default_is_what_changed_staged_or_not_tracked_or_not(echo: Repo) -> None:
    echo.write("a.txt", "changed")
    echo.write("staged.txt")
    echo.git("add", "staged.txt")
    echo.write("new.txt")
    assert paths(echo.gitgates("run", "-v")) == ["a.txt", "new.txt", "staged.txt"]


@pytest.mark.parametrize("remove", ["rm", "git rm -q"])
def test_what_is_deleted_matches_gates_that_are_given_no_paths(repo: Repo, remove: str) -> None:
    repo.config(
        "[gates.types]\ncommand = 'test -e b.py'\nfiles = ['*.py']\n"
        "[hooks.manual]\ngates = ['types']\n"
    )
    repo.write("b.py")
    repo.commit_all("base")
    repo.ask("sh", "-c", f"{remove} b.py")
    assert repo.gitgates("run").returncode == 1
    shown = repo.gitgates("explain", "manual").stdout.decode()
    assert "on 1 deleted path: b.py\n\n1. types: runs: deleted paths match\n" in shown


def test_before_the_first_commit_everything_has_changed(repo: Repo) -> None:
    repo.config(ECHO + "[hooks.manual]\ngates = ['echo']\n")
    repo.write("a.txt", "a\n")
    assert paths(repo.gitgates("run", "-v")) == ["a.txt"]


CHOSEN = [
    (["--all-files"], ["a.txt", "sub/b.txt"]),
    (["--files", "a.txt"], ["a.txt"]),
    (["--files", "a.txt", "sub/b.txt", "-v"], ["a.txt", "sub/b.txt"]),
    (["--files", "sub"], ["sub/b.txt"]),
    (["--files", "."], ["a.txt", "new.txt", "sub/b.txt"]),
    (["--files=a.txt", "--files=./sub/../a.txt"], ["a.txt"]),
    (["--glob", "*.txt"], ["a.txt", "new.txt", "sub/b.txt"]),
    (["--glob", "sub/*.txt", "--glob", "/a.*"], ["a.txt", "sub/b.txt"]),
    (["--glob", "*.txt", "--glob", "!new.txt"], ["a.txt", "sub/b.txt"]),
    (["--from-ref", "HEAD~1", "--to-ref", "HEAD"], ["sub/b.txt"]),
    (["--from-ref", "HEAD~1"], ["sub/b.txt"]),
]


def test_options_that_choose_paths(echo: Repo) -> None:
    echo.write("sub/b.txt", "b2\n")
    echo.git("commit", "-qam", "second")
    echo.write("new.txt", "x")
    found = [(args, paths(echo.gitgates("run", "-v", *args))) for args, _paths in CHOSEN]
    assert found == CHOSEN


def test_a_range_is_what_the_branch_changes(echo: Repo) -> None:
    echo.git("checkout", "-qb", "topic")
    echo.write("topic.txt", "x")
    echo.commit_all("topic")
    echo.git("checkout", "-q", "main")
    echo.write("main.txt", "x")
    echo.commit_all("main")
    echo.git("checkout", "-q", "topic")
    done = echo.gitgates("run", "-v", "--from-ref", "main", "--to-ref", "topic")
    assert paths(done) == ["topic.txt"]
    assert b"gates read" not in done.stdout
    # A gate sees no other content than that of the working tree.
    echo.write("a.txt", "edited")
    edited = echo.gitgates("run", "-v", "--from-ref", "main")
    assert b"gates read the working tree, with its uncommitted changes\n" in edited.stdout
    elsewhere = echo.gitgates("run", "-v", "--from-ref", "topic", "--to-ref", "main")
    assert paths(elsewhere) == ["main.txt"]
    assert b"`main` is not checked out: the gates read the working tree" in elsewhere.stdout
    echo.git("checkout", "-q", "--orphan", "alone")
    echo.git("commit", "-qm", "alone")
    unrelated = echo.gitgates("run", "--from-ref", "main")
    assert unrelated.returncode == 74
    assert b"`main` and `HEAD` have no common commit here\n" in unrelated.stderr


def test_bisect_skips_commits_that_cannot_be_judged(repo: Repo) -> None:
    gate = "[gates.a]\ncommand = '{}'\n[hooks.manual]\ngates = ['a']\n"
    configs = {
        "none": None,
        "good": gate.format("true"),
        "another gate": "[gates.b]\ncommand = 'true'\n",
        "bad": gate.format("false"),
        "no program": gate.format("no-such-program"),
        "invalid": "[gates.a]\ncommand = 7\n",
        "still bad": gate.format("false"),
        "nothing": gate.format("echo no tests ran in 0.01s"),
    }
    for name, config in configs.items():
        repo.write("version", name)
        repo.write("pyproject.toml") if config is None else repo.config(config)
        repo.commit_all(name)
    judge = (sys.executable, "-m", "gitgates", "run", "--gate", "a", "--bisect")
    statuses = {}
    for name, commit in zip(
        configs, repo.git("rev-list", "--reverse", "main").split(), strict=True
    ):
        repo.git("checkout", "-q", commit)
        statuses[name] = repo.gitgates(*judge[3:]).returncode
    judged = {name: status for name, status in statuses.items() if status != 125}
    assert judged == {"good": 0, "bad": 1, "still bad": 1}
    repo.git("bisect", "start", "main", "main~6")
    found = repo.ask("git", "bisect", "run", *judge).stdout
    # Between good and bad is one that cannot be judged.
    both = {repo.git("rev-parse", name).encode() for name in ("main~4", "main~5")}
    assert set(found.partition(b"first bad commit could be any of:\n")[2].split()[:2]) == both


def test_names_of_any_bytes_from_a_list(echo: Repo) -> None:
    odd = [b"-dash.txt", b"new\nline.txt", b"raw\xff.txt", b"sp ace.txt"]
    for name in odd:
        (echo.path / os.fsdecode(name)).write_bytes(b"x")
    done = echo.gitgates("run", "-v", "--files0-from", "-", stdin=b"\0".join(odd) + b"\0")
    assert done.returncode == 0
    for name in odd:
        shown = name.replace(b"\n", b"\n  | ")
        assert b"  | " + (b"./" if name.startswith(b"-") else b"") + shown + b"\n" in done.stdout


def test_paths_are_relative_to_the_current_folder(echo: Repo) -> None:
    below = Repo(echo.path / "sub")
    assert paths(below.gitgates("run", "-v", "--files", "b.txt")) == ["sub/b.txt"]
    assert paths(below.gitgates("run", "-v", "--glob", "*.txt")) == ["sub/b.txt"]
    assert paths(below.gitgates("run", "-v", "--glob", "/b.*")) == ["sub/b.txt"]
    assert below.gitgates("run", "--glob", "a.txt").returncode == 64


NONSENSE = [
    (["--files", "nope"], "no such file: `nope`\n  Paths are relative to the current folder."),
    (["--all-files", "--files", "a.txt"], "--all-files and --files cannot be used together"),
    (["--to-ref", "HEAD"], "--to-ref needs --from-ref"),
    (["--from-ref", ""], "--from-ref is empty\n  Give it a value, or use --all-files."),
    (["--files0-from", ""], "--files0-from is empty"),
    (["--directory", ""], "--directory is empty"),
    (["--from-ref", "HEAD", "--to-ref", ""], "--to-ref is empty"),
    (["--files", "/etc/passwd"], "`/etc/passwd` is outside the repository"),
    (["--files0-from", "a.txt"], "--files0-from a.txt: contains no NUL byte between the paths"),
    (["--files0-from", "gone"], "--files0-from gone: cannot be read: No such file"),
    (["--gate", "ecko"], "no gate `ecko`\n  Did you mean `echo`?"),
    (["manuel"], "no hook or gate `manuel`\n  Did you mean `manual`?"),
    (["ecko"], "no hook or gate `ecko`\n  Did you mean `echo`?"),
    (["echo", "ecko"], "no gate `ecko`\n  Did you mean `echo`?"),
    (["echo", "pre-push"], "no gate `pre-push`\n  The hook's name comes first."),
    (["--skip", "ecko"], "no gate `ecko`\n  Did you mean `echo`?"),
    (["--glob", "*.rs"], "no file matches --glob *.rs\n  Patterns are as in .gitignore"),
    (["--glob", "*.txt", "--glob", "*.{a,b}"], "--glob *.{a,b}: expected a pattern as in"),
    (["--glob", "*.txt", "--all-files"], "--all-files and --glob cannot be used together"),
    (["--no-such"], "No such option '--no-such'"),
    (["--format", "xml"], "'xml' is not one of 'text', 'json', 'jsonl'."),
    (["--junit", "no/such/folder.xml"], "--junit no/such/folder.xml: cannot be written"),
]


def test_a_call_that_makes_no_sense(echo: Repo) -> None:
    wrong = []
    for args, said in NONSENSE:
        done = echo.gitgates("run", *args)
        if done.returncode != 64 or said not in done.stderr.decode():
            wrong.append((args, said, done))
    assert wrong == []


def test_a_commit_that_is_not_there(echo: Repo) -> None:
    done = echo.gitgates("run", "--from-ref", "nope")
    assert (done.returncode, done.stderr) == (
        74,
        b"gitgates: `nope` is not a commit here\n  See: git log --oneline --all\n",
    )


def test_not_a_repository(tmp_path: Path) -> None:
    done = Repo(tmp_path).gitgates("run")
    assert done.returncode == 74
    assert done.stderr.decode() == (
        f"gitgates: {tmp_path}: not a git repository\n"
        "  Change to a repository, or create one with: git init\n"
    )


def test_no_configuration_is_said(repo: Repo) -> None:
    done = repo.gitgates("run")
    assert (done.returncode, done.stdout) == (78, b"")
    assert done.stderr.decode() == (
        f"gitgates: {repo.path}: no [tool.gitgates] in pyproject.toml, and no gitgates.toml\n"
        "  To create one: gitgates init\n"
    )


def test_a_broken_configuration_is_said_with_its_place(repo: Repo) -> None:
    repo.config("[gates.lint]\ncommand = 'x'\ntimeout = 'fast'\n")
    done = repo.gitgates("run")
    assert (done.returncode, done.stdout) == (78, b"")
    assert done.stderr.decode() == (
        'gitgates: pyproject.toml: tool.gitgates.gates.lint.timeout: got "fast", expected seconds '
        'or "30s". Try "30s".\n'
        "  To check it: gitgates check\n"
    )


def test_quiet_says_only_what_did_not_pass(echo: Repo) -> None:
    echo.write("a.txt", "x")
    assert echo.gitgates("run", "-q").stdout == b""


MIXED = """
[gates.good]
command = "true"
[gates.bad]
command = "printf '<oops>\\\\nx\\\\001y\\\\377'; exit 3"
on_fail = "CONTINUE"
[gates.missing]
command = "no-such-program-here"
[gates.array]
command = ["no-such-program-here"]
[gates.skipped]
command = "true"
files = ["*.none"]
[hooks.manual]
gates = ["good", "bad", "skipped", "missing", "array"]
strategy = "collect"
"""


def test_one_json_document(repo: Repo) -> None:
    repo.config("jobs = 1\n" + MIXED)
    done = repo.gitgates("run", "--format", "json")
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (1, b"")
    (run_id,) = os.listdir(repo.path / ".git/gitgates/runs")
    saved = json.loads((repo.path / f".git/gitgates/runs/{run_id}/result.json").read_text())
    (attempt,) = saved.pop("quality_gates")["attempts"]
    saved.pop("outcome")
    logs = [gate.pop("log", "") for gate in attempt["results"]]
    assert [gate.pop("log", "") for gate in document["results"]] == [
        log and f"{repo.path}/.git/gitgates/runs/{run_id}/{log}" for log in logs
    ]
    assert attempt.pop("duration_seconds") <= document.pop("duration_seconds")
    assert document.pop("exit_status") == 1
    assert document == {**saved, **attempt}
    assert (document["verdict"], document["asked"]) == ("could-not-run", "missing")
    assert document["reason"] == (
        "gate `missing` could not be started (command not found: no-such-program-here); gate "
        "`array` could not be started (command not found: no-such-program-here)"
    )
    assert [(gate["name"], gate["status"], gate["verdict"]) for gate in document["results"]] == [
        ("good", "passed", "allow"),
        ("bad", "failed", "warn"),
        ("skipped", "skipped", "allow"),
        ("missing", "not-started", "block"),
        ("array", "not-started", "block"),
    ]


def test_json_lines_in_order(repo: Repo) -> None:
    repo.config("[gates.a]\ncommand = 'true'\n[hooks.manual]\ngates = ['a']\n")
    done = repo.gitgates("run", "--format", "jsonl")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(line["version"], line["seq"], line["event"]) for line in lines] == [
        (2, 1, "run-started"),
        (2, 2, "gate-started"),
        (2, 3, "gate-ended"),
        (2, 4, "run-ended"),
    ]
    assert lines[-1]["verdict"] == "passed"


def test_json_of_a_run_that_could_not_be(repo: Repo) -> None:
    done = repo.gitgates("run", "--format", "json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["exit_status"], document["verdict"]) == (78, 78, None)
    assert document["error"]["hint"] == "To create one: gitgates init"


def test_junit(repo: Repo) -> None:
    repo.config("jobs = 1\n" + MIXED)
    repo.gitgates("run", "--junit", "out.xml")
    suite = ET.parse(repo.path / "out.xml").getroot()[0]
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "1",
        "errors": "2",
        "skipped": "1",
    }
    kinds = [[child.tag for child in case] for case in suite]
    assert kinds == [
        [],
        ["failure", "system-out"],
        ["skipped"],
        ["error", "system-out"],
        ["error"],
    ]


def test_collect_runs_independent_gates_at_once(repo: Repo, tmp_path: Path) -> None:
    # Each waits for the other's file: one after the other, neither would ever pass.
    gate = "[gates.{0}]\ncommand = 'touch {2}/{0}; while ! [ -e {2}/{1} ]; do sleep 0.01; done'\n"
    repo.config(
        "jobs = 2\n"
        + gate.format("a", "b", tmp_path)
        + gate.format("b", "a", tmp_path)
        + "[hooks.manual]\ngates = ['a', 'b']\nstrategy = 'collect'\n"
    )
    assert repo.gitgates("run").returncode == 0


@pytest.mark.parametrize("strategy", ["sequence", "collect"])
def test_skipped_gates_stand_where_they_are_listed(repo: Repo, strategy: str) -> None:
    repo.config(
        "[gates.a]\ncommand = 'true'\nfiles = ['*.a']\n[gates.b]\ncommand = 'true'\n"
        "[gates.c]\ncommand = 'true'\nfiles = ['*.c']\n[gates.d]\ncommand = 'sleep 0.1'\n"
        "[gates.e]\ncommand = 'true'\nfiles = ['*.e']\n"
        f"[hooks.manual]\ngates = ['a', 'b', 'c', 'd', 'e']\nstrategy = '{strategy}'\n"
    )
    lines = repo.gitgates("run").stdout.decode().splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [
        ["a", "skipped"], ["b", "passed"], ["c", "skipped"], ["d", "passed"], ["e", "skipped"],
    ]  # fmt: skip
    assert lines[-1] == "gitgates manual: 2 gates passed, 3 gates skipped"
    document = json.loads(repo.gitgates("run", "--format", "json").stdout)
    assert [gate["name"] for gate in document["results"]] == ["a", "b", "c", "d", "e"]


def test_a_gate_that_writes_runs_alone(repo: Repo, tmp_path: Path) -> None:
    busy = f"mkdir {tmp_path}/lock && sleep 0.05 && rmdir {tmp_path}/lock"
    gates = "".join(
        f"[gates.{name}]\ncommand = '{busy}'\nwrites = {str(name == 'w').lower()}\n"
        for name in ("w", "x")
    )
    hook = "[hooks.manual]\ngates = ['x', 'w', 'x']\nstrategy = 'collect'\n"
    repo.config("jobs = 4\n" + gates + hook)
    done = repo.gitgates("run")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_stop_ends_what_still_runs(repo: Repo, tmp_path: Path) -> None:
    repo.config(
        "jobs = 2\n"
        f"[gates.slow]\ncommand = 'echo $$ > {tmp_path}/pid; sleep 60'\n"
        f"[gates.fatal]\ncommand = 'while ! [ -s {tmp_path}/pid ]; do sleep 0.01; done; false'\n"
        "on_fail = 'STOP'\n"
        "[hooks.manual]\ngates = ['slow', 'fatal']\nstrategy = 'collect'\n"
    )
    done = repo.gitgates("run")
    assert done.returncode == 1
    assert timeless(done.stdout).splitlines()[-1] == ("gitgates manual: stopped by `fatal`")
    assert has_ended(int((tmp_path / "pid").read_text()))


@pytest.mark.slow
def test_a_timeout_is_no_failure(repo: Repo) -> None:
    repo.config(
        "[gates.slow]\ncommand = 'echo before; sleep 60'\ntimeout = 0.2\n"
        "[hooks.manual]\ngates = ['slow']\n"
    )
    done = repo.gitgates("run")
    assert done.returncode == 1
    assert timeless(done.stdout) == (
        "slow  timed out      0.00 s  limit 0.2 s\n  | before\ngitgates manual: blocked by `slow`\n"
    )


def test_many_files_are_passed_each_once(repo: Repo, tmp_path: Path) -> None:
    names = [f"{'long-folder-name' * 15}/{'long-name' * 25}-{n:05}.txt" for n in range(3_000)]
    (repo.path / names[0]).parent.mkdir()
    for name in names:
        (repo.path / name).touch()
    repo.config(
        f'[gates.count]\ncommand = \'printf "%s\\n" "$@" >> {tmp_path}/seen; '
        f'echo >> {tmp_path}/runs; [ -z "$(printf "%s\\n" "$@" | grep 02777)" ]\'\n'
        "pass_files = true\nfiles = ['*.txt']\n[hooks.manual]\ngates = ['count']\n"
    )
    done = repo.gitgates("run")
    assert (tmp_path / "seen").read_text().split() == names
    assert len((tmp_path / "runs").read_text()) > 1
    assert done.returncode == 1  # the worst run decides


def test_working_dir_env_and_a_folder_that_is_not_there(repo: Repo) -> None:
    repo.config(
        "[gates.here]\ncommand = 'pwd; echo $SCHEMA'\nworking_dir = 'web'\nenv = {SCHEMA = 'x y'}\n"
        "[gates.gone]\ncommand = 'true'\nworking_dir = 'gone'\n"
        "[hooks.manual]\ngates = ['here', 'gone']\n"
    )
    (repo.path / "web").mkdir()
    done = repo.gitgates("run", "-v")
    assert timeless(done.stdout) == (
        "here  passed         0.00 s\n"
        f"  | {repo.path}/web\n"
        "  | x y\n"
        f"gone  not started    0.00 s  working_dir does not exist: {repo.path}/gone\n"
        "gitgates manual: blocked by `gone`\n"
    )


def test_long_output_is_cut_and_its_log_named(repo: Repo) -> None:
    repo.config(
        "max_output = 100\n[gates.long]\ncommand = 'seq 1000; exit 1'\n"
        "[hooks.manual]\ngates = ['long']\n"
    )
    done = repo.gitgates("run")
    lines = done.stdout.decode().splitlines()
    log = Path(next(line for line in lines if "full log:" in line).partition(": ")[2])
    assert log.read_text() == "".join(f"{n}\n" for n in range(1, 1001))
    assert "  | [... 3793 bytes left out ...]" in lines
    assert oct(log.stat().st_mode)[-3:] == "600"


@pytest.mark.parametrize("pieces", ["seq 2000", "for n in $(seq 2000); do echo $n; done"])
def test_a_log_is_bounded_and_keeps_head_and_tail(repo: Repo, pieces: str) -> None:
    repo.config(
        f'max_log = 2001\nmax_output = 100\n[gates.long]\ncommand = "{pieces}; exit 1"\n'
        "[hooks.manual]\ngates = ['long']\n"
    )
    lines = repo.gitgates("run").stdout.decode().splitlines()
    log = Path(next(line for line in lines if "full log:" in line).partition(": ")[2])
    whole = "".join(f"{n}\n" for n in range(1, 2001))
    left_out = len(whole) - 2001
    assert log.read_text() == f"{whole[:1951]}\n[... {left_out} bytes left out ...]\n{whole[-50:]}"


def test_old_runs_are_pruned(repo: Repo) -> None:
    repo.config("[gates.a]\ncommand = 'echo x'\n[hooks.manual]\ngates = ['a']\n")
    runs = repo.path / ".git/gitgates/runs"
    for n in range(60):
        (runs / f"20200101T0000{n:02}Z-1/logs").mkdir(parents=True)
        (runs / f"20200101T0000{n:02}Z-1/logs/a.log").touch()
    repo.gitgates("run")
    names = sorted(path.name for path in runs.iterdir())
    assert len(names) == 50
    assert names[0] == "20200101T000011Z-1"


@pytest.mark.samples(2)
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_the_gates_and_decides_nothing(
    repo: Repo, tmp_path: Path, number: signal.Signals
) -> None:
    repo.config(
        f"[gates.slow]\ncommand = 'echo $$ > {tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; "
        "sleep 60'\n[hooks.pre-commit]\ngates = ['slow']\n"
    )
    repo.git("add", ".")
    repo.shim("pre-commit")
    process = subprocess.Popen(
        [".git/hooks/pre-commit"], cwd=repo.path, stderr=subprocess.PIPE, start_new_session=True
    )
    while not (tmp_path / "pid").exists():
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert timeless(said).splitlines()[-1] == (
        f"gitgates: interrupted by signal {int(number)} while `slow` ran; no decision was made"
    )
    assert has_ended(int((tmp_path / "pid").read_text()))


def interrupted(repo: Repo, tmp_path: Path, *args: str) -> tuple[bytes, int]:
    """Run three gates and interrupt the second; return what was said, and the exit status."""
    repo.config(
        "[gates.first]\ncommand = 'true'\n[gates.last]\ncommand = 'true'\n"
        f"[gates.slow]\ncommand = 'mkdir {tmp_path}/began; sleep 60'\n"
        "[hooks.manual]\ngates = ['first', 'slow', 'last']\n"
    )
    command = [sys.executable, "-m", "gitgates", "run", *args]
    process = subprocess.Popen(
        command, cwd=repo.path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    while not (tmp_path / "began").exists():
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=30)
    return said, process.returncode


ENDED = [("first", "passed"), ("slow", "killed")]


@pytest.mark.slow
def test_an_interrupted_run_tells_what_is_known_as_json_and_junit(
    repo: Repo, tmp_path: Path
) -> None:
    junit = tmp_path / "junit.xml"
    said, status = interrupted(repo, tmp_path, "--format", "json", "--junit", str(junit))
    document = json.loads(said)
    assert [(gate["name"], gate["status"]) for gate in document["results"]] == ENDED
    assert document["not_run"] == ["last"]
    assert (status, document["exit_status"], document["verdict"]) == (130, 130, None)
    assert document["error"]["message"].startswith("interrupted by signal 15 while `slow` ran")
    cases = ET.parse(junit).getroot().iter("testcase")
    found = [(case.get("name"), [(end.tag, end.get("message")) for end in case]) for case in cases]
    assert [name for name, _ends in found] == ["first", "slow", "last"]
    assert [ends[0][0] if ends else "" for _name, ends in found] == ["", "error", "skipped"]
    assert found[2][1] == [("skipped", "the run was interrupted")]


@pytest.mark.slow
def test_an_interrupted_run_goes_on_counting_its_lines(repo: Repo, tmp_path: Path) -> None:
    said, status = interrupted(repo, tmp_path, "--format", "jsonl")
    lines = [json.loads(line) for line in said.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    last = lines[-1]
    assert (status, last["event"], last["verdict"], last["not_run"]) == (
        130,
        "run-failed",
        None,
        ["last"],
    )
    assert [(gate["name"], gate["status"]) for gate in last["results"]] == ENDED


@pytest.mark.nightly
def test_these_tests_hold_where_signals_are_ignored() -> None:
    """As under nohup, and in the background of a script: `make test &`."""
    name = "test_a_signal_ends_the_gates_and_decides_nothing"
    script = f"trap '' INT HUP TERM; exec '{sys.executable}' -m pytest -q -p no:xdist {name}"
    script = script.replace(name, f"{__file__} -k {name}")
    done = subprocess.run(["sh", "-c", script], cwd=SRC, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()
    assert b"3 passed" in done.stdout


def test_a_signal_that_was_ignored_stays_ignored(repo: Repo) -> None:
    repo.config("[gates.g]\ncommand = 'kill -INT $PPID; kill -HUP $PPID'\n"
                "[hooks.manual]\ngates = ['g']\n")  # fmt: skip
    script = f"trap '' INT HUP; exec '{sys.executable}' -m gitgates run"
    done = repo.ask("sh", "-c", script)
    assert (done.returncode, done.stderr) == (0, b"")


def test_run_inside_its_own_gate_neither_loops_nor_passes(repo: Repo) -> None:
    repo.config(
        f"[gates.again]\ncommand = '{sys.executable} -m gitgates run'\n"
        "[hooks.manual]\ngates = ['again']\n"
    )
    done = repo.gitgates("run")
    assert done.returncode == 1
    said = b"manual is already running; not run again recursively: nothing was checked"
    assert said in done.stdout


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_configuration_is_said(repo: Repo) -> None:
    repo.config("")
    (repo.path / "pyproject.toml").chmod(0)
    done = repo.gitgates("run")
    assert done.returncode == 78
    assert b"pyproject.toml: cannot be read: Permission denied" in done.stderr


def test_a_state_folder_that_cannot_be_written_costs_only_the_logs(repo: Repo) -> None:
    repo.config("[gates.a]\ncommand = 'echo said; false'\n[hooks.manual]\ngates = ['a']\n")
    repo.write(".git/gitgates", "a file in its place")
    done = repo.gitgates("run")
    assert done.returncode == 1
    assert b"  | said\n" in done.stdout


def test_a_reader_that_goes_away_is_no_failure(repo: Repo) -> None:
    repo.config("[gates.a]\ncommand = 'seq 100000'\n[hooks.manual]\ngates = ['a']\n")
    run = f"{sys.executable} -m gitgates run -v --format json | head -c 10"
    done = repo.ask("/bin/sh", "-c", run)
    assert done.stderr == b""


def test_a_hook_without_gates_is_not_green(repo: Repo) -> None:
    repo.config("[gates.a]\ncommand = 'true'\n[hooks.pre-commit]\ngates = ['a']\n")
    done = repo.gitgates("run", "pre-push", "--all-files")
    assert (done.returncode, done.stdout) == (78, b"")
    assert done.stderr == (
        b"gitgates: hook `pre-push` has no gates; nothing was checked\n"
        b"  Hooks with gates: pre-commit.\n"
    )


def test_a_skip_that_names_no_gate_is_said(repo: Repo) -> None:
    repo.config("[gates.lint]\ncommand = 'true'\n[hooks.manual]\ngates = ['lint']\n")
    done = repo.gitgates("run", env={"GITGATES_SKIP": "lintt"})
    said = b"gitgates: GITGATES_SKIP names an unknown gate: `lintt`. Did you mean `lint`?\n"
    assert said in done.stdout


def test_skip_may_name_hooks_of_the_framework(repo: Repo) -> None:
    repo.config("[gates.a]\ncommand = 'true'\n[hooks.manual]\ngates = ['a']\n")
    done = repo.gitgates("run", env={"SKIP": "ruff,b"})
    assert timeless(done.stdout) == ("a  passed         0.00 s\ngitgates manual: 1 gate passed\n")


def test_no_two_gates_share_a_log(repo: Repo) -> None:
    odd = [".", "..", "../x", "/../x", "\u2713", "'13"]
    names = [*odd, "a", "a.1", "x" * 260, "x" * 259 + "y", "ü" * 200]
    gates = "".join(f'[gates."{name}"]\ncommand = "echo {n}"\n' for n, name in enumerate(names))
    repo.config(gates + f"[hooks.manual]\ngates = {json.dumps(names)}\n")
    document = json.loads(repo.gitgates("run", "--format", "json").stdout)
    texts = [Path(gate["log"]).read_text() for gate in document["results"]]
    assert texts == [f"{n}\n" for n in range(len(names))]


def test_no_two_gates_share_a_log_where_case_does_not_count() -> None:
    names = ["lint", "Lint", "LINT", "lInT", "lint+", "x" * 260, "X" * 260, "straße", "strasse"]
    names += ["stra\u1e9ee", "lint.1", "Lint.1"]
    logs = {name: os.path.basename(log_abs("/run", name, 0)) for name in names}
    assert len({log.casefold() for log in logs.values()}) == len(names)
    assert logs["lint"] == "lint.log"
    assert logs["Lint"].startswith("Lint+")
    assert os.path.basename(log_abs("/run", "Lint", 1)) == logs["Lint"].replace(".log", ".1.log")


def test_every_report_says_what_is_reused(repo: Repo) -> None:
    repo.write(
        "gitgates.toml", 'gates.a = {command = "true", reuse = true}\nhooks.manual.gates = ["a"]'
    )
    repo.write(".gitignore", "report.xml\n")
    for _ in range(2):
        assert repo.gitgates("run", "--junit", "report.xml").returncode == 0
    assert "<system-out>reused: manual, " in (repo.path / "report.xml").read_text()
    (newest, *_) = json.loads(repo.gitgates("runs", "list", "--format", "json").stdout)["runs"]
    shown = repo.gitgates("runs", "show", newest["execution_id"]).stdout.decode()
    assert "| a | ✅ Pass (reused: manual, " in shown
