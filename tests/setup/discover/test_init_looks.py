"""What `gitgates init` proposes can fail: each gate looks at something, and ends."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner
from conftest import Repo
from terminal_support import on_terminal

from gitgates.cli.init import command
from gitgates.config.load import load
from gitgates.core.types import GateResult
from gitgates.engine.run.job import Deadline
from gitgates.setup.discover import trial
from gitgates.setup.discover.candidates import GateCandidate


def program(folder: Path, name: str, script: str) -> None:
    """Write a program of sh."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


def proposed(repo: Repo) -> dict[str, str]:
    """Run init; return the command of each gate."""
    with contextlib.chdir(repo.path):
        done = CliRunner().invoke(command, [])
    assert done.exit_code == 0, done.output
    config = load(str(repo.path))
    assert config is not None
    return {gate.name: str(gate.program.command) for gate in config.gates}


def hooks_of(repo: Repo) -> dict[str, list[str]]:
    """Return the gates of each hook."""
    config = load(str(repo.path))
    assert config is not None
    return {hook.name: list(hook.gates) for hook in config.hooks}


# What gofmt -l does with files that are formatted, that are not, and that it cannot read.
GOFMT = """\
status=0
for file; do
    case $file in
        */syntax.go | syntax.go) echo "$file:1:1: expected 'package'" >&2; status=2 ;;
        */ugly.go | ugly.go) echo "$file" ;;
    esac
done
exit $status"""


@pytest.mark.parametrize(
    ("files", "status", "output"),
    [
        ("fine.go", 0, ""),
        ("fine.go ugly.go", 1, "ugly.go"),
        ("syntax.go", 1, "syntax.go:1:1: expected 'package'"),
        ("ugly.go syntax.go", 1, "ugly.go"),
    ],
)
def test_the_gate_of_gofmt_fails_with_gofmt(
    repo: Repo,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: str,
    status: int,
    output: str,
) -> None:
    program(tmp_path / "bin", "gofmt", GOFMT)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    repo.write("go.mod", "module x\n")
    assert "format" in proposed(repo)
    for file in files.split():
        repo.write(file, "package x\n")
    done = repo.gitgates("run", "--gate", "format")
    assert (done.returncode, output in done.stdout.decode()) == (status, True)


def test_the_gate_of_gofmt_fails_without_gofmt(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "go", "gofmt", GOFMT)
    monkeypatch.setenv("PATH", str(tmp_path / "go"), prepend=os.pathsep)
    repo.write("go.mod", "module x\n")
    repo.write("fine.go", "package x\n")
    formats = proposed(repo)["format"]
    for name in ("sh", "git", "echo", "tee"):
        program(tmp_path / "bin", name, f'exec /usr/bin/{name} "$@"')
    argv = ["/bin/sh", "-c", formats, "format", "fine.go"]
    done = subprocess.run(argv, cwd=repo.path, env={"PATH": str(tmp_path / "bin")}, check=False)
    assert done.returncode != 0


def test_what_gates_need_in_a_checkout_is_proposed(repo: Repo) -> None:
    repo.write("package.json", json.dumps({"scripts": {"test": "x"}}))
    repo.write("package-lock.json", "{}")
    repo.write("uv.lock", "")
    done = repo.gitgates("init")
    assert b"get `uv sync --locked` and `npm ci`\n" in done.stdout
    written = (repo.path / "gitgates.toml").read_text()
    assert '[worktree]\nsetup = ["uv sync --locked", "npm ci"]\n' in written
    assert b"nothing to add" in repo.gitgates("init").stdout


def test_an_ordinary_project_of_python_gets_the_gates_of_the_readme(
    repo: Repo, tmp_path: Path
) -> None:
    """ruff and pytest are in the PATH; there is no lock file."""
    repo.write("pyproject.toml", "[tool.ruff]\n[tool.pytest.ini_options]\n")
    repo.write("price.py", "PRICE = 1\n")
    repo.write("tests/test_price.py", "def test_price() -> None:\n    assert True\n")
    program(tmp_path / "bin", "ruff", "exec true")
    program(tmp_path / "bin", "pytest", "exec true")
    done = repo.gitgates("init", env={"PATH": f"{tmp_path / 'bin'}:{os.defpath}"})
    assert b"  test  pytest  (pyproject.toml: [tool.pytest.ini_options]): not tried" in done.stdout
    assert hooks_of(repo) == {
        "pre-commit": ["lint"],
        "pre-push": ["lint", "test"],
        "manual": ["lint", "test"],
    }
    assert b"neither locked" in repo.gitgates("init", env={"PATH": os.defpath}).stdout


LOOKS = """\
.PHONY: all
format:
\t@echo x >> a.txt; echo y > new.txt
lint:
\t@test ! -e new.txt && echo "$$(cat a.txt untracked.txt)"
typecheck:
\t@no-such-program-here
test:
\t@echo 1 failed; exit 3
"""


