"""The tokens that reviewers prove themselves with. The journal knows their digests alone."""

from __future__ import annotations

import hashlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.policies.session import Fact

MASK = "…"
_BYTES = 16
_DIGITS = "0123456789abcdef"


def new_token(agent: str, key: str) -> tuple[str, Fact]:
    """Return a token for an agent, and what the journal may know of it. `key` is the event's."""
    token = os.urandom(_BYTES).hex()
    return token, {"what": "token", "agent": agent, "digest": digest_of(token), "key": key}


def digest_of(token: str) -> str:
    """Return what stands for a token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()


def masked(text: str, facts: Iterable[Fact]) -> str:
    """Return a text with a mask in place of each token that the facts know of."""
    known = {str(fact.get("digest")) for fact in facts if fact.get("what") == "token"}
    parts, at = [], 0
    while at < len(text):
        end = at
        while end < len(text) and text[end] in _DIGITS:
            end += 1
        word = text[at:end]
        is_token = len(word) == 2 * _BYTES and digest_of(word) in known
        parts.append(MASK if is_token else text[at : max(end, at + 1)])
        at = max(end, at + 1)
    return "".join(parts)
