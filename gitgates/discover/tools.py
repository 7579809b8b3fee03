"""Tools that a project has set up, and how each is called where nothing else says so. Data.

A tool is proposed only where its settings name the paths that it is about, or where it is given
them, and where the project's own environment has it. The toolchains of Go and Rust are the
environment.
"""

from __future__ import annotations

import configparser
import re

from gitgates.discover.formats import read_json, read_toml, table
from gitgates.discover.npm import local_tool, package_manager
from gitgates.discover.task import BadFile, Project, Task
from gitgates.discover.words import JAVASCRIPT, PYTHON
from gitgates.record import Record

LANGUAGES = {
    "Python": ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile"),
    "Go": ("go.mod",),
    "JavaScript or TypeScript": ("package.json", "tsconfig.json", "deno.json"),
    "Rust": ("Cargo.toml",),
}
READS = (
    *("pyproject.toml", "ruff.toml", ".ruff.toml", "setup.cfg", "tox.ini", ".flake8", "mypy.ini"),
    *(".mypy.ini", "pytest.ini", "pyrightconfig.json", "package.json", "tsconfig.json"),
    *("Cargo.toml", "uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock"),
)
_LOCKS = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm", "Pipfile.lock": "pipenv"}
_ENVIRONMENT = ".venv/bin/"  # `link`ed into private checkouts, as others are not


class Tool(Record):
    """One way to call a tool."""

    word: str
    scope: str
    command: str
    # Any of these shows it: a file (`*`: however it goes on), a section of it, keys of the section.
    signs: tuple[tuple[str, str, tuple[str, ...]], ...]
    files: tuple[str, ...] = ()
    pass_files: bool = False


_PY = ("*.py", "*.pyi")
_JS = tuple(f"*.{end}" for end in ("js", "jsx", "cjs", "mjs", "ts", "tsx", "cts", "mts"))
_TS = ("*.ts", "*.tsx", "*.cts", "*.mts", "tsconfig*.json")
_RS = ("*.rs", "Cargo.toml", "Cargo.lock")
_GO = ("*.go", "go.mod", "go.sum")
_PYPROJECT = "pyproject.toml"
_RUFF = ((_PYPROJECT, "tool.ruff", ()), ("ruff.toml", "", ()), (".ruff.toml", "", ()))
_RUFF_FORMAT = (
    *((_PYPROJECT, "tool.ruff.format", ()), ("ruff.toml", "format", ())),
    (".ruff.toml", "format", ()),
)
_FLAKE8 = tuple(
    (file, "flake8", ("exclude", "extend-exclude", "filename"))
    for file in (".flake8", "setup.cfg", "tox.ini")
)
_MYPY = tuple(
    (file, section, ("files", "packages", "modules"))
    for file, section in (
        *((_PYPROJECT, "tool.mypy"), ("mypy.ini", "mypy"), (".mypy.ini", "mypy")),
        ("setup.cfg", "mypy"),
    )
)
_PYTEST = tuple(
    (file, section, ("testpaths",))
    for file, section in (
        *((_PYPROJECT, "tool.pytest.ini_options"), (_PYPROJECT, "tool.pytest")),
        *(("pytest.ini", "pytest"), ("setup.cfg", "tool:pytest"), ("tox.ini", "pytest")),
    )
)
_GOFMT = 'test -z "$(gofmt -l "$@" | tee /dev/stderr)"'  # gofmt -l exits 0 whatever it finds

