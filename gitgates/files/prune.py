"""Remove old points, and what only they need: cut the history, then let git collect garbage.

Objects that are links to the user's files take no space; those that the user's repository has lost
do. Of these, what remaining points need is packed.
"""

from __future__ import annotations

import os
import time

from gitgates.core.errors import StateError
from gitgates.files.git_state import link_objects, name_commits, share_shallow
from gitgates.files.memory import TREES, Memory, Storing, TimeOver, time_over
from gitgates.files.points import points, state_of
from gitgates.store.files import (
    lock_file,
    read_or_empty,
    remove_file,
    remove_tree,
    replace_file,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gitgates.files.points import Point
    from gitgates.git.repo import Repo

KEEP_S = 14 * 24 * 3600.0
_KEEP_TREES_S = 30 * 24 * 3600.0  # as long as the journals that name them
MAX_SIZE = 2 << 30
FOREVER_S = float("inf")
_LOOK_S = 2.0  # that a look is waited for
_EVERY_S = 3600.0
# So old is no loose object that is about to be named.
_YOUNG = "--expire=1.hour.ago"
_BLOCK = 512


def prune(
    repo: Repo,
    now_s: float,
    *,
    keep_s: float = KEEP_S,
    max_size: int = MAX_SIZE,
    at_once: bool = False,
    limit_s: float = 30.0,
) -> str:
    """Remove points that are too old, and the oldest while all take more than `max_size` bytes.

    Return what a person should know; empty for nothing. It runs once an hour, or `at_once`, and
    continues the next time if `limit_s` is over. The last point of a worktree stays.

    Raises: StateError, GitError.
    """
    memory = Memory(repo)
    mark_abs = f"{memory.folder_abs}/pruned"
    try:
        is_due = at_once or os.stat(mark_abs).st_mtime < now_s - _EVERY_S
    except OSError:  # it is new
        is_due = False
        if memory.exists():
            replace_file(mark_abs, b"", sync=False)
    if not (is_due and memory.exists()):
        return ""
    try:
        with Storing(memory):
            fd = memory.lock("prune.lock", wait_s=0.0 if not at_once else 10.0)
            try:
                replace_file(mark_abs, b"", sync=False)
                _remove_abandoned(memory, now_s - keep_s)
                has_forgotten = _forget_trees(memory, now_s - _KEEP_TREES_S)
                if keep_s == FOREVER_S and not has_forgotten:
                    return ""
                pruning = _Pruning(memory, limit_s)
                return pruning.run(now_s - keep_s, max_size, at_once=has_forgotten or at_once)
            finally:
                os.close(fd)
    except TimeOver:
        return ""


def size(memory: Memory) -> int:
    """Return how many bytes the memory alone takes."""
    return sum(
        status.st_blocks * _BLOCK
        for status in map(os.lstat, _files(f"{memory.folder_abs}/objects"))
        if status.st_nlink == 1
    )


def _files(folder_abs: str) -> Iterator[str]:
    for above, _folders, names in os.walk(folder_abs):
        for name in names:
            if os.path.exists(f"{above}/{name}"):
                yield f"{above}/{name}"


class _Pruning:
    def __init__(self, memory: Memory, limit_s: float) -> None:
        self._memory = memory
        self._until_s = time.monotonic() + limit_s

    def run(self, since_s: float, max_size: int, *, at_once: bool) -> str:
        """Prune; return what a person should know. Raises: TimeOver, GitError, OSError."""
        every = points(self._memory.repo, everywhere=True)
        newer = [point for point in every if point.time_s > since_s]
        cuts = set(self._cut(every, newer))
        is_cut = cuts != self._cuts()
        if is_cut:
            share_shallow(self._memory, sorted(cuts))
        if not (is_cut or at_once) and size(self._memory) <= max_size:
            return ""
        self._collect(newer or every[-1:])
        removed = 0
        while size(self._memory) > max_size and len(newer) > 1:
            oldest = newer[: len(newer) // 4 + 1]
            newer = newer[len(oldest) :]
            removed += len(oldest)
            share_shallow(self._memory, sorted(self._cut(every, newer)))
            self._collect(newer)
        if not removed:
            return ""
        return (
            f"save points took more than max_size = {max_size >> 20} MiB: "
            f"the {removed} oldest were removed"
        )

    def _cuts(self) -> set[str]:
        return {*read_or_empty(f"{self._memory.folder_abs}/cuts").decode().split()}

    def _cut(self, every: list[Point], newer: list[Point]) -> Iterable[str]:
        """Return the points that have no parents any more: the oldest of each worktree."""
        stays = {point.id for point in newer}
        last = {point.id for point in every} - {point.parent for point in every}
        return {
            point.id
            for point in every
            if point.id in stays | last
            and point.parent not in stays
            and (point.parent or point.id in self._cuts())
        }

    def _collect(self, newer: list[Point]) -> None:
        """Remove what no point needs; hold what the user's repository may lose.

        No look runs meanwhile: what looks have stored has a name by then.
        """
        memory, fds = self._memory, []
        try:
            for state_abs in filter(os.path.isdir, memory.repo.states_abs):
                fds.append(lock_file(f"{state_abs}/files.lock", wait_s=_LOOK_S))
                if fds[-1] < 0:
                    raise time_over(memory.repo.root_abs)
            self._mark_users_packs()
            link_objects(memory, {})
            self._hold(newer)
            self._hold_present()
            for args in (("repack", "-a", "-d", "-l", "-q"), ("prune", _YOUNG)):
                done = memory.ask(*args, until_s=self._until_s)
                if done.exit_status:
                    why = os.fsdecode(done.stderr).strip()
                    raise StateError(f"{memory.folder_abs}: git {args[0]} failed: {why}")
        finally:
            for fd in fds:
                if fd >= 0:
                    os.close(fd)

    def _mark_users_packs(self) -> None:
        """Make `git repack` ignore the packs that the user's repository has, too."""
        own_abs = f"{self._memory.folder_abs}/objects/pack"
        users_abs = f"{self._memory.users_objects_abs}/pack"
        os.makedirs(own_abs, exist_ok=True)
        users = set(os.listdir(users_abs)) if os.path.isdir(users_abs) else set()
        for name in os.listdir(own_abs):
            base, _, ending = name.rpartition(".")
            if ending == "keep" and f"{base}.pack" not in users:
                remove_file(f"{own_abs}/{name}")
        for name in users:
            if name.endswith(".pack"):
                replace_file(f"{own_abs}/{name.removesuffix('.pack')}.keep", b"", sync=False)

    def _hold(self, newer: list[Point]) -> None:
        """Name only the commits that the remaining points name."""
        memory, tips = self._memory, dict[str, None]()
        for point in newer:
            tips[point.head] = None
            try:
                state = state_of(memory.repo, point)
            except StateError:
                continue
            tips |= dict.fromkeys((*state.refs.values(), *(commit for commit, _m in state.stash)))
        tips.pop("", None)
        check = memory.ask(
            "cat-file",
            "--batch-check=%(objectname) %(objecttype)",
            stdin="".join(f"{tip}\n" for tip in tips).encode(),
        )
        lines = check.stdout.decode().splitlines()
        there = [line.split(" ")[0] for line in lines if line.endswith(" commit")]
        if there:
            name_commits(memory, there)

    def _hold_present(self) -> None:
        """Name the trees of worktrees' indexes: no point may name them yet."""
        from gitgates.files.facts import LookFacts

        memory, trees = self._memory, set[str]()
        for state_abs in memory.repo.states_abs:
            facts = LookFacts(f"{state_abs}/files.facts")
            if facts.memory == memory.identity():
                trees |= {facts.tree, facts.ignored_tree} - {""}
        memory.write_ref("refs/looks", memory.write_tree([("40000", t, t) for t in trees]))


def _forget_trees(memory: Memory, before_s: float) -> bool:
    """Forget the trees that no session or run has seen since; return whether there were any."""
    folder_abs = f"{memory.folder_abs}/{TREES}"
    entries = os.scandir(folder_abs) if os.path.isdir(folder_abs) else ()
    old = [entry.path for entry in entries if entry.stat().st_mtime < before_s]
    for path_abs in old:
        remove_file(path_abs)
    return bool(old)


def _remove_abandoned(memory: Memory, before_s: float) -> None:
    """Remove memories beside this one whose repositories have long been gone."""
    if memory.folder_abs.startswith(f"{memory.repo.common_dir_abs}/"):
        return
    for entry in os.scandir(os.path.dirname(memory.folder_abs)):
        owner = os.fsdecode(read_or_empty(f"{entry.path}/of"))
        is_gone = (owner and not os.path.exists(owner)) or ".damaged-" in entry.name
        places = [f"{entry.path}/{name}" for name in ("of", "refs", "number")]
        used_s = [os.stat(place).st_mtime for place in places if os.path.exists(place)]
        if is_gone and used_s and max(used_s) < before_s:
            remove_tree(entry.path)
