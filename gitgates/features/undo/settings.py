"""The settings for save points."""

from __future__ import annotations

from gitgates.config.load import load, table_of
from gitgates.core.errors import ConfigError
from gitgates.core.record import Record
from gitgates.core.types import Config
from gitgates.files.looked import Limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo


class UndoSettings(Record):
    """The table `[tool.gitgates.undo]`."""

    enabled: bool
    keep_s: float
    max_size_bytes: int
    max_file_bytes: int


def settings_of(config: Config) -> UndoSettings:
    """Return the settings in a configuration."""
    return table_of(config, "undo", UndoSettings)


def file_limits(config: Config) -> Limits | None:
    """Return the limits for saved files; None if no save points are taken."""
    return _limits(config) if settings_of(config).enabled else None


def _limits(config: Config) -> Limits:
    settings = settings_of(config)
    return Limits(max_file=settings.max_file_bytes, max_ignored=settings.max_size_bytes // 2)


def repository_limits(repo: Repo) -> Limits:
    """Return the limits of a repository; the defaults if its configuration is invalid.

    The change that made it invalid may be the one to undo.
    """
    try:
        config = load(repo.root_abs, repo.config_cache_abs)
    except ConfigError:
        config = None
    return _limits(config or Config())
