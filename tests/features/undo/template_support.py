"""Repositories that are made once in each worker of pytest, and copied for each test."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from conftest import Repo

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_MADE: dict[Callable[[Repo], object], Path] = {}


def copy_of(make: Callable[[Repo], object], folder: Path) -> Repo:
    """Return a copy of the repository that a function makes: of its files, modes and times."""
    if make not in _MADE:
        path = Repo.blank.parent / f"made-{len(_MADE)}"
        make(Repo.init(path))
        _MADE[make] = path
    shutil.copytree(_MADE[make], folder / "repo", symlinks=True)
    return Repo(folder / "repo")
