"""Repositories that are made once in each worker of pytest, and copied for each test."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from conftest import Repo

if TYPE_CHECKING:
    from collections.abc import Callable


def copy_of(make: Callable[[Repo], object]) -> Repo:
    """Return the repository that a function makes, and what that puts beside it.

    Each copy is at the same path, which save points and linked worktrees name: not for a test
    that leaves processes.
    """
    place = Repo.blank.parent / f"{make.__module__}-{make.__name__}"
    kept = place.with_name(f"{place.name}-kept")
    shutil.rmtree(place, ignore_errors=True)
    if kept.exists():
        shutil.copytree(kept, place, symlinks=True)
    else:
        with pytest.MonkeyPatch.context() as context:
            context.setenv("XDG_STATE_HOME", "none")  # the memory of files is in `.git` then
            make(Repo.init(place / "repo"))
        shutil.copytree(place, kept, symlinks=True)
    return Repo(place / "repo")
