"""Write docs/reference/ from the code: `make docs`. tests/test_docs.py fails if it is outdated.

`pages` are in the repository; `site_only_pages` are made when `make site` builds the site.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from gitgates.config import FILES, keys
from gitgates.config.keys import tables
from gitgates.core import environ, errors, limits
from gitgates.core.lifecycle import (
    GIT_HOOKS,
    HOOK_OF,
    HOOK_POINTS,
    RETRIED,
    STANDS_IN_FOR,
    HookPoint,
)
from gitgates.core.parts import feature_parts
from gitgates.features.headless.tasks import TASK_KEYS
from gitgates.hosts import AGENTS, DEFAULT_AGENT, agent_host
from gitgates.report import result

_HERE = Path(__file__).resolve().parent
# The table of what works in each agent is that of the tests, which verify it.
sys.path += [str(_HERE), str(_HERE.parent / "tests/client")]

from commands_page import commands_pages  # noqa: E402 - from there
from guard_page import guard_page  # noqa: E402 - from there
from hosts_page import answers_page, hosts_page  # noqa: E402 - from there
from journal_page import journal_page  # noqa: E402 - from there
from markdown_page import page, table  # noqa: E402 - from there

REFERENCE = _HERE / "reference"
MEASURED = "benchmarks.md"  # by `make bench-docs`

_SCOPES = {
    "staged": "what the commit adds, copies, modifies or renames",
    "message": "the message file",
    "pushed": "what the pushed commits change and the remote does not have, for every ref",
    "two-commits": "what the checkout of another commit changed",
    "head": "what the newest commit changes against its first parent",
    "merged": "what the merge changed",
    "caller": "what the options select; by default, all changes relative to HEAD, also untracked",
    "none": "none",
}


def pages() -> dict[str, str]:
    """Return file name → text of every page."""
    return {
        "configuration.md": _configuration(),
        "hooks.md": _hooks(),
        "tasks.md": _tasks(),
        "hosts.md": hosts_page(),
        "result-json.md": _result_json(),
        "environment.md": _environment(),
        "exit-statuses.md": _exit_statuses(),
    }


def site_only_pages() -> dict[str, str]:
    """Return file name → text of every page that only the site has."""
    return {
        **commands_pages(),
        "guard.md": guard_page(),
        "agent-answers.md": answers_page(),
        "journal.md": journal_page(),
    }


def _configuration() -> str:
    pyproject, own, local = FILES
    return page(
        "Configuration",
        "`gitgates/config/keys.py`",
        f"The configuration is in `[tool.gitgates]` of `{pyproject}`, or in `{own}` with the same "
        f"keys and no prefix; having both is an error. `{local}` in the same folder overrides it, "
        "key by key, and is not committed: the verbs add it to `.git/info/exclude`. "
        "`gitgates check` validates the configuration, and `gitgates schema` prints its JSON "
        "Schema.",
        "A gate may have any name without commas, except "
        + ", ".join(f"`{name}`" for name in keys.RESERVED_GATE_NAMES)
        + ". A string with `s`, `m` and `h` is a duration (`1h30m`); one with `KiB`, `MiB`, `kB` "
        "or `MB` is a size.",
        f"A settings file may have at most {limits.LONGEST >> 10} KiB, keys of at most "
        f"{limits.MOST_PARTS} parts, and {limits.DEEPEST} levels of nesting; a larger one is "
        "refused before it is parsed.",
        "## `[tool.gitgates]`",
        _keys(keys.TOP_KEYS),
        "## `[tool.gitgates.gates.NAME]`",
        "A gate: a command, its limits, and what its result leads to.",
        _keys(keys.GATE_KEYS),
        "## `[tool.gitgates.hooks.HOOK]`",
        "The gates that run at a hook. [All hooks](hooks.md).",
        _keys(keys.HOOK_KEYS),
        *(
            text
            for name, one in tables().items()
            for text in (
                f"## `[[tool.gitgates.{name}]]`" if one.id_of else f"## `[tool.gitgates.{name}]`",
                one.meaning,
                _keys(one.keys),
            )
        ),
    )


def _tasks() -> str:
    return page(
        "Tasks of a queue",
        "`gitgates/features/headless/tasks.py`",
        "The keys of each `[[tasks]]` in the file that `gitgates headless --tasks FILE` reads. "
        "[How to use it](../how-to/headless.md#do-many-tasks). For a key that a task does not set, "
        "the option of the command applies, and otherwise the configuration.",
        _keys(TASK_KEYS),
    )


def _keys(rows_of: tuple[keys.Key, ...]) -> str:
    rows = (
        (
            f"`{key.name}`",
            _type(key.type.json),
            f"`{key.default}`" if key.default else "",
            _meaning(key),
        )
        for key in rows_of
    )
    return table(("key", "value", "default", "meaning"), rows)


def _meaning(key: keys.Key) -> str:
    if not key.only_in:
        return key.description
    if set(key.only_in) == {point.name for point in HOOK_POINTS.values() if point.host == "agent"}:
        return f"{key.description} Only for an agent's hooks."
    return f"{key.description} Only for {', '.join(key.only_in)}."


def _type(json: object) -> str:
    """Describe in words the values that a JSON Schema of ours accepts."""
    match json:
        case {"enum": [*words]}:
            return ", ".join(f"`{word}`" for word in words)
        case {"anyOf": [*choices]}:
            return " or ".join(_type(choice) for choice in choices)
        case {"type": "array"}:
            return "array of strings"
        case {"type": "object", "properties": dict(values)}:
            kinds = {_type(value) for value in values.values()}
            numbers = ({"number"}, {"whole number"})
            return f"table of {kinds.pop()}s" if kinds in numbers else "table"
        case {"type": "object", **more}:
            entry = (
                "tables" if "propertyNames" in more else f"{_type(more['additionalProperties'])}s"
            )
            return f"table of {entry}"
        case {"type": "string", "description": str(words)} | {"format": str(words)}:
            return words
        case {"type": [*kinds]}:
            return " or ".join(_type({"type": kind}) for kind in kinds)
        case {"type": str(kind)}:
            words_of = {"boolean": "true or false", "integer": "whole number"}
            return words_of.get(kind, kind)
        case _:
            raise ValueError(f"no words for {json}")


def _hooks() -> str:
    head = ("hook", "paths", "standard input", "pre-commit framework", "install-hooks")
    instead = (
        f"`{hook}` without gates of its own runs those of `{other}`."
        for hook, other in STANDS_IN_FOR.items()
    )
    return page(
        "Hooks",
        "`gitgates/core/lifecycle.py`",
        "Every hook that `[tool.gitgates.hooks.HOOK]` may name. A gate with `files`, `exclude`, "
        "`pass_files` or `pre-commit` applies to the paths in the second column, and is skipped "
        "if none matches; any other gate always runs. "
        "[How the paths are chosen](../explanation/paths.md).",
        "## Of git",
        table(head, (_hook_row(point) for point in GIT_HOOKS)),
        " ".join(instead) + " Symlinks and submodules are never among the paths.",
        "## Of people and programs",
        table(
            ("hook", "runs", "paths"),
            (
                (
                    "`headless`",
                    "in `gitgates headless`, after each turn of the agent",
                    "what the run has changed in the working tree",
                ),
                ("`manual`", "in `gitgates run` without the name of a hook", _SCOPES["caller"]),
            ),
        ),
        "`gitgates run headless` runs the gates of `headless` on the paths of `manual`. "
        "[How a headless run works](../how-to/headless.md), and which gates run if it has none.",
        "## Of coding agents",
        "What each event of Claude Code allows. A verdict that an event cannot express is "
        "downgraded to the next lower one, with a message. "
        "[How they are handled](../how-to/agent-hooks.md).",
        table(
            ("hook", "paths", "can block", "can stop the agent", "can pass text to the agent"),
            (_agent_row(p.name) for p in HOOK_POINTS.values() if p.host == "agent"),
        ),
    )


def _variables() -> list[tuple[str, str, str]]:
    """Return the variables of all agents that gitgates reads."""
    return [one for agent in AGENTS for one in agent_host(agent).ENVIRONMENT.documented]


def _agent_row(event: str) -> tuple[str, ...]:
    _kind, has = agent_host(DEFAULT_AGENT).PROTOCOL.events[event]
    paths = {
        "PreToolUse": "the file that the tool names",
        "PostToolUse": "the file that the tool names",
        "PostToolUseFailure": "the file that the tool names",
        "PostToolBatch": "the files that the tools of the step have written",
        **{HOOK_OF[kind]: "what the session changed" for kind in RETRIED},
    }
    return (
        f"`{event}`",
        paths.get(event, ""),
        _yes(has.block or has.deny),
        _yes(has.stop),
        _yes(has.context),
    )


def _hook_row(point: HookPoint) -> tuple[str, ...]:
    return (
        f"`{point.name}`",
        _SCOPES[point.scope],
        _yes(point.reads_stdin),
        f"`gitgates-{point.name}`" if point.framework else "",
        _yes(point.client),
    )


def _yes(fact: bool) -> str:  # noqa: FBT001 - one cell
    return "yes" if fact else ""


def _result_json() -> str:
    objects = (
        ("## A run", result.RUN),
        ("## `quality_gates`", result.CYCLE),
        ("## Each of `attempts`", result.ATTEMPT),
        ("## Each of `results`", result.RESULT),
        ("## Each of `failures`", result.FAILURE),
    )
    tables = (part for head, fields in objects for part in (head, _fields(fields)))
    outcomes = ((f"`{o}`", f"`{s}`", m) for o, (s, m) in result.OUTCOMES.items())
    return page(
        "result.json",
        "`gitgates/report/result.py`",
        "The results of a run, in `<git-dir>/gitgates/runs/<execution_id>/`, next to the same as "
        "Markdown (`summary.md`) and the output of the gates (`logs/`). `gitgates runs show latest "
        "--format json` prints the newest. `gitgates run --format json` prints one object: the "
        "fields of the run before `outcome`, those of its only attempt, and `exit_status`. "
        "`version` changes when a field is removed or changes its meaning; new fields may be "
        "added. Fields marked with * are left out if they are empty or do not apply. "
        "[How to read runs](../how-to/read-runs.md).",
        *tables,
        "## Outcomes",
        "The `verdict` of an attempt. The `outcome` of the run is the verdict of the last attempt.",
        table(("verdict", "final_status", "meaning"), outcomes),
    )


def _fields(fields: result.Fields) -> str:
    rows = (
        (f"`{name.rstrip('*')}`{'*' * name.count('*')}", kind, meaning)
        for name, (kind, meaning) in fields.items()
    )
    return table(("field", "value", "meaning"), rows)


def _environment() -> str:
    of_features = (row for module in feature_parts("environ") for row in module.NAMES)
    rows = [(f"`{name}`", by, meaning) for name, by, meaning in (*environ.NAMES, *of_features)]
    of_agents: dict[str, list[str]] = {}
    for name, _agent, meaning in _variables():
        of_agents.setdefault(meaning, []).append(f"`{name}`")
    rows += [(", ".join(names), "agents", meaning) for meaning, names in of_agents.items()]
    return page(
        "Environment",
        "`gitgates/core/environ.py` and `environ.py` of each feature",
        "Every variable that gitgates reads or sets. For the variables that gates get, see "
        "[The environment of gates](../explanation/git-environment.md).",
        table(("name", "set by", "meaning"), rows),
    )


def _exit_statuses() -> str:
    rows = ((str(status), meaning) for status, meaning in errors.EXIT_STATUSES)
    return page(
        "Exit statuses",
        "`gitgates/core/errors.py`",
        "The same for every command. The exit status of a gate is shown, and never becomes that "
        "of gitgates: for git, any status except 0 blocks, and for a coding agent, 2 has a meaning "
        "of its own.",
        table(("status", "meaning"), rows),
    )


def main() -> None:
    """Write every page, and remove outdated ones; with `--site FOLDER`, those of the site."""
    if sys.argv[1:2] == ["--site"]:
        shutil.rmtree(sys.argv[2], ignore_errors=True)
        _write(Path(sys.argv[2]), site_only_pages())
        return
    made = pages()
    _write(REFERENCE, made)
    for path in REFERENCE.glob("*.md"):
        if path.name not in (*made, MEASURED):
            path.unlink()


def _write(folder: Path, made: dict[str, str]) -> None:
    for name, text in made.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
