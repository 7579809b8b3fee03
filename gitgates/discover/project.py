"""Read what discovery looks at: the names in a project's root, and the task files. Reads only."""

from __future__ import annotations

import os

from gitgates.discover.sources import FOLDERS, READS
from gitgates.discover.task import Project

# No task file is longer; what is, was generated, and is not worth a minute of parsing.
_LONGEST_BYTES = 1024 * 1024


def read_project(root_abs: str) -> tuple[Project, list[str]]:
    """Return a project, and which of its files could not be read and why."""
    names = set(_list(root_abs))
    for folder in FOLDERS:
        folder_abs = os.path.join(root_abs, folder)
        for name in _list(folder_abs):
            if _is_program(os.path.join(folder_abs, name)):
                names.add(f"{folder}/{name}")
    texts: dict[str, str] = {}
    troubles: list[str] = []
    for name in READS:
        path_abs = os.path.join(root_abs, name)
        # On a file system that folds case, `makefile` would be found as `Makefile` too.
        is_there = name in names or "/" in name
        if not is_there or not os.path.isfile(path_abs):
            continue
        try:
            texts[name] = _read(path_abs)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            troubles.append(f"{name}: cannot be read: {why}; nothing of it is used")
    return Project(texts=texts, names=frozenset(names)), troubles


def _list(folder_abs: str) -> list[str]:
    try:
        return os.listdir(folder_abs)
    except OSError:
        return []


def _is_program(path_abs: str) -> bool:
    return os.path.isfile(path_abs) and os.access(path_abs, os.X_OK)


def _read(path_abs: str) -> str:
    with open(path_abs, "rb") as file:
        content = file.read(_LONGEST_BYTES + 1)
    if len(content) > _LONGEST_BYTES:
        raise ValueError(f"it is longer than {_LONGEST_BYTES // 1024} KiB")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8") from error
