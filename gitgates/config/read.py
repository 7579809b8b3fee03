"""Read one settings file value by value: an invalid value is a problem, and the rest is read."""

from __future__ import annotations

import re

from gitgates.config.keys import (
    GATE_KEYS,
    HOOK_KEYS,
    RESERVED_GATE_NAMES,
    TOP_KEYS,
    Key,
    foreign_key,
    hook_keys,
    tables,
)
from gitgates.config.values import BadValue, did_you_mean, show
from gitgates.core.clean import visible_line
from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.record import Record
from gitgates.core.types import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeAlias

    from gitgates.config.keys import Table

    # Of a table: () for the top, ("gates", NAME), ("hooks", NAME); of features (TABLE,), and for an
    # array (TABLE, ID).
    Path: TypeAlias = tuple[str, ...]

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
# What could break a line of output, or control a terminal. The JSON Schema says the same.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_MOST_HINTS = 50


class Document(Record):
    """One settings file, parsed from TOML."""

    source: str  # the file's path
    prefix: tuple[str, ...]  # the table that holds our keys
    table: dict[str, Any]
    member: str = ""  # the folder of the member that it belongs to; empty: the root's

    def location(self, *path: str) -> str:
        """Name a place in this file, such as `pyproject.toml: tool.gitgates.gates.lint`."""
        if self.member and path[:1] == ("gates",):  # its names have no folder there
            path = ("gates", *(key.removeprefix(f"{self.member}:") for key in path[1:]))
        keys = (*self.prefix, *path)
        dotted = ".".join(key if _BARE_KEY.fullmatch(key) else show(key) for key in keys)
        return f"{self.source}: {dotted}" if dotted else self.source


class Settings(Record):
    """What one document, or several merged ones, set."""

    document: Document
    tables: dict[Path, dict[str, Any]]  # path → record field → value
    origins: dict[Path, Document]  # of each table, and of each field that is set, valid or not

    def tables_of(self, section: str) -> dict[str, dict[str, Any]]:
        """Return the tables of one section, by name."""
        return {path[1]: table for path, table in self.tables.items() if path[:1] == (section,)}

    def location(self, *path: str, field: str = "") -> str:
        """Name a table, or a field of it, in the file that set it."""
        document = self.origins.get((*path, field) if field else path, self.document)
        return document.location(*path, *([_key_name(path, field)] if field else []))


def _key_name(path: Path, field: str) -> str:
    """Return the key of a record's field, in the table at a path."""
    if path[:1] == ("gates",):
        keys = GATE_KEYS
    elif path[:1] == ("hooks",):
        keys = HOOK_KEYS
    else:
        keys = tables()[path[0]].keys if path else TOP_KEYS
    return next(key.name for key in keys if key.field == field)


def read_settings(document: Document, problems: list[Problem]) -> Settings:
    """Parse one document, value by value; append what is invalid to `problems`."""
    settings = Settings(document, {}, {})
    _read_table(settings, (), document.table, keys=TOP_KEYS, problems=problems)
    for kind in ("gates", "hooks"):
        tables_by_name = document.table.get(kind, {})
        if not isinstance(tables_by_name, dict):
            message = f"got {show(tables_by_name)}, expected one table per name"
            problems.append(Problem(document.location(kind), message))
            continue
        for name, table in tables_by_name.items():
            _read_named(settings, (kind, name), table, problems)
    for feature in tables().values():
        if feature.id_of:
            read_array(settings, feature, problems)
        elif feature.name in document.table:
            _read_feature(settings, feature, problems)
    return settings


def _read_feature(settings: Settings, feature: Table, problems: list[Problem]) -> None:
    path, table = (feature.name,), settings.document.table[feature.name]
    if isinstance(table, dict):
        _read_table(settings, path, table, keys=feature.keys, problems=problems)
    else:
        hint = f"Try [tool.gitgates.{feature.name}] with {feature.example}"
        problems.append(_no_table(settings.document, path, table, hint))


