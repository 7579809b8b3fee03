"""The table `[tool.gitgates.headless]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.hosts.headless import CLIENTS

_KEYS = (
    Key("agent", v.one_of(*CLIENTS), '"claude"').meaning(
        "The agent that `gitgates headless` starts."
    ),
    Key("agent_args", v.NAMES, "[]", weaker="any").meaning(
        "Additional arguments for its client, such as permissions, for which it cannot ask."
    ),
    Key("max_files", v.COUNT, "0", weaker="greater").meaning(
        "The maximum number of files that a run may change. 0: unlimited."
    ),
    Key("max_lines", v.COUNT, "0", weaker="greater").meaning(
        "The maximum number of lines that a run may add and remove. 0: unlimited."
    ),
    Key("max_tokens", v.COUNT, "0", weaker="greater").meaning(
        "The maximum number of tokens that a run may use, if the client reports them. 0: unlimited."
    ),
    Key("max_cost", v.AMOUNT, "0", weaker="greater").meaning(
        "The maximum cost of a run in US dollars, if the client reports it. When it is "
        "reached, the changes are checked, and no further turn starts. 0: unlimited."
    ),
    Key("client_retries", v.COUNT, "6").meaning(
        "How many times a turn is repeated if its client failed because the model's service "
        "was busy or unreachable (429, 5xx, 529, network). After that, it counts as failed."
    ),
    Key("retry_wait", v.DURATION, '"10s"').meaning(
        "The delay before the first repetition. It doubles each time, up to 5 minutes, and "
        "counts towards the run's time limit."
    ),
    Key("allow", v.PATTERNS, weaker="any").meaning(
        "Patterns of files that a run may change. Unset: every file."
    ),
    Key("deny", v.PATTERNS, "[]", weaker="fewer").meaning(
        "Patterns of files that a run must not change; a second violation ends it."
    ),
)

TABLE = Table(
    name="headless",
    keys=_KEYS,
    meaning="What `gitgates headless` runs, and what a run may change.",
    example='agent = "claude".',
)
