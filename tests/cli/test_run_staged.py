"""`gitgates run --staged`: what a commit would check, before there is one."""

from __future__ import annotations

import json

import pytest
from conftest import Repo, timeless

LOOK = """
[gates.look]
command = 'cat a.txt; git diff --cached --name-only; env | grep -E "^GIT_[^E]|GITGATES_HOOK" | sort'
"""
BOTH = LOOK + "[hooks.pre-commit]\ngates = ['look']\n[hooks.manual]\ngates = ['no']\n"


def whole(repo: Repo) -> tuple[str, bytes, str]:
    """Return what a run is to leave as it is: the status, the file's bytes, the index."""
    status = repo.git("status", "--porcelain")
    return status, (repo.path / "a.txt").read_bytes(), repo.git("ls-files", "--stage")


@pytest.fixture
def partly(repo: Repo) -> Repo:
    """A repository with a file of which a part is staged."""
    repo.config(BOTH + "[gates.no]\ncommand = 'false'\n")
    repo.commit_all("base")
    repo.write("a.txt", "staged\n")
    repo.git("add", "a.txt")
    repo.write("a.txt", "staged\nnot staged\n")
    return repo


def test_gates_see_what_a_commit_would_show_them(partly: Repo) -> None:
    partly.config(BOTH.replace("sort'", "sort; false'"))  # shows in a commit what it saw
    partly.git("add", "pyproject.toml")
    partly.shim("pre-commit")
    before = whole(partly)
    asked = partly.gitgates("run", "--staged")
    assert whole(partly) == before
    assert b"  | staged\n  | a.txt\n  | pyproject.toml\n" in asked.stdout
    committed = partly.commit()
    assert (asked.returncode, committed.returncode) == (1, 1)
    assert b"gitgates: to see more: " in asked.stderr
    assert timeless(committed.stderr) == timeless(asked.stdout + asked.stderr)


def test_a_fixer_that_restages_does_so(repo: Repo) -> None:
    repo.config(
        "[gates.fix]\ncommand = 'sed -i s/BAD/good/ \"$@\"'\nfiles = ['*.txt']\n"
        "pass_files = true\nwrites = true\nrestage = true\n[hooks.pre-commit]\ngates = ['fix']\n"
    )
    repo.write("a.txt", "BAD\n")
    repo.git("add", ".")
    assert repo.gitgates("run", "--staged").returncode == 0
    assert repo.git("show", ":a.txt") == "good"


def test_the_settings_are_those_that_would_be_committed(partly: Repo) -> None:
    partly.write("pyproject.toml", "[tool.gitgates.gates.else]\ncommand = 'false'\n"
                 "[tool.gitgates.hooks.pre-commit]\ngates = ['else']\n")  # fmt: skip
    done = partly.gitgates("run", "--staged", "--format", "json")
    document = json.loads(done.stdout)
    assert [gate["name"] for gate in document["results"]] == ["look"]
    assert document["notes"] == ["the configuration has uncommitted changes, which do not apply"]


def test_one_gate_of_what_is_staged(partly: Repo) -> None:
    done = partly.gitgates("run", "--staged", "--gate", "no", "--format", "jsonl")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events] == [
        "run-started", "gate-started", "gate-ended", "run-ended",
    ]  # fmt: skip
    assert (events[0]["hook"], events[0]["gates"]) == ("pre-commit", ["no"])
    assert (done.returncode, events[-1]["verdict"]) == (1, "blocked")


def test_nothing_staged_is_said(repo: Repo) -> None:
    repo.config(
        "[gates.a]\ncommand = 'true'\n[gates.b]\ncommand = 'true'\nfiles = ['*.txt']\n"
        "[hooks.pre-commit]\ngates = ['a', 'b']\n"
    )
    repo.commit_all("base")
    repo.write("a.txt", "not staged\n")
    done = repo.gitgates("run", "--staged")
    assert done.returncode == 0
    assert timeless(done.stdout) == (
        "a  passed         0.00 s\n"
        "b  skipped      no file has changed\n"
        "gitgates: nothing is staged; to stage your changes: git add\n"
        "gitgates pre-commit: 1 gate passed, 1 gate skipped\n"
    )
    repo.git("rm", "-q", "pyproject.toml", "--cached")
    assert b"nothing is staged" not in repo.gitgates("run", "--staged").stdout


def test_before_the_first_add_no_file_is_tracked(repo: Repo) -> None:
    repo.config("[gates.b]\ncommand = 'true'\nfiles = ['*']\n[hooks.manual]\ngates = ['b']\n")
    said = b"gitgates: no file is tracked yet; to track yours: git add\n"
    done = repo.gitgates("run", "--all-files")
    assert said in done.stdout
    assert b"skipped      no file matches\n" in done.stdout
    assert said not in repo.gitgates("run").stdout
    repo.git("add", "pyproject.toml")
    assert said not in repo.gitgates("run", "--all-files").stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["manual"], "--staged applies to commits, and `manual` does not run on commits"),
        (["--all-files"], "--staged and --all-files cannot be used together"),
        (["--gate", "loo"], "no gate `loo`\n  Did you mean `look`?"),
    ],
)
def test_a_call_that_makes_no_sense(partly: Repo, args: list[str], said: str) -> None:
    done = partly.gitgates("run", "--staged", *args)
    assert (done.returncode, done.stdout) == (64, b"")
    assert done.stderr.decode().startswith(f"gitgates: {said}")


def test_the_name_of_a_gate_in_place_of_a_hook_runs_that_gate(partly: Repo) -> None:
    for args in (["look"], ["--staged", "look"]):
        done = partly.gitgates("run", *args)
        assert (done.returncode, done.stderr) == (0, b""), args
        assert [line.split()[0] for line in done.stdout.decode().splitlines()][:-1] == ["look"]


def test_explain_is_about_the_same_paths(partly: Repo) -> None:
    partly.config(
        "[gates.t]\ncommand = 'true'\nfiles = ['*.t*']\n[hooks.pre-commit]\ngates = ['t']\n"
    )
    partly.write("new.txt")
    told = partly.gitgates("explain", "pre-commit", "--staged", "--format", "json")
    assert json.loads(told.stdout)["paths"] == ["a.txt"]
