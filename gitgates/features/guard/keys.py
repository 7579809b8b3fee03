"""The table `[tool.gitgates.guard]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.core.guarded import rules_by_name

_ANSWER = v.one_of("deny", "ask", "warn", "off")


_KEYS = (
    Key("enabled", v.FLAG, "true", weaker="off").means(
        "Whether the guard checks an agent's commands and edits."
    ),
    *(
        Key(rule.name, _ANSWER, f'"{rule.answer}"', weaker=("off", "warn", "ask")).means(
            rule.meaning
        )
        for rule in rules_by_name().values()
    ),
)

TABLE = Table(
    name="guard",
    keys=_KEYS,
    meaning="The response if an agent is about to bypass the gates. `deny`: the tool call is "
    "refused. `ask`: the person is asked; if nobody can answer, it is refused. `warn`: the "
    "agent is warned. `off`: nothing."
    " [More](../how-to/guard.md).",
    example='no_verify = "ask".',
)
