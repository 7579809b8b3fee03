"""Other hook managers: how to recognise their hooks, and what lets them run the gates.

Their files are only read.
"""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from collections.abc import Iterator

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.record import Record
from gitgates.edit import user_file
from gitgates.setup.install import manager_lines
from gitgates.setup.install.hookspath import HooksFolder

# A call of the gates, or the id of a hook that pre-commit takes from the gitgates repository.
_CALL = re.compile(
    r"gitgates (?:git-hook --via=[a-z-]+|pre-commit-hook|run) ([a-z-]+)"
    r"""|\bid["']?\s*[:=]\s*["']?gitgates-([a-z-]+)"""
)
_COMMENT = re.compile(r"^\s*#.*", re.MULTILINE)
_HAS_SIMPLE = re.compile(rb'"simple-git-hooks"\s*:\s*[{"][^0-9^~]')


class Manager(Record):
    """One hook manager."""

    name: str
    marks: tuple[bytes, ...]  # any of these in a hook identifies it
    settings: tuple[str, ...]  # its settings files, the usual one first; {hook}: one for each hook
    previous_suffix: str = ""  # what it adds to the name of a hook that existed before
    runs_previous: bool = False
    install: str = ""  # the command that makes git run it; empty: it cannot be asked to run gates


with open(f"{os.path.splitext(__file__)[0]}.toml", "rb") as _file:
    MANAGERS = tuple(
        Manager(
            name=name,
            marks=tuple(mark.encode() for mark in row.pop("marks")),
            settings=tuple(row.pop("settings")),
            **row,
        )
        for name, row in tomllib.load(_file).items()
    )
BY_NAME = {manager.name: manager for manager in MANAGERS}
VIA = tuple(manager.name for manager in MANAGERS if manager.install)
FRAMEWORK = ("pre-commit", "prek")  # these read .pre-commit-config.yaml


class LinesToAdd(Record):
    """Lines that a person must add to a file."""

    file: str
    place: str  # in it
    lines: str


def recognise(content: bytes) -> Manager | None:
    """Return the manager that wrote a hook; None if unknown."""
    return next((m for m in MANAGERS if any(mark in content for mark in m.marks)), None)


def called_hooks(content: bytes) -> set[str]:
    """Return the hooks whose gates a text runs; comments don't count."""
    calls = _CALL.findall(_COMMENT.sub("", content.decode("utf-8", "replace")))
    return {first or second for first, second in calls}


def find_calls(root_abs: str, folder: HooksFolder) -> dict[tuple[str, str], str]:
    """Return the managers whose files run gates: manager and hook → the file."""
    files: dict[tuple[str, str], str] = {}
    for manager in MANAGERS:
        for hook in HOOK_POINTS:
            for file in _files(manager, hook, folder, root_abs):
                if hook in called_hooks(_content(root_abs, file)):
                    files.setdefault((manager.name, hook), file)
    return files


def present(root_abs: str, folder: HooksFolder, hooks: tuple[str, ...]) -> dict[str, str]:
    """Return the managers with hooks or settings here, each with the file that shows it."""
    file_of: dict[str, str] = {}
    for hook in hooks:
        path_abs = os.path.join(folder.path_abs, hook)
        manager = recognise(user_file.content(path_abs))
        if manager and manager.install:
            file_of.setdefault(manager.name, os.path.relpath(path_abs, root_abs))
        for name in VIA:
            is_alike = name in FRAMEWORK and file_of.keys() & {*FRAMEWORK}
            for file in () if is_alike else _files(BY_NAME[name], hook, folder, root_abs):
                file_of.setdefault(name, file)
    return file_of


def additions(
    name: str, hooks: tuple[str, ...], root_abs: str, folder: HooksFolder
) -> list[LinesToAdd]:
    """Return the lines with which a manager runs the gates of these hooks."""
    if name == "husky":
        return [
            _for_husky(hook, f"{husky_folder(folder, root_abs)}/{hook}", root_abs) for hook in hooks
        ]
    manager = BY_NAME[name]
    file = next(_files(manager, hooks[0], folder, root_abs), manager.settings[0])
    content = _content(root_abs, file)
    if name == "simple-git-hooks":
        place = "under `simple-git-hooks`" if file == "package.json" else "as keys"
        text = content.decode("utf-8", "replace")
        return [LinesToAdd(file, place, manager_lines.of_json(name, hooks, text))]
    if name == "lefthook":
        lines = manager_lines.of_lefthook(hooks, file, has_jobs=b"jobs" in content)
        return [LinesToAdd(file, "under the hooks that are already there, or as new ones", lines)]
    types = [hook for hook in hooks if HOOK_POINTS[hook].host == "git"]
    repos = ("" if content else "repos:\n") + manager_lines.of_framework(hooks, file)
    types_lines = manager_lines.install_types(types, file)
    return [
        LinesToAdd(file, "at the beginning", types_lines),
        LinesToAdd(file, "under `repos`", repos),
    ]


def _for_husky(hook: str, file: str, root_abs: str) -> LinesToAdd:
    is_alone = not _content(root_abs, file).strip()
    place = "at the beginning" if HOOK_POINTS[hook].reads_stdin else "at the end"
    return LinesToAdd(file, place, manager_lines.of_script("husky", hook, is_alone=is_alone))


def install_command(name: str, hooks: tuple[str, ...], folder: HooksFolder, root_abs: str) -> str:
    """Return the command with which a manager takes up its file."""
    command = BY_NAME[name].install
    if name == "husky" and (at := husky_folder(folder, root_abs)) != ".husky":
        return f"{command} {shlex.quote(at)}"  # else it would move core.hooksPath
    if name not in FRAMEWORK:
        return command
    types = [f"-t {hook}" for hook in hooks if HOOK_POINTS[hook].host == "git"]
    return " ".join([command, *types])


def husky_folder(folder: HooksFolder, root_abs: str) -> str:
    """Return the folder of husky's scripts: above that of its hooks, which core.hooksPath names."""
    parent, last = os.path.split(os.path.relpath(folder.path_abs, root_abs))
    return parent if last == "_" and not parent.startswith("..") else ".husky"


def _files(manager: Manager, hook: str, folder: HooksFolder, root_abs: str) -> Iterator[str]:
    """Yield the settings files of a manager that exist, and that are about a hook."""
    for name in manager.settings:
        file = name.format(hook=hook)
        if manager.name == "husky":
            file = f"{husky_folder(folder, root_abs)}/{hook}"
        content = _content(root_abs, file)
        # A package.json that only installs it says nothing about hooks.
        if content and (file != "package.json" or _HAS_SIMPLE.search(content)):
            yield file


def _content(root_abs: str, file: str) -> bytes:
    return user_file.content(os.path.join(root_abs, file))
