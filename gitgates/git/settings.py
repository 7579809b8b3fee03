"""The configuration in commits, trees and the index, with that of members and extended files."""

from __future__ import annotations

import os

from gitgates.config import FILES, LOCAL_FILE, OWN_FILE, PYPROJECT
from gitgates.config.load import checked, config_of, has_settings, leads_on, read_local
from gitgates.core.errors import ConfigError
from gitgates.core.types import Config, Counted
from gitgates.git.index import committed_tree
from gitgates.git.object_store import read_blobs, reading_git
from gitgates.git.repo import nul_split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from gitgates.config.load import SettingsFiles
    from gitgates.config.sources import Raw
    from gitgates.git.repo import Git, Repo

STAGED = "in what is being committed"
_EDITED = "the configuration has uncommitted changes, which do not apply"
_LARGEST = 1 << 26  # bytes of a configuration
_FOLLOW = "--follow-symlinks"
# What git prints for a link that leads to no file in the same tree.
_BROKEN = (b"symlink", b"dangling", b"loop", b"notdir")


def configurations(git: Git, ids: Sequence[str]) -> list[Config | ConfigError]:
    """Return the configuration in each commit or tree, or the error in it.

    Raises: GitError.
    """
    return parsed(settings_in(git, ids))


def parsed(settings: Iterable[Raw | ConfigError]) -> list[Config | ConfigError]:
    """Return each configuration, or the error in it; equal settings are parsed once."""
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


# What counts instead of the working tree's configuration.


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
    for (treeish, place), raw in zip(places.items(), settings_in(git, places), strict=True):
        whole = raw if isinstance(raw, ConfigError) else {**raw, **local}
        if files and not isinstance(whole, ConfigError) and _content(whole) == _content(files.raw):
            counted[treeish] = Counted(config_of(files, repo.config_cache_abs))
            continue
        try:
            config = checked(whole)
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


# The files.


def settings_in(git: Git, revisions: Iterable[str]) -> list[Raw | ConfigError]:
    """Return the settings files in each commit or tree, as `read_files` does for a worktree.

    If a link leads to no file in it, returns that error.

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
    """Return the root's files and those that they name. Raises: ConfigError for a link."""
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
    """Return what `_find` does for a name with a newline, and "" for a link."""
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
