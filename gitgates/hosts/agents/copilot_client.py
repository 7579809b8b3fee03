"""Copilot CLI's command line without a terminal: `copilot --output-format json`.

Source: `copilot --help` and the output of Copilot CLI 1.0.102, recorded from the client.
"""

from __future__ import annotations

from gitgates.hosts.headless import UNREADABLE, Start, Turn, json_lines, shortened

AUTO_APPROVE_OPTIONS = ("--allow-all-tools", "--allow-all-paths", "--allow-all", "--yolo")
TOTALS: tuple[str, ...] = ()
REFUSED = {
    "--trust-folder": "Copilot CLI resumes no conversation with it. Set COPILOT_ALLOW_ALL=true in "
    "the environment instead, which trusts the folder, too."
}


def start(prompt: str, session: str, more: tuple[str, ...]) -> Start:
    """Return how to start a turn; without a terminal, standard input is the prompt."""
    resume = ("--resume", session) if session else ()
    argv = ("copilot", "--output-format", "json", *resume, *more)
    return Start(argv, prompt.encode("utf-8", "surrogateescape"))


def read(output: bytes) -> Turn:
    """Parse the client's output: an event, as JSON, on each line; the last is `result`.

    It names no tokens.
    """
    session = text = failure = ""
    error = UNREADABLE
    for event in json_lines(output):
        fields = event.get("data") or {}
        match event.get("type"):
            case "assistant.message" if fields.get("content"):
                text, failure = str(fields["content"]), ""
            case "session.error":
                failure = str(fields.get("message") or "unknown")
            case "model.call_failure":
                message = fields.get("errorMessage") or "the model gave no answer"
                failure = f"{fields.get('statusCode') or ''} {message}".strip()
            case "result":
                session = str(event.get("sessionId") or "")
                status = event.get("exitCode")
                error = failure or (f"exit status {status}" if status else "")
            case _:
                pass
    return Turn(session=session, text=shortened(text), error=error)
