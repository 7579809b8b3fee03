"""The table `[tool.gitgates.commits]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table

_KEYS = (
    Key(
        "own_files", v.one_of("off", "warn", "block"), '"off"', weaker=("off", "warn", "block")
    ).meaning(
        "What happens to an agent's commit with files that its session has not changed, or new "
        "ones whose names look like secrets, such as `.env`. "
        "[How](../how-to/agent-hooks.md#commits-of-other-peoples-files)."
    ),
)

TABLE = Table(
    name="commits",
    keys=_KEYS,
    meaning="What an agent may commit.",
    example='own_files = "warn"',
)
