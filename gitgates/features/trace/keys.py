"""The table `[tool.gitgates.trace]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table

_KEYS = (
    Key("mode", v.one_of("auto", "on", "off"), '"auto"', weaker=("off", "auto")).meaning(
        "Whether each file that an agent writes is recorded in the trace: which agent, with which "
        "intent, wrote which lines. `auto`: if `[tool.gitgates.intents]` is configured."
    ),
)

TABLE = Table(
    name="trace",
    keys=_KEYS,
    meaning="Whether what agents write is recorded, for `gitgates trace`.",
    example='mode = "on".',
)
