"""Parsers of one value each: TOML in, our value out, or a `BadValue` that says what fits."""

from __future__ import annotations

import json
import re

from gitgates.clean import visible_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class BadValue(Exception):
    """A value that does not fit: what was expected, and what to write instead."""

    def __init__(self, expected: str, hint: str = "", entry: int | None = None) -> None:
        super().__init__(expected)
        self.expected = expected
        self.hint = hint
        self.entry = entry  # which one of an array does not fit


_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")
_SIZE = re.compile(r"(\d{1,15})\s*(B|KiB|MiB|KB|MB|k|M)?", re.IGNORECASE)
_UNITS = {"": 1, "b": 1, "kib": 1024, "k": 1024, "mib": 1024**2, "m": 1024**2, "kb": 1000}
_UNITS["mb"] = 1000**2
_LONGEST_SHOWN = 60
# A wait of more than 24 days is more than poll(2) can count in milliseconds.
_LONGEST_S = 7 * 24 * 3600.0
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
        case _:  # numbers and times: Python says them as TOML does
            return _number(value)


def _number(value: object) -> str:
    try:
        return str(value)
    except ValueError:  # Python does not write out whole numbers of thousands of digits
        return "a number of thousands of digits"


def duration(value: object) -> float:
    """Parse a positive time: a number of seconds, or text such as `30s`, `2m`, `1h30m`."""
    hint = 'Try timeout = "30s".'
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = min(value, _LONGEST_S + 1)
    elif isinstance(value, str) and (match := _DURATION.fullmatch(value.replace(" ", ""))):
        hours, minutes, rest = (float(part or 0) for part in match.groups())
        seconds = hours * 3600 + minutes * 60 + rest
    else:
        raise BadValue('seconds or "30s"', hint)
    if not 0 < seconds <= _LONGEST_S:  # nan is neither
        raise BadValue("a time above zero, and at most a week", hint)
    return float(seconds)


def size(value: object) -> int:
    """Parse a number of bytes above zero: a number, or text such as `64 KiB`, `1 MiB`."""
    count = 0
    if isinstance(value, int) and not isinstance(value, bool):
        count = value
    elif isinstance(value, str) and (match := _SIZE.fullmatch(value.strip())):
        count = int(match[1]) * _UNITS[(match[2] or "").lower()]
    if count <= 0:
        raise BadValue('bytes above zero, or "64 KiB", "1 MiB"')
    return count


def count(value: object) -> int:
    """Parse a whole number from zero up."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadValue("a whole number, 0 or more")
    return value


def flag(value: object) -> bool:
    """Parse true or false."""
    if not isinstance(value, bool):
        raise BadValue("true or false, without quotes")
    return value


def text(value: object) -> str:
    """Parse one line or more of text."""
    if not isinstance(value, str):
        raise BadValue("text in quotes")
    return value


def one_of(*words: str) -> Callable[[object], str]:
    """Make a parser of one of some words."""

    def parse(value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise BadValue("one of " + ", ".join(words), did_you_mean(value, words))
        return value

    return parse


def action(value: object) -> str:
    """Parse CONTINUE, BLOCK, STOP, or what may be a gate's name."""
    if not isinstance(value, str) or not value.strip():
        raise BadValue("CONTINUE, BLOCK, STOP, or the name of a gate")
    return value


def names(value: object) -> tuple[str, ...]:
    """Parse an array of texts that are not empty."""
    if isinstance(value, str):
        raise BadValue("an array of texts", f"Try [{show(value)}].")
    if not isinstance(value, list):
        raise BadValue("an array of texts")
    for entry, item in enumerate(value):
        if not isinstance(item, str):
            raise BadValue("text in quotes", entry=entry)
        if not item.strip() or "\0" in item:
            raise BadValue("text that is not empty", entry=entry)
    return tuple(value)


def command(value: object) -> str | tuple[str, ...]:
    """Parse a command: text for the shell, or an array that is executed as it is."""
    if isinstance(value, str) and value.strip() and "\0" not in value:
        return value
    if isinstance(value, list) and value:
        for entry, item in enumerate(value):
            if not isinstance(item, str) or "\0" in item:
                raise BadValue("text in quotes, without a NUL", entry=entry)
        if not value[0].strip():
            raise BadValue("a program", entry=0)
        return tuple(value)
    raise BadValue("a shell command in quotes, or an array of a program and its arguments")


def pre_commit(value: object) -> tuple[str, ...] | None:
    """Parse `true` (all hooks), `false` (none), or an array of hook ids."""
    if isinstance(value, bool):
        return () if value else None
    if not isinstance(value, list) or not value:
        raise BadValue("true, or an array of hook ids", 'Try pre-commit = ["ruff", "mypy"].')
    return names(value)


