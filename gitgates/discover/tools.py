"""Tools that a project has set up, or that its CI runs, and how each is called in its environment.

A tool is proposed only where its settings name the paths that it is about, or where it is given
them, and where the project's own environment has it. The toolchains of Go and Rust are the
environment. A workflow of GitHub says how a project calls its tools, and that they pass.
"""

from __future__ import annotations

import re

from gitgates.discover.project import BadFile, Project, Task, table, tables, texts
from gitgates.discover.words import (
    JAVASCRIPT,
    PYTHON,
    is_fixing,
    kind_of,
    language_of,
    lines_of,
    program_of,
)
from gitgates.record import Record

LANGUAGES = {
    "Python": ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile"),
    "Go": ("go.mod",),
    "JavaScript or TypeScript": ("package.json", "tsconfig.json", "deno.json"),
    "Rust": ("Cargo.toml",),
}
_LOCKS = {"uv.lock": "uv", "poetry.lock": "poetry", "pdm.lock": "pdm", "Pipfile.lock": "pipenv"}
_NODE_LOCKS = {
    "pnpm-lock.yaml": "pnpm",
    "yarn.lock": "yarn",
    "bun.lock": "bun",
    "bun.lockb": "bun",
    "package-lock.json": "npm",
    "npm-shrinkwrap.json": "npm",
}
_ENVIRONMENT = ".venv/bin/"  # `link`ed into private checkouts, as others are not


class Tool(Record):
    """One way to call a tool."""

    word: str
    scope: str
    command: str
    # Any of these shows it: a file (`*`: however it goes on), a section of it, keys in there.
    signs: tuple[str, ...]
    files: tuple[str, ...] = ()
    pass_files: bool = False


_PY = ("*.py", "*.pyi")
_JS = tuple(f"*.{end}" for end in ("js", "jsx", "cjs", "mjs", "ts", "tsx", "cts", "mts"))
_TS = ("*.ts", "*.tsx", "*.cts", "*.mts", "tsconfig*.json")
_RS = ("*.rs", "Cargo.toml", "Cargo.lock")
_GO = ("*.go", "go.mod", "go.sum")
_FLAKE8 = tuple(
    f"{file} [flake8] exclude extend-exclude filename"
    for file in (".flake8", "setup.cfg", "tox.ini")
)
_MYPY_FILES = ("mypy.ini", ".mypy.ini", "setup.cfg")
_MYPY = tuple(
    f"{section} files packages modules"
    for section in ("pyproject.toml [tool.mypy]", *(f"{f} [mypy]" for f in _MYPY_FILES))
)
_PYTEST = (
    *(
        "pyproject.toml [tool.pytest.ini_options] testpaths",
        "pyproject.toml [tool.pytest] testpaths",
    ),
    *("pytest.ini [pytest] testpaths", "setup.cfg [tool:pytest] testpaths"),
    "tox.ini [pytest] testpaths",
)
_PYRIGHT = ("pyproject.toml [tool.pyright] include", "pyrightconfig.json [] include")
_RUFF = ("pyproject.toml [tool.ruff]", "ruff.toml", ".ruff.toml")
_RUFF_FORMAT = ("pyproject.toml [tool.ruff.format]", "ruff.toml [format]", ".ruff.toml [format]")
_PRETTIER = ("prettier.config.*", ".prettierrc*", "package.json [prettier]")
_ESLINT = ("eslint.config.*", ".eslintrc*", "package.json [eslintConfig]")
_CLIPPY = (
    *("clippy.toml", ".clippy.toml"),
    *("Cargo.toml [lints] clippy", "Cargo.toml [workspace.lints] clippy"),
)
_GOFMT = 'test -z "$(gofmt -l "$@" | tee /dev/stderr)"'  # gofmt -l exits 0 whatever it finds

