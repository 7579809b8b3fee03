"""The working tree as the gates of one run see it: locked, and without what is unstaged.

`Shelter` goes around the running of gates; `recover` is what every gitgates command does first when
it finds that another one did not live to put things back.
"""

from __future__ import annotations

import os
import time

from gitgates.errors import StateError
from gitgates.record import Record
from gitgates.system import gitlocks
from gitgates.system.faults import pause_point
from gitgates.system.locks import WAIT_S, Lock
from gitgates.system.unstaged import find_unstaged

# Most commits have nothing unstaged: what hides and puts back is loaded only where it is needed.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.system.git import Git
    from gitgates.system.guardian import Guardian
    from gitgates.system.rescue import Journal, Rescue
    from gitgates.system.restore import Restored
    from gitgates.system.roots import Roots
    from gitgates.system.unstaged import Unstaged


class Site(Record):
    """The working tree in question."""

    roots: Roots
    git: Git
    env: Mapping[str, str]
    say: Callable[[str], None]


class Shelter:
    """Around the gates of one run. `notes` says afterwards what a person should know."""

    def __init__(self, site: Site, *, hides: bool, locks: bool = True) -> None:
        self.notes: list[str] = []
        self.rescue: Rescue | None = None  # while something is hidden
        self._site = site
        self._hides = hides
        self._locks = locks
        self._lock = Lock(site.roots.state_abs)
        self._step = pause_point(site.env)
        self._journal: Journal | None = None
        self._guardian: Guardian | None = None

    def __enter__(self) -> Shelter:
        git_locks = gitlocks.held_by_git(self._site.roots.git_dir_abs, self._site.env)
        needed = self._hides and bool(git_locks[0] or find_unstaged(self._site.git))
        if self._locks:
            self._take_lock(alone=needed)
        if needed:
            try:
                # Asked again: only now nobody else moves anything.
                self._hide(find_unstaged(self._site.git), git_locks)
            except BaseException:
                self.__exit__()
                raise
        return self

    def __exit__(self, *exc: object) -> None:
        try:
            if self._journal and self.rescue:
                from gitgates.system.restore import Place, restore

                place = Place(self.rescue, _kept_folder(self._site.roots), self._step)
                self.notes += restore(self._site.git, self._journal, place).notes
                self.notes += gitlocks.clear((self._journal.git_locks, self._journal.git_pid))
        finally:
            if self._guardian:
                self._guardian.let_go()
            self._lock.release()

    def _hide(self, unstaged: Unstaged, git_locks: gitlocks.Held) -> None:
        from gitgates.system.guardian import Guardian
        from gitgates.system.hide import hide
        from gitgates.system.rescue import Rescue

        site = self._site
        if unstaged.submodules:
            self.notes.append(f"submodules are left as they are: {', '.join(unstaged.submodules)}")
        self._step("guardian")
        self._guardian = Guardian(site.roots, git_locks, site.env)
        self.rescue = Rescue(f"{site.roots.state_abs}/rescue")
        try:
            self._journal = hide(site.git, self.rescue, unstaged, (git_locks, self._step))
        except BaseException:
            if self.rescue.is_in_use():
                self._journal = self.rescue.read()
            else:
                self.rescue.discard()
            raise

    def _take_lock(self, *, alone: bool) -> None:
        """Take the lock, and first put back what its last holder may have left."""
        while True:
            try:
                got = self._lock.acquire(alone=alone, wait_s=WAIT_S, say=self._site.say)
            except OSError as error:
                if not alone:
                    return  # where no lock can be, nobody can hide anything either
                raise StateError(
                    f"{self._site.roots.state_abs}: cannot be written: {error.strerror}",
                    "Nothing was moved. Commit with nothing unstaged, or make the folder writable.",
                ) from error
            if not got:
                raise self._lock.busy_error()
            if not os.path.isdir(f"{self._site.roots.state_abs}/rescue"):
                return
            self._lock.release()
            catch_up(self._site)


def recover(site: Site, wait_s: float = 0.0) -> Restored | None:
    """Put back what a run that was killed has left hidden; None where there is nothing to do.

    Nothing is to be done either where that run is alive, still after `wait_s`.

    Raises: what `restore` raises; then everything that is not in its place is still kept.
    """
    if not os.path.isdir(f"{site.roots.state_abs}/rescue"):
        return None
    from gitgates.system import groups
    from gitgates.system.kept import prune_kept
    from gitgates.system.rescue import Rescue
    from gitgates.system.restore import Place, restore

    rescue = Rescue(f"{site.roots.state_abs}/rescue")
    lock = Lock(site.roots.state_abs)
    try:
        if not lock.acquire(alone=True, wait_s=wait_s, say=site.say):
            return None  # its run is alive
        if not rescue.is_in_use():
            rescue.discard()
            return None
        journal = rescue.read()
        groups.end(rescue.groups())
        place = Place(rescue, _kept_folder(site.roots), pause_point(site.env), recovering=True)
        restored = restore(site.git, journal, place)
        prune_kept(site.git, f"{site.roots.state_abs}/kept")
        return restored
    finally:
        lock.release()


def catch_up(site: Site) -> None:
    """Recover what another run left, and say it; say, too, what a guardian has recovered."""
    path_abs = f"{site.roots.state_abs}/recovered"
    try:
        with open(path_abs, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().splitlines()
        os.unlink(path_abs)
    except OSError:
        lines = []
    if restored := recover(site):
        lines += describe(restored)
    for line in lines:
        site.say(line)


def describe(restored: Restored) -> tuple[str, ...]:
    """Return what there is to say of a recovery, a line each."""
    count = len(restored.paths)
    if not count:
        return restored.notes
    files = f"{count} file{'s' if count > 1 else ''}"
    shown = ", ".join(restored.paths[:3]) + (", …" if count > 3 else "")  # noqa: PLR2004
    head = f"a run that was killed had left your unstaged work aside; put back {files}: {shown}"
    return (head, *restored.notes)


def _kept_folder(roots: Roots) -> str:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return f"{roots.state_abs}/kept/{stamp}-{os.getpid()}"
