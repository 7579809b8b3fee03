"""Load the settings files of a root into one `Config`. The only reader of pyproject.toml.

A hook reads the files' bytes and compares them with those that the cached configuration was made
from; only where they differ does it parse TOML. All bytes are compared, so no coarse time
stamp can make a stale copy look fresh. `marshal` is what the interpreter itself reads its compiled
modules with; the cache lies in the state folder, where whoever could write it could as well write
git's hooks.
"""

from __future__ import annotations

import os
import sys

from gitgates import __version__
from gitgates.core.errors import ConfigError
from gitgates.core.types import Config, Gate, Hook
from gitgates.store.files import make_folder, open_regular, read_cached, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeVar

    from gitgates.config.read import Document
    from gitgates.core.record import Record
    from gitgates.core.types import Problem

    Table = TypeVar("Table")  # the record of one

PYPROJECT = "pyproject.toml"
OWN_FILE = "gitgates.toml"
LOCAL_FILE = "gitgates.local.toml"
BASELINE_FILE = ".gitgates-baseline.json"  # of failures that do not count: engine/accepted.py
PREFIXES: dict[str, tuple[str, ...]] = {  # the table of each that holds our keys
    PYPROJECT: ("tool", "gitgates"),
    OWN_FILE: (),
    LOCAL_FILE: (),
}
FILES = tuple(PREFIXES)
_MOST_REPORTED = 100

# Another version, interpreter or shape of the records makes another key.
_KEY = (
    __version__,
    sys.implementation.cache_tag,
    Gate._fields,
    Hook._fields,
    Config._fields,
)


def load(root_abs: str, cache_abs: str = "") -> Config | None:
    """Return the configuration of a root; None if it has none.

    `cache_abs` is a file that may be read and rewritten; empty: no cache.

    Raises: ConfigError with every problem that is not deferred.
    """
    raw = read_files(root_abs)
    if not _mentions_us(raw):
        return None
    if cache_abs and (cached := read_cache(cache_abs, raw)):
        return cached
    config = checked(raw)
    if config and cache_abs:
        _write_cache(cache_abs, raw, config)
    return config


def checked(raw: tuple[bytes | None, ...]) -> Config | None:
    """Return the configuration in the bytes of `FILES`; None if they have none.

    Raises: ConfigError with every problem that is not deferred.
    """
    if not _mentions_us(raw):
        return None
    config, problems = parse_files(raw)
    refuse(problems, "To check it: gitgates check")
    return config


def table_of(config: Config, name: str, kind: Callable[..., Table]) -> Table:
    """Return a feature's table as the record that the feature makes of it.

    Where there is no configuration, that is as if the table were not written.
    """
    try:
        return kind(**config.tables[name])
    except (KeyError, TypeError):
        return as_record(name, config.tables.get(name, {}), kind)


def as_record(name: str, fields: Mapping[str, Any], kind: Callable[..., Table]) -> Table:
    """Return the fields of a feature's table, or of an entry of its array, as a record.

    Another version may have recorded them: unknown ones are left out, missing ones have their
    default.
    """
    try:
        return kind(**fields)
    except TypeError:
        from gitgates.config.tables import completed  # cold: loads the key table

        return kind(**completed(name, fields))


def with_table(config: Config, name: str, table: Record) -> Config:
    """Return a configuration with another table of a feature."""
    return config._replace(tables={**config.tables, name: table._asdict()})


