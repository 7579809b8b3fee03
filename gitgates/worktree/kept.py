"""Keep texts aside that conflict with others, as files and under refs, for a month."""

from __future__ import annotations

import os
import stat
import time

from gitgates.store.files import remove_tree
from gitgates.store.rescue import move_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Repo

REFS = "refs/gitgates/kept"
KEPT_S = 30 * 24 * 3600


class Keeper:
    """Keeps texts of one run; `notes` says of each what it is and where."""

    def __init__(self, repo: Repo) -> None:
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        self.notes: list[str] = []
        self._git = repo.git
        self._stamp = f"{stamp}-{os.getpid()}"
        self._folder_abs = f"{repo.state_abs}/kept/{self._stamp}"

    def keep(self, path: str, text_abs: str, why: str, what: str = "the other text") -> None:
        """Move a file, link or folder to where it is kept, and note that."""
        kept_abs = os.path.join(self._folder_abs, path)
        while os.path.lexists(kept_abs):
            kept_abs += "+"
        os.makedirs(os.path.dirname(kept_abs), mode=0o700, exist_ok=True)
        move_aside(text_abs, kept_abs)
        self.notes.append(f"`{path}`: {why}; {what} is in {self._where(kept_abs)}")

    def _where(self, kept_abs: str) -> str:
        if not stat.S_ISREG(os.lstat(kept_abs).st_mode):
            return kept_abs
        stored = self._git.ask("hash-object", "-w", "--no-filters", "--", kept_abs)
        blob = stored.stdout.decode().strip()
        name = f"{REFS}/{self._stamp}/{blob[:12]}"
        if stored.exit_status or self._git.ask("update-ref", name, blob).exit_status:
            return kept_abs
        return f"{kept_abs} and {name}"


def prune_kept(repo: Repo) -> int:
    """Remove what has been kept for a month, the refs with it; return of how many runs it was.

    What cannot be removed stays.
    """
    kept_abs = f"{repo.state_abs}/kept"
    gone = 0
    try:
        for stamp in os.listdir(kept_abs):
            folder_abs = f"{kept_abs}/{stamp}"
            if time.time() - os.stat(folder_abs).st_mtime < KEPT_S:
                continue
            for name in repo.git.lines("for-each-ref", "--format=%(refname)", f"{REFS}/{stamp}"):
                repo.git.ask("update-ref", "-d", name)
            remove_tree(folder_abs)
            gone += 1
    except OSError:
        return gone
    return gone
