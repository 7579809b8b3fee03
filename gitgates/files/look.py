"""Look at a working tree: find the ids of its content, and what no tree can hold.

No file of the user's is written. What git would convert is stored as its raw bytes. Git reports
what differs from our index by `lstat`, and what is not in it. If nothing does, the tree is known.
"""

from __future__ import annotations

import os
import stat
import time

from gitgates.core.errors import LockError, StateError
from gitgates.files.facts import LookFacts, identity, stats_of
from gitgates.files.git_state import link_objects
from gitgates.files.index import Index, UnseenError, sort_out
from gitgates.files.looked import DEFAULT, Limits, Look
from gitgates.files.memory import NO_DEADLINE, Memory, Storing, TimeOver, time_over
from gitgates.files.permissions import Permissions
from gitgates.files.rules import NESTED, nested_kind, own_folders, take_over
from gitgates.git.repo import nul_split, read_head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.files.index import Seen
    from gitgates.git.repo import Repo
    from gitgates.store.rescue import StashedPath

__all__ = ["DEFAULT", "NO_DEADLINE", "Limits", "Look", "TimeOver", "UnseenError", "look"]
_ATTEMPTS = 4  # while files change under us
_PATIENCE_S = 30.0  # while another run moves files: thousands take seconds
_POLL_S = 0.01
_WAIT_S = 60.0
_SUBMODULE = "160000"


def look(
    repo: Repo,
    limits: Limits | None = DEFAULT,
    *,
    ignored: bool = False,
    deadline_s: float = NO_DEADLINE,
) -> Look:
    """Look at the working tree; store what is new in it.

    `limits`: None for those of the last look. `ignored`: also what git ignores, and folders'
    permissions. `deadline_s`: a time of `time.monotonic`. What another run has stashed counts as
    present; the run that stashes sees what its gates see.

    Raises: TimeOver; UnseenError if git cannot read the working tree; StateError if nothing
    can be stored, for lack of space for example; LockError if another look does not end.
    """
    memory = Memory(repo)
    with Locked(memory, deadline_s):
        return look_locked(memory, limits, ignored=ignored, until_s=deadline_s)


class Locked(Storing):
    """Locks a worktree while something is stored. Raises: TimeOver, LockError, StateError."""

    def __init__(self, memory: Memory, until_s: float = NO_DEADLINE) -> None:
        super().__init__(memory)
        self._until_s = until_s

    def __enter__(self) -> None:
        left_s = self._until_s - time.monotonic()
        try:
            with Storing(self._memory):
                wait_s = max(min(left_s, _WAIT_S), 0.0)
                self._fd = self._memory.lock("files.lock", wait_s=wait_s)
        except LockError as error:
            if left_s >= _WAIT_S:
                raise
            raise TimeOver(error.message, error.hint) from error

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        os.close(self._fd)
        super().__exit__(kind, error, traceback)


