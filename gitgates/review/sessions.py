"""The sessions that have been in a repository, as a person names and is shown them."""

from __future__ import annotations

import os
import time

from gitgates.clean import plain_line
from gitgates.errors import UsageError
from gitgates.policies.evidence import fold
from gitgates.review.status_text import ago
from gitgates.store.log import Journal, file_name, sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

_SHOWN = 8
_PROMPT_SHOWN = 60


def name_of(path_abs: str) -> str:
    """Return the name of the session that a journal is of: its file's."""
    return path_abs.rpartition("/")[2].removesuffix(".jsonl")


def names_session(said: str, session: str) -> bool:
    """Tell whether an id means a session: by its own id, or by its file's name."""
    return bool(said) and session in (said, file_name(said))


def said_of(agent: str) -> str:
    """Return what an agent of a session is called."""
    return f"agent {agent}" if agent else "main thread"


def find_named(repo: Repo, said: str) -> str:
    """Return the session that an id means.

    Raises: UsageError where it has no journal in this repository.
    """
    for state_abs in repo.states_abs:
        for path_abs in reversed(sessions(state_abs)):
            if names_session(said, name_of(path_abs)):
                return name_of(path_abs)
    raise UsageError(f"session `{plain_line(said)}` has no journal here", list_sessions(repo))


def list_sessions(repo: Repo) -> str:
    """Return the sessions that may be named, the newest first: a hint for a person."""
    paths = [path for state_abs in repo.states_abs for path in sessions(state_abs)]
    newest = {name_of(path): path for path in sorted(paths, key=_changed)}
    if not newest:
        return "Is the agent's hook installed? gitgates install-hooks --agent claude"
    lines = [_line(name, path) for name, path in reversed(newest.items())]
    more = [f"and {len(lines) - _SHOWN} older ones"] if len(lines) > _SHOWN else []
    return "\n  ".join(["Name one of them: --session ID", *lines[:_SHOWN], *more])


def _changed(path_abs: str) -> float:
    try:
        return os.stat(path_abs).st_mtime
    except OSError:
        return 0.0


def _line(name: str, path_abs: str) -> str:
    try:
        requests = fold(Journal(path_abs).read()).requests
    except OSError as error:
        return f"{name}  {ago(_changed(path_abs), time.time())}  (cannot be read: {error.strerror})"
    prompt = plain_line(requests[-1], _PROMPT_SHOWN) if requests else ""
    return f"{name}  {ago(_changed(path_abs), time.time())}  {prompt}".rstrip()
