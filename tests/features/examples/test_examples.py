"""`gitgates test`: a gate must fail and pass on its examples, and nothing else is changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Repo, timeless
from each_case import each_case

from gitgates.config.load import describe, parse_files
from gitgates.config.weaker import weaker

pytestmark = pytest.mark.slow

# Fails on files with `bad` in them, like a linter whose configuration is in the root.
LINTER = """\
#!/bin/sh
. ./rules || exit 3
for file in "$@"; do
  if grep -Hn "$forbidden" "$file"; then found=1; fi
done
exit "${found:-0}"
"""
EXAMPLES = "examples = { fail = ['gates/bad.txt'], pass = ['gates/good.txt'] }\n"
LINT = (
    "[gates.lint]\ncommand = 'scripts/lint'\npass_files = true\nfiles = ['*.txt']\n"
    "exclude = ['/gates/']\n" + EXAMPLES
)


@pytest.fixture(name="project")
def _project(repo: Repo) -> Repo:
    repo.write("scripts/lint", LINTER).chmod(0o755)
    repo.write("rules", "forbidden=bad\n")
    repo.write("gates/bad.txt", "a bad line\n")
    repo.write("gates/good.txt", "a line\n")
    repo.config(LINT)
    repo.commit_all("base")
    return repo


def state(repo: Repo) -> dict[str, bytes]:
    """Return every file of a working tree and its git folder, without what gitgates keeps."""
    found: dict[str, bytes] = {}
    for folder, _folders, names in os.walk(repo.path):
        if "/.git/gitgates" not in f"{folder}/":
            paths = [Path(folder, name) for name in names]
            found |= {str(path): path.read_bytes() for path in paths if path.name != "index"}
    return found


def gate_that(repo: Repo, command: str, more: str = "") -> str:
    """Return what is printed about a gate with this command, which is to have proven nothing."""
    repo.config(f"[gates.g]\ncommand = {json.dumps(command)}\n{more}{EXAMPLES}")
    done = repo.gitgates("test", "g")
    assert done.returncode == 1, done.stdout
    return timeless(done.stdout)


def test_a_gate_that_fails_and_passes_where_it_must(project: Repo) -> None:
    before = state(project)
    done = project.gitgates("test", "lint")
    assert (done.returncode, done.stderr) == (0, b"")
    assert timeless(done.stdout) == (
        "lint: gates/bad.txt: failed (exit status 1), as it must (0.00 s)\n"
        "lint: gates/good.txt: passed, as it must (0.00 s)\n"
        "lint: fails and passes as its examples say\n"
    )
    assert state(project) == before
    assert project.git("status", "--porcelain") == ""
    assert b"no runs found" in project.gitgates("runs").stdout
    assert not (project.path / ".git/gitgates/proofs").exists()


NOT_FOUND = "(command not found: no-such-program)"


@pytest.mark.parametrize(
    ("command", "ends", "summary"),
    [
        ("true", ["passed, but must fail", "passed, as it must"], "cannot fail on its examples"),
        (
            "false",
            ["failed (exit status 1), as it must", "failed (exit status 1), but must pass"],
            "fails on all examples, which proves nothing",
        ),
        (
            "no-such-program",
            [
                f"could not be started {NOT_FOUND}, which proves nothing: it must fail",
                f"could not be started {NOT_FOUND}, which proves nothing: it must pass",
            ],
            "not proven",
        ),
        (
            "if test -e bad.txt; then kill -SEGV $$; fi",
            ["was killed by signal 11, which proves nothing: it must fail", "passed, as it must"],
            "not proven",
        ),
        (
            "if test -e bad.txt; then sh -c 'kill -SEGV $$'; exit $?; fi",
            [
                (
                    "could not run, or was killed (exit status 139), which proves nothing: it must "
                    "fail"
                ),
                "passed, as it must",
            ],
            "not proven",
        ),
        (
            "if test -e bad.txt; then echo no tests ran; fi",
            [
                "checked nothing (no tests ran), which proves nothing: it must fail",
                "passed, as it must",
            ],
            "not proven",
        ),
    ],
)
def test_what_proves_nothing(project: Repo, command: str, ends: list[str], summary: str) -> None:
    shown = gate_that(project, command).splitlines()
    told = [line for line in shown if not line.startswith("  | ")]
    assert told == [
        f"g: gates/bad.txt: {ends[0]} (0.00 s)",
        f"g: gates/good.txt: {ends[1]} (0.00 s)",
        f"g: {summary}",
    ]


def test_a_timeout_is_no_failure(project: Repo) -> None:
    shown = gate_that(project, "if test -e bad.txt; then sleep 60; fi", "timeout = 0.2\n")
    assert "bad.txt: timed out (limit 0.2 s), which proves nothing: it must fail" in shown
    assert shown.endswith("g: not proven\n")


def test_patterns_that_do_not_match_an_example(project: Repo) -> None:
    shown = gate_that(project, "false", "files = ['*.rs']\n")
    assert "bad.txt: was not run (no file matches), which proves nothing" in shown


def test_a_change_without_writes_is_no_failure_of_the_check(project: Repo) -> None:
    shown = gate_that(project, "echo >> bad.txt")
    assert "bad.txt: failed (it changed 1 file: bad.txt" in shown
    assert "which proves nothing: it must fail" in shown


def test_a_fixer_fails_by_its_changes(project: Repo) -> None:
    fixes = "sed -i s/bad/good/ *.txt"
    project.config(f"[gates.fix]\ncommand = '{fixes}'\nwrites = true\nrestage = true\n{EXAMPLES}")
    done = project.gitgates("test")
    assert done.returncode == 0
    assert b"bad.txt: failed (changed 1 file: bad.txt), as it must" in done.stdout


def test_known_failures_count_and_it_runs_nowhere_else(project: Repo, out: Path) -> None:
    project.config(
        "[gates.g]\ncommand = 'pwd >> $OUT/folders; ! grep -r bad *.txt'\nbaseline = true\n"
        "failures = '^.*bad.*$'\n" + EXAMPLES
    )
    project.write("known.txt", "a line\n")
    project.commit_all("a gate that compares with the merge base")
    assert project.gitgates("test").returncode == 0
    assert len((out / "folders").read_text().splitlines()) == 2


def test_a_folder_is_laid_over_the_root_and_may_replace_what_is_there(project: Repo) -> None:
    project.write("gates/strict/rules", "forbidden=line\n")
    project.write("gates/strict/src/deep/a.txt", "a line\n")
    project.config(LINT.replace("['gates/bad.txt']", "['gates/strict', 'gates/bad.txt']"))
    done = project.gitgates("test", "--format", "json")
    assert done.returncode == 0
    (gate,) = json.loads(done.stdout)["gates"]
    assert gate["proven"]
    strict, bad, good = gate["examples"]
    assert [(e["path"], e["expected"], e["actual"]) for e in (strict, bad, good)] == [
        ("gates/strict", "fail", "fail"),
        ("gates/bad.txt", "fail", "fail"),
        ("gates/good.txt", "pass", "pass"),
    ]
    assert strict["output"] == "src/deep/a.txt:1:a line\n"


def test_it_is_the_working_tree_that_counts_and_examples_are_staged(project: Repo) -> None:
    project.write("rules", "forbidden=line\n")  # not committed
    project.write("gates/new.txt", "a line\n")  # not even staged
    project.write("gates/none.txt", "nothing\n")
    project.config(
        "[gates.lint]\ncommand = 'git diff --cached --name-only HEAD >&2; scripts/lint *.txt'\n"
        "examples = { fail = ['gates/new.txt'], pass = ['gates/none.txt'] }\n"
    )
    done = project.gitgates("test", "-v")
    assert done.returncode == 0, done.stdout
    assert b"  | new.txt\n" in done.stdout
    assert project.git("status", "--porcelain").splitlines() == [
        " M pyproject.toml",
        " M rules",
        "?? gates/new.txt",
        "?? gates/none.txt",
    ]


def test_ignored_folders_are_copied_where_an_example_has_none(project: Repo) -> None:
    project.write(".gitignore", "node_modules\n")
    project.write("node_modules/tool", "of the user\n")
    project.write("gates/with/node_modules/tool", "of the example\n")
    project.git("add", "-f", "gates")
    project.config(
        "[worktree]\ncopy = ['node_modules']\n"
        "[gates.g]\ncommand = 'cat node_modules/tool; grep -q user node_modules/tool'\n"
        "examples = { fail = ['gates/with'], pass = ['gates/good.txt'] }\n"
    )
    done = project.gitgates("test", "-v")
    assert done.returncode == 0, done.stdout
    assert b"  | of the example\n" in done.stdout
    assert (project.path / "node_modules/tool").read_text() == "of the user\n"
    assert b"`node_modules` is not copied: that path exists" in done.stderr


def test_a_gate_about_a_commit_message(project: Repo) -> None:
    project.write("gates/message", "area: do it\n")
    project.write("gates/shout", "DO IT\n")
    project.config(
        '[gates.message]\ncommand = \'grep -q "^[a-z]*: " "$1"\'\npass_hook_input = true\n'
        "examples = { fail = ['gates/shout'], pass = ['gates/message'] }\n"
        "[hooks.commit-msg]\ngates = ['message']\n"
    )
    assert project.gitgates("test", "message").returncode == 0
    text = (project.path / "pyproject.toml").read_text()
    project.write("pyproject.toml", text.replace("gates/shout", "gates"))
    done = project.gitgates("test")
    assert (done.returncode, done.stderr.decode()) == (
        64,
        (
            "gitgates: example `gates` is a folder\n"
            "  Gate `message` runs in commit-msg: name a file with a commit message.\n"
        ),
    )


def test_while_another_run_has_stashed_files_and_holds_the_lock(project: Repo) -> None:
    project.config(
        LINT + "[gates.wait]\ncommand = 'echo > ../begun; read line < ../go'\n"
        "[hooks.pre-commit]\ngates = ['wait']\n"
    )
    os.mkfifo(project.path / "../begun")
    os.mkfifo(project.path / "../go")
    project.write("staged.txt", "x")
    project.git("add", ".")
    project.write("rules", "forbidden=nothing\n")  # not staged, so it is stashed
    argv = [sys.executable, "-m", "gitgates", "run", "--staged"]
    with subprocess.Popen(argv, cwd=project.path, stdout=subprocess.DEVNULL) as other:
        (project.path / "../begun").read_text()
        assert (project.path / "rules").read_text() == "forbidden=bad\n"
        done = project.gitgates("test", "lint")
        (project.path / "../go").write_text("\n")
        assert other.wait(30) == 0
    assert b"bad.txt: passed, but must fail" in done.stdout  # by the user's own rules
    assert (project.path / "rules").read_text() == "forbidden=nothing\n"


def test_in_a_linked_worktree_and_before_the_first_commit(project: Repo, tmp_path: Path) -> None:
    project.git("worktree", "add", "-q", str(tmp_path / "linked"))
    assert Repo(tmp_path / "linked").gitgates("test").returncode == 0
    project.git("update-ref", "-d", "HEAD")
    assert project.gitgates("test").returncode == 0


@pytest.mark.parametrize(
    ("config", "args", "status", "said"),
    [
        (LINT, ["lnt"], 64, "no gate `lnt`\n  Did you mean `lint`?"),
        (
            LINT + "[gates.other]\ncommand = 'true'\n",
            ["other"],
            64,
            "gate `other` has no `examples`; nothing was tested\n  Add them: examples = {",
        ),
        ("[gates.a]\ncommand = 'a'\n", [], 78, "no gate has `examples`; nothing was tested"),
        (
            LINT.replace("gates/bad.txt", "gates/gone.txt"),
            [],
            64,
            "gate `lint`: no example `gates/gone.txt`\n  It must be in the working tree, and git",
        ),
    ],
)
def test_a_call_that_tests_nothing(
    project: Repo, config: str, args: list[str], status: int, said: str
) -> None:
    project.config(config)
    done = project.gitgates("test", *args)
    assert (done.returncode, done.stdout) == (status, b"")
    assert said in done.stderr.decode()


@each_case(
    ("examples", "said"),
    [
        ("{ fail = ['a'], pass = ['b', 1] }", "examples.pass[1]: got 1, expected text in quotes"),
        ("{ fail = ['../a'], pass = ['b'] }", 'examples.fail: got ["../a"], expected a folder'),
        ("{ fail = [], pass = ['b'] }", "examples.fail: got [], expected at least one path"),
        ("{ fail = ['a'], pass = ['b'], base = 'x' }", "expected a table of `fail` and `pass`"),
    ],
)
def test_examples_that_are_none(examples: str, said: str) -> None:
    text = f"[gates.g]\ncommand = 'true'\nexamples = {examples}\n"
    _config, problems = parse_files({"gitgates.toml": text.encode()})
    assert said in describe([*problems])


def test_an_example_fewer_is_weaker() -> None:
    before, _ = parse_files({"gitgates.toml": LINT.encode()})
    after, _ = parse_files({"gitgates.toml": LINT.replace(EXAMPLES, "").encode()})
    assert before
    assert after
    assert weaker(before, after) == [
        "gates.lint.examples: - ('fail', 'gates/bad.txt'), - ('pass', 'gates/good.txt')"
    ]
