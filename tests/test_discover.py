"""Each source gives the tasks that its file holds; the project's own word wins."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitgates.discover.project import Project, Task
from gitgates.discover.propose import find_tasks, read_project
from gitgates.discover.tools import find_languages


def project(texts: dict[str, str], *names: str) -> Project:
    return Project(texts=texts, names=frozenset({*texts, *names}))


def tasks_of(name: str, text: str, *names: str) -> dict[str, Task]:
    tasks, _notes, troubles = find_tasks(project({name: text}, *names))
    assert troubles == []
    return {task.name: task for task in tasks}


def commands(name: str, text: str, *names: str) -> dict[str, str]:
    return {name: task.command for name, task in tasks_of(name, text, *names).items()}


def test_make() -> None:
    text = """\
.PHONY: lint test
SRC := src
lint := no
include other.mk
lint fmt: $(SRC) | venv ## checks
\t@ruff check \\
\t  src
test: ; pytest
flags: CFLAGS = -g
doubled:: x
\tone
define body
check:
endef
build/out.o: a.c
ifdef X
typecheck:
\tmypy
endif
%.o: %.c
"""
    tasks = tasks_of("Makefile", text)
    assert list(tasks) == ["lint", "fmt", "test", "doubled", "build/out.o", "typecheck"]
    assert tasks["lint"] == Task(
        name="lint",
        command="make lint",
        source="Makefile: target lint",
        body="ruff check  \t  src",
        needs=("$(SRC)", "venv"),
    )
    assert tasks["test"].body == "pytest"


def test_just() -> None:
    text = """\
set shell := ["sh", "-c"]
alias t := test
version := "1"
export X := "y"

# runs it
lint *args: deps
    ruff check {{args}}
    mypy
@test target='all' +rest="x":
  pytest
needy name:
  echo {{name}}
_hidden:
  true
[private]
check:
  true
[no-cd]
build: lint && test
watched: (needy "x y" z)
"""
    tasks = tasks_of("justfile", text)
    assert {name: task.is_private for name, task in tasks.items()} == {
        "lint": False,
        "test": False,
        "needy": True,
        "_hidden": True,
        "check": True,
        "build": False,
        "watched": False,
    }
    assert tasks["lint"].command == "just lint"
    assert (tasks["lint"].body, tasks["lint"].needs) == ("ruff check {{args}}\nmypy", ("deps",))
    assert tasks["build"].needs == ("lint", "test")
    assert tasks["watched"].needs == ("needy",)


def test_mise() -> None:
    text = """\
[tools]
python = "3"
[tasks]
lint = "ruff check"
test = ["pytest", "echo done"]
[tasks."test:unit"]
run = "pytest unit"
[tasks.check]
description = "All of it"
depends = ["lint", "test"]
[tasks.build]
hide = true
run = "x"
"""
    tasks = tasks_of("mise.toml", text)
    assert {name: task.command for name, task in tasks.items()} == {
        "lint": "mise run lint",
        "test": "mise run test",
        "test:unit": "mise run test:unit",
        "check": "mise run check",
        "build": "mise run build",
    }
    assert tasks["build"].is_private
    assert tasks["test"].body == "pytest\necho done"
    assert (tasks["check"].needs, tasks["check"].description) == (("lint", "test"), "All of it")


def test_mise_tasks_that_are_files(tmp_path: Path) -> None:
    folder = tmp_path / ".mise" / "tasks"
    folder.mkdir(parents=True)
    for name, mode in (("lint.sh", 0o755), ("test", 0o644)):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(mode)
    found, troubles = read_project(str(tmp_path))
    assert [(task.name, task.command) for task in find_tasks(found)[0]] == [
        ("lint", "mise run lint")
    ]
    assert troubles == []


@pytest.mark.parametrize(
    ("extra", "lock", "expected"),
    [
        ("", "", ("npm test", "npm run format:check")),
        ("", "package-lock.json", ("npm test", "npm run format:check")),
        ("", "pnpm-lock.yaml", ("pnpm run test", "pnpm run format:check")),
        ("", "yarn.lock", ("yarn run test", "yarn run format:check")),
        ("", "bun.lockb", ("bun run test", "bun run format:check")),
        ('"packageManager": "pnpm@9.1.0",', "", ("pnpm run test", "pnpm run format:check")),
    ],
)
def test_npm_scripts(extra: str, lock: str, expected: tuple[str, ...]) -> None:
    text = f'{{{extra} "scripts": {{"test": "jest", "format:check": "prettier -c .", "x": 1}}}}'
    found = commands("package.json", text, *([lock] if lock else []))
    assert tuple(found.values()) == expected


def test_the_test_script_of_npm_init_is_none() -> None:
    text = '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'
    assert commands("package.json", text) == {}


def test_nox() -> None:
    text = """\
