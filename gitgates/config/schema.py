"""Every key of the configuration as data: its parser, its default, its meaning.

The parser, the JSON Schema and the reference page are all made from this table.
"""

from __future__ import annotations

from gitgates.config import values
from gitgates.config.gate_keys import GATE_KEYS
from gitgates.config.key import FILLED, TEXTS, Key, enum
from gitgates.config.review_keys import REVIEW_KEYS
from gitgates.lifecycle import HOOK_POINTS
from gitgates.types import ACTIONS

__all__ = ["GATE_KEYS", "HOOK_KEYS", "REVIEW_KEYS", "TOP_KEYS", "Key", "hook_keys"]

# Names of built-in policies, of later ones too; a gate of the same name would be ambiguous.
POLICY_NAMES = ("review", "reviewer", "retry", "intents", "guard", "advice")
RESERVED_GATE_NAMES = (*ACTIONS, *POLICY_NAMES)

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
        "The log file holds more of it.",
        {"anyOf": [{"type": "integer", "minimum": 1}, FILLED]},
    ),
    Key(
        "max_log",
        "max_log_bytes",
        values.size,
        '"16 MiB"',
        "How much of a gate's output its log file holds: its head and its tail, half of this each; "
        "between them stands how much was left out.",
        {"anyOf": [{"type": "integer", "minimum": 1}, FILLED]},
    ),
    Key(
        "link",
        "link",
        values.names,
        '[".venv", "node_modules"]',
        "What git ignores and gates need all the same: linked into every private checkout, where "
        "the working tree has it.",
        TEXTS,
    ),
    Key(
        "breaker",
        "breaker",
        values.breaker,
        "{ prompt = 10, session = 30 }",
        "The most times that hooks of ours keep an agent from stopping, in one prompt and in one "
        "session, whatever else is configured. Then it is let go, and the person is told.",
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                name: {"type": "integer", "minimum": 1} for name in ("prompt", "session")
            },
        },
    ),
    Key(
        "keep_runs",
        "keep_runs",
        values.count,
        "50",
        "How many runs are kept in the state folder, with their logs and results.",
        {"type": "integer", "minimum": 0},
    ),
    Key(
        "artifacts_dir",
        "artifacts_dir",
        values.folder,
        "",
        "A folder inside the repository that results of runs are copied to, for CI to collect. "
        "Have git ignore it.",
        FILLED,
    ),
)

_TOOL_EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
_AGENT_EVENTS = tuple(name for name, point in HOOK_POINTS.items() if point.host == "claude")
_RETRY_EVENTS = ("Stop", "SubagentStop", "headless")

HOOK_KEYS: tuple[Key, ...] = (
    Key("gates", "gates", values.names, "[]", "The gates that run, by name.", TEXTS),
    Key(
        "strategy",
        "strategy",
        values.one_of("sequence", "collect"),
        '"sequence"',
        "`sequence`: stop at the first gate that blocks. `collect`: run all, independent ones at "
        "once, and report every failure.",
        enum("sequence", "collect"),
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
        enum("hide", "checkout", "keep"),
        ("pre-commit", "pre-merge-commit", "pre-push"),
    ),
    Key(
        "enabled_tools",
        "enabled_tools",
        values.names,
        "",
        "The agent's tools that the hook answers to. Missing: all; an empty array: none.",
        TEXTS,
        _TOOL_EVENTS,
    ),
    Key(
        "enabled_agents",
        "enabled_agents",
        values.names,
        "",
        "The agents that the hook answers to. Missing: all; an empty array: none.",
        TEXTS,
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
    Key(
        "on_exhausted",
        "on_exhausted",
        values.one_of("allow", "stop"),
        '"allow"',
        "What happens when that is used up. `allow`: the agent is let go, and the person is told. "
        "`stop`: the agent is stopped.",
        enum("allow", "stop"),
        _RETRY_EVENTS,
    ),
    Key(
        "timeout",
        "timeout_s",
        values.duration,
        "",
        "The most that all gates of the hook may take together. Gates that did not get their turn "
        "are reported as such. Missing: what the gates' own limits come to, or for an agent's "
        "other events than Stop, SubagentStop and PostToolUse, a few seconds.",
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, FILLED]},
        _AGENT_EVENTS,
    ),
)


def hook_keys(hook: str) -> tuple[Key, ...]:
    """Return the keys that have a meaning in one hook."""
    return tuple(key for key in HOOK_KEYS if not key.only_in or hook in key.only_in)
