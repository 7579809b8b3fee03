"""What the sources find, before anybody decides which of it becomes a gate."""

from __future__ import annotations

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class BadFile(Exception):
    """A file that is not what its name promises; the text says why."""


class Project(Record):
    """What was read of a project's root."""

    texts: Mapping[str, str]  # file name → content
    names: frozenset[str]  # all that lies in the root, and in the folders that sources name


class Task(Record):
    """One thing that a project can do to itself."""

    name: str  # in the project's own word
    command: str
    source: str  # where it was found, for a person
    scope: str = ""  # the language that it is about; empty: the whole project
    body: str = ""  # what it runs, as far as that can be seen: lines of a shell
    needs: tuple[str, ...] = ()  # the tasks of the same runner that it runs, too
    description: str = ""
    is_private: bool = False  # not for people, or not to be called without arguments
    missing: str = ""  # why its program cannot be run in this project
    is_default: bool = False  # a tool's own way to be called, not one that the project wrote
    is_ci: bool = False  # a command of CI
    hooks: tuple[str, ...] = ()  # where the project runs it already; empty: as its word says
    keys: Mapping[str, object] = {}  # further keys of the gate
