"""What decides which files count: settings, ignore rules, and other repositories inside."""

from __future__ import annotations

import os

from gitgates.files.facts import identity
from gitgates.git.repo import nul_split
from gitgates.store.files import read_or_empty, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.files.facts import LookFacts
    from gitgates.files.memory import Memory
    from gitgates.git.repo import Repo

# Kinds.
NESTED = "nested"  # another repository
OURS = "ours"  # the git folder of this repository, or another worktree of it
_USED = r"^core\.(filemode|symlinks|ignorecase|precomposeunicode|excludesfile|attributesfile)$"


def take_over(memory: Memory, facts: LookFacts) -> None:
    """Adopt the settings and the excluded paths.

    Raises: GitError, OSError.
    """
    repo = memory.repo
    config = tuple(map(identity, config_files(repo)))
    if not facts.settings or config != facts.config:
        settings_output = repo.git.ask("config", "--null", "--get-regexp", _USED)
        pairs = (entry.partition("\n")[::2] for entry in nul_split(settings_output.stdout))
        facts.settings = (*pairs, ("core.bare", "false"))
        facts.config = config
    excluded = read_or_empty(f"{repo.common_dir_abs}/info/exclude")
    own_abs = f"{memory.folder_abs}/info/exclude"
    if read_or_empty(own_abs) != excluded:
        replace_file(own_abs, excluded, sync=False)


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


def own_folders(repo: Repo) -> tuple[str, ...]:
    """Return where git's folders are, which may have another name than .git; with a slash."""
    folders = {repo.git_dir_abs, repo.common_dir_abs}
    return tuple(f"{os.path.relpath(folder, repo.root_abs)}/" for folder in folders)


def nested_kind(repo: Repo, folder: str) -> str:
    """Return NESTED or OURS for a folder that is a repository's root; empty for any other."""
    folder_abs = f"{repo.root_abs}/{folder.rstrip('/')}"
    git_abs = f"{folder_abs}/.git"
    if os.path.isdir(git_abs):
        return NESTED if os.path.isfile(f"{git_abs}/HEAD") else ""
    try:
        with open(git_abs, "rb") as file:
            line = os.fsdecode(file.read(4096))
    except OSError:
        return ""
    if not line.startswith("gitdir: "):
        return ""
    git_dir_abs = os.path.join(folder_abs, line.removeprefix("gitdir: ").rstrip("\r\n"))
    try:
        with open(f"{git_dir_abs}/commondir", "rb") as file:
            common = os.fsdecode(file.read(4096)).rstrip("\r\n")
        if os.path.samefile(os.path.join(git_dir_abs, common), repo.common_dir_abs):
            return OURS
    except OSError:
        pass
    return NESTED
