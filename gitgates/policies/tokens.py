"""How a command proves whose it is: the nonce of an agent's command, the token of a reviewer.

A shell command of ours that an agent is about to run is rewritten to `gitgates VERB
--caller=NONCE …`; the journal keeps whose the nonce is. Of a token it knows the digest alone.
"""

from __future__ import annotations

import hashlib
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.policies.session import Fact

OPTION = "--caller"
MASK = "…"  # what stands for a token in a text that is kept
_TOKEN_BYTES = 16
_NONCE_DIGITS = 16
_FOLDER = r"""(?:[^\s'"`&|;<>()\\]+|'[^']*'|"[^"`\\]*")"""
_END = r"(?=[\s;&|<>)]|$)"
# Without a word behind it, `review` means its status; what asks for help is left alone.
_VERB = (
    rf"(?:review[ \t]+[a-z]+{_END}|review(?=\s*$|[ \t]*[;&|]|[ \t]+-(?!-?h(?:elp)?\b))|cannot-fix)"
)
_COMMAND = re.compile(
    rf"(?P<verb>\s*(?:cd[ \t]+{_FOLDER}[ \t]*&&[ \t]*)?(?:[\w./~-]*/)?gitgates[ \t]+{_VERB})"
    rf"(?:[ \t]+{OPTION}=\w*)?{_END}"
)


def with_caller(command: str, nonce: str) -> str | None:
    """Return a shell command that says whose it is; None if it does not begin with ours."""
    found = _COMMAND.match(command)
    return f"{found['verb']} {OPTION}={nonce}{command[found.end() :]}" if found else None


def caller_fact(session: str, agent: str, agent_type: str, tool_use: str) -> Fact:
    """Return what the journal keeps of an agent's command; the same for the same tool call."""
    nonce = digest_of(f"{session}\0{agent}\0{tool_use}")[:_NONCE_DIGITS]
    return {"what": "caller", "nonce": nonce, "agent": agent, "agent_type": agent_type}


def new_token(agent: str, key: str) -> tuple[str, Fact]:
    """Return a reviewer's token, and what the journal may know of it. `key` is the event's."""
    token = os.urandom(_TOKEN_BYTES).hex()
    return token, {"what": "token", "agent": agent, "digest": digest_of(token), "key": key}


def digest_of(token: str) -> str:
    """Return what stands for a token in the journal."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
