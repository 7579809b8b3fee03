"""Find the commands of other hook managers: pre-commit, lefthook, husky, lint-staged.

Plain commands are taken over as gates, in the hooks where they run; what is not plain is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import ParamSpec

from gitgates.core.lifecycle import GIT_HOOKS
from gitgates.setup.discover import lefthook
from gitgates.setup.discover.globs import expand
from gitgates.setup.discover.project import BadFile, Project, Task, is_inside, table, tables, texts
from gitgates.setup.discover.tools import load_or_empty, local_tool
from gitgates.setup.discover.words import DATA, is_fixing, kind_of, lines_of, name_of, program_of

_P = ParamSpec("_P")
HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "pre-push")
ALL_HOOKS = (*HOOKS, *(p.name for p in GIT_HOOKS if p.client and p.name not in HOOKS))
HUSKY = ".husky"
PRE_COMMIT = ".pre-commit-config.yaml"
_FILES = DATA["managers"]
LINT_STAGED, SIMPLE, _NAMED = (
    tuple(_FILES[key].split()) for key in ("lint_staged", "simple", "by_hand")
)
READS = (PRE_COMMIT, "package.json", *lefthook.FILES, *LINT_STAGED, *SIMPLE)
_BY_HAND = "is not read; create gates for it by hand"
_OLD_STAGES = {"commit": "pre-commit", "push": "pre-push", "merge-commit": "pre-merge-commit"}

_CONTROL = re.compile(
    r"^(?:(?:if|for|while|case|until|function|exec|export|cd|set|source|exit)\b|\w+ ?\(\))"
    r"|^(?:[{(]|\.\s)|^(?:\[|test\b).*(?:&&|\|\|)|<<|\$\(|`|^\w+=\S*$"
)
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.""")
# Outside of quotes: `a; b`, `a & b`, `a && b || c`, and a text of several lines.
_JOINED = re.compile(r"""(?<![&<>])&(?![&>])|&&.*\|\||["';\\]""")
_SAYS = re.compile(r"(?:echo|printf)\b[^>|]*$")
_IGNORED = re.compile(
    r"""#|(?:\. ["']?(?:\$\(dirname|\$0|\.husky)|set -(?!.*pipefail)|\. .*husky\.sh)[^;&|]*$"""
    r"|exit 0$|$"
)
_LINT_STAGED_CALL = re.compile(
    r"(?:(?:npx|bunx|pnpm|yarn|bun|npm)\s+(?:(?:exec|run|dlx|x|--?[\w-]+)\s+)*|node\s+\S*/)?"
    r"(?:lint-staged|nano-staged)\b(?!-)"
)
_STAGES = re.compile(r"-staged\b|\bgit add\b")
_OTHER_CONFIGURATION = re.compile(r"\s(?:-c|--config|--cwd)\b")
_LINT_STAGED_NAME = re.compile(r"\b(?:lint|nano)-staged\b")
# `husky`, `husky install`, both with a folder or without one.
_HUSKY_CALL = re.compile(
    r"\bhusky(?:\s+install)?(?:\s+(?!install\b|-)([\w./-]+))?(?=\s*(?:$|[&|;]))"
)
_HUSKY_SCRIPTS = ("prepare", "postinstall", "install", "postprepare")
_PARAMETER = re.compile(r"""(?<!["'\w])\$\{?1\}?(?!["'\w])""")


def find(project: Project) -> tuple[list[Task], list[str]]:
    """Return the gates for commands of hook managers, and notes on what cannot be converted."""
    notes = unread(project)
    tasks = _unless_bad(notes, _pre_commit, project)
    settings: list[str] = []  # of lefthook itself are of no interest to a proposal
    tasks += _unless_bad(notes, lefthook.find, project, notes, HOOKS, settings)
    notes += [note for note in settings if ": remotes:" in note]
    tasks += _unless_bad(notes, find_node, project, notes, HOOKS)
    return tasks, notes


def unread(project: Project) -> list[str]:
    """Return a note for each file of a manager that is a program, or in a language of its own."""
    names = sorted(name for name in project.names - {*READS} if name.startswith(_NAMED))
    return [f"{name}: {_BY_HAND}" for name in names]