def unconfigured() -> Config:
    """Return what counts where there is no configuration. Cold: loads the key tables."""
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

    Raises: ConfigError where a file cannot be read or is not valid TOML.
    """
    return parse_files(read_files(root_abs))


def describe(problems: list[Problem]) -> str:
    """Return one line for each problem: the location, the problem, the fix."""
    return "\n".join(
        f"{problem.location}: {problem.message}" + (f". {problem.hint}" if problem.hint else "")
        for problem in problems
    )


def read_files(root_abs: str) -> tuple[bytes | None, ...]:
    """Return the bytes of each of `FILES`; None for one that does not exist."""
    return tuple(_read(os.path.join(root_abs, name), name) for name in FILES)


def _read(path_abs: str, name: str) -> bytes | None:
    try:
        with open(path_abs, "rb", buffering=0, opener=open_regular) as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path_abs):
            hint = f"Fix the link, or remove it: {path_abs}"
            raise ConfigError(f"{name}: is a broken symbolic link", hint) from None
        return None
    except OSError as error:
        from shlex import quote  # cold: only trouble needs it

        hint = f"Look at it with: ls -ld {quote(path_abs)}"
        raise ConfigError(f"{name}: cannot be read: {error.strerror}", hint) from error


def _mentions_us(raw: tuple[bytes | None, ...]) -> bool:
    pyproject, gitgates_toml, local = raw
    return gitgates_toml is not None or local is not None or b"gitgates" in (pyproject or b"")


def parse_files(raw: tuple[bytes | None, ...]) -> tuple[Config | None, tuple[Problem, ...]]:
    """Parse the bytes of `FILES`. Cold: loads tomllib and the key table.

    Raises: ConfigError where the bytes are no TOML, or two files claim to hold the settings.
    """
    from gitgates.config.parse import parse

    documents = _documents(raw)
    return parse(documents) if documents else (None, ())


def _documents(raw: tuple[bytes | None, ...]) -> tuple[Document, ...]:
    from gitgates.config.read import Document
    from gitgates.config.requires import refuse_unmet
    from gitgates.config.values import show

    tables = [_toml(content, name) for content, name in zip(raw, FILES, strict=True)]
    pyproject, gitgates_toml, local = tables
    tool = (pyproject or {}).get("tool", {})
    tool_table = tool.get("gitgates") if isinstance(tool, dict) else None
    if tool_table is not None and not isinstance(tool_table, dict):
        raise ConfigError(f"{PYPROJECT}: tool.gitgates: got {show(tool_table)}, expected a table")
    documents = tuple(
        Document(name, PREFIXES[name], table)
        for name, table in zip(FILES, (tool_table, gitgates_toml, local), strict=True)
        if table is not None
    )
    for document in documents:
        refuse_unmet(document.location("requires"), document.table.get("requires"))
    if tool_table is not None and gitgates_toml is not None:
        raise ConfigError(
            f"{OWN_FILE}: settings are also in {PYPROJECT}, [tool.gitgates]",
            f"Use one file: move the keys of {OWN_FILE} to {PYPROJECT}, or vice versa.",
        )
    return documents


def _toml(content: bytes | None, name: str) -> dict[str, object] | None:
    from gitgates.core.limits import parse_toml

    if content is None:
        return None
    try:
        text = content.decode("utf-8")
        if text.startswith("\ufeff"):
            # Accepting it would hide a file that no other reader of pyproject.toml takes.
            raise ConfigError(
                f"{name}: starts with a byte order mark, which TOML does not allow",
                "Save the file as UTF-8 without a byte order mark (BOM).",
            )
        return parse_toml(text)
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{name}: byte {error.start + 1} is not UTF-8, which TOML requires",
            "Save the file as UTF-8.",
        ) from error
    except ValueError as error:  # a number of 5,000 digits, too
        hint = (
            "Fix the TOML syntax there; gitgates does not use any part of a file that it "
            "cannot parse."
        )
        raise ConfigError(f"{name}: is not valid TOML: {error}", hint) from error


def read_cache(path_abs: str, raw: tuple[bytes | None, ...]) -> Config | None:
    """Return the cached configuration of exactly these bytes, if there is one."""
    try:
        key, cached_raw, frozen = read_cached(path_abs)
        if key != _KEY or cached_raw != raw:
            return None
        config = Config(*frozen)
        gates = tuple(Gate(*gate) for gate in config.gates)
        hooks = tuple(Hook(*hook) for hook in config.hooks)
        tables = {**config.tables}  # records of features, where one asks
        return config._replace(gates=gates, hooks=hooks, tables=tables)
    except (ValueError, TypeError):
        return None  # not there, or of another version


def _write_cache(path_abs: str, raw: tuple[bytes | None, ...], config: Config) -> None:
    """Replace the cached configuration; ignore errors."""
    # Plain tuples, all the way down: what marshal takes.
    gates = tuple(tuple(gate) for gate in config.gates)
    hooks = tuple(tuple(hook) for hook in config.hooks)
    frozen = tuple((config._asdict() | {"gates": gates, "hooks": hooks}).values())
    try:
        make_folder(os.path.dirname(path_abs))
        replace_cached(path_abs, (_KEY, raw, frozen))
    except OSError:
        return
