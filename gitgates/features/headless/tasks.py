"""The tasks of a queue: a TOML file with `[[tasks]]`, read as settings are. Cold."""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib

from gitgates.config import values as v
from gitgates.config.keys import Key, Table
from gitgates.config.load import refuse
from gitgates.config.read import Document, Settings, read_array
from gitgates.core.errors import ConfigError
from gitgates.core.limits import parse_toml
from gitgates.core.record import Record
from gitgates.core.types import Problem
from gitgates.hosts.headless import CLIENTS

_EXAMPLE = 'Try [[tasks]] with id = "fix-login" and prompt = "…".'
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


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


TASK_KEYS: tuple[Key, ...] = (
    Key("id", v.ValueType(_id, {"type": "string"})).meaning("Its name in reports. Required."),
    Key("prompt", v.TEXT).meaning("What to do."),
    Key("prompt_file", v.TEXT).meaning("File with the prompt, relative to the task file."),
    Key("branch", v.TEXT).meaning("The branch to create. Default: `headless/ID`."),
    Key("message", v.TEXT).meaning("The commit message. Default: the prompt."),
    Key("agent", v.one_of(*CLIENTS)).meaning("The agent to use."),
    Key("agent_args", v.NAMES).meaning("Additional arguments for its client."),
    Key("max_retries", v.COUNT).meaning("How many times failures are sent back to the agent."),
    Key("max_cost", v.AMOUNT).meaning("Maximum cost in US dollars."),
    Key("budget_minutes", v.AMOUNT).meaning("Time limit for all turns of the agent."),
)
_TABLE = Table(
    name="tasks",
    keys=TASK_KEYS,
    meaning="",
    example='id = "fix-login" and prompt = "…".',
    id_of=lambda table: str(table.get("id", "")),
    needed=("id",),
)


def read_tasks(path: str) -> tuple[QueueTask, ...]:
    """Return the tasks of a file. Raises: ConfigError with all that is wrong."""
    try:
        with open(path, encoding="utf-8") as file:
            document = Document(path, (), parse_toml(file.read()))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: is not valid TOML: {error}", _EXAMPLE) from error
    settings, problems = Settings(document, {}, {}), list[Problem]()
    for name in document.table.keys() - {_TABLE.name}:
        hint = v.did_you_mean(name, (_TABLE.name,))
        problems.append(Problem(document.location(name), "unknown key", hint))
    read_array(settings, _TABLE, problems)
    tasks = settings.tables_of(_TABLE.name)
    if not (tasks or problems):
        problems.append(Problem(path, "has no [[tasks]]", _EXAMPLE))
    for name, fields in tasks.items():
        place = document.location(_TABLE.name, name)
        if file_name := fields.pop("prompt_file", ""):
            try:
                prompt_file = os.path.join(os.path.dirname(path), file_name)
                with open(prompt_file, encoding="utf-8-sig") as file:
                    fields["prompt"] = file.read().strip()
            except (OSError, UnicodeDecodeError) as error:
                problems.append(Problem(f"{place}.prompt_file", f"{file_name}: {error}"))
        if not fields.get("prompt", "").strip():
            problems.append(Problem(place, "has no `prompt`"))
        fields.setdefault("branch", f"headless/{name}")
    refuse(tuple(problems), "")
    return tuple(QueueTask(**fields) for fields in tasks.values())
