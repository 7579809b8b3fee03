"""Start an agent's client without a terminal, and read its output.

Each client is a module with `start` and `read`; any other client is a command with a placeholder
for the prompt.
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

# The name for `--agent` → the module with its command line.
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
_LONGEST_TEXT = 4000  # of the agent's last message


class Turn(Record):
    """A client's report on one turn."""

    session: str = ""  # to resume; empty: it cannot be resumed
    text: str = ""  # the agent's last message
    tokens: int | None = None  # read and written in this turn
    cost_usd: float | None = None
    error: str = ""  # why the turn failed
    refused: str = ""  # the tools that the client had no permission for, if it names them
    timed_out: bool = False  # whether gitgates ended it


class Start(Record):
    """A client's arguments and input."""

    argv: tuple[str, ...]
    stdin: bytes = b""


class Client(Record):
    """A way to start an agent."""

    name: str
    start: Callable[[str, str, tuple[str, ...]], Start]  # prompt, session to resume, more arguments
    read: Callable[[bytes], Turn]  # the client's output
    resumes: bool = True  # False: each turn is a new conversation
    totals: tuple[str, ...] = ()  # fields of Turn that count for the whole conversation so far


def client(name: str) -> Client:
    """Return the client with this name. Raises: KeyError if there is none."""
    __import__(CLIENTS[name])
    module = sys.modules[CLIENTS[name]]
    return Client(name=name, start=module.start, read=module.read, totals=module.TOTALS)


def refused_option(name: str, arguments: tuple[str, ...]) -> str:
    """Return why an argument cannot be used with a client; empty if all can.

    Raises: KeyError if there is no such client.
    """
    __import__(CLIENTS[name])
    refused: dict[str, str] = getattr(sys.modules[CLIENTS[name]], "REFUSED", {})
    return next(
        (f"{argument}: {refused[argument]}" for argument in arguments if argument in refused), ""
    )


def any_client(command: str) -> Client:
    """Return the client that a command starts; it gets the prompt at `{prompt}`, or as input.

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
    """Return the JSON objects in an output, one for each line; other lines are left out."""
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
    """Return an agent's last message; only its end if it is too long for a report."""
    text = text.strip()
    return text if len(text) <= _LONGEST_TEXT else f"[…]{text[-_LONGEST_TEXT:]}"
