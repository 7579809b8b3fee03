"""Decide which tasks become gates, under which names, and in which hooks. Pure."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from gitgates.config.keys import RESERVED_GATE_NAMES
from gitgates.core.clean import plain_line
from gitgates.core.record import Record
from gitgates.setup.discover.project import Task
from gitgates.setup.discover.words import (
    DATA,
    WORDS,
    Word,
    asks_for_tests,
    find_word,
    is_check_mode,
    is_endless,
    is_fixing,
    kind_of,
    language_of,
    lines_of,
    names_tests,
    program_of,
    spell,
    tasks_of,
)

USUAL = ("pre-commit", "pre-push", "manual")
_LONGEST = 40  # of a command in a note
_OTHER = Word("", (), "", "5m")  # what a hook manager runs has no word of ours


class Proposal(Record):
    """One gate, ready to be written."""

    name: str
    task: Task
    word: Word
    writes: bool
    fast: bool
    programs: frozenset[str]
    runs_tests: bool = False
    managed: frozenset[str] = frozenset()  # hooks in which its manager goes on running it
    parts: frozenset[str] = frozenset()  # the commands of the tasks that it calls

    def table(self) -> dict[str, object]:
        """Return its keys as the configuration writes them."""
        task = self.task
        keys: dict[str, object] = {}
        if description := task.description.strip() or self.word.description:
            keys["description"] = description
        keys |= {"command": task.command} if task.command else {}
        keys |= {"timeout": self.word.timeout, **task.keys}
        keys |= {"writes": True} if self.writes else {}
        is_slow = self.runs_tests and "command" in keys
        if is_slow and not keys.keys() & {"writes", "pass_hook_input"}:
            keys["reuse"] = True
        return keys


# `run-s lint test:*`
_MANY = re.compile(r"(?:run-s|run-p|npm-run-all)\s+(?:-\S+\s+)*(.*)")
# Options that name other packages (`-r`, `--filter`) make it another task.
_PACKAGE = re.compile(
    r"(?:npm|pnpm|yarn|bun)(?: run| run-script)?(?: -s| --silent| --if-present)* (?=[\w\"'])"
)
_LEAD = re.compile(
    r"[@+-]+(?=\w)|(?:\w+=\S* )+|(?:uv|poetry|pdm|pipenv) run (?:--(?:group|extra) \S+ )*"
    r"|cross-env |(?:ba|z)?sh (?=[\w.])|\./|\.?venv/bin/"
)


class Tasks:
    """All tasks of a project, and which of them call which."""

    def __init__(self, tasks: list[Task]) -> None:
        self.all = tasks
        self._by_call = {_call(task.command): task for task in reversed(tasks)}

    def find(self, command: str) -> Task | None:
        """Return the task that a command calls."""
        words = _call(command).split()
        calls = (" ".join(words[:count]) for count in (3, 2, 1))
        return next((self._by_call[call] for call in calls if call in self._by_call), None)

    def callees(self, task: Task) -> list[Task]:
        """Return the tasks that a task calls, or needs."""
        siblings = [other for other in self.all if _runner(other) == _runner(task)]
        names = [*task.needs]
        called = []
        for line in lines_of(task.body):
            if many := _MANY.match(line):
                names += many[1].replace('"', "").replace("'", "").split()
            elif (other := self.find(line)) and not other.is_default:
                called.append(other)
        needed = [other for name in names for other in siblings if fnmatchcase(other.name, name)]
        return [other for other in needed + called if other is not task]

    def lines(self, task: Task) -> list[str]:
        """Return the commands that a task runs, through other tasks, too."""
        commands: list[str] = []
        visited: list[Task] = []
        todo = [task]
        while todo:
            current = todo.pop(0)
            if current in visited:
                continue
            visited.append(current)
            called = self.callees(current)
            todo += called
            lines = lines_of(current.body)
            commands += [
                line for line in lines if not _MANY.match(line) and self.find(line) not in called
            ]
            if not lines and not called:
                commands.append(current.command)  # what it runs is not known
        return commands


def _call(command: str) -> str:
    """Return a command in a normal form, equal for calls of the same task."""
    command = command.replace("$(MAKE)", "make").replace("${MAKE}", "make")
    while match := _LEAD.match(command):
        command = command[match.end() :]
    return _PACKAGE.sub("npm run ", command, count=1)


def choose(candidates: list[Task]) -> tuple[list[Proposal], list[str]]:
    """Return the gates, at most one for each word and language, and why a task was left out.

    The project's own word wins over a tool's default, and a runner of the whole project over one of
    a language. What a hook manager runs already comes on top, in the hooks where it runs.
    """
    tasks = Tasks([task for task in candidates if not task.hooks])
    proposals = [_by_manager(task, tasks) for task in candidates if task.hooks]
    run = {program for proposal in proposals for program in proposal.programs}
    covered = {(kind_of(program), language_of(program)) for program in run}
    tasks.all = [
        task for task in tasks.all if not (task.is_default and (task.name, task.scope) in covered)
    ]
    notes: list[str] = []
    usable = []
    for task in tasks.all:
        endless = [line for line in tasks.lines(task) if is_endless(line)]
        ends = not endless or (task.once and endless == lines_of(task.body)[-1:])
        end = "" if ends else endless[0]
        if end and find_word(task.name) and not task.is_private:
            notes.append(
                f"{task.command}: it never exits, or needs a terminal ({plain_line(end, _LONGEST)})"
            )
        if not (end or task.missing or task.is_private):
            usable.append(task._replace(command=task.once) if endless else task)
    names: set[str] = set()
    for word in WORDS:
        if word.name == "build" and names & {"check", "test"}:
            continue  # they build what they test
        best = _best(word, usable)
        if word.name == "check" and "lint" in names:
            best = [task for task in best if not task.is_default]
        if word.name == "format":
            best = [_checking(task, usable, tasks) for task in best]
        for task in best:
            name = word.name if len(best) == 1 else f"{word.name}-{task.scope}"
            proposals.append(_by_word(name, word, task, tasks))
        names |= {word.name} if best else set()
    return _merge_same(proposals), notes + _missing(tasks.all, proposals)


def _checking(task: Task, usable: list[Task], tasks: Tasks) -> Task:
    """Return the checking command of CI for a task that rewrites files."""
    lines = tasks.lines(task)
    if not any(map(is_fixing, lines)):
        return task
    runs = set(map(program_of, lines))
    same = (other for other in usable if other.is_ci and program_of(other.body) in runs)
    return next(same, task)


def _missing(tasks: list[Task], proposals: list[Proposal]) -> list[str]:
    """Say which kind of gate is missing because a program is."""
    run = frozenset[str]().union(*(proposal.programs for proposal in proposals))
    notes: dict[str, str] = {}
    for task in tasks:
        program = program_of(task.body)
        has_word = {(task.name, ""), (task.name, task.scope)} & {
            (p.word.name, p.task.scope) for p in proposals
        }
        if task.missing and program not in run and not has_word:
            notes.setdefault(program, f"{task.body} ({task.source}): {task.missing}")
    return list(notes.values())


def _by_word(name: str, word: Word, task: Task, tasks: Tasks) -> Proposal:
    lines = tasks.lines(task)
    programs = _programs(lines)
    kinds = {kind_of(program) for program in programs}
    writes = any(map(is_fixing, lines))
    if word.name == "format" and "format" not in kinds:  # who knows what it runs
        writes = not is_check_mode(f"{spell(task.name)} {task.body}")
    has_environment = _call(task.command).startswith(("tox ", "nox ", "hatch run "))
    has_tests = "test" in kinds
    if word.name == "check":
        has_tests = has_tests or names_tests(task.body) or any(map(asks_for_tests, programs))
    is_slow = has_tests or (has_environment and "typecheck" in (word.name, *kinds))
    return Proposal(
        name=name,
        task=task,
        word=word,
        writes=writes and not task.is_default,
        fast=word.fast and not is_slow,
        programs=programs,
        runs_tests=word.name == "test" or (word.name == "check" and has_tests),
        parts=frozenset(callee.command for callee in tasks.callees(task)),
    )


def _programs(lines: list[str]) -> frozenset[str]:
    programs = frozenset(program_of(command) for line in lines for command in tasks_of(line))
    return programs | {runs for program, runs in DATA["implies"].items() if program in programs}


def _by_manager(task: Task, tasks: Tasks) -> Proposal:
    """Return a gate for a command of a hook manager; tasks of the project keep their names."""
    callee = tasks.find(task.command) if task.command else None
    name = task.name
    if callee and not callee.keys:
        word = find_word(callee.name)
        name = word.name if word else callee.name
    lines = tasks.lines(task)
    programs = _programs(lines)
    if task.command and any(map(is_fixing, lines)):
        task = task._replace(keys={**task.keys, "writes": True})
    plain = re.sub(r"[^\w-]+", "-", name).strip("-") or "hook"
    is_taken = plain.casefold() in {word.casefold() for word in RESERVED_GATE_NAMES}
    return Proposal(
        name=f"{plain}-gate" if is_taken else plain,
        task=task,
        word=_OTHER,
        writes=False,  # its keys say so
        fast="pre-commit" in task.hooks,
        programs=programs,
        runs_tests=name == "test" or "test" in map(kind_of, programs),
        # What runs all of pre-commit's hooks stands in for its own hook, which then does not run.
        managed=frozenset(task.hooks if task.command else ()),
    )


def _merge_same(proposals: list[Proposal]) -> list[Proposal]:
    """Merge gates with the same command, and number equal names."""
    merged: dict[str, Proposal] = {}
    for proposal in proposals:
        task = proposal.task
        same = [earlier for earlier in merged.values() if _is_same(earlier, proposal)]
        if not same:
            name, count = proposal.name, 1
            while name in merged:
                count += 1
                name = f"{proposal.name}-{count}"
            merged[name] = proposal._replace(name=name)
            continue
        earlier = same[0]
        hooks = (*earlier.task.hooks, *task.hooks)
        if proposal.word.name and not earlier.task.keys.get("writes"):
            hooks = (*hooks, *USUAL[1:])
        earlier = earlier._replace(task=earlier.task._replace(hooks=tuple(dict.fromkeys(hooks))))
        earlier = earlier._replace(managed=earlier.managed | proposal.managed)
        merged[earlier.name] = earlier._replace(
            word=proposal.word if proposal.word.name else earlier.word
        )
    return list(merged.values())


def _is_same(earlier: Proposal, later: Proposal) -> bool:
    """Return whether two gates run the same."""
    if not later.task.command or earlier.task.keys.get("pass_files"):
        return False
    is_about_all = not earlier.task.keys.get("files") and bool(earlier.task.hooks)
    return earlier.task.command == later.task.command or (
        is_about_all and earlier.programs == later.programs
    )


def _best(word: Word, tasks: list[Task]) -> list[Task]:
    """Return the best task of each language, or the one that is for all of them.

    Defaults come last, then counts the earlier source; of one runner, the better spelling.
    """
    spelled = [task for task in tasks if find_word(task.name) is word]
    by_scope: dict[str, Task] = {}
    # What CI runs for no language that is known counts where nothing else does.
    for task in [task for task in spelled if task.scope or not task.is_ci] or spelled:
        other = by_scope.setdefault(task.scope, task)
        is_own = not (task.is_default or other.is_default)
        rank, best = (word.spellings.index(spell(candidate.name)) for candidate in (task, other))
        if is_own and _runner(task) == _runner(other) and rank < best:
            by_scope[task.scope] = task
    return [by_scope[""]] if "" in by_scope else list(by_scope.values())


def _runner(task: Task) -> str:
    return _call(task.command).partition(" ")[0]


def assign_hooks(
    proposals: list[Proposal], *, take_over: bool = False
) -> tuple[dict[str, list[str]], list[str]]:
    """Return hook → its gates, and why a gate is in none.

    What a hook manager keeps running in a hook is not a gate there, unless it is taken over.

    What the project runs before a commit already is what runs there; else the gates that are fast.
    Before a push and by hand runs all that only looks, for what a rebase brings and for CI.
    """
    has_commit_gates = any("pre-commit" in proposal.task.hooks for proposal in proposals)
    hooks: dict[str, list[Proposal]] = {}
    for proposal in proposals:
        hook_names = proposal.task.hooks
        if not hook_names and proposal.writes and proposal.fast:
            hook_names = () if has_commit_gates else ("pre-commit", "manual")
        elif not hook_names:
            hook_names = USUAL if proposal.fast and not has_commit_gates else USUAL[1:]
        if proposal.managed and not take_over:
            only_looks = not (proposal.task.keys.keys() & {"writes", "pass_hook_input"})
            only_looks &= not all(hook.endswith("-msg") for hook in proposal.managed)
            hook_names = tuple(dict.fromkeys((*hook_names, *(USUAL[2:] if only_looks else ()))))
            hook_names = tuple(hook for hook in hook_names if hook not in proposal.managed)
        for hook in hook_names:
            hooks.setdefault(hook, []).append(proposal)
    hooks["pre-commit"] = _in_parts(hooks.get("pre-commit", []))
    placed = {hook: _without_duplicates(gates) for hook, gates in hooks.items()}
    order = [*USUAL[:1], *(hook for hook in placed if hook not in USUAL), *USUAL[1:]]
    names = {hook: [p.name for p in placed[hook]] for hook in order if placed.get(hook)}
    used = {name for gates in names.values() for name in gates}
    unused = [proposal for proposal in proposals if proposal.name not in used]
    left_out = ((plain_line(proposal.task.command, _LONGEST), proposal) for proposal in unused)
    return names, [f"{command}: {_why_unused(proposal)}" for command, proposal in left_out]


def _why_unused(proposal: Proposal) -> str:
    if proposal.managed:
        return f"{proposal.task.manager} keeps running it"
    if proposal.writes:
        return "it rewrites files; other gates run before a commit"
    return "the other gates cover it"


def _in_parts(gates: list[Proposal]) -> list[Proposal]:
    """Leave out a `check` that calls others: what else it runs waits for the push."""
    commands = {gate.task.command for gate in gates}
    return [gate for gate in gates if gate.word.name != "check" or not gate.parts & commands]


def _without_duplicates(gates: list[Proposal]) -> list[Proposal]:
    """Leave out a gate whose programs the others run, and a fixer beside a check of its tool.

    What a hook manager runs stays: it may be about other files.
    """
    remaining = list(gates)
    # The largest first, and of two equal ones the fixer, then the later.
    rank = {gate.name: (-len(gate.programs), not gate.writes, -i) for i, gate in enumerate(gates)}
    for gate in sorted(gates, key=lambda gate: rank[gate.name]):
        others = [other for other in remaining if other is not gate]
        run = frozenset[str]().union(*(other.programs for other in others))
        looks = [other.programs for other in others if not other.writes]
        formatters = {program for program in gate.programs if kind_of(program) == "format"}
        is_covered = gate.programs <= run or (
            gate.writes and formatters & frozenset[str]().union(*looks)
        )
        if is_covered and not gate.task.hooks:
            remaining = others
    return remaining
