"""The tasks of a queue: a TOML file with `[[tasks]]`, read value by value. Cold.

All problems are reported at once, each with its place.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib

from gitgates.config import values as v
from gitgates.config.keys import Key
from gitgates.core.errors import ConfigError
from gitgates.core.limits import parse_toml
from gitgates.core.record import Record
from gitgates.hosts.headless import CLIENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LONGEST_BYTES = 4 << 20
_SHORTEST_MINUTES = 0.1
_LONGEST_MINUTES = 7 * 24 * 60
_EXAMPLE = 'Try [[tasks]] with id = "fix-login" and prompt = "…".'


class QueueTask(Record):
    """One task of a queue. None: as the options of the command, or the configuration, say."""

    id: str
    prompt: str
    branch: str
    message: str = ""
    agent: str | None = None
    agent_args: tuple[str, ...] | None = None
    max_retries: int | None = None
    max_cost: float | None = None
    budget_minutes: float | None = None

    @property
    def digest(self) -> str:
        """A digest of the whole definition: another one is another task."""
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()


def _id(value: object) -> str:
    if not isinstance(value, str) or not _ID.fullmatch(value):
        raise v.BadValue(
            "1 to 64 letters, digits, `-`, `_` and `.`, starting with a letter or digit"
        )
    return value


def _filled(value: object) -> str:
    if not v.is_filled(value):
        raise v.BadValue("text")
    return value


def _minutes(value: object) -> float:
    if not v.is_number(value) or not _SHORTEST_MINUTES <= value <= _LONGEST_MINUTES:
        raise v.BadValue("minutes, at least 0.1 and at most one week")
    return float(value)


_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TEXT = v.ValueType(_filled, {"type": "string"})
TASK_KEYS: tuple[Key, ...] = (
    Key("id", v.ValueType(_id, {"type": "string"})).means("Its name in reports. Required."),
    Key("prompt", _TEXT).means("What to do."),
    Key("prompt_file", _TEXT).means("File with the prompt, relative to the task file."),
    Key("branch", _TEXT).means("The branch to create. Default: `headless/ID`."),
    Key("message", _TEXT).means("The commit message. Default: the prompt."),
    Key("agent", v.one_of(*CLIENTS)).means("The agent to use."),
    Key("agent_args", v.NAMES).means("Additional arguments for its client."),
    Key("max_retries", v.COUNT).means("How many times failures are sent back to the agent."),
    Key("max_cost", v.AMOUNT).means("Maximum cost in US dollars."),
    Key("budget_minutes", v.ValueType(_minutes, {"type": "number"})).means(
        "Time limit for all turns of the agent."
    ),
)
_TYPES = {key.name: key.type for key in TASK_KEYS}


def read_tasks(path: str) -> tuple[QueueTask, ...]:
    """Return the tasks of a file.

    Raises: ConfigError with all that is wrong.
    """
    try:
        with open(path, "rb") as file:
            content = file.read(_LONGEST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    if len(content) > _LONGEST_BYTES:
        raise ConfigError(f"{path}: is longer than {_LONGEST_BYTES >> 20} MiB")
    try:
        document = parse_toml(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}", _EXAMPLE) from error
    problems: list[str] = []
    tasks = _tasks(path, document, problems)
    if problems:
        raise ConfigError("\n".join(problems))
    return tuple(tasks)


def _tasks(path: str, document: dict[str, Any], problems: list[str]) -> list[QueueTask]:
    tables = document.get("tasks")
    for name in document.keys() - {"tasks"}:
        hint = v.did_you_mean(name, ("tasks",))
        problems.append(f"{path}: {name}: unknown key. {hint}".rstrip())
    if not isinstance(tables, list) or not tables:
        got = f"got {v.show(tables)}, expected" if "tasks" in document else "expected"
        problems.append(f"{path}: tasks: {got} an array of tables. {_EXAMPLE}")
        return []
    tasks: list[QueueTask] = []
    for number, table in enumerate(tables):
        location = f"{path}: tasks[{number}]"
        if not isinstance(table, dict):
            problems.append(f"{location}: got {v.show(table)}, expected a table. {_EXAMPLE}")
            continue
        before = len(problems)
        fields = _fields(location, table, problems)
        _read_prompt(location, fields, os.path.dirname(path), problems)
        has = {"prompt" if name == "prompt_file" else name for name in table}
        problems += [f"{location}: has no `{name}`" for name in ("id", "prompt") if name not in has]
        if len(problems) == before:
            fields.setdefault("branch", f"headless/{fields['id']}")
            tasks.append(QueueTask(**fields))
            problems += _twice(location, tasks)
    return tasks


def _fields(location: str, table: dict[str, Any], problems: list[str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in table.items():
        if name not in _TYPES:
            hint = v.did_you_mean(name, tuple(_TYPES))
            problems.append(f"{location}.{name}: unknown key. {hint}".rstrip())
            continue
        try:
            fields[name] = _TYPES[name].parse(value)
        except v.BadValue as bad:
            got = v.show(bad.part_of(value))
            text = f"{location}.{name}{bad.index}: got {got}, expected {bad.expected}. {bad.hint}"
            problems.append(text.rstrip())
    return fields


def _read_prompt(location: str, fields: dict[str, Any], folder: str, problems: list[str]) -> None:
    """Put the content of `prompt_file` in the place of `prompt`."""
    if "prompt_file" not in fields:
        return
    if "prompt" in fields:
        problems.append(f"{location}: has both `prompt` and `prompt_file`; remove one")
    name = fields.pop("prompt_file")
    try:
        with open(os.path.join(folder, name), "rb") as file:
            fields["prompt"] = _filled(file.read(_LONGEST_BYTES).decode("utf-8-sig").strip())
    except OSError as error:
        problems.append(f"{location}.prompt_file: {name}: {error.strerror}")
    except UnicodeDecodeError:
        problems.append(f"{location}.prompt_file: {name}: is not valid UTF-8, expected text")
    except v.BadValue:
        problems.append(f"{location}.prompt_file: {name}: is empty, expected text")


def _twice(location: str, tasks: list[QueueTask]) -> list[str]:
    *earlier, last = tasks
    return [
        f"{location}.{name}: `{getattr(last, name)}` is defined twice"
        for name in ("id", "branch")
        if any(getattr(task, name).casefold() == getattr(last, name).casefold() for task in earlier)
    ]
