"""Classify the names of tasks and the programs of commands, by `commands.toml`."""

from __future__ import annotations

import os
import re
import tomllib

from gitgates.core.record import Record

with open(os.path.join(os.path.dirname(__file__), "commands.toml"), "rb") as _file:
    DATA = tomllib.load(_file)

PYTHON, JAVASCRIPT = "python", "javascript"


class Word(Record):
    """One kind of gate."""

    name: str  # the gate's
    spellings: tuple[str, ...]  # best first
    description: str
    timeout: str
    fast: bool = False  # before each commit, too; the others before a push only


def pattern(name: str) -> re.Pattern[str]:
    """Return one of the patterns of `commands.toml`."""
    expression = DATA["patterns"][name]
    return re.compile(expression if isinstance(expression, str) else "|".join(expression))


WORDS = tuple(
    Word(name=name, **{**row, "spellings": tuple(row["spellings"].split())})
    for name, row in DATA["words"].items()
)
_KINDS: dict[str, str] = {
    program: kind
    for kind, programs in DATA["kinds"].items()
    for program in programs.replace("\n", " ").split(", ")
}
_PLAIN = {*_KINDS, "pre-commit", *DATA["implies"].values()}
_LANGUAGES: dict[str, str] = {
    name: scope for scope, names in DATA["languages"].items() for name in names.split()
}
_PROGRAMS = {key: frozenset(names.split()) for key, names in DATA["programs"].items()}
_SEPARATOR = re.compile(r"[:_.\s]+")
_LINES = re.compile(r"&&|\|\||[;\n]|(?<!&)&(?!&)")
_CHECK_MODE, _FIXES, _GLUE, _PREFIX = map(pattern, ("check_mode", "fixes", "glue", "prefix"))
_ENDLESS_OPTION, _WATCH_OPTION, _ENDS, _SEVERAL = map(
    pattern, ("endless_option", "watch_option", "ends", "several")
)
_WATCHERS: dict[str, str] = DATA["watchers"]
_WATCHER = re.compile(rf"(?:{'|'.join(map(re.escape, _WATCHERS))})(?![\w:.-])")
_ONE_MORE = re.compile(r"[|<>`]|\$\(")  # behind these, an option would be another program's
_PART = pattern("some_tests")
_TOOLCHAIN = re.compile(r"^cargo \+\S+ ")
_COMMAS = re.compile(r"[,\s]+")
_TESTS = "|".join(re.escape(program) for program, kind in _KINDS.items() if kind == "test")
_NAMES_TESTS = re.compile(rf"(?<![\w-])(?:{_TESTS})(?![\w-])")


def spell(name: str) -> str:
    """Normalise a task's name: lower case, joined by `-`."""
    return _SEPARATOR.sub("-", name.strip().lower())


def find_word(name: str) -> Word | None:
    """Return the word that a task's name spells."""
    plain = spell(name)
    return next((word for word in WORDS if plain in word.spellings), None)


def kind_of(program: str) -> str:
    """Return what kind of gate a program is for; empty where that is not known."""
    count = 2 if program.partition(" ")[0] in _PROGRAMS["two_words"] else 1
    return _KINDS.get(program) or _KINDS.get(" ".join(program.split()[:count]), "")


def language_of(program: str) -> str:
    """Return the language that a program is about; empty where that is not known."""
    return _LANGUAGES.get(program.partition(" ")[0], "")


def lines_of(body: str) -> list[str]:
    """Return the commands of a shell text."""
    lines = (line.strip() for line in _LINES.split(body.replace("\\\n", " ")))
    return [line for line in lines if line and not _GLUE.match(line)]


def _without_prefix(line: str) -> str:
    while match := _PREFIX.match(line):
        line = line[match.end() :]
    return line


def program_of(line: str) -> str:
    """Return the program that a command runs, with its first argument where that matters.

    One of no known kind may run whatever its arguments name (`turbo run lint`, `inv test`,
    `docker compose run web pytest`), so they belong to it; so do those that select tests.
    """
    if "|" in line or "<" in line:
        return line  # several programs, known by their text only
    line = _without_prefix(line)
    words = _TOOLCHAIN.sub("cargo ", line).split() or [line]
    first, second = words[0], " ".join(words[1:2])
    if first == "ruff" and second not in ("format", "check"):
        second = "check"
    if first in ("prek", "pre_commit"):
        first = "pre-commit"
    program = f"{first} {second}".rstrip() if first in _PROGRAMS["two_words"] else first
    is_whole = program in _PLAIN and not (kind_of(program) == "test" and _PART.search(line))
    return program if is_whole else " ".join(words)


def tasks_of(line: str) -> list[str]:
    """Return a command for each task that a runner is asked for: `turbo run lint test` has two."""
    match = _SEVERAL.match(line)
    if not match:
        return [line]
    names = _COMMAS.split(match["tasks"].strip())
    return [f"{match['call']}{name}{line[match.end() :]}" for name in names]


def asks_for_tests(program: str) -> bool:
    """Return whether a program of no known kind is asked for a task that is named like tests."""
    arguments = () if program in _PLAIN else program.split()[1:]
    words = (find_word(argument.rpartition(":")[2]) for argument in arguments)
    return any(word is not None and word.name == "test" for word in words)


def name_of(command: str) -> str:
    """Return a name for a gate that runs a command."""
    first, *rest = program_of(command).split() or ["hook"]
    arguments = [word for word in rest if word != "run" and not word.startswith("-")]
    name = arguments[0] if arguments and first in _PROGRAMS["callers"] else first
    return re.sub(r"[^\w-]+", "-", name.rpartition("/")[2].partition(".")[0]).strip("-") or "hook"


def is_endless(line: str) -> bool:
    """Return whether a command watches, serves or prompts."""
    plain = _without_prefix(line)
    watcher = _WATCHER.match(plain)
    words = {*plain.split()[:2]} - {*(watcher[0].split() if watcher else ())}
    if _PROGRAMS["endless"] & words or _ENDLESS_OPTION.search(plain):
        return True
    return without_watching(line) != line or bool(watcher and not _ENDS.search(line))


def ending_option(line: str) -> str:
    """Return the option with which a command that watches by itself ends; empty where none does."""
    watcher = _WATCHER.match(_without_prefix(line))
    if not watcher or _ENDS.search(line) or _ONE_MORE.search(line):
        return ""
    option = _WATCHERS[watcher[0]]
    return "" if is_endless(f"{line} {option}") else option


def without_watching(line: str) -> str:
    """Return a command without the option that makes it watch."""
    words = _without_prefix(line).split()
    if words and words[0] in _PROGRAMS["short_watch"]:
        line = " ".join(word for word in line.split() if word != "-w")
    return _WATCH_OPTION.sub("", line)


def is_fixing(line: str) -> bool:
    """Return whether a command rewrites files, as far as its words show."""
    if _FIXES.search(line):
        return True
    program = program_of(line)
    return (kind_of(program) == "format" or program == "hatch fmt") and not _CHECK_MODE.search(line)


def names_tests(text: str) -> bool:
    """Return whether a text has the name of a program in it that runs tests."""
    return bool(_NAMES_TESTS.search(text))


def is_check_mode(text: str) -> bool:
    """Return whether arguments select a checking mode."""
    return "check" in spell(text) or bool(_CHECK_MODE.search(text))
