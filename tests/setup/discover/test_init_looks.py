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

from gitgates.cli.init import command, emptiness_of
from gitgates.config.load import load
from gitgates.core.types import GateResult


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
    return {gate.name: str(gate.command) for gate in config.gates}


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
    repo: Repo, tmp_path: Path, files: str, status: int, output: str
) -> None:
    program(tmp_path / "bin", "gofmt", GOFMT)
    repo.write("go.mod", "module x\n")
    assert "format" in proposed(repo)
    for file in files.split():
        repo.write(file, "package x\n")
    env = {"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = repo.gitgates("run", "--gate", "format", env=env)
    assert (done.returncode, output in done.stdout.decode()) == (status, True)


def test_the_gate_of_gofmt_fails_without_gofmt(repo: Repo, tmp_path: Path) -> None:
    repo.write("go.mod", "module x\n")
    repo.write("fine.go", "package x\n")
    formats = proposed(repo)["format"]
    for name in ("sh", "git", "echo", "tee"):
        program(tmp_path / "bin", name, f'exec /usr/bin/{name} "$@"')
    argv = ["/bin/sh", "-c", formats, "format", "fine.go"]
    done = subprocess.run(argv, cwd=repo.path, env={"PATH": str(tmp_path / "bin")}, check=False)
    assert done.returncode != 0


def scripts(**named: str) -> dict[str, str]:
    return {"package.json": json.dumps({"scripts": named})}


def with_runner(call: str) -> dict[str, str]:
    """Return a package of which each task is run by the same program."""
    return scripts(lint=f"{call} lint", typecheck=f"{call} typecheck", test=f"{call} test")


NPM = {"lint": "npm run lint", "typecheck": "npm run typecheck", "test": "npm test"}
MAKE = {"lint": "make lint", "typecheck": "make typecheck", "test": "make test"}
WIREIT = {
    "scripts": dict.fromkeys(("lint", "typecheck", "test"), "wireit"),
    "wireit": {
        "lint": {"command": "eslint ."},
        "typecheck": {"command": "tsc --noEmit", "dependencies": ["./other:build"]},
        "test": {"command": "node --test", "dependencies": ["typecheck", {"script": "lint"}]},
    },
}


@pytest.mark.parametrize(
    ("files", "gates"),
    [
        *(
            pytest.param(with_runner(call), NPM, id=call)
            for call in (
                "turbo run",
                "turbo",
                "nx run-many -t",
                "nx affected --target",
                "lerna run",
                "pnpm -r run",
                "pnpm --filter web",
                "yarn workspaces foreach -A run",
                "npm run -ws",
                "rushx",
                "wsrun",
            )
        ),
        pytest.param({"package.json": json.dumps(WIREIT)}, NPM, id="wireit"),
        *(
            pytest.param(
                {"Makefile": "".join(f"{word}:\n\t{call}{word}\n" for word in MAKE)}, MAKE, id=call
            )
            for call in (
                "docker compose run --rm web ",
                "inv ",
                "bazel test //tools:",
                "cargo xtask ",
                "uv run x.py ",
                "uv run manage.py ",
                "./dev.sh ",
                "earthly +",
            )
        ),
    ],
)
def test_tasks_behind_one_runner_are_not_the_same(
    repo: Repo, files: dict[str, str], gates: dict[str, str]
) -> None:
    for name, text in files.items():
        repo.write(name, text)
    assert proposed(repo) == gates


def test_a_runner_that_is_asked_for_all_has_run_each(repo: Repo) -> None:
    tasks = {"lint": "lint", "test": "test", "check": "lint typecheck test"}
    named = {task: f"turbo run {names}" for task, names in tasks.items()}
    repo.write("package.json", scripts(**named)["package.json"])
    assert proposed(repo) == {"check": "npm run check"} | {"lint": "npm run lint"}
    assert hooks_of(repo) == {"pre-commit": ["lint"], "pre-push": ["check"], "manual": ["check"]}


def test_what_gates_need_in_a_checkout_is_proposed(repo: Repo) -> None:
    for name, text in scripts(test="vitest run").items():
        repo.write(name, text)
    repo.write("package-lock.json", "{}")
    repo.write("uv.lock", "")
    done = repo.gitgates("init")
    assert b"get `uv sync --locked` and `npm ci`\n" in done.stdout
    written = (repo.path / "gitgates.toml").read_text()
    assert '[worktree]\nsetup = ["uv sync --locked", "npm ci"]\n' in written
    assert b"nothing to add" in repo.gitgates("init").stdout


@pytest.mark.parametrize(
    ("lock", "script", "runs"),
    [
        ("", "vitest", "npm test -- --run"),
        ("pnpm-lock.yaml", "vitest", "pnpm run test --run"),
        ("yarn.lock", "tsc && vitest --coverage", "yarn run test --run"),
        ("", "cross-env NODE_ENV=test vitest", "npm test -- --run"),
        ("", "vitest related", "npm test -- --run"),
        ("", "vitest run", "npm test"),
        ("", "vitest --watch=false", "npm test"),
        ("", "CI=1 vitest", "npm test"),
        ("", "ng test", "npm test -- --watch=false"),
        ("", "karma start x.js", "npm test -- --single-run"),
        ("", "react-scripts test", "npm test -- --watchAll=false"),
        ("", "jest --watch", "npx --no-install jest"),
        ("pnpm-lock.yaml", "A=b jest --watchAll --ci", "A=b pnpm exec jest --ci"),
        ("", "mocha -w x", "npx --no-install mocha x"),
        ("", "node -w 1", "npm test"),
    ],
)
def test_a_script_that_watches_is_run_once(repo: Repo, lock: str, script: str, runs: str) -> None:
    repo.write("package.json", scripts(test=script)["package.json"])
    if lock:
        repo.write(lock)
    assert proposed(repo) == {"test": runs}


@pytest.mark.parametrize("script", ["vite", "vite --host", "vitest watch", "vitest | tee log",
    "npm run unit", "jest --watch && echo", "tsc -w & vitest run"])  # fmt: skip
def test_a_script_that_watches_and_cannot_be_told_not_to_is_left_out(
    repo: Repo, script: str
) -> None:
    repo.write("package.json", scripts(test=script, unit="vitest")["package.json"])
    done = repo.gitgates("init", "--dry-run")
    gate = b'command = "npm run unit -- --run"'
    assert b"left out: npm test: it never exits, or needs a terminal (" in done.stderr
    assert (b"npm test" in done.stdout, gate in done.stdout) == (False, True)


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
    assert b"  test  pytest  (pyproject.toml: [tool.pytest.ini_options])\n" in done.stdout
    assert hooks_of(repo) == {
        "pre-commit": ["lint"],
        "pre-push": ["lint", "test"],
        "manual": ["lint", "test"],
    }
    assert b"neither locked" in repo.gitgates("init", env={"PATH": os.defpath}).stdout


def test_the_timeout_of_a_job_of_lefthook_is_kept(repo: Repo) -> None:
    jobs = "jobs: [{run: ./a, timeout: 1m30s}, {run: ./b, timeout: 1.5x}]"
    repo.write("lefthook.yml", f"pre-commit: {{{jobs}}}\n")
    done = repo.gitgates("init")
    assert b"lefthook.yml: pre-commit: ./b: its `timeout` is not understood; create" in done.stdout
    config = load(str(repo.path))
    assert config is not None
    assert [(gate.command, gate.timeout_s) for gate in config.gates] == [("./a", 90.0)]


@pytest.mark.slow
def test_a_try_tells_which_gates_have_looked_at_nothing(repo: Repo) -> None:
    repo.write("go.mod", "module x\n")  # and no file of Go
    looks = dict.fromkeys(("lint", "typecheck"), "echo looked")
    recipes = {**looks, "test": "echo 'no tests ran in 0.01s'"}
    lines = "".join(f"{name}:\n\t@{recipe}\n" for name, recipe in recipes.items())
    repo.write("Makefile", f".PHONY: {' '.join(recipes)}\n{lines}")
    repo.commit_all("start")
    done = repo.gitgates("init", "--try", "--yes")
    remarks = [
        "format: unformatted=$(gofmt",
        "test: make test: checked nothing (no tests ran in 0.01s)",
    ]
    said = [line for line in done.stdout.decode().splitlines() if line.startswith("  look at: ")]
    assert len(said) == len(remarks)
    for line, remark in zip(said, remarks, strict=True):
        assert line.startswith(f"  look at: {remark}")
    written = (repo.path / "gitgates.toml").read_text().splitlines()
    assert written[:2] == [line.replace("  look at:", "# gitgates init --try:") for line in said]
    assert hooks_of(repo)["manual"] == ["format", *recipes]


@pytest.mark.parametrize(
    ("duration_s", "output", "remark"),
    [
        (0.01, b" \n", "passed immediately without output; verify that it checks something"),
        (0.01, b"All checks passed!\n", ""),
        (0.5, b"", ""),
    ],
)
def test_a_try_asks_about_a_gate_that_passes_silently_at_once(
    duration_s: float, output: bytes, remark: str
) -> None:
    result = GateResult(gate="lint", status="passed", duration_s=duration_s, output=output)
    assert emptiness_of(result) == remark
