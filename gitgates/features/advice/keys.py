"""The array of tables `[[tool.gitgates.advice]]`, and its own types of values."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.config.values import (
    FILLED,
    BadValue,
    ValueType,
    is_filled,
    is_number,
    is_whole,
    parse_duration,
)
from gitgates.core.types import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from gitgates.config.read import Settings
    from gitgates.core.types import Config

_NAME = "advice"

_LONGEST_SLUG = 60
_LONGEST_TITLE = 500
_LONGEST_HOOK_COMMAND = 1000


def slug(title: str) -> str:
    """Return the id for an advice title: its words without accents.

    A title in a non-Latin script has no such words; its id is a checksum.
    """
    import unicodedata  # not needed for advice added by a verb, which has an id
    import zlib

    letters = unicodedata.normalize("NFKD", title.casefold())
    words = re.findall(r"[a-z0-9]+", "".join(c for c in letters if not unicodedata.combining(c)))
    if title and not re.search("[a-z]", "".join(words)):
        words.append(f"{zlib.crc32(title.encode('utf-8', 'replace')):08x}")
    return "-".join(words)[:_LONGEST_SLUG].strip("-")


def _id(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[\w.-]{1,100}", value, re.ASCII):
        raise BadValue("1 to 100 letters, digits, `.`, `_` and `-`")
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
        time = datetime.fromisoformat(value if isinstance(value, str) else str(value))
        time = time if time.tzinfo else time.replace(tzinfo=UTC)
        return time.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except (ValueError, OverflowError):
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


_ID = ValueType(_id, {"type": "string", "pattern": r"^[A-Za-z0-9_.-]{1,100}$"})
_TITLE = ValueType(_title, {**FILLED, "maxLength": _LONGEST_TITLE})
_PRIORITY = ValueType(_priority, {"type": "integer", "minimum": 0, "maximum": 4})
_TIME = ValueType(_time, FILLED)
_TARGET = ValueType(_line, FILLED)
_HOOK_COMMAND = ValueType(_hook_command, {**FILLED, "maxLength": _LONGEST_HOOK_COMMAND})
_HOOK_TIMEOUT = ValueType(
    _hook_timeout, {"anyOf": [{"type": "number", "minimum": 0, "maximum": 300}, FILLED]}, "_s"
)

_KEYS = (
    Key("id", _ID, missing="").meaning(
        "Its name, unique in all files. Unset: derived from the title."
    ),
    Key("title", _TITLE, missing="").meaning("The advice in one line."),
    Key("description", v.TEXT, '""').meaning("Details for the reader."),
    Key(
        "status",
        v.one_of("open", "pinned", "closed", "tombstone"),
        '"open"',
        weaker=("tombstone", "closed"),
    ).meaning("`closed` and `tombstone` advice is neither shown to agents nor run."),
    Key("priority", _PRIORITY, "2").meaning("From 0 (highest) to 4."),
    Key("created_at", _TIME, missing="").meaning(
        "When it was created, such as `2026-01-31T12:00:00Z`. Within a priority, the oldest "
        "comes first."
    ),
    Key("rig", _TARGET, weaker="any", missing="").meaning("The rig that it is for. Unset: any."),
    Key("role", _TARGET, weaker="any", missing="").meaning("The role that it is for. Unset: any."),
    Key("agent", _TARGET, weaker="any", missing="").meaning(
        "The agent that it is for. Unset: any."
    ),
    Key("hook_command", _HOOK_COMMAND, weaker="any", missing="").meaning(
        "A shell command of at most 1,000 characters, run at the trigger. Unset: it is "
        "guidance shown to agents."
    ),
    Key(
        "hook_trigger",
        v.one_of("session-end", "before-commit", "before-push", "before-handoff"),
        weaker="any",
        missing="",
    ).meaning("When the command runs."),
    Key("hook_timeout", _HOOK_TIMEOUT, "30", weaker="sharply").meaning(
        "Its time limit, from 1 to 300 seconds; 0: 30 seconds."
    ),
    Key(
        "hook_on_failure", v.one_of("block", "warn", "ignore"), '"warn"', weaker=("ignore", "warn")
    ).meaning(
        "`block`: the action is prevented. `warn`: the failure is reported. `ignore`: it is "
        "only recorded."
    ),
)

# Keys that only make sense beside `hook_command`.
_OF_COMMAND = ("hook_trigger", "hook_timeout", "hook_on_failure")


def id_of(table: Mapping[str, Any]) -> str:
    """Return an advice entry's id: its own, or one derived from its title; empty without either."""
    try:
        return str(_ID.parse(table["id"]))
    except (BadValue, KeyError):
        return slug(str(table.get("title", "")))


def _validate(config: Config, settings: Settings) -> Iterator[Problem]:
    for advice in config.tables.get(_NAME, ()):
        path = (_NAME, advice["id"])
        written = [key for key in _KEYS if (*path, key.field) in settings.origins]
        of_hook = [key.field for key in written if key.name.startswith("hook_")]
        if "hook_command" in of_hook and "hook_trigger" not in of_hook:
            hint = "Add one: session-end, before-commit, before-push or before-handoff."
            location = settings.location(*path)
            yield Problem(location, "has a `hook_command` but no `hook_trigger`", hint)
        for field in of_hook if "hook_command" not in of_hook else ():
            location = settings.location(*path, field=field)
            yield Problem(location, "requires `hook_command`")


TABLE = Table(
    name=_NAME,
    keys=_KEYS,
    meaning="Guidance for agents, and commands that run as hooks of their work: one table per "
    "entry. `gitgates advice` writes them.",
    example='title = "Run the tests".',
    validate=_validate,
    id_of=id_of,
    needed=("title",),
    schema={
        "required": ["title"],
        "dependencies": {
            "hook_command": ["hook_trigger"],
            **{key: ["hook_command"] for key in _OF_COMMAND},
        },
    },
)
