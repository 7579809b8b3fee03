"""Git's settings and files outside the tree that say how files are written or ignored."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo
    from gitgates.git.run import Git

_LAYOUT = r"^(core\.(autocrlf|eol|symlinks|filemode|attributesfile)|filter\.)"


def layout_settings(repo: Repo) -> bytes:
    """Return all, besides the tree, that decides how git writes a file. To be compared only."""
    git = repo.git
    # Exit status 1: nothing is set.
    settings = git.ask("config", "-z", "--get-regexp", _LAYOUT).stdout
    files = (
        f"{repo.common_dir_abs}/info/attributes",
        personal_file(git, "core.attributesFile", "attributes"),
    )
    return b"\0\0".join((settings, *(_content(path) for path in files)))


def personal_file(git: Git, key: str, usual: str) -> str:
    """Return the file of the user's that `key` names, or git's usual one. Source: gitignore(5)."""
    named = git.ask("config", "--type=path", "--get", key)
    if not named.exit_status:
        return os.path.join(git.cwd_abs, os.fsdecode(named.stdout).rstrip("\n"))
    home = git.env.get("HOME", "")
    config_abs = git.env.get("XDG_CONFIG_HOME", "") or f"{home}/.config"
    return f"{config_abs}/git/{usual}"


def _content(path_abs: str) -> bytes:
    try:
        with open(path_abs, "rb", buffering=0) as file:
            return file.read()
    except OSError:
        return b""