import nox
@nox.session
def lint(session): session.run("ruff")
@nox.session(name="type-check", python=["3.11"])
@nox.parametrize("x", [1])
def types(session): ...
@session(venv_backend="uv")
def tests(session): ...
def helper(): ...
"""
    assert commands("noxfile.py", text) == {
        "lint": "nox -s lint",
        "type-check": "nox -s type-check",
        "tests": "nox -s tests",
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tox.ini", "[tox]\nenvlist = py3{11,12}, lint\n[testenv]\n[testenv:lint]\ncommands=a %s"),
        ("setup.cfg", "[tox:tox]\nenvlist = lint\n[testenv]\ncommands = pytest\n"),
        ("tox.toml", 'env_list = ["lint"]\n[env_run_base]\ncommands = [["pytest"]]\n'),
        ("pyproject.toml", '[tool.tox]\nlegacy_tox_ini = """\n[testenv]\n[testenv:lint]\n"""\n'),
        ("pyproject.toml", "[tool.tox.env_run_base]\nx=1\n[tool.tox.env.lint]\n"),
    ],
)
def test_tox(name: str, text: str) -> None:
    found = commands(name, text)
    assert (found["lint"], found["test"]) == ("tox -e lint", "tox -e py")


def test_a_setup_cfg_without_tox_has_no_environments() -> None:
    assert commands("setup.cfg", "[metadata]\nname = x\n") == {}


def test_task_tables() -> None:
    text = """\
[tool.poe.tasks]
lint = "ruff check"
_hidden = "x"
test = { cmd = "pytest", help = "Unit tests" }
[tool.taskipy.tasks]
check = "mypy"
[tool.pdm.scripts]
build = "x"
[tool.hatch.envs.types.scripts]
typecheck = "mypy"
[tool.hatch.envs.default.scripts]
fmt = ["black ."]
"""
    expected = {
        "lint": "poe lint",
        "test": "poe test",
        "check": "task check",
        "build": "pdm run build",
        "fmt": "hatch run fmt",
        "typecheck": "hatch run types:typecheck",
    }
    tasks = tasks_of("pyproject.toml", text)
    assert {name: task.command for name, task in tasks.items() if not task.is_private} == expected
    assert tasks["_hidden"].is_private
    with_uv = commands("pyproject.toml", text, "uv.lock")
    assert with_uv["lint"] == "uv run poe lint"


def test_taskfile() -> None:
    text = """\
version: '3'
tasks:
  lint: golangci-lint run
  test:
    desc: Unit tests
    cmds: [go test ./..., {task: lint}, {cmd: echo}, {defer: x}]
    deps: [build, {task: gen}]
  hidden: {internal: true, cmds: [x]}
  needy: {requires: {vars: [X]}, cmds: [x]}
  empty:
"""
    tasks = tasks_of("Taskfile.yml", text)
    private = [name for name, task in tasks.items() if task.is_private]
    assert (list(tasks), private) == (
        ["lint", "test", "hidden", "needy", "empty"],
        ["hidden", "needy"],
    )
    assert tasks["test"] == Task(
        name="test",
        command="task test",
        source="Taskfile.yml: task test",
        body="go test ./...\necho",
        needs=("build", "gen", "lint"),
        description="Unit tests",
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("package.json", "{"),
        ("package.json", "[]"),
        ("package.json", "[" * 100_000),
        ("mise.toml", "[tasks"),
        ("noxfile.py", "def ("),
        ("tox.ini", "no section"),
        ("Taskfile.yml", "a: [\n"),
        ("Taskfile.yml", "- a\n"),
        ("pyproject.toml", "x ="),
    ],
)
def test_broken_files_say_so(name: str, text: str) -> None:
    tasks, _notes, troubles = find_tasks(project({name: text}))
    assert (tasks, len(troubles)) == ([], 1)
    assert troubles[0].startswith(f"{name}: is no ")
    assert troubles[0].endswith("; nothing of it is used")


@pytest.mark.parametrize("text", ["{}", '{"scripts": []}', '{"scripts": null}'])
def test_a_package_without_scripts(text: str) -> None:
    assert commands("package.json", text) == {}


def test_a_broken_file_does_not_hide_the_others() -> None:
    tasks, _, troubles = find_tasks(project({"package.json": "{,}", "Makefile": "test:\n\tx\n"}))
    assert [task.command for task in tasks] == ["make test"]
    assert len(troubles) == 1
    assert troubles[0].startswith("package.json: is no valid JSON: ")


def test_unreadable_files_are_said(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_bytes(b"test:\n\t\xff\n")
    (tmp_path / "justfile").write_bytes(b"x" * (1024 * 1024 + 1))
    (tmp_path / "package.json").mkdir()
    (tmp_path / "tox.ini").symlink_to("nowhere")
    found, troubles = read_project(str(tmp_path))
    assert found.texts == {}
    assert sorted(troubles) == [
        "Makefile: cannot be read: byte 8 is not UTF-8; nothing of it is used",
        "justfile: cannot be read: it is longer than 1024 KiB; nothing of it is used",
    ]
    assert read_project(os.path.join(tmp_path, "gone"))[0].names == frozenset()


@pytest.mark.parametrize("name", ["Makefile", "justfile"])
@pytest.mark.parametrize("line", ["a" + " " * 50_000, "a " * 50_000, "a: " + "x=" * 50_000])
def test_strange_lines_take_no_exponential_time(name: str, line: str) -> None:
    assert len(tasks_of(name, f"{line}\ntest:\n\tx\n")) in (1, 2)


def test_languages() -> None:
    assert find_languages(project({}, "go.mod", "Cargo.toml", "setup.py", "tsconfig.json")) == (
        "Python",
        "Go",
        "JavaScript or TypeScript",
        "Rust",
    )
