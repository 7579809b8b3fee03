"""From tables to a `Config` and everything that is wrong with it, all at once. Pure.

`read` turns each document into settings, `overrides.merge` lays the local one over the other,
`references` looks at what only the whole can show: undefined gates, chains that never end.
"""

from __future__ import annotations

import hashlib

from gitgates.clean import visible_line
from gitgates.config import overrides, references
from gitgates.config.document import Document, Place, Settings
from gitgates.config.keys import (
    GATE_KEYS,
    HOOK_KEYS,
    RESERVED_GATE_NAMES,
    REVIEW_KEYS,
    TOP_KEYS,
    Key,
    hook_keys,
)
from gitgates.config.values import BadValue, did_you_mean, show
from gitgates.lifecycle import HOOK_POINTS
from gitgates.types import Config, Gate, Hook, Problem, Review

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def parse(documents: tuple[Document, ...]) -> tuple[Config, tuple[Problem, ...]]:
    """Return the configuration of all documents, later ones laid over earlier ones.

    The configuration is usable where every problem is a deferred one.
    """
    problems: list[Problem] = []
    layers = [read(document, problems) for document in documents]
    merged = overrides.merge(layers, problems)
    config = _build(merged, tuple(document.source for document in documents))
    if not problems:
        overrides.check_required(layers, config, problems)
    references.check(config, merged, problems)
    return config, tuple(problems)


def read(document: Document, problems: list[Problem]) -> Settings:
    """Parse one document, value by value; what does not fit goes to `problems`."""
    table = document.table
    sections = (*(key.name for key in TOP_KEYS), "review", "gates", "hooks")
    _refuse_unknown(Place(document), table, sections, problems)
    return Settings(
        document=document,
        top=_read_keys(Place(document), table, TOP_KEYS, problems),
        gates=_read_section(document, "gates", GATE_KEYS, problems),
        hooks=_read_section(document, "hooks", HOOK_KEYS, problems),
        review=_read_review(document, problems),
    )


def _read_review(document: Document, problems: list[Problem]) -> dict[str, Any]:
    table = document.table.get("review", {})
    if not isinstance(table, dict):
        where = document.where("review")
        hint = 'Try [tool.gitgates.review] with mode = "remind", and list `review` in a hook.'
        problems.append(Problem(where, f"got {show(table)}, expected a table", hint))
        return {}
    place = Place(document, ("review",))
    _refuse_unknown(place, table, tuple(key.name for key in REVIEW_KEYS), problems)
    return _read_keys(place, table, REVIEW_KEYS, problems)


def _read_section(
    document: Document, section: str, keys: tuple[Key, ...], problems: list[Problem]
) -> dict[str, dict[str, Any]]:
    tables = document.table.get(section, {})
    if not isinstance(tables, dict):
        where = document.where(section)
        problems.append(Problem(where, f"got {show(tables)}, expected a table for each name"))
        return {}
    found: dict[str, dict[str, Any]] = {}
    for name, table in tables.items():
        where = document.where(section, name)
        if not isinstance(table, dict):
            hint = _table_hint(section, table)
            problems.append(Problem(where, f"got {show(table)}, expected a table", hint))
            continue
        check = _check_gate_name if section == "gates" else _check_hook_name
        if not check(name, where, problems):
            continue
        usable = keys if section == "gates" else hook_keys(name)
        known = tuple(key.name for key in usable)
        place = Place(document, (section, name))
        _refuse_unknown(place, table, known, problems)
        found[name] = _read_keys(place, table, usable, problems)
    return found


def _table_hint(section: str, value: object) -> str:
    """Guess which key was meant where a value stands in place of its table."""
    if section == "gates" and isinstance(value, str):
        return f"Try {{ command = {show(value)} }}."
    if section == "hooks" and isinstance(value, list):
        return f"Try {{ gates = {show(value)} }}."
    return ""


def _read_keys(
    place: Place, table: dict[str, Any], keys: tuple[Key, ...], problems: list[Problem]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key in keys:
        if key.name not in table:
            continue
        value = table[key.name]
        try:
            found[key.field] = key.type.parse(value)
        except BadValue as bad:
            where = place.where(key.name)
            if bad.entry is not None and isinstance(value, list):
                where, value = f"{where}[{bad.entry}]", value[bad.entry]
            message = f"got {show(value)}, expected {bad.expected}"
            problems.append(Problem(where, message, bad.hint))
    return found


def _refuse_unknown(
    place: Place, table: dict[str, Any], known: tuple[str, ...], problems: list[Problem]
) -> None:
    for name in table:
        if name not in known:
            # Cold: only a configuration with a mistake in it needs the table.
            from gitgates.config.foreign_keys import FOREIGN_KEYS

            foreign = FOREIGN_KEYS.get(name.replace("-", "_"))
            hint = _misplaced(place, name) or foreign or did_you_mean(name, known)
            hint = hint or f"Known here: {', '.join(known)}."
            problems.append(Problem(place.where(name), "unknown key", hint))


def _misplaced(place: Place, name: str) -> str:
    """Say where a key belongs that has no meaning here: in another hook, or in pyproject.toml."""
    document = place.document
    tool = document.table.get("tool") if not (place.path or document.prefix) else None
    if name == "tool" and isinstance(tool, dict) and "gitgates" in tool:
        return f"In {document.source}, leave `tool.gitgates.` out: [gates.x]."
    for key in HOOK_KEYS:
        if place.path[:1] == ("hooks",) and key.name == name:
            return f"`{name}` has a meaning only for {', '.join(key.only_in)}."
    return ""


def _check_gate_name(name: str, where: str, problems: list[Problem]) -> bool:
    reserved = {word.casefold(): word for word in RESERVED_GATE_NAMES}
    if name.casefold() in reserved:
        message = f"`{name}` is the name of an action or of a built-in policy"
        problems.append(Problem(where, message, "Choose another name for the gate."))
    elif "," in name:
        message = f"got {show(name)}, expected a name without a comma"
        problems.append(Problem(where, message, "Commas separate names in GITGATES_SKIP."))
    elif not name or name != name.strip() or any(_is_control(char) for char in name):
        message = f"got {show(name)}, expected a name on one line, without spaces at its ends"
        problems.append(Problem(where, message))
    else:
        return True
    return False


def _is_control(char: str) -> bool:
    # What could break a line of output, or command a terminal. The JSON Schema says the same.
    return char < " " or "\x7f" <= char <= "\x9f" or char in "\u2028\u2029"


def _check_hook_name(name: str, where: str, problems: list[Problem]) -> bool:
    if name in HOOK_POINTS:
        return True
    hint = did_you_mean(name, tuple(HOOK_POINTS)) or (
        "Known are the hooks of githooks(5), an agent's events such as Stop, headless and manual."
    )
    problems.append(Problem(where, f"unknown hook `{visible_line(name)}`", hint))
    return False


def _build(merged: Settings, sources: tuple[str, ...]) -> Config:
    gates = tuple(Gate(name=name, **table) for name, table in merged.gates.items())
    hooks = tuple(Hook(name=name, **table) for name, table in merged.hooks.items())
    review = Review(**merged.review)
    config = Config(**merged.top, review=review, gates=gates, hooks=hooks, sources=sources)
    digest = hashlib.sha256(repr(config._replace(sources=())).encode("utf-8", "replace"))
    return config._replace(digest=digest.hexdigest())
