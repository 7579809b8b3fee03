"""Where Claude Code's settings are, and the command that starts us from there."""

from __future__ import annotations

import os
import shlex
import sys

from gitgates.errors import StateError
from gitgates.install.claude import ARGUMENTS, BARE, PLUGIN
from gitgates.proc.call import which
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SCOPES = ("project", "local", "user")
FOLDER = ".claude"
_FILES = {"project": "settings.json", "local": "settings.local.json"}


class Start(Record):
    """The command of our hooks in one scope."""

    command: str
    remark: str = ""  # what is missing for it to work


def settings_file(scope: str, root_abs: str, env: Mapping[str, str]) -> str:
    """Return the settings file of a scope. The folder of a person's own may be moved.

    Raises: StateError where there is no home.
    """
    if scope in _FILES:
        return os.path.join(root_abs, FOLDER, _FILES[scope])
    moved, home = env.get("CLAUDE_CONFIG_DIR"), env.get("HOME")
    if not moved and not home:
        raise StateError(
            "neither HOME nor CLAUDE_CONFIG_DIR is set, so that there are no settings of yours",
            "Set one, or take another scope: --scope local",
        )
    folder = moved or os.path.join(home or "", FOLDER)
    return os.path.join(os.path.abspath(folder), "settings.json")


def start(scope: str, env: Mapping[str, str]) -> Start:
    """Return the command for a scope: the bare one where a client finds it, and never a relative.

    A client that was started without a virtual environment does not see its programs, so that these
    do not count. Settings that a team shares get no path of this machine.
    """
    if _find_bare(env):
        return Start(BARE)
    beside = _beside()
    is_there = os.access(beside, os.X_OK) and _is_text(beside)
    if scope == "project" or not is_there:
        return Start(BARE, _missing(beside if is_there else ""))
    return Start(shlex.join((beside, *ARGUMENTS)))


def program_of(command: str) -> str | None:
    """Return the program that a command of ours names by its path; None for the bare name."""
    return None if command in (BARE, PLUGIN) else shlex.split(command)[0]


def is_known(program: str, env: Mapping[str, str]) -> bool:
    """Tell whether a program is this gitgates, or the one that a person's own PATH finds."""
    known = (_beside(), _find_bare(env), _which(env))
    return os.path.realpath(program) in {os.path.realpath(one) for one in known if one}


def is_in_path(env: Mapping[str, str]) -> bool:
    """Tell whether a shell finds `gitgates` now, be it by the help of a virtual environment."""
    return bool(_which(env))


def _which(env: Mapping[str, str]) -> str:
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    return _search([name for name in folders if os.path.isabs(name)])


def _beside() -> str:
    return os.path.join(os.path.dirname(os.path.abspath(sys.executable)), "gitgates")


def _find_bare(env: Mapping[str, str]) -> str:
    """Return the `gitgates` that a shell finds without any virtual environment's help."""
    folders = env.get("PATH", os.defpath).split(os.pathsep)
    return _search([name for name in folders if os.path.isabs(name) and not _is_in_venv(name)])


def _search(folders: list[str]) -> str:
    try:
        return which("gitgates", os.pathsep.join(folders)) if folders else ""
    except OSError:
        return ""


def _is_text(path: str) -> bool:
    """Tell whether JSON can hold a path: one that is no UTF-8, it cannot."""
    return path.encode("utf-8", "replace").decode() == path


def _is_in_venv(folder: str) -> bool:
    return os.path.isfile(os.path.join(os.path.dirname(os.path.normpath(folder)), "pyvenv.cfg"))


def _missing(where: str) -> str:
    known = f" (only {where}, which is found in its virtual environment alone)" if where else ""
    return (
        f"there is no `gitgates` in the PATH, where these hooks look for it{known}\n"
        "  Put it there, for example with: pipx install gitgates"
    )
