"""Convert the commands, jobs and scripts of lefthook; note each key that has no counterpart."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.setup.convert.globs import NoPatternError, from_doublestar, from_gobwas
from gitgates.setup.convert.manager_files import ManagerFiles, ManagerJob, name_of, only_set
from gitgates.setup.convert.node import HOOKS
from gitgates.setup.install.managers import BY_NAME
from gitgates.setup.task_files import table, tables, texts

with open(os.path.join(os.path.dirname(__file__), "lefthook.toml"), "rb") as _file:
    KEYS: dict[str, dict[str, Any]] = tomllib.load(_file)

FILES = tuple(name for name in BY_NAME["lefthook"].settings if not name.endswith(".jsonc"))
_LEFT_OUT = frozenset(KEYS["left_out"]["keys"])
_PLACE = re.compile(r"""(["']?)\{(staged_files|push_files|all_files|files|cmd|\d)\}\1""")


class _NoGateError(Exception):
    """A job that no gate can express; the text says why."""


def find(project: ManagerFiles, notes: list[str]) -> list[ManagerJob]:
    """Return the jobs in the order in which they run; note what is left out. Raises: UsageError."""
    file = next(filter(project.has, FILES), "")
    settings = project.load(file) if file else {}
    notes += [f"{file}: {why}" for why in _reasons("top", settings, HOOK_POINTS)]
    jobs = []
    for hook in HOOKS:
        options = table(settings, hook)
        notes += [f"{file}: {hook}: {why}" for why in _reasons("hook", options, {})]
        if _LEFT_OUT & options.keys() or options.get("skip") is True:
            continue
        for entry in _in_order(options):
            is_left_out = bool(_LEFT_OUT & entry.keys())
            reasons = [f"{'left out: ' * is_left_out}{why}" for why in _reasons("job", entry, {})]
            try:
                if not is_left_out and entry.get("skip") is not True:
                    jobs.append(_job(entry, hook, settings))
            except (_NoGateError, NoPatternError) as error:
                reasons = [f"left out: {error}"]
            place = str(entry.get("name") or entry.get("run") or "a job")
            notes += [f"{file}: {hook}: {place}: {why}" for why in reasons]
    return jobs


def _reasons(kind: str, settings: dict[str, Any], known: Mapping[str, object]) -> Iterator[str]:
    """Yield the keys that are not converted, and why."""
    for key, value in settings.items():
        why = KEYS[kind].get(key, "" if key in known else "unknown, so it is not converted")
        if key == "skip" and isinstance(value, bool):
            why = "it never runs" if value else ""
        if why:
            yield f"{key}: {why}"


def _in_order(options: dict[str, Any]) -> list[dict[str, Any]]:
    """Return a hook's jobs in lefthook's order."""
    jobs = tables(options.get("jobs"))
    for kind, key in (("scripts", "script"), ("commands", "name")):
        entries = table(options, kind)
        commands = [{"name": name, **table(entries, name), key: name} for name in entries]
        jobs += sorted(commands, key=lambda job: (float(job.get("priority") or "inf"), job["name"]))
    return jobs


def _job(entry: dict[str, Any], hook: str, settings: dict[str, Any]) -> ManagerJob:
    """Return a job as a gate. Raises: _NoGateError, NoPatternError."""
    run = _run(entry, hook, settings)
    restages = bool(entry.get("stage_fixed"))
    if "git add" in run:
        raise _NoGateError("its `git add` would fail the gate; `restage` stages what it fixes")
    places = {name for _quote, name in _PLACE.findall(run)}
    if why := next(filter(None, (KEYS["places"].get(name) for name in places)), ""):
        raise _NoGateError(why)
    numbers = {name for name in places if name.isdigit()}
    takes_paths = bool(places - numbers)
    if takes_paths and numbers:
        raise _NoGateError("a gate gets the paths, or the arguments of the hook, not both")
    timeout = str(entry.get("timeout") or "")
    if re.sub(r"[\d.]+[hms]?", "", timeout):
        raise _NoGateError("its `timeout` is not understood")
    command = _PLACE.sub(lambda m: f'"${m[2]}"' if m[2] in {*"123"} else '"$@"', run)
    if takes_paths and command.count('"$@"') == 1:
        command = command.removesuffix(' "$@"')
    options = table(settings, hook)
    root = os.path.normpath(str(entry.get("root") or "").strip("/"))
    is_doublestar = settings.get("glob_matcher") == "doublestar"
    translate = from_doublestar if is_doublestar else from_gobwas
    excluded = (*texts(options.get("exclude", [])), *texts(entry.get("exclude", [])))
    files = [pattern for glob in texts(entry.get("glob", [])) for pattern in translate(glob)]
    keys = only_set(
        description=entry.get("fail_text", ""),
        # A text would also get the hook's arguments.
        command=["sh", "-c", command] if entry.get("use_stdin") and not numbers else command,
        files=_below(root, files),
        exclude=[pattern for glob in excluded for pattern in translate(glob)],
        working_dir="" if root == "." else root,
        timeout=timeout,
        env={name: str(value) for name, value in table(entry, "env").items()},
        pass_files=takes_paths,
        pass_hook_input=bool(numbers or entry.get("use_stdin")),
        writes=restages,
        restage=restages and hook == "pre-commit",
    )
    name = "" if entry.get("script") else entry.get("name")
    in_order = not options.get("parallel")
    return ManagerJob(str(name or name_of(run)), (hook,), keys, "lefthook", in_order)


def _run(entry: dict[str, Any], hook: str, settings: dict[str, Any]) -> str:
    """Return a job's command, with its templates filled in. Raises: _NoGateError."""
    run, arguments = str(entry.get("run") or ""), entry.get("args") or ""
    if script := entry.get("script"):
        folder = str(settings.get("source_dir") or ".lefthook").strip("/").removeprefix("./")
        run = f"{entry.get('runner') or ''} {folder}/{hook}/{script}"
        arguments = arguments or ("{0}" if hook != "pre-commit" else "")
    fixed = {"lefthook_job_name": entry.get("name"), **table(settings, "templates")}
    run = f"{run} {arguments}".strip()
    for name, text in fixed.items():
        run = run.replace(f"{{{name}}}", str(text or ""))
    if not run:
        raise _NoGateError("it has no `run`")
    return run


def _below(root: str, patterns: list[str]) -> list[str]:
    """Return patterns that select only files in a folder; those of whole paths stay."""
    if root == ".":
        return patterns
    inner = [pattern.lstrip("/").removeprefix("*/").removeprefix("**/") for pattern in patterns]
    return [p if p.startswith(f"{root}/") else f"{root}/**/{p}" for p in inner] or [f"{root}/"]
