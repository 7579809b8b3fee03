"""Install shims into a hooks folder, and uninstall them. Other hooks are never lost.

A shim is the small sh script that git runs, and that starts gitgates. An existing hook is renamed,
and gitgates runs it first. Whether every hook can be renamed is checked before any file is touched.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Literal, TypeAlias

import gitgates
from gitgates.core.errors import StateError
from gitgates.core.record import Record
from gitgates.edit.user_file import content
from gitgates.git.previous_hook import BECOME, MARK, OPENS_ITSELF, SUFFIX
from gitgates.setup.install.managers import FRAMEWORK, Manager, called_hooks, recognise
from gitgates.store.files import replace_file

# custom: a hand-written hook that mentions gitgates.
Kind: TypeAlias = Literal["none", "shim", "manager", "custom", "other"]
_SHELL = re.compile(rb"^#!.*[/ ](sh|bash|dash|ash)( -\w+)*\s*$")
_OPENS_ITSELF = re.compile(OPENS_ITSELF.encode(), re.MULTILINE)
_SHELL_NAME = re.compile(rb"basename[^;|\n]*[$]\{?(0|BASH_SOURCE)|[$]\{(0|BASH_SOURCE[^}]*)##")
_OTHER_NAME = re.compile(
    rb"[$]0\b|PROGRAM_NAME|sys\.argv\[0\]|process\.argv\[1\]|basename\W+__(file|FILE)__"
)


class HookFile(Record):
    """A hook's file: none, a gitgates shim, or another hook."""

    path_abs: str
    kind: Kind
    executable: bool = False
    manager: Manager | None = None
    python: str = ""  # the interpreter in a shim
    home: str = ""  # the folder of the gitgates package in a shim
    current: bool = True  # whether this version writes the same shim, except for those two

    @property
    def hook(self) -> str:
        """The hook's name."""
        return os.path.basename(self.path_abs)

    @property
    def kept_abs(self) -> str:
        """The path of the previous hook, which was renamed."""
        return self.path_abs + SUFFIX

    @property
    def has_kept(self) -> bool:
        """Return whether there is a previous hook."""
        return os.path.lexists(self.kept_abs)

    @property
    def is_copied(self) -> bool:
        """Return whether the previous hook's manager has replaced the shim with that hook."""
        return self.has_kept and content(self.path_abs) == content(self.kept_abs)

    @property
    def is_another(self) -> bool:
        """Return whether it is a hook, and not ours."""
        return self.kind not in ("none", "shim")

    @property
    def aside_abs(self) -> str:
        """The path to which its manager has moved our shim; empty if it has not."""
        suffix = self.manager.previous_suffix if self.manager else ""
        return self.path_abs + suffix if suffix and is_ours(self.path_abs + suffix) else ""


def render(hook: str) -> bytes:
    """Return a hook's shim, which names this interpreter and this installation."""
    package_abs = os.path.dirname(os.path.abspath(gitgates.__file__))
    shim_abs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shim.sh")
    with open(shim_abs, encoding="utf-8") as file:
        template = file.read()
    become = "".join(f"    {line}" for line in BECOME.splitlines(keepends=True))
    template = template.replace("    @BECOME@\n", become)
    values = {"HOOK": hook, "PYTHON": sys.executable, "HOME": os.path.dirname(package_abs)}
    for name, value in values.items():
        template = template.replace(f"=@{name}@\n", f"={shlex.quote(value)}\n")
    return os.fsencode(template)


def is_ours(path_abs: str) -> bool:
    """Return whether a file is a gitgates shim; a link never is."""
    head = b"" if os.path.islink(path_abs) else content(path_abs)
    return head.partition(b"\n")[2].startswith(MARK)


def read_hook(path_abs: str) -> HookFile:
    """Read a hook's file."""
    if not os.path.lexists(path_abs):
        return HookFile(path_abs, "none")
    text = content(path_abs)
    executable = os.path.isfile(path_abs) and os.access(path_abs, os.X_OK)
    if is_ours(path_abs):
        lines = os.fsdecode(text).splitlines()
        values = {name: _word(value) for name, _, value in (line.partition("=") for line in lines)}
        is_current = _body(text) == _body(render(values.get("hook", "")))
        python, home = values.get("python", ""), values.get("home", "")
        return HookFile(path_abs, "shim", executable, None, python, home, is_current)
    if manager := recognise(text):
        return HookFile(path_abs, "manager", executable, manager)
    return HookFile(path_abs, "custom" if b"gitgates" in text else "other", executable)


def is_served(file: HookFile, name: str, calls: Mapping[tuple[str, str], str]) -> bool:
    """Return whether a manager's hook, installed or renamed by us, runs the gates.

    `calls`: the managers' files that run gates, as `find_calls` returns them.
    """
    behind = read_hook(file.kept_abs) if file.kind == "shim" else file
    if not behind.executable or not behind.manager or behind.manager.name != name:
        return False
    if file.hook in called_hooks(content(behind.path_abs)):
        return True
    if name == "simple-git-hooks":  # its hooks are copies of its settings
        return False
    names = FRAMEWORK if name in FRAMEWORK else (name,)  # prek reads the settings of pre-commit
    return any((each, file.hook) in calls for each in names)


def _body(text: bytes) -> list[bytes]:
    """Return a shim's lines that do not depend on the installation."""
    return [line for line in text.splitlines() if not line.startswith((b"python=", b"home="))]


def _word(quoted: str) -> str:
    with suppress(ValueError):
        return "".join(shlex.split(quoted))
    return ""


