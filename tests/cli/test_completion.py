"""Shells complete verbs, options, and the names that the configuration has."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import Repo

CONFIG = """
[gates.lint]
command = "true"
[gates.light]
command = "true"
[gates.other]
command = "true"
[hooks.pre-commit]
gates = ["lint"]
[hooks.pre-push]
gates = ["lint"]
"""


def complete(repo: Repo, *words: str, shell: str = "bash") -> list[str]:
    """Return what a shell is given for the last of the words."""
    env = {
        "_GITGATES_COMPLETE": f"{shell}_complete",
        "COMP_WORDS": " ".join(("gitgates", *words)) if shell != "fish" else "gitgates",
        "COMP_CWORD": str(len(words)) if shell != "fish" else words[-1],
    }
    done = repo.gitgates(env=env)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode().split()


@pytest.fixture(name="project")
def _project(repo: Repo) -> Repo:
    repo.config(CONFIG)
    return repo


COMPLETED: list[tuple[tuple[str, ...], list[str]]] = [
    (("expl",), ["plain,explain"]),
    (("explain", ""), ["plain,pre-commit", "plain,pre-push"]),
    (("explain", "pre-p"), ["plain,pre-push"]),
    (("explain", "post-m"), ["plain,post-merge"]),
    (("explain", "pre-commit", "--format", ""), ["plain,text", "plain,json"]),
    (
        ("run", ""),
        ["plain,pre-commit", "plain,pre-push", "plain,lint", "plain,light", "plain,other"],
    ),
    (("run", "lint", "o"), ["plain,other"]),
    (("run", "post-m"), ["plain,post-merge"]),
    (("run", "--skip", "li"), ["plain,lint", "plain,light"]),
    (("run", "--gate", "li"), ["plain,lint", "plain,light"]),
    (("run", "--gate", "x"), []),
    (("completion", ""), ["plain,bash", "plain,zsh", "plain,fish"]),
    (("explain", "no-such-hook", "--form"), ["plain,--format"]),
]


def test_completes(project: Repo) -> None:
    assert [(words, complete(project, *words)) for words, _wanted in COMPLETED] == COMPLETED


def test_a_name_that_a_shell_would_run_is_not_completed(repo: Repo) -> None:
    names = ("lint", "li;touch x", "li$(touch x)", r"li\u202e")
    repo.config("".join(f'[gates."{name}"]\ncommand = "true"\n' for name in names))
    assert complete(repo, "run", "--gate", "li") == ["plain,lint"]


def test_after_an_unknown_verb_nothing_is_said(project: Repo) -> None:
    assert complete(project, "no-such-verb", "expl") == ["plain,explain"]


def test_zsh_and_fish_protocols(project: Repo) -> None:
    assert complete(project, "explain", "pre-p", shell="zsh") == ["plain", "pre-push", "_"]
    assert complete(project, "expl", shell="fish")[0].startswith("plain")


@pytest.mark.parametrize(
    "content", [b"", b"[tool.gitgates", b"\xff", b"[tool]\ngitgates = 1\n"], ids=str
)
def test_unreadable_configuration_is_no_obstacle(repo: Repo, content: bytes) -> None:
    repo.write("pyproject.toml", content)
    assert complete(repo, "run", "--gate", "") == []
    assert complete(repo, "explain", "pre-m") == ["plain,pre-merge-commit"]


def test_configuration_with_problems_still_completes(repo: Repo) -> None:
    repo.config(CONFIG + "[gates.bad]\ntimeout = false\n")
    assert complete(repo, "run", "--gate", "li") == ["plain,lint", "plain,light"]


def test_outside_of_a_repository(tmp_path: Path) -> None:
    assert complete(Repo(tmp_path), "run", "--gate", "") == []


def test_unknown_verb_is_still_refused_where_nothing_completes(project: Repo) -> None:
    done = project.gitgates("no-such-verb")
    assert done.returncode == 64
    assert done.stderr.startswith(b"gitgates: no such command: no-such-verb.")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_is_valid(repo: Repo, shell: str) -> None:
    done = repo.gitgates("completion", shell)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"_GITGATES_COMPLETE=%s_complete" % shell.encode() in done.stdout
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    checked = subprocess.run([program, "-n"], input=done.stdout, capture_output=True, check=False)
    assert (checked.returncode, checked.stderr) == (0, b"")


@pytest.mark.slow
def test_bash_really_completes(project: Repo) -> None:
    program = Path(sys.executable).parent / "gitgates"
    script = f"""
        eval "$(gitgates completion bash)"
        COMP_WORDS=({program} explain pre-p); COMP_CWORD=2
        _gitgates_completion {program}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = project.ask("bash", "--norc", "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"pre-push\n", b"")


def test_unknown_shell(repo: Repo) -> None:
    done = repo.gitgates("completion", "tcsh")
    assert done.returncode == 64
    assert done.stderr.decode().startswith("gitgates: Invalid value for '{bash|zsh|fish}': 'tcsh'")