TOOLS: tuple[Tool, ...] = (
    Tool("format", PYTHON, "ruff format --check --force-exclude", _RUFF_FORMAT, _PY, True),
    Tool("format", PYTHON, "black --check .", ("pyproject.toml [tool.black]",), _PY),
    Tool("lint", PYTHON, "ruff check --no-fix --force-exclude", _RUFF, _PY, True),
    Tool("lint", PYTHON, "flake8", _FLAKE8, _PY),
    Tool("typecheck", PYTHON, "mypy", _MYPY, _PY),
    Tool("typecheck", PYTHON, "pyright", _PYRIGHT, _PY),
    Tool("typecheck", PYTHON, "ty check", ("pyproject.toml [tool.ty.src] include",), _PY),
    Tool("test", PYTHON, "pytest", _PYTEST),
    Tool("format", JAVASCRIPT, "prettier --check --ignore-unknown", _PRETTIER, (), True),
    Tool("lint", JAVASCRIPT, "biome check", ("biome.json*",)),
    Tool("lint", JAVASCRIPT, "eslint .", _ESLINT, _JS),
    # With `references`, `tsc --noEmit` looks at nothing.
    Tool("typecheck", JAVASCRIPT, "tsc --noEmit", ("tsconfig.json [] include files",), _TS),
    Tool("test", JAVASCRIPT, "vitest run", ("vitest.config.*",)),
    Tool("test", JAVASCRIPT, "jest", ("jest.config.*", "package.json [jest]")),
    Tool("format", "go", _GOFMT, ("go.mod",), ("*.go", "!vendor/"), True),
    Tool("lint", "go", "golangci-lint run", (".golangci.*",), _GO),
    Tool("lint", "go", "go vet ./...", ("go.mod",), _GO),
    Tool("test", "go", "go test ./...", ("go.mod",)),
    Tool("format", "rust", "cargo fmt --all --check", ("rustfmt.toml", ".rustfmt.toml"), _RS),
    Tool("lint", "rust", "cargo clippy --workspace --all-targets", _CLIPPY, _RS),
    Tool("check", "rust", "cargo check --workspace --all-targets", ("Cargo.toml",), _RS),
    Tool("test", "rust", "cargo test --workspace", ("Cargo.toml",)),
)
READS = (
    *dict.fromkeys(sign.partition(" [")[0] for tool in TOOLS for sign in tool.signs if "[" in sign),
    *_LOCKS,
)


def find_languages(project: Project) -> tuple[str, ...]:
    """Return the languages that the files in the root show."""
    return tuple(name for name, files in LANGUAGES.items() if project.names & set(files))