def install(folder_abs: str, hooks: tuple[str, ...], *, force: bool) -> list[tuple[str, str]]:
    """Install the shims of `hooks` into a folder, which is created if it is missing.

    Returns paths with what was done. `force`: rename hooks even if they depend on their name.

    Raises: StateError if a hook is in the way, or the folder cannot be written.
    """
    files = [read_hook(os.path.join(folder_abs, hook)) for hook in hooks]
    others = [file for file in files if file.is_another]
    if in_the_way := [file for file in others if file.has_kept and not file.is_copied]:
        raise _in_the_way(in_the_way)
    if refused := [f for f in others if f.executable and _needs_name(f) and not force]:
        raise _needs_names(refused)
    try:
        os.makedirs(folder_abs, exist_ok=True)
        return [(file.path_abs, _install_one(file)) for file in files]
    except OSError as error:
        raise _cannot_write(folder_abs, error) from error


def uninstall(folder_abs: str, hooks: tuple[str, ...]) -> list[tuple[str, str]]:
    """Remove the shims from a folder, and restore the previous hooks; return what was done.

    Raises: StateError if the folder cannot be written.
    """
    files = [read_hook(os.path.join(folder_abs, hook)) for hook in hooks]
    try:
        messages = [(file.path_abs, _uninstall_one(file)) for file in files]
    except OSError as error:
        raise _cannot_write(folder_abs, error) from error
    return [(path_abs, message) for path_abs, message in messages if message]


def _in_the_way(files: list[HookFile]) -> StateError:
    names = "".join(f"\n  {file.path_abs}\n  {file.kept_abs}" for file in files)
    what = "another hook is in place, and an earlier one is already kept; nothing was changed:"
    return StateError(what + names, "Look at both, and remove the one that you no longer need.")


def _needs_names(files: list[HookFile]) -> StateError:
    """Return the error for hooks that depend on their own name."""
    names = "".join(f"\n  {file.path_abs}" for file in files)
    lines = "".join(f'    gitgates git-hook --via=own {file.hook} "$@"\n' for file in files)
    what = (
        "an existing hook depends on its own name ($0), and would be renamed; nothing was changed:"
    )
    return StateError(
        what + names,
        f"Leave it there and run the gates from it, in sh:\n{lines}"
        "  Or rename it anyway, and check that it still works: gitgates install-hooks --force",
    )


def _needs_name(file: HookFile) -> bool:
    """Return whether a hook acts by its own name, and cannot get that name after a renaming.

    Scripts of sh and bash can (`git/previous_hook.py`), unless they also open their own file.
    """
    text = content(file.path_abs)
    first = text.partition(b"\n")[0]
    if first.startswith(b"#!") and not _SHELL.search(first):
        return bool(_OTHER_NAME.search(text))
    opens_itself = (
        bool(_OPENS_ITSELF.search(text)) if first.startswith(b"#!") else b"\0" not in text
    )
    return opens_itself and bool(_SHELL_NAME.search(text))


def _install_one(file: HookFile) -> str:
    """Install a shim, and rename the existing hook; return what was done."""
    shim = render(file.hook)
    kept_name = os.path.basename(file.kept_abs)
    what = "installed"
    if file.kind == "shim":
        if file.executable and content(file.path_abs) == shim:
            return "already installed"
        what = "updated"
    elif file.is_another:
        os.rename(file.path_abs, file.kept_abs)
        not_run = "is kept; git did not run it (not executable), nor does gitgates"
        how = "runs first" if file.executable else not_run
        what += f"; the existing hook {how}: {kept_name}"
    elif file.has_kept:
        what += f"; {kept_name} runs first"
    replace_file(file.path_abs, shim, mode=0o755, sync=False)  # git never sees a partial hook
    return what


def _uninstall_one(file: HookFile) -> str:
    """Remove a shim, and restore the previous hook; return what was done."""
    if file.is_another:
        return _uninstall_aside(file)
    kept_name = os.path.basename(file.kept_abs)
    kept = read_hook(file.kept_abs)
    what = "was already removed" if file.has_kept else ""
    if file.kind == "shim":
        what = "removed"
        if not file.has_kept or os.path.isdir(file.kept_abs):
            os.unlink(file.path_abs)  # else the previous hook replaces it
    elif kept.manager:  # it has removed its own hook, and ours with it
        return f"{what}; {kept_name} is {kept.manager.name}'s, and is left unchanged"
    if file.has_kept:
        os.rename(file.kept_abs, file.path_abs)
        what += f"; the previous hook was restored ({kept_name})"
        if aside_abs := file._replace(manager=kept.manager).aside_abs:
            os.unlink(aside_abs)
    return what


def _uninstall_aside(file: HookFile) -> str:
    """Remove our shim from the path to which a manager has moved it; return what was done.

    Our previous hook goes there, unless it is an older one by the same manager.
    """
    kept_name, manager, message = os.path.basename(file.kept_abs), file.manager, ""
    if manager and (aside_abs := file.aside_abs):
        name = os.path.basename(aside_abs)
        message = f"{manager.name}'s is left unchanged; the gitgates hook was removed ({name})"
        os.unlink(aside_abs)
        if file.has_kept and recognise(content(file.kept_abs)) != manager:
            os.rename(file.kept_abs, aside_abs)
            return f"{message}; the previous hook is {name} again"
    if not file.has_kept:
        return message
    if manager and file.is_copied:
        os.unlink(file.kept_abs)
        return message or f"{manager.name}'s is left unchanged; its copy {kept_name} was removed"
    return f"{message or 'not a gitgates hook, left unchanged'}; so is {kept_name} next to it"


def _cannot_write(folder_abs: str, error: OSError) -> StateError:
    what = os.fsdecode(error.filename) if error.filename else folder_abs
    look = f"Look at it with: ls -ld {folder_abs}"
    return StateError(f"{what}: {error.strerror}: cannot write the hooks", look)
