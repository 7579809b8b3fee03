"""OpenHands' command line without a terminal: `openhands --headless --json --task`.

Source: `openhands --help` and the output of OpenHands CLI 1.16, recorded from the client.
"""

from __future__ import annotations

import re

from gitgates.hosts.headless import UNREADABLE, Start, Turn, json_lines, shortened

# Without a terminal, it never asks.
AUTO_APPROVE_OPTIONS = ("--always-approve", "--yolo", "--headless")
TOTALS: tuple[str, ...] = ()
_SESSION = re.compile(rb"^Conversation ID: ([0-9a-fA-F-]+)\s*$", re.MULTILINE)


def start(prompt: str, session: str, more: tuple[str, ...]) -> Start:
    """Return how to start a turn; the prompt is an argument or in a file."""
    resume = ("--resume", session) if session else ()
    return Start(("openhands", "--headless", "--json", *resume, *more, f"--task={prompt}"))


def read(output: bytes) -> Turn:
    """Parse the client's output: JSON objects on lines, with text between; it names no tokens."""
    text = error = ""
    for event in json_lines(output):
        match event.get("kind"):
            case "MessageEvent" if event.get("source") == "agent":
                parts = (event.get("llm_message") or {}).get("content") or ()
                text, error = "\n".join(str(part.get("text") or "") for part in parts), ""
            case "ConversationErrorEvent":
                error = f"{event.get('code') or ''} {event.get('detail') or ''}".strip()
            case _:
                pass
    sessions = _SESSION.findall(output)
    if not sessions:
        return Turn(error=error or UNREADABLE)
    return Turn(session=sessions[-1].decode(), text=shortened(text), error=error)
