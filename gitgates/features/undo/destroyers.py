"""What commands of a line remove or overwrite, by a table: what they name, or are about.

A command that is not in it is covered by the save point before it. In doubt, it is the folder that
the command is about.
"""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from itertools import takewhile

from gitgates.core.record import Record
from gitgates.shell.options import read_options
from gitgates.shell.repositories import git_call
from gitgates.shell.syntax import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from gitgates.shell.options import Options
    from gitgates.shell.syntax import SimpleCommand

REMOVES, OVERWRITES, EDITS, DISCARDS = "removes", "overwrites", "edits", "discards"
# What a command of git takes: of a worktree, or else.
TRACKED, UNTRACKED, IGNORED, NESTED = "tracked", "untracked", "ignored", "nested"
BROUGHT = "brought"  # what git ignores here, and another commit has
INDEX, REFS, OBJECTS, MODULES, HISTORY = "index", "refs", "objects", "modules", "history"
_HELP = ("--help", "--version", "-n", "--dry-run")
_PLACE = "{}"
_IN_PLACE = re.compile(r"-[a-zA-Z0-9]*?i|--in-place(?:=)?")
_GIT_NAMES = ("HEAD", "config", "index", "objects", "refs", "packed-refs", "0" * 38)
_EXECS = ("-exec", "-execdir", "-ok", "-okdir")
_CHOICES, _NOT = ("-o", "-or", ","), ("!", "-not")
_NARROWING = ("-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex")
# Program → letters and names of the options that take a value; which operands it overwrites.
_ALL, _LAST = "all", "last"
_WRITERS: dict[str, tuple[str, tuple[str, ...], str]] = {
    **dict.fromkeys(("cp", "mv"), ("tS", ("--target-directory", "--suffix"), _LAST)),
    "install": ("tSmog", ("--target-directory", "--mode", "--owner", "--group"), _LAST),
    "ln": ("tS", ("--target-directory", "--suffix"), _LAST),
    **dict.fromkeys(("sponge", "tee"), ("", (), _ALL)),
    "truncate": ("sr", ("--size", "--reference"), _ALL),
    **dict.fromkeys(("sed", "gsed"), ("efl", ("--expression", "--file"), _ALL)),
    **dict.fromkeys(("perl", "ruby"), ("eEMIr", (), _ALL)),
    **dict.fromkeys(("awk", "gawk"), ("iFfv", ("--include",), _ALL)),
}
# Program → the same, and the options that name a file which it writes.
_OUTPUTS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "sort": ("okStT", ("--output", "--key"), ("-o", "--output")),
    "curl": ("oAdeFHTuX", ("--output", "--data", "--header", "--request"), ("-o", "--output")),
    "wget": ("OPaieoU", ("--output-document",), ("-O", "--output-document")),
}
# Program → the same, and the options with which it removes what it has copied.
_MOVERS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "tar": ("fCTX", ("--file", "--directory", "--exclude"), ("--remove-files",)),
    "zip": ("btx", ("--exclude",), ("-m", "--move")),
    "rsync": ("efBT", ("--exclude", "--include", "--rsh", "--filter"), ("--remove-source-files",)),
}
_KEEPING = ("-b", "--backup", "-a", "--append", "--no-clobber")
# Verb of git → of its options, one of which is given (none: any), and what it takes.
_GIT: dict[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = {
    "reset": ((("--soft",), ()), (("--hard", "--merge"), (TRACKED,)), ((), (INDEX,))),
    "restore": ((("--staged", "-S"), (INDEX,)), ((), (TRACKED,))),
    "switch": ((("-f", "--force", "--discard-changes"), (TRACKED,)), (("-C",), (REFS,))),
    "stash": (),
    "branch": ((("-D", "-M", "-C", "-f", "--force"), (REFS,)),),
    "tag": ((("-d", "--delete"), (REFS,)),),
    "update-ref": ((("-d", "--stdin"), (REFS,)),),
    "gc": ((("--prune",), (OBJECTS,)),),
    "prune": (((), (OBJECTS,)),),
    "reflog": (((), (OBJECTS,)),),
    "rm": ((("--cached",), ()), (("-f", "--force"), (TRACKED,))),
    "mv": ((("-f", "--force"), (TRACKED,)),),
    "checkout-index": ((("-f", "--force"), (TRACKED,)),),
    "read-tree": ((("--reset",), (TRACKED,)),),
    "filter-branch": (((), (REFS,)),),
    "filter-repo": (((), (HISTORY,)),),
    **dict.fromkeys(
        ("am", "cherry-pick", "merge", "rebase", "revert"), ((("--abort", "--skip"), (TRACKED,)),)
    ),
}
_BRINGING = (
    *("am", "checkout", "cherry-pick", "merge", "pull", "read-tree", "rebase", "reset", "restore"),
    *("revert", "stash", "switch"),
)
_GIT_VALUES = {
    "archive": ("o", ("--output",)),
    "clean": ("e", ("--exclude",)),
    "checkout": ("bB", ("--orphan",)),
}


class Destroyer(Record):
    """What one command removes or overwrites."""

    words: tuple[str, ...]
    does: str
    paths: tuple[str, ...] = ()  # as they are written, from the folder where it runs
    folder: str = ""  # of `git -C`
    below: bool = False  # what is in folders, too
    spares_git: bool = False  # of all that is below a folder, not `.git`
    names: tuple[str, ...] = ()  # only files with such a name
    takes: tuple[str, ...] = ()  # by a command of git


def destroyers(commands: tuple[SimpleCommand, ...]) -> Iterator[tuple[SimpleCommand, Destroyer]]:
    """Yield what the commands of a line destroy, each with the command."""
    for at, command in enumerate(commands):
        name = os.path.basename(command.words[0]) if command.words else ""
        for path in command.replaces:
            yield command, Destroyer((*command.words, ">", path), OVERWRITES, (path,))
        if not name or not {*command.words[1:]}.isdisjoint(_HELP):
            continue
        for found in _of(name, command, commands[:at]):
            yield command, found._replace(words=(name, *command.words[1:]))


def _of(
    name: str, command: SimpleCommand, earlier: tuple[SimpleCommand, ...]
) -> Iterator[Destroyer]:
    words = command.words
    if name == "git":
        yield from _of_git(words)
    elif name in ("rm", "shred", "srm", "unlink"):
        options = read_options(words[1:], "ns" if name == "shred" else "")
        below = options.has("-r", "-R", "--recursive")
        yield _fed(Destroyer((), REMOVES, options.plain, below=below), command, earlier)
    elif name == "find" and "-delete" in _own_words(words):
        yield _found(words)
    elif name in _MOVERS:
        letters, names, moving = _MOVERS[name]
        options = read_options(words[1:], letters, names)
        if options.has(*moving):
            yield Destroyer((), REMOVES, options.plain, below=True)
        elif name == "rsync" and any(option.startswith("--del") for option, _ in options.given):
            yield Destroyer((), REMOVES, options.plain[-1:], below=True)
    elif name == "dd":
        paths = [word.removeprefix("of=") for word in words if word.startswith("of=")]
        yield Destroyer((), OVERWRITES, tuple(paths))
    elif name in _OUTPUTS:
        letters, names, writing = _OUTPUTS[name]
        yield Destroyer((), OVERWRITES, read_options(words[1:], letters, names).values(*writing))
    elif name in _WRITERS:
        yield from _written(name, command, earlier)


def _written(
    name: str, command: SimpleCommand, earlier: tuple[SimpleCommand, ...]
) -> Iterator[Destroyer]:
    letters, names, which = _WRITERS[name]
    options = read_options(command.words[1:], letters, names)
    if options.has(*_KEEPING) or (name == "ln" and not options.has("-f", "--force")):
        return
    if which == _ALL:
        is_edit = name not in ("sponge", "tee", "truncate")
        if name in ("awk", "gawk"):
            is_in_place = "inplace" in options.values("-i", "--include")
        else:
            is_in_place = any(map(_IN_PLACE.fullmatch, command.words))
        if is_edit and not is_in_place:
            return
        found = Destroyer((), EDITS if is_edit else OVERWRITES, options.plain)
        yield _fed(found, command, earlier)
    elif name == "mv" and options.plain[-1:] == ("/dev/null",):
        yield Destroyer((), REMOVES, options.plain[:-1], below=True)
    elif not options.has("-n"):
        yield Destroyer((), OVERWRITES, _targets(options))


def _targets(options: Options) -> tuple[str, ...]:
    """Return what files become that are copied or moved."""
    folders = options.values("-t", "--target-directory")
    *sources, goal = (*options.plain, *folders[:1]) or ("",)
    inside = [os.path.join(goal, os.path.basename(source.rstrip("/"))) for source in sources]
    return (*inside, *(() if folders else (goal,)))


def _fed(found: Destroyer, command: SimpleCommand, earlier: tuple[SimpleCommand, ...]) -> Destroyer:
    """Return it with what xargs or find give to it; where only they know: a folder."""
    is_read = UNKNOWN in command.stdin and UNKNOWN in found.paths
    if not (command.fed or command.is_fed) or not (
        command.is_fed or is_read or _PLACE in "".join(found.paths)
    ):
        return found
    own = tuple(path for path in found.paths if _PLACE not in path and path != UNKNOWN)
    if UNKNOWN not in command.stdin:
        return found._replace(paths=(*own, *command.stdin.split()))
    programs = [os.path.basename(each.words[0]) for each in earlier if each.words]
    lister = next((each for each in reversed(earlier) if each.words), command)
    if "find" in programs:
        finds = [each for each in earlier if os.path.basename((*each.words, "")[0]) == "find"]
        searched = _found(finds[-1].words)
        return searched._replace(does=found.does, paths=(*own, *searched.paths))
    lists_all = any(
        each.words[:1] == ("ls",)
        and any(word[:1] == "-" and not {*"aA"}.isdisjoint(word) for word in each.words)
        for each in earlier
    )
    folders = tuple(word for word in lister.words[1:] if os.path.isdir(word)) or (".",)
    return found._replace(
        paths=(*own, *folders), below=True, spares_git=not (lists_all and found.below)
    )


def _own_words(words: tuple[str, ...]) -> Iterator[str]:
    """Yield the words of find without those of the commands that it starts."""
    inside = False
    for word in words:
        inside = word in _EXECS or (inside and word not in (";", "+"))
        if not inside:
            yield word


def _found(words: tuple[str, ...]) -> Destroyer:
    """Return what a command of find looks at."""
    paths = tuple(takewhile(lambda word: word[:1] not in ("-", "(", "!"), words[1:]))
    rest = ("", *words[words.index("-prune") + 2 :]) if "-prune" in words else words
    patterns = [
        (option, pattern)
        for before, option, pattern in zip(rest, rest[1:], rest[2:], strict=False)
        if option in _NARROWING and before not in _NOT
    ]
    is_choice = not {*_CHOICES}.isdisjoint(rest)
    names = tuple(pattern for option, pattern in patterns if option in ("-name", "-iname"))
    hits_git = any(fnmatchcase(name, pattern) for pattern in names for name in _GIT_NAMES)
    is_narrow = bool(patterns) and not is_choice and not hits_git
    spares = is_narrow or "-empty" in words or any(".git" in word for word in words[1:])
    names = () if is_choice else names
    return Destroyer((), REMOVES, paths or (".",), below=True, spares_git=spares, names=names)


def _of_git(words: tuple[str, ...]) -> Iterator[Destroyer]:
    call = git_call(list(words[1:]))
    letters, names = _GIT_VALUES.get(call.verb, ("", ()))
    options = read_options(call.rest, letters, names)
    found = Destroyer((), DISCARDS, folder="" if UNKNOWN in call.folder else call.folder)
    first = "".join(options.before[:1])
    if call.verb == "clean":
        is_free = any("requireforce=false" in setting.lower() for setting in call.settings)
        found = found._replace(
            does=REMOVES, takes=_cleaned(options, is_free=is_free), paths=options.plain
        )
    elif call.verb == "checkout":
        found = found._replace(takes=_checked_out(options))
    elif call.verb == "archive":
        found = found._replace(does=OVERWRITES, paths=options.values("-o", "--output"), below=True)
    elif call.verb == "worktree" and first == "remove" and options.has("-f", "--force"):
        found = found._replace(does=REMOVES, paths=options.plain[1:2], below=True)
    else:
        found = found._replace(takes=_taken(call.verb, first, options), paths=options.plain)
    if call.verb in _BRINGING:
        found = found._replace(takes=(*found.takes, BROUGHT))
    if found.takes or found.below:
        yield found


def _cleaned(options: Options, *, is_free: bool) -> tuple[str, ...]:
    """Return what `git clean` takes. `is_free`: it does not require `-f`."""
    forces = sum(given in ("-f", "--force") for given, _ in options.given)
    is_dry = options.has("-n", "--dry-run")
    if is_dry or not (forces or is_free or options.has("-i", "--interactive")):
        return ()
    takes = [] if options.has("-X") else [UNTRACKED]
    takes += [IGNORED] if options.has("-x", "-X") else []
    return (*takes, *([NESTED] if forces > 1 else []))


def _checked_out(options: Options) -> tuple[str, ...]:
    if options.has("-p", "--patch"):
        return ()
    paths = options.behind or [path for path in options.before if os.path.lexists(path)]
    is_branch = options.has("-b", "-B", "--orphan")
    return (TRACKED,) if options.has("-f", "--force") or (paths and not is_branch) else ()


def _taken(verb: str, first: str, options: Options) -> tuple[str, ...]:
    """Return what another command of git takes. `first` is its first operand."""
    if verb == "stash":
        return (REFS,) if first in ("drop", "clear", "pop") else ()
    if verb == "submodule":
        return (MODULES,) if first == "foreach" or options.has("-f", "--force") else ()
    if verb == "reflog" and first not in ("expire", "delete"):
        return ()
    rows = _GIT.get(verb, ())
    return next((takes for given, takes in rows if not given or options.has(*given)), ())
