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
    managed: frozenset[str] = frozenset()  # hooks in which its manager goes on running it
    parts: frozenset[str] = frozenset()  # the commands of the tasks that it calls

    def table(self) -> dict[str, object]:
        """Return its keys as the configuration writes them."""
        task = self.task
        found: dict[str, object] = {}
        if description := task.description.strip() or self.word.description:
            found["description"] = description
        found |= {"command": task.command} if task.command else {}
        found |= {"timeout": self.word.timeout, **task.keys}
        found |= {"writes": True} if self.writes else {}
        return found


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

    def known(self, command: str) -> Task | None:
        """Return the task that a command calls."""
        words = _call(command).split()
        calls = (" ".join(words[:count]) for count in (3, 2, 1))
        return next((self._by_call[call] for call in calls if call in self._by_call), None)

    def called(self, task: Task) -> list[Task]:
        """Return the tasks that a task calls, or needs."""
        own = [other for other in self.all if _runner(other) == _runner(task)]
        names = [*task.needs]
        found = []
        for line in lines_of(task.body):
            if many := _MANY.match(line):
                names += many[1].replace('"', "").replace("'", "").split()
            elif (other := self.known(line)) and not other.is_default:
                found.append(other)
        needed = [other for name in names for other in own if fnmatchcase(other.name, name)]
        return [other for other in needed + found if other is not task]

    def lines(self, task: Task) -> list[str]:
        """Return the commands that a task runs, through other tasks, too."""
        found: list[str] = []
        seen: list[Task] = []
        todo = [task]
        while todo:
            one = todo.pop(0)
            if one in seen:
                continue
            seen.append(one)
            called = self.called(one)
            todo += called
            lines = lines_of(one.body)
            found += [x for x in lines if not _MANY.match(x) and self.known(x) not in called]
            if not lines and not called:
                found.append(one.command)  # nothing is known of what it runs
        return found


def _call(command: str) -> str:
    """Return a command in a normal form, equal for calls of the same task."""
    command = command.replace("$(MAKE)", "make").replace("${MAKE}", "make")
    while found := _LEAD.match(command):
        command = command[found.end() :]
    return _PACKAGE.sub("npm run ", command, count=1)


def choose(found: list[Task]) -> tuple[list[Proposal], list[str]]:
    """Return the gates, at most one for each word and language, and why a task was left out.

    The project's own word wins over a tool's default, and a runner of the whole project over one of
    a language. What a hook manager runs already comes on top, in the hooks where it runs.
    """
    tasks = Tasks([task for task in found if not task.hooks])
    proposals = [_by_manager(task, tasks) for task in found if task.hooks]
    run = {program for proposal in proposals for program in proposal.programs}
    done = {(kind_of(program), language_of(program)) for program in run}
    tasks.all = [one for one in tasks.all if not (one.is_default and (one.name, one.scope) in done)]
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
    same = (one for one in usable if one.is_ci and program_of(one.body) in runs)
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
        parts=frozenset(one.command for one in tasks.called(task)),
    )


def _programs(lines: list[str]) -> frozenset[str]:
    found = frozenset(program_of(one) for line in lines for one in tasks_of(line))
    return found | {runs for program, runs in DATA["implies"].items() if program in found}


def _by_manager(task: Task, tasks: Tasks) -> Proposal:
    """Return a gate for a command of a hook manager; tasks of the project keep their names."""
    known = tasks.known(task.command) if task.command else None
    name = task.name
    if known and not known.keys:
        word = find_word(known.name)
        name = word.name if word else known.name
    lines = tasks.lines(task)
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
        programs=_programs(lines),
        # What runs all of pre-commit's hooks stands in for its own hook, which then does not run.
        managed=frozenset(task.hooks if task.command else ()),
    )


def _merge_same(proposals: list[Proposal]) -> list[Proposal]:
    """Merge gates with the same command, and number equal names."""
    found: dict[str, Proposal] = {}
    for proposal in proposals:
        task = proposal.task
        same = [one for one in found.values() if _is_same(one, proposal)]
        if not same:
            name, count = proposal.name, 1
            while name in found:
                count += 1
                name = f"{proposal.name}-{count}"
            found[name] = proposal._replace(name=name)
            continue
        one = same[0]
        hooks = (*one.task.hooks, *task.hooks)
        if proposal.word.name and not one.task.keys.get("writes"):
            hooks = (*hooks, *USUAL[1:])
        one = one._replace(task=one.task._replace(hooks=tuple(dict.fromkeys(hooks))))
        one = one._replace(managed=one.managed | proposal.managed)
        found[one.name] = one._replace(word=proposal.word if proposal.word.name else one.word)
    return list(found.values())