def look_locked(memory: Memory, limits: Limits | None, *, ignored: bool, until_s: float) -> Look:
    """Look, as `look` does, while the lock is held. Raises: as it, and OSError."""
    repo = memory.repo
    memory.prepare()
    patience_s, failures = time.monotonic() + _PATIENCE_S, 0
    while True:
        if time.monotonic() > until_s:
            raise time_over(repo.root_abs)
        stashed = find_stashed(repo)
        try:
            result = Scan(memory, limits, until_s).look(stashed, with_ignored=ignored)
        except (UnseenError, FileNotFoundError, NotADirectoryError) as error:
            failures += find_stashed(repo) == stashed
            if failures == _ATTEMPTS:
                if not isinstance(error, UnseenError):
                    raise
                hint = "Make it readable, or have git ignore it."
                raise UnseenError(error.message, hint) from error
            if failures == _ATTEMPTS - 1:
                memory.forget_index()  # it, or an object that it names, may be damaged
        else:
            if find_stashed(repo) == stashed:
                return result
        if time.monotonic() > patience_s:
            raise UnseenError(
                f"{repo.root_abs}: another gitgates run keeps stashing and restoring files",
                "Wait for it to finish.",
            )
        time.sleep(_POLL_S)


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
        self._prepare(memory, self.facts)
        self.index = Index(memory, self.facts.settings, until_s)

    def _prepare(self, memory: Memory, facts: LookFacts) -> None:
        identity_now = memory.identity(), (*self._limits, self._permissions.umask)
        if (facts.memory, facts.limits) != identity_now:
            if facts.memory != identity_now[0]:
                memory.forget_index()
            facts.clear()
            facts.memory, facts.limits = identity_now
        take_over(memory, facts)

    def look(self, stashed: tuple[StashedPath, ...], *, with_ignored: bool) -> Look:
        """Look. Raises: UnseenError, TimeOver, OSError, GitError."""
        facts, memory = self.facts, self._memory
        self.index.unlock()
        self._begin()
        difference = self._see(with_ignored=with_ignored)
        stored = self._update(difference)
        dirty, doubts = self._look_at_modules(difference.modules)
        if not facts.tree:
            facts.tree = self.index.tree()
            link_objects(memory, facts.linked)  # those that only the user's repository has
        ignored, folders = "", dict[str, int]()
        modes, owners = facts.modes, facts.owners
        if with_ignored:
            from gitgates.files.ignored import Ignored  # only for points

            ignored_files = Ignored(memory, facts, self._limits, self._until_s)
            others = ignored_files.look(difference.ignored, stored)
            ignored = facts.ignored_tree
            paths = self.index.paths() if facts.folders is None else ()
            folders = self._permissions.unusual_folders((*paths, *others))
            modes, owners = self._permissions.unusual_of(others)
            modes, owners = {**facts.modes, **modes}, {**facts.owners, **owners}
        facts.index = identity(memory.index_abs)
        facts.save()
        tree = facts.tree
        if stashed:
            tree = self.index.replaced(stashed_entries(memory, self.index, stashed))
        return Look(
            tree=tree,
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

    def _begin(self) -> None:
        """Make the index if there is none."""
        facts, memory = self.facts, self._memory
        if facts.index and facts.index == identity(memory.index_abs):
            return
        facts.own_paths, facts.tree, facts.folders = None, "", None
        if os.path.exists(memory.index_abs):  # a run was killed, or its time was over
            stats = stats_of(self._root_abs, self.index.paths())
            facts.modules = self.index.modules()
        else:
            from gitgates.files.seed import seed  # once for each worktree

            stats = seed(memory, self.index, facts, self._permissions)
        facts.left_out, facts.recent, facts.modes, facts.owners = {}, {}, {}, {}
        self._permissions.note(stats)

    def _see(self, *, with_ignored: bool) -> Seen:
        """Return what differs from the index, and remove from that what is gone."""
        facts = self.facts
        difference = self._compare_and_look(with_ignored=with_ignored)
        # A folder in the place of a file is listed now; another repository may be a submodule.
        is_folder = any(os.path.isdir(f"{self._root_abs}/{path}") for path in difference.gone)
        is_new = any(path not in facts.left_out for path in self._nested(difference))
        if difference.is_excluded or is_folder or is_new:
            facts.own_paths = None
            difference = self._compare_and_look(with_ignored=with_ignored)
        return difference

    def _compare_and_look(self, *, with_ignored: bool) -> Seen:
        facts, users = self.facts, identity(self._users_abs)
        if facts.own_paths is None or facts.users != users:
            facts.own_paths, facts.users = self._compare(), users
        difference = self.index.look(facts.own_paths, with_ignored=with_ignored)
        self._remove(difference.gone)
        if difference.gone:
            facts.own_paths = None  # the user's index may have them: they may come back unlisted
        return difference

    def _nested(self, difference: Seen) -> list[str]:
        """Return the other repositories among what is untracked."""
        folders = [item.rstrip("/") for item in difference.untracked if item.endswith("/")]
        return [folder for folder in folders if nested_kind(self._repo, folder) == NESTED]

    def _compare(self) -> list[str]:
        """Follow the user's index, and rules; return what ours has alone."""
        facts, index = self.facts, self.index
        # Source: git-ls-files(1), -v: what a sparse checkout leaves out is S.
        user_entries = {entry[2:]: entry[0] in "Ss" for entry in self._users_index("-v")}
        our_paths = {*index.paths()}
        own_paths = [
            path for path in our_paths.difference(user_entries) if path not in facts.modules
        ]
        away = {
            *index.ignored(own_paths),
            *(path for path in facts.modules if path not in user_entries),
        }
        self._remove([*away])
        facts.modules = [path for path in facts.modules if path not in away]
        missing = {
            path: is_left_out for path, is_left_out in user_entries.items() if path not in our_paths
        }
        places = {path: f"{self._root_abs}/{path}" for path in missing}
        modules = self._new_modules(path for path in missing if os.path.isdir(places[path]))
        facts.unlisted = [
            path
            for path, is_left_out in missing.items()
            if path not in modules and not (is_left_out and not os.path.lexists(places[path]))
        ]
        return [path for path in own_paths if path not in away]

    def _users_index(self, *args: str) -> list[str]:
        args = ("ls-files", "-z", *args)
        return nul_split(self.index.output_of(args, self._memory.users_git().ask(*args)))

    def _new_modules(self, folders: Iterable[str]) -> dict[str, str]:
        """Put submodules into our index that the user's has there; return path → mode and id."""
        facts, index, folders = self.facts, self.index, [*folders]
        entries = self._users_index("--stage", "--", *folders) if folders else ()
        modules = {
            path: meta.rpartition(" ")[0]
            for meta, _tab, path in (entry.partition("\t") for entry in entries)
            if meta.startswith(_SUBMODULE)
        }
        if modules:
            facts.tree = ""
            index.put(modules)
            index.add({path: 0 for path in modules if nested_kind(self._repo, path)})
            facts.modules = [*dict.fromkeys((*facts.modules, *modules))]
        return modules

    def _update(self, difference: Seen) -> list[str]:
        """Store what is new; return the paths."""
        facts, git_folders = self.facts, own_folders(self._repo)
        recent = self._permissions.changed_since()
        self._remove(recent)  # or git would take them for unchanged
        untracked = [path for path in difference.untracked if not path.startswith(git_folders)]
        back = {p: "" for p in facts.unlisted if os.path.lexists(f"{self._root_abs}/{p}")}
        paths = [*dict.fromkeys((*difference.changed, *recent, *untracked, *back))]
        self._add([path for path in paths if not path.endswith("/")], self._nested(difference))
        if facts.own_paths is not None:
            new = {*untracked}.difference(facts.own_paths, facts.unlisted, facts.left_out)
            facts.own_paths = [*facts.own_paths, *new]
        facts.unlisted = [p for p in facts.unlisted if p not in back or p in facts.left_out]
        return paths

    def _add(self, paths: list[str], nested: list[str]) -> None:
        """Store files; note those that are left out."""
        facts = self.facts
        files = [path for path in paths if path not in facts.modules]
        sorting = sort_out(self._root_abs, files, self._limits.max_file)
        left_out = {**sorting.left_out, **dict.fromkeys(nested, "a repository of its own")}
        self._remove([*sorting.gone, *(path for path in left_out if path not in facts.left_out)])
        facts.left_out = left_out
        if sorting.stats:
            facts.tree = ""
            self.index.add({path: now[1] for path, now in sorting.stats.items()})
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
            if dirty := self.index.differences(there).modules:
                doubts.append(f"submodules have uncommitted changes: {', '.join(dirty)}")
        for path in facts.modules:
            folder_abs = f"{self._root_abs}/{path}"
            is_plain = os.path.isdir(folder_abs) and not nested_kind(self._repo, path)
            if is_plain and os.listdir(folder_abs):
                doubts.append(f"`{path}` has files, but not those of the submodule")
        return tuple(dirty), tuple(doubts)


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


def stashed_entries(
    memory: Memory, index: Index, stashed: tuple[StashedPath, ...]
) -> dict[str, str]:
    """Store what is stashed; return it as entries for `Index.put`.

    Raises: OSError; the run that stashes may put it back meanwhile.
    """
    from gitgates.store.rescue import Rescue  # only if something is stashed

    rescue = Rescue(f"{memory.repo.state_abs}/rescue")
    entries, files = dict[str, str](), dict[str, str]()  # path → where it is now
    for entry in stashed:
        entries[entry.path] = ""
        if entry.saved:
            _collect(rescue.at("saved", entry.saved), entry.path, files)
    ignored = index.ignored(files.keys() - entries.keys())
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
        entries[path] = f"{git_mode} {memory.write('blob', content)}"
    return entries


def _collect(place_abs: str, path: str, files: dict[str, str]) -> None:
    """Collect a saved file, or all in a saved folder."""
    mode = os.lstat(place_abs).st_mode
    if stat.S_ISDIR(mode):
        names = sorted(os.listdir(place_abs))
        for name in names if ".git" not in names else ():  # a repository of its own
            _collect(f"{place_abs}/{name}", f"{path}/{name}", files)
    elif stat.S_ISREG(mode) or stat.S_ISLNK(mode):
        files[path] = place_abs
