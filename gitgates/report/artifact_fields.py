"""The fields of `result.json`, as data: the check of what is read back, and a page of the docs.

The names without `ours` are those of the architecture decision that the format comes from.
"""

from __future__ import annotations

from gitgates.record import Record

VERSION = 1
_MOST = 1e12  # seconds, bytes


class Field(Record):
    """One field: its name, what its value is, and what that means."""

    name: str
    kind: str  # a word of _FITS
    meaning: str
    always: bool = True  # False: left out where there is nothing to tell
    ours: bool = True


# The verdict of an attempt → what that is in two words, and its meaning.
OUTCOMES: dict[str, tuple[str, str]] = {
    "passed": ("passed", "nothing was wrong"),
    "warned": ("passed", "something was wrong, and the host went on all the same"),
    "blocked": ("failed", "a gate blocked; an agent was told, and may try again"),
    "stopped": ("failed", "a gate stopped everything, the agent included"),
    "exhausted": ("failed", "a gate still blocked when no retry was left"),
    "not-converging": ("failed", "the agent was let go: its attempts led nowhere"),
    "breaker": ("failed", "the agent was let go: too many blocks in this prompt or session"),
    "cannot-fix": ("failed", "the agent said that it cannot fix what is wrong"),
    "could-not-run": ("failed", "no gate that blocked could be started: nothing is known"),
}

RUN = (
    Field("version", "whole number", f"{VERSION}; another one when a field goes or changes"),
    Field("execution_id", "text", "the run, and the name of its folder", ours=False),
    Field("hook", "text", "the hook of the first attempt"),
    Field("host", "text", "who fired it: `git`, `pre-commit`, `manual`, `claude`"),
    Field("root", "text", "the top of the working tree"),
    Field("session", "text", "the agent's session", always=False),
    Field("agent", "text", "the sub-agent's type", always=False),
    Field("outcome", "text", "the verdict of the last attempt"),
    Field("quality_gates", "object", "all attempts, and what they come to", ours=False),
)

CYCLE = (
    Field("retry_attempts", "whole number", "how many attempts followed the first", ours=False),
    Field(
        "max_retries",
        "whole number",
        "how many may follow; 0 where failures go back to nobody",
        ours=False,
    ),
    Field("final_status", "text", "`passed` or `failed`: see Outcomes", ours=False),
    Field(
        "total_duration_seconds",
        "number",
        "all attempts together, without the time in which the agent worked",
        ours=False,
    ),
    Field("attempts", "list of objects", "oldest first", ours=False),
)

ATTEMPT = (
    Field("attempt", "whole number", "its number, from 1", ours=False),
    Field("timestamp", "text", "when it began, in UTC", ours=False),
    Field(
        "agent_fixes",
        "text",
        "what the agent said last before this attempt, at most 2,000 characters",
        always=False,
        ours=False,
    ),
    Field("hook", "text", "the hook that fired"),
    Field("duration_seconds", "number", "from its beginning to its decision"),
    Field("verdict", "text", "what came of it: see Outcomes"),
    Field("asked", "text", "the gate that decided; empty where none did"),
    Field("reason", "text", "why, in one line"),
    Field("tree", "text", "the snapshot (a git tree) that the gates saw", always=False),
    Field("fed_back_bytes", "whole number", "how long the text was that the agent got"),
    Field("not_run", "list of texts", "gates that did not get their turn", always=False),
    Field("cannot_fix", "list of pairs", "gate and reason, as the agent said", always=False),
    Field("notes", "list of texts", "what a person should know", always=False),
    Field("results", "list of objects", "every gate, in the order of the walk", ours=False),
)

RESULT = (
    Field("name", "text", "the gate", ours=False),
    Field("passed", "true or false", "whether its status is `passed`", ours=False),
    Field("duration_seconds", "number", "0 where it did not run", ours=False),
    Field("exit_code", "whole number", "where there is one", always=False, ours=False),
    Field(
        "output",
        "text",
        "head and tail of standard output and error; empty in all but the newest 20 attempts",
        ours=False,
    ),
    Field("status", "text", "how it ended: `passed`, `failed`, `timed-out`, `not-started`, …"),
    Field("signal", "whole number", "that ended it", always=False),
    Field("verdict", "text", "what that led to: `allow`, `warn`, `block`, `stop`"),
    Field("action", "text", "the action that led there, `CONTINUE` or a gate's name for example"),
    Field("reason", "text", "why, where the status does not say it", always=False),
    Field("log", "text", "the file with all of the output, from this folder", always=False),
    Field("dropped_bytes", "whole number", "of the output, left out here", always=False),
    Field("changed_paths", "list of texts", "that it changed", always=False),
    Field("observed", "true or false", "its failure was only watched", always=False),
    Field("excused", "true or false", "its failures were there before", always=False),
)


def is_sound(document: object) -> bool:
    """Tell whether something that was read back has the shape that we write."""
    if not _has(document, RUN) or not isinstance(document, dict):
        return False
    cycle = document["quality_gates"]
    return (
        document["version"] == VERSION
        and document["outcome"] in OUTCOMES
        and _has(cycle, CYCLE)
        and bool(cycle["attempts"])
        and all(
            _has(attempt, ATTEMPT)
            and attempt["verdict"] in OUTCOMES
            and all(_has(result, RESULT) for result in attempt["results"])
            for attempt in cycle["attempts"]
        )
    )


def _has(value: object, fields: tuple[Field, ...]) -> bool:
    return isinstance(value, dict) and all(
        _fits(value[field.name], field.kind) if field.name in value else not field.always
        for field in fields
    )


def _fits(value: object, kind: str) -> bool:
    match kind:
        case "text":
            return isinstance(value, str)
        case "whole number":
            return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _MOST
        case "number":
            return (
                isinstance(value, int | float) and not isinstance(value, bool) and _is_real(value)
            )
        case "true or false":
            return isinstance(value, bool)
        case "object":
            return isinstance(value, dict)
        case "list of texts":
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case "list of pairs":
            return isinstance(value, list) and all(
                isinstance(item, list) and [type(part) for part in item] == [str, str]
                for item in value
            )
        case _:
            return isinstance(value, list)


def _is_real(value: float) -> bool:
    return 0 <= value < _MOST  # JSON has no infinity, but Python reads and writes one
