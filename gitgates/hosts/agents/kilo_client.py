"""Kilo's command line without a terminal: `kilo run --format json`, as opencode's."""

from __future__ import annotations

from gitgates.hosts.agents import opencode_client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.hosts.headless import Start

AUTO_APPROVE_OPTIONS = opencode_client.AUTO_APPROVE_OPTIONS
TOTALS = opencode_client.TOTALS
read = opencode_client.read


def start(prompt: str, session: str, more: tuple[str, ...]) -> Start:
    """Return how to start a turn; without a terminal, standard input is the prompt."""
    return opencode_client.start(prompt, session, more, program="kilo")
