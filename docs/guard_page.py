"""The page about what the guard follows: programs that start others, and agents by their names."""

from __future__ import annotations

from markdown_page import page, table

from gitgates.hosts import AGENTS, agent_host
from gitgates.shell.starters import COMMANDS, STARTERS, Starter
from gitgates.shell.syntax import SHELLS


def guard_page() -> str:
    """Return the page about what the guard follows."""
    return page(
        "What the guard follows",
        "`gitgates/shell/starters.py` and `gitgates/hosts/`",
        "[The guard](../how-to/guard.md) reads a command as a shell does, and follows programs "
        "that start another one. What is in no table here starts nothing that it sees.",
        "## Programs that start a command",
        "What such a command does is judged as if it stood alone. "
        f"Beside these, scripts of {_named(SHELLS)} in `-c`, in standard input (also by `echo`, "
        "`printf` and `cat`) and in `<(…)`, `eval`, `trap`, `alias`, `source <(…)` and "
        "`find -exec` are read.",
        _table([row for row in STARTERS if not row.elsewhere]),
        "## Programs that start it in another file system",
        "Whether that has this repository in it is not known. Where the command would be refused "
        "or asked about here, the rule `unreadable` answers; else nothing is said.",
        _table([row for row in STARTERS if row.elsewhere]),
        "## Agents that ask nobody",
        "The rule `nested_agent` answers where one of these is started with one of these options, "
        "also by `npx`, `bunx`, `uvx` or `pipx run`.",
        table(
            ("agent", "programs and packages", "options"),
            (
                (host.TITLE, _named(host.PROGRAMS), _named(host.UNASKED))
                for host in map(agent_host, AGENTS)
            ),
        ),
    )


def _table(rows: list[Starter]) -> str:
    return table(
        ("program", "its command", "options with a value"),
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
    texts = f"the value of {_named(row.texts)}, as a line for a shell" if row.texts else ""
    rests = f"what follows {_named(row.rests)}" if row.rests else ""
    usual = COMMANDS[row.command]
    if row.before and usual:
        usual += f" and {row.before} more word"
    if row.assigns:
        usual += "; `NAME=value` before it is its environment"
    return "; else ".join(one for one in (texts, rests, usual) if one)


def _named(words: tuple[str, ...]) -> str:
    return ", ".join(f"`{word}`" for word in words)
