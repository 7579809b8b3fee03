"""What a line's commands remove or overwrite, by the table, and which part cannot be saved."""

from __future__ import annotations

import os
from fnmatch import fnmatchcase
from itertools import takewhile

from gitgates.core.record import Record
from gitgates.features.undo import table
from gitgates.features.undo.table import ROWS
from gitgates.files.ignored import can_be_made
from gitgates.git.repo import Git
from gitgates.shell.known import alias_of, known_output
from gitgates.shell.options import read_options
from gitgates.shell.repositories import git_call
from gitgates.shell.syntax import UNKNOWN, read_command_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from gitgates.features.undo.table import Row
    from gitgates.files.look import Look
    from gitgates.git.repo import Repo
    from gitgates.shell.options import Options
    from gitgates.shell.repositories import GitCall
    from gitgates.shell.syntax import SimpleCommand

_TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/folders", "/dev/shm")  # noqa: S108 - of everybody
_MOST_ARGS = 500  # paths for one git command
_MOST_MATCHES = 1000  # of a pattern; if there are more, its folder counts instead
# What a repository consists of; git's commands create the rest of `.git` again.
_GIT_DATA = (
    *("HEAD", "config", "index", "lfs", "logs", "modules", "objects", "packed-refs", "refs"),
    *("shallow", "worktrees"),
)
_OUTSIDE = "it is outside the repository"
_OTHER = "it is in another worktree or repository"
_REPOSITORY = "a repository of its own"
_GIT = "it is `.git` itself"
_UNKNOWN = "only the shell knows which path it is"
_UNNAMED = "no branch or stash entry names them, and a save point has only those"
_DIRTY = "a repository of its own, with uncommitted changes"
_COMMITS = "it removes the commits that a save point refers to"
_MADE_ENDINGS = (".pyc", ".o", ".log", ".tmp", ".pid")
_HOME_CACHES = (".cache", ".npm", ".cargo/registry", "Library/Caches", ".gradle/caches")


class Unsavable(Record):
    """What no save point can hold, and why."""

    path: str
    why: str


class Surroundings(Record):
    """Where a command line runs, and what the last look found there."""

    cwd_abs: str
    repo: Repo
    env: Mapping[str, str]
    look: Look | None = None  # None: no look was possible
    temporary: tuple[str, ...] = _TEMPORARY


