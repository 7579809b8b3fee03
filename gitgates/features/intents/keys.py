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
    Key("file", _FILE, '".orchestration/active_intents.yaml"', weaker="any").means(
        "The file with the intents, relative to the root: YAML, or TOML by its extension."
    ),
    Key("required", v.FLAG, "false", weaker="off").means(
        "An agent changes nothing before it has selected an intent. `gitgates.local.toml` cannot "
        "change these keys then."
    ),
    Key("ask", v.PATTERNS, "[]", weaker="fewer").means(
        "Patterns of files that an agent changes only after a person has allowed it, whatever the "
        "scope says."
    ),
    Key("ttl", v.DURATION, '"30m"').means(
        "How long an intent stays with an agent of which nothing is heard. Then others may select "
        "it."
    ),
    Key("context", v.SIZE, '"8 KiB"').means(
        "The most that an agent is told of its intent, in characters. Acceptance criteria are kept "
        "first, then constraints; less than 512 B counts as that."
    ),
)

TABLE = Table(
    name="intents",
    keys=_KEYS,
    meaning="What agents may work on, and where. Without this table, intents are off.",
    example="required = true.",
)
