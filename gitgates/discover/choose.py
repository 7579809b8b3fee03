"""Decide which tasks become gates, under which names, and in which hooks. Pure."""

from __future__ import annotations

import re

from gitgates.discover.task import Task
from gitgates.discover.words import WORDS, Word, find_word, is_writing, runs_tests
from gitgates.record import Record


class Proposal(Record):
    """One gate, ready to be written."""

    name: str
    task: Task
    word: Word
    writes: bool
    fast: bool

    def table(self) -> dict[str, object]:
        """Return its keys as the configuration writes them."""
        task = self.task
        found: dict[str, object] = {
            "description": task.description.strip() or self.word.description,
            "command": task.command,
            "timeout": self.word.timeout,
        }
        found |= {"files": list(task.files)} if task.files else {}
        found |= {"exclude": list(task.exclude)} if task.exclude else {}
        found |= {"pass_files": True} if task.pass_files else {}
        found |= {"writes": True} if self.writes else {}
        return found


# `npm run lint`, `make lint`: calls of another task of the project
_CALL = re.compile(
    r"(?:npm|pnpm|yarn|bun)(?: run)? ([\w:.-]+)|(?:\$\(MAKE\)|make|just|task|mise run) ([\w:.-]+)"
)
_GLUE = re.compile(r"&&|;|\s")


def choose(tasks: list[Task]) -> tuple[list[Proposal], list[str]]:
    """Return at most one gate for each word and language, and why a task was left out.

    The project's own word wins over a language's default, and a runner of the whole project over
    one of a language.
    """
    best = {word.name: _best(word, tasks) for word in WORDS}
    notes = _doubles([task for found in best.values() for task in found])
    proposals = []
    for word in WORDS:
        found = [task for task in best[word.name] if task not in notes]
        for task in found:
            name = word.name if len(found) == 1 else f"{word.name}-{task.scope}"
            proposals.append(_propose(name, word, task))
    return proposals, list(notes.values())


def place(proposals: list[Proposal]) -> dict[str, list[str]]:
    """Return hook → its gates: the fast ones before a commit, the others before a push."""
    hooks = {
        "pre-commit": [proposal.name for proposal in proposals if proposal.fast],
        "pre-push": [proposal.name for proposal in proposals if not proposal.fast],
        "manual": [proposal.name for proposal in proposals],
    }
    return {hook: gates for hook, gates in hooks.items() if gates}


def _best(word: Word, tasks: list[Task]) -> list[Task]:
    """Return the best task of each language, or the one that is for all of them."""
    found = _best_by_scope([task for task in tasks if _word_of(task.name) is word])
    return [found[""]] if "" in found else list(found.values())


def _word_of(name: str) -> Word | None:
    found = find_word(name)
    return found[0] if found else None


def _best_by_scope(tasks: list[Task]) -> dict[str, Task]:
    """Return scope → its best task: defaults last, then the earlier source, the better spelling."""
    found: dict[str, Task] = {}
    for task in tasks:
        other = found.setdefault(task.scope, task)
        same_runner = _runner(task) == _runner(other) and not task.tool and not other.tool
        if same_runner and _spelling(task) < _spelling(other):
            found[task.scope] = task
    return found


def _runner(task: Task) -> str:
    return task.command.partition(" ")[0]


def _spelling(task: Task) -> int:
    found = find_word(task.name)
    return found[1] if found else len(WORDS)


def _propose(name: str, word: Word, task: Task) -> Proposal:
    is_slow = word.name == "check" and (
        runs_tests(task.body) or any(_is_slow(need) for need in _needs(task))
    )
    return Proposal(
        name=name,
        task=task,
        word=word,
        writes=not task.tool and is_writing(word, task.name, task.command, task.body),
        fast=word.fast and not is_slow,
    )


def _is_slow(name: str) -> bool:
    word = _word_of(name)
    return word is not None and not word.fast


def _needs(task: Task) -> set[str]:
    return {*task.needs, *(name for match in _CALL.findall(task.body) for name in match if name)}


def _doubles(tasks: list[Task]) -> dict[Task, str]:
    """Return the tasks that the others do already, and who does."""
    notes: dict[Task, str] = {}
    own = [task for task in tasks if not task.tool]
    names = {task.name for task in tasks}
    for task in tasks:
        caller = next((other for other in own if task.tool and task.tool in other.body), None)
        needs = _needs(task)
        if caller:
            notes[task] = f"{task.command}: `{caller.command}` runs {task.tool} already"
        elif needs and needs <= names - {task.name} and not _own_work(task):
            notes[task] = f"{task.command}: does nothing but {', '.join(sorted(needs))}"
    return notes


def _own_work(task: Task) -> str:
    return _GLUE.sub("", _CALL.sub("", task.body))
