"""Limit a run by `--directory`: to paths below a folder, and to gates of the members there."""

from __future__ import annotations

import os

from gitgates.config import OWN_FILE, PYPROJECT
from gitgates.core.errors import ConfigError, UsageError
from gitgates.core.types import Config, Hook
from gitgates.git.repo import Repo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.paths import Paths


def members_of(config: Config) -> list[str]:
    """Return members' folders, and those of extended files with the same names as theirs."""
    files = (os.path.split(file) for file in config.sources)
    return [folder for folder, name in files if folder and name in (OWN_FILE, PYPROJECT)]


def folder_of(directory: str, repo: Repo) -> str:
    """Return a folder relative to the root; "" for the root, or if none is given.

    Raises: UsageError if it is no folder, or outside the repository.
    """
    folder = repo.relative(directory) if directory else "."
    if folder == ".." or folder.startswith("../"):
        raise UsageError(f"`{directory}` is outside the repository {repo.root_abs}")
    if not os.path.isdir(f"{repo.root_abs}/{folder}"):
        hint = "It is relative to the current folder."
        raise UsageError(f"--directory {directory}: no such folder", hint)
    return "" if folder == "." else folder


def paths_below(folder: str, paths: Paths) -> Paths:
    """Return the existing and deleted paths below a folder."""
    if not folder:
        return paths
    selected, deleted = (tuple(p for p in some if _is_below(p, folder)) for some in paths)
    return selected, deleted


def gates_below(folder: str, config: Config, hook: Hook) -> Hook:
    """Return a hook with only the gates of members in or around a folder.

    It keeps all gates if there is no such member. Raises: ConfigError if no gate is left.
    """
    members = [member for member in members_of(config) if _are_related(member, folder)]
    if not (folder and members):
        return hook
    starts = tuple(f"{member}:" for member in members)
    gates = tuple(name for name in hook.gates if name.startswith(starts))
    if not gates:
        message = f"hook `{hook.name}` has no gates in `{folder}`; nothing was checked"
        raise ConfigError(message, f"Its gates: {', '.join(hook.gates) or 'none'}.")
    return hook._replace(gates=gates)


def _are_related(one: str, other: str) -> bool:
    return _is_below(one, other) or _is_below(other, one)


def _is_below(path: str, folder: str) -> bool:
    return f"{path}/".startswith(f"{folder}/")
