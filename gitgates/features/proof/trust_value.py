"""The values of `trust`, identities or a table with conditions, and of `allowed_signers`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.values import BadValue, ValueType, did_you_mean

_NAMES = ("signers", "agents", "max_age")
_EXPECTED = 'identities, such as ["ci@example.com"], or a table with signers, agents and max_age'


def _trust(value: object) -> dict[str, object]:
    table = {"signers": value} if isinstance(value, list) else value
    if not isinstance(table, dict):
        raise BadValue(_EXPECTED)
    for name in table:
        if name not in _NAMES:
            raise BadValue(_EXPECTED, did_you_mean(name, _NAMES), keys=(name,))
    agents = table.get("agents", True)
    if not isinstance(agents, bool):
        raise BadValue("true or false", keys=("agents",))
    max_age = table.get("max_age")
    return {
        "signers": v.NAMES.parse(table.get("signers", [])),
        "agents": agents,
        "max_age_s": 0.0 if max_age is None else v.AGE.parse(max_age),
    }


def _file(value: object) -> str:
    try:
        return value if value == "" else v.parse_folder(value)
    except BadValue:
        hint = "For one elsewhere, set git's gpg.ssh.allowedSignersFile, and leave this out."
        raise BadValue("a file inside the repository, relative to its root", hint) from None


SIGNERS_FILE = ValueType(_file, v.TEXT.json)
TRUST = ValueType(
    _trust,
    {
        "anyOf": [
            v.NAMES.json,
            {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "signers": v.NAMES.json,
                    "agents": {"type": "boolean"},
                    "max_age": v.AGE.json,
                },
            },
        ]
    },
)
