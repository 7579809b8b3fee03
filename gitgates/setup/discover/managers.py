"""Find the commands of other hook managers: pre-commit, lefthook, husky, lint-staged.

Plain commands are taken over as gates, in the hooks where they run; what is not plain is named.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from gitgates.setup.discover.project import BadFile, Project, Task, is_inside, table, tables, texts
from gitgates.setup.discover.tools import load_or_empty, local_tool
from gitgates.setup.discover.words import DATA, is_fixing, kind_of, lines_of, name_of, program_of

HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "pre-push")
HUSKY = ".husky"
PRE_COMMIT = ".pre-commit-config.yaml"
_FILES = DATA["managers"]
_LEFTHOOK, _LINT_STAGED, _SIMPLE, _NAMED = (
    tuple(_FILES[key].split()) for key in ("lefthook", "lint_staged", "simple", "by_hand")
)
READS = (PRE_COMMIT, "package.json", *_LEFTHOOK, *_LINT_STAGED, *_SIMPLE)
_BY_HAND = "is not read; create gates for it by hand"
_OLD_STAGES = {"commit": "pre-commit", "push": "pre-push", "merge-commit": "pre-merge-commit"}

_CONTROL = re.compile(r"^(?:if|for|while|case|until|function|\w+ ?\(\)|[{(])|<<|\$\(|`|^exec\b")
_IGNORED = re.compile(r"""#|\. ["']?(?:\$\(dirname|\$0|\.husky)|set -|\. .*husky\.sh|exit 0$|$""")
_LINT_STAGED_CALL = re.compile(
    r"(?:(?:npx|bunx|pnpm|yarn|bun|npm)\s+(?:(?:exec|run|dlx|x|--?[\w-]+)\s+)*)?"
    r"(?:lint-staged|nano-staged)\b(?!-)"
)
_JOB_KEYS = frozenset(
    [
        "name",
        "run",
        "args",
        "glob",
        "exclude",
        "root",
        "env",
        "stage_fixed",
        "tags",
        "fail_text",
        "priority",
        "glob_matcher",
        "parallel",
        "timeout",
        "skip",
    ]
)
# `husky`, `husky install`, both with a folder or without one.
_HUSKY_CALL = re.compile(
    r"\bhusky(?:\s+install)?(?:\s+(?!install\b|-)([\w./-]+))?(?=\s*(?:$|[&|;]))"
)
_HUSKY_SCRIPTS = ("prepare", "postinstall", "install", "postprepare")
_INHERITED = ("glob", "exclude", "root", "env", "skip", "only", "tags")
_GO_DURATION = re.compile(r"(?:\d+h)?(?:\d+m)?(?:\d+(?:\.\d+)?s)?")
_MOST_BRACES = 6  # each makes as many patterns as it has parts
_BRACES = re.compile(r"\{([^{}]*)\}")
_MAYBE, _ANY = re.compile(r"\?\(([^()]*)\)"), re.compile(r"@\(([^()]*)\)")
_PLACE = re.compile(r"""["']?\{(staged_files|push_files|all_files|files|[0-9])\}["']?""")
_PARAMETER = re.compile(r"""(?<!["'\w])\$\{?1\}?(?!["'\w])""")


def find(project: Project) -> tuple[list[Task], list[str]]:
    """Return the gates for commands of hook managers, and notes on what cannot be converted."""
    tasks: list[Task] = []
    unread = sorted(name for name in project.names - {*READS} if name.startswith(_NAMED))
    notes = [f"{name}: {_BY_HAND}" for name in unread]
    for source in (_pre_commit, _lefthook, _node):
        try:
            tasks += source(project, notes)
        except BadFile as error:
            notes.append(str(error))
    return tasks, notes


