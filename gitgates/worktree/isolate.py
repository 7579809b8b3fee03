"""The working tree as the gates of one run see it: locked, and without what is unstaged.

`Shelter` goes around the running of gates; `recover` is what every gitgates command does first when
it finds that another one did not live to put things back.
"""

from __future__ import annotations

import os
import time

from gitgates.errors import LockError, StateError
from gitgates.git import locks as gitlocks
from gitgates.git.changes import find_unstaged
from gitgates.proc.faults import pause_point
from gitgates.store.files import open_state
from gitgates.worktree.locks import WAIT_S, Lock, Wait

# Most commits have nothing unstaged: what hides and puts back is loaded only where it is needed.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitgates.git.changes import Unstaged
    from gitgates.git.repo import Repo
    from gitgates.git.run import Git
    from gitgates.store.rescue import Journal, Rescue
    from gitgates.worktree.guardian import Guardian
    from gitgates.worktree.restore import Restored

_FIRST_PATHS = 3  # of many, those that are named


class Shelter:
    """Around the gates of one run. `notes` says afterwards what a person should know.

    `look` is called while waiting, and may raise.
    """

    def __init__(
        self,
        repo: Repo,
        say: Callable[[str], None],
        look: Callable[[], None] = lambda: None,
        *,
        hides: bool,
        locks: bool = True,
    ) -> None:
        self.notes: list[str] = []
        self.rescue: Rescue | None = None  # while something is hidden
        self.staged: tuple[str, ...] = ()  # what the commit changes, known where work is hidden
        self.shown: dict[str, int] = {}  # path → `fingerprint` of what stands for hidden work
        self.changed_by: dict[str, tuple[str, bool]] = {}  # as in worktree/restore.py
        self._repo = repo
        self._say = say
        self._look = look
        self.hides = hides
        self._locks = locks
        self._lock = Lock(repo.state_abs)
        self._step = pause_point(repo.env)
        self._journal: Journal | None = None
        self.token = f"{os.getpid()}.{time.time_ns()}"
        self._guardian: Guardian | None = None

    def __enter__(self) -> Shelter:
        if self._locks:
            self._take_lock(alone=False)
        if not self.hides:
            return self
        git_locks = gitlocks.held_by_git(self._repo)
        unstaged = find_unstaged(_git(self._repo))
        self.staged = tuple(unstaged.staged)
        if not (git_locks[0] or unstaged):
            return self
        try:
            if not self._lock.acquire(Wait(0.0, self._say), alone=True):
                # Others look at the files: what is unstaged may be another thing afterwards.
                self._lock.release()
                self._take_lock(alone=True)
                unstaged = find_unstaged(_git(self._repo))
                self.staged = tuple(unstaged.staged)
            self._hide(unstaged, git_locks)
        except OSError as error:
            self.__exit__()
            raise _cannot_write(self._repo, error) from error
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            if self._journal and self.rescue:
                self.notes += self._restore(self.rescue, self._journal).notes
                self.notes += gitlocks.clear((self._journal.git_locks, self._journal.git_pid))
        except BaseException:
            if self._guardian:
                self._guardian.wake()  # it tries again as soon as the lock is free
            raise
        else:
            if self._guardian:
                self._guardian.let_go()
        finally:
            self._lock.release()

    def hidden_paths(self) -> frozenset[str]:
        """Return the paths of which only a part is being committed."""
        return frozenset(e.path for e in self._journal.entries) if self._journal else frozenset()

    def _hide(self, unstaged: Unstaged, git_locks: gitlocks.Held) -> None:
        from gitgates.store.rescue import Rescue
        from gitgates.worktree import git_lock as worktree_lock
        from gitgates.worktree.guardian import Guardian
        from gitgates.worktree.hide import Around, hide

        repo = self._repo
        if unstaged.submodules:
            self.notes.append(f"submodules are left as they are: {', '.join(unstaged.submodules)}")
        self._step("guardian")
        self._guardian = Guardian(repo, git_locks)
        self.rescue = Rescue(f"{repo.state_abs}/rescue")
        around = Around(git_locks, self._step, self.token)
        try:
            worktree_lock.hold(repo.git_dir_abs)
            self._journal, self.shown = hide(_git(repo), self.rescue, unstaged, around)
        except BaseException:
            if not self.rescue.is_in_use():
                self.rescue.discard()
                worktree_lock.let_go(repo.git_dir_abs)
            else:
                self._journal = self.rescue.read()
            raise

    def _restore(self, rescue: Rescue, journal: Journal) -> Restored:
        from gitgates.worktree import git_lock as worktree_lock
        from gitgates.worktree.kept import Keeper, prune_kept
        from gitgates.worktree.restore import Place, restore

        repo = self._repo
        if not rescue.is_in_use():
            lost = ", ".join(f"`{entry.path}`" for entry in journal.entries if entry.saved)
            raise StateError(
                f"a gate removed {rescue.folder_abs}, where unstaged work was: {lost}",
                "What is in the working tree is what was being committed.",
            )
        keeper = Keeper(repo)
        place = Place(rescue, keeper, self._step, self.shown, self.changed_by)
        restored = restore(_git(repo), journal, place)
        worktree_lock.let_go(repo.git_dir_abs)
        if restored.notes:
            prune_kept(repo)
        _refuse_damage(restored, restored.notes)
        return restored

    def _take_lock(self, *, alone: bool) -> None:
        """Take the lock, and first put back what its last holder may have left."""
        wait = Wait(WAIT_S, self._say, self._look)
        while True:
            try:
                got = self._lock.acquire(wait, alone=alone)
            except OSError as error:
                if not alone:
                    return  # where no lock can be, nobody can hide anything either
                raise _cannot_write(self._repo, error) from error
            if not got:
                raise self._lock.busy_error()
            if not os.path.isdir(f"{self._repo.state_abs}/rescue"):
                return
            self._lock.release()
            catch_up(self._repo, self._say)


