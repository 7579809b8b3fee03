"""Commands of GitHub's workflows: they say how a project calls its tools, and that they pass."""

from __future__ import annotations

import re

from gitgates.discover.project import BadFile, Project, Task, table, tables, texts
from gitgates.discover.tools import resolve
from gitgates.discover.words import (
    JAVASCRIPT,
    PYTHON,
    is_fixing,
    kind_of,
    language_of,
    lines_of,
    program_of,
)

FOLDER = ".github/workflows"
_EVENTS = {"push", "pull_request"}
_OTHER = re.compile(r"release|publish|deploy|docs|nightly|fuzz|bench|wheel|cron", re.IGNORECASE)
# What a runner fills in, or what is about more than one command.
_NOT_PLAIN = re.compile(r"[$`|<>*(){}\\]|^\w+=|^(?:sudo|if|for|case|while)\b|--install|\bcodecov\b")
# Asks for something else, checks a part, or writes reports into the working tree.
_IN_PART = re.compile(
    r"--(?:version|help|bin|lib|package|doc|lf|target|directory|project|manifest-path|test|example"
    r"|features|no-default-features|collect-only|profile|release)\b|(?:^|\s)-[pkmC] |::"
    r"| version$|(?:xml|html|json|coverprofile)[=:]|--junit"
)
_BARE = re.compile(r"(?:python[\d.]*\s+-m\s+)?(?=[a-z])|npx\s+(?:--no-install\s+)?")


def workflows(project: Project) -> tuple[str, ...]:
    """Return the workflows that may check a change."""
    return tuple(
        name
        for name in sorted(project.names)
        if name.startswith(f"{FOLDER}/")
        and name.endswith((".yml", ".yaml"))
        and not _OTHER.search(name)
    )


def find(name: str, project: Project) -> list[Task]:
    """Return the commands of one workflow that are plain."""
    try:
        settings = project.load(name)
    except BadFile:
        return []  # it is GitHub's to complain
    events = table(settings).get("on", table(settings).get("True"))  # `on` is true in YAML
    if not _EVENTS & {*texts(events), *table(events)}:
        return []
    tasks = []
    for job in table(settings, "jobs").values():
        for step in tables(table(job).get("steps")):
            script = step.get("run")
            if not isinstance(script, str) or "working-directory" in step:
                continue
            found = (_task(line, name, project) for line in lines_of(script))
            tasks += [task for task in found if task]
    return tasks


def _task(line: str, source: str, project: Project) -> Task | None:
    """Return a line as a task; None for what is no check, or one of a part only."""
    program = program_of(line)
    kind = kind_of(program)
    if not kind or _NOT_PLAIN.search(line) or _IN_PART.search(line) or is_fixing(line):
        return None
    first = program.partition(" ")[0]
    scope = language_of(program)
    if first in ("tox", "nox"):
        return None  # their own files say more
    command, missing = line, ""
    if scope in (PYTHON, JAVASCRIPT):
        bare = line[found.end() :] if (found := _BARE.match(line)) else line
        if bare.startswith(first):
            line = bare
            bare = bare.replace("ruff check", "ruff check --no-fix")  # its settings may say `fix`
            command, missing = resolve(bare, scope, project)
    return Task(
        name=kind,
        command=command,
        source=source,
        scope=scope,
        body=line,
        missing=missing,
        is_ci=True,
    )
