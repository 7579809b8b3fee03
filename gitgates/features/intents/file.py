"""Load a worktree's intents file. Nothing else reads it."""

from __future__ import annotations

import os

from gitgates.config.load import describe
from gitgates.core.types import Problem
from gitgates.features.intents.intent import Intent, Intents, IntentsError, find_settings
from gitgates.store.files import link_out, open_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitgates.core.types import Config
    from gitgates.git.repo import Repo

_LONGEST = 1 << 20  # bytes


def load(repo: Repo, config: Config) -> Intents:
    """Return a worktree's intents; none if there is no file, or no table of settings.

    Raises: IntentsError with every problem in the file.
    """
    settings = find_settings(config)
    if settings is None:
        return Intents(file="")
    raw = read_intents(repo.root_abs, settings.file)
    intents = () if raw is None else parse_intents(settings.file, raw)
    return Intents(file=settings.file, intents=intents)


def read_intents(root_abs: str, file: str) -> bytes | None:
    """Return the bytes of an intents file; None if there is none.

    Raises: IntentsError if it is too long, unreadable, or not a regular file in the repository.
    """
    path_abs = os.path.join(root_abs, file)
    try:
        with open(path_abs, "rb", buffering=0, opener=open_state) as stream:
            raw = stream.read(_LONGEST + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        what = f"cannot be read: {error.strerror}"
        raise _error([Problem(file, what, "Make it a regular file, not a link.")]) from error
    if len(raw) > _LONGEST:
        what = f"got more than {_LONGEST} bytes, expected at most that"
        raise _error([Problem(file, what, "Remove finished intents.")])
    if out := link_out(path_abs, root_abs):
        raise _error([Problem(file, f"is not in the repository: {out}")])
    return raw


def parse_intents(file: str, raw: bytes) -> tuple[Intent, ...]:
    """Return the intents in a file's bytes. Raises: IntentsError with every problem."""
    from gitgates.features.intents.parse import parse  # cold: once in a session

    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        what = f"got the byte 0x{raw[error.start]:02x}, expected UTF-8"
        raise _error([Problem(f"{file}:{line}", what)]) from error
    intents, problems = parse(text, file)
    if problems:
        raise _error(problems)
    return intents


def _error(problems: Sequence[Problem]) -> IntentsError:
    return IntentsError(describe([*problems]), "To check it: gitgates intent validate")
