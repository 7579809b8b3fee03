"""Python: the tools that a project has evidently set up."""

from __future__ import annotations

import re

from gitgates.discover.formats import read_toml, table
from gitgates.discover.task import BadFile, Project, Task, defaults

LANGUAGE = "Python"
SCOPE = "python"
MARKERS = ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile", "noxfile.py")
READS = (
    *("pyproject.toml", "setup.cfg", "tox.ini", "ruff.toml", ".ruff.toml", "Pipfile"),
    *("mypy.ini", ".mypy.ini"),
    *("requirements.txt", "requirements-dev.txt", "dev-requirements.txt", "requirements_dev.txt"),
    *("requirements/dev.txt", "requirements/dev.in", "requirements-test.txt"),
)

_PYTHON = ("*.py", "*.pyi")
_LOCKS = {"uv.lock": "uv run ", "poetry.lock": "poetry run ", "pdm.lock": "pdm run "}
_FIRST_WORD = re.compile(r"^[ \t\"'-]*([A-Za-z0-9][A-Za-z0-9._-]*)", re.MULTILINE)


def runner_prefix(project: Project) -> str:
    """Return what to write before a tool so that the project's own environment runs it."""
    return next((prefix for lock, prefix in _LOCKS.items() if lock in project.names), "")


def find_defaults(project: Project) -> list[Task]:
    """Return a task for each tool that the project's files show to be in use."""
    signs = _signs(project)
    tools = (
        ("format", "ruff format --check --force-exclude", "ruff format", _PYTHON, True),
        ("format", "black --check .", "black", _PYTHON, False),
        ("lint", "ruff check --force-exclude", "ruff check", _PYTHON, True),
        ("lint", "flake8", "flake8", _PYTHON, False),
        ("typecheck", _mypy(project), "mypy", _PYTHON, False),
        ("typecheck", "pyright", "pyright", _PYTHON, False),
        ("test", "pytest", "pytest", (), False),
    )
    return defaults(tools, signs, SCOPE, lambda command: f"{runner_prefix(project)}{command}")


def _signs(project: Project) -> dict[str, str]:
    """Return tool → where it shows that the tool is in use; the clearest sign comes last."""
    texts = project.texts
    return {
        **{_DEPENDENCIES[name]: at for name, at in _asked_for(project) if name in _DEPENDENCIES},
        **{tool: file for tool, file in _CONFIG_FILES if file in project.names},
        **{
            tool: f"{file}: [{section}"
            for tool, file, section in _SECTIONS
            if f"[{section}" in texts.get(file, "")
        },
        **{
            tool: f"pyproject.toml: [tool.{'.'.join(path)}]"
            for tool, *path in _TABLES
            if path[-1] in _pyproject(project, "tool", *path[:-1])
        },
    }


# That ruff is asked for does not show that it formats, too.
_DEPENDENCIES = {
    "ruff": "ruff check",
    **{name: name for name in ("black", "flake8", "mypy", "pyright", "pytest")},
}
_CONFIG_FILES = (
    ("ruff check", "ruff.toml"),
    ("ruff check", ".ruff.toml"),
    ("flake8", ".flake8"),
    ("mypy", "mypy.ini"),
    ("mypy", ".mypy.ini"),
    ("pyright", "pyrightconfig.json"),
    ("pytest", "conftest.py"),
    ("pytest", "pytest.ini"),
)
_SECTIONS = (
    ("flake8", "setup.cfg", "flake8]"),
    ("flake8", "tox.ini", "flake8]"),
    ("mypy", "setup.cfg", "mypy]"),
    ("pytest", "setup.cfg", "tool:pytest]"),
    ("pytest", "tox.ini", "pytest]"),
    ("ruff format", "ruff.toml", "format]"),
    ("ruff format", ".ruff.toml", "format]"),
)
_TABLES = (
    ("ruff check", "ruff"),
    ("ruff format", "ruff", "format"),
    ("black", "black"),
    ("mypy", "mypy"),
    ("pyright", "pyright"),
    ("pytest", "pytest"),
)


def _mypy(project: Project) -> str:
    settings = _pyproject(project, "tool", "mypy")
    names_files = settings.keys() & {"files", "packages", "modules"}
    for file in ("mypy.ini", ".mypy.ini", "setup.cfg"):
        if re.search(r"^(?:files|packages|modules)\s*=", project.texts.get(file, ""), re.MULTILINE):
            return "mypy"
    return "mypy" if names_files else "mypy ."


def _asked_for(project: Project) -> list[tuple[str, str]]:
    """Return the name of each package that the project asks for, and where it does."""
    listed: list[object] = [
        _pyproject(project, "project").get("dependencies"),
        *_pyproject(project, "project", "optional-dependencies").values(),
        *_pyproject(project, "dependency-groups").values(),
        *_pyproject(project, "tool", "pdm", "dev-dependencies").values(),
        _pyproject(project, "tool", "uv").get("dev-dependencies"),
        list(_pyproject(project, "tool", "poetry", "dependencies")),
        list(_pyproject(project, "tool", "poetry", "dev-dependencies")),
        *(
            list(table(group, "dependencies"))
            for group in _pyproject(project, "tool", "poetry", "group").values()
        ),
    ]
    lines = {"pyproject.toml": "\n".join(str(i) for v in listed if isinstance(v, list) for i in v)}
    for file in READS:
        if "requirements" in file or file == "Pipfile":
            lines[file] = project.texts.get(file, "")
    return [
        (name.lower(), f"{file}: {name}")
        for file, text in lines.items()
        for name in _FIRST_WORD.findall(text)
    ]


def _pyproject(project: Project, *path: str) -> dict[str, object]:
    try:
        return table(read_toml(project.texts.get("pyproject.toml", "")), *path)
    except BadFile:
        return {}
