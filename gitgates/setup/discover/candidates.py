"""Find the commands that may become gates: tasks by their names, tools by their files."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from gitgates.core.record import Record
from gitgates.setup.discover.environments import Environments
from gitgates.setup.discover.folder import KNOWN, ProjectFolder, Tree
from gitgates.setup.task_files import table

KINDS: dict[str, dict[str, Any]] = KNOWN["kinds"]
_NAMES = {kind: tuple(row["names"].split()) for kind, row in KINDS.items()}
_FIXERS = {kind: tuple(row.get("fixers", "").split()) for kind, row in KINDS.items()}
_SEPARATOR = re.compile(r"[:_.\s/]+")
_SCRIPT_ENDS = ("", ".sh", ".bash", ".py")


class GateCandidate(Record):
    """A command that may become a gate."""

    kind: str
    command: str
    source: str  # where it was found, for a person
    ecosystem: str = ""  # what it is about; empty: all that is in its folder
    folder: str = ""  # where it runs, from the root
    files: tuple[str, ...] = ()
    pass_files: bool = False
    missing: str = ""  # why it cannot start
    may_change: bool = False  # its name says that it changes files
    is_task: bool = True  # the project wrote it; else, it is a tool's usual command
    is_whole: bool = False  # it is about many packages
    is_end_to_end: bool = False  # its folder has tests that need a browser or containers
    framework: str = ""  # pre-commit or prek, if it runs all hooks of that

    @property
    def key(self) -> tuple[str, str]:
        """Return what it runs, and where."""
        return self.folder, self.command

    def covers(self, other: GateCandidate) -> bool:
        """Return whether the other one, which comes later, is of no use beside this one."""
        if self.kind != other.kind:
            return False
        if not self.ecosystem:
            return self.folder in ("", other.folder)
        return (self.ecosystem, self.folder) == (other.ecosystem, other.folder)

    def overlaps(self, other: GateCandidate) -> bool:
        """Return whether the two are alternatives."""
        return self.covers(other) or other.covers(self)


class TryResult(Record):
    """What was seen of a candidate."""

    why_not: str = ""  # why it cannot be a gate here; empty: it can
    runs_on: bool = False  # because it had not ended at its limit
    seconds: float = 0.0
    has_failed: bool = False  # in its own way
    changed: int = 0  # how many files of the project
    remark: str = ""


def find_candidates(tree: Tree, env: Mapping[str, str]) -> list[GateCandidate]:
    """Return the candidates of all folders, better ones first."""
    environments = Environments(tree, env)
    candidates: list[GateCandidate] = []
    for folder in tree.folders:
        present = [name for name, row in KNOWN["ecosystems"].items() if _is_in(folder, row, tree)]
        whole = {name for name in present if _is_whole(folder, KNOWN["ecosystems"][name])}
        is_end_to_end = bool(folder.find(*KNOWN["folders"]["end_to_end"].split()))
        tools = (each for name in present for each in _tools(name, folder, environments))
        for each in (*_tasks(folder, environments), *tools):
            is_whole = each.ecosystem in whole if each.ecosystem else bool(whole)
            placed = each._replace(folder=folder.path, is_end_to_end=is_end_to_end)
            candidates.append(placed._replace(is_whole=is_whole))
    return [*dict.fromkeys(candidates)]


def _is_in(folder: ProjectFolder, row: dict[str, Any], tree: Tree) -> bool:
    """Return whether a folder is the place of an ecosystem: below the root, if that is not one."""
    signs = row["signs"].split()
    return bool(folder.find(*signs)) and (folder is tree.root or not tree.root.find(*signs))


def _is_whole(folder: ProjectFolder, row: dict[str, Any]) -> bool:
    return any(folder.shows(sign) for sign in row.get("whole", ()))


def _tasks(folder: ProjectFolder, environments: Environments) -> Iterator[GateCandidate]:
    """Yield the tasks that have the name of a kind; of each runner, better names first."""
    for row in KNOWN["runners"]:
        source = folder.find(*row.get("files", "").split())
        names = _task_names(row, source, folder) if source else []
        for part in row.get("folders", "").split():
            names += _programs(part, folder)
        ranked = []
        for env, task in names:
            kind, rank, may_change = _kind_of(task, row.get("kinds", {}))
            if kind:
                command, missing = environments.task(row, folder, task, env)
                candidate = GateCandidate(
                    kind=kind,
                    command=command,
                    source=f"{folder.source(source)}: {task}" if source else folder.source(env),
                    ecosystem=row.get("ecosystem", ""),
                    missing=missing,
                    may_change=may_change,
                )
                ranked.append(((may_change, rank), candidate))
        yield from (candidate for _rank, candidate in sorted(ranked, key=lambda pair: pair[0]))


def _kind_of(task: str, others: Mapping[str, str]) -> tuple[str, int, bool]:
    """Return a task's kind by its name, how good that is, and whether it says that files change."""
    plain = _SEPARATOR.sub("-", task.lower())
    if plain in others:
        return others[plain], len(_NAMES[others[plain]]), False
    for kind, names in _NAMES.items():
        if plain in names:
            return kind, names.index(plain), False
        if plain in _FIXERS[kind]:
            return kind, _FIXERS[kind].index(plain), True
    return "", 0, False


