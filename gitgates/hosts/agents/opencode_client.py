"""opencode's command line without a terminal: `opencode run --format json`; Kilo's is the same.

Source: `opencode run --help` and the events of opencode 1.18 and Kilo 7.8, recorded from them.
"""

from __future__ import annotations

from gitgates.hosts.headless import UNREADABLE, Start, Turn, json_lines, shortened

AUTO_APPROVE_OPTIONS = ("--auto",)
TOTALS: tuple[str, ...] = ()


def start(prompt: str, session: str, more: tuple[str, ...], program: str = "opencode") -> Start:
    """Return how to start a turn; without a terminal, standard input is the prompt."""
    resume = ("--session", session) if session else ()
    argv = (program, "run", "--format", "json", *resume, *more)
    return Start(argv, prompt.encode("utf-8", "surrogateescape"))


def read(output: bytes) -> Turn:
    """Parse the client's output: an event, as JSON, on each line; each step counts separately."""
    session = text = error = ""
    tokens: int | None = None
    cost = 0.0
    for event in json_lines(output):
        session = str(event.get("sessionID") or session)
        part = event.get("part") or {}
        match event.get("type"):
            case "text":
                text = str(part.get("text") or "")
            case "step_finish":
                tokens = (tokens or 0) + int((part.get("tokens") or {}).get("total") or 0)
                cost += float(part.get("cost") or 0)
                error = ""
            case "error":
                failure = event.get("error") or {}
                fields = failure.get("data") or {}
                message = fields.get("message") or failure.get("name") or "unknown"
                error = f"{fields.get('statusCode') or ''} {message}".strip()
            case _:
                pass
    if tokens is None and not error:
        error = UNREADABLE
    # It reports 0 for a custom model, whose price it does not know.
    paid = round(cost, 6) or None
    return Turn(session=session, text=shortened(text), tokens=tokens, cost_usd=paid, error=error)