def _is_same(one: Proposal, other: Proposal) -> bool:
    """Return whether two gates run the same."""
    if not other.task.command or one.task.keys.get("pass_files"):
        return False
    is_about_all = not one.task.keys.get("files") and bool(one.task.hooks)
    return one.task.command == other.task.command or (
        is_about_all and one.programs == other.programs
    )


def _best(word: Word, tasks: list[Task]) -> list[Task]:
    """Return the best task of each language, or the one that is for all of them.

    Defaults come last, then counts the earlier source; of one runner, the better spelling.
    """
    spelled = [task for task in tasks if find_word(task.name) is word]
    found: dict[str, Task] = {}
    # What CI runs for no language that is known counts where nothing else does.
    for task in [one for one in spelled if one.scope or not one.is_ci] or spelled:
        other = found.setdefault(task.scope, task)
        is_own = not (task.is_default or other.is_default)
        rank, best = (word.spellings.index(spell(one.name)) for one in (task, other))
        if is_own and _runner(task) == _runner(other) and rank < best:
            found[task.scope] = task
    return [found[""]] if "" in found else list(found.values())


def _runner(task: Task) -> str:
    return _call(task.command).partition(" ")[0]


def assign_hooks(
    proposals: list[Proposal], *, take_over: bool = False
) -> tuple[dict[str, list[str]], list[str]]:
    """Return hook → its gates, and why a gate is in none.

    What a hook manager goes on running in a hook is no gate there, unless it is taken over.

    What the project runs before a commit already is what runs there; else the gates that are fast.
    Before a push and by hand runs all that only looks, for what a rebase brings and for CI.
    """
    known = any("pre-commit" in proposal.task.hooks for proposal in proposals)
    hooks: dict[str, list[Proposal]] = {}
    for proposal in proposals:
        wanted = proposal.task.hooks
        if not wanted and proposal.writes and proposal.fast:
            wanted = () if known else ("pre-commit", "manual")
        elif not wanted:
            wanted = USUAL if proposal.fast and not known else USUAL[1:]
        if proposal.managed and not take_over:
            only_looks = not (proposal.task.keys.keys() & {"writes", "pass_hook_input"})
            only_looks &= not all(hook.endswith("-msg") for hook in proposal.managed)
            wanted = tuple(dict.fromkeys((*wanted, *(USUAL[2:] if only_looks else ()))))
            wanted = tuple(hook for hook in wanted if hook not in proposal.managed)
        for hook in wanted:
            hooks.setdefault(hook, []).append(proposal)
    hooks["pre-commit"] = _in_parts(hooks.get("pre-commit", []))
    placed = {hook: _without_duplicates(gates) for hook, gates in hooks.items()}
    order = [*USUAL[:1], *(hook for hook in placed if hook not in USUAL), *USUAL[1:]]
    names = {hook: [p.name for p in placed[hook]] for hook in order if placed.get(hook)}
    used = {name for gates in names.values() for name in gates}
    unused = [proposal for proposal in proposals if proposal.name not in used]
    return names, [f"{one.task.command}: {_why_unused(one)}" for one in unused]


def _why_unused(one: Proposal) -> str:
    if one.managed:
        return f"{one.task.manager} keeps running it"
    if one.writes:
        return "it rewrites files; other gates run before a commit"
    return "the other gates cover it"


def _in_parts(gates: list[Proposal]) -> list[Proposal]:
    """Leave out a `check` that calls others: what else it runs waits for the push."""
    commands = {gate.task.command for gate in gates}
    return [one for one in gates if one.word.name != "check" or not one.parts & commands]


def _without_duplicates(gates: list[Proposal]) -> list[Proposal]:
    """Leave out a gate whose programs the others run, and a fixer beside a check of its tool.

    What a hook manager runs stays: it may be about other files.
    """
    kept = list(gates)
    # The largest first, and of two equal ones the fixer, then the later.
    rank = {one.name: (-len(one.programs), not one.writes, -i) for i, one in enumerate(gates)}
    for gate in sorted(gates, key=lambda one: rank[one.name]):
        others = [other for other in kept if other is not gate]
        run = frozenset[str]().union(*(other.programs for other in others))
        looks = [other.programs for other in others if not other.writes]
        formatters = {program for program in gate.programs if kind_of(program) == "format"}
        is_done = gate.programs <= run or (
            gate.writes and formatters & frozenset[str]().union(*looks)
        )
        if is_done and not gate.task.hooks:
            kept = others
    return kept
