"""Mistral Vibe's command line without a terminal: `vibe -p --output json`.

Source: `vibe --help` and the output of mistral-vibe 3.0, recorded from the client.
"""

from __future__ import annotations

from gitgates.core.limits import parse_json
from gitgates.hosts.headless import UNREADABLE, Start, Turn, shortened

AUTO_APPROVE_OPTIONS = ("--auto-approve", "--yolo")
TOTALS: tuple[str, ...] = ()


def start(prompt: str, session: str, more: tuple[str, ...]) -> Start:
    """Return how to start a turn; `-p` without a text reads the prompt from standard input."""
    resume = ("--resume", session) if session else ()
    argv = ("vibe", "-p", "--output", "json", *resume, *more)
    return Start(argv, prompt.encode("utf-8", "surrogateescape"))


def read(output: bytes) -> Turn:
    """Parse the client's output: an array with the whole conversation; it names no tokens."""
    try:
        entries = parse_json(output[output.index(b"[") :])
        session = str(entries[-1].get("sessionId") or "")
        last = next(entry for entry in reversed(entries) if entry.get("role") == "assistant")
        texts = [str(part.get("text") or "") for part in last.get("content") or ()]
        return Turn(session=session, text=shortened("\n".join(texts)))
    except (ValueError, AttributeError, TypeError, IndexError, StopIteration):
        return Turn(error=UNREADABLE)
