"""Parse an intents file's text into intents and problems. Pure; cold: loads a YAML or TOML parser.

Entries are read like those of an array of tables in the configuration, so all problems are reported
at once. The line of each is added here.
"""

from __future__ import annotations

import re

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.config.read import Settings, read_array
from gitgates.config.values import BadValue, ValueType, did_you_mean
from gitgates.core.limits import parse_toml
from gitgates.core.record import Record
from gitgates.core.types import PRIORITIES, Problem
from gitgates.features.intents.intent import STATUSES, Intent
from gitgates.features.intents.scope import wrong_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

ROOT_KEY = "active_intents"
_REQUIRED = ("id", "title", "status", "owned_scope")
_LISTS = ("owned_scope", "constraints", "acceptance_criteria")
_LONGEST_TITLE = 200
_EXAMPLE = f"For example: {ROOT_KEY}: [{{id: INT-001, title: …, status: …, owned_scope: [src/**]}}]"
_QUOTES = "A pattern that starts with `*` or `!` needs quotes, and so does text that contains `: `."


def parse(text: str, file: str) -> tuple[tuple[Intent, ...], tuple[Problem, ...]]:
    """Return the intents in a text, and all its problems.

    `file` is its name, for problems; with the extension .toml it is TOML, else YAML. Use the
    intents only if there is no problem.
    """
    is_toml = file.endswith(".toml")
    problems: list[Problem] = []
    try:
        document = parse_toml(text) if is_toml else _load_yaml(text)
        lines = {} if is_toml else _yaml_lines(text, file, problems)
        rows = _rows(document, file, problems)
        source = _File(file, (), {ROOT_KEY: rows}, lines)
        settings = Settings(source, {}, {})  # type: ignore[arg-type]  # it stands for a Document
        read_array(settings, _TABLE, problems)
    except (ValueError, RecursionError) as error:
        line = re.search(r"line (\d+)", str(error))
        what = f"is not valid {'TOML' if is_toml else 'YAML'}: {error}"
        return (), (Problem(f"{file}:{line[1]}" if line else file, what, _QUOTES),)
    if problems:
        return (), tuple(problems)
    return tuple(Intent(**fields) for fields in settings.tables_of(ROOT_KEY).values()), ()


class _File(Record):
    """A `Document` whose locations include lines."""

    source: str  # the file's name
    prefix: tuple[str, ...]
    table: dict[str, Any]
    lines: Mapping[tuple[str, ...], int]

    def location(self, *path: str) -> str:
        """Name a location, with the nearest line that is known; in TOML, none is."""
        ends = range(len(path), 0, -1)
        line = next((f":{self.lines[path[:n]]}" for n in ends if path[:n] in self.lines), "")
        return f"{self.source}{line}: {'.'.join(path)}"


def _rows(document: object, file: str, problems: list[Problem]) -> object:
    """Return a document's entries, with our own keys only."""
    if document in (None, "", {}):
        return []
    if not isinstance(document, dict):
        what = f"got {v.show(document)}, expected a table with the key `{ROOT_KEY}`"
        problems.append(Problem(f"{file}:1", what, _EXAMPLE))
        return []
    for key in document:
        if key != ROOT_KEY and not key.startswith("x-"):
            hint = did_you_mean(key, (ROOT_KEY,)) or f"Known: {ROOT_KEY}."
            problems.append(Problem(f"{file}: {key}", "unknown key", hint))
    rows = document.get(ROOT_KEY) or []
    return [*map(_own_keys, rows)] if isinstance(rows, list) else rows


def _own_keys(row: object) -> object:
    """Return an entry without unknown keys; `name` is a synonym for `title`."""
    if not isinstance(row, dict):
        return row
    fields = {key: value for key, value in row.items() if not key.startswith("x-")}
    if "name" in fields and "title" not in fields:
        fields["title"] = fields.pop("name")
    for key in _LISTS:
        if fields.get(key) == "":  # a YAML key without a value
            fields[key] = []
    return fields


def _load_yaml(text: str) -> Any:  # noqa: ANN401 - any YAML
    """Return the document as texts, lists and dicts. Raises: ValueError, RecursionError."""
    try:
        from gitgates.core import yaml_load
    except ModuleNotFoundError:
        # A git hook runs with -S, so it does not find PyYAML beside an editable installation.
        import site

        site.main()
        from gitgates.core import yaml_load

    return yaml_load.load_texts(text)


def _yaml_lines(text: str, file: str, problems: list[Problem]) -> dict[tuple[str, ...], int]:
    """Return the line of each key in each entry; a duplicate key is a problem."""
    from gitgates.core.yaml_load import load_nodes

    lines: dict[tuple[str, ...], int] = {}
    root = load_nodes(text)
    top = root.value if root is not None and root.id == "mapping" else []
    lists = [value.value for _key, value in top if value.id == "sequence"]
    for row in (row for rows in lists for row in rows if row.id == "mapping"):
        keys = [(key.value, key.start_mark.line + 1, value.value) for key, value in row.value]
        name = next((str(value) for key, _line, value in keys if key == "id"), "")
        written = {"title" if key == "name" else str(key): line for key, line, _value in keys}
        lines |= {(ROOT_KEY, name, key): line for key, line in written.items()}
        lines[ROOT_KEY, name] = line = row.start_mark.line + 1
        if len(written) < len(keys):
            place = f"{file}:{line}: {ROOT_KEY}.{name}"
            problems.append(Problem(place, "the key is given twice", "Keep only one of them."))
    return lines


def _title(value: object) -> str:
    text = str(value).strip() if isinstance(value, str) else ""
    if not (text.isprintable() and 0 < len(text) <= _LONGEST_TITLE):
        raise BadValue(f"one line of 1 to {_LONGEST_TITLE} characters")
    return text


def _id(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value):
        return value
    raise BadValue("at most 64 letters, digits, `-`, `_` and `.`, such as INT-001")


def _status(value: object) -> object:
    return v.one_of(*STATUSES).parse(value.upper() if isinstance(value, str) else value)


def _scope(value: object) -> tuple[str, ...]:
    patterns: tuple[str, ...] = v.NAMES.parse(value)  # type: ignore[assignment]
    for entry, pattern in enumerate(patterns):
        if why := wrong_pattern(pattern):
            raise BadValue(why, _QUOTES, entry=entry)
    if all(pattern.startswith("!") for pattern in patterns):
        raise BadValue("at least one pattern such as src/**")
    return patterns


def _id_of(table: Mapping[str, Any]) -> str:
    return str(table.get("id", ""))


_TABLE = Table(
    name=ROOT_KEY,
    keys=(
        Key("id", ValueType(_id, {})),
        Key("title", ValueType(_title, {})),
        Key("status", ValueType(_status, {})),
        Key("owned_scope", ValueType(_scope, {})),
        Key("constraints", v.NAMES),
        Key("acceptance_criteria", v.NAMES),
        Key("priority", v.one_of(*PRIORITIES)),
        Key("notes", v.TEXT),
    ),
    meaning="",
    example="id, title, status and owned_scope.",
    id_of=_id_of,
    needed=_REQUIRED,
)
