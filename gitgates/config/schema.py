"""Every key of the configuration as data: its parser, its default, its meaning.

The parser, the JSON Schema and the reference page are all made from this table.
"""

from __future__ import annotations

from gitgates.config import values
from gitgates.lifecycle import HOOK_POINTS
from gitgates.record import Record
from gitgates.types import ACTIONS, PRIORITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


# Names that a later built-in policy answers to; a gate of the same name would be ambiguous then.
POLICY_NAMES = ("review", "reviewer", "retry", "intents", "guard", "advice")
RESERVED_GATE_NAMES = (*ACTIONS, *POLICY_NAMES)

_TEXT = {"type": "string"}
_FILLED = {"type": "string", "pattern": r"\S"}
_TEXTS = {"type": "array", "items": _FILLED}


class Key(Record):
    """One key: how its value is parsed, what it means, where it may stand."""

    name: str  # as it is written
    field: str  # the record's field
    parse: Callable[[object], object]
    default: str  # as it is written; empty: none
    meaning: str
    json: Mapping[str, object]  # its JSON Schema
    only_in: tuple[str, ...] = ()  # the hooks that it has a meaning in; (): all


def _enum(*words: str) -> dict[str, object]:
    return {"type": "string", "enum": list(words)}


TOP_KEYS: tuple[Key, ...] = (
    Key(
        "jobs",
        "jobs",
        values.count,
        "0",
        "How many gates run at once where the strategy is `collect`; 0: one per CPU.",
        {"type": "integer", "minimum": 0},
    ),
    Key(
        "max_output",
        "max_output_bytes",
        values.size,
        '"64 KiB"',
        "How much of a gate's output is kept and shown: its head and its tail, half of this each. "
        "The log file holds all of it.",
        {"anyOf": [{"type": "integer", "minimum": 1}, _FILLED]},
    ),
    Key(
        "link",
        "link",
        values.names,
        '[".venv", "node_modules"]',
        "What git ignores and gates need all the same: linked into every private checkout, where "
        "the working tree has it.",
        _TEXTS,
    ),
)

GATE_KEYS: tuple[Key, ...] = (
    Key(
        "description",
        "description",
        values.text,
        '""',
        "What the gate checks, for people and agents.",
        _TEXT,
    ),
    Key(
        "command",
        "command",
        values.command,
        "",
        "What runs. Text goes to `sh -c`; an array is executed as it is.",
        {"anyOf": [_FILLED, {"type": "array", "items": _TEXT, "minItems": 1}]},
    ),
    Key(
        "pre-commit",
        "pre_commit",
        values.pre_commit,
        "false",
        "Instead of a command: run the hooks of the repository's own `.pre-commit-config.yaml` on "
        "the event's paths. `true`: all of them; an array: those ids.",
        {"anyOf": [{"type": "boolean"}, {**_TEXTS, "minItems": 1}]},
    ),
    Key(
        "runner",
        "runner",
        values.one_of("pre-commit", "prek"),
        '"pre-commit"',
        "The program that runs those hooks.",
        _enum("pre-commit", "prek"),
    ),
    Key(
        "working_dir",
        "working_dir",
        values.folder,
        '"."',
        "The folder that the command runs in, relative to the root. Paths are passed relative to "
        "it; patterns stay relative to the root.",
        _FILLED,
    ),
    Key(
        "env",
        "env",
        values.environment,
        "{}",
        "Environment variables set for the command.",
        {"type": "object", "additionalProperties": _TEXT},
    ),
    Key(
        "timeout",
        "timeout_s",
        values.duration,
        "300",
        'The most that the gate may take: seconds, or "30s", "2m", "1h30m". Then its whole process '
        "group is ended, and the gate is `timed-out`.",
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, _FILLED]},
    ),
    Key(
        "on_pass",
        "on_pass",
        values.action,
        '"CONTINUE"',
        "What a pass leads to: `CONTINUE`, `BLOCK`, `STOP`, or the name of a gate.",
        _FILLED,
    ),
    Key(
        "on_fail",
        "on_fail",
        values.action,
        '"BLOCK"',
        "What everything that is not a pass leads to: `CONTINUE` (a warning), `BLOCK`, `STOP`, or "
        "the name of a gate.",
        _FILLED,
    ),
    Key(
        "files",
        "files",
        values.patterns,
        "",
        "gitignore-style patterns. Where no path of the event matches, the gate is skipped. "
        "Missing: every path; an empty array: none.",
        _TEXTS,
    ),
    Key("exclude", "exclude", values.patterns, "[]", "Patterns of paths to leave out.", _TEXTS),
    Key(
        "pass_files",
        "pass_files",
        values.flag,
        "false",
        'Append the matching paths to the command, in a shell string as `"$@"`, in as many runs '
        "as the system's limit asks for.",
        {"type": "boolean"},
    ),
    Key(
        "pass_hook_input",
        "pass_hook_input",
        values.flag,
        "false",
        "Append the hook's own arguments to the command, and replay its standard input.",
        {"type": "boolean"},
    ),
    Key(
        "priority",
        "priority",
        values.one_of(*PRIORITIES),
        '"normal"',
        "Gates run by priority, then in the listed order.",
        _enum(*PRIORITIES),
    ),
    Key(
        "writes",
        "writes",
        values.flag,
        "false",
        "The gate changes files: it runs alone, and before a commit a change counts as a failure, "
        "so that it can be looked at and staged.",
        {"type": "boolean"},
    ),
    Key(
        "restage",
        "restage",
        values.flag,
        "false",
        "With `writes`: before a commit, what the gate changed in files that are wholly staged "
        "goes into the commit. A change of any other file still fails it.",
        {"type": "boolean"},
    ),
    Key(
        "required",
        "required",
        values.flag,
        "false",
        "Neither `SKIP`, `GITGATES_SKIP` nor `gitgates.local.toml` can take the gate away.",
        {"type": "boolean"},
    ),
    Key(
        "git_env",
        "git_env",
        values.one_of("auto", "commit", "clean"),
        '"auto"',
        "Which of git's own variables the gate gets. `auto`: none, but a private copy of the index "
        "where that is not the usual one (`commit -a`, `commit -- path`). `commit`: always that "
        "copy. `clean`: never.",
        _enum("auto", "commit", "clean"),
    ),
)

