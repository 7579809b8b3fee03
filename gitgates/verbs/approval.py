"""A person's approval of a command that an agent may not run by itself.

A person has a terminal, or a token that `gitgates approve` printed to one. A token is for one
command and one use. Its file is named by the token's digest, so reading the folder reveals
no token. This stops a careless agent; a determined one can make a terminal, or such a file.
"""

from __future__ import annotations

import hashlib
import os
import time

from gitgates.core.errors import StateError, UsageError
from gitgates.core.policy import POLICIES
from gitgates.engine.plan.command import ACTIVE
from gitgates.hosts import is_called_by_agent
from gitgates.store.files import remove_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo

# command → what approving it means
ACTIONS = {command: text for row in POLICIES for command, text in row.approvals.items()}
LASTS_S = 600.0
_TOKEN_BYTES = 8


def is_person_at_terminal(env: Mapping[str, str]) -> bool:
    """Return whether a person runs this command in a terminal."""
    return not (is_called_by_agent(env) or env.get(ACTIVE)) and os.isatty(0)


def new_token(repo: Repo, action: str) -> str:
    """Return a token for one use of a command; remove those that have expired.

    Raises: StateError if it cannot be stored.
    """
    token = os.urandom(_TOKEN_BYTES).hex()
    path_abs = _path(repo, action, token)
    folder_abs = os.path.dirname(path_abs)
    try:
        os.makedirs(folder_abs, mode=0o700, exist_ok=True)
        for name in os.listdir(folder_abs):
            if _has_expired(f"{folder_abs}/{name}"):
                remove_file(f"{folder_abs}/{name}")
        replace_file(path_abs, b"")
    except OSError as error:
        raise StateError(f"{folder_abs}: cannot be written: {error.strerror}") from error
    return token


def require_person(
    repo: Repo, action: str, token: str = "", *, arguments: str = "", otherwise: str = ""
) -> None:
    """Check that a person runs this command, or has approved it. The token is used up.

    `arguments`: what a person in another terminal must give; `otherwise`: what else to do.

    Raises: UsageError if not; StateError if the token's file cannot be removed.
    """
    if token:
        _use(repo, action, token)
    elif not is_person_at_terminal(repo.env):
        raise UsageError(
            f"`gitgates {action}` must be run by a person in a terminal, not by an agent",
            f"{otherwise}The person can run it in a terminal outside the agent{arguments}, or "
            f"run `gitgates approve {action}` there and pass on the token: --token TOKEN.",
        )


def _use(repo: Repo, action: str, token: str) -> None:
    path_abs = _path(repo, action, token.strip())
    try:
        has_expired = _has_expired(path_abs)
        os.unlink(path_abs)  # who removes it has it: two at once cannot both use it
    except FileNotFoundError:
        raise UsageError(
            f"the token is not valid: it was already used, is older than {LASTS_S / 60:.0f} "
            f"minutes, or is not for `gitgates {action}` in this repository",
            f"Ask a person to run `gitgates approve {action}` in a terminal.",
        ) from None
    except OSError as error:
        raise StateError(f"{path_abs}: cannot be removed: {error.strerror}") from error
    if has_expired:
        hint = f"Ask a person to run `gitgates approve {action}` again."
        raise UsageError(f"the token is older than {LASTS_S / 60:.0f} minutes", hint)


def _has_expired(path_abs: str) -> bool:
    # A clock that was set back makes none valid for longer.
    return not 0 <= time.time() - os.stat(path_abs).st_mtime <= LASTS_S


def _path(repo: Repo, action: str, token: str) -> str:
    key = f"{action}\0{token}".encode("utf-8", "replace")
    return f"{repo.shared_state_abs}/approvals/{hashlib.sha256(key).hexdigest()}"
