"""Isolate the content of a commit while gates run: lock the worktree, stash what is unstaged.

`Isolation` wraps a run of gates. Every gitgates command first calls `recover_and_report`: an
earlier one may have died before it restored.
"""

from __future__ import annotations

import os
import time

from gitgates.core.errors import LockError, StateError
from gitgates.git.index import find_unstaged
from gitgates.store.files import open_state
from gitgates.worktree.locks import WAIT_S, Lock, held_by_git, lock_worktree, unlock_worktree

# Most commits have nothing unstaged: what stashes and restores is loaded only if it is needed.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gitgates.git.index import Unstaged
    from gitgates.git.repo import Repo
    from gitgates.store.rescue import Rescue, StashJournal
    from gitgates.worktree.guardian import Guardian

_LONGEST_PAUSE_S = 60.0


class Isolation:
    """The context manager around the gates of one run. `notes`: messages for a person.

    `on_wait` is called while waiting, and may raise.
    """

    def __init__(
        self,
        repo: Repo,
        say: Callable[[str], None],
        on_wait: Callable[[], None] = lambda: None,
        *,
        hides: bool,
        locks: bool = True,
    ) -> None:
        self.notes: list[str] = []
        self.rescue: Rescue | None = None  # while something is hidden
        self.staged: tuple[str, ...] = ()  # what the commit changes, known if work is hidden
        self.changed_by: dict[str, tuple[str, bool]] = {}  # as in worktree/restore.py
        self.hides = hides
        self.token = f"{os.getpid()}.{time.time_ns()}"  # tells this run's gates from others
        self._repo = repo
        self._git = repo.git._replace(apart=True)  # ^C must not end it while files are moved
        self._say = say
        self._on_wait = on_wait
        self.locks = locks
        self._git_pid = os.getppid()  # as long as it lives
        self._lock = Lock(repo.state_abs)
        self._step = pause_point(repo.env)
        self._journal: StashJournal | None = None
        self._guardian: Guardian | None = None

    def __enter__(self) -> Isolation:
        if self.locks:
            self._take_lock(alone=False)
        if not self.hides:
            return self
        git_locks = held_by_git(self._repo)
        unstaged = self._find_unstaged()
        if not (git_locks or unstaged):
            return self
        try:
            if not self._lock.acquire(alone=True):
                # Others look at the files: what is unstaged may be another thing afterwards.
                self._lock.release()
                self._take_lock(alone=True)
                unstaged = self._find_unstaged()
            self._stash(unstaged, git_locks)
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
                self.notes += self._restore(self.rescue, self._journal)
        except BaseException:
            if self._guardian:
                self._guardian.trigger()  # it tries again as soon as the lock is free
            raise
        else:
            if self._guardian:
                self._guardian.release()
        finally:
            self._lock.release()

    @property
    def hidden(self) -> dict[str, str]:
        """The paths that are only partly being committed, with a `digest` of that part."""
        return {e.path: e.staged_digest for e in self._journal.entries} if self._journal else {}

    def conflicting(self, paths: Iterable[str]) -> set[str]:
        """Return the paths where changes of gates conflict with stashed work."""
        hidden = self.hidden.keys() & set(paths)
        if not (hidden and self.rescue and self._journal):
            return set()
        from gitgates.worktree.restore import Restorer

        restorer = Restorer(self._repo, self.rescue, self._step)
        entries = [entry for entry in self._journal.entries if entry.path in hidden]
        return {entry.path for entry in entries if not restorer.can_merge(entry)}

    def _find_unstaged(self) -> Unstaged:
        unstaged = find_unstaged(self._git)
        self.staged = tuple(unstaged.staged)
        names = ", ".join(unstaged.submodules)
        text = f"submodules are not as in the commit: {names}; gates see what is checked out there"
        self.notes = [text] if names else []
        for name in unstaged.unreadable:
            self.notes.append(
                f"submodule `{name}` could not be read: its git folder is missing; to clone "
                f"it again: mv '{name}' '{name}.old' && git submodule update --init '{name}'"
            )
        return unstaged

    def _stash(self, unstaged: Unstaged, git_locks: Mapping[str, int]) -> None:
        from gitgates.store.rescue import Rescue, StashJournal
        from gitgates.worktree.guardian import Guardian
        from gitgates.worktree.stash import stash

        repo = self._repo
        self._step("guardian")
        self._guardian = Guardian(repo, git_locks, self._git_pid)
        draft = StashJournal(
            root_abs=repo.root_abs,
            pid=os.getpid(),
            started=time.strftime("%Y-%m-%d %H:%M:%S"),
            git_locks=git_locks,
            git_pid=self._git_pid,
            token=self.token,
        )
        self.rescue = Rescue(f"{repo.state_abs}/rescue")
        try:
            lock_worktree(repo.git_dir_abs)
            self._journal = stash(
                *(self._git, self.rescue, unstaged),
                draft=draft,
                step=self._step,
            )
        except BaseException:
            if not self.rescue.is_in_use():
                self.rescue.discard()
                unlock_worktree(repo.git_dir_abs)
            else:
                self._journal = self.rescue.read()
            raise

    def _restore(self, rescue: Rescue, journal: StashJournal) -> tuple[str, ...]:
        from gitgates.worktree.restore import Restorer

        if not rescue.is_in_use():
            lost = ", ".join(f"`{entry.path}`" for entry in journal.entries if entry.saved)
            raise StateError(
                f"a gate removed {rescue.folder_abs}, which contained stashed work: {lost}",
                "The working tree contains what was being committed.",
            )
        restorer = Restorer(self._repo, rescue, self._step, changed_by=self.changed_by)
        return restorer.restore(journal)

    def _take_lock(self, *, alone: bool) -> None:
        """Take the lock, and restore what its last holder may have left."""
        while True:
            try:
                got = self._lock.acquire(
                    alone=alone, wait_s=WAIT_S, say=self._say, on_wait=self._on_wait
                )
            except OSError as error:
                if not alone:
                    return  # if no lock can be, nobody can hide anything either
                raise _cannot_write(self._repo, error) from error
            if not got:
                raise self._lock.busy_error()
            if not os.path.isdir(f"{self._repo.state_abs}/rescue"):
                return
            self._lock.release()
            recover_and_report(self._repo, self._say)


