"""Kimi Code's command line without a terminal: `kimi --output-format stream-json -p`.

Source: `kimi --help` and the output of kimi-code 2.1, recorded from the client.
"""

from __future__ import annotations

from gitgates.hosts.headless import UNREADABLE, Start, Turn, json_lines, shortened

AUTO_APPROVE_OPTIONS = ("--yolo", "-y", "--auto")
TOTALS: tuple[str, ...] = ()


def start(prompt: str, session: str, more: tuple[str, ...]) -> Start:
    """Return how to start a turn; the prompt can only be an argument."""
    resume = ("--session", session) if session else ()
    return Start(("kimi", "--output-format", "stream-json", *resume, *more, f"--prompt={prompt}"))


def read(output: bytes) -> Turn:
    """Parse the client's output: a JSON object on each line; it names no tokens."""
    session = text = ""
    for message in json_lines(output):
        if message.get("role") == "assistant" and message.get("content"):
            text = str(message["content"])
        session = str(message.get("session_id") or session)
    error = "" if session else UNREADABLE
    return Turn(session=session, text=shortened(text), error=error)