def _pre_commit(project: Project, _notes: list[str]) -> list[Task]:
    if PRE_COMMIT not in project.texts:
        return []
    settings = project.load(PRE_COMMIT)
    repos = tables(settings.get("repos"))
    hooks = [hook for repo in repos for hook in tables(repo.get("hooks"))]
    if not hooks or any("gitgates" in str(hook.get("id")) for hook in hooks):
        return []
    default = texts(settings.get("default_stages"))
    stages = [texts(hook.get("stages")) or default for hook in hooks]
    named_hooks = {_OLD_STAGES.get(stage, stage) for names in stages for stage in names}
    usual = ("pre-commit", "pre-push", "manual")
    run = [hook for hook in usual if not all(stages) or hook in named_hooks]
    run += [hook for hook in HOOKS if hook in named_hooks and hook not in run]
    ids = _FILES["ids"]
    lines = [
        str(hook.get("entry") or ids.get(str(hook["id"]), hook["id"]))
        for hook in hooks
        if hook.get("id")
    ]
    uses_prek = any(
        re.search(r"\bprek\b", text)
        for name, text in project.texts.items()
        if name != PRE_COMMIT and not name.endswith(".lock")
    )
    return [
        Task(
            name="pre-commit",
            command="",
            source=PRE_COMMIT,
            body="\n".join((*lines, "pre-commit run")),
            description=f"The hooks of {PRE_COMMIT}",
            hooks=tuple(run),
            manager="prek" if uses_prek else "pre-commit",
            keys={"pre-commit": True, **({"runner": "prek"} if uses_prek else {})},
        )
    ]


def _lefthook(project: Project, notes: list[str]) -> list[Task]:
    name = next((name for name in _LEFTHOOK if name in project.texts), "")
    settings = project.load(name) if name else {}
    tasks = []
    elsewhere = [key for key in ("extends", "remotes", "remote") if key in settings]
    notes += [f"{name}: {key}: {_BY_HAND}" for key in elsewhere]
    for hook in HOOKS:
        options = table(settings, hook)
        jobs = [*_items(options.get("commands")), *_items(options.get("jobs"))]
        if options.get("scripts"):
            notes.append(f"{name}: {hook}.scripts: {_BY_HAND}")
        for job in jobs:
            location = f"{name}: {hook}: {job['name'] or job.get('run') or 'a job'}"
            if why_not := _why_not(job):
                notes.append(f"{location}: {why_not}; create a gate for it by hand")
            elif job.get("skip") is not True:
                tasks.append(_job(job, location, hook))
                notes += (
                    [f"{location}: its `skip`; the gate always runs"] if job.get("skip") else []
                )
    return tasks


def _why_not(job: dict[str, object]) -> str:
    """Return why a gate cannot express a job; empty if one can."""
    run = job.get("run")
    if not isinstance(run, str):
        return "it runs a `script`" if "script" in job else "it has no `run`"
    if strange := sorted(job.keys() - _JOB_KEYS):
        return f"gates do not support `{strange[0]}`"
    if _CONTROL.search(run):
        return "its `run` is more than a command"
    places = {*_PLACE.findall(run)}
    if "{" in _PLACE.sub("", run).replace("${", "") or {"all_files", "files"} & places:
        return "gates do not support this template"
    if not _GO_DURATION.fullmatch(str(job.get("timeout") or "1s")):
        return "its `timeout` is not understood"
    return ""


def _items(value: object) -> Iterator[dict[str, object]]:
    """Yield the commands or jobs of lefthook; a group's jobs inherit its patterns."""
    commands = [{**table(job), "name": name} for name, job in table(value).items()]
    for job in tables(value) or commands:
        inner = table(job.get("group")).get("jobs")
        inherited = {key: job[key] for key in _INHERITED if key in job}
        if inner:
            yield from _items([{**inherited, **table(inner_job)} for inner_job in inner])
        else:
            yield {"name": "", **job}


