"""Beads of the type `advice` as tables of the settings."""

from __future__ import annotations

import json
from typing import Any

from gitgates.config.values import show
from gitgates.errors import UsageError

_SAME = ("id", "title", "description", "status", "priority", "created_at")
_TARGET = "advice_target_"
_HOOK = "advice_"  # advice_hook_command → hook_command


def tables_of(content: bytes, source: str) -> tuple[list[dict[str, Any]], int]:
    """Return the tables, and how many beads are of another type. Empty values are left out.

    Raises: UsageError with every line that is no bead, or has fields of a hook and is no advice.
    """
    tables: list[dict[str, Any]] = []
    problems: list[str] = []
    others = 0
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            bead = json.loads(line)
        except (ValueError, RecursionError) as error:
            problems.append(f"{source}:{number}: is no JSON: {error}")
            continue
        if not isinstance(bead, dict):
            problems.append(f"{source}:{number}: got {show(bead)}, expected an object")
        elif bead.get("issue_type") == "advice":
            tables.append(_table(bead))
        else:
            others += 1
            kind = show(bead.get("issue_type", ""))
            problems += [
                f"{source}:{number}: {key}: has a meaning only for the type advice, not {kind}"
                for key in bead
                if key.startswith(_HOOK) and bead[key]
            ]
    if problems:
        raise UsageError("\n".join(problems), "Nothing was written.")
    return tables, others


def _table(bead: dict[str, Any]) -> dict[str, Any]:
    table = {name: bead[name] for name in _SAME if bead.get(name) not in (None, "")}
    for key, value in bead.items():
        if value in (None, "", 0) or not key.startswith(_HOOK):
            continue
        table[key.removeprefix(_TARGET if key.startswith(_TARGET) else _HOOK)] = value
    return table
