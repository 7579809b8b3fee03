"""The settings files in commits and trees, with those of members and extended ones."""

from __future__ import annotations

from gitgates.config import FILES
from gitgates.config.load import leads_on
from gitgates.git.object_store import read_blobs
from gitgates.git.repo import nul_split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.config.sources import Raw
    from gitgates.git.repo import Git

_LARGEST = 1 << 26  # bytes of a configuration


def settings_in(git: Git, revisions: Iterable[str]) -> list[Raw]:
    """Return the settings files in each commit or tree, as `read_files` does of a worktree.

    Raises: GitError.
    """
    ids = [*revisions]
    names = {revision: [f"{revision}:{name}" for name in FILES] for revision in ids}
    blobs = read_blobs(git, (name for of_one in names.values() for name in of_one), _LARGEST)
    raws = (dict(zip(FILES, map(blobs.get, names[revision]), strict=True)) for revision in ids)
    return [
        _with_others(git, revision, raw) if leads_on(raw) else raw
        for revision, raw in zip(ids, raws, strict=True)
    ]


def _with_others(git: Git, revision: str, raw: Raw) -> Raw:
    from gitgates.config.sources import gather  # most have one file

    folders: dict[str, list[str]] = {}

    def read(paths: list[str]) -> Raw:
        blobs = read_blobs(git, (f"{revision}:{path}" for path in paths), _LARGEST)
        return {path: blobs.get(f"{revision}:{path}") for path in paths}

    def subfolders(folder: str) -> list[str]:
        if folder not in folders:
            entries = nul_split(git.ask("ls-tree", "-z", f"{revision}:{folder}").stdout)
            trees = (entry.partition("\t") for entry in entries)
            folders[folder] = [name for kind, _tab, name in trees if " tree " in kind]
        return folders[folder]

    return gather(raw, read, subfolders)