def _job(job: dict[str, object], location: str, hook: str) -> Task:
    """Return a job that a gate can express as a task."""
    run = " ".join(str(job[key]).strip() for key in ("run", "args") if job.get(key))
    places = {*_PLACE.findall(run)}
    root = str(job.get("root") or "").strip("/")
    globs = [part for glob in texts(job.get("glob")) for part in _expand(glob)]
    command = _PLACE.sub(lambda match: f'"${match[1]}"' if match[1].isdigit() else '"$@"', run)
    keys = _only_set(
        files=_below(root, globs),
        exclude=[part for glob in texts(job.get("exclude")) for part in _expand(glob)],
        working_dir=root,
        timeout=str(job.get("timeout") or ""),
        env={name: str(value) for name, value in table(job.get("env")).items()},
        pass_files=bool({"staged_files", "push_files"} & places),
        pass_hook_input=bool(places & set("0123456789")),
        writes=bool(job.get("stage_fixed")) or any(map(is_fixing, lines_of(command))),
        restage=bool(job.get("stage_fixed")),
    )
    return Task(
        name=str(job["name"] or name_of(command)),
        command=command.removesuffix(' "$@"') if "pass_files" in keys else command,
        source=location,
        body=command,
        hooks=(hook,),
        manager="lefthook",
        keys=keys,
    )


def _below(root: str, globs: list[str]) -> list[str]:
    """Return patterns for what is in a folder; a glob with a slash names its whole path already."""
    if not root:
        return globs
    prefixes = ("" if "/" in glob.removeprefix("**/") else f"{root}/**/" for glob in globs)
    patterns = [
        prefix + glob.removeprefix("**/" if prefix else "")
        for prefix, glob in zip(prefixes, globs, strict=True)
    ]
    return patterns or [f"{root}/"]


def _only_set(**keys: object) -> dict[str, object]:
    return {name: value for name, value in keys.items() if value}


def _node(project: Project, notes: list[str]) -> list[Task]:
    """Return what husky and simple-git-hooks run, lint-staged among it."""
    tasks = []
    for script in _scripts(project):
        lines = [line.strip() for line in script.body.replace("\r", "").split("\n")]
        lines = [line for line in lines if not _IGNORED.match(line) and "gitgates" not in line]
        if any(_CONTROL.search(line) for line in lines):
            notes.append(f"{script.source}: is a script; create gates for it by hand")
            continue
        parts = (part.strip() for line in lines for part in line.split("&&"))
        script_tasks = [
            task for part in parts if part for task in _of_line(part, script, project, notes)
        ]
        tasks += [task._replace(manager=script.manager) for task in script_tasks]
    return tasks


def _of_line(command: str, script: Task, project: Project, notes: list[str]) -> list[Task]:
    """Return the gates for one command of a hook."""
    scripts = table(load_or_empty(project, "package.json"), "scripts")
    run = scripts.get(command.rsplit(maxsplit=1)[-1])  # the last word may name a script
    if any(map(_LINT_STAGED_CALL.match, (command, run if isinstance(run, str) else ""))):
        return _lint_staged(script.name, project, notes)
    return [_command(command, script.name, script.source, project)]


def _scripts(project: Project) -> Iterator[Task]:
    """Yield the text of each hook of husky, simple-git-hooks and yorkie."""
    package = load_or_empty(project, "package.json")
    husky, simple = husky_folder(project), "simple-git-hooks"
    scripts = {hook: project.texts.get(f"{husky}/{hook}") for hook in HOOKS}
    sources = [(simple, f"{name}: ", project.load(name)) for name in _SIMPLE]
    sources += [
        (simple, "package.json: simple-git-hooks.", table(package, "simple-git-hooks")),
        ("husky 4", "package.json: husky.hooks.", table(package, "husky", "hooks")),
        ("yorkie", "package.json: gitHooks.", table(package, "gitHooks")),
        ("husky", f"{husky}/", scripts),
    ]
    for manager, prefix, hooks in sources:
        for hook in HOOKS:
            if isinstance(text := hooks.get(hook), str):
                yield Task(hook, "", f"{prefix}{hook}", body=text, manager=manager)


