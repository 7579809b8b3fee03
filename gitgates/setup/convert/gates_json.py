"""Read a gates.json, or a file with `quality_gates`, of older tools.

Values are taken as they are, for our own parser to judge; what it refuses is refused. Whatever is
left out is noted.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any

from gitgates.config.load import describe
from gitgates.config.parse import parse
from gitgates.config.read import Document
from gitgates.core.clean import visible_line
from gitgates.core.errors import UsageError
from gitgates.core.limits import parse_json
from gitgates.core.yaml_load import load_texts
from gitgates.setup.discover.project import read_text

_EXPECTED = "a gates.json (`gates`, `hooks`) or a quality_gates file (`headless`, `quality_gates`)"
_NUMBER = re.compile(r"\d+\.?\d*|\.\d+")

Tables = dict[str, Any]  # shaped like a settings file: `gates` and `hooks` by name


def read(path: str) -> tuple[Tables, list[str]]:
    """Return a file as tables for our parser, and notes for a person.

    Raises: UsageError where it cannot be read, is of an unknown kind, or is invalid.
    """
    name = os.path.basename(path)
    try:
        text = read_text(path).removeprefix("\ufeff")
    except ValueError as error:
        raise UsageError(f"{path}: cannot be read: {error}") from error
    document = _load(path, text)
    if not isinstance(document, dict):
        raise UsageError(f"{name}: expected {_EXPECTED}")
    notes: list[str] = []
    problems: list[str] = []
    if "quality_gates" in document:
        tables = _from_quality_gates(document, notes, problems)
    elif "gates" in document or "hooks" in document:
        tables = _from_gates_json(document, notes)
    else:
        raise UsageError(f"{name}: expected {_EXPECTED}, found neither")
    fatal = [problem for problem in parse((Document(name, (), tables),))[1] if not problem.deferred]
    lines = [f"{name}: {problem}" for problem in problems]
    lines += [describe(fatal)] if fatal else []
    if lines:
        raise UsageError("\n".join(lines), f"Fix {name} and run this again; nothing was written.")
    # Names of the file are shown on a terminal, whatever they hold.
    return tables, [f"{name}: {visible_line(note)}" for note in notes]


def _load(path: str, text: str) -> object:
    """Parse a text; all scalars of YAML become texts: `8080`, `yes`, `0x10`."""
    name = os.path.basename(path)
    is_json = path.endswith(".json") or text.lstrip().startswith("{")
    try:
        document: object = parse_json(text) if is_json else load_texts(text)
        json.dumps(document, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise UsageError(f"{name}: a lone surrogate is not a character") from error
    except (ValueError, RecursionError) as error:
        kind = "JSON" if is_json else "YAML"
        raise UsageError(f"{name}: is not valid {kind}: {error}") from error
    return document


def _from_gates_json(document: Tables, notes: list[str]) -> Tables:
    tables = _known_fields(document, "gates hooks", "", notes)
    for kind, fields in (
        ("gates", "description command on_pass on_fail"),
        ("hooks", "enabled_tools enabled_agents gates"),
    ):
        for name, table in tables[kind].items() if isinstance(tables.get(kind), dict) else ():
            if isinstance(table, dict):
                tables[kind][name] = _known_fields(table, fields, f"{kind}.{name}.", notes)
    return tables


def _known_fields(table: Tables, fields: str, location: str, notes: list[str]) -> Tables:
    """Return the fields that a format has; `null`, or an empty text, is one that is missing."""
    known_fields = fields.split()
    notes += [
        f"{location}{field}: unknown field; skipped" for field in table if field not in known_fields
    ]
    return {k: v for k, v in table.items() if k in known_fields and v is not None and v != ""}


def _from_quality_gates(document: Tables, notes: list[str], problems: list[str]) -> Tables:
    """Convert the commands for a headless agent to the hook `headless`."""
    document = _known_fields(document, "headless quality_gates", "", notes)
    items = document.get("quality_gates", [])
    headless = document.get("headless", {})
    gates: Tables = {}
    if not isinstance(items, list):
        problems.append("quality_gates: expected a list of gates")
        items = []
    for index, item in enumerate(items):
        location = f"quality_gates[{index}]"
        if not isinstance(item, dict):
            problems.append(f"{location}: expected a gate with `name` and `command`")
        elif not isinstance(name := item.get("name"), str) or not name.strip():
            problems.append(f'{location}.name: expected a string; add one such as name: "Lint"')
        elif name in gates:
            problems.append(f"{location}.name: `{name}` is already used by another gate")
        else:
            gates[name] = _gate(item, f"{location}.", notes)
    if not isinstance(headless, dict):
        problems.append("headless: expected a mapping such as max_retries: 3")
        headless = {}
    # The executor ran every gate and reported all failures together.
    settings = _known_fields(headless, "max_retries", "headless.", notes)
    limits = {field: _number(value) for field, value in settings.items()}
    hook = {"gates": list(gates), "strategy": "collect", **limits}
    return {"gates": gates, "hooks": {"headless": hook}}


def _gate(item: Tables, location: str, notes: list[str]) -> Tables:
    table = _known_fields(item, "name command timeout working_dir env", location, notes)
    del table["name"]
    if "timeout" in table:
        table["timeout"] = _number(table["timeout"])
    if table.get("timeout") == 0:
        del table["timeout"]
        notes.append(f"{location}timeout: 0 meant no limit; gitgates' default applies")
    if isinstance(env := table.get("env"), dict):
        table["env"] = {name: _plain(value) for name, value in env.items()}
    return table


def _plain(value: object) -> object:
    """Return a scalar of JSON as YAML writes it."""
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, bool | int | float) else value


def _number(value: object) -> object:
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        return value
    return float(value) if "." in value else int(value)
