"""The files of hook managers in a repository, and the jobs that they define."""

from __future__ import annotations

import os
import re
from typing import Any

import yaml

from gitgates.core.errors import UsageError
from gitgates.core.limits import parse_json, parse_toml
from gitgates.core.record import Record
from gitgates.core.yaml_load import load
from gitgates.store.files import open_regular

_LONGEST_BYTES = 1024 * 1024
# Programs that start another one, and what may stand between the two.
_CALLERS = re.compile(
    r"(?:npx|bunx|npm|pnpm|yarn|bun|node|uv|poetry|python3?|sh|bash|make|just|cargo|go|exec|run)$"
    r"|-|\w+="
)


class ManagerJob(Record):
    """One job of a hook manager, as a gate."""

    name: str
    hooks: tuple[str, ...]
    keys: dict[str, Any]  # of the gate
    manager: str
    in_order: bool = False  # it waits for the jobs before it


class ManagerFiles:
    """A repository whose files are read when they are asked for, and only once."""

    def __init__(self, root_abs: str) -> None:
        self.root_abs = root_abs
        self._texts: dict[str, str] = {}

    @property
    def files(self) -> list[str]:
        """The names of the files that were read."""
        return [name for name, text in self._texts.items() if text]

    def has(self, name: str) -> bool:
        """Return whether a file exists inside the repository."""
        is_inside = not os.path.isabs(name) and ".." not in name.split("/")
        return is_inside and os.path.isfile(os.path.join(self.root_abs, name))

    def text(self, name: str) -> str:
        """Return the text of a file; empty if there is none. Raises: UsageError."""
        if name not in self._texts:
            self._texts[name] = self._read(name) if self.has(name) else ""
        return self._texts[name]

    def load(self, name: str) -> dict[str, Any]:
        """Parse a file by the format that its name tells; {} if there is none.

        Raises: UsageError.
        """
        text = self.text(name).removeprefix("\ufeff")
        if not text:
            return {}
        kind = {".toml": "TOML", ".json": "JSON"}.get(os.path.splitext(name)[1], "YAML")
        parse = {"TOML": parse_toml, "JSON": parse_json, "YAML": load}[kind]
        try:
            settings = parse(text.replace("\r\n", "\n"))
        except (ValueError, RecursionError, yaml.YAMLError) as error:
            why = " ".join(str(error).split())
            raise UsageError(f"{name}: is not valid {kind}: {why}") from error
        if not isinstance(settings, dict):
            raise UsageError(f"{name}: is not a {kind} mapping")
        return settings

    def _read(self, name: str) -> str:
        try:
            with open(os.path.join(self.root_abs, name), "rb", opener=open_regular) as file:
                content = file.read(_LONGEST_BYTES + 1)
            if len(content) > _LONGEST_BYTES:
                raise UsageError(f"{name}: is longer than {_LONGEST_BYTES // 1024} KiB")
            return content.decode()
        except UnicodeDecodeError as error:
            why = f"byte {error.start + 1} is not UTF-8"
            raise UsageError(f"{name}: cannot be read: {why}") from error
        except OSError as error:
            raise UsageError(f"{name}: cannot be read: {error.strerror}") from error


def only_set(**keys: object) -> dict[str, object]:
    """Return the keys that have a value."""
    return {name: value for name, value in keys.items() if value}


def name_of(command: str) -> str:
    """Return a name for a command: its program, or what a runner such as npm runs."""
    words = command.split()
    names = [word for word in words if not _CALLERS.match(word)] or words or ["hook"]
    return names[0].rpartition("/")[2].partition(".")[0] or names[0]