def husky_folder(project: Project) -> str:
    """Return the folder of husky's scripts: the one that a script of package.json names."""
    scripts = table(load_or_empty(project, "package.json"), "scripts")
    calls = (_HUSKY_CALL.search(str(scripts.get(name, ""))) for name in _HUSKY_SCRIPTS)
    folder = next((call[1] for call in calls if call and call[1]), HUSKY)
    return folder.removeprefix("./").rstrip("/")


def husky_files(project: Project) -> tuple[str, ...]:
    """Return the scripts that husky may have."""
    folder = husky_folder(project)
    return tuple(f"{folder}/{hook}" for hook in HOOKS) if is_inside(folder) else ()


def _command(line: str, hook: str, source: str, project: Project, /) -> Task:
    """Return one command of a hook as a gate."""
    command = _PARAMETER.sub('"$1"', line).replace("$HUSKY_GIT_PARAMS", '"$@"')
    return Task(
        name=hook if hook.endswith("-msg") else name_of(command),
        command=_local(command, project),
        source=source,
        body=command,
        hooks=(hook,),
        keys=_only_set(pass_hook_input='"$' in command, writes=is_fixing(command)),
    )


def _lint_staged(hook: str, project: Project, notes: list[str]) -> list[Task]:
    """Return what lint-staged runs: a gate for each list of commands."""
    package = load_or_empty(project, "package.json")
    source = "package.json: lint-staged"
    options = package.get("lint-staged", package.get("nano-staged"))
    for name in _LINT_STAGED:
        if name in project.texts:
            options, source = project.load(name), name
    by_commands: dict[tuple[str, ...], list[str]] = {}
    for glob, value in table(options).items():
        stripped = (command.strip() for command in texts(value))
        commands = tuple(
            command for command in stripped if command and not command.startswith("git add")
        )
        globs = _expand(glob.removeprefix("./"))
        if commands and not any(set(pattern) & set("!()|") for pattern in globs):
            by_commands.setdefault(commands, []).extend(globs)
        else:
            notes.append(f"{source}: {glob}: {_BY_HAND}")
    tasks = []
    for commands, doubled in by_commands.items():
        globs = list(dict.fromkeys(doubled))
        kinds = [kind_of(program_of(command)) for command in commands]
        # lint-staged stages whatever a command changes.
        writes = not all(kinds) or any(map(is_fixing, commands))
        local = [_local(command, project) for command in commands]
        last = local if len(local) == 1 else [f'{command} "$@"' for command in local]
        main = next(
            (command for command, kind in zip(commands, kinds, strict=True) if kind), commands[0]
        )
        keys = _only_set(
            files=[] if globs == ["*"] else globs, pass_files=True, writes=writes, restage=writes
        )
        tasks.append(
            Task(
                name=name_of(main) if len(by_commands) > 1 else "lint-staged",
                command=" && ".join(last),
                source=source,
                body="\n".join(commands),
                hooks=(hook,),
                keys=keys,
            )
        )
    return tasks


def _local(command: str, project: Project) -> str:
    """Return a command that finds the programs of node_modules, as lint-staged does."""
    program = command.partition(" ")[0]
    package = load_or_empty(project, "package.json")
    dependencies = {**table(package, "devDependencies"), **table(package, "dependencies")}
    is_local = program in dependencies or f"node_modules/.bin/{program}" in project.names
    return local_tool(command, project) if is_local else command


def _expand(glob: str) -> list[str]:
    """Expand braces: `*.{js,ts}` becomes two patterns; so do `*.ts?(x)` and `*.@(js|ts)`."""
    glob = _ANY.sub(lambda match: f"{{{match[1].replace('|', ',')}}}", _MAYBE.sub(r"{,\1}", glob))
    braces = _BRACES.search(glob)
    if not braces or glob.count("{") > _MOST_BRACES:
        return [glob] if glob else []
    ends = [glob[: braces.start()] + part + glob[braces.end() :] for part in braces[1].split(",")]
    return [pattern for end in ends for pattern in _expand(end)]
