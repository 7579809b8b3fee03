"""Find settings of linters, type checkers and test runners that became weaker. Pure.

If a setting's name says which direction is weaker, only that direction counts: a rule that is
switched on is not a finding, nor is a threshold that is raised. For other settings, each change of
an existing value is. `patterns.toml` has the files and the names.
"""

from __future__ import annotations

import configparser
import functools
import re
from collections import Counter
from typing import Any, TypeAlias

from gitgates.core.clean import first_few
from gitgates.core.limits import parse_json, parse_toml
from gitgates.core.yaml_load import load_texts
from gitgates.features.review.weakening.finding import (
    SETTING,
    Pair,
    Weakening,
    alternatives,
    patterns,
)
from gitgates.features.review.weakening.source import read_side

Value: TypeAlias = str | tuple[str, ...]
Settings: TypeAlias = dict[str, Value]  # by dotted key

_SHOWN = 3  # entries of a list, or lines, in one finding
_LONGEST = 100  # characters of a value
_RANKS = {
    **dict.fromkeys(("off", "none", "allow", "ignore", "disabled"), 0),
    **dict.fromkeys(("info", "information", "hint", "note"), 1),
    **dict.fromkeys(("warn", "warning"), 2),
    **dict.fromkeys(("error", "deny"), 3),
    "forbid": 4,
}
_ON = ("true", "yes", "on")
_FLAGS = {None, *_ON, "false", "no", "off", "True", "False"}
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?%?$")
_COMMENTS = ("#", "//", "/*", "*", "<!--")


def find_in_settings(pair: Pair) -> list[Weakening]:
    """Return what has become weaker in one file that configures a tool."""
    kind, keys = _tool_of(pair.path) or _tool_of(pair.old_path) or ("", "")
    if not kind or pair.before == pair.after:
        return []
    if pair.after is None or not _tool_of(pair.path):
        texts = ["deleted" if pair.after is None else f"{pair.renamed_from} renamed"]
    elif kind in ("lines", "ignored"):
        texts = _compare_lines(kind, *pair.texts)
    else:
        texts = _compare_tables(kind, keys, *pair.texts)
    return [Weakening(pair.path, SETTING, text) for text in texts]


@functools.cache
def _tools() -> list[tuple[re.Pattern[str], str, str]]:
    return [
        (re.compile(rf"(?:^|/)(?:{alternatives(names)})$"), kind, alternatives(keys))
        for kind, files in patterns()["settings"]["files"].items()
        for names, keys in files.items()
    ]


def _tool_of(path: str) -> tuple[str, str] | None:
    """Return the format of a file that configures a tool, and a pattern of the keys that count."""
    return next(((kind, keys) for names, kind, keys in _tools() if names.search(path)), None)


@functools.cache
def _words(which: str) -> frozenset[str]:
    return frozenset(patterns()["settings"]["words"][which].split())


# reading


def _compare_tables(kind: str, keys: str, before: str | None, after: str | None) -> list[str]:
    """Describe what has become weaker, or that a side cannot be parsed."""
    try:
        new = _table(after, kind)
    except (ValueError, RecursionError) as error:
        return [f"can no longer be parsed as {kind.upper()}, and was not compared: {error}"]
    try:
        old = _table(before, kind)
    except (ValueError, RecursionError):
        return [f"could not be parsed as {kind.upper()} before, and was not compared"]
    return _compare(_settings(old, keys), _settings(new, keys))


def _table(text: str | None, kind: str) -> Any:  # noqa: ANN401 - whatever the file holds
    """Return what a settings file holds. Raises: ValueError if it cannot be read."""
    match kind:
        case _ if not text:
            return {}
        case "toml":
            return parse_toml(text)
        case "json":  # without comments, and without commas before a closing bracket
            side = read_side(text, "json")
            plain = list(side.text)
            for comma in re.finditer(r",(?=\s*[}\]])", side.code):
                plain[comma.start()] = " "
            return parse_json("".join(plain))
        case "ini":
            return _ini(text)
        case _:
            return load_texts(text)


def _ini(text: str) -> dict[str, dict[str, Value]]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    try:
        parser.read_string(text)
    except (configparser.Error, AttributeError) as error:  # a key without a value that goes on
        raise ValueError(str(error)) from error
    return {
        section: {key: _ini_value(value or "") for key, value in parser.items(section)}
        for section in parser.sections()
    }


def _ini_value(value: str) -> Value:
    """Return a tuple where a value is a list: on lines of its own, or after commas."""
    parts = value.splitlines() if "\n" in value.strip() else value.split(",")
    entries = tuple(entry for part in parts if (entry := part.strip().rstrip(",").strip()))
    return (
        tuple(entry for entry in entries if entry[0] not in "#;")
        if len(parts) > 1
        else value.strip()
    )


