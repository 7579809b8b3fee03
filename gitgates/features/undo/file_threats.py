"""What programs other than git destroy of files: removed, overwritten, emptied, edited in place."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from itertools import pairwise, takewhile

from gitgates.core.record import Record
from gitgates.features.undo.threats import Threat
from gitgates.shell.options import read_options
from gitgates.shell.syntax import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gitgates.shell.options import Options
    from gitgates.shell.syntax import SimpleCommand

_REMOVES, _OVERWRITES, _EMPTIES, _EDITS = "removes", "overwrites", "empties", "edits"
_HELP = ("--help", "--version")
_EXECS = ("-exec", "-execdir", "-ok", "-okdir")
_NAMES = ("-name", "-iname")  # of find
_CHOICES = ("-o", "-or", "!", "-not", ",")  # with these, names say nothing
_RESTRICTING = {*_NAMES, "-path", "-wholename", "-ipath", "-regex", "-maxdepth", "-prune"}
_REMOVERS = ("rm", "shred", "srm", "unlink")
_PLACE = "{}"  # in a command that is given its arguments
_IN_PLACE = re.compile(r"(?:-[a-zA-Z0-9]*?i|--in-place(?:=|$))(.*)")  # the suffix of a copy
_DEVICES = ("/dev/", "/proc/", "/sys/")


def file_threats(
    command: SimpleCommand, cwd_abs: str, find: tuple[str, ...] = ()
) -> Iterator[Threat]:
    """Yield what a program destroys, with its redirections.

    `cwd_abs`: where it runs; `find`: the words of the last `find` before it, which may feed it.
    """
    words = command.words
    name = os.path.basename(words[0]) if words else ""
    for path in command.replaces:
        yield Threat(words=(*words, ">", path), does=_OVERWRITES, paths=(path,), follows=True)
    threats_of = _PROGRAMS.get(name)
    if threats_of and not any(word in _HELP for word in words):
        letters, names = _VALUED.get(name, ("", ()))
        options = read_options(words[1:], letters, names)
        for threat in threats_of(options, _Given(command, cwd_abs, find)):
            if threat.paths and not all(map(is_device, threat.paths)):
                yield threat._replace(words=(name, *words[1:]))


def is_device(path: str) -> bool:
    """Return whether a path is that of no file."""
    return path.startswith(_DEVICES) and not path.startswith("/dev/shm/")  # noqa: S108 - not ours


class _Given:
    """What a command is given beside its words, and where it runs."""

    def __init__(self, command: SimpleCommand, cwd_abs: str, find: tuple[str, ...]) -> None:
        self.words = command.words
        self._command = command
        self._cwd_abs = cwd_abs
        self._find, self._is_found = Found.by(find), bool(find)

    def at(self, path: str) -> str:
        return os.path.join(self._cwd_abs, path)

    def is_folder(self, path: str) -> bool:
        return os.path.isdir(self.at(path))

    def threat(self, does: str, paths: tuple[str, ...], *, below: bool = False) -> Threat:
        """Return the threat to operands, and to what comes from xargs or find."""
        fed, stdin = self._command.fed, self._command.stdin
        is_read = UNKNOWN in stdin and UNKNOWN in paths  # by `read`, into a variable
        is_fed = self._command.is_fed or is_read or any(_PLACE in path for path in paths)
        if not (fed and is_fed):
            return Threat(words=(), does=does, paths=paths, below=below)
        own = tuple(
            path for path in paths if _PLACE not in path and (path != UNKNOWN or not is_read)
        )
        threat = Threat(words=(), does=does, paths=own, below=below)
        if UNKNOWN not in stdin:
            return threat._replace(paths=(*own, *stdin.split()))
        is_found = self._is_found and all(path in fed for path in self._find.paths)
        if is_found:
            paths, names = self._find.paths or (".",), self._find.names
        else:
            paths, names = tuple(path for path in fed if self.is_folder(path)) or (".",), ()
        return threat._replace(
            paths=(*own, *paths),
            names=names,
            below=True,
            spares_git=not is_found or self._find.spares_git,
        )


class Found(Record):
    """What a command of find looks at."""

    paths: tuple[str, ...] = ()  # (): the folder that it runs in
    names: tuple[str, ...] = ()  # patterns that each name has to match; (): all do
    is_empty: bool = False  # only what is empty
    spares_git: bool = False  # it is restricted in a way that may leave `.git` out

    @classmethod
    def by(cls, words: tuple[str, ...]) -> Found:
        """Return what a command looks at; `words` begin with `find`."""
        paths = tuple(takewhile(lambda word: word[:1] not in ("-", "(", "!"), words[1:]))
        pairs = pairwise(words)
        names = tuple(after for word, after in pairs if word in _NAMES)
        is_choice = any(word in _CHOICES for word in words)
        return cls(
            paths,
            names=() if is_choice else names,
            is_empty="-empty" in words and not is_choice,
            spares_git=is_choice or not _RESTRICTING.isdisjoint(words),
        )


def _remove(options: Options, given: _Given) -> Iterator[Threat]:
    below = options.has("-r", "-R", "--recursive")
    yield given.threat(_REMOVES, options.plain, below=below)


def _write(does: str, *, edits: bool = False) -> Callable[[Options, _Given], Iterator[Threat]]:
    def threats(options: Options, given: _Given) -> Iterator[Threat]:
        yield given.threat(does, options.plain)._replace(follows=True, edits=edits)

    return threats


def _tee(options: Options, given: _Given) -> Iterator[Threat]:
    if not options.has("-a", "--append"):
        yield from _write(_OVERWRITES)(options, given)


def _truncate(options: Options, given: _Given) -> Iterator[Threat]:
    sizes = options.values("-s", "--size")
    if not any(size.startswith(("+", ">", "%")) for size in sizes):
        yield from _write(_EMPTIES)(options, given)


def _in_place(options: Options, given: _Given) -> Iterator[Threat]:
    suffixes = [match[1] for match in map(_IN_PLACE.fullmatch, given.words) if match]
    if suffixes and not any(suffixes):  # a suffix keeps what was there
        is_script = os.path.basename(given.words[0]) in ("sed", "gsed")
        is_script &= not options.has("-e", "--expression", "-f", "--file")
        paths = options.plain[1:] if is_script else options.plain
        yield from _write(_EDITS, edits=True)(options._replace(before=paths, behind=()), given)


def _gawk(options: Options, given: _Given) -> Iterator[Threat]:
    if "inplace" in options.values("-i", "--include"):
        options = options._replace(before=options.plain[1:], behind=())
        yield from _write(_EDITS, edits=True)(options, given)


def _sort(options: Options, _given: _Given) -> Iterator[Threat]:
    paths = options.values("-o", "--output")
    yield Threat(words=(), does=_OVERWRITES, paths=paths, below=False, follows=True)


def _dd(options: Options, _given: _Given) -> Iterator[Threat]:
    paths = tuple(word.removeprefix("of=") for word in options.plain if word.startswith("of="))
    is_kept = any(word.startswith("oflag=") and "append" in word for word in options.plain)
    yield Threat(
        words=(), does=_OVERWRITES, paths=() if is_kept else paths, below=False, follows=True
    )


def _move(options: Options, given: _Given) -> Iterator[Threat]:
    if options.has("-n", "--no-clobber", "-b", "--backup"):
        return
    if options.plain[-1:] == ("/dev/null",):
        yield Threat(words=(), does=_REMOVES, paths=options.plain[:-1])
        return
    for source, target in _targets(options, given):
        if os.path.lexists(given.at(source)) and not given.is_folder(target):
            yield Threat(words=(), does=_OVERWRITES, paths=(target,), below=False)


def _copy(options: Options, given: _Given) -> Iterator[Threat]:
    if options.has("-n", "--no-clobber", "-b", "--backup", "--update"):
        return
    for source, target in _targets(options, given):
        yield from _over(source, target, given)


def _over(source: str, target: str, given: _Given) -> Iterator[Threat]:
    if not os.path.lexists(given.at(source)):
        return
    if given.is_folder(source):
        yield Threat(
            words=(), does=_OVERWRITES, paths=(target,), copied_abs=given.at(source), follows=True
        )
    elif not _is_same(given.at(source), given.at(target)):
        yield Threat(words=(), does=_OVERWRITES, paths=(target,), below=False, follows=True)


def _is_same(first_abs: str, second_abs: str) -> bool:
    try:
        return os.path.samefile(first_abs, second_abs)
    except OSError:
        return False


def _targets(options: Options, given: _Given) -> Iterator[tuple[str, str]]:
    """Yield what is copied or moved, and what that becomes."""
    paths = options.plain
    if folders := options.values("-t", "--target-directory"):
        sources, goal = paths, folders[0]
    else:
        sources, goal = paths[:-1], "".join(paths[-1:])
    if UNKNOWN in goal:
        return
    is_into = not options.has("-T", "--no-target-directory") and given.is_folder(goal)
    for source in sources:
        name = os.path.basename(source.rstrip("/"))
        yield source, os.path.join(goal, name) if is_into else goal


def _link(options: Options, given: _Given) -> Iterator[Threat]:
    if options.has("-f", "--force") and not options.has("-b", "--backup"):
        for _, target in _targets(options, given):
            yield Threat(words=(), does=_OVERWRITES, paths=(target,), below=False)


def _rsync(options: Options, given: _Given) -> Iterator[Threat]:
    *sources, goal = options.plain or ("",)
    if (
        not sources
        or ":" in goal
        or UNKNOWN in goal
        or options.has("-n", "--dry-run", "--list-only")
    ):
        return
    if any(name.startswith("--del") for name, _ in options.given):
        yield Threat(words=(), does=_REMOVES, paths=(goal,))
    elif not options.has("-b", "--backup", "--ignore-existing"):
        for source in sources:
            is_content = source.endswith("/") or not given.is_folder(goal)
            name = os.path.basename(source)
            target = goal if is_content else os.path.join(goal, name)
            yield from _over(source, target, given)


def _find(_options: Options, given: _Given) -> Iterator[Threat]:
    found = Found.by(given.words)
    if "-delete" in _own_words(given.words) and not found.is_empty:
        yield Threat(
            words=(),
            does=_REMOVES,
            paths=found.paths or (".",),
            names=found.names,
            spares_git=found.spares_git,
        )


def _own_words(words: tuple[str, ...]) -> Iterator[str]:
    """Yield the words of find without those of the commands that it starts."""
    inside = False
    for word in words:
        inside = word in _EXECS or (inside and word not in (";", "+"))
        if not inside:
            yield word


def is_named(path: str, names: tuple[str, ...]) -> bool:
    """Return whether a file, or a folder above it, has one of these names; (): any has."""
    parts = path.rstrip("/").split("/")
    return not names or any(fnmatchcase(part, name) for part in parts for name in names)


_PROGRAMS: dict[str, Callable[[Options, _Given], Iterator[Threat]]] = {
    **dict.fromkeys(_REMOVERS, _remove),
    **dict.fromkeys(("sed", "gsed", "perl", "ruby"), _in_place),
    **dict.fromkeys(("cp", "install", "gcp", "ginstall"), _copy),
    "dd": _dd,
    "find": _find,
    "gawk": _gawk,
    "ln": _link,
    "mv": _move,
    "rsync": _rsync,
    "sort": _sort,
    "sponge": _tee,
    "tee": _tee,
    "truncate": _truncate,
}
# Options that take a value.
_VALUED: dict[str, tuple[str, tuple[str, ...]]] = {
    "cp": ("tS", ("--target-directory", "--suffix")),
    "gawk": ("ifvFe", ("--include", "--file", "--assign", "--source")),
    "gsed": ("efl", ("--expression", "--file")),
    "install": ("tSmog", ("--target-directory", "--mode", "--owner", "--group", "--suffix")),
    "ln": ("tS", ("--target-directory", "--suffix")),
    "mv": ("tS", ("--target-directory", "--suffix")),
    "perl": ("eEMI", ()),
    "rsync": ("efBT", ("--exclude", "--include", "--exclude-from", "--rsh", "--filter")),
    "ruby": ("erI", ()),
    "sed": ("efl", ("--expression", "--file")),
    "shred": ("ns", ("--iterations", "--size")),
    "sort": ("okStT", ("--output", "--key", "--buffer-size", "--field-separator")),
    "truncate": ("sr", ("--size", "--reference")),
}
