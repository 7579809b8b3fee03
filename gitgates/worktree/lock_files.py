"""The files that say which packages a project has, and the commands that install these."""

from __future__ import annotations

import os

# Not Cargo.lock and go.sum: those tools fetch what they need when they build.
INSTALL_COMMANDS = {
    "uv.lock": "uv sync --locked",
    "poetry.lock": "POETRY_VIRTUALENVS_IN_PROJECT=1 poetry install",
    "pdm.lock": "pdm sync",
    "Pipfile.lock": "PIPENV_VENV_IN_PROJECT=1 pipenv sync --dev",
    "pnpm-lock.yaml": "pnpm install --frozen-lockfile",
    "yarn.lock": "yarn install --immutable",
    "bun.lock": "bun install --frozen-lockfile",
    "bun.lockb": "bun install --frozen-lockfile",
    "package-lock.json": "npm ci",
    "npm-shrinkwrap.json": "npm ci",
    "composer.lock": "composer install",
    "Gemfile.lock": "bundle install",
    "mix.lock": "mix deps.get",
    "requirements.txt": "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt",
}
LOCK_FILES = (
    *INSTALL_COMMANDS,
    *("pyproject.toml", "pylock*.toml", "requirements*.txt", "setup.py", "setup.cfg"),
    *("package.json", "pnpm-workspace.yaml", "Cargo.lock", "go.mod", "go.sum"),
)


_PYTHON = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock", "requirements.txt")
_NODE = ("pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb", "package-lock.json")
_FIRST_YARN = b"# yarn lockfile v1"  # its command has another option for the same


def install_commands(root_abs: str) -> tuple[str, ...]:
    """Return the commands for the files in the root of a project; of a language, one."""
    from gitgates.store.files import read_or_empty  # the schema is made without POSIX, too

    names = os.listdir(root_abs)
    python = [name for name in _PYTHON if name in names]
    node = [name for name in (*_NODE, "npm-shrinkwrap.json") if name in names]
    others = [n for n in INSTALL_COMMANDS if n not in (*_PYTHON, *_NODE, *node) and n in names]
    commands = [INSTALL_COMMANDS[name] for name in (*python[:1], *node[:1], *others)]
    if _FIRST_YARN in read_or_empty(f"{root_abs}/yarn.lock"):
        commands = [text.replace("--immutable", "--frozen-lockfile") for text in commands]
    return tuple(commands)


def as_setting(commands: tuple[str, ...]) -> str | list[str]:
    """Return commands as the value of `setup`, in the shortest form."""
    return commands[0] if len(commands) == 1 else [*commands]
