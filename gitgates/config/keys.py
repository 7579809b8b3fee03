"""Keys of the configuration as data: type, default, meaning, and which change makes it weaker.

The parser, the JSON Schema, the reference page and the comparison of two configurations are all
made from these tables and those in `keys.py` of features. `Gate`, `Hook` and `Config` in `types.py`
repeat the defaults, because hooks make such records without these tables; a test holds them equal.
"""

from __future__ import annotations

import functools

from gitgates.config import values as v
from gitgates.config.requires import REQUIRES
from gitgates.core.lifecycle import (
    AGENT_HOOKS,
    ENDING_HOOKS,
    GATES_OWN_TIME,
    HOOK_OF,
    RETRY_HOOKS,
    TOOL_EVENTS,
)
from gitgates.core.limits import parse_toml
from gitgates.core.parts import feature_parts
from gitgates.core.policy import POLICIES
from gitgates.core.record import Record
from gitgates.core.types import ACTIONS, PRIORITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from gitgates.core.types import Config, Problem

# Built-in policies, present and future: a gate of the same name would be ambiguous.
POLICY_NAMES = (*(row.name for row in POLICIES if "reserved" in row.traits), "retry")
RESERVED_GATE_NAMES = (*ACTIONS, *POLICY_NAMES)

_AGENT_EVENTS = tuple(point.name for point in AGENT_HOOKS)
_TOOL_EVENTS = tuple(HOOK_OF[kind] for kind in (*TOOL_EVENTS, "after-batch"))
_SLOW_EVENTS = ", ".join(HOOK_OF[kind] for kind in GATES_OWN_TIME)


class Key(Record):
    """One key: the type of its value, its default, what it means, where it is allowed."""

    name: str  # in TOML
    type: v.ValueType
    default: str = ""  # in TOML; empty: none
    # Which change makes checks weaker. any: every change. off, on: of a flag. more, fewer: entries
    # of a list. less, greater: a number; each: one of several becomes less. sharply: to less than
    # half of a limit. action: by ACTIONS. Words: to one of them, from a later one or another value.
    weaker: str | tuple[str | bool, ...] = ""
    only_in: tuple[str, ...] = ()  # the hooks that it applies to; (): all
    description: str = ""  # for the documentation and the schema
    missing: object = None  # what the field holds if neither a value nor a default is given

    def meaning(self, description: str) -> Key:
        """Return the key with its description."""
        return self._replace(description=description)

    @property
    def field(self) -> str:
        """Name the record's field that holds the value."""
        return self.name.replace("-", "_") + self.type.unit

    def value(self) -> Any:  # noqa: ANN401 - of any type
        """Return the field's value if the settings do not have the key."""
        if not self.default:
            return self.missing
        return self.type.parse(parse_toml(f"value = {self.default}")["value"])


class Table(Record):
    """A feature's table, such as `[tool.gitgates.guard]`: `TABLE` in `keys.py` of its folder."""

    name: str  # of the table, and of the folder
    keys: tuple[Key, ...]
    meaning: str
    example: str  # what to write instead of a value that is not a table
    # Finds conflicts between its keys, or with the rest; gets the `Settings` of read.py, which have
    # the locations.
    validate: Callable[[Config, Any], Iterable[Problem]] | None = None
    # For an array of tables: what returns an entry's id, or nothing; the keys that each entry must
    # have; additions to its JSON Schema.
    id_of: Callable[[Mapping[str, Any]], str] | None = None
    needed: tuple[str, ...] = ()
    schema: Mapping[str, Any] = {}


