"""Each source gives the tasks that its file holds; the project's own word wins."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gitgates.setup.discover.project import Project, Task
from gitgates.setup.discover.propose import find_tasks, read_project
from gitgates.setup.discover.tools import find_languages


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
        (
            "tox.ini",
            "[tox]\nenvlist=py3{11,12}, lint\n[testenv]\ncommands=b\n[testenv:lint]\ncommands=a %s",
        ),
        ("setup.cfg", "[tox:tox]\nenvlist = lint\n[testenv]\ncommands = pytest\n"),
        ("tox.toml", 'env_list = ["lint"]\n[env_run_base]\ncommands = [["pytest"]]\n'),
        ("pyproject.toml", '[tool.tox]\nlegacy_tox_ini = """\n[testenv]\ncommands=x\n"""\n'),
        (
            "pyproject.toml",
            "[tool.tox.env_run_base]\ncommands = [['x']]\n[tool.tox.env.lint]\n",
        ),
    ],
)
def test_tox(name: str, text: str) -> None:
    found = commands(name, text)
    assert found.get("lint", "tox -e lint") == "tox -e lint"
    assert found["test"] == "tox -e py"


TYPING = """[testenv:typing-{mypy,pyright}]
commands =
    mypy: mypy src
    pyright: pyright
"""
FACTORS = """[testenv]
commands =
    tests: pytest {posargs}
    tests-cov: coverage report
    !tests: {[testenv:style]commands}
[testenv:style]
commands = ruff check \\
    src
"""


@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "tox.ini",
            f"[tox]\nenv_list = 3.1{{0-4}}-tests{{,-cov}}\n{FACTORS}",
            {"tests": "tox -e 3.12-tests", "style": "tox -e style"},
        ),
        (
            "tox.ini",
            f"[tox]\nenvlist =\n  # no\n  py39-docs\n{TYPING}",
            {"typing": "tox -e typing-mypy"},
        ),
        (
            "tox.ini",
            "[tox]\nenvlist = typing-pyright\n[testenv]\ncommands = pyright\n",
            {"typing": "tox -e typing-pyright"},
        ),
        (
            "setup.cfg",
            """\
[tox:tox]
envlist = py3{9,11}-django{4,5}, package-check
[testenv]
deps = django4: x
commands = pytest
[testenv:package-check]
commands = twine check
""",
            {
                "test": "tox -e py311-django4",
                "django4": "tox -e py311-django4",
                "django5": "tox -e py311-django5",
                "package-check": "tox -e package-check",
            },
        ),
        (
            "tox.toml",
            """\
env_list = [{product = [{prefix = "3.", start = 9, stop = 11}, ["tests", "docs"]]}, "lint"]
[env_run_base]
commands = [{replace = "if", condition = "factor.tests", then = [["pytest"]], extend = true}]
[env.lint]
commands = [{replace = "ref", of = ["env", "style", "commands"], extend = true}]
[env.style]
commands = [["ruff", "check", {replace = "posargs", extend = true}]]
""",
            {"tests": "tox -e 3.11-tests", "lint": "tox -e lint", "style": "tox -e style"},
        ),
        (
            "pyproject.toml",
            """\
[tool.tox.env_base.test]
factors = [["py39", "py312"], ["x"]]
commands = [["pytest"]]
""",
            {"test": "tox -e test-py312-x"},
        ),
        ("tox.ini", "[tox]\nenv_list = py311\n[testenv]\ndeps = x\n", {}),
        ("tox.ini", "[tox]\nenv_list = py{1-99999999}{1-9999999}\n", {}),
    ],
)
def test_environments_of_tox_are_those_that_it_lists(
    name: str, text: str, expected: dict[str, str]
) -> None:
    in_path = frozenset({"python3.11", "python3.12", "python3.9"})
    found = find_tasks(project({name: text})._replace(in_path=in_path))[0]
    usable = [task for task in found if not (task.missing or task.is_private)]
    assert {task.name: task.command for task in usable} == expected


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
    assert troubles[0].startswith(f"{name}: is not ")
    assert troubles[0].endswith("; ignored")


@pytest.mark.parametrize("text", ["{}", '{"scripts": []}', '{"scripts": null}'])
def test_a_package_without_scripts(text: str) -> None:
    assert commands("package.json", text) == {}


def test_a_broken_file_does_not_hide_the_others() -> None:
    tasks, _, troubles = find_tasks(project({"package.json": "{,}", "Makefile": "test:\n\tx\n"}))
    assert [task.command for task in tasks] == ["make test"]
    assert len(troubles) == 1
    assert troubles[0].startswith("package.json: is not valid JSON: ")


def test_a_shim_says_nothing_of_what_it_starts(tmp_path: Path) -> None:
    for folder, name in (("shims", "python3.13"), ("shims", "python3.11"), ("bin", "python3.11")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).write_text("#!/bin/sh\n")
        (tmp_path / folder / name).chmod(0o755)
    (tmp_path / "tox.ini").write_text(f"[tox]\nenv_list = py31{{1,3}}-tests\n{FACTORS}")
    found = read_project(str(tmp_path), f"{tmp_path}/shims:{tmp_path}/bin")[0]
    assert [t.command for t in find_tasks(found)[0] if t.name == "tests"] == ["tox -e py311-tests"]


def test_unreadable_files_are_said(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_bytes(b"test:\n\t\xff\n")
    (tmp_path / "justfile").write_bytes(b"x" * (1024 * 1024 + 1))
    (tmp_path / "package.json").mkdir()
    (tmp_path / "tox.ini").symlink_to("nowhere")
    found, troubles = read_project(str(tmp_path))
    assert found.texts == {}
    assert sorted(troubles) == [
        "Makefile: cannot be read: byte 8 is not UTF-8; ignored",
        "justfile: cannot be read: it is longer than 1024 KiB; ignored",
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


LOCKED = "".join(f'[[package]]\nname = "{name}"\n' for name in ("tox", "nox", "pyright", "ruff"))
GROUPS = """\
[project]
dependencies = []
[project.optional-dependencies]
lint = ["ruff>=0.1"]
[dependency-groups]
dev = [{include-group = "test"}]
test = ["Tox[x]"]
typing = ["pyright ; python_version > '3'", "nox"]
[tool.ruff]
[tool.pyright]
include = ["src"]
"""


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (
            "",
            [
                "uv run tox -e lint",
                "uv run --group typing nox -s x",
                "uv run --group typing pyright",
            ],
        ),
        (
            "[tool.uv]\ndefault-groups = 'all'\n",
            ["uv run tox -e lint", "uv run nox -s x", "uv run pyright"],
        ),
        (
            "[tool.uv]\ndefault-groups = ['typing']\n",
            ["uv run --group dev tox -e lint", "uv run nox -s x", "uv run pyright"],
        ),
    ],
)
def test_uv_is_told_the_group_that_it_leaves_out(settings: str, expected: list[str]) -> None:
    texts = {
        "pyproject.toml": GROUPS + settings,
        "uv.lock": LOCKED,
        "tox.ini": "[testenv:lint]\ncommands = x\n",
        "noxfile.py": "@nox.session\ndef x(session): ...\n",
    }
    found = [task.command for task in find_tasks(project(texts))[0]]
    assert [command for command in expected if command not in found] == []
    assert "uv run --extra lint ruff check --no-fix --force-exclude" in found
