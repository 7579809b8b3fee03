"""The files of hook managers in a repository, and the jobs that they define."""

from __future__ import annotations

import os
import re
from typing import Any

from gitgates.core.errors import UsageError
from gitgates.core.record import Record
from gitgates.setup.task_files import parse, read_text

# Programs that start another program, and words that may be between the two.
_CALLERS = re.compile(
    r"(?:npx|bunx|npm|pnpm|yarn|bun|node|uv|poetry|python3?|sh|bash|make|just|cargo|go|exec|run)$"
    r"|-|\w+="
)


class ManagerJob(Record):
    """A hook manager's job, as a gate."""

    name: str
    hooks: tuple[str, ...]
    keys: dict[str, Any]  # the gate's
    manager: str
    in_order: bool = False  # it runs only if the jobs before it pass


class ManagerFiles:
    """A repository's files, each read once, when it is needed."""

    def __init__(self, root_abs: str) -> None:
        self.root_abs = root_abs
        self._texts: dict[str, str] = {}

    def has(self, name: str) -> bool:
        """Return whether a file exists."""
        return os.path.isfile(os.path.join(self.root_abs, name))

    def text(self, name: str) -> str:
        """Return the text of a file; empty if there is none. Raises: UsageError."""
        if name not in self._texts:
            try:
                path_abs = os.path.join(self.root_abs, name)
                self._texts[name] = read_text(path_abs) if self.has(name) else ""
            except ValueError as error:
                raise UsageError(f"{name}: cannot be read: {error}") from error
        return self._texts[name]

    def load(self, name: str) -> dict[str, Any]:
        """Parse a file by its extension, or as YAML; {} if there is no file.

        Raises: UsageError.
        """
        try:
            text = self.text(name)
            return parse(name if os.path.splitext(name)[1] else f"{name}.yml", text) if text else {}
        except ValueError as error:
            raise UsageError(f"{name}: {error}") from error


def only_set(**keys: object) -> dict[str, object]:
    """Return the keys that have a value."""
    return {name: value for name, value in keys.items() if value}


def name_of(command: str) -> str:
    """Return a name for a command: its program, or the one that a runner such as npm starts."""
    words = command.split()
    names = [word for word in words if not _CALLERS.match(word)] or words or ["hook"]
    return names[0].rpartition("/")[2].partition(".")[0] or names[0]
