"""Qwen Code's command line without a terminal: `qwen --output-format json`.

Source: `qwen --help` and the output of qwen-code 0.24, recorded from the client.
"""

from __future__ import annotations

from gitgates.core.limits import parse_json
from gitgates.hosts.headless import UNREADABLE, Start, Turn, shortened

AUTO_APPROVE_OPTIONS = ("--yolo", "-y", "yolo")
TOTALS = ("tokens",)


def start(prompt: str, session: str, more: tuple[str, ...]) -> Start:
    """Return how to start a turn; without a terminal, standard input is the prompt."""
    resume = ("--resume", session) if session else ()
    argv = ("qwen", "--output-format", "json", *resume, *more)
    return Start(argv, prompt.encode("utf-8", "surrogateescape"))


def read(output: bytes) -> Turn:
    """Parse the client's output: an array of JSON objects; the last one is the result."""
    try:
        report = parse_json(output[output.index(b"[") :])[-1]
        text = str(report.get("result") or "")
        error = report.get("error") or {}
        why = text or str(error.get("message") or report.get("subtype") or "unknown")
        refused = {
            str(denial.get("tool_name")) for denial in report.get("permission_denials") or ()
        }
        return Turn(
            session=str(report.get("session_id") or ""),
            text=shortened(text),
            tokens=int((report.get("usage") or {}).get("total_tokens") or 0),
            error=why if report.get("is_error") else "",
            refused=", ".join(sorted(refused)),
        )
    except (ValueError, AttributeError, TypeError, IndexError):
        return Turn(error=UNREADABLE)
