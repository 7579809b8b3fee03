"""Name the caller in an agent's shell commands of gitgates.

A command that an agent is about to run is rewritten to `gitgates VERB --caller=NONCE …`; the
journal keeps whose nonce it is.
"""

from __future__ import annotations

from gitgates.core.types import Verdict
from gitgates.journal.entries import CallerEntry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.drivers.call import Call

OPTION = "--caller"
LONGEST = 1 << 17  # characters of a command; Linux starts no `sh -c` with more
_OURS = "gitgates"
_NONCE_DIGITS = 16
_FOLDER = r"""(?:[^\s'"`&|;<>()\\]+|'[^']*'|"[^"`\\]*")"""
_END = r"(?=[\s;&|<>)]|$)"
# Without a word behind it, `review` means its status; what asks for help is left alone.
_VERB = (
    rf"(?:review[ \t]+[a-z]+{_END}|review(?=\s*$|[ \t]*[;&|]|[ \t]+-(?!-?h(?:elp)?\b))|cannot-fix"
    rf"|undo|intent[ \t]+(?:select|release|scope-expansion-request){_END}"
    rf"|run[ \t]+[A-Za-z]+[ \t]+--wait{_END})"
)
_COMMAND = (
    rf"(?P<verb>\s*(?:cd[ \t]+{_FOLDER}[ \t]*&&[ \t]*)?(?:[\w./~-]*/)?gitgates[ \t]+{_VERB})"
    rf"(?:[ \t]+{OPTION}=\w*)?{_END}"
)


def name_caller(call: Call, so_far: Verdict) -> Verdict:
    """Add the caller to a gitgates command or tool, unless a policy has done that; record it."""
    payload = call.payload
    is_tool = payload.tool.kind == "ours"
    if so_far.command or so_far.caller or not (is_tool or _OURS in payload.tool.command):
        return so_far
    entry = caller_entry(payload.session, payload.agent.id, payload.agent.type, payload.tool.id)
    if is_tool:
        return so_far.joined(Verdict(caller=entry.nonce, entries=(entry,)))
    command = with_caller(payload.tool.command, entry.nonce)
    return so_far.joined(Verdict(command=command, entries=(entry,))) if command else so_far


def with_caller(command: str, nonce: str) -> str | None:
    """Return a shell command with `--caller` added; None if it does not start with gitgates."""
    import re  # most commands are not ours

    match = re.match(_COMMAND, command)
    return f"{match['verb']} {OPTION}={nonce}{command[match.end() :]}" if match else None


def caller_entry(session: str, agent: str, agent_type: str, tool_use: str) -> CallerEntry:
    """Return the journal entry of an agent's command; the same for the same tool call."""
    nonce = digest_of(f"{session}\0{agent}\0{tool_use}")[:_NONCE_DIGITS]
    return CallerEntry(nonce, agent, agent_type)


def digest_of(token: str) -> str:
    """Return the digest of a token for the journal."""
    import hashlib  # most commands are not ours

    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
