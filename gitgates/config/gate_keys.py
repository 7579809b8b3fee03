"""The keys of a gate."""

from __future__ import annotations

from gitgates.config import values
from gitgates.config.key import FILLED, TEXT, TEXTS, Key, enum
from gitgates.types import PRIORITIES

GATE_KEYS: tuple[Key, ...] = (
    Key(
        "description",
        "description",
        values.text,
        '""',
        "What the gate checks, for people and agents.",
        TEXT,
    ),
    Key(
        "command",
        "command",
        values.command,
        "",
        "What runs. Text goes to `sh -c`; an array is executed as it is.",
        {"anyOf": [FILLED, {"type": "array", "items": TEXT, "minItems": 1}]},
    ),
    Key(
        "pre-commit",
        "pre_commit",
        values.pre_commit,
        "false",
        "Instead of a command: run the hooks of the repository's own `.pre-commit-config.yaml` on "
        "the event's paths. `true`: all of them; an array: those ids.",
        {"anyOf": [{"type": "boolean"}, {**TEXTS, "minItems": 1}]},
    ),
    Key(
        "runner",
        "runner",
        values.one_of("pre-commit", "prek"),
        '"pre-commit"',
        "The program that runs those hooks.",
        enum("pre-commit", "prek"),
    ),
    Key(
        "working_dir",
        "working_dir",
        values.folder,
        '"."',
        "The folder that the command runs in, relative to the root. Paths are passed relative to "
        "it; patterns stay relative to the root.",
        FILLED,
    ),
    Key(
        "env",
        "env",
        values.environment,
        "{}",
        "Environment variables set for the command.",
        {"type": "object", "additionalProperties": TEXT},
    ),
    Key(
        "timeout",
        "timeout_s",
        values.duration,
        "300",
        'The most that the gate may take: seconds, or "30s", "2m", "1h30m". Then its whole process '
        "group is ended, and the gate is `timed-out`.",
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, FILLED]},
    ),
    Key(
        "on_pass",
        "on_pass",
        values.action,
        '"CONTINUE"',
        "What a pass leads to: `CONTINUE`, `BLOCK`, `STOP`, or the name of a gate.",
        FILLED,
    ),
    Key(
        "on_fail",
        "on_fail",
        values.action,
        '"BLOCK"',
        "What everything that is not a pass leads to: `CONTINUE` (a warning), `BLOCK`, `STOP`, or "
        "the name of a gate.",
        FILLED,
    ),
    Key(
        "files",
        "files",
        values.patterns,
        "",
        "gitignore-style patterns. Where no path of the event matches, the gate is skipped; for a "
        "gate that is given no paths, deleted ones match, too. Missing: every path; an empty "
        "array: none.",
        TEXTS,
    ),
    Key("exclude", "exclude", values.patterns, "[]", "Patterns of paths to leave out.", TEXTS),
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
        enum(*PRIORITIES),
    ),
    Key(
        "writes",
        "writes",
        values.flag,
        "false",
        "The gate changes files: it runs alone, and before a commit or a push a change counts as a "
        "failure, so that it can be looked at and staged. A gate that does not say so and changes "
        "the files that its hook is about fails.",
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
        enum("auto", "commit", "clean"),
    ),
    Key(
        "pass_env",
        "pass_env",
        values.names,
        "[]",
        "Names of variables that the gate gets all the same where an agent's hook runs it. By "
        "itself, such a gate gets none of the agent's own credentials.",
        TEXTS,
    ),
    Key(
        "failures",
        "failures",
        values.failures,
        "",
        "How the output is told apart into failures: `pytest`, `ruff`, `mypy`, `go-test`, `tsc`, "
        "`eslint`, `cargo`, or a regular expression that matches one failure each time it is "
        "found. Missing: the whole output is one failure.",
        FILLED,
    ),
    Key(
        "observe",
        "observe",
        values.flag,
        "false",
        "The gate runs and is recorded, and says what it would have done, but decides nothing.",
        {"type": "boolean"},
    ),
    Key(
        "baseline",
        "baseline",
        values.flag,
        "false",
        "In an agent's hooks: a failure that was there before the session does not count. At its "
        "first failure in a session the gate runs once more, on what there was when that began.",
        {"type": "boolean"},
    ),
)
