"""The table `[tool.gitgates.worktree]`."""

from __future__ import annotations

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.worktree.lock_files import LOCK_FILES


def _commands(value: object) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    if not all(map(v.is_filled, listed)):
        raise v.BadValue("a command, or an array of commands")
    return tuple(listed)


_COMMANDS = v.ValueType(_commands, {"anyOf": [v.FILLED, {"type": "array", "items": v.FILLED}]})
_KEYS = (
    Key("setup", _COMMANDS, "[]", weaker="any").meaning(
        'The command, or commands, that install what gates need: `"uv sync --locked"`. They '
        "run in a private checkout's root, if it is new or one of `inputs` has changed. "
        "[How](../how-to/checkouts.md)."
    ),
    Key("inputs", v.PATTERNS, f"[{', '.join(map(v.show, LOCK_FILES))}]", weaker="any").meaning(
        "Patterns of the files that determine what `setup` installs."
    ),
    Key("copy", v.NAMES, "[]", weaker="any").meaning(
        'Files and folders that git ignores and gates need: `[".env"]`. They are copied from '
        "the working tree."
    ),
    Key("timeout", v.DURATION, '"10m"').meaning(
        "The time limit for all commands of `setup` together."
    ),
    Key("agents", v.FLAG, "false").meaning(
        "Whether `setup` and `copy` also apply to linked worktrees that agents work in."
    ),
)

TABLE = Table(
    name="worktree",
    keys=_KEYS,
    meaning="What is installed in private checkouts, and in headless runs' worktrees.",
    example='setup = "npm ci"\ncopy = [".env"]',
)