class Search:
    """Looks for what cannot be saved."""

    def __init__(self, place: Surroundings) -> None:
        self._place = place
        self._git = place.repo.git
        self._root_abs = os.path.realpath(place.repo.root_abs)
        self._common_abs = os.path.realpath(place.repo.common_dir_abs)
        git_dir_abs = os.path.realpath(place.repo.git_dir_abs)
        self._git_dirs = {os.path.realpath(f"{self._root_abs}/.git"), git_dir_abs, self._common_abs}
        look = place.look
        self._ignored = look.ignored_out if look else {}
        modules = dict.fromkeys(look.dirty, _DIRTY) if look else {}
        self._left_out = {**look.all_left_out, **modules} if look else {}

    def of(self, threat: Threat, cwd_abs: str) -> Iterator[Unsavable]:
        """Yield what a command in a folder destroys and that cannot be saved."""
        folder_abs = os.path.join(cwd_abs, threat.folder)
        if threat.takes:
            yield from self._of_git(threat, folder_abs)
            return
        for word in threat.paths:
            for path_abs, is_known in _paths(folder_abs, word):
                if why := self._why(path_abs, threat, is_known=is_known):
                    yield Unsavable(word.replace(UNKNOWN, "…"), why)
                    continue
                if threat.deep:
                    yield from self._linked(path_abs, threat.names)
                yield from self._inside(path_abs, threat)

    def _why(self, path_abs: str, threat: Threat, *, is_known: bool) -> str:
        """Return why the whole of a path cannot be saved; empty if it can."""
        is_deep = threat.deep and os.path.isdir(path_abs) and not os.path.islink(path_abs)
        for git_dir in self._git_dirs:
            if _is_below(path_abs, git_dir):
                name = path_abs[len(git_dir) :].strip("/").partition("/")[0]
                is_data = name in ("", *_GIT_DATA) and not path_abs.endswith(".lock")
                return _GIT if is_data else ""
            if is_deep and is_known and not threat.spares_git and _is_below(git_dir, path_abs):
                return _GIT
        removes = threat.does == table.REMOVES
        if is_deep and removes and not is_known and path_abs == self._root_abs:
            return _UNKNOWN
        root_abs = _root_of(path_abs)
        is_there = is_deep or (os.path.lexists(path_abs) and not os.path.isdir(path_abs))
        if root_abs == self._root_abs or not is_there or _is_empty(path_abs):
            return ""
        if self._is_temporary(path_abs, root_abs):
            return ""
        if root_abs:
            return _OTHER if self._holds_own(root_abs, path_abs) else ""
        is_edit = threat.does == table.EDITS or not (is_known or removes)
        if is_edit or self._is_made(path_abs):
            return ""
        return _OUTSIDE if is_known else _UNKNOWN

    def _inside(self, path_abs: str, threat: Threat) -> Iterator[Unsavable]:
        """Yield what the last look left out at or below a path."""
        for path, why in self._left_out.items():
            left_abs, is_nested = f"{self._root_abs}/{path}", why in (_REPOSITORY, _DIRTY)
            is_in = _is_below(path_abs, left_abs) and not is_nested and os.path.lexists(path_abs)
            if not is_in and not (threat.deep and _is_below(left_abs, path_abs)):
                continue
            if is_nested:
                is_hit = threat.deep and self._holds_own(left_abs, *_patterns(threat.names))
            else:
                name, names = os.path.basename(path), threat.names
                is_hit = not names or os.path.isdir(left_abs)
                is_hit = is_hit or any(fnmatchcase(name, pattern) for pattern in names)
            if is_hit:
                yield Unsavable(path, f"it is {why}")

    def _of_git(self, threat: Threat, folder_abs: str) -> Iterator[Unsavable]:
        root_abs, takes, git = _root_of(os.path.realpath(folder_abs)), threat.takes, self._git
        if not root_abs or not os.path.isdir(folder_abs):
            return
        if root_abs != self._root_abs:
            if not self._is_temporary(root_abs, root_abs) and self._holds_own(root_abs):
                yield Unsavable(root_abs, _OTHER)
            return
        if table.HISTORY in takes and git.resolve("HEAD"):
            yield Unsavable("all commits", _COMMITS)
        if table.OBJECTS in takes and self._has_commits("--reflog", "--not", "--all"):
            yield Unsavable("commits that only the reflog names", _UNNAMED)
        for name in threat.paths if table.REFS in takes else ():  # tags, and other refs
            ref = name if name.startswith("refs/") else f"refs/tags/{name}"
            is_saved = ref.startswith("refs/heads/")
            if not is_saved and self._has_commits(ref, "--not", f"--exclude={ref}", "--all"):
                yield Unsavable(ref, "a save point has only branches and the stash")
        if table.BROUGHT in takes:
            yield from self._brought()
        yield from self._in_worktree(threat, folder_abs)

    def _has_commits(self, *revisions: str) -> bool:
        return bool(self._git.ask("rev-list", "--max-count=1", *revisions).stdout)

    def _brought(self) -> Iterator[Unsavable]:
        """Yield what git ignores here, but could overwrite from a commit."""
        ask = ("log", "--all", "--max-count=1", "--format=", "--name-only", "-z", "-m", "--")
        paths = [*self._ignored]
        for start in range(0, len(paths), _MOST_ARGS):
            if found := self._git.names(*ask, *paths[start : start + _MOST_ARGS]):
                yield Unsavable(found[0], f"it is {self._ignored.get(found[0], 'too large')}")
                return  # one of them is reason enough to ask

    def _in_worktree(self, threat: Threat, folder_abs: str) -> Iterator[Unsavable]:
        """Yield what was left out, if it is of a kind that a git command destroys."""
        takes, paths = threat.takes, threat.paths if threat.does == table.REMOVES else ()
        if table.TRACKED in takes:  # git's settings decide whether it affects submodules
            takes = (*takes, table.MODULES)
        places = [_placed(f"{folder_abs}/{path}") for path in paths] or [self._root_abs]
        if table.NESTED in takes:
            for place_abs in places:
                yield from self._linked(place_abs)
        for path, why in self._left_out.items():
            is_in = any(_is_below(f"{self._root_abs}/{path}", place_abs) for place_abs in places)
            if is_in and self._kind(path, why) in takes:
                yield Unsavable(path, f"it is {why}")

    def _kind(self, path: str, why: str) -> str:
        if why in (_DIRTY, _REPOSITORY):
            return table.MODULES if why == _DIRTY else table.NESTED
        if path in self._ignored:
            return table.IGNORED
        return table.TRACKED if self._git.ask("ls-files", "--", path).stdout else table.UNTRACKED

    def _linked(self, folder_abs: str, names: tuple[str, ...] = ()) -> Iterator[Unsavable]:
        """Yield other worktrees below a folder that have uncommitted content."""
        if not os.path.isdir(f"{self._common_abs}/worktrees"):
            return
        for line in self._git.lines("worktree", "list", "--porcelain"):
            root_abs = os.path.realpath(line.removeprefix("worktree "))
            is_here = root_abs in (folder_abs, self._root_abs) or not os.path.isdir(root_abs)
            if is_here or not line.startswith("worktree ") or not _is_below(root_abs, folder_abs):
                continue
            if self._holds_own(root_abs, *_patterns(names)):
                yield Unsavable(os.path.relpath(root_abs, self._root_abs), _OTHER)

    def _holds_own(self, root_abs: str, *paths: str) -> bool:
        """Return whether paths in another worktree have content that no commit has."""
        # Its root or git folder means the whole worktree.
        paths = tuple(path for path in paths if path != root_abs and f"{root_abs}/.git" not in path)
        env = self._place.env.items()
        git = Git(root_abs, {name: text for name, text in env if not name.startswith("GIT_")})
        common = os.fsdecode(git.ask("rev-parse", "--git-common-dir").stdout).strip()
        is_other = os.path.realpath(os.path.join(root_abs, common)) != self._common_abs
        if not paths and is_other and os.path.isdir(f"{root_abs}/.git"):
            return True
        ask = ("status", "--porcelain", "-z", "--untracked-files=all", "--", *paths)
        return bool(git.ask("--no-literal-pathspecs", *ask).stdout)

    def _is_temporary(self, path_abs: str, root_abs: str) -> bool:
        if root_abs and os.path.isfile(f"{root_abs}/.git"):
            return False  # a worktree, or a submodule
        folders = (*self._place.temporary, self._place.env.get("TMPDIR", "").rstrip("/"))
        return any(folder and _is_below(path_abs, folder) for folder in folders)

    def _is_made(self, path_abs: str) -> bool:
        home = self._place.env.get("HOME", "")
        if home and any(_is_below(path_abs, f"{home}/{folder}") for folder in _HOME_CACHES):
            return True
        is_folder = os.path.isdir(path_abs)
        return path_abs.endswith(_MADE_ENDINGS) or (
            is_folder and can_be_made(path_abs, os.listdir(path_abs))
        )


