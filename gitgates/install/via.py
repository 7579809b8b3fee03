"""Let another hook manager run the gates: our entry in the file that it installs its hooks from.

Each change can be taken back byte for byte, and is refused where that is not so.
"""

from __future__ import annotations

import json
import os
import re
import shlex

from gitgates.errors import ConfigError
from gitgates.install import block, marked, own_file, via_lefthook, via_package, via_shell, via_toml
from gitgates.install.managers import FRAMEWORK, MANAGERS, VIA, recognise
from gitgates.install.shim import is_ours
from gitgates.lifecycle import HOOK_POINTS
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.install.hookspath import HooksFolder

# What husky 9 installs a stub for.
HUSKYS = (
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "post-rewrite",
    "pre-auto-gc",
)
_OURS = re.compile(r"gitgates (?:git-hook --via=[a-z-]+|pre-commit-hook) ([a-z-]+)")
_TAKE_UP = {
    "lefthook": "lefthook install",
    "husky": "npx husky",
    "simple-git-hooks": "npx simple-git-hooks",
}
_PACKAGES = (".simple-git-hooks.json", "simple-git-hooks.json", "package.json")


class Change(Record):
    """What becomes of one file."""

    file: str  # relative to the root
    before: str | None  # None: no file
    after: str | None
    hooks: tuple[str, ...]  # that have an entry of ours in it, before or after


def additions(
    manager: str, hooks: tuple[str, ...], root_abs: str, folder: HooksFolder
) -> list[Change]:
    """Return what adds our entry for these hooks to a manager's files; nothing is written.

    Raises: ConfigError where a file is not understood, with the lines to add by hand.
    """
    if manager == "husky":
        scripts = _husky_folder(folder, root_abs)
        return [_addition(manager, f"{scripts}/{hook}", (hook,), root_abs) for hook in hooks]
    return [_addition(manager, _file_of(manager, root_abs), hooks, root_abs)]


def removals(root_abs: str, folder: HooksFolder, managers: tuple[str, ...] = VIA) -> list[Change]:
    """Return what takes our entries out of the files of managers; nothing is written.

    Raises: ConfigError where a file is not understood.
    """
    found = []
    for file in _files(managers, root_abs, folder):
        before = own_file.read(os.path.join(root_abs, file))
        if before and (marked.is_in(before) or "gitgates git-hook --via=" in before):
            after = remove(before, file)
            if after != before:
                found.append(Change(file, before, after, hooks_in(before)))
    return found


def add(text: str | None, manager: str, file: str, hooks: tuple[str, ...]) -> str:
    """Return the text of a manager's file with our entry for these hooks. None: no file.

    Raises: ConfigError where that could not be taken back, with the lines to add by hand.
    """
    after = _put(manager, file, text, hooks)
    if after is None or remove(after, file) != text:
        raise ConfigError(
            f"{file}: our entry could not be added without changing what else it says",
            f"Nothing was changed. Add it by hand:\n{_by_hand(manager, file, hooks)}",
        )
    return after


def remove(text: str, file: str) -> str | None:
    """Return the text of a manager's file without our entries; None: without them, there is none.

    Raises: ConfigError where it is not understood.
    """
    if file == block.FILE:
        return block.without(text)
    if file in _PACKAGES:
        return via_package.without(text, file)
    return marked.without(text, file)


def present(root_abs: str, folder: HooksFolder, hooks: tuple[str, ...]) -> dict[str, str]:
    """Return the managers that have hooks or settings here, each with the file that tells it."""
    found: dict[str, str] = {}
    for hook in hooks:
        path_abs = os.path.join(folder.path_abs, hook)
        manager = None if is_ours(path_abs) else recognise(own_file.content(path_abs))
        if manager and manager.name in VIA:
            found.setdefault(manager.name, os.path.relpath(path_abs, root_abs))
    for manager in MANAGERS:
        for file in manager.settings:
            name = file.format(hook=hooks[0]) if hooks else file
            if manager.name not in VIA or found.keys() & _alike(manager.name):
                break
            if os.path.isfile(os.path.join(root_abs, name)) and _tells(
                manager.name, name, root_abs
            ):
                found[manager.name] = name
    return found


def entries(root_abs: str, folder: HooksFolder) -> list[tuple[str, str, str]]:
    """Return manager, file and hook of each entry of ours, also of those that a person wrote."""
    found: list[tuple[str, str, str]] = []
    for manager in VIA:
        files = _files((manager,), root_abs, folder)
        for file in (file for file in files if not any(file == other for _, other, _ in found)):
            text = os.fsdecode(own_file.content(os.path.join(root_abs, file)))
            found += [(manager, file, hook) for hook in hooks_in(text)]
    return found


