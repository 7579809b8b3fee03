"""The types of values that only advice has."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

from gitgates.config.values import (
    FILLED,
    BadValue,
    ValueType,
    is_filled,
    is_number,
    is_whole,
    parse_duration,
)

_LONGEST_SLUG = 60
_LONGEST_TITLE = 500
_LONGEST_HOOK_COMMAND = 1000


def slug(title: str) -> str:
    """Return the id of an advice with this title: its words without accents.

    A title in another script has none; its id is a checksum.
    """
    import unicodedata  # advice that was added by a verb has an id
    import zlib

    letters = unicodedata.normalize("NFKD", title.casefold())
    words = re.findall(r"[a-z0-9]+", "".join(c for c in letters if not unicodedata.combining(c)))
    if title and not re.search("[a-z]", "".join(words)):
        words.append(f"{zlib.crc32(title.encode('utf-8', 'replace')):08x}")
    return "-".join(words)[:_LONGEST_SLUG].strip("-")


def _advice_id(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[\w.-]{1,100}", value, re.ASCII):
        raise BadValue("at most 100 letters, digits, `.`, `_` and `-`")
    return value


def _line(value: object) -> str:
    if not isinstance(value, str) or not value.strip() or not value.isprintable():
        raise BadValue("text on one line that is not empty")
    return value.strip()


def _title(value: object) -> str:
    title = _line(value)
    if len(title) > _LONGEST_TITLE:
        raise BadValue(f"at most {_LONGEST_TITLE} characters")
    return title


def _priority(value: object) -> int:
    if not is_whole(value) or not 0 <= value <= 4:  # noqa: PLR2004 - as it says
        raise BadValue("a whole number from 0, the highest, to 4")
    return value


def _time(value: object) -> str:
    expected = 'a time such as "2026-01-31T12:00:00Z"'
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        raise BadValue(expected) from None
    if isinstance(found, date) and not isinstance(found, datetime):
        found = datetime(found.year, found.month, found.day)  # noqa: DTZ001 - below
    if not isinstance(found, datetime):
        raise BadValue(expected)
    found = found if found.tzinfo else found.replace(tzinfo=UTC)
    try:
        return found.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        raise BadValue(expected) from None


def _hook_command(value: object) -> str:
    if not is_filled(value) or len(value) > _LONGEST_HOOK_COMMAND:
        most = f"{_LONGEST_HOOK_COMMAND:,}"
        raise BadValue(f"a shell command in quotes, of at most {most} characters")
    return value


def _hook_timeout(value: object) -> float:
    expected = "from 1 to 300 seconds, or 0 for the default of 30"
    if is_number(value) and not value:
        return 30.0
    try:
        seconds = parse_duration(value)
    except BadValue:
        raise BadValue(expected) from None
    if not 1 <= seconds <= 300:  # noqa: PLR2004 - as it says
        raise BadValue(expected)
    return seconds


ADVICE_ID = ValueType(_advice_id, {"type": "string", "pattern": r"^[A-Za-z0-9_.-]{1,100}$"})
TITLE = ValueType(_title, {**FILLED, "maxLength": _LONGEST_TITLE})
PRIORITY = ValueType(_priority, {"type": "integer", "minimum": 0, "maximum": 4})
TIME = ValueType(_time, FILLED)
TARGET = ValueType(_line, FILLED)
HOOK_COMMAND = ValueType(_hook_command, {**FILLED, "maxLength": _LONGEST_HOOK_COMMAND})
HOOK_TIMEOUT = ValueType(
    _hook_timeout, {"anyOf": [{"type": "number", "minimum": 0, "maximum": 300}, FILLED]}, "_s"
)
