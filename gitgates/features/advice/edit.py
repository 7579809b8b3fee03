"""Add, change and remove advice in the settings files, without changing any other byte.

tomlkit changes the text of one table only; the new file is parsed and compared. Cold.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Container, Mapping
from itertools import chain, count
from typing import TYPE_CHECKING, Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gitgates.config import FILES, LOCAL_FILE, PREFIXES, edit
from gitgates.config.parse import parse
from gitgates.config.read import Document
from gitgates.core.errors import ConfigError, UsageError
from gitgates.core.limits import parse_toml
from gitgates.core.types import Problem
from gitgates.features.advice.items import Advice, advice_of
from gitgates.features.advice.keys import TABLE, id_of, slug

if TYPE_CHECKING:
    from gitgates.config.sources import Raw

# Matches before each header, or before the comments directly above it.
_PART = re.compile(r"^(?=(?:[ \t]*#.*\n)*[ \t]*\[)", re.MULTILINE)
# Matches from an empty line on: comments that belong to no table.
_REST = re.compile(r"^[ \t\r]*\n(?:[ \t\r]*(?:#.*)?\n)*(?:#.*)?\Z", re.MULTILINE)


def parse_advice(table: dict[str, Any], source: str) -> tuple[Advice, tuple[Problem, ...]]:
    """Return an entry from a table of another source, checked like one in the settings files."""
    config, problems = parse((Document(source, (), {TABLE.name: [table]}),))
    return advice_of(config)[0], problems


def new_id(title: str, existing_ids: Container[str]) -> str:
    """Return an unused id for a title."""
    name = slug(title) or TABLE.name
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(candidate for candidate in names if candidate not in existing_ids)


def add(raw: Raw, table: dict[str, Any], *, local: bool) -> edit.Edit:
    """Return the edit that appends an entry to the shared or the local settings.

    Raises: ConfigError if there are problems, or would be.
    """
    file = LOCAL_FILE if local else edit.shared_file(raw)
    path = (*PREFIXES[file], TABLE.name)
    text = edit.text_of(raw, file)
    expected = parse_toml(text)
    edit.at(expected, path[:-1]).setdefault(TABLE.name, []).append(table)
    text = edit.append(text, edit.to_toml(path, [table]))
    refusal = _by_hand(file, TABLE.name, [table])
    return _checked(raw, file, text, expected=expected, refusal=refusal)


def change(raw: Raw, name: str, values: Mapping[str, Any]) -> edit.Edit:
    """Return the edit that sets keys of an advice entry; None removes a key.

    Raises: ConfigError as above; UsageError if there is no such advice.
    """
    file, place, expected, tables = _find(raw, name)
    if "title" in values and "id" not in tables[place]:
        values = {"id": name, **values}  # which was derived from the title
    merged = {**tables[place], **values}
    tables[place] = {key: value for key, value in merged.items() if value is not None}
    refusal = _by_hand(file, name, [tables[place]])
    before, block, after = _cut(edit.text_of(raw, file), file, place, refusal)
    try:
        document = tomlkit.parse(block)
        table: Any = edit.at(document, PREFIXES[file])[TABLE.name][0]
        for key, value in values.items():
            if value is None:
                table.pop(key, None)
            else:
                table[key] = tomlkit.parse(edit.to_toml((key,), value))[key]
        block = document.as_string()
    except (TOMLKitError, ValueError, LookupError, TypeError) as error:
        raise refusal from error
    return _checked(raw, file, before + block + after, expected=expected, refusal=refusal)


def remove(raw: Raw, name: str) -> edit.Edit:
    """Return the edit that removes an advice entry.

    Raises: ConfigError as above; UsageError if there is no such advice.
    """
    file, place, expected, tables = _find(raw, name)
    refusal = _by_hand(file, name, [])
    before, _block, after = _cut(edit.text_of(raw, file), file, place, refusal)
    del tables[place]
    if not tables:
        del edit.at(expected, PREFIXES[file])[TABLE.name]
    end = len(before.rstrip("\n")) + 1  # including its line end
    return _checked(raw, file, before[:end] + after, expected=expected, refusal=refusal)


def _find(raw: Raw, name: str) -> tuple[str, int, Any, list[dict[str, Any]]]:
    """Return an entry's location: file, index, the parsed file, and all advice in it."""
    for file in FILES:
        parsed: Any = parse_toml(edit.text_of(raw, file))
        try:
            tables = edit.at(parsed, PREFIXES[file]).get(TABLE.name, [])
        except AttributeError:
            continue  # `tool` is not a table
        for place, table in enumerate(tables):
            if id_of(table) == name:
                return file, place, parsed, tables
    raise UsageError(f"no advice entry `{name}`", "To list all: gitgates advice list --all")


def _cut(text: str, file: str, place: int, refusal: ConfigError) -> tuple[str, str, str]:
    """Return the text before a table in the array, the table's text, and the text after it."""
    parts = _PART.split(text)
    header = "[[" + ".".join((*PREFIXES[file], TABLE.name))
    starts = [re.sub(r"[\s'\"]", "", part.partition("]")[0]) for part in parts]
    numbers = [number for number, start in enumerate(starts) if start == header]
    if place >= len(numbers):
        raise refusal
    before, (part, *after) = parts[: numbers[place]], parts[numbers[place] :]
    rest = _REST.search(part)
    end = rest.start() if rest else len(part)
    return "".join(before), part[:end], part[end:] + "".join(after)


def _checked(
    raw: Raw, file: str, text: str, *, expected: object, refusal: ConfigError
) -> edit.Edit:
    """Return the edit that gives a file a new text, which must parse to the expected tables."""
    try:
        parsed = parse_toml(text)
    except tomllib.TOMLDecodeError as error:
        raise refusal from error
    if edit.as_json(_unempty(parsed)) != edit.as_json(_unempty(expected)):
        raise refusal
    return edit.with_text(edit.Edit(file=file), raw, text)


def _unempty(tables: Any) -> Any:  # noqa: ANN401 - as tomllib has them
    """Return tables without empty ones, such as those of a header that is only a prefix."""
    if not isinstance(tables, dict):
        return tables
    return {k: nested for k, v in tables.items() if (nested := _unempty(v)) != {}}


def _by_hand(file: str, name: str, tables: list[dict[str, Any]]) -> ConfigError:
    lines = edit.to_toml((*PREFIXES[file], TABLE.name), tables) if tables else ""
    return ConfigError(
        f"{file}: `{name}` cannot be changed without rewriting other parts of the file",
        f"Write each [[…{TABLE.name}]] with its own header, or change it by hand"
        + (f" to:\n\n{lines}" if lines else "."),
    )
