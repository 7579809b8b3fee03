"""A project's folders and files for `gitgates init`: they are read and parsed, never run."""

from __future__ import annotations

import itertools
import os
import tomllib
from fnmatch import fnmatchcase
from typing import Any

from gitgates.setup.task_files import INI, list_folder, parse, read_text, table

with open(os.path.join(os.path.dirname(__file__), "known.toml"), "rb") as _file:
    KNOWN: dict[str, Any] = tomllib.load(_file)

_DEPTH = 3  # of listed folders, including the root
_MOST_FOLDERS = 2000
_MOST_PARTS = 3  # folders of an ecosystem below the root
_NO_PROJECTS = frozenset(KNOWN["folders"]["skipped"].split())
_NOT_LISTED = frozenset((*KNOWN["folders"]["copied"].split(), "target", "__pycache__", "dist"))
_HIDDEN_LISTED = frozenset(
    (".github", ".circleci", ".cargo", ".config", ".mise", ".mise-tasks", ".husky")
)


class ProjectFolder:
    """A folder with a project, or a part of one."""

    def __init__(self, root_abs: str, path: str, files: list[str], notes: dict[str, str]) -> None:
        self.path = path  # relative to the root; empty: the root itself
        self.path_abs = os.path.join(root_abs, path) if path else root_abs
        prefix = f"{path}/" if path else ""
        self.files = {name.removeprefix(prefix) for name in files if name.startswith(prefix)}
        self._tables: dict[str, dict[str, Any]] = {}
        self._texts: dict[str, str] = {}
        self._troubles = notes  # file → why it was not read

    def source(self, name: str) -> str:
        """Return a file's path relative to the root."""
        return f"{self.path}/{name}" if self.path else name

    def find(self, *patterns: str) -> str:
        """Return the first file that matches a pattern; empty if none does."""
        for pattern in patterns:
            depth, names = pattern.count("/"), self.files if "*" in pattern else ()
            matches = [name for name in names if fnmatchcase(name, pattern)]
            matches = [name for name in matches if name.count("/") == depth]
            if pattern in self.files or matches:
                return pattern if pattern in self.files else min(matches)
        return ""

    def has(self, name: str) -> bool:
        """Return whether a path exists, even in folders that are not listed."""
        return os.path.lexists(os.path.join(self.path_abs, name))

    def text(self, name: str) -> str:
        """Return a file's text; empty if it does not exist or cannot be read."""
        if name not in self._texts:
            self._texts[name] = ""
            try:
                if name in self.files:
                    self._texts[name] = read_text(os.path.join(self.path_abs, name))
            except ValueError as error:
                source = self.source(name)
                self._troubles[source] = f"{source}: cannot be read: {error}; ignored"
        return self._texts[name]

    def table(self, name: str, *path: str) -> dict[str, Any]:
        """Return a table in a file; {} if there is none, or the file is invalid."""
        if name not in self._tables:
            self._tables[name] = {}
            try:
                if text := self.text(name):
                    self._tables[name] = parse(name, text)
            except ValueError as error:
                source = self.source(name)
                self._troubles[source] = f"{source}: {error}; ignored"
        return table(self._tables[name], *path)

    def shows(self, sign: str) -> str:
        """Return where a sign from `known.toml` was found, for a person; empty if it was not."""
        file, has_word, word = sign.partition(" ~")
        file, has_section, rest = file.partition(" [")
        section, _, keys = rest.partition("]")
        name = self.find(file)
        if not name or (has_word and word not in self.text(name)):
            return ""
        # The name of an INI section is one key, even if it has dots.
        path = [section] if name.endswith(INI) else [key for key in section.split(".") if key]
        is_missing = section and path[-1] not in self.table(name, *path[:-1])
        if is_missing or (keys and not self.table(name, *path).keys() & {*keys.split()}):
            return ""
        return f"{self.source(name)}: [{section}]" if has_section and section else self.source(name)


class Tree:
    """A project's folders with well-known files."""

    def __init__(self, root_abs: str) -> None:
        self.files = _list(root_abs)
        self.troubles: dict[str, str] = {}
        self.notes: list[str] = []
        self.root = ProjectFolder(root_abs, "", self.files, self.troubles)
        paths = dict.fromkeys(
            path for name, row in KNOWN["ecosystems"].items() for path in self._parts(name, row)
        )
        self.folders = [
            ProjectFolder(root_abs, path, self.files, self.troubles) if path else self.root
            for path in dict.fromkeys(("", *paths))
        ]

    def _parts(self, name: str, row: dict[str, Any]) -> list[str]:
        """Return an ecosystem's folders: the root, or a few below it."""
        signs = row["signs"].split()
        if self.root.find(*signs):
            return [""]
        folders = sorted({os.path.dirname(f) for f in self.files if _is_sign(f, signs)})
        outer = [p for p in folders if not any(p.startswith(f"{other}/") for other in folders)]
        if len(outer) <= _MOST_PARTS:
            return outer
        what = f"{len(outer)} folders contain {row.get('title', name)}, such as {outer[0]}"
        self.notes.append(f"{what}: add gates for the ones that you want")
        return []


def _is_sign(file: str, signs: list[str]) -> bool:
    folder, name = os.path.split(file)
    is_skipped = not folder or _NO_PROJECTS & {*folder.split("/")}
    return not is_skipped and any(fnmatchcase(name, sign) for sign in signs)


def _list(root_abs: str) -> list[str]:
    """Return a project's files, a few folders deep, without installed and built ones."""
    files: list[str] = []
    folders = [""]
    for folder in itertools.islice(folders, _MOST_FOLDERS):  # it grows in this loop
        for name in list_folder(os.path.join(root_abs, folder)):
            path = f"{folder}/{name}" if folder else name
            path_abs = os.path.join(root_abs, path)
            is_listed = name in _HIDDEN_LISTED or not (name[0] == "." or name in _NOT_LISTED)
            if not os.path.isdir(path_abs):
                files.append(path)
            elif is_listed and path.count("/") < _DEPTH - 1 and not os.path.islink(path_abs):
                folders.append(path)
    return files
