"""Convert the local hooks of the pre-commit framework; what needs the framework stays its own."""

from __future__ import annotations

import os
import re
import shlex
import tomllib
from typing import Any

from gitgates.core.record import Record
from gitgates.engine.command import uses_arguments
from gitgates.setup.discover.globs import UntranslatableError, from_regex
from gitgates.setup.discover.managers import PRE_COMMIT, framework_runner, stage_of
from gitgates.setup.discover.project import Project, Task, tables, texts
from gitgates.setup.discover.words import is_fixing

with open(os.path.join(os.path.dirname(__file__), "framework.toml"), "rb") as _file:
    KEYS = tomllib.load(_file)

# Where a gate can run the framework: see engine/command.py.
_SERVED = ("pre-commit", "pre-merge-commit", "pre-push", "commit-msg", "prepare-commit-msg")
_NOTHING = ("", "^$")  # expressions that hooks have by default


class _Kept(Exception):
    """A hook that stays the framework's; the text says why."""


class _Split(Record):
    """Which hooks become gates, and which stay the framework's."""

    tasks: list[Task]
    kept: list[dict[str, Any]]
    place: int  # of those that stay, among the tasks
    notes: list[str]

    @property
    def names(self) -> set[str]:
        """Return all that `SKIP` would skip of the hooks that stay."""
        return {str(hook.get(key)) for hook in self.kept for key in ("id", "alias")}


def find(project: Project, notes: list[str]) -> list[Task]:
    """Return a gate for each local hook, and one for all others, in order. Raises: BadFile."""
    settings = project.load(PRE_COMMIT)
    taken: set[str] = set()
    split = _split(settings, taken)
    while not split.names <= taken:  # a hook that stays may have the name of one that does not
        taken |= split.names
        split = _split(settings, taken)
    tasks, place = split.tasks, split.place
    notes += split.notes
    hooks = dict.fromkeys(name for hook in split.kept for name in _hooks(hook, settings))
    if served := [name for name in hooks if name in (*_SERVED, "manual")]:
        tasks.insert(place, _framework(project, served, tasks))
    if others := [name for name in hooks if name not in (*_SERVED, "manual")]:
        what = "no gate runs pre-commit there; keep its own hook"
        notes.append(f"{PRE_COMMIT}: {', '.join(others)}: {what}")
    return tasks


def _split(settings: dict[str, Any], taken: set[str]) -> _Split:
    """Convert the local hooks, but those of which the id is `taken` by one that stays."""
    tasks: list[Task] = []
    kept: list[dict[str, Any]] = []
    notes: list[str] = []
    place = 0
    for repo in tables(settings.get("repos")):
        for hook in tables(repo.get("hooks")):
            if "gitgates" in str(hook.get("id")):
                continue
            try:
                if repo.get("repo") == "local":
                    tasks.append(_task(hook, settings, notes, taken))
                    continue
            except (_Kept, UntranslatableError, ValueError) as error:
                notes.append(f"{PRE_COMMIT}: {hook.get('id')}: stays pre-commit's: {error}")
            place = place if kept else len(tasks)
            kept.append(hook)
    return _Split(tasks, kept, place, notes)


def _framework(project: Project, hooks: list[str], tasks: list[Task]) -> Task:
    runner = framework_runner(project)
    skipped = ",".join(task.name for task in tasks)
    return Task(
        name="pre-commit",
        command="",
        source=PRE_COMMIT,
        description=f"The other hooks of {PRE_COMMIT}" if tasks else f"The hooks of {PRE_COMMIT}",
        hooks=tuple(hooks),
        manager=runner,
        keys={
            "pre-commit": True,
            "writes": True,  # its fixers may
            **({"runner": runner} if runner != "pre-commit" else {}),
            **({"env": {"SKIP": skipped}} if tasks else {}),
        },
    )


def _task(
    hook: dict[str, Any], settings: dict[str, Any], notes: list[str], taken: set[str]
) -> Task:
    """Return the gate for a local hook. Raises: _Kept, UntranslatableError, ValueError."""
    name = str(hook.get("id") or "hook")
    kind = KEYS["languages"].get(str(hook.get("language")))
    if kind is None:
        raise _Kept(f"`language: {hook.get('language')}` needs its environment")
    words = [*shlex.split(str(hook.get("entry") or "")), *map(str, texts(hook.get("args")))]
    if not words:
        raise _Kept("it has no `entry`")
    if kind == "script" and not words[0].startswith(("/", "./")):
        words[0] = f"./{words[0]}"
    passes, always = hook.get("pass_filenames", True), bool(hook.get("always_run"))
    if passes and always:
        raise _Kept("`always_run` with file names: a gate that is given no paths does not run")
    text = shlex.join(words)
    command: str | list[str] = words if passes and uses_arguments(text) else text
    selection = {} if always else _selection(hook, settings)
    if name in taken or "," in name:
        raise _Kept("`SKIP` would skip other hooks with its `id`")
    reasons = {key: KEYS["hook"].get(key, "unknown, so it is not converted") for key in hook}
    notes += [f"{PRE_COMMIT}: {name}: {key}: {why}" for key, why in reasons.items() if why]
    keys = {
        "command": command,
        **{key: value for key, value in selection.items() if value},
        **({"pass_files": True} if passes else {}),
        **({"writes": True} if is_fixing(text) else {}),
    }
    label = str(hook.get("description") or hook.get("name") or "")
    return Task(
        name=name,
        command=text,
        source=f"{PRE_COMMIT}: {name}",
        body=text,
        description="" if label == name else label,
        hooks=_hooks(hook, settings),
        manager="pre-commit",
        in_order=bool(settings.get("fail_fast")),
        keys=keys,
    )


def _selection(hook: dict[str, Any], settings: dict[str, Any]) -> dict[str, list[str]]:
    """Return which files a hook is about. Raises: _Kept, UntranslatableError."""
    expressions = [
        str(part["files"]) for part in (hook, settings) if str(part.get("files") or "") != ""
    ]
    excluded = [
        str(part["exclude"])
        for part in (settings, hook)
        if re.sub(r"\s", "", str(part.get("exclude") or "")) not in _NOTHING
    ]
    if len(expressions) > 1:
        raise _Kept("its `files` and those of the whole file have to match both")
    return {
        "files": [pattern for expression in expressions for pattern in from_regex(expression)],
        "exclude": [pattern for expression in excluded for pattern in from_regex(expression)],
        "types": [
            *(tag for tag in texts(hook.get("types", [])) if tag != "file"),
            *(f"!{tag}" for tag in texts(hook.get("exclude_types", []))),
        ],
        "types_or": [*texts(hook.get("types_or", []))],
    }


def _hooks(hook: dict[str, Any], settings: dict[str, Any]) -> tuple[str, ...]:
    """Return the hooks of git, or `manual`, in which a hook of the framework runs."""
    stages = texts(hook.get("stages", [])) or texts(settings.get("default_stages", []))
    installed = texts(settings.get("default_install_hook_types", [])) or ("pre-commit",)
    return tuple(dict.fromkeys(stage_of(stage) for stage in stages or installed))