def _settings(table: object, keys: str) -> Settings:
    flat: Settings = {}
    _flatten(table, "", flat)
    return {key: value for key, value in flat.items() if re.match(keys, key)}


def _flatten(value: object, key: str, flat: Settings) -> None:
    """Flatten tables to dotted keys; lists of tables become lists of values."""
    if isinstance(value, dict):
        for name, inner in value.items():
            _flatten(inner, f"{key}.{name}" if key else str(name), flat)
    elif isinstance(value, list | tuple):
        for inner in value:
            part: Settings = {}
            _flatten(inner, f"{key}[]" if isinstance(inner, dict) else key, part)
            for name, entry in part.items():
                flat[name] = (*_as_tuple(flat.get(name)), *_as_tuple(entry))
        flat.setdefault(key, ())
    else:
        flat[key] = str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _as_tuple(value: Value | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else value


# comparing


def _compare_lines(kind: str, before: str | None, after: str | None) -> list[str]:
    """Compare lines, without comments and empty ones."""
    old, new = (
        Counter(
            line
            for raw_line in (text or "").splitlines()
            if (line := " ".join(raw_line.split())) and not line.startswith(_COMMENTS)
        )
        for text in (before, after)
    )
    added, removed = list((new - old).elements()), list((old - new).elements())
    if kind == "ignored":
        return [f"no longer checked: {_few(added)}"] if added else []
    parts = [f"{sign} {_few(some)}" for sign, some in (("-", removed), ("+", added)) if some]
    return ["; ".join(parts)] if parts and before is not None else []


def _compare(old: Settings, new: Settings) -> list[str]:
    """Describe what has become weaker."""
    sections = {_section(key) for key in old}
    removed = sections - {_section(key) for key in new}
    texts = [f"{section}: removed" for section in sorted(removed)]
    for key in sorted(old.keys() | new.keys()):
        section = _section(key)
        is_meant = key.rpartition(".")[2].rstrip("[]") not in _words("no_matter")
        if section not in removed and old.get(key) != new.get(key) and is_meant:
            text = _judge(key, old.get(key), new.get(key), is_new=section not in sections)
            texts += [f"{key}: {text}"] if text else []
    return texts


def _section(key: str) -> str:
    """Return the tool that a key belongs to."""
    parts = key.split(".")
    return ".".join(parts[:2]) if parts[0] == "tool" else parts[0] if len(parts) > 1 else ""


def _judge(key: str, old: Value | None, new: Value | None, *, is_new: bool) -> str:
    """Return what has become weaker; empty if nothing has. `is_new`: the tool's section is."""
    way = _way(key)
    if isinstance(old, tuple) or isinstance(new, tuple):
        return _judge_list(way, _as_tuple(old), _as_tuple(new), is_new=is_new)
    old_rank, new_rank = _RANKS.get(old or "", -1), _RANKS.get(new or "", -1)
    if old_rank >= 0 or new_rank >= 0:
        weaker = new_rank == 0 if old is None else new_rank < old_rank or old_rank < 0
    elif {old, new} <= _FLAGS:
        is_on = (new or "false").lower() in _ON
        weaker = not way or is_on == (way == "loose")
    elif old and new and _NUMBER.match(old) and _NUMBER.match(new):
        words = {word.lower() for word in _WORD.findall(key)}
        less, more = float(new.rstrip("%")), float(old.rstrip("%"))
        if words & _words("upper"):
            less, more = more, less
        weaker = less < more or not words & (_words("upper") | _words("lower"))
    else:
        weaker = not (old is None and (is_new or way == "tight"))
    return f"{_cut(old)} → {_cut(new)}" if weaker else ""


def _way(key: str) -> str:
    """Return which way a key is weaker: with more in it (loose), with less (tight); or nothing."""
    for part in reversed(key.replace("[]", "").split(".")):
        for word in _WORD.findall(part):
            for way in ("stages", "tight", "loose"):
                if word.lower() in _words(way):
                    return way
    return ""


def _judge_list(way: str, old: tuple[str, ...], new: tuple[str, ...], *, is_new: bool) -> str:
    added = list((Counter(new) - Counter(old)).elements())
    removed = list((Counter(old) - Counter(new)).elements())
    if way == "stages":
        added, removed = [stage for stage in added if stage == "manual"], []
    parts = [f"- {_few(removed)}"] if removed and way != "loose" else []
    if added and (way in ("loose", "stages") or not (way or is_new)):
        parts.append(f"+ {_few(added)}")
    return "; ".join(parts)


def _cut(value: str | None) -> str:
    if value is None:
        return "(not set)"
    text = " ".join(value.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _few(values: list[str]) -> str:
    return first_few([_cut(value) for value in values], _SHOWN)
