"""Gemini CLI's command line without a terminal: `gemini -p`.

Source: `gemini --help` and the output of gemini-cli 0.61, recorded from the client.
"""

from __future__ import annotations

from gitgates.core.limits import parse_json
from gitgates.hosts.headless import UNREADABLE, Start, Turn, shortened

TOTALS: tuple[str, ...] = ()


def start(prompt: str, session: str, more: tuple[str, ...]) -> Start:
    """Return how to start a turn; without a terminal, standard input is the prompt."""
    resume = ("--resume", session) if session else ()
    argv = ("gemini", "--output-format", "json", *resume, *more)
    return Start(argv, prompt.encode("utf-8", "surrogateescape"))


def read(output: bytes) -> Turn:
    """Parse the client's output: it ends with one JSON object."""
    try:
        report = parse_json(output[output.index(b"{") :])
        models = (report.get("stats") or {}).get("models") or {}
        counted = [(model.get("tokens") or {}).get("total") or 0 for model in models.values()]
        error = report.get("error") or {}
        return Turn(
            session=str(report.get("session_id") or ""),
            text=shortened(str(report.get("response") or "")),
            tokens=sum(map(int, counted)),
            error=str(error.get("message") or "unknown") if error else "",
        )
    except (ValueError, AttributeError, TypeError):
        return Turn(error=UNREADABLE)
