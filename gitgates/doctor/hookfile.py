"""One hook as git would find it: nothing, our shim, or somebody else's."""

from __future__ import annotations

import os
import shlex

from gitgates.git.previous_hook import SUFFIX
from gitgates.install.githooks import is_ours, render
from gitgates.install.managers import Manager, recognise
from gitgates.record import Record
from gitgates.store.files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    # custom: somebody's own hook that calls gitgates.
    Kind: TypeAlias = Literal["none", "shim", "manager", "custom", "other"]

_LONGEST_READ = 1 << 20


class HookFile(Record):
    """What stands in a hook's place."""

    path_abs: str
    kind: Kind
    executable: bool = False
    manager: Manager | None = None
    python: str = ""  # of a shim: the interpreter, and the folder that holds our package
    home: str = ""
    current: bool = True  # of a shim: as this version would write it, but for those two


def look(path_abs: str) -> HookFile:
    """Look at one file."""
    if not os.path.lexists(path_abs):
        return HookFile(path_abs, "none")
    content = _read(path_abs)
    executable = os.path.isfile(path_abs) and os.access(path_abs, os.X_OK)
    if is_ours(path_abs):
        return _shim(HookFile(path_abs, "shim", executable), content)
    if manager := recognise(content):
        return HookFile(path_abs, "manager", executable, manager)
    return HookFile(path_abs, "custom" if b"gitgates" in content else "other", executable)


def kept_by_us(file: HookFile) -> HookFile:
    """Look at the hook that our shim runs first."""
    return look(file.path_abs + SUFFIX)


def kept_by_manager(file: HookFile) -> HookFile:
    """Look at the hook that a manager has put aside."""
    if file.manager is None or not file.manager.kept:
        return HookFile(file.path_abs, "none")
    return look(file.path_abs + file.manager.kept)


def _read(path_abs: str) -> bytes:
    try:
        with open(path_abs, "rb", opener=open_regular) as file:
            return file.read(_LONGEST_READ)
    except OSError:
        return b""


def _shim(file: HookFile, content: bytes) -> HookFile:
    lines = os.fsdecode(content).splitlines()
    values = dict(line.split("=", 1) for line in lines if line.startswith(("python=", "home=")))
    hook = next((line[5:] for line in lines if line.startswith("hook=")), "")
    return file._replace(
        python=_word(values.get("python", "")),
        home=_word(values.get("home", "")),
        current=_body(content) == _body(render(_word(hook))),
    )


def _body(content: bytes) -> list[bytes]:
    """Return the lines of a shim that are the same wherever one version installs it."""
    return [line for line in content.splitlines() if not line.startswith((b"python=", b"home="))]


def _word(quoted: str) -> str:
    try:
        return "".join(shlex.split(quoted))
    except ValueError:
        return ""
