"""The configurations in commits, not the one of the working tree."""

from __future__ import annotations

from gitgates.config.load import checked
from gitgates.core.errors import ConfigError
from gitgates.core.types import Config
from gitgates.git.settings import settings_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitgates.git.repo import Git


def configurations(git: Git, ids: Sequence[str]) -> list[Config | ConfigError]:
    """Return the configuration in each commit or tree, or the error in it.

    Raises: GitError.
    """
    config_by_content: dict[tuple[tuple[str, bytes | None], ...], Config | ConfigError] = {}
    raws = settings_in(git, ids)
    contents = [tuple(raw.items()) for raw in raws]
    for raw, content in zip(raws, contents, strict=True):
        if content not in config_by_content:
            try:
                config_by_content[content] = checked(raw) or Config()
            except ConfigError as error:
                config_by_content[content] = error
    return [config_by_content[content] for content in contents]