_TOOL_EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
_AGENT_EVENTS = tuple(name for name, point in HOOK_POINTS.items() if point.host == "claude")
_RETRY_EVENTS = ("Stop", "SubagentStop", "headless")

HOOK_KEYS: tuple[Key, ...] = (
    Key("gates", "gates", values.names, "[]", "The gates that run, by name.", _TEXTS),
    Key(
        "strategy",
        "strategy",
        values.one_of("sequence", "collect"),
        '"sequence"',
        "`sequence`: stop at the first gate that blocks. `collect`: run all, independent ones at "
        "once, and report every failure.",
        _enum("sequence", "collect"),
    ),
    Key(
        "unstaged",
        "unstaged",
        values.one_of("hide", "checkout", "keep"),
        "",
        "What gates see of what is not being committed or pushed. `hide` (the default before a "
        "commit): nothing; tracked files are as they are being committed, untracked ones stay. "
        "`checkout` (the default before a push): exactly what is being committed or pushed, in a "
        "private checkout. `keep`: the working tree as it is.",
        _enum("hide", "checkout", "keep"),
        ("pre-commit", "pre-merge-commit", "pre-push"),
    ),
    Key(
        "enabled_tools",
        "enabled_tools",
        values.names,
        "",
        "The agent's tools that the hook answers to. Missing: all; an empty array: none.",
        _TEXTS,
        _TOOL_EVENTS,
    ),
    Key(
        "enabled_agents",
        "enabled_agents",
        values.names,
        "",
        "The agents that the hook answers to. Missing: all; an empty array: none.",
        _TEXTS,
        _AGENT_EVENTS,
    ),
    Key(
        "max_retries",
        "max_retries",
        values.count,
        "3",
        "How often failures go back to the agent before it is let go.",
        {"type": "integer", "minimum": 0},
        _RETRY_EVENTS,
    ),
)


def hook_keys(hook: str) -> tuple[Key, ...]:
    """Return the keys that have a meaning in one hook."""
    return tuple(key for key in HOOK_KEYS if not key.only_in or hook in key.only_in)
