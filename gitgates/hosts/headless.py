"""Starting an agent's client without a terminal: its arguments, and what its output says.

Each client is one module with `argv` and `read`; any other is a command with a place for the
prompt.
"""

from __future__ import annotations

import os
import shlex
import sys

from gitgates.core.limits import parse_json
from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

# As `--agent` names it → the module that knows its command line.
CLIENTS = {
    "claude": "gitgates.hosts.agents.claude.client",
    "codex": "gitgates.hosts.agents.codex_client",
    "gemini": "gitgates.hosts.agents.gemini_client",
    "copilot": "gitgates.hosts.agents.copilot_client",
    "qwen": "gitgates.hosts.agents.qwen_client",
    "opencode": "gitgates.hosts.agents.opencode_client",
    "kilo": "gitgates.hosts.agents.kilo_client",
    "kimi": "gitgates.hosts.agents.kimi_client",
    "vibe": "gitgates.hosts.agents.vibe_client",
    "hermes": "gitgates.hosts.agents.hermes_client",
    "openhands": "gitgates.hosts.agents.openhands_client",
}
PLACE = "{prompt}"  # in --agent-command
UNREADABLE = "the client's output does not say how the turn ended"
_LONGEST_TEXT = 4000  # of what the agent said last


class Turn(Record):
    """The report of an agent's client about one turn."""

    session: str = ""  # to go on with; empty: it cannot be resumed
    text: str = ""  # the agent's last words
    tokens: int | None = None  # of this turn, read and written
    cost_usd: float | None = None
    error: str = ""  # why the turn did not end as it should
    refused: str = ""  # the tools that the client had no permission for, if it names them
    timed_out: bool = False  # it was ended by us


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

    Raises: KeyError if there is none.
    """
    __import__(CLIENTS[name])
    module = sys.modules[CLIENTS[name]]
    return Client(name=name, start=module.start, read=module.read, totals=module.TOTALS)


def refused_option(name: str, arguments: tuple[str, ...]) -> str:
    """Return why an argument of a client cannot be used here; empty if all can.

    Raises: KeyError if there is no such client.
    """
    __import__(CLIENTS[name])
    refused: dict[str, str] = getattr(sys.modules[CLIENTS[name]], "REFUSED", {})
    return next(
        (f"{argument}: {refused[argument]}" for argument in arguments if argument in refused), ""
    )


def any_client(command: str) -> Client:
    """Return a client that a command starts; `{prompt}` in it, or its input, is the prompt.

    Raises: ValueError if the command cannot be split into shell words.
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


def json_lines(output: bytes) -> list[dict[str, Any]]:
    """Return the JSON objects of an output with one a line; other lines are left out."""
    objects = []
    for line in output.split(b"\n"):
        try:
            event = parse_json(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            objects.append(event)
    return objects


def shortened(text: str) -> str:
    """Return an agent's last words, no more than a report holds: the end, if they are longer."""
    text = text.strip()
    return text if len(text) <= _LONGEST_TEXT else f"[…]{text[-_LONGEST_TEXT:]}"
