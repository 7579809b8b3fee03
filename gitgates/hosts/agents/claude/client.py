"""Claude Code's command line without a terminal: `claude -p`.

Source: https://code.claude.com/docs/en/headless; the output, recorded from the client 2.1.329.
"""

from __future__ import annotations

from gitgates.core.limits import parse_json
from gitgates.hosts.headless import UNREADABLE, Start, Turn, shortened

TOTALS = ("cost_usd",)
_COUNTED = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
)


def start(prompt: str, session: str, more: tuple[str, ...]) -> Start:
    """Return how to start a turn; standard input is the prompt, so it may have any length."""
    resume = ("--resume", session) if session else ()
    argv = ("claude", "-p", "--output-format", "json", *resume, *more)
    return Start(argv, prompt.encode("utf-8", "surrogateescape"))


def read(output: bytes) -> Turn:
    """Parse the client's output: its last line is a JSON object."""
    try:
        report = parse_json(output.strip().rpartition(b"\n")[2])
        usage = report.get("usage") or {}
        text = str(report.get("result") or "")
        cost = report.get("total_cost_usd")
        errors = " ".join(map(str, report.get("errors") or ()))
        error = text or errors or str(report.get("subtype") or "unknown")
        refused = {
            str(denial.get("tool_name")) for denial in report.get("permission_denials") or ()
        }
        return Turn(
            session=str(report.get("session_id") or ""),
            text=shortened(text),
            tokens=sum(int(usage.get(name) or 0) for name in _COUNTED),
            cost_usd=float(cost) if isinstance(cost, int | float) else None,
            error=error if report.get("is_error") else "",
            refused=", ".join(sorted(refused)),
        )
    except (ValueError, AttributeError, TypeError):
        return Turn(error=UNREADABLE)