@pytest.mark.slow
def test_a_try_sees_what_each_command_does(repo: Repo) -> None:
    repo.write("Makefile", LOOKS)
    repo.write("a.txt", "a\n")
    repo.commit_all("start")
    repo.write("a.txt", "changed\n")
    repo.write("untracked.txt", "b\n")
    before = repo.git("status", "--porcelain")
    done = repo.gitgates("init", "--try", "--dry-run")
    assert (done.returncode, repo.git("status", "--porcelain")) == (0, before)
    assert (repo.path / "a.txt").read_text() == "changed\n"
    assert not (repo.path / "new.txt").exists()
    seen = done.stderr.decode()
    assert "  format  make format  (Makefile: format): changed 1 file, " in seen
    assert "  lint    make lint  (Makefile: lint): passed, " in seen
    assert "  test    make test  (Makefile: test): failed, so it only warns, " in seen
    assert "  left out: make typecheck (Makefile: typecheck): it cannot run here: " in seen
    assert "no-such-program-here" in seen
    repo.gitgates("init", "--try")
    assert hooks_of(repo) == {
        "pre-commit": ["format", "lint"],
        "pre-push": ["lint", "test"],
        "manual": ["format", "lint", "test"],
    }
    config = load(str(repo.path))
    assert config is not None
    assert [gate.name for gate in config.gates if gate.program.writes] == ["format"]
    assert [gate.name for gate in config.gates if gate.actions.on_fail == "CONTINUE"] == ["test"]


@pytest.mark.slow
def test_what_checks_nothing_or_does_not_end_is_left_out(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "_AT_ONCE_S", 2.0)  # of a busy machine
    monkeypatch.delenv("MAKELEVEL", raising=False)  # from `make test`: make would print its folder
    recipes = {"lint": "echo 'no tests ran in 0.01s'", "test": "sleep 60", "check": "echo fine"}
    recipes |= {"fmt": "true", "typecheck": "read x && echo ended"}
    lines = "".join(f"{name}:\n\t@{recipe}\n" for name, recipe in recipes.items())
    repo.write("Makefile", f".PHONY: {' '.join(recipes)}\n{lines}")
    repo.commit_all("start")
    done = repo.gitgates("init", "--try", "--try-for", "3s")
    said = done.stdout.decode()
    assert "make lint (Makefile: lint): it has nothing to check: no tests ran in 0.01s\n" in said
    assert "make test (Makefile: test): it was still running after " in said
    assert "  test       make check  (Makefile: check): passed" in said
    assert "passed at once and printed nothing: make sure that it checks something" in said
    assert "  to add what was left out, paste this, and name the gates in their hooks:" in said
    assert '    [gates.lint]\n    description = "Linting"\n    command = "make lint"\n' in said
    assert hooks_of(repo)["pre-push"] == ["format", "typecheck", "test"]


@pytest.mark.parametrize(
    ("output", "why_not"),
    [
        (b"\nno tests ran in 0.01s\n", "it has nothing to check: no tests ran"),
        (
            b"No tests found, exiting with code 1",
            "it has nothing to check: No tests found, exiting",
        ),
        (b"no tests are skipped\n1 failed in 0.01s\n", ""),
    ],
)
def test_a_failure_without_tests_is_left_out(output: bytes, why_not: str) -> None:
    result = GateResult(gate="test", status="failed", exit_status=5, output=output)
    candidate = GateCandidate(kind="test", command="pytest", source="tests")
    seen = trial.result_of(candidate, result, Deadline(at=0.0, limit_s=1.0), "/no/checkout")
    assert (seen.why_not, seen.has_failed) == (why_not, not why_not)


@pytest.mark.slow
def test_a_try_finds_what_is_installed_in_the_working_tree(repo: Repo) -> None:
    repo.write(".gitignore", "node_modules\n")
    package = {"scripts": {"lint": "tool"}, "devDependencies": {"tool": "1"}}
    repo.write("package.json", json.dumps(package))
    program(repo.path / "node_modules/.bin", "tool", "echo looked; echo more >> package.json")
    repo.commit_all("start")
    done = repo.gitgates("init", "--try")
    assert "npm run lint  (package.json: lint): changed 1 file, " in done.stdout.decode()
    assert (repo.path / "package.json").read_text() == json.dumps(package)


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "seen"), [(b"\n", b"passed, "), (b"n\n", b"not tried")])
def test_on_a_terminal_it_asks_once_and_yes_is_the_default(
    repo: Repo, typed: bytes, seen: bytes
) -> None:
    repo.write("Makefile", "lint:\n\t@echo looked\ntest:\n\t@sleep 1; echo tested\n")
    repo.commit_all("start")
    said = on_terminal(repo, "init", "--dry-run", typed=typed)
    assert said.count(b"Run them? [Y/n]") == 1
    assert b"  make lint\r\n  make test\r\n" in said
    assert b"(Makefile: lint): " + seen in said
    assert (b"running: " in said) == (seen == b"passed, ")


@pytest.mark.slow
def test_a_project_without_a_commit_is_tried(repo: Repo) -> None:
    repo.write("Makefile", "lint:\n\t@echo looked\n")
    said = repo.gitgates("init", "--try").stdout.decode()
    assert "  lint  make lint  (Makefile: lint): passed, " in said


def test_nobody_is_sent_back_to_an_init_that_has_found_nothing(repo: Repo) -> None:
    assert b"To create one: gitgates init" in repo.gitgates("run").stderr
    done = repo.gitgates("init", "--dry-run")
    assert b"  command = " in done.stderr + done.stdout
    assert b"To create one: gitgates init" in repo.gitgates("run").stderr, "a dry run notes nothing"
    repo.gitgates("init")
    for verb in ("run", "doctor", "install-hooks"):
        said = repo.gitgates(verb)
        text = (said.stdout + said.stderr).decode()
        assert "Write a gate into gitgates.toml: [gates.test]" in text, text
        assert "gitgates init" not in text
