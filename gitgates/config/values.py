"""The types of values: parse each from TOML, and describe it for the JSON Schema.

A parser returns our value, or raises `BadValue`, which says what is valid.
"""

from __future__ import annotations

import json
import re

from gitgates.config.misspelt import meant_command, meant_pattern
from gitgates.core.clean import visible_line
from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeGuard


class BadValue(Exception):
    """An invalid value: what was expected, and what to write instead."""

    def __init__(
        self, expected: str, hint: str = "", entry: int | None = None, keys: tuple[str, ...] = ()
    ) -> None:
        super().__init__(expected)
        self.expected = expected
        self.hint = hint
        self.entry = entry  # which entry of an array is invalid
        self.keys = keys  # which value of a table is invalid

    @property
    def index(self) -> str:
        """Return which entry of an array is invalid, as written after a key."""
        return "" if self.entry is None else f"[{self.entry}]"

    def part_of(self, value: object) -> object:
        """Return the invalid part of the whole value."""
        for key in self.keys:
            value = value[key] if isinstance(value, dict) else value
        return value[self.entry] if self.entry is not None and isinstance(value, list) else value


class ValueType(Record):
    """One type of value."""

    parse: Callable[[object], object]
    json: Mapping[str, object]  # its JSON Schema
    unit: str = ""  # what the record's field has after the key's name


_NUMBER = r"(\d+(?:\.\d+)?) *"  # spaces may surround a unit, but not split a number
_DURATION = re.compile(rf" *(?:{_NUMBER}h *)?(?:{_NUMBER}m *)?(?:{_NUMBER}s *)?")
_DAYS = re.compile(r"(\d{1,4})\s*d")
_SIZE = re.compile(r"(\d{1,15})\s*(B|KiB|MiB|GiB|KB|MB|GB|k|M|G)?", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "kib": 1024, "k": 1024, "mib": 1024**2, "m": 1024**2}
_UNITS |= {"kb": 1000, "mb": 1000**2, "gib": 1024**3, "g": 1024**3, "gb": 1000**3}
_MOST_COMPARED = 200  # names; among more, similarity means little
_LONGEST_SHOWN = 60
# poll(2) cannot wait for more than 24 days, in milliseconds.
_LONGEST_S = 7 * 24 * 3600.0
_MOST_DAYS = 3650
_MOST = 1e9  # of lines, or of files


