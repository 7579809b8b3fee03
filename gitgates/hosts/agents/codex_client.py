"""Codex's command line without a terminal: `codex exec`.

Source: `codex exec --help` and the events of codex 0.169, recorded from the client.
"""

from __future__ import annotations

from gitgates.hosts.headless import UNREADABLE, Start, Turn, json_lines, shortened

TOTALS = ("tokens",)


def start(prompt: str, session: str, more: tuple[str, ...]) -> Start:
    """Return how to start a turn; `-` reads the prompt from standard input.

    `codex exec resume` itself does not accept `--sandbox` and others that `codex exec` accepts.
    """
    resume = ("resume", session) if session else ()
    argv = ("codex", "exec", "--json", *more, *resume, "-")
    return Start(argv, prompt.encode("utf-8", "surrogateescape"))


def read(output: bytes) -> Turn:
    """Parse the client's output: an event, as JSON, on each line."""
    session = text = error = ""
    tokens: int | None = None
    for event in json_lines(output):
        item = event.get("item") or {}
        match event.get("type"), item.get("type"):
            case "thread.started", _:
                session = str(event.get("thread_id") or "")
            case "item.completed", "agent_message":
                text = str(item.get("text") or "")
            case "turn.completed", _:
                usage = event.get("usage") or {}
                tokens = int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)
                error = ""
            case "turn.failed" | "error", _:
                failure = event.get("error") or event
                error = str(failure.get("message") or "the turn failed")
    if tokens is None and not error:
        error = UNREADABLE
    return Turn(session=session, text=shortened(text), tokens=tokens, error=error)
