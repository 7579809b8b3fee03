"""The table `[tool.gitgates.proof]`, with the values of `trust` and `allowed_signers`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.config.values import BadValue, ValueType, did_you_mean

_TRUST_KEYS = ("signers", "agents", "max_age")
_EXPECTED = 'identities, such as ["ci@example.com"], or a table with signers, agents and max_age'


def _trust(value: object) -> dict[str, object]:
    table = {"signers": value} if isinstance(value, list) else value
    if not isinstance(table, dict):
        raise BadValue(_EXPECTED)
    for name in table:
        if name not in _TRUST_KEYS:
            raise BadValue(_EXPECTED, did_you_mean(name, _TRUST_KEYS), keys=(name,))
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


_SIGNERS_FILE = ValueType(_file, v.TEXT.json)
_TRUST_TYPE = ValueType(
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

_KEYS = (
    Key("trust", _TRUST_TYPE, "[]", weaker="any").meaning(
        "Whose proofs count, besides this machine's: identities of allowed signers, such as "
        '`["ci@example.com"]`, in which `*` matches any text; or a table with `signers`, '
        "`agents = false` and `max_age`. The value at the merge base with the default branch "
        "counts."
    ),
    Key("allowed_signers", _SIGNERS_FILE, '""', weaker="any").meaning(
        "A file in the repository with these identities' keys, also read at that merge base. "
        "Default: git's `gpg.ssh.allowedSignersFile`."
    ),
    Key("push", v.FLAG, "false").meaning(
        "The pre-push hook signs the proofs of the pushed commits, and pushes "
        "`refs/notes/gitgates` to the same remote."
    ),
)

TABLE = Table(
    name="proof",
    keys=_KEYS,
    meaning="Signed proofs: whose passes count here. [More](../how-to/proofs.md).",
    example='trust = ["ci@example.com"].',
)
