"""Starting an agent's client without a terminal: its arguments, and what its output says.

Each client is one module with `argv` and `read`; any other is a command with a place for the
prompt.
"""

from __future__ import annotations

import os
import shlex
import sys

from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# As `--agent` names it → the module that knows its command line.
CLIENTS = {
    "claude": "gitgates.hosts.claude.client",
    "codex": "gitgates.hosts.codex_client",
    "gemini": "gitgates.hosts.gemini_client",
}
PLACE = "{prompt}"  # in --agent-command
UNREADABLE = "the client's output does not say how the turn ended"
_LONGEST_TEXT = 4000  # of what the agent said last


class Turn(Record):
    """What an agent's client said of one turn."""

    session: str = ""  # to go on with; empty: it cannot be resumed
    text: str = ""  # the agent's last words
    tokens: int | None = None  # of this turn, read and written
    cost_usd: float | None = None
    error: str = ""  # why the turn did not end as it should
    refused: str = ""  # the tools that the client had no permission for, where it names them


class Start(Record):
    """How a client is started."""

    argv: tuple[str, ...]
    stdin: bytes = b""


class Client(Record):
    """One way of starting an agent."""

    name: str
    start: Callable[[str, str, tuple[str, ...]], Start]  # prompt, session to resume, more arguments
    read: Callable[[bytes], Turn]  # the client's output
    resumes: bool = True  # False: each turn is a new conversation
    totals: tuple[str, ...] = ()  # fields of Turn that `read` gives for the conversation so far


def client(name: str) -> Client:
    """Return the client of this name.

    Raises: KeyError where there is none.
    """
    module = CLIENTS[name]
    __import__(module)
    found = sys.modules[module]
    return Client(name=name, start=found.start, read=found.read, totals=found.TOTALS)


def unasked_options(name: str) -> tuple[str, ...]:
    """Return the options with which a client asks nobody before it does anything.

    Raises: KeyError where there is no such client.
    """
    __import__(CLIENTS[name])
    found: tuple[str, ...] = sys.modules[CLIENTS[name]].UNASKED
    return found


def any_client(command: str) -> Client:
    """Return a client that a command starts; `{prompt}` in it, or its input, is the prompt.

    Raises: ValueError where the command is no shell words.
    """
    words = shlex.split(command)
    if not words:
        raise ValueError("it is empty")
    takes_input = not any(PLACE in word for word in words)

    def start(prompt: str, _session: str, more: tuple[str, ...]) -> Start:
        argv = (*(word.replace(PLACE, prompt) for word in words), *more)
        return Start(argv, prompt.encode("utf-8", "surrogateescape") if takes_input else b"")

    def read(output: bytes) -> Turn:
        return Turn(text=shortened(output.decode("utf-8", "replace")))

    return Client(name=os.path.basename(words[0]), start=start, read=read, resumes=False)


def shortened(text: str) -> str:
    """Return an agent's last words, no more than a report holds: the end, where they are longer."""
    text = text.strip()
    return text if len(text) <= _LONGEST_TEXT else f"[…]{text[-_LONGEST_TEXT:]}"
