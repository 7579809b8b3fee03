"""The table `[tool.gitgates.review]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.config.values import BadValue
from gitgates.core.lifecycle import HOOK_OF
from gitgates.core.types import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.config.read import Settings
    from gitgates.core.types import Config

_NAME = "review"  # of the table and the gate
_BESIDE = "They extend the built-in ones; a leading `!` removes one."


def _weights(value: object) -> tuple[float, ...]:
    hint = "Try weights = { code = 1, tests = 0.5, documentation = 0.1 }."
    weights = {"code": 1.0, "tests": 0.5, "documentation": 0.1}
    if not isinstance(value, dict) or not value.keys() <= weights.keys():
        raise BadValue("a table with the keys `code`, `tests` and `documentation`", hint)
    try:
        weights |= {name: v.parse_amount(number) for name, number in value.items()}
    except BadValue:
        raise BadValue("numbers from 0 to 1,000,000,000", hint) from None
    return tuple(weights.values())


def _prefix(value: object) -> str:
    if not isinstance(value, str) or ":" in value or value.split() not in ([], [value]):
        raise BadValue("one word without a colon, such as #review, or an empty string")
    return value.strip()


def _agent_name(value: object) -> str:
    if not isinstance(value, str) or len(value.split()) != 1 or not value.isprintable():
        raise BadValue("one name, without spaces and patterns")
    if any(character in value for character in "*?|"):
        raise BadValue("one name, without spaces and patterns")
    return value.strip()


_PREFIX = v.ValueType(_prefix, v.TEXT.json)
_AGENT_NAME = v.ValueType(_agent_name, v.FILLED)
_WEIGHTS = v.ValueType(_weights, v.numbers_schema(v.AMOUNT.json, "code", "tests", "documentation"))

_KEYS = (
    Key("mode", v.one_of("remind", "require", "off"), '"remind"', weaker=("off", "remind")).meaning(
        "`remind`: after a significant change, the agent is blocked from stopping until there "
        "is evidence of a review, or it reports why none is needed. `require`: after any "
        "change, until an independent reviewer posts COMPLETE. `off`: never, unless a prompt "
        "requests it."
    ),
    Key("required", v.FLAG, "false", weaker="off").meaning(
        "Neither `SKIP`, `GITGATES_SKIP` nor `gitgates.local.toml` can disable the gate or "
        "change these keys."
    ),
    Key("weakened", v.one_of("tell", "block", "off"), '"tell"', weaker=("off", "tell")).meaning(
        "What happens after a change that weakens the checks, such as a skipped test or a lowered "
        "threshold. `tell`: at the end of the turn, the agent and the person are told once. "
        "`block`: even a small one needs a review. `off`: it is only listed."
    ),
    Key("prefix", _PREFIX, '"#review"', weaker="any").meaning(
        "The prefix of prompts that request the strict form, in any mode; with `:stop` after "
        "it, a prompt cancels the request. Empty: disabled."
    ),
    Key("min_lines", v.AMOUNT, "40", weaker="greater").meaning(
        "A change is significant from this number of weighted lines."
    ),
    Key("min_files", v.AMOUNT, "5", weaker="greater").meaning(
        "A change is significant from this number of weighted files."
    ),
    Key(
        "weights", _WEIGHTS, "{ code = 1, tests = 0.5, documentation = 0.1 }", weaker="each"
    ).meaning("How much a line, or a file, of each kind counts."),
    Key("tests", v.PATTERNS, "[]", weaker="more").meaning(f"Patterns of tests. {_BESIDE}"),
    Key("documentation", v.PATTERNS, "[]", weaker="more").meaning(
        f"Patterns of documentation, and of data not read line by line. {_BESIDE}"
    ),
    Key("generated", v.PATTERNS, "[]", weaker="more").meaning(
        "Patterns of files not written by hand: generated, vendored, lock files. They do not count."
        f" {_BESIDE}"
    ),
    Key("critical", v.PATTERNS, "[]", weaker="fewer").meaning(
        "Patterns of files in which any change is significant."
    ),
    Key("ignore", v.PATTERNS, "[]", weaker="more").meaning("Patterns of files that never count."),
    Key("skills", v.NAMES, '["code-review", "review", "security-review"]', weaker="more").meaning(
        "Names of skills and typed commands that count as a review. A bare name also matches "
        "a plugin's."
    ),
    Key("agents", v.NAMES, '["code-reviewer", "reviewer"]', weaker="more").meaning(
        "Types of sub-agents whose end counts as a review. A bare name also matches a plugin's."
    ),
    Key("reviewer", _AGENT_NAME, '"reviewer"', weaker="any").meaning(
        "The type of the sub-agent whose decision counts in the strict form, if it is "
        "read-only. A bare name also matches a plugin's."
    ),
    Key("reviewer_model", _AGENT_NAME, '"opus"', weaker="any").meaning(
        "The model that `gitgates install-hooks --agent claude` writes into that sub-agent."
    ),
    Key(
        "reviewer_commands",
        v.NAMES,
        '["git diff", "git log", "git show", "gitgates review", "gitgates journal"]',
        weaker="more",
    ).meaning("Prefixes of shell commands that the reviewer may run."),
    Key("second_opinions", v.NAMES, "[]", weaker="fewer").meaning(
        "Commands that `gitgates review diff --opinions` runs, with the request and the change on "
        "standard input, such as `codex exec -`."
    ),
    Key("opinion_timeout", v.DURATION, "600", weaker="sharply").meaning(
        "The time limit of each of them."
    ),
)


def _validate(config: Config, settings: Settings) -> Iterator[Problem]:
    """Yield a problem if no hook lists the gate."""
    if settings.tables.get((_NAME,)) and not any(_NAME in hook.gates for hook in config.hooks):
        hint = f'Add it: [tool.gitgates.hooks.{HOOK_OF["turn-end"]}] gates = [..., "{_NAME}"].'
        message = f"no hook lists the gate `{_NAME}`, so these settings have no effect"
        yield Problem(settings.document.location(_NAME), message, hint, deferred=True)


TABLE = Table(
    name=_NAME,
    keys=_KEYS,
    meaning="What the built-in gate `review` requires, if a hook lists it. Patterns are as in "
    "`files` of a gate.",
    example='mode = "remind", and list `review` in a hook.',
    validate=_validate,
)