def next_command(manager: str, hooks: tuple[str, ...], file: str = "") -> str:
    """Return the command with which a manager takes up what its file says."""
    folder = os.path.dirname(file)
    if manager == "husky" and folder not in ("", ".husky"):  # else it would move core.hooksPath
        return f"npx husky {shlex.quote(folder)}"
    types = " ".join(f"-t {hook}" for hook in hooks if HOOK_POINTS[hook].host == "git")
    return _TAKE_UP.get(manager) or f"{manager} install {types}"


def hooks_in(text: str) -> tuple[str, ...]:
    """Return the hooks that a text has an entry of ours for."""
    return tuple(dict.fromkeys(_OURS.findall(text)))


def _alike(name: str) -> set[str]:
    return set(FRAMEWORK) if name in FRAMEWORK else {name}


def _tells(name: str, file: str, root_abs: str) -> bool:
    """Tell whether a file means that its manager is used: a package.json alone does not."""
    if name != "simple-git-hooks" or file != "package.json":
        return True
    try:
        return via_package.KEY in json.loads(own_file.read(os.path.join(root_abs, file)) or "{}")
    except (ConfigError, ValueError, TypeError):
        return False


def _file_of(manager: str, root_abs: str) -> str:
    """Return the settings file of a manager that is there, or the one that would be made.

    Raises: ConfigError where it is none that lines can be added to.
    """

    def there(*files: str) -> list[str]:
        return [file for file in files if os.path.lexists(os.path.join(root_abs, file))]

    if manager == "prek":
        return next(iter(there("prek.toml", block.FILE)), block.FILE)
    if manager == "pre-commit":
        return block.FILE
    if manager == "lefthook":
        main = (file for file in _settings(manager) if "-local" not in file)
        return next(iter(there(*main)), "lefthook.yml")
    file = next(iter(there(*_settings(manager))), "")
    if not file.endswith(".json"):
        raise ConfigError(
            f"{file}: is a program, which nobody but you can change"
            if file
            else "there is no package.json, and no other file that simple-git-hooks reads",
            f"Add to each hook by hand, such as: {via_shell.call(via_package.KEY, 'pre-commit')}",
        )
    return file


def _settings(manager: str) -> tuple[str, ...]:
    return next(one.settings for one in MANAGERS if one.name == manager)


def _husky_folder(folder: HooksFolder, root_abs: str) -> str:
    """Return the folder of husky's scripts: above that of its hooks, which core.hooksPath names."""
    parent, last = os.path.split(os.path.relpath(folder.path_abs, root_abs))
    return parent if last == "_" and not parent.startswith("..") else ".husky"


def _files(managers: tuple[str, ...], root_abs: str, folder: HooksFolder) -> list[str]:
    """Return the files that may hold entries of ours."""
    found = [block.FILE] if set(FRAMEWORK) & set(managers) else []
    found += ["prek.toml"] if "prek" in managers else []
    if "lefthook" in managers:
        found += _settings("lefthook")
    if "husky" in managers:
        scripts = _husky_folder(folder, root_abs)
        found += [f"{scripts}/{hook}" for hook in HUSKYS]
    if via_package.KEY in managers:
        found += _PACKAGES
    return [file for file in found if os.path.isfile(os.path.join(root_abs, file))]


def _addition(manager: str, file: str, hooks: tuple[str, ...], root_abs: str) -> Change:
    before = own_file.read(os.path.join(root_abs, file))
    clean = None if before is None else remove(before, file)
    return Change(file, before, add(clean, manager, file, hooks), hooks)


def _put(manager: str, file: str, text: str | None, hooks: tuple[str, ...]) -> str | None:
    command = f"gitgates install-hooks --via {manager}"
    if file == block.FILE:
        return block.put(text, hooks, command)
    if manager == via_package.KEY:
        return via_package.put(text or "", hooks, file)
    if text is None:
        text = marked.made(command)
        if manager == "husky":
            return text + marked.block(command, f"{via_shell.call(manager, hooks[0])}\n")
    if manager == "husky":
        return via_shell.put(text, manager, hooks[0], command)
    if file.endswith(".toml"):
        try:
            lines = (
                via_toml.prek_lines(hooks)
                if manager == "prek"
                else via_lefthook.toml_lines(text, hooks, file)
            )
        except (ValueError, RecursionError) as error:
            raise ConfigError(f"{file}: is no valid TOML: {error}", "Mend it first.") from error
        return via_toml.put(text, lines, command)
    if file.endswith((".yml", ".yaml")):
        return via_lefthook.put(text, hooks, file, command)
    return None


def _by_hand(manager: str, file: str, hooks: tuple[str, ...]) -> str:
    if manager in FRAMEWORK:
        return via_toml.prek_lines(hooks) if file.endswith(".toml") else block.lines(hooks)
    if manager == "lefthook":
        return "".join(via_lefthook.lines(hook, file) for hook in hooks)
    if manager == "husky":
        return via_shell.lines(manager, hooks[0])
    return "".join(f"  {json.dumps(h)}: {json.dumps(via_shell.call(manager, h))}\n" for h in hooks)
