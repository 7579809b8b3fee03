"""The keys of the built-in gate `review`."""

from __future__ import annotations

from gitgates.config import values
from gitgates.config.key import FILLED, TEXT, TEXTS, Key, enum

_BESIDE = "They are laid over the built-in ones: a pattern with `!` in front takes one out."
_NUMBER = {"type": "number", "minimum": 0}
_WEIGHTS = ("code", "tests", "documentation")

REVIEW_KEYS: tuple[Key, ...] = (
    Key(
        "mode",
        "mode",
        values.one_of("remind", "require", "off"),
        '"remind"',
        "`remind`: an agent that has changed much is kept from stopping until there is evidence "
        "of a review, or it says why none is needed. `require`: until an independent reviewer "
        "says COMPLETE of whatever has changed. `off`: never, unless a prompt asks for it.",
        enum("remind", "require", "off"),
    ),
    Key(
        "required",
        "required",
        values.flag,
        "false",
        "Neither `SKIP`, `GITGATES_SKIP` nor `gitgates.local.toml` can take the gate away or "
        "change these keys.",
        {"type": "boolean"},
    ),
    Key(
        "prefix",
        "prefix",
        values.prefix,
        '"#review"',
        "What a prompt begins with to ask for the strict form, whatever the mode; with `:stop` "
        "behind it, a prompt ends that. Empty: no prompt can.",
        TEXT,
    ),
    Key(
        "min_lines",
        "min_lines",
        values.amount,
        "40",
        "From how many weighted lines a change is significant.",
        _NUMBER,
    ),
    Key(
        "min_files",
        "min_files",
        values.amount,
        "5",
        "From how many weighted files a change is significant.",
        _NUMBER,
    ),
    Key(
        "weights",
        "weights",
        values.weights,
        "{ code = 1, tests = 0.5, documentation = 0.1 }",
        "How much a line, or a file, of each kind counts.",
        {
            "type": "object",
            "additionalProperties": False,
            "properties": dict.fromkeys(_WEIGHTS, _NUMBER),
        },
    ),
    Key("tests", "tests", values.patterns, "[]", f"Patterns of tests. {_BESIDE}", TEXTS),
    Key(
        "documentation",
        "documentation",
        values.patterns,
        "[]",
        f"Patterns of documentation, and of data that nobody reads line by line. {_BESIDE}",
        TEXTS,
    ),
    Key(
        "generated",
        "generated",
        values.patterns,
        "[]",
        "Patterns of files that nobody writes by hand: generated, vendored, lock files. They do "
        f"not count. {_BESIDE}",
        TEXTS,
    ),
    Key(
        "critical",
        "critical",
        values.patterns,
        "[]",
        "Patterns of files in which every change is significant.",
        TEXTS,
    ),
    Key("ignore", "ignore", values.patterns, "[]", "Patterns of files that never count.", TEXTS),
    Key(
        "skills",
        "skills",
        values.names,
        '["code-review", "review", "security-review"]',
        "Skills and typed commands that are a review, by name. A bare name means a plugin's of "
        "that name, too.",
        TEXTS,
    ),
    Key(
        "agents",
        "agents",
        values.names,
        '["code-reviewer", "reviewer"]',
        "Sub-agents whose end is a review, by type. A bare name means a plugin's, too.",
        TEXTS,
    ),
    Key(
        "reviewer",
        "reviewer",
        values.agent_name,
        '"reviewer"',
        "The type of the sub-agent whose decision counts in the strict form. It is held read-only "
        "there. A bare name means a plugin's, too.",
        FILLED,
    ),
    Key(
        "reviewer_model",
        "reviewer_model",
        values.agent_name,
        '"opus"',
        "The model that `gitgates install-hooks --agent claude` writes into that sub-agent.",
        FILLED,
    ),
    Key(
        "reviewer_commands",
        "reviewer_commands",
        values.names,
        '["git diff", "git log", "git show", "gitgates review", "gitgates journal"]',
        "How the shell commands begin that the reviewer may run.",
        TEXTS,
    ),
    Key(
        "second_opinions",
        "second_opinions",
        values.names,
        "[]",
        "Commands that `gitgates review opinions` asks, with the request and the change on their "
        "standard input, such as `codex exec -`.",
        TEXTS,
    ),
    Key(
        "opinion_timeout",
        "opinion_timeout_s",
        values.duration,
        "600",
        "The most that one of them may take.",
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, FILLED]},
    ),
)