def _task_names(row: dict[str, Any], file: str, folder: ProjectFolder) -> list[tuple[str, str]]:
    """Return the tasks in a file, each behind the key that it is under, if that matters."""
    if "path" in row:
        return [*_in_tables(row, folder.table(file), row["path"].split("."), "")]
    renamed: dict[str, str] = row.get("renamed", {})
    names: list[str] = []
    for match in re.finditer(row["pattern"], folder.text(file).replace("\\\n", " "), re.MULTILINE):
        groups = [group for group in match.groups() if group]
        tasks = groups[-1].split() if groups else [""]
        names += [renamed.get(task, task) for task in tasks]
    return [("", name) for name in dict.fromkeys(names)]


def _in_tables(
    row: dict[str, Any], value: object, path: list[str], env: str
) -> Iterator[tuple[str, str]]:
    """Yield the tasks of the tables at a path."""
    tasks = table(value)
    if not path:
        empty = row.get("empty", "\0")
        yield from ((env, name) for name, run in tasks.items() if empty not in str(run))
    elif path[0] == "*":
        for name in sorted(tasks, key=lambda name: name != "default"):
            yield from _in_tables(row, tasks[name], path[1:], name)
    else:
        yield from _in_tables(row, tasks.get(path[0]), path[1:], env)


def _programs(part: str, folder: ProjectFolder) -> list[tuple[str, str]]:
    """Return the programs in a folder: the path and the name of each."""
    parent = "" if part == "." else part
    names = (name for name in sorted(folder.files) if os.path.dirname(name) == parent)
    splits = ((name, *os.path.splitext(os.path.basename(name))) for name in names)
    return [
        (name, stem)
        for name, stem, end in splits
        if end in _SCRIPT_ENDS and os.access(os.path.join(folder.path_abs, name), os.X_OK)
    ]


def _tools(
    ecosystem: str, folder: ProjectFolder, environments: Environments
) -> Iterator[GateCandidate]:
    """Yield the usual commands of the tools that a folder has set up."""
    for tool in KNOWN["tools"].get(ecosystem, ()):
        source = next(filter(None, map(folder.shows, tool["signs"])), "")
        if source:
            command, missing = environments.tool(tool, ecosystem, folder)
            yield GateCandidate(
                kind=tool["kind"],
                command=command,
                source=source,
                ecosystem=ecosystem,
                files=tuple(tool.get("files", ())),
                pass_files=tool.get("pass_files", False),
                missing=missing,
                is_task=False,
            )