def recover(
    repo: Repo, say: Callable[[str], None], wait_s: float = 0.0, *, at_once: bool = False
) -> Restored | None:
    """Put back what a run that was killed has left hidden; None where there is nothing.

    `at_once`: that run has died this moment, and its gates may still run.

    Raises: LockError where that run is alive, still after `wait_s`; StateError where something was
    damaged, once: what is left of it is kept; what `restore` raises, and then everything that is
    not in its place is still kept.
    """
    if not os.path.isdir(f"{repo.state_abs}/rescue"):
        return None
    from gitgates.git.index import forget_aside
    from gitgates.store.rescue import Rescue
    from gitgates.worktree import git_lock as worktree_lock
    from gitgates.worktree import groups
    from gitgates.worktree.kept import Keeper, prune_kept
    from gitgates.worktree.restore import Place, restore

    rescue = Rescue(f"{repo.state_abs}/rescue")
    lock = Lock(repo.state_abs)
    try:
        if not lock.acquire(Wait(wait_s, say), alone=True):
            raise lock.busy_error()
        if not rescue.is_in_use():
            rescue.discard()
            worktree_lock.let_go(repo.git_dir_abs)
            return None
        journal = rescue.read()
        groups.end(rescue.groups(), journal.token, at_once=at_once)
        keeper = Keeper(repo)
        place = Place(rescue, keeper, pause_point(repo.env), recovering=True)
        restored = restore(_git(repo), journal, place)
        worktree_lock.let_go(repo.git_dir_abs)
        forget_aside(repo.git_dir_abs, journal.pid)
        prune_kept(repo)
        _refuse_damage(restored, describe(restored))
        return restored
    finally:
        lock.release()


def catch_up(repo: Repo, say: Callable[[str], None]) -> None:
    """Recover what another run left, and say it; say, too, what a guardian has recovered.

    Raises: what `recover` raises, but for LockError.
    """
    path_abs = f"{repo.state_abs}/recovered"
    try:
        with open(path_abs, "rb", opener=open_state) as file:
            lines = os.fsdecode(file.read()).removesuffix("\n").split("\n")
        os.unlink(path_abs)
    except OSError:
        lines = []
    try:
        if restored := recover(repo, say):
            lines += describe(restored)
    except LockError:
        pass  # that run is alive, and puts its things back itself
    finally:
        for line in lines:
            say(line)


def describe(restored: Restored) -> tuple[str, ...]:
    """Return what there is to say of a recovery, a line each."""
    count = len(restored.paths)
    if not count:
        return restored.notes
    files = f"{count} file{'s' if count > 1 else ''}"
    shown = ", ".join(restored.paths[:_FIRST_PATHS]) + (", …" if count > _FIRST_PATHS else "")
    head = f"a run that was killed had left your unstaged work aside; put back {files}: {shown}"
    return (head, *restored.notes)


def _git(repo: Repo) -> Git:
    """Return git that ^C on the terminal does not reach in the middle of moving files."""
    return repo.git._replace(apart=True)


def _refuse_damage(restored: Restored, notes: tuple[str, ...]) -> None:
    if restored.damaged:
        lines = "\n  ".join(restored.damaged)
        text = f"unstaged work that was put aside did not come back as it was:\n  {lines}"
        hint = "Mend those files; this is said only once."
        raise StateError(text, hint).with_notes(list(notes))


def _cannot_write(repo: Repo, error: OSError) -> StateError:
    return StateError(
        f"{repo.state_abs}: cannot be written: {error.strerror}",
        "Nothing was checked. Commit with nothing unstaged, or make the folder writable.",
    )