def show(value: object) -> str:
    """Return `value` as a person would write it in TOML, shortened."""
    text = _toml(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"


def _toml(value: object) -> str:
    match value:
        case bool() | str():
            return visible_line(json.dumps(value, ensure_ascii=False))
        case list():
            return f"[{', '.join(_toml(item) for item in value)}]"
        case dict():
            pairs = ", ".join(f"{visible_line(key)} = {_toml(item)}" for key, item in value.items())
            return f"{{ {pairs} }}" if pairs else "{}"
        case _:  # numbers and times: Python writes them as TOML does
            try:
                return str(value)
            except ValueError:  # Python does not write out whole numbers of thousands of digits
                return "a number with thousands of digits"


def did_you_mean(word: object, candidates: tuple[str, ...]) -> str:
    """Return `Did you mean X?` for the nearest of the candidates, or nothing."""
    # Cold: only a configuration with a mistake needs difflib.
    from difflib import get_close_matches

    if not isinstance(word, str) or len(candidates) > _MOST_COMPARED:
        return ""
    by_fold = {item.casefold(): item for item in candidates}
    near = get_close_matches(word.casefold(), by_fold, n=1, cutoff=0.6)
    return f"Did you mean `{by_fold[near[0]]}`?" if near else ""


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether a value is a whole number."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a number."""
    return isinstance(value, float) or is_whole(value)


def is_filled(value: object) -> TypeGuard[str]:
    """Return whether a value is text with something in it."""
    return isinstance(value, str) and bool(value.strip()) and "\0" not in value


def parse_duration(value: object) -> float:
    """Return a time in seconds."""
    hint = 'Try "30s".'
    if is_number(value):
        seconds = min(value, _LONGEST_S + 1)
    elif isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        hours, minutes, rest = (float(part or 0) for part in match.groups())
        seconds = hours * 3600 + minutes * 60 + rest
    else:
        raise BadValue('seconds or "30s"', hint)
    if not 0 < seconds <= _LONGEST_S:  # nan is neither
        raise BadValue("a time greater than zero, at most one week", hint)
    return float(seconds)


def _age(value: object) -> float:
    """Return a time in seconds; it may be given in days."""
    match = _DAYS.fullmatch(value.strip()) if isinstance(value, str) else None
    if match and 0 < int(match[1]) <= _MOST_DAYS:
        return int(match[1]) * 86400.0
    try:
        return parse_duration(value)
    except BadValue as error:
        raise BadValue('days or hours, such as "14d" or "12h"', 'Try "14d".') from error


def _size(value: object) -> int:
    count = 0
    if is_whole(value):
        count = value
    elif isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        count = int(match[1]) * _UNITS[(match[2] or "").lower()]
    if count <= 0:
        raise BadValue('a number of bytes greater than zero, or "64 KiB", "1 MiB"')
    return count


def _count(value: object) -> int:
    if not is_whole(value) or value < 0:
        raise BadValue("a whole number, 0 or more")
    return value


def _from_one(value: object) -> int:
    if not is_whole(value) or value < 1:
        raise BadValue("a whole number, 1 or more")
    return value


def _resource_counts(value: object) -> tuple[tuple[str, int], ...]:
    if not isinstance(value, dict):
        raise BadValue("a table of names and whole numbers", "Try resources = { db = 2 }.")
    for name, count in value.items():
        if not is_whole(count) or count < 1:
            raise BadValue("a whole number, 1 or more", keys=(name,))
    return tuple(value.items())


def _day(value: object) -> str:
    from datetime import date, datetime  # few settings have a date

    if not isinstance(value, date) or isinstance(value, datetime):
        raise BadValue("a day without quotes, such as 2027-01-31")
    return value.isoformat()


def parse_amount(value: object) -> float:
    """Return a number that is not negative."""
    if not is_number(value) or not 0 <= value <= _MOST:
        raise BadValue("a number from 0 to 1,000,000,000")
    return float(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadValue("true or false, without quotes")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise BadValue("text in quotes")
    if "\0" in value:
        raise BadValue("text without a NUL character")
    return value


def _action(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadValue("CONTINUE, BLOCK, STOP, or the name of a gate")
    return value


def _names(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        hint = f"Try [{show(value)}]." if isinstance(value, str) else ""
        raise BadValue("an array of strings", hint)
    for entry, item in enumerate(value):
        if not isinstance(item, str):
            raise BadValue("text in quotes", entry=entry)
        if not is_filled(item):
            raise BadValue("text that is not empty", entry=entry)
    return tuple(value)


def _selected(value: object) -> tuple[str, ...]:
    names = _names(value)
    for entry, item in enumerate(names):
        if any(part.strip().startswith("!") for part in item.split("|")):  # it would match nothing
            raise BadValue(
                "a name that the hook applies to; `!` cannot exclude a name", entry=entry
            )
    return names


def _tags(value: object) -> tuple[str, ...]:
    tags = _names(value)
    _refuse_unknown_tag(tuple(item.removeprefix("!") for item in tags))
    return tags


def _any_tags(value: object) -> tuple[str, ...]:
    tags = _names(value)
    _refuse_unknown_tag(tags)
    return tags


def _refuse_unknown_tag(tags: tuple[str, ...]) -> None:
    if tags:
        from gitgates.config.file_types import hint_if_unknown  # few configurations have types

    for entry, tag in enumerate(tags):
        hint = hint_if_unknown(tag)
        if hint is not None:
            expected = "a type of files that pre-commit's `identify` knows, such as python"
            raise BadValue(expected, hint, entry=entry)


def _patterns(value: object) -> tuple[str, ...]:
    if isinstance(value, str) and ("\\" in value or value[:1] == "^" or value[-1:] == "$"):
        # Other tools want it; as a pattern it would match nothing, and the gate would be skipped.
        expected = "an array of patterns as in .gitignore, not a regular expression"
        raise BadValue(expected, 'Such as ["*.py", "src/"].')
    patterns = _names(value)
    for entry, item in enumerate(patterns):
        if "\n" in item or not item.lstrip("!").strip("/"):
            raise BadValue("a pattern such as *.py or src/", entry=entry)
        if not {".", ".."}.isdisjoint(item.lstrip("!").split("/")):  # it would match nothing
            raise BadValue("a pattern relative to the root, without `.` and `..`", entry=entry)
        if hint := meant_pattern(item):
            raise BadValue("a pattern as in .gitignore", hint, entry=entry)
    return patterns


def _scratch(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return _patterns(value)
    names = _names(value)
    _patterns([name.removeprefix("~/") for name in names])
    return names


def _command(value: object) -> str | tuple[str, ...]:
    expected = "a shell command in quotes, or an array of a program and its arguments"
    if is_filled(value):
        if hint := meant_command(value):
            raise BadValue("a command without placeholders", hint)
        return value
    if not isinstance(value, list) or not value:
        raise BadValue(expected)
    for entry, item in enumerate(value):
        if not isinstance(item, str) or "\0" in item:
            raise BadValue("text in quotes, without a NUL character", entry=entry)
    if not value[0].strip():
        raise BadValue("a program", entry=0)
    if hint := meant_command(value):
        raise BadValue(expected, hint)
    return tuple(value)


def _pre_commit(value: object) -> tuple[str, ...] | None:
    if isinstance(value, bool):
        return () if value else None
    if not isinstance(value, list) or not value:
        raise BadValue("true, or an array of hook ids", 'Try pre-commit = ["ruff", "mypy"].')
    return _names(value)


def _environment(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        raise BadValue("a table of names and strings", 'Try env = { NAME = "value" }.')
    for name, content in value.items():
        if not name or "=" in name or "\0" in name:
            raise BadValue("environment names without `=`", f"{show(name)} is not a valid name.")
        if not isinstance(content, str) or "\0" in content:
            text = show(content) if isinstance(content, int | float) else "value"
            raise BadValue("strings as values", f'Try {visible_line(name)} = "{text}".')
    return tuple(value.items())


def parse_folder(value: object) -> str:
    """Return a folder, or a file, relative to the root."""
    if is_filled(value) and not value.startswith("/"):
        parts = [part for part in value.replace("\\", "/").split("/") if part not in ("", ".")]
        if ".." not in parts:
            return "/".join(parts) or "."
    raise BadValue("a folder inside the repository, relative to its root")


def _members(value: object) -> tuple[str, ...]:
    folders = [item.removeprefix("./").rstrip("/") for item in _names(value)]
    for entry, folder in enumerate(folders):
        parts = folder.split("/")
        if {"", ".", "..", ".git"} & {*parts}:
            raise BadValue("a folder below the root, such as web or packages/*", entry=entry)
        if any(part.count("*") > 1 or {"?", "[", "\\"} & {*part} for part in parts):
            hint = "Name each folder above the members."
            raise BadValue("a folder with at most one `*` in each name", hint, entry=entry)
    return tuple(folders)


def _extends(value: object) -> tuple[str, ...]:
    paths = _names(value)
    for entry, path in enumerate(paths):
        if ":" in path.partition("/")[0]:  # of a URL, or of git over SSH
            expected = (
                "a file in the repository: others could change without a commit here, and "
                "its commands run on your machine"
            )
            raise BadValue(expected, "Copy it into the repository.", entry=entry)
        if not path.endswith(".toml"):
            raise BadValue("a file in TOML, such as ../shared/gates.toml", entry=entry)
        if path.startswith(("/", "~")):
            expected = "a path relative to this file: others do not have this one"
            raise BadValue(expected, "Copy it into the repository.", entry=entry)
    return paths


def _breaker(value: object) -> tuple[int, int]:
    hint = "Try breaker = { prompt = 10, session = 30 }."
    most = {"prompt": 10, "session": 30}
    if not isinstance(value, dict):
        raise BadValue("a table of the numbers `prompt` and `session`", hint)
    if not value.keys() <= most.keys():
        raise BadValue("only the keys `prompt` and `session`", hint)
    if not all(is_whole(number) and number >= 1 for number in value.values()):
        raise BadValue("whole numbers, 1 or more", hint)
    most |= value
    return most["prompt"], most["session"]


def _failures(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise BadValue("a preset such as pytest or ruff, or a regular expression")
    try:
        re.compile(value)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadValue("a preset or a regular expression", f"Python says: {error}.") from None
    return value


def _examples(value: object) -> tuple[tuple[str, str], ...]:
    hint = 'Try examples = { fail = ["tests/gates/bad.py"], pass = ["tests/gates/good.py"] }.'
    if not isinstance(value, dict) or value.keys() != {"fail", "pass"}:
        raise BadValue("a table of `fail` and `pass`", hint)
    examples: list[tuple[str, str]] = []
    for key in ("fail", "pass"):
        try:
            examples += [(key, parse_folder(path)) for path in _names(value[key])]
        except BadValue as bad:
            raise BadValue(bad.expected, hint, bad.entry, keys=(key,)) from None
        if not value[key]:
            raise BadValue("at least one path: `fail` or `pass` alone proves nothing", keys=(key,))
    return tuple(examples)


def _metrics(value: object) -> tuple[tuple[str, str, str], ...]:
    hint = """Try metrics = { coverage = { pattern = 'TOTAL.*?(\\d+)%', better = "higher" } }."""
    if not isinstance(value, dict):
        raise BadValue("a table of metrics by name", hint)
    for name, table in value.items():
        if not name.strip() or not name.isprintable():
            raise BadValue("names on one line that are not empty", hint)
        if not isinstance(table, dict) or table.keys() != {"pattern", "better"}:
            raise BadValue("a table of `pattern` and `better`", hint, keys=(name,))
        if table["better"] not in ("higher", "lower"):
            raise BadValue("higher or lower", keys=(name, "better"))
        expected = "a regular expression with one group, which is the number"
        try:
            groups = re.compile(_failures(table["pattern"])).groups
        except BadValue as bad:
            raise BadValue(expected, bad.hint, keys=(name, "pattern")) from None
        if groups != 1:
            why = f"It has {groups} groups; use (?:…) for the others."
            raise BadValue(expected, why, keys=(name, "pattern"))
    return tuple((name, metric["pattern"], metric["better"]) for name, metric in value.items())


def _ratchet(value: object) -> bool | str:
    if not isinstance(value, bool) and value != "measure":
        raise BadValue('true, false or "measure"')
    return value


def _baseline(value: object) -> bool | str:
    if not isinstance(value, bool) and value != "file":
        raise BadValue('true, false or "file"')
    return value


def _reuse(value: object) -> bool | str:
    if not isinstance(value, bool) and value not in ("by-file", "declared"):
        raise BadValue('true, false, "by-file" or "declared"')
    return value


def one_of(*words: str) -> ValueType:
    """Return the type whose value is one of the words."""

    def parse(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise BadValue("one of " + ", ".join(words), did_you_mean(value, words))
        return value

    return ValueType(parse, {"type": "string", "enum": list(words)})


_ANY_TEXT = {"type": "string"}
FILLED = {"type": "string", "pattern": r"\S"}
_TEXTS = {"type": "array", "items": FILLED}


def numbers_schema(of: Mapping[str, object], *names: str) -> dict[str, object]:
    """Return the JSON Schema of a table of numbers with these keys."""
    properties = dict.fromkeys(names, of)
    return {"type": "object", "additionalProperties": False, "properties": properties}


FLAG = ValueType(_flag, {"type": "boolean"})
TEXT = ValueType(_text, _ANY_TEXT)
NAMES = ValueType(_names, _TEXTS)
_SELECTED = {"type": "string", "allOf": [FILLED, {"pattern": r"^(?!\s*!)(?!.*\|\s*!)"}]}
SELECTED = ValueType(_selected, {"type": "array", "items": _SELECTED})
PATTERNS = ValueType(_patterns, _TEXTS)
SCRATCH = ValueType(_scratch, _TEXTS)
TAGS = ValueType(_tags, _TEXTS)
ANY_TAGS = ValueType(_any_tags, _TEXTS)
FOLDER = ValueType(parse_folder, FILLED)
MEMBERS = ValueType(_members, _TEXTS)
EXTENDS = ValueType(_extends, _TEXTS)
ACTION = ValueType(_action, FILLED)
FAILURES = ValueType(_failures, FILLED)
COUNT = ValueType(_count, {"type": "integer", "minimum": 0})
FROM_ONE = ValueType(_from_one, {"type": "integer", "minimum": 1})
RESOURCE_COUNTS = ValueType(
    _resource_counts,
    {"type": "object", "additionalProperties": {"type": "integer", "minimum": 1}},
)
# For JSON Schema, some readers turn a TOML date into text, others into a value of no known type.
_NO_DAY = {"type": ["object", "array", "number", "boolean", "null"]}
DAY = ValueType(_day, {"format": "date", "not": _NO_DAY})
AMOUNT = ValueType(parse_amount, {"type": "number", "minimum": 0})
SIZE = ValueType(_size, {"anyOf": [{"type": "integer", "minimum": 1}, FILLED]}, "_bytes")
DURATION = ValueType(
    parse_duration, {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, FILLED]}, "_s"
)
AGE = ValueType(_age, DURATION.json, "_s")
COMMAND = ValueType(
    _command, {"anyOf": [FILLED, {"type": "array", "items": _ANY_TEXT, "minItems": 1}]}
)
PRE_COMMIT = ValueType(_pre_commit, {"anyOf": [{"type": "boolean"}, {**_TEXTS, "minItems": 1}]})
ENVIRONMENT = ValueType(_environment, {"type": "object", "additionalProperties": _ANY_TEXT})
METRICS = ValueType(
    _metrics,
    {
        "type": "object",
        "propertyNames": FILLED,
        "additionalProperties": {
            "type": "object",
            "additionalProperties": False,
            "required": ["pattern", "better"],
            "properties": {"pattern": FILLED, "better": {"enum": ["higher", "lower"]}},
        },
    },
)
EXAMPLES = ValueType(
    _examples,
    {
        "type": "object",
        "additionalProperties": False,
        "required": ["fail", "pass"],
        "properties": {
            "fail": {**_TEXTS, "minItems": 1},
            "pass": {**_TEXTS, "minItems": 1},
        },
    },
)
RATCHET = ValueType(_ratchet, {"anyOf": [{"type": "boolean"}, {"enum": ["measure"]}]})
BASELINE = ValueType(_baseline, {"anyOf": [{"type": "boolean"}, {"enum": ["file"]}]})
REUSE = ValueType(_reuse, {"anyOf": [{"type": "boolean"}, {"enum": ["by-file", "declared"]}]})
BREAKER = ValueType(
    _breaker, numbers_schema({"type": "integer", "minimum": 1}, "prompt", "session")
)
