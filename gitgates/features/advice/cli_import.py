"""Beads of the type `advice` as tables of the settings."""

from __future__ import annotations

import json
from typing import Any

from gitgates.config.values import show
from gitgates.core.limits import parse_json
from gitgates.core.types import Problem

_SAME = ("id", "title", "description", "status", "priority", "created_at")
_TARGET = "advice_target_"
_HOOK = "advice_"  # advice_hook_command → hook_command


def tables_of(
    content: bytes, source: str, problems: list[Problem]
) -> tuple[dict[str, dict[str, Any]], int]:
    """Return the tables by their places in the file, and how many beads are of another type.

    Empty values are left out. A line that is not a bead, or has fields of a hook but another
    type, is a problem.
    """
    tables: dict[str, dict[str, Any]] = {}
    others = 0
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        location = f"{source}:{number}"
        try:
            bead = parse_json(line)
            json.dumps(bead, ensure_ascii=False).encode()  # half a surrogate pair is not text
        except (ValueError, RecursionError) as error:
            problems.append(Problem(location, f"is not valid JSON: {error}"))
            continue
        if not isinstance(bead, dict):
            problems.append(Problem(location, f"got {show(bead)}, expected an object"))
        elif bead.get("issue_type") == "advice":
            tables[location] = _table(bead)
        else:
            others += 1
            kind = show(bead.get("issue_type", ""))
            message = f"applies only to the type advice, not {kind}"
            problems += [
                Problem(f"{location}: {key}", message)
                for key in bead
                if key.startswith(_HOOK) and bead[key]
            ]
    return tables, others


def _table(bead: dict[str, Any]) -> dict[str, Any]:
    table = {name: bead[name] for name in _SAME if bead.get(name) not in (None, "")}
    for key, value in bead.items():
        if value in (None, "", 0) or not key.startswith(_HOOK):
            continue
        table[key.removeprefix(_TARGET if key.startswith(_TARGET) else _HOOK)] = value
    return table
