"""Add, change and remove advice in the settings files; every other byte stays.

A change is made in the text of one table alone, by tomlkit, and read back. Cold.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Container, Mapping
from itertools import chain, count, pairwise
from typing import Any

import tomlkit
import tomlkit.exceptions

from gitgates.config import edit, load
from gitgates.config.advice_values import slug
from gitgates.config.parse import parse
from gitgates.config.read import Document, advice_id
from gitgates.config.section_keys import ADVICE
from gitgates.errors import ConfigError, UsageError
from gitgates.types import Advice, Problem

Raw = tuple[bytes | None, ...]


def parse_advice(table: dict[str, Any], source: str) -> tuple[Advice, tuple[Problem, ...]]:
    """Return an advice that was given in another way than by the files, checked as theirs is."""
    config, problems = parse((Document(source, (), {ADVICE.name: [table]}),))
    return config.advice[0], problems


def new_id(title: str, taken: Container[str]) -> str:
    """Return an id for a title that no other advice has."""
    name = slug(title) or ADVICE.name
    names = chain([name], (f"{name}-{number}" for number in count(2)))
    return next(one for one in names if one not in taken)


def add(raw: Raw, tables: list[dict[str, Any]], *, local: bool) -> edit.Edit:
    """Return the edit that appends advice to the shared settings, or to the local ones.

    Raises: ConfigError where there are problems, or would be.
    """
    file = load.LOCAL_FILE if local else edit.shared_file(raw)
    path = (*edit.PREFIXES[file], ADVICE.name)
    text = _text_of(raw, file)
    expected: Any = tomllib.loads(text)
    edit.at(expected, path[:-1], make=True).setdefault(ADVICE.name, []).extend(tables)
    header = f"[[{'.'.join(path)}]]\n"
    blocks = [
        header + "".join(f"{key} = {edit.to_toml(value)}\n" for key, value in table.items())
        for table in tables
    ]
    text = edit.insert(text, edit.position(text, (*path, "")), "\n".join(blocks))
    return _checked(raw, file, text, expected)


def change(raw: Raw, name: str, values: Mapping[str, Any]) -> edit.Edit:
    """Return the edit that sets keys of an advice; None takes a key out.

    Raises: ConfigError as above; UsageError if there is no such advice.
    """
    file, place, expected, tables = _find(raw, name)
    if "title" in values and "id" not in tables[place]:
        values = {"id": name, **values}  # which the title has made so far
    before, block, after = _cut(_text_of(raw, file), file, name, place)
    try:
        document = tomlkit.parse(block)
        table: Any = edit.at(document, (*edit.PREFIXES[file], ADVICE.name))[0]
        for key, value in values.items():
            tables[place].pop(key, None)
            if value is None:
                table.pop(key, None)
            else:
                tables[place][key] = value
                table[key] = tomlkit.value(edit.to_toml(value))
        is_crlf = "\r\n" in block
        block = document.as_string()
        block = re.sub(r"(?<!\r)\n", "\r\n", block) if is_crlf else block
    except (tomlkit.exceptions.TOMLKitError, ValueError, LookupError, TypeError) as error:
        raise _by_hand(file, name) from error
    return _checked(raw, file, before + block + after, expected)


def remove(raw: Raw, name: str) -> edit.Edit:
    """Return the edit that takes an advice out.

    Raises: ConfigError as above; UsageError if there is no such advice.
    """
    file, place, expected, tables = _find(raw, name)
    before, _block, after = _cut(_text_of(raw, file), file, name, place)
    del tables[place]
    if not tables:
        del edit.at(expected, edit.PREFIXES[file])[ADVICE.name]
    kept = len(before.rstrip("\r\n"))
    kept += before[kept:].find("\n") + 1  # the end of that line, as it is
    return _checked(raw, file, before[:kept] + after, expected)


def _text_of(raw: Raw, file: str) -> str:
    return (raw[load.FILES.index(file)] or b"").decode()


def _find(raw: Raw, name: str) -> tuple[str, int, Any, list[dict[str, Any]]]:
    """Return where an advice is: file, number, the parsed file, and all advice in that."""
    for file in load.FILES:
        parsed: Any = tomllib.loads(_text_of(raw, file))
        try:
            tables = edit.at(parsed, (*edit.PREFIXES[file], ADVICE.name))
        except (KeyError, TypeError):
            continue
        for place, table in enumerate(tables):
            if advice_id(table) == name:
                return file, place, parsed, tables
    raise UsageError(f"no advice `{name}`", "There are: gitgates advice list --all")


def _cut(text: str, file: str, name: str, place: int) -> tuple[str, str, str]:
    """Return the text before a table of the array, its own, and what comes behind."""
    path = (*edit.PREFIXES[file], ADVICE.name)
    starts = [*(match.start() for match in edit.HEADER.finditer(text)), len(text)]
    spans = [(a, b) for a, b in pairwise(starts) if edit.path_of(text[a:b]) == path]
    if place >= len(spans):
        raise _by_hand(file, name)
    start, end = spans[place]
    end = start + edit.content_length(text[start:end], is_last=end == len(text))
    return text[:start], text[start:end], text[end:]


def _checked(raw: Raw, file: str, text: str, expected: object) -> edit.Edit:
    """Return an edit whose new text says what it should, and makes no problems."""
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _by_hand(file, ADVICE.name) from error
    if edit.as_json(_unempty(found)) != edit.as_json(_unempty(expected)):
        raise _by_hand(file, ADVICE.name)
    after = text.encode()
    new = tuple(after if one == file else old for one, old in zip(load.FILES, raw, strict=True))
    _config, problems = load.parse_files(new)
    edit.refuse_problems(problems, f"Nothing was written to {file}.")
    before = raw[load.FILES.index(file)]
    return edit.Edit(
        file=file, before=before, after=after, gates=(), hooks=(), extended=(), kept=(), problems=()
    )


def _unempty(tables: Any) -> Any:  # noqa: ANN401 - as tomllib has them
    """Return tables without those that are empty: a header that was only a prefix is gone."""
    if not isinstance(tables, dict):
        return tables
    return {k: found for k, v in tables.items() if (found := _unempty(v)) != {}}


def _by_hand(file: str, name: str) -> ConfigError:
    return ConfigError(
        f"{file}: `{name}` is written so that it cannot be changed without rewriting more",
        f"Write it as [[…{ADVICE.name}]] with a header of its own, or change it by hand.",
    )