def read_array(settings: Settings, feature: Table, problems: list[Problem]) -> None:
    """Read an array of tables; each becomes a table by its id."""
    document = settings.document
    entries = document.table.get(feature.name, [])
    if not isinstance(entries, list):
        message = f"got {show(entries)}, expected an array of tables"
        hint = f"Try [[{'.'.join((*document.prefix, feature.name))}]] with {feature.example}"
        problems.append(Problem(document.location(feature.name), message, hint))
        return
    for number, table in enumerate(entries):
        location = f"{document.location(feature.name)}[{number}]"
        if not isinstance(table, dict):
            problems.append(Problem(location, f"got {show(table)}, expected a table"))
            continue
        name = (feature.id_of(table) if feature.id_of else "") or f"{number}"
        if (feature.name, name) in settings.tables:
            hint = "Give one of them a different `id`."
            problems.append(Problem(location, f"`{name}` is defined twice", hint))
            continue
        missing = [key for key in feature.needed if key not in table]
        problems += [Problem(location, f"has no `{key}`") for key in missing]
        _read_table(settings, (feature.name, name), table, keys=feature.keys, problems=problems)
        settings.tables[feature.name, name]["id"] = name


def _read_named(settings: Settings, path: Path, table: object, problems: list[Problem]) -> None:
    is_gate, name = path[0] == "gates", path[1]
    if not isinstance(table, dict):
        # Guess which key was meant.
        key, kind = ("command", str) if is_gate else ("gates", list)
        hint = f"Try {{ {key} = {show(table)} }}." if isinstance(table, kind) else ""
        problems.append(_no_table(settings.document, path, table, hint))
        return
    message, hint = _wrong_name(path[0], name)
    if message:
        problems.append(Problem(settings.document.location(*path), message, hint))
        return
    keys = GATE_KEYS if is_gate else hook_keys(name)
    _read_table(settings, path, table, keys=keys, problems=problems)


def _no_table(document: Document, path: Path, value: object, hint: str) -> Problem:
    return Problem(document.location(*path), f"got {show(value)}, expected a table", hint)


def _read_table(
    settings: Settings,
    path: Path,
    table: dict[str, Any],
    *,
    keys: tuple[Key, ...],
    problems: list[Problem],
) -> None:
    document = settings.document
    below = () if path else ("gates", "hooks", *tables())
    allowed = (*(key.name for key in keys), *below)
    for name in table:
        if name not in allowed:
            has_hint = len(problems) < _MOST_HINTS  # each takes a while to find
            hint = _unknown_key_hint(document, path, name, allowed) if has_hint else ""
            problems.append(Problem(document.location(*path, name), "unknown key", hint))
    fields = settings.tables.setdefault(path, {})
    settings.origins[path] = document
    for key in keys:
        if key.name not in table:
            continue
        settings.origins[*path, key.field] = document
        value = table[key.name]
        try:
            fields[key.field] = key.type.parse(value)
        except BadValue as bad:
            location = document.location(*path, key.name, *bad.keys) + bad.index
            message = f"got {show(bad.part_of(value))}, expected {bad.expected}"
            problems.append(Problem(location, message, bad.hint))


def _unknown_key_hint(document: Document, path: Path, name: str, allowed: tuple[str, ...]) -> str:
    """Return a hint for an unknown key: where it belongs, its name here, or a similar key."""
    tool = document.table.get("tool") if not (path or document.prefix) else None
    if name == "tool" and isinstance(tool, dict) and "gitgates" in tool:
        return f"In {document.source}, omit `tool.gitgates.`: [gates.x]."
    for key in HOOK_KEYS if path[:1] == ("hooks",) else ():
        if key.name == name:
            return f"`{name}` applies only to {', '.join(key.only_in)}."
    hint = foreign_key(name) or did_you_mean(name, allowed)
    return hint or f"Known keys: {', '.join(allowed)}."


def _wrong_name(section: str, name: str) -> tuple[str, str]:
    """Return what is wrong with the name of a gate or hook, and the fix; empty if nothing is."""
    if section == "hooks":
        if name in HOOK_POINTS:
            return "", ""
        examples = "the hooks of githooks(5), an agent's events such as Stop, headless and manual"
        hint = did_you_mean(name, tuple(HOOK_POINTS)) or f"Known: {examples}."
        return f"unknown hook `{visible_line(name)}`", hint
    if name.casefold() in {word.casefold() for word in RESERVED_GATE_NAMES}:
        message = f"`{name}` is the name of an action or of a built-in policy"
        return message, "Choose another name for the gate."
    if "," in name:
        message = f"got {show(name)}, expected a name without a comma"
        return message, "Commas separate names in GITGATES_SKIP."
    if not name or name != name.strip() or _CONTROL.search(name):
        return f"got {show(name)}, expected a name on one line, without spaces at either end", ""
    return "", ""
