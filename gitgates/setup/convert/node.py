"""Convert the scripts of husky and simple-git-hooks, and the commands of lint-staged."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gitgates.core.lifecycle import GIT_HOOKS
from gitgates.core.record import Record
from gitgates.setup.convert.globs import expand
from gitgates.setup.convert.manager_files import ManagerFiles, ManagerJob, name_of, only_set
from gitgates.setup.task_files import table, texts

HOOKS = tuple(point.name for point in GIT_HOOKS if point.client)
LINT_STAGED = (".lintstagedrc", *(f".lintstagedrc.{ext}" for ext in ("json", "yaml", "yml")))
PACKAGE = "package.json"
_BY_HAND = "is not read; create gates for it by hand"
# A command that contains any of this is not plain.
_NOT_PLAIN = re.compile(
    r"[;|&<>()`\\]|\$(?!1\b|\{1\})|^\w+=\S*$"
    r"|^(?:if|for|while|case|until|function|exec|export|cd|set|source|exit|\.|\[)(?:\s|$)"
)
_IGNORED = re.compile(r"""#|set -e\w*$|\. .*husky\.sh|exit 0$|(?:echo|printf)\b[^>|&;]*$|$""")
_PARAMETER = re.compile(r"""(?<!["'\w])\$\{?1\}?(?!["'\w])""")
_CALLS_LINT_STAGED = re.compile(r"(?:^|[\s/])(?:lint|nano)-staged(?:\s|$)")
_OTHER_SETTINGS = re.compile(r"\s(?:-c|--config|--cwd)\b")
_STAGES = re.compile(r"-staged\b|\bgit add\b")
# A package manager's lock file → how the manager starts a program in node_modules.
_STARTS = {"pnpm-lock.yaml": "pnpm exec", "yarn.lock": "yarn", "bun.lock": "bunx"}


class Script(Record):
    """A hook's script."""

    manager: str
    hook: str
    source: str  # the file, or the key in package.json
    body: str


def find(project: ManagerFiles, notes: list[str]) -> list[ManagerJob]:
    """Return a job for each command in the scripts, or one for a script that is not plain.

    Raises: UsageError.
    """
    jobs: list[ManagerJob] = []
    for script in _scripts(project):
        commands = _commands(script.body)
        if not all(map(_is_plain, commands)):
            jobs.append(_whole(script))
            continue
        for command in commands:
            jobs += _converted(command, script, project, notes)
    if "staged" not in " ".join(notes) and not any(job.keys.get("restage") for job in jobs):
        jobs += lint_staged(project, Script("", "pre-commit", "", ""), notes)
    return jobs


def _scripts(project: ManagerFiles) -> Iterator[Script]:
    """Yield the scripts of all hooks. Raises: UsageError."""
    simple = table(project.load(PACKAGE), "simple-git-hooks")
    for hook in HOOKS:
        if isinstance(body := simple.get(hook), str):
            source = f"{PACKAGE}: simple-git-hooks.{hook}"
            yield Script("simple-git-hooks", hook, source, body)
        if body := project.text(f".husky/{hook}"):
            yield Script("husky", hook, f".husky/{hook}", body)


def _commands(body: str) -> list[str]:
    """Return the commands in a script that can fail, except those that start gitgates."""
    lines = (line.strip() for line in body.replace("\r", "").replace("\\\n", " ").split("\n"))
    parts = (p.strip() for line in lines if line[:1] != "#" for p in line.split("&&"))
    return [part for part in parts if not _IGNORED.match(part) and "gitgates" not in part]


def _is_plain(command: str) -> bool:
    is_quoted = all(command.count(quote) % 2 == 0 for quote in "'\"")
    return is_quoted and not _NOT_PLAIN.search(command)


def _job(name: str, script: Script, **keys: object) -> ManagerJob:
    return ManagerJob(name, (script.hook,), only_set(**keys), script.manager, in_order=True)


def _whole(script: Script) -> ManagerJob:
    is_commit = script.hook == "pre-commit"
    stages = is_commit and bool(_STAGES.search(script.body))
    call = f'PATH="$PWD/node_modules/.bin:$PATH" sh -e {script.source}'
    command = call if script.manager == "husky" else script.body.strip()
    keys = {"command": command, "pass_hook_input": not is_commit}
    return _job(f"{script.manager}-{script.hook}", script, **keys, writes=stages, restage=stages)


def _converted(
    command: str, script: Script, project: ManagerFiles, notes: list[str]
) -> list[ManagerJob]:
    """Return a script's command as a job, or the jobs of lint-staged if it runs that."""
    run = table(project.load(PACKAGE), "scripts").get(command.rsplit(maxsplit=1)[-1], "")
    text = f"{command} {run}"  # the last word may name a script
    if _CALLS_LINT_STAGED.search(text):
        jobs = [] if _OTHER_SETTINGS.search(text) else lint_staged(project, script, notes)
        if not jobs:
            notes.append(f"{script.source}: {command}: its configuration {_BY_HAND}")
        return jobs
    line = _PARAMETER.sub('"$1"', command)
    name = script.hook if script.hook.endswith("-msg") else name_of(command)
    return [_job(name, script, command=_started(line, project), pass_hook_input='"$' in line)]


def lint_staged(project: ManagerFiles, script: Script, notes: list[str]) -> list[ManagerJob]:
    """Return a job for each list of commands that lint-staged runs. Raises: UsageError."""
    source, patterns = f"{PACKAGE}: lint-staged", table(project.load(PACKAGE), "lint-staged")
    for name in filter(project.has, LINT_STAGED):
        source, patterns = name, project.load(name)
    files_of: dict[tuple[str, ...], list[str]] = {}
    for glob, value in patterns.items():
        commands = tuple(c.strip() for c in texts(value) if not c.strip().startswith("git add"))
        globs = expand(glob.removeprefix("./"))
        if commands and not any(set(pattern) & set("!()|") for pattern in globs):
            files_of.setdefault(commands, []).extend(globs)
        else:
            notes.append(f"{source}: {glob}: {_BY_HAND}")
    jobs = []
    for commands, globs in files_of.items():
        started = [_started(command, project) for command in commands]
        command = started[0] if len(started) == 1 else " && ".join(f'{c} "$@"' for c in started)
        files = [] if globs == ["*"] else list(dict.fromkeys(globs))
        name = name_of(commands[0]) if len(files_of) > 1 else "lint-staged"
        keys = {"command": command, "files": files, "pass_files": True}
        # lint-staged stages whatever a command changes.
        jobs.append(_job(name, script, **keys, writes=True, restage=True))
    return jobs


def _started(command: str, project: ManagerFiles) -> str:
    """Return a command that finds programs in node_modules, as its manager does."""
    program, package = command.split(maxsplit=1)[0], project.load(PACKAGE)
    is_local = program in {**table(package, "devDependencies"), **table(package, "dependencies")}
    if not (is_local or project.has(f"node_modules/.bin/{program}")):
        return command
    starts = (start for lock, start in _STARTS.items() if project.has(lock))
    return f"{next(starts, 'npx --no-install')} {command}"
