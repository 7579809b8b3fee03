"""Requests for a larger scope, and a person's answers, as entries in the ledger.

Approved patterns are in the intents file; the ledger records who asked for them, and why. A pattern
is added as text, without changing any other byte of the file. Cold.
"""

from __future__ import annotations

import json
import os
from shlex import quote

from gitgates.core.clean import visible_line
from gitgates.core.errors import StateError, UsageError
from gitgates.core.record import Record
from gitgates.features.intents.parse import ROOT_KEY, parse
from gitgates.features.intents.scope import wrong_pattern
from gitgates.store.log import read_ledger, write_ledger

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.features.intents.intent import Intents
    from gitgates.git.repo import Repo

REQUESTED, APPROVED, REFUSED = "scope-requested", "scope-approved", "scope-refused"
_LONGEST_REASON = 500


class ScopeRequest(Record):
    """A pattern requested for an intent's scope."""

    intent: str
    pattern: str
    root: str  # the worktree's root, absolute
    reason: str = ""
    session: str = ""  # the asking agent's; empty: unknown
    time: str = ""


def new_request(
    repo: Repo, name: str, pattern: str, *, reason: str = "", session: str = ""
) -> ScopeRequest:
    """Return a request. Raises: UsageError if the pattern cannot be in a scope."""
    why = wrong_pattern(pattern)
    if pattern.startswith(("!", "-")):
        first = pattern[0]
        why = f"a pattern that does not begin with `{first}`; to match that, write \\{first}"
    if why:
        raise UsageError(f"got {quote(visible_line(pattern))}, expected {why}")
    line = " ".join(reason.split())[:_LONGEST_REASON]
    return ScopeRequest(name, pattern, repo.root_abs, reason=line, session=session)


def record(repo: Repo, what: str, request: ScopeRequest) -> None:
    """Append a request or its answer to the ledger.

    Raises: StateError if it cannot be written.
    """
    fields = request._asdict()
    del fields["time"]
    try:
        write_ledger(repo.shared_state_abs, what, fields)
    except OSError as error:
        folder_abs = repo.shared_state_abs
        raise StateError(f"{folder_abs}: cannot be written: {error.strerror}") from error


def open_requests(repo: Repo, intents: Intents) -> tuple[ScopeRequest, ...]:
    """Return the unanswered requests of all worktrees, oldest first.

    A request from this worktree, or from one that no longer exists, also counts as answered if a
    person has added its pattern to the scope by hand.
    """
    pending: dict[tuple[str, str, str], ScopeRequest] = {}
    for entry in read_ledger(repo.shared_state_abs):
        if entry.get("what") not in (REQUESTED, APPROVED, REFUSED):
            continue
        request = ScopeRequest(**{key: str(entry.get(key, "")) for key in ScopeRequest._fields})
        key = request.intent, request.pattern, request.root
        pending.pop(key, None)
        intent = intents.get(request.intent)
        is_here = request.root == repo.root_abs or not os.path.exists(f"{request.root}/.git")
        is_there = is_here and intent and request.pattern in intent.owned_scope
        if entry["what"] == REQUESTED and not is_there:
            pending[key] = request
    return tuple(pending.values())


_KEY = "owned_scope"


def add_pattern(text: str, file: str, name: str, pattern: str) -> str | None:
    """Return the text of an intents file with one more pattern in an intent's scope.

    None if an insertion alone cannot do that, or would change anything else, such as a scope that
    two intents share.
    """
    before, problems = parse(text, file)
    at = next((at for at, intent in enumerate(before) if intent.id == name), None)
    if problems or at is None:
        return None
    changed = _in_toml(text, at, pattern) if file.endswith(".toml") else _in_yaml(text, at, pattern)
    scope = (*before[at].owned_scope, pattern)
    expected = (*before[:at], before[at]._replace(owned_scope=scope), *before[at + 1 :])
    differ = (at for at, pair in enumerate(zip(text, changed, strict=False)) if len({*pair}) > 1)
    is_insertion = changed.endswith(text[next(differ, len(text)) :])
    return changed if is_insertion and parse(changed, file) == (expected, ()) else None


def _in_yaml(text: str, at: int, pattern: str) -> str:
    from gitgates.core.yaml_load import load_nodes

    intent = _value(load_nodes(text), ROOT_KEY).value[at]
    scope = _value(intent, _KEY)
    end = scope.value[-1].end_mark.index
    item = json.dumps(pattern, ensure_ascii=False)
    if scope.flow_style:
        return f"{text[:end]}, {item}{text[end:]}"
    line_end = "\r\n" if "\r\n" in text else "\n"
    line = f"{' ' * scope.start_mark.column}- {item}"
    next_line = text.find("\n", end) + 1  # after a comment on the last item's line
    if not next_line:
        return f"{text}{line_end}{line}"
    return f"{text[:next_line]}{line}{line_end}{text[next_line:]}"


def _value(mapping: Any, key: str) -> Any:  # noqa: ANN401 - PyYAML has no types
    return next(value for name, value in mapping.value if name.value == key)


def _in_toml(text: str, at: int, pattern: str) -> str:
    import tomlkit

    document: Any = tomlkit.parse(text)
    document[ROOT_KEY][at][_KEY].append(pattern)
    return str(document.as_string())
