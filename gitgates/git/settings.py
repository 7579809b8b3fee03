"""The settings files in commits and trees, with those of members and extended ones."""

from __future__ import annotations

import os

from gitgates.config import FILES
from gitgates.config.load import checked, leads_on
from gitgates.core.errors import ConfigError
from gitgates.core.types import Config
from gitgates.git.object_store import read_blobs
from gitgates.git.repo import nul_split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from gitgates.config.sources import Raw
    from gitgates.git.repo import Git

_LARGEST = 1 << 26  # bytes of a configuration
_FOLLOW = "--follow-symlinks"
# What git says of a link that leads to no file of the same tree.
_BROKEN = (b"symlink", b"dangling", b"loop", b"notdir")


def configurations(git: Git, ids: Sequence[str]) -> list[Config | ConfigError]:
    """Return the configuration in each commit or tree, or the error in it.

    Raises: GitError.
    """
    return parsed(settings_in(git, ids))


def parsed(settings: Iterable[Raw | ConfigError]) -> list[Config | ConfigError]:
    """Return the configuration of each settings, or the error in it; equal ones are read once."""
    known: dict[object, Config | ConfigError] = {}
    configs: list[Config | ConfigError] = []
    for raw in settings:
        content = raw if isinstance(raw, ConfigError) else tuple(raw.items())
        if content not in known:
            try:
                known[content] = checked(raw) or Config()
            except ConfigError as error:
                known[content] = error
        configs.append(known[content])
    return configs


def settings_in(git: Git, revisions: Iterable[str]) -> list[Raw | ConfigError]:
    """Return the settings files in each commit or tree, as `read_files` does of a worktree.

    Or the error in it: a link that leads to no file of it.

    Raises: GitError.
    """
    names = [[f"{revision}:{name}" for name in FILES] for revision in revisions]
    blobs = _find(git, [name for in_root in names for name in in_root], _FOLLOW)
    contents = read_blobs(git, [blob for blob in blobs.values() if blob], _LARGEST)
    settings: list[Raw | ConfigError] = []
    for in_root in names:
        try:
            for name in in_root:
                if blobs[name] == "":
                    raise _broken(git, name)
            raw = {
                file: contents.get(blobs[name] or "")
                for file, name in zip(FILES, in_root, strict=True)
            }
            revision = in_root[0].partition(":")[0]
            settings.append(_with_others(git, revision, raw) if leads_on(raw) else raw)
        except ConfigError as error:
            settings.append(error)
    return settings


def _with_others(git: Git, revision: str, raw: Raw) -> Raw:
    """Return the root's files with those that they lead to. Raises: ConfigError for a link."""
    from gitgates.config.sources import gather  # most have one file

    folders: dict[str, list[str]] = {}

    def read(paths: list[str]) -> Raw:
        names = {path: f"{revision}:{path}" for path in paths}
        blobs, unfollowed = _find(git, names.values(), _FOLLOW), _find(git, names.values())
        contents = read_blobs(git, [blob for blob in blobs.values() if blob], _LARGEST)
        for path, name in names.items():
            if blobs[name] == "" or blobs[name] != unfollowed[name]:
                message = f"{path}: is a symbolic link, or in a folder that is one"
                raise ConfigError(message, "Name a file or folder of this repository itself.")
        return {path: contents.get(blobs[name] or "") for path, name in names.items()}

    def subfolders(folder: str) -> list[str]:
        if folder not in folders:
            entries = nul_split(git.ask("ls-tree", "-z", f"{revision}:{folder}").stdout)
            trees = (entry.partition("\t") for entry in entries)
            folders[folder] = [name for kind, _tab, name in trees if " tree " in kind]
        return folders[folder]

    return gather(raw, read, subfolders)


def _find(git: Git, names: Collection[str], *follow: str) -> dict[str, str | None]:
    """Return name → id of a file's blob; None: there is none; "": a link leads to no file.

    Source: git-cat-file(1), BATCH OUTPUT.
    """
    blobs = {name: _find_odd(git, name) for name in names if "\n" in name}
    unique = [name for name in dict.fromkeys(names) if name not in blobs]
    stdin = b"".join([os.fsencode(name) + b"\n" for name in unique])
    ask = ("cat-file", "--batch-check=%(objectname) %(objecttype)", "--buffer", *follow)
    output, at = git.out(*ask, stdin=stdin), 0
    for name in unique:
        end = output.index(b"\n", at)
        first, _space, second = output[at:end].rpartition(b" ")
        at = end + 1
        if first in _BROKEN:
            at += int(second) + 1
            blobs[name] = ""
        else:
            blobs[name] = first.decode() if second == b"blob" else None
    return blobs


def _find_odd(git: Git, name: str) -> str | None:
    """Return what `_find` does, of a name with a newline, and "" for each link."""
    revision, _colon, path = name.partition(":")
    entry = os.fsdecode(git.out("ls-tree", "-z", "--full-tree", revision, path))
    mode, kind, blob = (*entry.partition("\t")[0].split(" "), "", "")[:3]
    if kind != "blob":
        return None
    return blob if mode.startswith("100") else ""


def _broken(git: Git, name: str) -> ConfigError:
    target = os.fsdecode(git.ask("cat-file", "blob", name).stdout)
    message = (
        f"{name.partition(':')[2]}: is a symbolic link to `{target}`, which is not a file there"
    )
    return ConfigError(
        message, "A commit has only the files of its own tree: link to one of them, or copy it."
    )
