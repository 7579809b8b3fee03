"""Other hook managers: how to recognise their hooks, and the lines with which they run the gates.

Their files are only read.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from typing import Any

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.record import Record
from gitgates.edit import user_file
from gitgates.setup.install.hookspath import HooksFolder

# A command that runs gates, or the id of a hook that pre-commit gets from the gitgates repository.
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
    previous_suffix: str = ""  # appended to the name of a hook that existed before
    runs_previous: bool = False
    install: str = ""  # the command that installs its hooks; empty: it cannot run gates


_HERE = os.path.dirname(__file__)
with open(f"{_HERE}/manager_lines.toml", "rb") as _file:
    _LINES: dict[str, Any] = tomllib.load(_file)
with open(f"{_HERE}/managers.toml", "rb") as _file:
    MANAGERS = tuple(
        Manager(name, tuple(map(str.encode, row.pop("marks"))), tuple(row.pop("settings")), **row)
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
    """Return the hooks whose gates a file runs; comments don't count."""
    calls = _CALL.findall(_COMMENT.sub("", content.decode("utf-8", "replace")))
    return {first or second for first, second in calls}


def find_calls(root_abs: str, folder: HooksFolder) -> dict[tuple[str, str], str]:
    """Return the files of managers that run gates: (manager, hook) → file."""
    files: dict[tuple[str, str], str] = {}
    for manager in MANAGERS:
        for hook in HOOK_POINTS:
            for file in _files(manager, hook, folder, root_abs):
                if hook in called_hooks(_content(root_abs, file)):
                    files.setdefault((manager.name, hook), file)
    return files


def present(root_abs: str, folder: HooksFolder, hooks: tuple[str, ...]) -> dict[str, str]:
    """Return the managers that are used here, each with the file that shows it."""
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
        return [_for_husky(hook, root_abs, folder) for hook in hooks]
    manager = BY_NAME[name]
    file = next(_files(manager, hooks[0], folder, root_abs), manager.settings[0])
    text = _content(root_abs, file).decode("utf-8", "replace")
    if name == "simple-git-hooks":
        place = "under `simple-git-hooks`" if file == "package.json" else "as keys"
        return [LinesToAdd(file, place, of_json(name, hooks, text))]
    if name == "lefthook":
        place = "under the hooks that are already there, or as new ones"
        return [LinesToAdd(file, place, of_lefthook(hooks, file))]
    repos = ("" if text else "repos:\n") + of_framework(hooks, file)
    return [
        LinesToAdd(file, "at the beginning", install_types(_of_git(hooks), file)),
        LinesToAdd(file, "under `repos`", repos),
    ]


def _for_husky(hook: str, root_abs: str, folder: HooksFolder) -> LinesToAdd:
    file = f"{husky_folder(folder, root_abs)}/{hook}"
    is_alone = not _content(root_abs, file).strip()
    place = "at the beginning" if HOOK_POINTS[hook].reads_stdin else "at the end"
    return LinesToAdd(file, place, of_script("husky", hook, is_alone=is_alone))


def _of_git(hooks: Sequence[str]) -> list[str]:
    return [hook for hook in hooks if HOOK_POINTS[hook].host == "git"]


def install_command(name: str, hooks: tuple[str, ...], folder: HooksFolder, root_abs: str) -> str:
    """Return the command that makes a manager install the hooks of its file."""
    command = BY_NAME[name].install
    if name == "husky" and (at := husky_folder(folder, root_abs)) != ".husky":
        return f"{command} {shlex.quote(at)}"  # else it would move core.hooksPath
    if name not in FRAMEWORK:
        return command
    return " ".join([command, *(f"-t {hook}" for hook in _of_git(hooks))])


def husky_folder(folder: HooksFolder, root_abs: str) -> str:
    """Return the folder of husky's scripts: the parent of the hooks folder."""
    parent, last = os.path.split(os.path.relpath(folder.path_abs, root_abs))
    return parent if last == "_" and not parent.startswith("..") else ".husky"


def _files(manager: Manager, hook: str, folder: HooksFolder, root_abs: str) -> Iterator[str]:
    """Yield a manager's existing settings files that may define a hook."""
    for name in manager.settings:
        file = name.format(hook=hook)
        if manager.name == "husky":
            file = f"{husky_folder(folder, root_abs)}/{hook}"
        content = _content(root_abs, file)
        # A package.json may only list it as a dependency.
        if content and (file != "package.json" or _HAS_SIMPLE.search(content)):
            yield file


def _content(root_abs: str, file: str) -> bytes:
    return user_file.content(os.path.join(root_abs, file))


# The lines


def of_script(manager: str, hook: str, *, is_alone: bool) -> str:
    """Return the lines of a script; `is_alone`: no other command in it needs standard input."""
    needs_input = HOOK_POINTS[hook].reads_stdin and not is_alone
    lines = _LINES["script_with_input" if needs_input else "script"]
    return str(lines.replace("@MANAGER@", manager).replace("@HOOK@", hook))


def of_json(manager: str, hooks: Sequence[str], text: str) -> str:
    """Return the keys for simple-git-hooks; `text`: its settings file."""
    lines = ""
    for hook in hooks:
        is_alone = f'"{hook}"' not in text
        call = of_script(manager, hook, is_alone=is_alone).rstrip("\n")
        if not is_alone:
            call = f"{call}\n…" if HOOK_POINTS[hook].reads_stdin else f"… && {call}"
        lines += f"  {json.dumps(hook)}: {json.dumps(call, ensure_ascii=False)},\n"
    return lines


def of_lefthook(hooks: Sequence[str], file: str) -> str:
    """Return a command for each hook."""
    lines = ""
    for hook in hooks:
        arguments = _LINES["lefthook"]["arguments"].get(hook, "{0}")
        is_read = json.dumps(HOOK_POINTS[hook].reads_stdin)
        filled = _LINES["lefthook"]["commands"].replace("@HOOK@", hook)
        filled = filled.replace("@ARGUMENTS@", arguments)
        lines += filled.replace("@FILE@", file).replace("@STDIN@", is_read)
    return lines


def of_framework(stages: Sequence[str], file: str) -> str:
    """Return the hooks as an item of `repos`."""
    rows, is_toml = _LINES["framework"], file.endswith(".toml")
    template = rows["toml" if is_toml else "yaml"]
    passes = {stage: json.dumps(stage not in rows["without_files"]) for stage in stages}
    filled = (template.replace("@HOOK@", s).replace("@PASSES@", p) for s, p in passes.items())
    if is_toml:
        return f'[[repos]]\nrepo = "local"\nhooks = [\n{"".join(filled)}]\n'
    return f"- repo: local\n  hooks:\n{''.join(filled)}"


def install_types(hooks: Sequence[str], file: str) -> str:
    """Return the setting that makes `pre-commit install` install these hooks for everybody."""
    names = ", ".join(f'"{hook}"' if file.endswith(".toml") else hook for hook in hooks)
    sign = " =" if file.endswith(".toml") else ":"
    return f"default_install_hook_types{sign} [{names}]\n"
