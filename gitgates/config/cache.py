"""Keep the parsed configuration beside the bytes that it was parsed from.

The comparison is of all bytes, so that no clock and no coarse time stamp can make a stale copy look
fresh. `marshal` is what the interpreter itself reads its compiled modules with; the file lies in
the state folder, where whoever could write it could as well write git's hooks.
"""

from __future__ import annotations

import marshal
import os
import sys

from gitgates import __version__
from gitgates.store.files import open_state, replace_file
from gitgates.types import Config, Gate, Hook, Review

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Another version, interpreter or shape of the records makes another key.
_KEY = (
    __version__,
    sys.implementation.cache_tag,
    Gate._fields,
    Hook._fields,
    Review._fields,
    Config._fields,
)


def read(path_abs: str, raw: tuple[bytes | None, ...]) -> Config | None:
    """Return the configuration made from exactly these bytes, if it is there and whole."""
    try:
        with open(path_abs, "rb", buffering=0, opener=open_state) as file:
            key, known, frozen = marshal.loads(file.read())  # noqa: S302 - see above
        return _thaw(frozen) if key == _KEY and known == raw else None
    except (OSError, EOFError, ValueError, TypeError, MemoryError):
        return None  # not there, torn, or not ours: what marshal says of garbage


def write(path_abs: str, raw: tuple[bytes | None, ...], config: Config) -> None:
    """Replace the cached configuration; where that is not possible, the next hook parses again."""
    try:
        os.makedirs(os.path.dirname(path_abs), mode=0o700, exist_ok=True)
        replace_file(path_abs, marshal.dumps((_KEY, raw, _freeze(config))))
    except OSError:
        return


def _freeze(config: Config) -> tuple[Any, ...]:
    # Plain tuples, all the way down: what marshal takes.
    gates = tuple(tuple(gate) for gate in config.gates)
    hooks = tuple(tuple(hook) for hook in config.hooks)
    plain = {"gates": gates, "hooks": hooks, "review": tuple(config.review)}
    return tuple((config._asdict() | plain).values())


def _thaw(frozen: tuple[Any, ...]) -> Config:
    config = Config(*frozen)
    gates = tuple(Gate(*gate) for gate in config.gates)
    hooks = tuple(Hook(*hook) for hook in config.hooks)
    return config._replace(gates=gates, hooks=hooks, review=Review(*config.review))
