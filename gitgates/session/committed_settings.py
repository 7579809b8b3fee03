"""The configuration of an index or of commits, which counts instead of the working tree's."""

from __future__ import annotations

from gitgates.config import LOCAL_FILE, OWN_FILE, PYPROJECT
from gitgates.config.load import checked, config_of, has_settings, read_local
from gitgates.core.errors import ConfigError
from gitgates.core.types import Counted
from gitgates.git.index import committed_tree
from gitgates.git.object_store import reading_git
from gitgates.git.settings import settings_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.config.load import SettingsFiles
    from gitgates.config.sources import Raw
    from gitgates.core.types import Config
    from gitgates.git.repo import Git, Repo

STAGED = "in what is being committed"
_EDITED = "the configuration has uncommitted changes, which do not apply"


def counted_in_index(repo: Repo, files: SettingsFiles | None, place: str = "") -> Counted:
    """Return the configuration in the index being committed; the rest is as in `counted_in`.

    Raises: ConfigError, GitError, OSError.
    """
    tree = committed_tree(repo)
    return counted_in(repo, reading_git(repo), {tree: place or STAGED}, files)[tree]


def counted_in(
    repo: Repo, git: Git, places: Mapping[str, str], files: SettingsFiles | None
) -> dict[str, Counted]:
    """Return the configurations in commits or trees. `places`: id → where that is, for people.

    `files` are those of the working tree; None: they cannot be read.

    Raises: ConfigError if one of them has problems; GitError.
    """
    local = {LOCAL_FILE: read_local(repo.root_abs)}
    counted: dict[str, Counted] = {}
    parsed: dict[object, Config | None] = {}
    for (treeish, place), raw in zip(places.items(), settings_in(git, places), strict=True):
        whole = raw if isinstance(raw, ConfigError) else {**raw, **local}
        content = whole if isinstance(whole, ConfigError) else _content(whole)
        if files and content == _content(files.raw):
            counted[treeish] = Counted(config_of(files, repo.config_cache_abs))
            continue
        try:
            config = parsed[content] = parsed.get(content) or checked(whole)
        except ConfigError as error:
            message = f"the configuration {place} has problems:\n{error.message}"
            hint = error.hint if error is whole else _another(place)
            raise ConfigError(message, hint) from error
        counted[treeish] = Counted(config, _note(config, place, files))
    return counted


def _note(config: Config | None, place: str, files: SettingsFiles | None) -> str:
    """Return what a person should know if the working tree has another configuration."""
    if not config:
        if not (files and has_settings(files.raw)):
            return ""
        name = PYPROJECT if files.raw.get(OWN_FILE) is None else OWN_FILE
        way = f" (to add it: git add {name})" if place == STAGED else ""
        return f"no [tool.gitgates] {place}; nothing was checked{way}"
    if files and files.config and files.config.digest == config.digest:
        return ""
    if place == STAGED:
        return _EDITED
    return f"the configuration {place} applies, not the working tree's"


def _content(raw: Raw) -> tuple[tuple[str, bytes], ...]:
    """Return the existing files, with line endings as TOML reads them."""
    return tuple(sorted((p, c.replace(b"\r\n", b"\n")) for p, c in raw.items() if c is not None))


def _another(place: str) -> str:
    """Return what to do if the configuration that applies has errors."""
    verb = "stage" if place == STAGED else "commit"
    return f"The working tree's configuration differs: {verb} it if it is right."
