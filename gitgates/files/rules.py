"""What decides which files exist, and which git ignores: the user's settings and files."""

from __future__ import annotations

import os

from gitgates.files.facts import identity
from gitgates.git.repo import nul_split
from gitgates.store.files import read_or_empty, read_state, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.files.facts import LookFacts
    from gitgates.files.memory import Memory
    from gitgates.git.repo import Repo

_USED = r"^core\.(filemode|symlinks|ignorecase|precomposeunicode|excludesfile|attributesfile)$"


def take_over(memory: Memory, facts: LookFacts) -> bool:
    """Adopt the settings and the excluded paths; return whether other files may be ignored now.

    Raises: GitError, OSError.
    """
    repo = memory.repo
    config = tuple(map(identity, config_files(repo)))
    if not facts.settings or config != facts.config:
        settings_output = repo.git.ask("config", "--null", "--get-regexp", _USED)
        pairs = (entry.partition("\n")[::2] for entry in nul_split(settings_output.stdout))
        facts.settings = (*pairs, ("core.bare", "false"))
        facts.config = config
    excluded_abs = f"{repo.common_dir_abs}/info/exclude"
    rules = (facts.settings, identity(excluded_abs), identity(_excludes_file(repo, facts)))
    own_abs = f"{memory.folder_abs}/info/exclude"
    if rules == facts.rules and os.path.exists(own_abs) == bool(rules[1]):
        return False
    excluded = read_or_empty(excluded_abs)
    if (read_state(own_abs) or b"") != excluded:
        replace_file(own_abs, excluded, sync=False)
    facts.rules = rules
    return True


def attribute_files(repo: Repo) -> tuple[str, ...]:
    """Return the files that may have attributes, beside those named .gitattributes in folders."""
    return (
        f"{repo.common_dir_abs}/info/attributes",
        f"{repo.root_abs}/.gitattributes",
        f"{_config_folder(repo)}/git/attributes",
        "/etc/gitattributes",
    )


def config_files(repo: Repo) -> tuple[str, ...]:
    """Return the files that may have settings of git."""
    home, config_abs = repo.env.get("HOME", ""), _config_folder(repo)
    return (
        f"{repo.common_dir_abs}/config",
        f"{repo.git_dir_abs}/config.worktree",
        repo.env.get("GIT_CONFIG_GLOBAL", "") or f"{home}/.gitconfig",
        f"{config_abs}/git/config",
        "/etc/gitconfig",
    )


def _config_folder(repo: Repo) -> str:
    return repo.env.get("XDG_CONFIG_HOME", "") or f"{repo.env.get('HOME', '')}/.config"


def _excludes_file(repo: Repo, facts: LookFacts) -> str:
    settings: dict[str, Any] = dict(facts.settings)
    path = str(settings.get("core.excludesfile", "") or f"{_config_folder(repo)}/git/ignore")
    if path.startswith("~/"):
        path = repo.env.get("HOME", "") + path[1:]
    return os.path.join(repo.root_abs, path)
