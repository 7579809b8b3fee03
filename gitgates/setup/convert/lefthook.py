"""Convert the jobs of lefthook; say of each key that has no counterpart why."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.record import Record
from gitgates.setup.convert.globs import NoPatternError, from_doublestar, from_gobwas
from gitgates.setup.convert.manager_files import ManagerFiles, ManagerJob, name_of, only_set
from gitgates.setup.convert.node import HOOKS
from gitgates.setup.values import table, tables, texts

with open(os.path.join(os.path.dirname(__file__), "lefthook.toml"), "rb") as _file:
    KEYS: dict[str, dict[str, Any]] = tomllib.load(_file)

FILES = tuple(
    f"{dot}lefthook.{ext}"
    for dot in ("", ".", ".config/")
    for ext in ("yml", "yaml", "toml", "json")
)
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
# Of these, the paths are those of the commit or the push.
_ABOUT_FILES = ("pre-commit", "pre-merge-commit", "pre-push")


class _NoGateError(Exception):
    """A job that a gate cannot express; the text says why."""


class _HookSource(Record):
    """The hook that has a job, and the whole file."""

    file: str
    hook: str
    settings: dict[str, Any]
    options: dict[str, Any]
    notes: list[str]

    def note(self, place: str, why: str) -> None:
        """Note what is not converted, and why."""
        self.notes.append(f"{self.file}: {self.hook}: {place}: {why}")

    def globs(self, value: object) -> list[str]:
        """Return patterns for globs. Raises: NoPatternError."""
        usual = self.settings.get("glob_matcher") == "doublestar"
        translate = from_doublestar if usual else from_gobwas
        return [pattern for glob in texts(value) if glob for pattern in translate(glob)]


def settings_of(project: ManagerFiles) -> tuple[str, dict[str, Any]]:
    """Return the first file of lefthook, and what it says. Raises: UsageError."""
    file = next(filter(project.has, FILES), "")
    return file, project.load(file) if file else {}


def find(project: ManagerFiles, notes: list[str]) -> list[ManagerJob]:
    """Return the jobs in the order in which they run; note what is left out.

    Raises: UsageError.
    """
    file, settings = settings_of(project)
    for name in texts(settings.get("extends")):
        settings = _merged(project.load(name), settings)
        if not project.has(name):
            notes.append(f"{file}: extends: {name} is not a file of the repository")
    notes += [f"{file}: {why}" for why in _reasons("top", settings, ("", *HOOK_POINTS))]
    jobs = []
    for hook in HOOKS:
        source = _HookSource(file, hook, settings, table(settings, hook), notes)
        notes += [f"{file}: {hook}: {why}" for why in _reasons("hook", source.options)]
        if not _LEFT_OUT & source.options.keys() and source.options.get("skip") is not True:
            jobs += [job for entry in _in_order(source) for job in _converted(entry, source)]
    return jobs


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    merged = {**base, **over}
    for key in base.keys() & over.keys():
        if isinstance(base[key], dict) and isinstance(over[key], dict):
            merged[key] = _merged(base[key], over[key])
        elif key == "jobs":
            names = {job.get("name") for job in tables(over[key])} - {None}
            kept = [job for job in tables(base[key]) if job.get("name") not in names]
            merged[key] = [*kept, *tables(over[key])]
    return merged


def _reasons(
    kind: str, settings: dict[str, Any], ignored: tuple[str, ...] = ("",)
) -> Iterator[str]:
    """Yield why keys are not converted."""
    for key, value in settings.items():
        why = KEYS[kind].get(key, "" if key in ignored else "unknown, so it is not converted")
        if key == "skip" and isinstance(value, bool):
            why = "it never runs" if value else ""
        if why and kind == "top" and isinstance(value, dict) and key not in KEYS[kind]:
            why = "only `lefthook run` runs it; for gates by hand, there is the hook `manual`"
        if why:
            yield f"{key}: {why}"


def _in_order(source: _HookSource) -> Iterator[dict[str, Any]]:
    """Yield the jobs of a hook, those of groups among them, as lefthook runs them."""
    yield from _flat(tables(source.options.get("jobs")), source)
    for kind, key in (("scripts", "script"), ("commands", "name")):
        entries = table(source.options.get(kind)).items()
        jobs = [{"name": name, **table(entry), key: name} for name, entry in entries]
        yield from jobs if source.options.get("parallel") else sorted(jobs, key=_rank)


def _rank(job: dict[str, Any]) -> tuple[float, list[tuple[int, str]]]:
    priority = job.get("priority") or float("inf")
    parts = re.split(r"(\d+)", str(job["name"]))
    natural = [(int(part) if part.isdigit() else 0, part) for part in parts]
    return (priority if isinstance(priority, int | float) else float("inf"), natural)


def _flat(jobs: list[dict[str, Any]], source: _HookSource) -> Iterator[dict[str, Any]]:
    for job in jobs:
        group = table(job.get("group"))
        if not group:
            yield job
            continue
        for why in _reasons("group", group):
            source.note(str(job.get("name") or "a group"), why)
        inherited = {key: job[key] for key in _INHERITED if key in job}
        inherited |= {"root": group["root"]} if "root" in group else {}
        for each in tables(group.get("jobs")):
            env = {**table(job.get("env")), **table(each.get("env"))}
            yield from _flat([{**inherited, **each, "env": env}], source)


def _converted(entry: dict[str, Any], source: _HookSource) -> Iterator[ManagerJob]:
    """Yield the job, if a gate can express it."""
    place = str(entry.get("name") or entry.get("run") or entry.get("script") or "a job")
    tags = {tag.strip() for tag in ",".join(texts(entry.get("tags"))).split(",")}
    reasons = list(_reasons("job", entry))
    left_out = [why for why in reasons if why.partition(":")[0] in _LEFT_OUT]
    if tags & {*texts(source.options.get("exclude_tags"))}:
        source.note(place, "its hook excludes its tags")
    elif left_out:
        source.note(place, f"{'; '.join(left_out)}; create a gate for it by hand")
    elif entry.get("skip") is True:
        source.note(place, "skip: it never runs")
    else:
        try:
            job = _job(entry, source)
        except (_NoGateError, NoPatternError) as error:
            source.note(place, f"{error}; create a gate for it by hand")
            return
        for why in reasons:
            source.note(place, why)
        if "git add" in str(job.keys["command"]):
            source.note(place, "its `git add` fails the gate; `restage` stages what it fixes")
        yield job


def _job(entry: dict[str, Any], source: _HookSource) -> ManagerJob:
    """Return a job as a gate has it. Raises: _NoGateError, NoPatternError."""
    run, takes_arguments = _command(entry, source)
    restages = bool(entry.get("stage_fixed")) or bool(_ADDS.search(run))
    run = _ADDS.sub("", run)
    places = {name for _quote, name in _PLACE.findall(run)}
    numbers = {name for name in places if name.isdigit()}
    if why := next((_UNKNOWN_PLACES[name] for name in places if name in _UNKNOWN_PLACES), ""):
        raise _NoGateError(why)
    takes_paths = bool(places - numbers)
    if takes_paths and (numbers or takes_arguments):
        raise _NoGateError("a gate gets the paths, or the arguments of the hook, not both")
    command = _PLACE.sub(lambda match: _argument(match[2]), run)
    if takes_paths and command.count('"$@"') == 1:
        command = command.removesuffix(' "$@"')
    is_stdin_alone = entry.get("use_stdin") and not numbers and not takes_arguments
    timeout = str(entry.get("timeout") or "")
    if timeout and not _DURATION.fullmatch(timeout):
        raise _NoGateError("its `timeout` is not understood")
    root = str(entry.get("root") or "").strip("/").removeprefix("./")
    keys = only_set(
        description=entry.get("fail_text", ""),
        # A text would get the hook's arguments as well.
        command=["sh", "-c", command] if is_stdin_alone else command,
        **_selection(entry, root, source, always=takes_paths),
        working_dir="" if root == "." else root,
        timeout=timeout,
        env={name: str(value) for name, value in table(entry.get("env")).items()},
        pass_files=takes_paths,
        pass_hook_input=bool(numbers or takes_arguments or entry.get("use_stdin")),
        writes=restages,
        restage=restages and source.hook == "pre-commit",
    )
    name = entry.get("name") if entry.get("name") != entry.get("script") else ""
    in_order = not source.options.get("parallel")
    return ManagerJob(str(name or name_of(run)), (source.hook,), keys, "lefthook", in_order)


def _command(entry: dict[str, Any], source: _HookSource) -> tuple[str, bool]:
    """Return what a job runs, and whether it gets the hook's arguments. Raises: _NoGateError."""
    run, script = entry.get("run"), entry.get("script")
    takes_arguments = False
    if isinstance(script, str) and not isinstance(run, str):
        folder = str(source.settings.get("source_dir") or ".lefthook").strip("/")
        path = f"{folder.removeprefix('./')}/{source.hook}/{script}"
        run = f"{entry.get('runner') or ''} {path}".lstrip()
        takes_arguments = "args" not in entry and source.hook != "pre-commit"
    if not isinstance(run, str) or not run.strip():
        raise _NoGateError("it has no `run`")
    run = f"{run.strip()} {entry.get('args') or ''}".strip()
    fixed = {"lefthook_job_name": entry.get("name"), **table(source.settings.get("templates"))}
    for name, text in fixed.items():
        run = run.replace(f"{{{name}}}", str(text or ""))
    return run.strip(), takes_arguments


def _argument(name: str) -> str:
    return f'"${name}"' if name.isdigit() and name != "0" else '"$@"'


def _selection(
    entry: dict[str, Any], root: str, source: _HookSource, *, always: bool
) -> dict[str, object]:
    """Return which files a job is about. Raises: _NoGateError, NoPatternError."""
    if source.hook not in _ABOUT_FILES and not always:
        return {}  # there, lefthook looks at globs only where the command is given files
    types = {"types": KEYS["file_types"], "types_or": KEYS["one_of"]}
    file_types = texts(entry.get("file_types"))
    if unknown := [name for name in file_types if not any(name in tags for tags in types.values())]:
        raise _NoGateError(f"`file_types` has `{unknown[0]}`, which `types` does not know")
    excluded = [*texts(source.options.get("exclude")), *texts(entry.get("exclude"))]
    return {
        "files": _below(root, source.globs(entry.get("glob"))),
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
