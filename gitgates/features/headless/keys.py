"""The table `[tool.gitgates.headless]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.hosts.headless import CLIENTS

_KEYS = (
    Key("agent", v.one_of(*CLIENTS), '"claude"').means(
        "The agent that `gitgates headless` starts."
    ),
    Key("agent_args", v.NAMES, "[]", weaker="any").means(
        "Further arguments of its client, such as permissions: nobody can answer a prompt."
    ),
    Key("max_files", v.COUNT, "0", weaker="greater").means(
        "The most files that a run may change. 0: any number."
    ),
    Key("max_lines", v.COUNT, "0", weaker="greater").means(
        "The most lines that a run may add and remove. 0: any number."
    ),
    Key("max_tokens", v.COUNT, "0", weaker="greater").means(
        "The most tokens that a run may use, where the client reports them. 0: any number."
    ),
    Key("max_cost", v.AMOUNT, "0", weaker="greater").means(
        "The most that a run may cost, in US dollars, where the client tells it. When that is "
        "reached, what was done is checked, and no further turn begins. 0: any amount."
    ),
    Key("client_retries", v.COUNT, "6").means(
        "How often a turn is repeated whose client failed because the model's service was busy or "
        "out of reach (429, 5xx, 529, network). After that, and at once for 0, it counts as failed."
    ),
    Key("retry_wait", v.DURATION, '"10s"').means(
        "The wait before the first such repetition. It doubles each time, up to 5 minutes, and is "
        "part of the time of the run."
    ),
    Key("allow", v.PATTERNS, weaker="any").means(
        "Patterns of the only files that a run may change. Missing: every file."
    ),
    Key("deny", v.PATTERNS, "[]", weaker="fewer").means(
        "Patterns of files that a run must not change; a second attempt that does ends it."
    ),
)

TABLE = Table(
    name="headless",
    keys=_KEYS,
    meaning="What `gitgates headless` starts, and what a run of it may change.",
    example='agent = "claude".',
)
