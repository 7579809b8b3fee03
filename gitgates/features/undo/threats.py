"""What the commands of a line remove or overwrite, by the table."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from itertools import takewhile

from gitgates.core.record import Record
from gitgates.features.undo import table
from gitgates.features.undo.table import ROWS
from gitgates.shell.known import alias_of, known_output
from gitgates.shell.options import read_options
from gitgates.shell.repositories import git_call
from gitgates.shell.syntax import UNKNOWN, read_command_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gitgates.features.undo.table import Row
    from gitgates.git.repo import Repo
    from gitgates.shell.options import Options
    from gitgates.shell.repositories import GitCall
    from gitgates.shell.syntax import SimpleCommand

_MOST_COMMANDS = 500
_HELP = ("--help", "--version", "--dry-run")
_PLACE = "{}"
_GIT_NAMES = ("HEAD", "config", "index", "objects", "refs", "packed-refs", "0" * 38)
_CHOICES, _NOT = ("-o", "-or", ","), ("!", "-not")
_NARROWING = ("-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex")


class Threat(Record):
    """What one command removes or overwrites."""

    words: tuple[str, ...]
    does: str
    paths: tuple[str, ...] = ()  # as they are written, from the folder where it runs
    folder: str = ""  # of `git -C`
    deep: bool = False  # what is in folders, too
    spares_git: bool = False  # of all that is below a folder, not `.git`
    names: tuple[str, ...] = ()  # only files with such a name
    takes: tuple[str, ...] = ()  # by a command of git


def call_of(words: tuple[str, ...]) -> GitCall | None:
    """Return a command of git, taken apart; None: it is another program."""
    is_git = words and os.path.basename(words[0]) == "git"
    return git_call(list(words[1:])) if is_git else None


def commands_of(
    text: str, repo: Repo, cwd_abs: str, env: Mapping[str, str]
) -> tuple[SimpleCommand, ...]:
    """Return the commands of a line; of a long one, its beginning."""
    line = read_command_line(
        text,
        {**env, "PWD": cwd_abs},
        lambda words, cwd: known_output(repo, os.path.join(cwd_abs, cwd), words),
        is_folder=lambda path: os.path.isdir(os.path.join(cwd_abs, path)),
        alias_of=lambda verb: alias_of(repo, verb),
    )
    return tuple(map(_without_nul, line.commands[:_MOST_COMMANDS]))


def _without_nul(command: SimpleCommand) -> SimpleCommand:
    """Return a command without NUL characters, which a shell drops."""
    return command._replace(
        words=tuple(word.replace("\0", "") for word in command.words),
        cwd=command.cwd.replace("\0", ""),
        fallback=command.fallback.replace("\0", ""),
    )


def threats(commands: tuple[SimpleCommand, ...]) -> Iterator[tuple[SimpleCommand, Threat]]:
    """Yield what the commands of a line destroy, each with the command."""
    for at, command in enumerate(commands):
        words = command.words
        for path in command.replaces:
            yield command, Threat((*words, ">", path), table.OVERWRITES, (path,))
        if not words or not {*words[1:]}.isdisjoint(_HELP):
            continue
        if found := _by_table(command, commands[:at]):
            yield command, found


def _by_table(command: SimpleCommand, earlier: tuple[SimpleCommand, ...]) -> Threat | None:
    """Return what a command is about, by all rows that it has."""
    words = (os.path.basename(command.words[0]), *command.words[1:])
    call = call_of(words)
    rest, heads = call.rest if call else words[1:], [words[0]]
    if call:
        first = next((word for word in rest if not word.startswith("-")), "")
        heads = [f"git {call.verb} {first}", f"git {call.verb}"]
    found, folder = None, call.folder if call and UNKNOWN not in call.folder else ""
    for row, head in ((row, head) for row in ROWS for head in heads if row.has(head)):
        valued = row.valued.split()
        letters = "".join(name[1] for name in valued if name[:2] != "--")
        options = read_options(rest, letters, [name for name in valued if name[:2] == "--"])
        if row.needs and not _is_given(row.needs, options, rest):
            continue
        if _is_given(row.unless, options, rest):
            continue
        if found is None:
            found = Threat(words, row.does, folder=folder)
        if row.about == table.SEARCH:
            found = _searched(words)
            continue
        paths = _paths(row, options)[head.count(" ") - 1 if call else 0 :]
        found = found._replace(
            paths=tuple(dict.fromkeys((*found.paths, *paths))),
            deep=found.deep or row.deep == table.EVER or _is_given(row.deep, options, rest),
            takes=(*found.takes, *row.takes),
        )
        if row.about == table.ALL and not call:
            found = _fed(found, command, earlier)
    return found


def _is_given(wanted: str, options: Options, words: Sequence[str]) -> bool:
    """Return whether one of these options is given."""
    given = [option for option, _value in options.given]
    for name, _, value in (each.partition("=") for each in wanted.split()):
        if name == "--":
            is_given = bool(options.behind) or any(map(os.path.lexists, options.before))
        elif name == "-ff":
            is_given = given.count("-f") + given.count("--force") > 1
        elif value:
            is_given = value in options.values(name)
        else:
            is_given = options.has(name) or name in words
        if is_given:
            return True
    return False


def _paths(row: Row, options: Options) -> tuple[str, ...]:
    """Return the words that a row is about."""
    operands = options.plain
    match row.about:
        case table.ALL:
            return operands
        case table.LAST:
            return operands[-1:]
        case table.OUTPUT:
            return tuple(word.removeprefix("of=") for word in operands if word.startswith("of="))
        case table.GOALS:  # what files become that are copied or moved
            folders = options.values("-t", "--target-directory")
            *sources, goal = (*operands, *folders[:1]) or ("",)
            inside = [os.path.join(goal, os.path.basename(path.rstrip("/"))) for path in sources]
            return (*inside, *(() if folders else (goal,)))
    return options.values(*row.about.split())


def _fed(found: Threat, command: SimpleCommand, earlier: Iterable[SimpleCommand]) -> Threat:
    """Return it with what xargs or find give to it; if only they know: a folder."""
    own = tuple(path for path in found.paths if _PLACE not in path and path != UNKNOWN)
    is_read = command.fed and len(own) < len(found.paths)
    if not (command.is_fed or is_read):
        return found
    if UNKNOWN not in command.stdin:
        return found._replace(paths=(*own, *command.stdin.split()))
    listers = [each.words for each in earlier if each.words] or [command.words]
    finds = [words for words in listers if os.path.basename(words[0]) == "find"]
    if finds:
        searched = _searched(finds[-1])
        return searched._replace(words=found.words, does=found.does, paths=(*own, *searched.paths))
    lists_git = any(
        words[0] == "ls" and any(word[:1] == "-" and not {*"aA"}.isdisjoint(word) for word in words)
        for words in listers
    )
    folders = tuple(word for word in listers[-1][1:] if os.path.isdir(word)) or (".",)
    spares_git = not (lists_git and found.deep)
    return found._replace(paths=(*own, *folders), deep=True, spares_git=spares_git)


def _searched(words: tuple[str, ...]) -> Threat:
    """Return what a command of find looks at."""
    paths = tuple(takewhile(lambda word: word[:1] not in ("-", "(", "!"), words[1:]))
    rest = ("", *words[words.index("-prune") + 2 :]) if "-prune" in words else words
    patterns = [
        (option, pattern)
        for before, option, pattern in zip(rest, rest[1:], rest[2:], strict=False)
        if option in _NARROWING and before not in _NOT
    ]
    is_narrow = bool(patterns) and {*_CHOICES}.isdisjoint(rest)
    names = tuple(pattern for option, pattern in patterns if option in ("-name", "-iname"))
    hits_git = any(fnmatchcase(name, pattern) for pattern in names for name in _GIT_NAMES)
    return Threat(
        words,
        table.REMOVES,
        paths or (".",),
        deep=True,
        spares_git=(is_narrow and not hits_git)
        or "-empty" in words
        or any(".git" in word for word in words[1:]),
        names=names if is_narrow else (),
    )
