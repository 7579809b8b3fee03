"""The table `[tool.gitgates.trace]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table

_KEYS = (
    Key("mode", v.one_of("auto", "on", "off"), '"auto"', weaker=("off", "auto")).meaning(
        "Whether the trace records which agent wrote which lines of each file, and with which "
        "intent. `auto`: if `[tool.gitgates.intents]` is configured."
    ),
)

TABLE = Table(
    name="trace",
    keys=_KEYS,
    meaning="Whether agents' changes are recorded, for `gitgates trace`.",
    example='mode = "on".',
)
