"""The page about the programs that the guard knows: those that start others, and agents."""

from __future__ import annotations

from typing import Any

from markdown_page import page, table

from gitgates.features.undo.answer import data
from gitgates.hosts import AGENTS, agent_host
from gitgates.shell.starters import COMMANDS, STARTERS, Starter
from gitgates.shell.syntax import SHELLS


def guard_page() -> str:
    """Return the page about what the guard follows."""
    return page(
        "What the guard follows",
        "`gitgates/shell/starters.py`, `gitgates/hosts/` and "
        "`gitgates/features/undo/destructive.toml`",
        "[The guard](../how-to/guard.md) parses a command as a shell does, and also checks the "
        "command that a program in these tables starts. It does not see what other programs "
        "start.",
        "## Programs that start a command",
        "The started command is checked as if it were run directly. In addition, the guard parses "
        f"scripts of {_named(SHELLS)} in `-c`, on standard input (also from `echo`, `printf` and "
        "`cat`) and in `<(…)`, and the commands of `eval`, `trap`, `alias`, `source <(…)` and "
        "`find -exec`.",
        _table(STARTERS),
        "## Agents that do not ask for permission",
        "The rule `nested_agent` applies if one of these is started with one of these options, "
        "also through `npx`, `bunx`, `uvx` or `pipx run`.",
        table(
            ("agent", "programs and packages", "options"),
            (
                (host.TITLE, _named(host.PROGRAMS), _named(host.AUTO_APPROVE_OPTIONS))
                for host in map(agent_host, AGENTS)
            ),
        ),
        "## Commands that cannot come back",
        "The rule `destructive` applies to these. Options may stand between the words; a pattern "
        "is looked for in each word, and in what the program reads.",
        table(("programs", "command", "but not with", "destroys"), map(_destructive_row, _ROWS)),
    )


_ROWS = data()["command"]


def _destructive_row(row: dict[str, Any]) -> tuple[str, ...]:
    command = _named(tuple(" ".join(words) for words in row.get("words", ())))
    options, pattern = row.get("options", ()), row.get("text", "")
    parts = (
        command,
        f"with {_named(tuple(options))}" if options else "",
        f"`{pattern}`" if len(pattern) > 1 and pattern != "(?i)." else "",
        "forced, or deleting the default branch" if row.get("default_branch") else "",
    )
    programs = _named(tuple(row["programs"]))
    what = " ".join(part for part in parts if part)
    return programs, what, _named(tuple(row.get("without", ()))), row["what"]


def _table(rows: tuple[Starter, ...]) -> str:
    return table(
        ("program", "command that it starts", "options with a value"),
        (
            (_programs(row), _command(row), _named(tuple(f"-{x}" for x in row.valued)))
            for row in rows
        ),
    )


def _programs(row: Starter) -> str:
    return _named(
        tuple(f"{name} {verb}" for name in row.names.split() for verb in row.verbs)
        or tuple(row.names.split())
    )


def _command(row: Starter) -> str:
    texts = f"the value of {_named(row.texts)}, as a shell command line" if row.texts else ""
    usual = COMMANDS[row.command]
    if row.before and usual:
        usual += f" and {row.before} more word"
    if row.assigns:
        usual += "; `NAME=value` before it sets its environment"
    return "; else ".join(one for one in (texts, usual) if one)


def _named(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)
