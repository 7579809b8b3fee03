"""One look at a working tree: update our index, and store it as a tree.

Git reports what differs from the index by `lstat`, and what is not in it. If that is nothing new,
the tree is known.
"""

from __future__ import annotations

import os
import stat

from gitgates.core.errors import StateError
from gitgates.files.facts import LookFacts, identity, stat_of
from gitgates.files.git_state import link_objects
from gitgates.files.index import Index, sort_out
from gitgates.files.looked import DEFAULT, Limits, Look
from gitgates.files.others import IGNORED, NESTED, OPEN, classify, compare, nested_kind
from gitgates.files.permissions import Permissions
from gitgates.files.rules import take_over
from gitgates.git.repo import read_head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.files.facts import Stat
    from gitgates.files.index import Seen
    from gitgates.files.memory import Memory
    from gitgates.git.repo import Repo
    from gitgates.store.rescue import StashedPath

_IGNORE_FILE = ".gitignore"


class Scan:
    """One look, while the lock of the worktree is held."""

    def __init__(self, memory: Memory, limits: Limits | None, until_s: float) -> None:
        self._memory = memory
        self._repo = memory.repo
        self._root_abs = memory.repo.root_abs
        self._users_abs = f"{memory.repo.git_dir_abs}/index"
        self._until_s = until_s
        self.facts = LookFacts(f"{memory.repo.state_abs}/files.facts")
        known = Limits(*self.facts.limits[: len(DEFAULT)]) if self.facts.limits else DEFAULT
        self._limits = known if limits is None else limits
        self._permissions = Permissions(self._root_abs, self.facts)
        self._has_other_rules = self._prepare()
        self.index = Index(memory, self.facts.settings, until_s)
        self._is_seeded = False  # just now, from the user's index
        self._stored: list[str] = []

    def _prepare(self) -> bool:
        facts, memory = self.facts, self._memory
        identity_now = memory.identity(), (*self._limits, self._permissions.umask)
        if (facts.memory, facts.limits) != identity_now:
            if facts.memory != identity_now[0]:
                memory.forget_index()
            facts.clear()
            facts.memory, facts.limits = identity_now
        return take_over(memory, facts)

    def look(self, stashed: tuple[StashedPath, ...], *, with_ignored: bool) -> Look:
        """Look. Raises: UnseenError, TimeOver, OSError, GitError."""
        facts, memory = self.facts, self._memory
        self.index.unlock()
        dropped = self._begin()
        difference = self.index.look()
        self._update(difference, dropped)
        dirty, doubts = self._look_at_modules(difference.modules)
        if not facts.tree:
            facts.tree = self.index.tree()
            link_objects(memory, facts.linked)  # those that only the user's repository has
        ignored, folders = "", dict[str, int]()
        modes, owners = facts.modes, facts.owners
        if with_ignored:
            others = self._look_at_ignored()
            ignored = facts.ignored_tree
            paths = self.index.paths() if facts.folders is None else ()
            folders = self._permissions.unusual_folders((*paths, *others))
            modes, owners = self._permissions.unusual_of(others)
            modes, owners = {**facts.modes, **modes}, {**facts.owners, **owners}
        facts.index = identity(memory.index_abs)
        facts.save()
        return Look(
            tree=self._with_stashed(stashed) if stashed else facts.tree,
            head=read_head(self._repo) or self._repo.head,
            ignored=ignored,
            left_out={**facts.left_out, **difference.unreadable},
            ignored_out=facts.ignored_out if with_ignored else {},
            dirty=dirty,
            unseen=doubts,
            modes=modes,
            folders=folders,
            owners=owners,
            umask=self._permissions.umask,
            is_stashed=bool(stashed),
            notes=tuple(memory.notes),
        )

    def _begin(self) -> list[str]:
        """Make the index if there is none; return the paths that must be stored again."""
        facts, memory = self.facts, self._memory
        if facts.index and facts.index == identity(memory.index_abs):
            return []
        facts.kinds, facts.forced, facts.absent, facts.users = {}, None, [], ()
        facts.tree, facts.folders = "", None
        if os.path.exists(memory.index_abs):  # a run was killed, or its time was over
            self._permissions.note_all(self.index.paths())
            facts.modules = self.index.modules()
            return []
        from gitgates.files.seed import Seed  # once for each worktree

        seed = Seed(memory, self.index, self._permissions.umask)
        facts.users = identity(self._users_abs)
        seed.make()
        facts.left_out, facts.recent, facts.modes, facts.owners = {}, {}, {}, {}
        facts.modules = seed.modules
        self._is_seeded = not any(
            not os.path.lexists(f"{self._root_abs}/{path}") for path in seed.dropped
        )
        self._permissions.note(seed.unusual)
        return seed.dropped

    def _update(self, difference: Seen, dropped: list[str]) -> None:
        """Update the index."""
        facts, index, others = self.facts, self.index, difference.others
        if difference.gone:
            self._remove(difference.gone)
            if any(os.path.isdir(f"{self._root_abs}/{path}") for path in difference.gone):
                others = index.list_others()  # a folder in the place of a file is listed now
        before = facts.kinds
        new = [item for item in others if item not in before]
        has_other_rules = self._has_other_rules or any(
            map(_is_ignore_file, (*difference.gone, *difference.changed, *new))
        )
        for path, was in facts.ignore_files.items():
            has_other_rules = has_other_rules or stat_of(f"{self._root_abs}/{path}") != was
        if has_other_rules:
            facts.kinds = {}
        untracked = classify(self._repo, index, facts, others)
        facts.ignore_files = {
            item: stat_of(f"{self._root_abs}/{item}") for item in others if _is_ignore_file(item)
        }
        away, forced = self._compare(
            difference.gone, untracked, has_news=has_other_rules or bool(new), anew=has_other_rules
        )
        recent = self._permissions.changed_since()
        self._remove(recent)  # or git would take them for unchanged
        to_store = (*dropped, *difference.changed, *recent, *untracked, *forced)
        paths = dict.fromkeys((*to_store, *self._left_out_before()))
        self._stored = [path for path in paths if path not in away]
        self._add(self._stored)

    def _compare(
        self, gone: list[str], untracked: list[str], *, has_news: bool, anew: bool
    ) -> tuple[list[str], list[str]]:
        """Compare with the user's index if that may tell something.

        Return the paths that ours no longer has, and those to store.
        """
        facts, users = self.facts, identity(self._users_abs)
        if not self._is_seeded and (has_news or gone or users != facts.users):
            anew = anew or facts.forced is None
            away, files = compare(self._memory, self.index, facts, {*untracked}, anew=anew)
            self._remove(away)
            facts.users = users
        else:
            away, files = [], []
        facts.absent += [path for path in gone if path in (facts.forced or {})]
        back = [path for path in facts.absent if os.path.lexists(f"{self._root_abs}/{path}")]
        facts.absent = [path for path in dict.fromkeys(facts.absent) if path not in back]
        return away, [*files, *back]

    def _left_out_before(self) -> list[str]:
        """Return the files that were left out, unless git ignores them now."""
        facts = self.facts
        ignored = [item for item, kind in facts.kinds.items() if kind == IGNORED]
        inside = tuple(item for item in ignored if item.endswith("/"))
        return [
            path
            for path in facts.left_out
            if path in (facts.forced or {}) or not (path in ignored or path.startswith(inside))
        ]

    def _add(self, paths: list[str]) -> None:
        """Store files; note those that are left out."""
        facts = self.facts
        nested = [item for item, kind in facts.kinds.items() if kind == NESTED]
        nested += [path for path in paths if path.endswith("/")]
        files = [path for path in paths if not path.endswith("/") and path not in facts.modules]
        sorting = sort_out(self._root_abs, files, self._limits.max_file)
        left_out = {path: why for path, why in sorting.left_out.items() if why}
        for item in nested:
            path = item.rstrip("/")
            if nested_kind(self._repo, item) == NESTED and path not in facts.modules:
                left_out[path] = "a repository of its own"
        self._remove([*sorting.gone, *(path for path in left_out if path not in facts.left_out)])
        facts.left_out = left_out
        if sorting.sizes:
            facts.tree = ""
            self.index.add(sorting.sizes)
        self._permissions.note(sorting.stats)

    def _remove(self, paths: list[str]) -> None:
        if paths:
            self.facts.tree = ""
            self.index.remove(paths)
            self._permissions.forget(paths)

    def _look_at_modules(self, differing: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Note the commits of submodules; return those that are dirty, and what no tree tells."""
        facts, dirty, doubts = self.facts, list[str](), list[str]()
        there = [path for path in differing if nested_kind(self._repo, path)]
        if there:
            before = identity(self.index.path_abs)
            self.index.add(dict.fromkeys(there, 0))
            if identity(self.index.path_abs) != before:
                facts.tree = ""
            if dirty := self.index.dirty(there):
                doubts.append(f"submodules have uncommitted changes: {', '.join(dirty)}")
        for path in facts.modules:
            folder_abs = f"{self._root_abs}/{path}"
            is_plain = os.path.isdir(folder_abs) and not nested_kind(self._repo, path)
            if is_plain and os.listdir(folder_abs):
                doubts.append(f"`{path}` has files, but not those of the submodule")
        return tuple(dirty), tuple(doubts)

    def _look_at_ignored(self) -> dict[str, Stat]:
        """Store what git ignores; return path → what `lstat` says."""
        from gitgates.files.ignored import Ignored  # only for points

        items = [item for item, kind in self.facts.kinds.items() if kind in {IGNORED, OPEN}]
        ignored = Ignored(self._memory, self.facts, self._limits, self._until_s)
        ignored.look(items, self._stored)
        return ignored.stored_stats

    def _with_stashed(self, stashed: tuple[StashedPath, ...]) -> str:
        return self.index.replaced(stashed_entries(self._memory, stashed))


def _is_ignore_file(path: str) -> bool:
    return path.rpartition("/")[2] == _IGNORE_FILE


def find_stashed(repo: Repo) -> tuple[StashedPath, ...]:
    """Return what another run has moved out of the working tree, or what was never in it.

    What this run has stashed is hidden on purpose. Raises: StateError if the journal
    cannot be understood.
    """
    if not os.path.isdir(f"{repo.state_abs}/rescue"):
        return ()
    from gitgates.store.rescue import Rescue  # most often, nothing is stashed

    rescue = Rescue(f"{repo.state_abs}/rescue")
    if not os.path.exists(rescue.at("journal")):
        return ()
    try:
        journal, saved = rescue.read(), set(os.listdir(rescue.at("saved")))
    except (StateError, OSError):
        if os.path.exists(rescue.at("journal")):
            raise
        return ()  # that run has just ended
    if journal.pid == os.getpid():
        return ()
    return tuple(entry for entry in journal.entries if not entry.saved or entry.saved in saved)


def stashed_entries(memory: Memory, stashed: tuple[StashedPath, ...]) -> bytes:
    """Store what is stashed; return it as input of `update-index -z --index-info`.

    Raises: OSError; the run that stashes may put it back meanwhile.
    """
    from gitgates.store.rescue import Rescue  # only if something is stashed

    rescue = Rescue(f"{memory.repo.state_abs}/rescue")
    lines, files = [], dict[str, str]()  # path → where it is now
    for entry in stashed:
        lines.append(f"0 {memory.nothing}\t{entry.path}")
        if entry.saved:
            _collect(rescue.at("saved", entry.saved), entry.path, files)
    ignored = set(
        _ignored(memory, [path for path in files if path not in {entry.path for entry in stashed}])
    )
    for path, place_abs in files.items():
        if path in ignored:
            continue
        mode = os.lstat(place_abs).st_mode
        if stat.S_ISLNK(mode):
            content, git_mode = os.fsencode(os.readlink(place_abs)), "120000"
        else:
            with open(place_abs, "rb") as file:
                content = file.read()
            git_mode = "100755" if mode & 0o100 else "100644"
        lines.append(f"{git_mode} {memory.write('blob', content)}\t{path}")
    return os.fsencode("".join(f"{line}\0" for line in lines))


def _collect(place_abs: str, path: str, files: dict[str, str]) -> None:
    """Collect a saved file, or all in a saved folder."""
    mode = os.lstat(place_abs).st_mode
    if stat.S_ISDIR(mode):
        names = sorted(os.listdir(place_abs))
        for name in names if ".git" not in names else ():  # a repository of its own
            _collect(f"{place_abs}/{name}", f"{path}/{name}", files)
    elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        files[path] = place_abs


def _ignored(memory: Memory, paths: list[str]) -> list[str]:
    return memory.repo.git.ignored(paths, "--no-index") if paths else []