def _patterns(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return pathspecs for files with these names."""
    return tuple(f":(glob,icase)**/{name}" for name in names)


def _paths(cwd_abs: str, word: str) -> Iterator[tuple[str, bool]]:
    """Yield the paths that a word stands for, and whether they are known."""
    is_device = word.startswith(("/dev/", "/proc/", "/sys/")) and not word.startswith("/dev/shm/")  # noqa: S108 - not ours
    if not word or is_device:
        return
    known, unknown, _rest = word.partition(UNKNOWN)
    if unknown:
        folder = known.rpartition("/")[0] or ("/" if known.startswith("/") else ".")
        yield os.path.realpath(os.path.join(cwd_abs, os.path.expanduser(folder))), False
        return
    path_abs = os.path.join(cwd_abs, os.path.expanduser(word))
    if {*"*?["}.isdisjoint(path_abs) or os.path.lexists(path_abs):
        yield _placed(path_abs), True
        return
    from glob import iglob  # few commands have patterns
    from itertools import islice

    found = list(islice(iglob(path_abs), _MOST_MATCHES + 1))
    if len(found) > _MOST_MATCHES:
        found = [path_abs.partition("*")[0].rpartition("/")[0]]
    for path in found:
        if os.path.basename(path) not in (".", ".."):
            yield _placed(path), True


def _placed(path_abs: str) -> str:
    """Return a path without links in its folder."""
    folder, name = os.path.split(os.path.normpath(path_abs))
    return os.path.join(os.path.realpath(folder), name)


def _root_of(path_abs: str) -> str:
    """Return the root of the worktree that a path is in; empty: none."""
    folder = path_abs if os.path.isdir(path_abs) else os.path.dirname(path_abs)
    while folder != "/":
        if os.path.lexists(f"{folder}/.git"):
            return folder
        folder = os.path.dirname(folder)
    return ""


def _is_below(path_abs: str, folder_abs: str) -> bool:
    return path_abs == folder_abs or path_abs.startswith(f"{folder_abs.rstrip('/')}/")


def _is_empty(path_abs: str) -> bool:
    try:
        return not (os.listdir(path_abs) if os.path.isdir(path_abs) else os.path.getsize(path_abs))
    except OSError:
        return False


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
    paths: tuple[str, ...] = ()  # as written, relative to the folder where it runs
    folder: str = ""  # of `git -C`
    deep: bool = False  # folders' contents, too
    spares_git: bool = False  # everything below a folder except `.git`
    names: tuple[str, ...] = ()  # only files with such a name
    takes: tuple[str, ...] = ()  # what a git command destroys


def call_of(words: tuple[str, ...]) -> GitCall | None:
    """Return the parts of a git command; None if it is another program."""
    is_git = words and os.path.basename(words[0]) == "git"
    return git_call(list(words[1:])) if is_git else None


def commands_of(
    text: str, repo: Repo, cwd_abs: str, env: Mapping[str, str]
) -> tuple[SimpleCommand, ...]:
    """Return a line's commands; for a long line, the first ones."""
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
    """Return what a command threatens, by all of its rows."""
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
        paths = _operands(row, options)[head.count(" ") - 1 if call else 0 :]
        found = found._replace(
            paths=tuple(dict.fromkeys((*found.paths, *paths))),
            deep=found.deep or row.deep == table.EVER or _is_given(row.deep, options, rest),
            takes=(*found.takes, *row.takes),
        )
        if row.about == table.ALL and not call:
            found = _fed(found, command, earlier)
    return found


def _is_given(wanted: str, options: Options, words: Sequence[str]) -> bool:
    """Return whether any of these options is given."""
    given = [option for option, _value in options.given]
    for name, _, value in (each.partition("=") for each in wanted.split()):
        if name == "--":
            is_given = bool(options.after) or any(map(os.path.lexists, options.before))
        elif name == "-ff":
            is_given = given.count("-f") + given.count("--force") > 1
        elif value:
            is_given = value in options.values(name)
        else:
            is_given = options.has(name) or name in words
        if is_given:
            return True
    return False


def _operands(row: Row, options: Options) -> tuple[str, ...]:
    """Return the words that a row affects."""
    operands = options.plain
    match row.about:
        case table.ALL:
            return operands
        case table.LAST:
            return operands[-1:]
        case table.OUTPUT:
            return tuple(word.removeprefix("of=") for word in operands if word.startswith("of="))
        case table.GOALS:  # the targets of copied or moved files
            folders = options.values("-t", "--target-directory")
            *sources, goal = (*operands, *folders[:1]) or ("",)
            inside = [os.path.join(goal, os.path.basename(path.rstrip("/"))) for path in sources]
            return (*inside, *(() if folders else (goal,)))
    return options.values(*row.about.split())


def _fed(found: Threat, command: SimpleCommand, earlier: Iterable[SimpleCommand]) -> Threat:
    """Return a threat with the paths from xargs or find; with a folder if they are unknown."""
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
    """Return what a find command looks at."""
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