def environment(value: object) -> tuple[tuple[str, str], ...]:
    """Parse a table of environment names and texts."""
    if not isinstance(value, dict):
        raise BadValue("a table of names and texts", 'Try env = { NAME = "value" }.')
    for name, content in value.items():
        if not name or "=" in name or "\0" in name:
            raise BadValue("environment names without `=`", f"{show(name)} cannot be one.")
        if not isinstance(content, str) or "\0" in content:
            simple = isinstance(content, int | float)
            text = show(content) if simple else "value"
            raise BadValue("texts as values", f'Try {visible_line(name)} = "{text}".')
    return tuple(value.items())


def folder(value: object) -> str:
    """Parse a folder inside the repository, relative to its root."""
    if isinstance(value, str) and value.strip() and "\0" not in value:
        parts = [part for part in value.replace("\\", "/").split("/") if part not in ("", ".")]
        if not value.startswith("/") and ".." not in parts:
            return "/".join(parts) or "."
    raise BadValue("a folder inside the repository, relative to its root")


def breaker(value: object) -> tuple[int, int]:
    """Parse the most blocks of a prompt and of a session: a table of two numbers above zero."""
    hint = "Try breaker = { prompt = 10, session = 30 }."
    if not isinstance(value, dict):
        raise BadValue("a table of the numbers `prompt` and `session`", hint)
    most = {"prompt": 10, "session": 30}
    for name, number in value.items():
        if name not in most:
            raise BadValue("only the keys `prompt` and `session`", hint)
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise BadValue("whole numbers, 1 or more", hint)
        most[name] = number
    return most["prompt"], most["session"]


def amount(value: object) -> float:
    """Parse a number from zero up."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= _MOST:
        return float(value)
    raise BadValue("a number from 0 to 1,000,000,000")


def weights(value: object) -> tuple[float, float, float]:
    """Parse how much code, tests and documentation count: a table of three numbers."""
    hint = "Try weights = { code = 1, tests = 0.5, documentation = 0.1 }."
    found = {"code": 1.0, "tests": 0.5, "documentation": 0.1}
    if not isinstance(value, dict) or any(name not in found for name in value):
        raise BadValue("a table with the keys `code`, `tests` and `documentation`", hint)
    for name, number in value.items():
        try:
            found[name] = amount(number)
        except BadValue:
            raise BadValue("numbers from 0 to 1,000,000,000", hint) from None
    return found["code"], found["tests"], found["documentation"]


def prefix(value: object) -> str:
    """Parse what a prompt begins with: one word, or nothing."""
    if isinstance(value, str) and ":" not in value and value.split() in ([], [value]):
        return value.strip()
    raise BadValue("one word without a colon, such as #review, or an empty text")


def agent_name(value: object) -> str:
    """Parse the name of one agent, or of a model."""
    is_word = isinstance(value, str) and len(value.split()) == 1 and value.isprintable()
    if isinstance(value, str) and is_word and not any(one in value for one in "*?|"):
        return value.strip()
    raise BadValue("one name, without spaces and patterns")


def failures(value: object) -> str:
    """Parse the name of a preset, or a regular expression."""
    if isinstance(value, str) and value.strip():
        try:
            re.compile(value)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadValue("a preset or a regular expression", f"Python says: {error}.") from None
        return value
    raise BadValue("a preset such as pytest or ruff, or a regular expression")


def patterns(value: object) -> tuple[str, ...]:
    """Parse an array of gitignore-style patterns."""
    if isinstance(value, str) and ("\\" in value or value[:1] == "^" or value[-1:] == "$"):
        # As other tools want it; as a pattern it would match nothing, and the gate be skipped.
        wanted = "an array of patterns as in .gitignore, not a regular expression"
        raise BadValue(wanted, 'Such as ["*.py", "src/"].')
    found = names(value)
    for entry, item in enumerate(found):
        if "\n" in item or not item.lstrip("!").strip("/"):
            raise BadValue("a pattern such as *.py or src/", entry=entry)
    return found


def did_you_mean(word: object, known: tuple[str, ...]) -> str:
    """Return `Did you mean X?` for the nearest of the known words, or nothing."""
    # Cold: only a configuration with a mistake in it pays for difflib.
    from difflib import get_close_matches

    if not isinstance(word, str):
        return ""
    by_fold = {item.casefold(): item for item in known}
    near = get_close_matches(word.casefold(), by_fold, n=1, cutoff=0.6)
    return f"Did you mean `{by_fold[near[0]]}`?" if near else ""
