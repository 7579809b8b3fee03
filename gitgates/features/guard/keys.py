"""The table `[tool.gitgates.guard]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.core.guarded import rules_by_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.guarded import Rule

# Weakest first. A table of patterns counts as weaker than any table that differs from it.
_WEAKER = ("off", "warn", "save", "ask")


def _answer_type(rule: Rule) -> v.ValueType:
    """Return the type of a rule's key: one of its answers, or a table from patterns to them."""
    of_all = v.one_of(*rule.answers)
    if not rule.by_pattern:
        return of_all

    def parse(value: object) -> object:
        if isinstance(value, dict):
            return tuple((pattern, _pattern_answer(of_all, pattern, value)) for pattern in value)
        if not isinstance(value, str):
            expected = f"one of {', '.join(rule.answers)}, or a table of patterns with one each"
            raise v.BadValue(expected, f'Try {rule.name} = {{ "git clean *" = "ask" }}.')
        return of_all.parse(value)

    table = {"type": "object", "propertyNames": v.FILLED, "additionalProperties": of_all.json}
    return v.ValueType(parse, {"anyOf": [of_all.json, table]})


def _pattern_answer(of_all: v.ValueType, pattern: str, table: dict[str, object]) -> object:
    if not pattern.strip():
        raise v.BadValue('patterns of commands, such as "git clean *"', keys=(pattern,))
    try:
        return of_all.parse(table[pattern])
    except v.BadValue as bad:
        raise v.BadValue(bad.expected, bad.hint, keys=(pattern,)) from None


_KEYS = (
    Key("enabled", v.FLAG, "true", weaker="off").meaning(
        "Whether the guard checks an agent's commands and edits."
    ),
    *(
        Key(
            rule.name,
            _answer_type(rule),
            f'"{rule.answer}"',
            weaker="any" if rule.by_pattern else tuple(x for x in _WEAKER if x in rule.answers),
        ).meaning(rule.meaning)
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
