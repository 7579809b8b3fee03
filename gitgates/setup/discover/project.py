"""Read a project's task files, and parse the formats that they are written in.

Files are read and parsed, never run.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from typing import Any

import yaml

from gitgates.core.limits import parse_json, parse_toml
from gitgates.core.record import Record
from gitgates.core.yaml_load import load
from gitgates.store.files import open_regular

# No task file is longer; what is, was generated, and is not worth a minute of parsing.
_LONGEST_BYTES = 1024 * 1024
_LONGEST_LOCK_BYTES = 32 * _LONGEST_BYTES  # searched, not parsed


class BadFile(Exception):
    """A file that cannot be parsed; the text names it, and says why."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}; ignored")


class Task(Record):
    """One task of a project: a name and its commands."""

    name: str  # in the project's own word
    command: str
    source: str  # where it was found, for a person
    scope: str = ""  # the language that it is about; empty: the whole project
    body: str = ""  # what it runs, as far as that can be seen: lines of a shell
    needs: tuple[str, ...] = ()  # the tasks of the same runner that it runs, too
    description: str = ""
    is_private: bool = False  # not for people, or not to be called without arguments
    once: str = ""  # the command that ends, where the other one watches for changes
    missing: str = ""  # why its program cannot be run in this project
    is_default: bool = False  # a tool's own way to be called, not one that the project wrote
    is_ci: bool = False  # a command of CI
    hooks: tuple[str, ...] = ()  # where the project runs it already; empty: as its word says
    manager: str = ""  # the hook manager that runs it there
    in_order: bool = False  # it waits for the tasks before it
    keys: Mapping[str, object] = {}  # further keys of the gate


class Project(Record):
    """The files of a project's root."""

    texts: Mapping[str, str]  # file name → content
    names: frozenset[str]  # all that lies in the root, and in the folders that were listed
    in_path: frozenset[str] = frozenset()  # of the programs that matter, those in the PATH

    def load(self, name: str) -> dict[str, Any]:
        """Parse one of its files by the format that its name tells; {} where it does not exist.

        Raises: BadFile.
        """
        if name not in self.texts:
            return {}
        text = self.texts[name].removeprefix("\ufeff")
        if name.endswith((".ini", ".cfg", ".flake8")):
            return read_ini(name, text)
        settings: Any
        kind, shape = "YAML", "mapping"
        try:
            if name.endswith(".toml"):
                kind = "TOML"
                settings = parse_toml(text.replace("\r\n", "\n"))
            elif name.endswith(".json"):
                kind, shape = "JSON", "object"
                settings = parse_json(text)
            else:
                settings = load(text)
        except (ValueError, RecursionError, yaml.YAMLError) as error:
            why = f"is not valid {kind}: {' '.join(str(error).split())}"
            raise BadFile(name, why) from error
        if not isinstance(settings, dict):
            raise BadFile(name, f"is not a {kind} {shape}")
        return settings


def read_ini(name: str, text: str) -> dict[str, Any]:
    """Parse INI. Raises: BadFile."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        why = f"is not valid INI: {' '.join(str(error).split())}"
        raise BadFile(name, why) from error
    return {name: dict(parser[name]) for name in parser.sections()}


def table(value: object, *path: str) -> dict[str, Any]:
    """Return the table at `path`; an empty one where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return {str(name): item for name, item in value.items()} if isinstance(value, dict) else {}


def tables(value: object) -> list[dict[str, Any]]:
    """Return the tables of a list; all else is left out."""
    items = value if isinstance(value, list) else []
    return [table(item) for item in items if isinstance(item, dict)]


def texts(value: object) -> tuple[str, ...]:
    """Return a text, or the texts of a list, as a tuple; all else is left out."""
    items = value if isinstance(value, list) else [value]
    return tuple(item for item in items if isinstance(item, str))


def read_files(root_abs: str, names: tuple[str, ...]) -> tuple[dict[str, str], list[str]]:
    """Return the text of each existing file, and which could not be read and why."""
    contents: dict[str, str] = {}
    troubles: list[str] = []
    root_names = {*list_folder(root_abs)}
    for name in names:
        path_abs = os.path.join(root_abs, name)
        # On a file system that folds case, `makefile` would be found as `Makefile` too.
        if (name in root_names or "/" in name) and os.path.isfile(path_abs):
            try:
                contents[name] = read_text(path_abs)
            except ValueError as error:
                troubles.append(f"{name}: cannot be read: {error}; ignored")
    return contents, troubles


def read_text(path_abs: str) -> str:
    """Return the text of a file. Raises: ValueError if it cannot be read as UTF-8 text."""
    longest = _LONGEST_LOCK_BYTES if path_abs.endswith(".lock") else _LONGEST_BYTES
    try:
        with open(path_abs, "rb", opener=open_regular) as file:
            content = file.read(longest + 1)
        if len(content) > longest:
            raise ValueError(f"it is longer than {longest // 1024} KiB")
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"byte {error.start + 1} is not UTF-8") from error
    except OSError as error:
        raise ValueError(error.strerror or error) from error


def list_files(
    root_abs: str, folder: str = "", *, depth: int = 1, programs: bool = False
) -> set[str]:
    """Return the files of a folder inside the project; of `programs` what can be executed."""
    files = set()
    for name in list_folder(os.path.join(root_abs, folder)) if is_inside(folder) else ():
        path = f"{folder}/{name}"
        path_abs = os.path.join(root_abs, path)
        if os.path.isfile(path_abs):
            files |= {path} if not programs or os.access(path_abs, os.X_OK) else set()
        elif depth > 1:
            files |= list_files(root_abs, path, depth=depth - 1, programs=programs)
    return files


def list_folder(folder_abs: str) -> list[str]:
    """Return the names in a folder; of one that does not exist, or cannot be read, none."""
    try:
        return os.listdir(folder_abs)
    except OSError:
        return []


def is_inside(name: str) -> bool:
    """Return whether a path is inside the project."""
    return not os.path.isabs(name) and ".." not in name.split("/")