TOP_KEYS: tuple[Key, ...] = (
    Key("requires", REQUIRES, missing="").meaning(
        'The gitgates versions that accept these settings: `">=0.2"`, or several comparisons '
        "(`>=`, `>`, `<`, `<=`, `==`, `!=`), separated by commas. Other versions refuse them."
    ),
    Key("root", v.FLAG, "true").meaning(
        "`false` in a member's settings; the root names its folder in `members`."
    ),
    Key("members", v.MEMBERS, "[]", weaker="fewer").meaning(
        'Folders with their own settings, whose gates run for the paths below them: `["web", '
        '"packages/*"]`. [How](../how-to/monorepo.md).'
    ),
    Key("extends", v.EXTENDS, "[]").meaning(
        "Files whose settings these extend, relative to this file. A later file overrides an "
        "earlier one, and this file overrides them all, key by key."
    ),
    Key("jobs", v.COUNT, "0").meaning(
        "How many gates run at once with the strategy `collect`; 0: one per CPU."
    ),
    Key("resources", v.RESOURCE_COUNTS, "{}").meaning(
        "How many gates may use a resource at once: `{ db = 2 }`. For all others: one."
    ),
    Key("max_output", v.SIZE, '"64 KiB"').meaning(
        "How much of a gate's output is kept and shown: half from its start, half from its end."
    ),
    Key("max_log", v.SIZE, '"16 MiB"').meaning(
        "How much of a gate's output its log file contains."
    ),
    Key("breaker", v.BREAKER, "{ prompt = 10, session = 30 }", weaker="each").meaning(
        "How often gitgates blocks an agent from stopping, per prompt and per session. After "
        "that, the agent may stop, and the person is told."
    ),
    Key("keep_runs", v.COUNT, "50").meaning("How many runs are kept, with their logs and results."),
    Key("artifacts_dir", v.FOLDER, weaker="any").meaning(
        "A folder in the repository to which results of runs are copied, for CI. Add it to "
        ".gitignore."
    ),
    Key("cloud_hooks", v.FLAG, "false", weaker="off").meaning(
        "Install the git hooks when a session begins in Claude Code's cloud, where each "
        "clone is new."
    ),
)

