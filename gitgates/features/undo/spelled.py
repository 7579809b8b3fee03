"""The paths that words of a command stand for: patterns, braces, links and unknown parts."""

from __future__ import annotations

import os
import re

from gitgates.core.record import Record
from gitgates.features.undo.file_threats import is_device
from gitgates.shell.syntax import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gitgates.features.undo.threats import Threat

_TEMPORARY = ("/tmp", "/var/tmp", "/private/tmp", "/private/var/folders", "/dev/shm")  # noqa: S108 - of everybody
_MOST_MATCHES = 1000  # of a pattern; with more, its folder stands for them
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_MOST_WORDS = 100  # that braces may become
# What a repository is made of; the rest of `.git` is of git's commands, and comes again.
_GIT_DATA = (
    *("HEAD", "config", "index", "lfs", "logs", "modules", "objects", "packed-refs", "refs"),
    *("shallow", "worktrees"),
)


class SpelledPath(Record):
    """One path that a word stands for."""

    text: str  # as it is written
    path_abs: str
    cwd_abs: str
    is_unknown: bool = False  # it is somewhere below this


def spelled_paths(threat: Threat, cwd_abs: str) -> Iterator[SpelledPath]:
    """Yield the paths of a threat, from where its command runs."""
    for word in threat.paths:
        if is_device(word) or not word:
            continue
        for text in _unbraced(word, cwd_abs):
            if UNKNOWN in text:
                yield from _unknown_path(text, cwd_abs, threat)
            else:
                for path_abs in _matches(_from(cwd_abs, text), removes=not threat.follows):
                    real = os.path.realpath(path_abs) if threat.follows else _placed(path_abs)
                    if threat.below or not os.path.isdir(real) or os.path.islink(real):
                        yield SpelledPath(text=text, path_abs=real, cwd_abs=cwd_abs)


def _from(cwd_abs: str, text: str) -> str:
    return os.path.join(cwd_abs, os.path.expanduser(text) if text.startswith("~") else text)


def _placed(path_abs: str) -> str:
    """Return a path without links in its folder."""
    folder, name = os.path.split(os.path.normpath(path_abs))
    return os.path.join(os.path.realpath(folder), name)


def _unknown_path(text: str, cwd_abs: str, threat: Threat) -> Iterator[SpelledPath]:
    """Yield the folder below which a path is that is not wholly known.

    What a command writes at such a place is left out: mostly it is a new file.
    """
    known = text.partition(UNKNOWN)[0]
    if threat.does == "removes":
        folder = known.rpartition("/")[0] or ("/" if known.startswith("/") else "")
        path_abs = os.path.realpath(_from(cwd_abs, folder)) if folder else cwd_abs
        yield SpelledPath(text=text, path_abs=path_abs, cwd_abs=cwd_abs, is_unknown=True)


def _unbraced(text: str, cwd_abs: str) -> list[str]:
    """Return the words that `a{b,c}` stands for."""
    words = [text]
    while not os.path.lexists(os.path.join(cwd_abs, text)) and len(words) < _MOST_WORDS:
        found = next((match for match in map(_BRACES.search, words) if match), None)
        if found is None:
            break
        words.remove(found.string)
        start, end = found.string[: found.start()], found.string[found.end() :]
        words += [f"{start}{part}{end}" for part in found[1].split(",")]
    return words


def _matches(pattern_abs: str, *, removes: bool) -> Iterator[str]:
    """Yield the files that a pattern of the shell stands for; itself, if it is none."""
    if {*"*?["}.isdisjoint(pattern_abs) or os.path.lexists(pattern_abs) or "\0" in pattern_abs:
        if "\0" not in pattern_abs:
            yield pattern_abs
        return
    from glob import iglob  # few commands have patterns
    from itertools import islice

    found = list(islice(iglob(pattern_abs), _MOST_MATCHES + 1))
    if len(found) > _MOST_MATCHES and removes:
        yield pattern_abs.partition("*")[0].rpartition("/")[0]
    else:
        yield from (path for path in found if os.path.basename(path) not in (".", ".."))


def is_temporary(path_abs: str, folders: tuple[str, ...] | None, env: Mapping[str, str]) -> bool:
    """Return whether a path is in a folder for temporary files. None: the usual ones."""
    if folders is None:
        folders = (*_TEMPORARY, *filter(None, [env.get("TMPDIR", "").rstrip("/")]))
    return any(path_abs == folder or path_abs.startswith(f"{folder}/") for folder in folders)


def is_git_data(path_abs: str, git_dir_abs: str) -> bool:
    """Return whether a path in a git folder is what the repository is made of."""
    name, _, rest = path_abs[len(git_dir_abs) :].strip("/").partition("/")
    return not name or (name in _GIT_DATA and not f"{name}{rest}".endswith(".lock"))