def _unless_bad(
    notes: list[str], find_in: Callable[_P, list[Task]], *args: _P.args, **kwargs: _P.kwargs
) -> list[Task]:
    try:
        return find_in(*args, **kwargs)
    except BadFile as error:
        notes.append(str(error))
        return []


def _pre_commit(project: Project) -> list[Task]:
    if PRE_COMMIT not in project.texts:
        return []
    settings = project.load(PRE_COMMIT)
    repos = tables(settings.get("repos"))
    hooks = [hook for repo in repos for hook in tables(repo.get("hooks"))]
    if not hooks or any("gitgates" in str(hook.get("id")) for hook in hooks):
        return []
    default = texts(settings.get("default_stages"))
    stages = [texts(hook.get("stages")) or default for hook in hooks]
    named_hooks = {stage_of(stage) for names in stages for stage in names}
    usual = ("pre-commit", "pre-push", "manual")
    run = [hook for hook in usual if not all(stages) or hook in named_hooks]
    run += [hook for hook in HOOKS if hook in named_hooks and hook not in run]
    ids = _FILES["ids"]
    lines = [
        str(hook.get("entry") or ids.get(str(hook["id"]), hook["id"]))
        for hook in hooks
        if hook.get("id")
    ]
    runner = framework_runner(project)
    return [
        Task(
            name="pre-commit",
            command="",
            source=PRE_COMMIT,
            body="\n".join((*lines, "pre-commit run")),
            description=f"The hooks of {PRE_COMMIT}",
            hooks=tuple(run),
            manager=runner,
            keys={"pre-commit": True, **({"runner": runner} if runner == "prek" else {})},
        )
    ]


def framework_runner(project: Project) -> str:
    """Return prek where some file of the project names it, else pre-commit."""
    uses_prek = any(
        re.search(r"\bprek\b", text)
        for name, text in project.texts.items()
        if name != PRE_COMMIT and not name.endswith(".lock")
    )
    return "prek" if uses_prek else "pre-commit"


def stage_of(name: str) -> str:
    """Return the hook of git for a stage of the framework, which may have its older name."""
    return _OLD_STAGES.get(name, name)


def _only_set(**keys: object) -> dict[str, object]:
    return {name: value for name, value in keys.items() if value}


def find_node(
    project: Project, notes: list[str], hooks: tuple[str, ...], *, whole: bool = False
) -> list[Task]:
    """Return what husky and simple-git-hooks run, lint-staged among it.

    `whole`: a script that is more than commands is a gate as it is; otherwise, it is noted.

    Raises: BadFile.
    """
    tasks = []
    for script in scripts_of(project, hooks):
        lines = _lines(script.body)
        if whole and any(map(_is_script, lines)):
            tasks.append(_whole(script, notes))
            continue
        if any(map(_is_script, lines)):
            notes.append(f"{script.source}: is a script; create gates for it by hand")
            continue
        parts = (part.strip() for line in lines for part in line.split("&&"))
        script_tasks = [
            task
            for part in parts
            if part and not _SAYS.match(_QUOTED.sub("", part))
            for task in _of_line(part, script, project, notes)
        ]
        tasks += [task._replace(manager=script.manager, in_order=True) for task in script_tasks]
    return tasks


def _lines(body: str) -> list[str]:
    """Return what a script runs, without what calls gitgates, and what husky itself needs."""
    text = body.replace("\r", "").replace("\\\n", " ")
    lines = (line.strip() for line in text.split("\n"))
    others = (_without_gitgates(line) for line in lines if not _IGNORED.match(line))
    return [line for line in others if line]


def _without_gitgates(line: str) -> str:
    if "gitgates" not in line:
        return line
    return "&&".join(part for part in line.split("&&") if "gitgates" not in part).strip()


def _is_script(line: str) -> bool:
    """Return whether a line is more than commands of which each has to pass."""
    bare = _QUOTED.sub("", line)
    in_quotes = line.count("&&") > bare.count("&&")
    return in_quotes or bool(_CONTROL.search(line) or _JOINED.search(bare))