def recover(
    repo: Repo, say: Callable[[str], None], wait_s: float = 0.0, *, at_once: bool = False
) -> tuple[str, ...] | None:
    """Restore what a killed run has left stashed, and return messages; None if there is nothing.

    `at_once`: that run has just died, and its gates may still run.

    Raises: LockError if that run is alive, still after `wait_s`; StateError if something was
    damaged, once: what is left of it is kept; what `Restorer.restore` raises, and then everything
    that is not in its place is still kept.
    """
    if not os.path.isdir(f"{repo.state_abs}/rescue"):
        return None
    from gitgates.git.index import remove_stale_copies
    from gitgates.store.rescue import Rescue
    from gitgates.worktree.guardian import terminate_gates
    from gitgates.worktree.restore import Restorer

    rescue = Rescue(f"{repo.state_abs}/rescue")
    lock = Lock(repo.state_abs)
    try:
        if not lock.acquire(alone=True, wait_s=wait_s, say=say):
            raise lock.busy_error()
        if not rescue.is_in_use():
            rescue.discard()
            unlock_worktree(repo.git_dir_abs)
            return None
        journal = rescue.read()
        terminate_gates(journal.token, rescue.groups() if at_once else set())
        remove_stale_copies(repo.git_dir_abs, journal.pid)
        return Restorer(repo, rescue, pause_point(repo.env), recovering=True).restore(journal)
    finally:
        lock.release()


def recover_and_report(repo: Repo, say: Callable[[str], None]) -> None:
    """Recover what another run left, and report it; report what a guardian has recovered.

    Raises: what `recover` raises, except for LockError.
    """
    path_abs = f"{repo.state_abs}/recovered"
    try:
        with open(path_abs, "rb", opener=open_state) as file:
            lines = os.fsdecode(file.read()).removesuffix("\n").split("\n")
        os.unlink(path_abs)
    except OSError:
        lines = []
    try:
        lines += recover(repo, say) or ()
    except LockError:
        pass  # that run is alive, and puts its things back itself
    finally:
        for line in lines:
            say(line)


def _cannot_write(repo: Repo, error: OSError) -> StateError:
    from gitgates.store.owners import denied  # only if something is wrong

    if not_ours := denied(error):
        return StateError(not_ours.message, f"Nothing was checked. {not_ours.hint}")
    return StateError(
        f"{repo.state_abs}: cannot be written: {error.strerror}",
        "Nothing was checked. Commit with no unstaged changes, or make the folder writable.",
    )


def pause_point(env: Mapping[str, str]) -> Callable[[str], None]:
    """Return a function to call before each step; it waits at that of GITGATES_PAUSE_AT.

    A test pauses a run there, to see what a signal would leave behind: it tests the shipped code.
    The value is `STEP NUMBER FOLDER`: at the NUMBERth call for STEP, FOLDER/reached
    is made, and the run goes on when FOLDER/go is there.
    """
    words = env.get("GITGATES_PAUSE_AT", "").split(" ", 2)
    if len(words) < 3:  # noqa: PLR2004 - the three words above
        return lambda _name: None
    remaining = int(words[1])

    def step(name: str) -> None:
        nonlocal remaining
        remaining -= name == words[0]
        if name == words[0] and remaining == 0:
            os.close(os.open(f"{words[2]}/reached", os.O_CREAT | os.O_WRONLY, 0o600))
            end = time.monotonic() + _LONGEST_PAUSE_S
            while not os.path.exists(f"{words[2]}/go") and time.monotonic() < end:
                time.sleep(0.005)

    return step
