"""Load the settings files of a root into one `Config`. The only reader of pyproject.toml.

A hook reads the bytes of all settings files, members' and extended ones included, and compares
them with those that the cached configuration was made from; it parses TOML only if they differ. All
bytes are compared, so no coarse time stamp can make a stale copy look fresh. The cache is read with
`marshal`, as the interpreter reads its compiled modules: it is in the state folder, and whoever can
write there can also write git's hooks.
"""

from __future__ import annotations

import os
import sys

from gitgates import __version__
from gitgates.config import FILES, LOCAL_FILE, OWN_FILE, PYPROJECT
from gitgates.core.errors import ConfigError
from gitgates.core.record import Record
from gitgates.core.types import GATE_PARTS, Config, Gate, Hook, freeze_gate, thaw_gate
from gitgates.store.files import make_folder, open_regular, read_cached, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeVar

    from gitgates.config.sources import Raw
    from gitgates.core.types import Problem

    Table = TypeVar("Table")  # the record of a table

_MOST_REPORTED = 100
_NAMES_OTHERS = (b"members", b"extends")

# Another version, interpreter or shape of the records makes another key.
_KEY = (
    __version__,
    sys.implementation.cache_tag,
    Gate._fields,
    *(part._fields for part in GATE_PARTS.values()),
    Hook._fields,
    Config._fields,
)


class SettingsFiles(Record):
    """The settings files of a root, and their configuration, if that is known."""

    raw: Raw
    config: Config | None = None


def load(root_abs: str, cache_abs: str = "") -> Config | None:
    """Return the configuration of a root; None if it has none.

    `cache_abs` is a file that may be read and rewritten; empty: no cache.

    Raises: ConfigError with every problem that is not deferred.
    """
    return config_of(settings_here(root_abs, cache_abs), cache_abs)


def settings_here(root_abs: str, cache_abs: str = "") -> SettingsFiles:
    """Return the settings files of a root.

    Raises: ConfigError if one cannot be read.
    """
    cached = read_cache(cache_abs, root_abs) if cache_abs else None
    return cached or SettingsFiles(read_files(root_abs))


def config_of(here: SettingsFiles, cache_abs: str = "") -> Config | None:
    """Return the configuration in a root's settings files, and cache it; None if there is none.

    Raises: ConfigError with every problem that is not deferred.
    """
    config = here.config or checked(here.raw)
    if config and not here.config and cache_abs:
        _write_cache(cache_abs, here.raw, config)
    return config


def checked(raw: Raw | ConfigError) -> Config | None:
    """Return the configuration in the bytes of settings files; None if there is none.

    Raises: ConfigError with every problem that is not deferred, or the one that `raw` is.
    """
    if isinstance(raw, ConfigError):
        raise raw
    if not has_settings(raw):
        return None
    config, problems = parse_files(raw)
    refuse(problems, "To check it: gitgates check")
    return config


def has_settings(raw: Raw) -> bool:
    """Return whether settings files may contain a configuration at all."""
    has_own = any(raw.get(name) is not None for name in (OWN_FILE, LOCAL_FILE))
    return has_own or b"gitgates" in (raw.get(PYPROJECT) or b"")


def table_of(config: Config, name: str, kind: Callable[..., Table]) -> Table:
    """Return a feature's table as the feature's record.

    Without a configuration, the result is as if the table were missing.
    """
    return as_record(name, config.tables.get(name, {}), kind)


def as_record(name: str, fields: Mapping[str, Any], kind: Callable[..., Table]) -> Table:
    """Return those fields of a feature's table, or of an entry of its array, that a record has.

    Another version may have recorded them: missing fields get their default.
    """
    names = kind._fields  # type: ignore[attr-defined] # as each record has
    try:
        if len(fields) == len(names):  # of most tables, all
            return kind(**fields)
        return kind(**{field: fields[field] for field in fields if field in names})
    except TypeError:
        from gitgates.config.keys import completed  # cold: loads the key table

        everything = completed(name, fields)
        return kind(**{field: everything[field] for field in everything if field in names})


def with_table(config: Config, name: str, table: Record) -> Config:
    """Return a configuration in which a feature's table is replaced."""
    return config._replace(tables={**config.tables, name: table._asdict()})


def unconfigured() -> Config:
    """Return what applies without a configuration. Cold: loads the key tables."""
    from gitgates.config.parse import parse
    from gitgates.config.read import Document

    return parse((Document("", (), {}),))[0]._replace(sources=())


def refuse(problems: tuple[Problem, ...], hint: str) -> None:
    """Raise ConfigError with the problems that are not deferred, if any."""
    fatal = [problem for problem in problems if not problem.deferred]
    if len(fatal) > _MOST_REPORTED:
        more = f"\nand {len(fatal) - _MOST_REPORTED} more problems"
        raise ConfigError(describe(fatal[:_MOST_REPORTED]) + more, hint)
    if fatal:
        raise ConfigError(describe(fatal), hint)


def inspect(root_abs: str) -> tuple[Config | None, tuple[Problem, ...]]:
    """Return the configuration and every problem, deferred ones included.

    Raises: ConfigError if a file cannot be read or is not valid TOML.
    """
    return parse_files(read_files(root_abs))