GATE_KEYS: tuple[Key, ...] = (
    Key("description", v.TEXT, '""').meaning("What the gate checks, for people and agents."),
    Key("command", v.COMMAND, weaker="any").meaning(
        "The command. A string is run by `sh -c`; an array is executed directly."
    ),
    Key("pre-commit", v.PRE_COMMIT, "false", weaker="any").meaning(
        "Instead of a command: run the hooks in the repository's `.pre-commit-config.yaml` on "
        "the event's paths. `true`: all hooks; an array: the hooks with these ids."
    ),
    Key("runner", v.one_of("pre-commit", "prek"), '"pre-commit"', weaker="any").meaning(
        "The program that runs those hooks."
    ),
    Key("working_dir", v.FOLDER, '"."', weaker="any").meaning(
        "The command's working directory, relative to the root. Paths are passed relative to "
        "it; patterns stay relative to the root."
    ),
    Key("env", v.ENVIRONMENT, "{}", weaker="any").meaning(
        "Environment variables set for the command."
    ),
    Key("timeout", v.DURATION, "300", weaker="sharply").meaning(
        'The gate\'s time limit: seconds, or "30s", "2m", "1h30m". After that, its process '
        "group is killed."
    ),
    Key("on_pass", v.ACTION, '"CONTINUE"', weaker="action").meaning(
        "What happens if the gate passes: `CONTINUE`, `BLOCK`, `STOP`, or the name of a gate."
    ),
    Key("on_fail", v.ACTION, '"BLOCK"', weaker="action").meaning(
        "What happens if it does not pass: `CONTINUE` (a warning), `BLOCK`, `STOP`, or "
        "the name of a gate."
    ),
    Key("files", v.PATTERNS, weaker="fewer").meaning(
        "gitignore-style patterns. If no path matches, the gate is skipped; without "
        "`pass_files`, deleted paths also match. Unset: every path; an empty array: none."
    ),
    Key("exclude", v.PATTERNS, "[]", weaker="more").meaning("Patterns of paths to exclude."),
    Key("types", v.TAGS, "[]", weaker="any").meaning(
        'File types as in the pre-commit framework: `["python"]`, `["text", "!executable"]`. A '
        "file must have all of them, and none with `!`."
    ),
    Key("types_or", v.ANY_TAGS, "[]", weaker="any").meaning(
        "File types; a file must have one of them."
    ),
    Key("pass_files", v.FLAG, "false", weaker="any").meaning(
        'Append the matching paths to the command (in a shell string, as `"$@"`). If there are '
        "too many, the command runs several times."
    ),
    Key("pass_hook_input", v.FLAG, "false").meaning(
        "Append the hook's own arguments to the command, and replay its standard input."
    ),
    Key("priority", v.one_of(*PRIORITIES), '"normal"').meaning(
        "Gates run by priority, then in the listed order."
    ),
    Key("after", v.NAMES, "[]").meaning(
        "Gates that must end first, if the hook runs them at all, however they end."
    ),
    Key("weight", v.FROM_ONE, "1").meaning(
        "How many `jobs` slots the gate takes: for a gate that uses several CPUs or much memory."
    ),
    Key("parallel", v.FLAG, "false", weaker="on").meaning(
        "With `pass_files`: split the paths into several runs at once. Only for commands "
        "that check each file on its own."
    ),
    Key("writes", v.FLAG, "false").meaning(
        "The gate changes files: it runs alone, and before a commit or a push, changes count "
        "as a failure, so that they can be reviewed and staged. A gate without this key that "
        "changes its event's files fails."
    ),
    Key("restage", v.FLAG, "false").meaning(
        "With `writes`: before a commit, the gate's changes in staged files go into the "
        "commit, also in partly staged files. If they conflict with your version, or if it "
        "changed any other file, the gate fails."
    ),
    Key("required", v.FLAG, "false", weaker="off").meaning(
        "Neither `--skip`, `SKIP`, `GITGATES_SKIP` nor `gitgates.local.toml` can disable the gate."
    ),
    Key("git_env", v.one_of("auto", "commit", "clean"), '"auto"').meaning(
        "Which of git's variables the gate gets. `auto`: none, except a private copy of the "
        "index if git commits another one than usual (`commit -a`, `commit -- path`). "
        "`commit`: always that copy. `clean`: never."
    ),
    Key("pass_env", v.NAMES, "[]").meaning(
        "Variables to pass to the gate when an agent's hook runs it. By default, it gets "
        "none of the agent's credentials."
    ),
    Key("failures", v.FAILURES).meaning(
        "How the output is split into failures: a preset, such as `pytest`, `ruff`, `eslint` "
        "or `sarif`, or a regular expression whose every match is a failure. Unset: the "
        "whole output is one failure. [All presets](../explanation/failures.md)."
    ),
    Key("observe", v.FLAG, "false", weaker="on").meaning(
        "The gate runs, is recorded, and reports its decision, but never blocks."
    ),
    Key("baseline", v.BASELINE, "false", weaker=(True, "file")).meaning(
        "Known failures do not count: those at the merge base with the default branch or "
        "with `--from-ref`, at an agent's stop those at the session's start, and those in "
        "`.gitgates-baseline.json`. If the result there is not recorded, a gate that fails "
        'also runs there. Needs `failures`. `"file"`: only those in that file. '
        "[How](../how-to/baseline.md)."
    ),
    Key("metrics", v.METRICS, "{}", weaker="fewer").meaning(
        "Numbers in the output, by name: `pattern`, a regular expression with one group, and "
        '`better`, `"higher"` or `"lower"`. The last match in the kept output (`max_output`) '
        "counts."
    ),
    Key("ratchet", v.RATCHET, "false", weaker=(False, True)).meaning(
        "The gate fails if one of its `metrics` is worse than recorded for the merge base "
        "with the default branch, or is no longer in the output. If none was recorded, "
        'nothing is compared, which is not a pass. With `"measure"`, the gate then also runs '
        "once on the merge base."
    ),
    Key("tolerance", v.AMOUNT, "0", weaker="greater").meaning(
        "With `ratchet`: by how much a number may be worse, in its own unit."
    ),
    Key("terminal", v.FLAG, "false", weaker="on").meaning(
        "In a headless run: if the gate does not pass, the run ends immediately."
    ),
    Key("reuse", v.REUSE, weaker=("declared", "by-file", True), missing=False).meaning(
        "Reuse a pass while everything that the gate has read is unchanged, as seen by "
        'strace on Linux. `"declared"`: if it cannot be observed, what is declared counts. '
        '`"by-file"`, with `pass_files`: only files without a pass are passed. '
        "[How](../how-to/reuse.md)."
    ),
    Key("scratch", v.SCRATCH, "[]", weaker="more").meaning(
        "With `reuse`: patterns of files that the gate writes and reads, but that do not affect "
        'its result: `[".coverage"]`, or `["~/.npm/_logs"]` in the home folder.'
    ),
    Key("inputs", v.PATTERNS, "[]", weaker="any").meaning(
        "Patterns of the files that the gate depends on, instead of all files that git does "
        'not ignore: with `reuse = "declared"`, with `remote`, and in signed passes. Lock '
        "files in the root always count."
    ),
    Key("env_inputs", v.NAMES, "[]", weaker="fewer").meaning(
        'With `reuse = "declared"` and `remote`: variables that the gate depends on, and '
        "gets on another machine. `NAME*` means every variable that begins with NAME."
    ),
    Key("reads", v.NAMES, "[]", weaker="fewer").meaning(
        'With `reuse = "declared"`: files or folders outside the repository that the gate '
        "reads: `/path`, `~/path`, or `../name` for a file of that name in any folder above "
        "the root."
    ),
    Key("examples", v.EXAMPLES, weaker="fewer", missing=()).meaning(
        "For `gitgates test`: files or folders on which the gate must fail (`fail`) or pass "
        "(`pass`). [How](../how-to/test-a-gate.md)."
    ),
    Key("max_age", v.DURATION, weaker="greater", missing=0.0).meaning(
        "With `reuse`: the maximum age of a pass that is reused. Unset: any."
    ),
    Key("resources", v.NAMES, "[]").meaning(
        'What the gate needs for itself on this machine: `["db", "port:5432"]`. Gates that name '
        "the same resource take turns, across repositories and worktrees. "
        "[How](../how-to/parallel.md#ports-and-databases)."
    ),
    Key("retry", v.COUNT, weaker="greater").meaning(
        "How often a gate that fails runs again on the same content. If it passes "
        "then, it is `flaky`: a warning, and no pass that is reused. Unset: 0. "
        "[How](../how-to/add-a-gate.md#a-flaky-gate)."
    ),
    Key("quarantine_until", v.DAY, weaker="greater", missing="").meaning(
        "The last day on which the gate's failures only warn: `2027-01-31`, without quotes. "
        "After that, they block again."
    ),
    Key("remote", v.FLAG, "false", weaker="on").meaning(
        "The gate may run on the server of `[tool.gitgates.remote]`, without a repository. "
        "[How](../how-to/remote-execution.md)."
    ),
    Key("ignored_inputs", v.NAMES, "[]", weaker="any").meaning(
        "With `remote`: files and folders that git ignores and the gate needs, relative to the "
        'root: `["node_modules"]`. They are sent too, without `__pycache__` and `.git`.'
    ),
    Key("outputs", v.NAMES, "[]").meaning(
        "With `remote`: files and folders that the gate writes and that are brought back, "
        "relative to the root."
    ),
    Key("image", v.TEXT, '""', weaker="any").meaning(
        "With `remote`: the container image in which the gate runs there: "
        "`docker://NAME@sha256:DIGEST`. It is sent as the platform property `container-image`."
    ),
)

