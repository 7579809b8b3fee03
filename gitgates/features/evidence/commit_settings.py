"""The configurations in commits, not the one of the working tree."""

from __future__ import annotations

from gitgates.config.load import FILES, checked
from gitgates.core.errors import ConfigError
from gitgates.core.types import Config
from gitgates.git.object_store import read_blobs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitgates.git.repo import Git

_LARGEST = 1 << 26  # bytes of a configuration


def configurations(git: Git, ids: Sequence[str]) -> list[Config | ConfigError]:
    """Return the configuration in each commit or tree, or the error in it.

    Raises: GitError.
    """
    blobs = read_blobs(git, (f"{revision}:{name}" for revision in ids for name in FILES), _LARGEST)
    config_by_content: dict[tuple[bytes | None, ...], Config | ConfigError] = {}
    contents = [tuple(blobs.get(f"{revision}:{name}") for name in FILES) for revision in ids]
    for raw in contents:
        if raw not in config_by_content:
            try:
                config_by_content[raw] = checked(raw) or Config()
            except ConfigError as error:
                config_by_content[raw] = error
    return [config_by_content[raw] for raw in contents]
