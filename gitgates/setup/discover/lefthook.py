"""Convert the jobs of lefthook to tasks; say of each key that has no counterpart why."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.record import Record
from gitgates.setup.discover.globs import UntranslatableError, from_doublestar, from_gobwas
from gitgates.setup.discover.project import Project, Task, is_inside, table, tables, texts
from gitgates.setup.discover.words import DATA, is_fixing, lines_of, name_of

with open(os.path.join(os.path.dirname(__file__), "lefthook.toml"), "rb") as _file:
    KEYS: dict[str, dict[str, Any]] = tomllib.load(_file)

FILES = tuple(DATA["managers"]["lefthook"].split())
_LEFT_OUT = frozenset(KEYS["left_out"]["keys"])
_INHERITED = ("glob", "exclude", "root", "env", "skip", "only", "tags")
_DURATION = re.compile(r"(?=.)(?:\d+h)?(?:\d+m)?(?:\d+(?:\.\d+)?s)?")
_PLACE = re.compile(r"""(["']?)\{(staged_files|push_files|all_files|files|cmd|\d)\}\1""")
_UNKNOWN_PLACES = {
    "all_files": "a gate gets the changed paths; name the folders in its command",
    "files": KEYS["job"]["files"],
    "cmd": "it stands for a command of another file",
}
_ADDS = re.compile(r"\s*(?:&&|;|\n)\s*git add (?:--? ?)?(?:\{staged_files\}|\.|-u)\s*$")
_NUMBER = re.compile(r"(\d+)")
# Of these, the paths are those of the commit or the push.
_ABOUT_FILES = ("pre-commit", "pre-merge-commit", "pre-push")


class _Untold(Exception):
    """A job that a gate cannot express; the text says why."""


class _Source(Record):
    """Where jobs stand, and what their hook says of all of them."""

    file: str
    hook: str
    settings: dict[str, Any]
    options: dict[str, Any]
    notes: list[str]

    def note(self, place: str, why: str) -> None:
        """Note what is not converted, and why."""
        self.notes.append(f"{self.file}: {self.hook}: {place}: {why}")

    def globs(self, value: object) -> list[str]:
        """Return patterns for globs. Raises: UntranslatableError."""
        usual = self.settings.get("glob_matcher") == "doublestar"
        translate = from_doublestar if usual else from_gobwas
        return [pattern for glob in texts(value) if glob for pattern in translate(glob)]


def find(
    project: Project, notes: list[str], hooks: tuple[str, ...], settings_notes: list[str]
) -> list[Task]:
    """Return the jobs of some hooks, in the order in which they run; note what is left out.

    `settings_notes`: those on settings of lefthook itself.

    Raises: BadFile.
    """
    file = next((name for name in FILES if name in project.texts), "")
    settings = _with_extended(project, file, notes) if file else {}
    other_hooks = (name for name in settings if name in HOOK_POINTS and name not in hooks)
    settings_notes += [
        f"{file}: {why}" for why in _reasons("top", settings, ("", *hooks, *other_hooks))
    ]
    tasks = []
    for hook in hooks:
        source = _Source(file, hook, settings, table(settings, hook), notes)
        left_out = _LEFT_OUT & source.options.keys()
        notes += [f"{file}: {hook}: {why}" for why in _reasons("hook", source.options)]
        if not left_out and source.options.get("skip") is not True:
            tasks += [task for job in _in_order(source) for task in _converted(job, source)]
    return tasks


def extended_files(project: Project) -> tuple[str, ...]:
    """Return the files of the repository that the configuration takes in."""
    file = next((name for name in FILES if name in project.texts), "")
    return texts(project.load(file).get("extends")) if file else ()


def _with_extended(project: Project, file: str, notes: list[str]) -> dict[str, Any]:
    settings = project.load(file)
    extended: dict[str, Any] = {}
    for name in texts(settings.get("extends")):
        if name in project.texts and is_inside(name):
            extended = _merged(extended, project.load(name))
        else:
            notes.append(f"{file}: extends: {name} is not a file of the repository")
    return _merged(extended, settings)


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = {**base, **over}
    for key in base.keys() & over.keys():
        if isinstance(base[key], dict) and isinstance(over[key], dict):
            merged[key] = _merged(base[key], over[key])
        elif key == "jobs" and isinstance(base[key], list) and isinstance(over[key], list):
            names = {job.get("name") for job in tables(over[key])} - {None}
            merged[key] = [job for job in tables(base[key]) if job.get("name") not in names]
            merged[key] += over[key]
    return merged


def _reasons(kind: str, found: dict[str, Any], ignored: tuple[str, ...] = ("",)) -> Iterator[str]:
    """Yield why keys are not converted."""
    for key, value in found.items():
        why = KEYS[kind].get(key, "" if key in ignored else "unknown, so it is not converted")
        if key == "skip" and isinstance(value, bool):
            why = "it never runs" if value else ""
        if why and kind == "top" and isinstance(value, dict) and key not in KEYS[kind]:
            why = "only `lefthook run` runs it; for gates by hand, there is the hook `manual`"
        if why:
            yield f"{key}: {why}"


def _in_order(source: _Source) -> Iterator[dict[str, Any]]:
    """Yield the jobs of a hook, those of groups among them, as lefthook runs them."""
    yield from _flat(tables(source.options.get("jobs")), source)
    for kind in ("scripts", "commands"):
        entries = table(source.options.get(kind)).items()
        names = "script" if kind == "scripts" else "name"
        jobs = [{"name": name, **table(entry), names: name} for name, entry in entries]
        yield from jobs if source.options.get("parallel") else sorted(jobs, key=_rank)


def _rank(job: dict[str, Any]) -> tuple[float, list[tuple[int, str]]]:
    priority = job.get("priority") or float("inf")
    parts = _NUMBER.split(str(job["name"]))
    natural = [(int(part) if part.isdigit() else 0, part) for part in parts]
    return (priority if isinstance(priority, int | float) else float("inf"), natural)


def _flat(jobs: list[dict[str, Any]], source: _Source) -> Iterator[dict[str, Any]]:
    for job in jobs:
        inner = tables(table(job.get("group")).get("jobs"))
        inherited = {key: job[key] for key in _INHERITED if key in job}
        inherited |= {key: job["group"][key] for key in ("root",) if key in table(job.get("group"))}
        if inner:
            for key in _reasons("group", table(job.get("group"))):
                source.note(str(job.get("name") or "a group"), key)
            env = {"env": {**table(job.get("env"))}}
            merged = (
                {**inherited, **each, "env": {**env["env"], **table(each.get("env"))}}
                for each in inner
            )
            yield from _flat(list(merged), source)
        else:
            yield job


def _converted(job: dict[str, Any], source: _Source) -> Iterator[Task]:
    """Yield the task for a job, if a gate can express it."""
    place = str(job.get("name") or job.get("run") or job.get("script") or "a job")
    tags = {tag.strip() for entry in texts(job.get("tags")) for tag in entry.split(",")}
    if tags & {*texts(source.options.get("exclude_tags"))}:
        source.note(place, "its hook excludes its tags")
        return
    reasons = list(_reasons("job", job))
    if left_out := [why for why in reasons if why.partition(":")[0] in _LEFT_OUT]:
        source.note(place, f"{'; '.join(left_out)}; create a gate for it by hand")
        return
    if job.get("skip") is True:
        source.note(place, "skip: it never runs")
        return
    try:
        task = _task(job, place, source)
    except (_Untold, UntranslatableError) as error:
        source.note(place, f"{error}; create a gate for it by hand")
        return
    for why in reasons:
        if not why.startswith("tags:"):
            source.note(place, why)
        elif (note := f"{source.file}: {why}") not in source.notes:  # once for all jobs
            source.notes.append(note)
    is_free = source.options.get("fail_on_changes", "never") != "always"
    if "git add" in task.body:
        source.note(place, "its `git add` fails the gate; `restage` stages what it fixes")
    elif task.keys.get("writes") and not task.keys.get("restage") and is_free:
        source.note(place, "lefthook ignores what it changes; as a gate, a change blocks")
    yield task


def _task(job: dict[str, Any], place: str, source: _Source) -> Task:
    """Return a job as a task. Raises: _Untold, UntranslatableError."""
    run, takes_arguments = _command(job, source)
    restages = bool(job.get("stage_fixed")) or bool(_ADDS.search(run))
    run = _ADDS.sub("", run)
    places = {name for _quote, name in _PLACE.findall(run)}
    numbers = {name for name in places if name.isdigit()}
    if why := next((_UNKNOWN_PLACES[name] for name in places if name in _UNKNOWN_PLACES), ""):
        raise _Untold(why)
    takes_paths = bool(places - numbers)
    if takes_paths and (numbers or takes_arguments):
        raise _Untold("a gate gets the paths, or the arguments of the hook, not both")
    command: object = _PLACE.sub(lambda match: _argument(match[2]), run)
    if takes_paths and str(command).count('"$@"') == 1:
        command = str(command).removesuffix(' "$@"')
    if job.get("use_stdin") and not numbers and not takes_arguments:
        command = ["sh", "-c", command]  # a text would get the hook's arguments as well
    root = str(job.get("root") or "").strip("/").removeprefix("./")
    keys = {
        "description": job.get("fail_text", ""),
        **_selection(job, root, source, always=takes_paths),
        "working_dir": "" if root == "." else root,
        "timeout": _timeout(job),
        "env": {name: str(value) for name, value in table(job.get("env")).items()},
        "pass_files": takes_paths,
        "pass_hook_input": bool(numbers or takes_arguments or job.get("use_stdin")),
        "writes": restages or any(map(is_fixing, lines_of(run))),
        "restage": restages and source.hook == "pre-commit",
    }
    name = job.get("name") if job.get("name") != job.get("script") else ""
    return Task(
        name=str(name or name_of(run)),
        command=str(command),
        source=f"{source.file}: {source.hook}: {place}",
        body=str(command),
        hooks=(source.hook,),
        manager="lefthook",
        keys={
            **({"command": command} if isinstance(command, list) else {}),
            **{name: value for name, value in keys.items() if value},
        },
        in_order=not source.options.get("parallel"),
    )


def _command(job: dict[str, Any], source: _Source) -> tuple[str, bool]:
    """Return what a job runs, and whether it gets the hook's own arguments. Raises: _Untold."""
    run, script = job.get("run"), job.get("script")
    takes_arguments = False
    if isinstance(script, str) and not isinstance(run, str):
        folder = str(source.settings.get("source_dir") or ".lefthook").strip("/")
        path = f"{folder.removeprefix('./')}/{source.hook}/{script}"
        run = f"{job.get('runner') or ''} {path}".lstrip()
        takes_arguments = "args" not in job and source.hook != "pre-commit"
    if not isinstance(run, str) or not run.strip():
        raise _Untold("it has no `run`")
    run = " ".join(part for part in (run.strip(), str(job.get("args") or "").strip()) if part)
    fixed = {"lefthook_job_name": job.get("name") or "", **table(source.settings.get("templates"))}
    for name, text in fixed.items():
        run = run.replace(f"{{{name}}}", str(text if text is not None else ""))
    return run.strip(), takes_arguments


def _argument(name: str) -> str:
    return f'"${name}"' if name.isdigit() and name != "0" else '"$@"'


def _selection(
    job: dict[str, Any], root: str, source: _Source, *, always: bool
) -> dict[str, object]:
    """Return which files a job is about. Raises: _Untold, UntranslatableError."""
    if source.hook not in _ABOUT_FILES and not always:
        return {}  # there, lefthook looks at globs only where the command is given files
    types = {"types": KEYS["file_types"], "types_or": KEYS["one_of"]}
    file_types = texts(job.get("file_types"))
    if unknown := [name for name in file_types if not any(name in tags for tags in types.values())]:
        raise _Untold(f"`file_types` has `{unknown[0]}`, which `types` does not know")
    excluded = [*texts(source.options.get("exclude")), *texts(job.get("exclude"))]
    return {
        "files": _below(root, source.globs(job.get("glob"))),
        "exclude": source.globs(excluded),
        **{
            key: list(dict.fromkeys(tags[name] for name in file_types if name in tags))
            for key, tags in types.items()
        },
    }


def _below(root: str, patterns: list[str]) -> list[str]:
    """Return patterns for what is in a folder as well; those of whole paths stay."""
    if root in ("", "."):
        return patterns
    below = []
    for pattern in patterns:
        body = pattern.removeprefix("*/").removeprefix("**/")
        is_open = "/" not in body.rstrip("/") and not pattern.startswith("/")
        below.append(f"{root}/**/{body}" if is_open or body != pattern else pattern)
    return below or [f"{root}/"]


def _timeout(job: dict[str, Any]) -> str:
    text = str(job.get("timeout") or "")
    if text and not _DURATION.fullmatch(text):
        raise _Untold("its `timeout` is not understood")
    return text