def describe(problems: list[Problem]) -> str:
    """Return one line for each problem: the location, the problem, the fix."""
    return "\n".join(
        f"{problem.location}: {problem.message}" + (f". {problem.hint}" if problem.hint else "")
        for problem in problems
    )


def read_files(root_abs: str) -> Raw:
    """Return the bytes of each of `FILES`, of members and of extended files.

    None for one that does not exist.

    Raises: ConfigError if one cannot be read.
    """

    def read(paths: Iterable[str]) -> Raw:
        return {path: _read(root_abs, path) for path in paths}

    raw = read(FILES)
    if not leads_on(raw):
        return raw
    from gitgates.config.sources import gather  # most have one file

    return gather(raw, read, lambda folder: subfolders(root_abs, folder))


def leads_on(raw: Raw) -> bool:
    """Return whether the root's files may name other settings files."""
    return any(word in (content or b"") for content in raw.values() for word in _NAMES_OTHERS)


def subfolders(root_abs: str, folder: str) -> list[str]:
    """Return the names of a folder's subfolders, without links and other repositories."""
    path_abs = f"{root_abs}/{folder}".rstrip("/")
    try:
        with os.scandir(path_abs) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [name for name in names if not os.path.lexists(f"{path_abs}/{name}/.git")]


def settings_among(paths: Iterable[str], config: Config) -> set[str]:
    """Return which paths are a configuration's settings files, or could be a member's."""
    names = {*FILES, *config.sources}
    return {
        path
        for path in paths
        if path in names or (config.members and path.rpartition("/")[2] in FILES)
    }


def files_of(error: ConfigError) -> set[str]:
    """Return the files that may have caused an error, including those that it names."""
    return {*FILES, *(line.partition(": ")[0] for line in error.message.splitlines())}


def read_local(root_abs: str) -> bytes | None:
    """Return the local settings, which are in no commit; None if there are none.

    Raises: ConfigError if they cannot be read.
    """
    return _read(root_abs, LOCAL_FILE)


def _read(root_abs: str, path: str) -> bytes | None:
    path_abs = os.path.join(root_abs, path)
    try:
        with open(path_abs, "rb", buffering=0, opener=open_regular) as file:
            content: bytes = file.read()
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path_abs):
            hint = f"Fix the link, or remove it: {path_abs}"
            raise ConfigError(f"{path}: is a broken symbolic link", hint) from None
        return None
    except OSError as error:
        from shlex import quote  # cold: only trouble needs it

        hint = f"Look at it with: ls -ld {quote(path_abs)}"
        raise ConfigError(f"{path}: cannot be read: {error.strerror}", hint) from error
    if path not in FILES:
        _refuse_link(root_abs, path)
    return content


def _refuse_link(root_abs: str, path: str) -> None:
    """Raise ConfigError if a path has a link in it: a commit has only the link."""
    part = ""
    for name in path.split("/"):
        part = f"{part}/{name}"
        if os.path.islink(root_abs + part):
            target = os.path.realpath(root_abs + part)
            message = f"{path}: `{part[1:]}` is a symbolic link, to {target}"
            raise ConfigError(message, "Name a file or folder of this repository itself.")


def parse_files(raw: Raw) -> tuple[Config | None, tuple[Problem, ...]]:
    """Parse the bytes of settings files. Cold: loads tomllib and the key table.

    Raises: ConfigError if the bytes are not TOML, or two files claim to hold the settings.
    """
    from gitgates.config.parse import parse
    from gitgates.config.sources import documents_in

    documents, problems = documents_in(raw)
    return parse(documents, problems) if documents else (None, ())


def read_cache(path_abs: str, root_abs: str) -> SettingsFiles | None:
    """Return the cached configuration, if it was made from exactly the current files.

    Raises: ConfigError if one of them cannot be read.
    """
    try:
        key, raw, frozen = read_cached(path_abs)
        if key != _KEY or any(content != _read(root_abs, path) for path, content in raw.items()):
            return None
        config = Config(*frozen)
        if config.members and not _has_all_members(root_abs, config, raw):
            return None
        gates = tuple(map(thaw_gate, config.gates))
        hooks = tuple(Hook(*hook) for hook in config.hooks)
        tables = {**config.tables}  # records of features, if one asks
        return SettingsFiles(raw, config._replace(gates=gates, hooks=hooks, tables=tables))
    except (ValueError, TypeError, AttributeError):
        return None  # not there, or of another version


def _has_all_members(root_abs: str, config: Config, raw: Raw) -> bool:
    """Return whether every folder that is or could be a member was searched for settings."""
    from gitgates.config.folders import expand  # most have one file

    folders = expand(config.members, lambda folder: subfolders(root_abs, folder))
    return all(f"{folder}/{OWN_FILE}" in raw for folder in folders)


def _write_cache(path_abs: str, raw: Raw, config: Config) -> None:
    """Replace the cached configuration; ignore errors."""
    # Plain tuples, all the way down: marshal takes nothing else.
    gates = tuple(map(freeze_gate, config.gates))
    hooks = tuple(tuple(hook) for hook in config.hooks)
    frozen = tuple((config._asdict() | {"gates": gates, "hooks": hooks}).values())
    try:
        make_folder(os.path.dirname(path_abs))
        replace_cached(path_abs, (_KEY, dict(raw), frozen))
    except OSError:
        return