def find_defaults(project: Project) -> list[Task]:
    """Return a task for each tool that is set up."""
    tasks = []
    for tool in TOOLS:
        source = next((found for sign in tool.signs if (found := _source(project, sign))), "")
        if not source:
            continue
        command, missing = resolve(tool.command, tool.scope, project)
        keys: dict[str, object] = {"files": list(tool.files)} if tool.files else {}
        keys |= {"pass_files": True} if tool.pass_files else {}
        tasks.append(
            Task(
                name=tool.word,
                command=command,
                source=source,
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
        return local_tool(command, project), missing
    if scope != PYTHON:
        return command, ""
    pattern = re.compile(rf'(?m)^(?:name = "{re.escape(program)}"$|\s*"{re.escape(program)}": \{{)')
    for lock, manager in _LOCKS.items():
        if pattern.search(project.texts.get(lock, "")):
            return f"{manager} run {command}", ""
    if _ENVIRONMENT + program in project.names:
        return f"{_ENVIRONMENT}{command}", ""
    return command, f"not in a lock file, and no {_ENVIRONMENT}{program}"


def local_tool(command: str, project: Project) -> str:
    """Return a command that runs a tool of node_modules, and never downloads one."""
    match package_manager(project):
        case "pnpm":
            return f"pnpm exec {command}"
        case "yarn" | "bun" as manager:
            return f"{manager} run {command}"
        case _:
            return f"npx --no-install {command}"


def package_manager(project: Project) -> str:
    """Return npm, pnpm, yarn or bun: the one that package.json names, else the lock file's."""
    package = load_or_empty(project, "package.json")
    named = str(package.get("packageManager", "")).partition("@")[0]
    if named in _NODE_LOCKS.values():
        return named
    return next((manager for lock, manager in _NODE_LOCKS.items() if lock in project.names), "npm")


def runner_prefix(project: Project) -> str:
    """Return what to write before a tool so that the project's own environment runs it."""
    return next((f"{name} run " for lock, name in _LOCKS.items() if lock in project.names), "")


def load_or_empty(project: Project, file: str) -> dict[str, object]:
    """Return the settings of a file; what cannot be read has none."""
    try:
        return project.load(file)
    except BadFile:
        return {}  # said when its tasks are looked for


def _source(project: Project, sign: str) -> str:
    """Return where a sign was found, for a person; empty if it was not."""
    file, has_more, rest = sign.partition(" [")
    section, _, keys = rest.partition("]")
    if file.endswith("*"):
        found = sorted(name for name in project.names if name.startswith(file[:-1]))
        return found[0] if found else ""
    if file not in project.names or not has_more:
        return file if file in project.names else ""
    settings = load_or_empty(project, file)
    *above, last = section.split(".") if file.endswith((".toml", ".json")) else [section]
    if section:
        value = table(settings, *above).get(last)
        settings = table(value)
        if value is None:
            return ""
    if file == "tsconfig.json" and "references" in settings:
        return ""
    if keys and not settings.keys() & set(keys.split()):
        return ""
    return f"{file}: [{section}]" if section else file


WORKFLOWS = ".github/workflows"
_CHECKED_EVENTS = {"push", "pull_request"}
_NO_CHECK = re.compile(r"release|publish|deploy|docs|nightly|fuzz|bench|wheel|cron", re.IGNORECASE)
# What a runner fills in, or what is about more than one command.
_NOT_PLAIN = re.compile(r"[$`|<>*(){}\\]|^\w+=|^(?:sudo|if|for|case|while)\b|--install|\bcodecov\b")
# Asks for something else, checks a part, or writes reports into the working tree.
_IN_PART = re.compile(
    r"--(?:version|help|bin|lib|package|doc|lf|target|directory|project|manifest-path|test|example"
    r"|features|no-default-features|collect-only|profile|release)\b|(?:^|\s)-[pkmC] |::"
    r"| version$|(?:xml|html|json|coverprofile)[=:]|--junit"
)
_BARE = re.compile(r"(?:python[\d.]*\s+-m\s+)?(?=[a-z])|npx\s+(?:--no-install\s+)?")


def workflows(project: Project) -> tuple[str, ...]:
    """Return the workflows that may check a change."""
    return tuple(
        name
        for name in sorted(project.names)
        if name.startswith(f"{WORKFLOWS}/")
        and name.endswith((".yml", ".yaml"))
        and not _NO_CHECK.search(name)
    )


def find_in_workflow(name: str, project: Project) -> list[Task]:
    """Return the commands of one workflow that are plain."""
    try:
        settings = project.load(name)
    except BadFile:
        return []  # it is GitHub's to complain
    events = table(settings).get("on", table(settings).get("True"))  # `on` is true in YAML
    if not _CHECKED_EVENTS & {*texts(events), *table(events)}:
        return []
    tasks = []
    for job in table(settings, "jobs").values():
        for step in tables(table(job).get("steps")):
            script = step.get("run")
            if not isinstance(script, str) or "working-directory" in step:
                continue
            found = (_ci_task(line, name, project) for line in lines_of(script))
            tasks += [task for task in found if task]
    return tasks


def _ci_task(line: str, source: str, project: Project) -> Task | None:
    """Return a line as a task; None for what is no check, or one of a part only."""
    program = program_of(line)
    kind = kind_of(program)
    if not kind or _NOT_PLAIN.search(line) or _IN_PART.search(line) or is_fixing(line):
        return None
    first = program.partition(" ")[0]
    scope = language_of(program)
    if first in ("tox", "nox"):
        return None  # their own files say more
    command, missing = line, ""
    if scope in (PYTHON, JAVASCRIPT):
        bare = line[found.end() :] if (found := _BARE.match(line)) else line
        if bare.startswith(first):
            line = bare
            bare = bare.replace("ruff check", "ruff check --no-fix")  # its settings may say `fix`
            command, missing = resolve(bare, scope, project)
    return Task(
        name=kind,
        command=command,
        source=source,
        scope=scope,
        body=line,
        missing=missing,
        is_ci=True,
    )
