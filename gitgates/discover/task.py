"""What the sources find, before anybody decides which of it becomes a gate."""

from __future__ import annotations

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    # name, command, tool, the paths that it is about, whether it is given them
    Default = tuple[str, str, str, tuple[str, ...], bool]


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
    body: str = ""  # what it runs, as far as that can be seen
    needs: tuple[str, ...] = ()  # the tasks that it runs first
    description: str = ""
    tool: str = ""  # a language's default: the words that show that the tool runs already
    files: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    pass_files: bool = False


def defaults(
    tools: tuple[Default, ...], signs: Mapping[str, str], scope: str, call: Callable[[str], str]
) -> list[Task]:
    """Return a task for each tool that has a sign of being in use.

    `signs` is tool → where it shows; `call` makes of a command one that finds the project's tool.
    """
    return [
        Task(
            name=name,
            command=call(command),
            source=signs[tool],
            scope=scope,
            tool=tool,
            files=files,
            pass_files=passes,
        )
        for name, command, tool, files, passes in tools
        if tool in signs
    ]
