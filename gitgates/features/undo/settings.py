"""The settings of save points."""

from __future__ import annotations

from gitgates.config.load import load, table_of
from gitgates.core.errors import ConfigError
from gitgates.core.record import Record
from gitgates.core.types import Config

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo


class UndoSettings(Record):
    """The table `[tool.gitgates.undo]`."""

    enabled: bool
    keep_s: float
    max_size_bytes: int
    max_file_bytes: int
    include: tuple[str, ...]


def settings_of(config: Config) -> UndoSettings:
    """Return the settings in a configuration."""
    return table_of(config, "undo", UndoSettings)


def repository_settings(repo: Repo) -> UndoSettings:
    """Return the settings of a repository; the defaults where its configuration is invalid.

    What has made it so may be what is to be undone.
    """
    try:
        config = load(repo.root_abs, f"{repo.state_abs}/config.marshal")
    except ConfigError:
        config = None
    return settings_of(config or Config())
