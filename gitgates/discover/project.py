"""Read what discovery looks at: the names in a project's root, and the task files. Reads only."""

from __future__ import annotations

import os

from gitgates.discover import sources
from gitgates.discover.task import Project
from gitgates.store.files import open_regular

# No task file is longer; what is, was generated, and is not worth a minute of parsing.
_LONGEST_BYTES = 1024 * 1024
_LONGEST_LOCK_BYTES = 32 * _LONGEST_BYTES  # searched, not parsed


def read_project(root_abs: str) -> tuple[Project, list[str]]:
    """Return a project, and which of its files could not be read and why."""
    names = set(_list(root_abs))
    for folder, depth in sources.PROGRAMS:
        names |= _files(root_abs, folder, depth=depth)
    for folder in sources.FOLDERS:
        names |= _files(root_abs, folder, programs=False)
    texts: dict[str, str] = {}
    troubles: list[str] = []
    project = Project(texts=texts, names=frozenset(names))
    _read_all(root_abs, sources.reads(project), into=(texts, troubles))
    for name in sources.includes(project):
        if os.path.isdir(os.path.join(root_abs, name)):
            names |= _files(root_abs, name, depth=2)
        elif _is_inside(name):
            _read_all(root_abs, (name,), into=(texts, troubles))
    return project._replace(names=frozenset(names)), troubles


def _read_all(
    root_abs: str, files: tuple[str, ...], *, into: tuple[dict[str, str], list[str]]
) -> None:
    """Add the content of files to the texts, and what cannot be read to the troubles."""
    texts, troubles = into
    names = {*_list(root_abs)}
    for name in files:
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


def _files(root_abs: str, folder: str, *, depth: int = 1, programs: bool = True) -> set[str]:
    """Return the files of a folder of the project; of `programs` only what can be executed."""
    found = set()
    for name in _list(os.path.join(root_abs, folder)) if _is_inside(folder) else ():
        path = f"{folder}/{name}"
        path_abs = os.path.join(root_abs, path)
        if os.path.isfile(path_abs):
            found |= {path} if not programs or os.access(path_abs, os.X_OK) else set()
        elif depth > 1:
            found |= _files(root_abs, path, depth=depth - 1)
    return found


def _is_inside(name: str) -> bool:
    return not os.path.isabs(name) and ".." not in name.split("/")


def _list(folder_abs: str) -> list[str]:
    try:
        return os.listdir(folder_abs)
    except OSError:
        return []


def _read(path_abs: str) -> str:
    longest = _LONGEST_LOCK_BYTES if path_abs.endswith(".lock") else _LONGEST_BYTES
    with open(path_abs, "rb", opener=open_regular) as file:
        content = file.read(longest + 1)
    if len(content) > longest:
        raise ValueError(f"it is longer than {longest // 1024} KiB")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8") from error