HOOK_KEYS: tuple[Key, ...] = (
    Key("gates", v.NAMES, "[]", weaker="fewer").meaning("The gates that run, by name."),
    # Gates after a blocking gate don't run with `sequence`.
    Key("strategy", v.one_of("sequence", "collect"), '"sequence"', weaker=("sequence",)).meaning(
        "`sequence`: stop at the first gate that blocks. `collect`: run all, independent "
        "ones at once, and report every failure; the default of `headless`."
    ),
    Key("fail_fast", v.FLAG, "false", weaker="on").meaning(
        "With `collect`: the first gate that blocks cancels the others."
    ),
    Key(
        "unstaged",
        v.one_of("hide", "checkout", "keep"),
        weaker="any",
        only_in=("pre-commit", "pre-merge-commit", "pre-push"),
    ).meaning(
        "What happens to unstaged changes while gates run. `hide` (the default before a "
        "commit): they are moved aside; untracked files stay. `checkout` (the default before "
        "a push): gates run on exactly what is being committed or pushed, in a private "
        "checkout. `keep`: gates see the working tree unchanged."
    ),
    Key("verify", v.FLAG, "false", weaker="off", only_in=("pre-push",)).meaning(
        "Each pushed commit must have passed the gates of its own `pre-commit` or "
        "`pre-merge-commit` hook. Missing gates run on exactly that commit."
    ),
    Key("enabled_tools", v.SELECTED, weaker="fewer", only_in=_TOOL_EVENTS).meaning(
        "The agent's tools that the hook applies to. Unset: all; an empty array: none."
    ),
    Key("enabled_agents", v.SELECTED, weaker="fewer", only_in=_AGENT_EVENTS).meaning(
        "The agents that the hook applies to. Unset: all; an empty array: none."
    ),
    Key("max_retries", v.COUNT, "3", weaker="less", only_in=RETRY_HOOKS).meaning(
        "How often failures go back to the agent before it may stop, or a headless run fails."
    ),
    Key(
        "on_exhausted",
        v.one_of("allow", "stop"),
        '"allow"',
        weaker=("allow",),
        only_in=ENDING_HOOKS,  # a headless run ends then
    ).meaning(
        "What happens after the last retry. `allow`: the agent may stop, and the person is "
        "told. `stop`: the agent is stopped."
    ),
    Key("timeout", v.DURATION, weaker="sharply", only_in=_AGENT_EVENTS).meaning(
        "The time limit for all of the hook's gates together. Unset: the sum of the gates' own "
        f"limits; for agent events other than {_SLOW_EVENTS}, a few seconds."
    ),
)


def hook_keys(hook: str) -> tuple[Key, ...]:
    """Return the keys that apply to one hook."""
    return tuple(key for key in HOOK_KEYS if not key.only_in or hook in key.only_in)


@functools.cache
def tables() -> dict[str, Table]:
    """Return features' tables by name: `TABLE` in `keys.py` of their folders."""
    return {module.TABLE.name: module.TABLE for module in feature_parts("keys")}


@functools.cache
def defaults(name: str) -> Mapping[str, Any]:
    """Return field → value for an empty table, or an empty entry of an array."""
    return {key.field: key.value() for key in tables()[name].keys}


def completed(name: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table's fields, without unknown ones, and with defaults for missing ones."""
    return {field: fields.get(field, value) for field, value in defaults(name).items()}


def foreign_key(name: str) -> str:
    """Return what to write instead of another tool's key; empty if no other tool has it."""
    # Cold: only a configuration with a mistake needs this.
    import os
    import tomllib

    with open(os.path.join(os.path.dirname(__file__), "foreign_keys.toml"), "rb") as file:
        hints = tomllib.load(file)
    return next((hint for hint, keys in hints.items() if name.replace("-", "_") in keys), "")
