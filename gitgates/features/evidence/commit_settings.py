"""The configurations that are in commits, not the one of the working tree."""

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
    """Return the configuration that is in each commit or tree, or what is wrong with it.

    Raises: GitError.
    """
    blobs = read_blobs(git, (f"{one}:{name}" for one in ids for name in FILES), _LARGEST)
    known: dict[tuple[bytes | None, ...], Config | ConfigError] = {}
    found = [tuple(blobs.get(f"{one}:{name}") for name in FILES) for one in ids]
    for raw in found:
        if raw not in known:
            try:
                known[raw] = checked(raw) or Config()
            except ConfigError as error:
                known[raw] = error
    return [known[raw] for raw in found]
