"""The table `[tool.gitgates.intents]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.config.values import BadValue


def _file(value: object) -> str:
    expected = "a .yaml, .yml or .toml file inside the repository, relative to its root"
    try:
        path = v.parse_folder(value)
    except BadValue:
        raise BadValue(expected) from None
    if not path.endswith((".yaml", ".yml", ".toml")):
        raise BadValue(expected)
    return path


_FILE = v.ValueType(_file, v.FILLED)

_KEYS = (
    Key("file", _FILE, '".orchestration/active_intents.yaml"', weaker="any").meaning(
        "The intents file, relative to the root: YAML, or TOML by its extension."
    ),
    Key("required", v.FLAG, "false", weaker="off").meaning(
        "An agent must select an intent before it changes anything. If set, "
        "`gitgates.local.toml` cannot change these keys."
    ),
    Key("ask", v.PATTERNS, "[]", weaker="fewer").meaning(
        "Patterns of files that an agent may change only with a person's permission, "
        "regardless of the scope."
    ),
    Key("ttl", v.DURATION, '"30m"').meaning(
        "How long an inactive agent keeps its intent. After that, others may select it."
    ),
    Key("context", v.SIZE, '"8 KiB"').meaning(
        "The maximum size of the intent context for an agent, in characters. Acceptance "
        "criteria are kept first, then constraints. The minimum is 512 B."
    ),
)

TABLE = Table(
    name="intents",
    keys=_KEYS,
    meaning="What agents may work on, and where. Without this table, intents are off.",
    example="required = true.",
)
