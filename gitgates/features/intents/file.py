"""Load the intents file of a worktree. The only reader of it.

As with the configuration, a hook compares the bytes of the file with those that a compiled copy was
made from, and parses YAML or TOML only where they differ.
"""

from __future__ import annotations

import os
import sys

from gitgates import __version__
from gitgates.config.load import describe, table_of
from gitgates.core.errors import ConfigError, UsageError
from gitgates.core.record import Record
from gitgates.core.types import Problem
from gitgates.features.intents.intent import Intent, Intents, IntentsError
from gitgates.store.files import link_out, make_folder, open_state, read_cached, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.types import Config
    from gitgates.git.repo import Repo

TABLE = "intents"
LONGEST = 1 << 20  # bytes
_CACHE = "intents.marshal"
# Another version, interpreter or shape of the records makes another key.
_KEY = (__version__, sys.implementation.cache_tag, Intent._fields)


class IntentSettings(Record):
    """Where the intents are, and what agents need one for."""

    file: str
    required: bool
    ask: tuple[str, ...]  # patterns of what a person is asked about
    ttl_s: float  # how long a selection holds without an event of its holder
    context_bytes: int  # the maximum size of an intent's context


def load(repo: Repo, config: Config) -> Intents:
    """Return the intents of a worktree; none where there is no file, or no table of settings.

    Raises: IntentsError with every problem of the file.
    """
    settings = find_settings(config)
    if settings is None:
        return Intents(file="")
    file = settings.file
    raw = read_intents(repo.root_abs, file)
    if raw is None:
        return Intents(file=file)
    cache_abs = f"{repo.state_abs}/{_CACHE}"
    intents = _read_cache(cache_abs, file, raw)
    if intents is None:
        intents = _checked(repo.root_abs, file, raw)
        _write_cache(cache_abs, file, raw, intents)
    return Intents(file=file, intents=intents)


def find_settings(config: Config) -> IntentSettings | None:
    """Return the settings of intents; None where there are none."""
    return table_of(config, TABLE, IntentSettings) if TABLE in config.tables else None


def settings_of(config: Config) -> IntentSettings:
    """Return the settings of intents.

    Raises: ConfigError where the configuration has none.
    """
    settings = find_settings(config)
    if settings is None:
        hint = "Add the table [tool.gitgates.intents] to pyproject.toml."
        raise ConfigError("intents are not configured here", hint)
    return settings


def find_intent(intents: Intents, name: str) -> Intent:
    """Return the intent with an id.

    Raises: UsageError if there is none.
    """
    if intent := intents.get(name):
        return intent
    from gitgates.config.values import did_you_mean
    from gitgates.core.clean import visible_line  # cold: only a mistake needs them

    known_ids = tuple(intent.id for intent in intents.intents)
    hint = did_you_mean(name, known_ids) or "To list all: gitgates intent list"
    raise UsageError(f"{intents.file}: no intent `{visible_line(name)}`", hint)


def read_intents(root_abs: str, file: str) -> bytes | None:
    """Return the bytes of an intents file; None if there is none.

    Raises: IntentsError where it is a link, not a regular file, too long, or cannot be read.
    """
    path_abs = os.path.join(root_abs, file)
    try:
        with open(path_abs, "rb", buffering=0, opener=open_state) as stream:
            raw = stream.read(LONGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
        if os.path.islink(path_abs):
            why = f"got a link to {os.readlink(path_abs)}, expected a regular file"
        elif not os.path.isfile(path_abs):
            why = "expected a regular file"
        raise _error([Problem(file, why)]) from error
    if len(raw) > LONGEST:
        size = f"got {os.stat(path_abs).st_size} bytes, expected at most {LONGEST}"
        raise _error([Problem(file, size, "Remove finished intents.")])
    return raw


def _checked(root_abs: str, file: str, raw: bytes) -> tuple[Intent, ...]:
    problems: list[Problem] = []
    if out := link_out(os.path.join(root_abs, file), root_abs):
        problems.append(Problem(file, f"is not in the repository: {out}"))
    return parse_intents(file, raw, problems)


def parse_intents(
    file: str, raw: bytes, problems: list[Problem] | None = None
) -> tuple[Intent, ...]:
    """Return the intents in the bytes of a file. `problems`: those detected before.

    Raises: IntentsError with every problem.
    """
    from gitgates.features.intents.parse import (
        parse,  # cold: only a file that has changed is parsed
    )

    problems = problems or []
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        what = f"got the byte 0x{raw[error.start]:02x}, expected UTF-8"
        raise _error([*problems, Problem(f"{file}:{line}", what)]) from error
    intents, wrong = parse(text, file)
    problems += wrong
    if problems:
        raise _error(problems)
    return intents


def _error(problems: list[Problem]) -> IntentsError:
    return IntentsError(describe(problems), "To check it: gitgates intent validate")


def _read_cache(path_abs: str, file: str, raw: bytes) -> tuple[Intent, ...] | None:
    """Return the intents compiled from exactly these bytes; None if there are none."""
    try:
        key, cached_file, cached_raw, frozen = read_cached(path_abs)
        if key != _KEY or cached_file != file or cached_raw != raw:
            return None
        return tuple(Intent(*fields) for fields in frozen)
    except (ValueError, TypeError):
        return None  # not there, or of another version


def _write_cache(path_abs: str, file: str, raw: bytes, intents: tuple[Intent, ...]) -> None:
    """Replace the compiled copy; ignore errors."""
    frozen: tuple[tuple[Any, ...], ...] = tuple(tuple(intent) for intent in intents)
    try:
        make_folder(os.path.dirname(path_abs))
        replace_cached(path_abs, (_KEY, file, raw, frozen))
    except OSError:
        return
