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

_LEAST_MINUTES, _MOST_MINUTES = 0.1, 7 * 24 * 60
_EXAMPLE = 'Try [[tasks]] with id = "fix-login" and prompt = "…".'


class QueueTask(Record):
    """One task of a queue. None: as the options of the command, or the configuration, say."""

    id: str
    prompt: str
    branch: str
    message: str | None = None
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
    if not v.is_number(value) or not _LEAST_MINUTES <= value <= _MOST_MINUTES:
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
    """Return the tasks of a file. Raises: ConfigError with all that is wrong."""
    try:
        with open(path, encoding="utf-8") as file:
            document = parse_toml(file.read())
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}", _EXAMPLE) from error
    problems, tasks = list[str](), list[QueueTask]()
    for name in document.keys() - {"tasks"}:
        problems.append(f"{path}: {name}: unknown key. {v.did_you_mean(name, ('tasks',))}")
    tables = document.get("tasks")
    if not isinstance(tables, list) or not tables:
        got = f"got {v.show(tables)}, " if "tasks" in document else ""
        problems.append(f"{path}: tasks: {got}expected an array of tables. {_EXAMPLE}")
        tables = []
    for number, table in enumerate(tables):
        location = f"{path}: tasks[{number}]"
        wrong, fields = _read(location, table, os.path.dirname(path))
        problems += wrong
        if not wrong:
            fields.setdefault("branch", f"headless/{fields['id']}")
            task = QueueTask(**fields)
            problems += [text for other in tasks for text in _conflicts(location, task, other)]
            tasks.append(task)
    if problems:
        raise ConfigError("\n".join(problem.rstrip() for problem in problems))
    return tuple(tasks)


def _read(location: str, table: object, folder: str) -> tuple[list[str], dict[str, Any]]:
    """Return what is wrong with a table, and its values; `prompt_file` is read into `prompt`."""
    if not isinstance(table, dict):
        return [f"{location}: got {v.show(table)}, expected a table. {_EXAMPLE}"], {}
    problems: list[str] = []
    fields: dict[str, Any] = {}
    for name, value in table.items():
        if name not in _TYPES:
            hint = v.did_you_mean(name, tuple(_TYPES))
            problems.append(f"{location}.{name}: unknown key. {hint}")
            continue
        try:
            fields[name] = _TYPES[name].parse(value)
        except v.BadValue as bad:
            got = f"got {v.show(bad.part_of(value))}, expected {bad.expected}. {bad.hint}"
            problems.append(f"{location}.{name}{bad.index}: {got}")
    if "prompt" in table and "prompt_file" in table:
        problems.append(f"{location}: has both `prompt` and `prompt_file`; remove one")
    if name := fields.pop("prompt_file", ""):
        try:
            with open(os.path.join(folder, name), encoding="utf-8-sig") as file:
                fields["prompt"] = _filled(file.read().strip())
        except OSError as error:
            problems.append(f"{location}.prompt_file: {name}: {error.strerror}")
        except (UnicodeDecodeError, v.BadValue):
            problems.append(f"{location}.prompt_file: {name}: is empty or not UTF-8, expected text")
    has = {"prompt" if name == "prompt_file" else name for name in table}
    problems += [f"{location}: has no `{name}`" for name in ("id", "prompt") if name not in has]
    return problems, fields


def _conflicts(location: str, task: QueueTask, other: QueueTask) -> list[str]:
    """Return what two tasks cannot both have; git has no branch `x` beside `x/y`."""
    if task.id.casefold() == other.id.casefold():
        return [f"{location}.id: `{task.id}` is defined twice"]
    longer, shorter = sorted((f"{it.branch.casefold()}/" for it in (task, other)), reverse=True)
    if not longer.startswith(shorter):
        return []
    conflict = f"{task.branch} conflicts with {other.branch}, the branch of `{other.id}`"
    return [f"{location}.branch: {conflict}"]
