"""Requests for a larger scope, and the answers of a person. They are entries of the ledger.

What is approved stands in the intents file. The ledger tells who asked for it, and why. Cold.
"""

from __future__ import annotations

import os
from shlex import quote

from gitgates.core.clean import visible_line
from gitgates.core.errors import StateError, UsageError
from gitgates.core.record import Record
from gitgates.features.intents.file import find_intent
from gitgates.features.intents.parse import wrong_pattern
from gitgates.store.log import read_ledger, write_ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.features.intents.intent import Intents
    from gitgates.git.repo import Repo

REQUESTED, APPROVED, REFUSED = "scope-requested", "scope-approved", "scope-refused"
_LONGEST = 500  # of a reason


class ScopeRequest(Record):
    """A pattern requested for the scope of an intent."""

    intent: str
    pattern: str
    root: str  # of the worktree, absolute
    reason: str = ""
    session: str = ""  # of the agent that asked; empty: nobody knows
    time: str = ""


def ask(
    repo: Repo, intents: Intents, name: str, pattern: str, *, reason: str, session: str = ""
) -> ScopeRequest | None:
    """Record a request; return it, or None if the scope has the pattern already.

    Raises: UsageError where it makes no sense; StateError where it cannot be written.
    """
    intent = find_intent(intents, name)
    said = " ".join(reason.split())[:_LONGEST]
    if not said:
        raise UsageError("--reason is empty", "Say what needs to change there.")
    request = new_request(repo, name, pattern)._replace(reason=said, session=session)
    if pattern in intent.owned_scope:
        return None
    record(repo, REQUESTED, request)
    return request


def new_request(repo: Repo, name: str, pattern: str) -> ScopeRequest:
    """Return a request without a reason.

    Raises: UsageError where the pattern can be none of a scope.
    """
    why = wrong_pattern(pattern)
    if pattern.startswith(("!", "-")):
        why = f"a pattern without `{pattern[0]}` at its beginning; write \\{pattern[0]} for that"
    if why:
        raise UsageError(f"got {quote(visible_line(pattern))}, expected {why}")
    return ScopeRequest(intent=name, pattern=pattern, root=repo.root_abs)


def record(repo: Repo, what: str, request: ScopeRequest) -> None:
    """Append a request, or the answer to it, to the ledger.

    Raises: StateError where it cannot be written.
    """
    fields = request._asdict()
    del fields["time"]
    try:
        write_ledger(repo.shared_state_abs, what, fields)
    except OSError as error:
        where = repo.shared_state_abs
        raise StateError(f"{where}: cannot be written: {error.strerror}") from error


def open_requests(repo: Repo, intents: Intents) -> tuple[ScopeRequest, ...]:
    """Return the requests of all worktrees that were not answered, in the order of asking.

    One of this worktree, or of one that is gone, is answered, too, where a person has written it
    into the scope by hand.
    """
    found: dict[tuple[str, str, str], ScopeRequest] = {}
    for entry in read_ledger(repo.shared_state_abs):
        if entry.get("what") not in (REQUESTED, APPROVED, REFUSED):
            continue
        one = ScopeRequest(**{key: str(entry.get(key, "")) for key in ScopeRequest._fields})
        key = one.intent, one.pattern, one.root
        found.pop(key, None)
        intent = intents.get(one.intent)
        is_here = one.root == repo.root_abs or not os.path.exists(f"{one.root}/.git")
        is_there = is_here and intent and one.pattern in intent.owned_scope
        if entry["what"] == REQUESTED and not is_there:
            found[key] = one
    return tuple(found.values())