def _whole(script: Task, notes: list[str]) -> Task:
    """Return a gate that runs a script as its manager does."""
    name = script.source.rpartition("/")[2]
    is_file = script.manager == "husky"
    if _LINT_STAGED_NAME.search(script.body):
        what = "it runs lint-staged itself, which hides and stages changes as gitgates does"
        notes.append(f"{script.source}: {what}; better give each of its commands a gate")
    # What stages by itself is allowed to where fixes are staged.
    stages = script.name == "pre-commit" and bool(_STAGES.search(script.body))
    command = f'PATH="$PWD/node_modules/.bin:$PATH" sh -e {script.source}'
    return Task(
        name=f"husky-{name}" if is_file else script.name,
        command=command if is_file else script.body.strip(),
        source=script.source,
        body=script.body,
        hooks=(script.name,),
        manager=script.manager,
        keys=_only_set(
            pass_hook_input=script.name != "pre-commit",
            writes=stages or any(map(is_fixing, lines_of(script.body))),
            restage=stages,
        ),
    )


def _of_line(command: str, script: Task, project: Project, notes: list[str]) -> list[Task]:
    """Return the gates for one command of a hook."""
    scripts = table(load_or_empty(project, "package.json"), "scripts")
    run = scripts.get(command.rsplit(maxsplit=1)[-1])  # the last word may name a script
    if any(map(_LINT_STAGED_CALL.match, (command, run if isinstance(run, str) else ""))):
        text = f"{command} {run if isinstance(run, str) else ''}"
        known = len(notes)
        is_other = _OTHER_CONFIGURATION.search(text)
        tasks = [] if is_other else lint_staged(script.name, project, notes)
        if not tasks and len(notes) == known:
            notes.append(f"{script.source}: {command}: its configuration {_BY_HAND}")
        return tasks
    return [_command(command, script.name, script.source, project)]


def scripts_of(project: Project, hooks: tuple[str, ...]) -> Iterator[Task]:
    """Yield the text of each hook of husky, simple-git-hooks and yorkie."""
    package = load_or_empty(project, "package.json")
    husky, simple = husky_folder(project), "simple-git-hooks"
    files = {hook: project.texts.get(f"{husky}/{hook}") for hook in hooks}
    sources = [(simple, f"{name}: ", project.load(name)) for name in SIMPLE]
    sources += [
        (simple, "package.json: simple-git-hooks.", table(package, "simple-git-hooks")),
        ("husky 4", "package.json: husky.hooks.", table(package, "husky", "hooks")),
        ("yorkie", "package.json: gitHooks.", table(package, "gitHooks")),
        ("husky", f"{husky}/", files),
    ]
    for manager, prefix, commands in sources:
        for hook in hooks:
            if isinstance(text := commands.get(hook), str):
                yield Task(hook, "", f"{prefix}{hook}", body=text, manager=manager)


def husky_folder(project: Project) -> str:
    """Return the folder of husky's scripts: the one that a script of package.json names."""
    scripts = table(load_or_empty(project, "package.json"), "scripts")
    calls = (_HUSKY_CALL.search(str(scripts.get(name, ""))) for name in _HUSKY_SCRIPTS)
    folder = next((call[1] for call in calls if call and call[1]), HUSKY)
    return folder.removeprefix("./").rstrip("/")


def included(project: Project) -> tuple[str, ...]:
    """Return the files that managers read beside their own: scripts of husky, parts of lefthook."""
    folder = husky_folder(project)
    try:
        parts = lefthook.extended_files(project)
    except BadFile:
        parts = ()  # reported when its jobs are read
    return (*parts, *(f"{folder}/{hook}" for hook in ALL_HOOKS if is_inside(folder)))


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


def lint_staged(hook: str, project: Project, notes: list[str]) -> list[Task]:
    """Return what lint-staged runs: a gate for each list of commands."""
    package = load_or_empty(project, "package.json")
    source = "package.json: lint-staged"
    options = package.get("lint-staged", package.get("nano-staged"))
    for name in LINT_STAGED:
        if name in project.texts:
            options, source = project.load(name), name
    by_commands: dict[tuple[str, ...], list[str]] = {}
    for glob, value in table(options).items():
        stripped = (command.strip() for command in texts(value))
        commands = tuple(
            command for command in stripped if command and not command.startswith("git add")
        )
        globs = expand(glob.removeprefix("./"))
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
