"""Save what git ignores, unless it can be made again."""

from __future__ import annotations

import os
import stat
import time

from gitgates.files.facts import facts_of
from gitgates.files.index import Index, why_not
from gitgates.files.memory import time_over
from gitgates.files.rules import OURS, nested_kind, own_folders
from gitgates.store.files import remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.files.facts import LookFacts, Stat
    from gitgates.files.looked import Limits
    from gitgates.files.memory import Memory

# Folders that programs make again from what is tracked, by their names.
_MADE = frozenset(
    (
        *("node_modules", "bower_components", "jspm_packages", ".venv", "__pycache__"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".pytype", ".tox", ".nox", ".eggs"),
        *(".gradle", ".terraform", ".next", ".nuxt", ".svelte-kit", ".parcel-cache", ".turbo"),
        *(".angular", ".dart_tool", ".stack-work", ".bundle", "Pods", ".cache", ".ccache"),
    )
)
# A folder that has one of these is made again, too.
_MARKERS = ("CACHEDIR.TAG", "pyvenv.cfg", "CMakeCache.txt", ".ninja_log", ".rustc_info.json")
# `target`, beside one of these.
_BUILT = {"target": ("Cargo.toml", "pom.xml", "build.sbt"), "_build": ("mix.exs", "dune-project")}
_ENDINGS = (".pyc", ".pyo", ".o", ".class", ".egg-info")
_MOST_FILES = 50_000
_TICK_NS = 20_000_000  # within which a file may change twice, and look the same


def can_be_made(folder_abs: str, names: Iterable[str]) -> bool:
    """Return whether a folder with these names in it can be made again from what is tracked."""
    above_abs, name = os.path.split(folder_abs)
    if name in _MADE or name.endswith(_ENDINGS) or any(marker in names for marker in _MARKERS):
        return True
    beside = _BUILT.get(name, ())
    return any(os.path.exists(f"{above_abs}/{other}") for other in beside)


class Ignored:
    """The ignored files of a worktree, and the index that they are stored with."""

    def __init__(self, memory: Memory, facts: LookFacts, limits: Limits, until_s: float) -> None:
        self._repo = memory.repo
        self._own = own_folders(memory.repo)
        self._root_abs = memory.repo.root_abs
        self._facts = facts
        self._limits = limits
        self._until_s = until_s
        self._index = Index(memory, facts.settings, until_s, f"{memory.index_abs}.ignored")
        self._stats: dict[str, Stat] = {}  # of those that are stored
        self._left_out: dict[str, str] = {}

    def look(self, items: list[str], others: Iterable[str]) -> dict[str, Stat]:
        """Store the ignored files among these items; return path → what `lstat` says.

        A folder that is ignored as a whole has a slash; `others` are files that count as not
        ignored. The tree is noted in the facts.

        Raises: UnseenError, TimeOver, OSError.
        """
        facts, index = self._facts, self._index
        self._others = {*others, *facts.left_out}
        began_ns = time.time_ns()
        for item in items:
            if item.endswith("/"):
                self._walk(item.rstrip("/"))
            else:
                self._note(item)
        self._limit()
        earlier = facts.ignored if os.path.exists(index.path_abs) else {}
        facts.ignored_out = self._left_out
        if not self._stats:
            facts.ignored, facts.ignored_tree = {}, ""
            remove_file(index.path_abs)
        elif self._stats != earlier:
            self._store(earlier, began_ns)
        return self._stats

    def _store(self, earlier: dict[str, Stat], began_ns: int) -> None:
        facts, index = self._facts, self._index
        index.unlock()
        if not earlier:
            index.begin_empty()
        index.remove([path for path in earlier if path not in self._stats])
        new = {path: now[1] for path, now in self._stats.items() if earlier.get(path) != now}
        facts.ignored = {}  # if time is over, the next look starts again; objects stay
        index.add(new)
        facts.ignored = {
            path: now if max(now[3], now[4]) < began_ns - _TICK_NS else ()
            for path, now in self._stats.items()
        }
        facts.ignored_tree = index.tree()

    def _walk(self, folder: str) -> None:
        to_visit = [folder]
        while to_visit:
            folder = to_visit.pop()
            folder_abs = f"{self._root_abs}/{folder}"
            if time.monotonic() > self._until_s:
                raise time_over(self._root_abs)
            try:
                entries = sorted(os.scandir(folder_abs), key=lambda entry: entry.name)
            except OSError:
                self._left_out[folder] = "cannot be read"
                continue
            if kind := nested_kind(self._repo, folder):
                if kind != OURS:
                    self._left_out[folder] = "a repository of its own"
                continue
            is_own = f"{folder}/".startswith(self._own)
            if is_own or can_be_made(folder_abs, {entry.name for entry in entries}):
                continue
            for entry in entries:
                path = f"{folder}/{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    to_visit.append(path)
                else:
                    self._note(path)

    def _note(self, path: str) -> None:
        if path.endswith(_ENDINGS) or path in self._others:
            return
        if len(self._stats) > _MOST_FILES:
            self._left_out[os.path.dirname(path) or path] = "one of very many ignored files"
            return
        path_abs = f"{self._root_abs}/{path}"
        try:
            now = os.lstat(path_abs)
        except OSError:
            return
        if stat.S_ISREG(now.st_mode) or stat.S_ISLNK(now.st_mode):
            if why := why_not(path_abs, now, self._limits.max_file):
                self._left_out[path] = why
            else:
                self._stats[path] = facts_of(now)

    def _limit(self) -> None:
        """Leave out the largest files until the rest is small enough."""
        excess = sum(now[1] for now in self._stats.values()) - self._limits.max_ignored
        for path in sorted(self._stats, key=lambda path: -self._stats[path][1]):
            if excess <= 0:
                return
            excess -= self._stats.pop(path)[1]
            self._left_out[path] = "all ignored files together are too large"
