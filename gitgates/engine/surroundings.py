"""What a gate declares to depend on, beside the content: variables, and files elsewhere."""

from __future__ import annotations

import os

from gitgates.engine.tools import signature, variables

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from gitgates.core.types import Command, Gate
    from gitgates.git.repo import Repo

_CONFIG = "~/.config/"  # XDG_CONFIG_HOME names another place
# They decide what Python and Node.js import, and what is checked at all.
_VARIABLES = (
    *("NODE_ENV", "NODE_OPTIONS", "NODE_PATH", "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV"),
    *("GOFLAGS", "MAKEFLAGS", "PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTHONOPTIMIZE"),
    *("PYTHONWARNINGS", "RUSTFLAGS"),
)
# They leave out hooks of the pre-commit framework, whose programs have these names.
_SKIPS, _FRAMEWORKS = ("PREK_SKIP", "SKIP"), ("pre-commit", "prek")

# What make itself sets for what it starts, and what says only what it prints.
_MAKES_OWN = {"w", "--no-print-directory"}


def surroundings(
    gate: Gate,
    command: Command,
    repo: Repo,
    checkout: Repo | None = None,
    *,
    by: Any = None,  # noqa: ANN401 - a Description of portable.py, which asks this
) -> Iterator[str]:
    """Yield the variables and files elsewhere that a gate declares; `by`: as on any machine."""
    root_abs = (checkout or repo).root_abs
    named = {*_named(gate.env_inputs, command.env), *variables(command)}
    runs_hooks = any(name in arg for name in _FRAMEWORKS for arg in command.argv)
    for name in sorted({*_VARIABLES, *named, *(_SKIPS if runs_hooks else ())}):
        value = command.env.get(name)
        if name == "MAKEFLAGS" and {*(value or "").split()} <= _MAKES_OWN:
            value = None
        text = by.variable(name, value, is_named=name in named) if by else value
        yield f"{name}={text!r}"
    for path in gate.reads:
        for place_abs in _places(path, root_abs, repo, checkout):
            place = path
            if by and path.startswith("../"):
                place = os.path.relpath(place_abs, repo.root_abs)
            yield by.file(place_abs, place) if by else signature(place_abs)


def _places(path: str, root_abs: str, repo: Repo, checkout: Repo | None) -> Iterator[str]:
    """Yield the files that are meant; `../NAME` is one in any folder above the root."""
    if path.startswith("~/"):
        yield f"{repo.env.get('HOME', '')}/{path[2:]}"
        if path.startswith(_CONFIG) and (folder_abs := repo.env.get("XDG_CONFIG_HOME")):
            yield f"{folder_abs}/{path.removeprefix(_CONFIG)}"
    elif path.startswith("../"):
        folder_abs = root_abs
        while (above_abs := os.path.dirname(folder_abs)) != folder_abs:
            folder_abs = above_abs
            place_abs = os.path.join(folder_abs, path[3:])
            # A file of the user's root may be above a private checkout with the same.
            is_users = checkout and place_abs == f"{repo.root_abs}/{path[3:]}"
            is_twin = is_users and _read(place_abs) == _read(f"{root_abs}/{path[3:]}")
            # Worktrees in different folders share passes where nothing is above them.
            if os.path.exists(place_abs) and not is_twin:
                yield place_abs
    else:
        yield path


def _named(names: tuple[str, ...], env: Mapping[str, str]) -> Iterator[str]:
    """Yield the variables that are named; `RUFF_*` names all that begin so."""
    for name in names:
        if name.endswith("*"):
            yield from (variable for variable in env if variable.startswith(name[:-1]))
        else:
            yield name


def _read(path_abs: str) -> bytes | None:
    try:
        with open(path_abs, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return None