TOOLS: tuple[Tool, ...] = (
    Tool(
        "format",
        PYTHON,
        "ruff format --check --force-exclude",
        _RUFF_FORMAT,
        files=_PY,
        pass_files=True,
    ),
    Tool("format", PYTHON, "black --check .", ((_PYPROJECT, "tool.black", ()),), _PY),
    Tool("lint", PYTHON, "ruff check --no-fix --force-exclude", _RUFF, files=_PY, pass_files=True),
    Tool("lint", PYTHON, "flake8", _FLAKE8, _PY),
    Tool("typecheck", PYTHON, "mypy", _MYPY, _PY),
    Tool(
        "typecheck",
        PYTHON,
        "pyright",
        ((_PYPROJECT, "tool.pyright", ("include",)), ("pyrightconfig.json", "", ("include",))),
        _PY,
    ),
    Tool("typecheck", PYTHON, "ty check", ((_PYPROJECT, "tool.ty.src", ("include",)),), _PY),
    Tool("test", PYTHON, "pytest", _PYTEST),
    Tool(
        "format",
        JAVASCRIPT,
        "prettier --check --ignore-unknown",
        (("prettier.config.*", "", ()), (".prettierrc*", "", ()), ("package.json", "prettier", ())),
        pass_files=True,
    ),
    Tool("lint", JAVASCRIPT, "biome check", (("biome.json*", "", ()),)),
    Tool(
        "lint",
        JAVASCRIPT,
        "eslint .",
        (
            *(("eslint.config.*", "", ()), (".eslintrc*", "", ())),
            ("package.json", "eslintConfig", ()),
        ),
        _JS,
    ),
    # With `references`, `tsc --noEmit` looks at nothing.
    Tool(
        "typecheck",
        JAVASCRIPT,
        "tsc --noEmit",
        (("tsconfig.json", "", ("include", "files")),),
        _TS,
    ),
    Tool("test", JAVASCRIPT, "vitest run", (("vitest.config.*", "", ()),)),
    Tool(
        "test",
        JAVASCRIPT,
        "jest",
        (("jest.config.*", "", ()), ("package.json", "jest", ())),
    ),
    Tool("format", "go", _GOFMT, (("go.mod", "", ()),), ("*.go", "!vendor/"), pass_files=True),
    Tool("lint", "go", "golangci-lint run", ((".golangci.*", "", ()),), _GO),
    Tool("lint", "go", "go vet ./...", (("go.mod", "", ()),), _GO),
    Tool("test", "go", "go test ./...", (("go.mod", "", ()),)),
    Tool(
        "format",
        "rust",
        "cargo fmt --all --check",
        (("rustfmt.toml", "", ()), (".rustfmt.toml", "", ())),
        _RS,
    ),
    Tool(
        "lint",
        "rust",
        "cargo clippy --workspace --all-targets",
        (
            *(("clippy.toml", "", ()), (".clippy.toml", "", ())),
            *(("Cargo.toml", "lints", ("clippy",)), ("Cargo.toml", "workspace.lints", ("clippy",))),
        ),
        _RS,
    ),
    Tool("check", "rust", "cargo check --workspace --all-targets", (("Cargo.toml", "", ()),), _RS),
    Tool("test", "rust", "cargo test --workspace", (("Cargo.toml", "", ()),)),
)


def find_languages(project: Project) -> tuple[str, ...]:
    """Return the languages that the files in the root show."""
    return tuple(name for name, files in LANGUAGES.items() if project.names & set(files))


def find_defaults(project: Project) -> list[Task]:
    """Return a task for each tool that is set up."""
    tasks = []
    for tool in TOOLS:
        sign = next((found for sign in tool.signs if (found := _shows(project, *sign))), "")
        if not sign:
            continue
        command, missing = resolve(tool.command, tool.scope, project)
        keys: dict[str, object] = {"files": list(tool.files)} if tool.files else {}
        keys |= {"pass_files": True} if tool.pass_files else {}
        tasks.append(
            Task(
                name=tool.word,
                command=command,
                source=sign,
                scope=tool.scope,
                body=tool.command,
                missing=missing,
                is_default=True,
                keys=keys,
            )
        )
    return tasks


def resolve(command: str, scope: str, project: Project) -> tuple[str, str]:
    """Return a command that runs in the project's own environment, or why there is none.

    Programs of other languages than Python and JavaScript are taken as they are.
    """
    program = command.partition(" ")[0]
    if scope == JAVASCRIPT:
        is_there = f"node_modules/.bin/{program}" in project.names
        missing = "" if is_there else f"there is no node_modules/.bin/{program}"
        return local_tool(manager_of(project), command), missing
    if scope != PYTHON:
        return command, ""
    pattern = re.compile(rf'(?m)^(?:name = "{re.escape(program)}"$|\s*"{re.escape(program)}": \{{)')
    for lock, manager in _LOCKS.items():
        if pattern.search(project.texts.get(lock, "")):
            return f"{manager} run {command}", ""
    if _ENVIRONMENT + program in project.names:
        return f"{_ENVIRONMENT}{command}", ""
    return command, f"not in a lock file, and no {_ENVIRONMENT}{program}"


def manager_of(project: Project) -> str:
    """Return the package manager of a JavaScript project."""
    return package_manager(_read(project, "package.json"), project)


def runner_prefix(project: Project) -> str:
    """Return what to write before a tool so that the project's own environment runs it."""
    return next((f"{name} run " for lock, name in _LOCKS.items() if lock in project.names), "")


def _shows(project: Project, file: str, section: str, keys: tuple[str, ...]) -> str:
    """Return where a sign was found, for a person; empty where it was not."""
    if file.endswith("*"):
        found = sorted(name for name in project.names if name.startswith(file[:-1]))
        return found[0] if found else ""
    if file not in project.names:
        return ""
    if not section and not keys:
        return file
    settings = _read(project, file)
    *above, last = section.split(".") if file.endswith((".toml", ".json")) else [section]
    if section:
        value = table(settings, *above).get(last)
        settings = table(value)
        if value is None:
            return ""
    if file == "tsconfig.json" and "references" in settings:
        return ""
    if keys and not settings.keys() & set(keys):
        return ""
    return f"{file}: [{section}]" if section else file


def _read(project: Project, file: str) -> dict[str, object]:
    """Return the settings of a file; what cannot be read has none."""
    text = project.texts.get(file, "")
    try:
        if file.endswith(".toml"):
            return read_toml(text)
        if file.endswith(".json"):
            return read_json(text)
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        parser.read_string(text)
    except (BadFile, configparser.Error):
        return {}
    return {name: dict(parser[name]) for name in parser.sections()}
