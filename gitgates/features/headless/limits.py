"""What a run may cost, and how it waits where the model's service is busy or out of reach."""

from __future__ import annotations

import re
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

_LONGEST_WAIT_S = 300.0
_TICK_S = 0.1
# As clients and libraries word it. Statuses of HTTP: too many requests, and the server's own.
_PASSING = re.compile(
    r"\b(?:429|50[0234]|529)\b|rate.?limit|too many requests|overloaded|bad gateway|"
    r"(?:temporarily|service) unavailable|gateway time.?out|request timed out|"
    r"\bE(?:CONNRESET|CONNREFUSED|TIMEDOUT|TIMEOUT|NOTFOUND|AI_AGAIN|NETUNREACH|HOSTUNREACH|PIPE)\b|"
    r"getaddrinfo|name resolution|socket hang up|fetch failed|network error|stream disconnected|"
    r"connection (?:error|reset|refused|aborted|closed|timed out)|connect(?:ion)? timeout",
    re.IGNORECASE,
)
_OURS = "it did not finish within "  # a turn that we have ended
# Waiting resolves none of these.
_LASTING = re.compile(r"insufficient.quota|credit balance|billing|payment", re.IGNORECASE)


def is_passing(error: str) -> bool:
    """Return whether a client's error may be temporary."""
    if error.startswith(_OURS):
        return False
    return bool(_PASSING.search(error)) and not _LASTING.search(error)


def wait_s(number: int, first_s: float) -> float:
    """Return how long to wait before a turn is repeated for the `number`th time, in seconds."""
    return min(first_s * 2.0 ** min(number - 1, 30), _LONGEST_WAIT_S)


def wait(seconds: float, on_tick: Callable[[], None]) -> None:
    """Wait; `on_tick` is called now and then."""
    until = time.monotonic() + seconds
    while (remaining_s := until - time.monotonic()) > 0:
        time.sleep(min(remaining_s, _TICK_S))
        on_tick()


def cost_usd(turns: Iterable[dict[str, Any]]) -> float | None:
    """Return the cost of all turns; None if the client has reported none."""
    costs = [turn["cost_usd"] for turn in turns if "cost_usd" in turn]
    return sum(costs) if costs else None


def over_cost(turns: list[dict[str, Any]], most_usd: float) -> str:
    """Return by how much the turns cost more than they may; empty if they do not."""
    cost = cost_usd(turns) or 0.0
    is_over = 0 < most_usd < cost
    return f"max_cost: ${cost:.2f} used, at most ${most_usd:.2f}" if is_over else ""
