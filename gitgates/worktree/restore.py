"""Restore what `stash` moved aside. Every step is idempotent, because a run may be killed at any.

Whatever is in the place of a hidden file is moved out and examined. If it is what we put there, it
is removed; if somebody changed it, the change is merged into the person's text (whose original is
kept, too); if that conflicts, the person's text is restored and the other is kept. Nothing that may
belong to somebody is ever removed, only moved to `kept`, and named.

One path that cannot be restored does not hold up the others.
"""

from __future__ import annotations

import os
import stat
import time

from gitgates.core.errors import GitError, GitgatesError, StateError
from gitgates.store.files import make_folder, remove_file, remove_tree, replace_file
from gitgates.store.rescue import (
    KILLED,
    digest,
    is_large,
    mode_of,
    move_aside,
    move_into_place,
    partial_name,
    prune_restored,
    read_file,
    restored_folder,
    set_aside,
)
from gitgates.worktree.locks import remove_stale, unlock_worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.git.repo import Git, Repo
    from gitgates.store.rescue import Rescue, StashedPath, StashJournal

KEPT_REFS = "refs/gitgates/kept"
KEPT_S = 30 * 24 * 3600
_ATTEMPTS = 20  # against a writer that writes the same path again and again
_FIRST_PATHS = 3  # of many, those that are named


class Restorer:
    """Restores what one run has stashed.

    `step` is called before each step. `changed_by`: path → the gate that changed it and ended by
    itself, and whether it has `writes`. `recovering`: another run was killed, maybe long ago.
    """

    def __init__(
        self,
        repo: Repo,
        rescue: Rescue,
        step: Callable[[str], None],
        *,
        changed_by: Mapping[str, tuple[str, bool]] = {},
        recovering: bool = False,
    ) -> None:
        self.repo, self.rescue, self.step = repo, rescue, step
        self.git = repo.git._replace(apart=True)
        self.changed_by, self.recovering = changed_by, recovering
        self.notes: list[str] = []
        self._stamp = f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{os.getpid()}"
        self.paths: list[str] = []
        self.damaged: list[str] = []  # what could not come back as it was: one line each
        self.restored = restored_folder(repo.state_abs, "")

    def restore(self, journal: StashJournal) -> tuple[str, ...]:
        """Restore everything, then remove the journal; return messages.

        Raises: StateError that names what cannot be restored, and where it is, or what did not come
        back as it was; everything else is back.
        """
        failed: list[str] = []
        make_folder(self.rescue.at("out"))
        self._make_restored(journal.token)
        created = frozenset(journal.made_folders)
        for number, entry in reversed(list(enumerate(journal.entries))):
            try:
                self._restore_one(entry, number)
            except (OSError, GitgatesError) as error:
                saved_abs = self.rescue.at("saved", entry.saved) if entry.saved else ""
                location = f"; yours is in {saved_abs}" if saved_abs else ""
                failed.append(f"`{entry.path}` cannot be restored: {error}{location}")
            _remove_empty_folders(self.git.cwd_abs, entry.path, created)
        if failed:
            self.notes += remove_stale(journal.git_locks, journal.git_pid)
            hint = "Fix that, and run: gitgates recover"
            raise StateError("\n".join(failed), hint).with_notes(self.notes)
        self.step("forget")
        left_abs = self.rescue.forget(self.restored)
        self._mark_killed()
        self.notes += remove_stale(
            journal.git_locks, journal.git_pid
        )  # last: git may be killed until then
        if left_abs:
            self.notes.append(f"files not created by gitgates are in {left_abs}")
        unlock_worktree(self.repo.git_dir_abs)
        prune_kept(self.repo)
        prune_restored(self.repo.state_abs, with_sizes=is_large(journal))
        if self.recovering and self.paths:
            count = len(self.paths)
            first = ", ".join(self.paths[: -_FIRST_PATHS - 1 : -1])
            first += ", …" if count > _FIRST_PATHS else ""
            self.notes.insert(
                0,
                "a killed run had stashed your unstaged work; restored "
                f"{count} file{'s' if count > 1 else ''}: {first}",
            )
        if self.damaged:
            lines = "\n  ".join(self.damaged)
            text = f"stashed work could not be restored exactly:\n  {lines}"
            hint = "Fix those files; this message is shown only once."
            raise StateError(text, hint).with_notes(self.notes)
        return tuple(self.notes)

    def keep(self, path: str, text_abs: str, why: str, what: str = "the other version") -> None:
        """Move a file, link or folder to `kept`, store it under a ref, and add a note."""
        kept_abs = f"{self.repo.state_abs}/kept/{self._stamp}/{path}"
        while os.path.lexists(kept_abs):
            kept_abs += "+"
        make_folder(os.path.dirname(kept_abs))
        move_aside(text_abs, kept_abs)
        location = kept_abs
        if _is_file(kept_abs):
            stored = self.git.ask("hash-object", "-w", "--no-filters", "--", kept_abs)
            blob = stored.stdout.decode().strip()
            ref = f"{KEPT_REFS}/{self._stamp}/{blob[:12]}"
            if not (stored.exit_status or self.git.ask("update-ref", ref, blob).exit_status):
                location += f" and {ref}"
        self.notes.append(f"`{path}`: {why}; {what} is in {location}")

    def _make_restored(self, token: str) -> None:
        self.restored = restored_folder(self.repo.state_abs, token)
        try:
            make_folder(self.restored.folder_abs)
        except OSError:
            return  # the disk may be full: then there are no second links

    def _mark_killed(self) -> None:
        if self.recovering and os.path.isdir(self.restored.folder_abs):
            try:
                replace_file(self.restored.at(KILLED), b"", sync=False)
            except OSError:
                return  # the disk may be full, and everything is restored

    def _restore_one(self, entry: StashedPath, number: int) -> None:
        path_abs = os.path.join(self.git.cwd_abs, entry.path)
        saved_abs = self.rescue.at("saved", entry.saved) if entry.saved else ""
        remove_file(partial_name(path_abs))
        self._keep_leftovers(entry, number)
        if saved_abs and not os.path.lexists(saved_abs):
            self._report_missing(entry, path_abs, saved_abs)
            return  # not moved yet, or back already
        if saved_abs and _is_same(saved_abs, path_abs):
            # Linked back already, when we were killed.
            set_aside(saved_abs, self.restored.at(entry.saved))
            return
        if self.recovering and entry.digest not in ("", digest(saved_abs)):
            self._keep_damaged(entry, saved_abs)
            return
        self._move_obstacles(entry.path)
        if entry.blob and saved_abs and not self.recovering and mode_of(path_abs) is None:
            how = self._how(entry)
            self.notes.append(f"`{entry.path}`: was deleted {how}; your version is restored")
        theirs_abs = self._move_out(entry, number, saved_abs)
        if not saved_abs:
            self._restore_deletion(entry, theirs_abs, path_abs)
        elif not (theirs_abs and self._merge(entry, theirs_abs, saved_abs)):
            if theirs_abs:
                why = f"changed {self._how(entry)}, in conflict with your changes"
                self.keep(entry.path, theirs_abs, f"{why}; your version is in place")
            self._put_back(entry, saved_abs, number)
        self.paths.append(entry.path)

    def _report_missing(self, entry: StashedPath, path_abs: str, saved_abs: str) -> None:
        """Report a stashed file that is neither in its place nor in the rescue folder."""
        instead = "nothing is there instead"
        if mode_of(path_abs) is not None:
            if entry.staged_digest in ("", entry.digest) or digest(path_abs) != entry.staged_digest:
                return
            instead = "the version being committed is there instead"
        if os.path.lexists(self.restored.at(entry.saved)):
            why = f"was restored, and then {instead}; run: gitgates recover"
            self.notes.append(f"`{entry.path}`: {why}")
            return
        self.damaged.append(f"`{entry.path}`: yours is missing: {saved_abs} not found; {instead}")

    def _keep_damaged(self, entry: StashedPath, saved_abs: str) -> None:
        """Keep a stashed file that has changed since; leave the working tree alone."""
        actual = digest(saved_abs) or "no file"
        why = f"yours is damaged ({actual}; it was {entry.digest}) and was not restored"
        self.keep(entry.path, saved_abs, why, what="what is left of it")
        self.damaged.append(self.notes.pop())

    def _keep_leftovers(self, entry: StashedPath, number: int) -> None:
        """Keep what a killed run had moved out of this place."""
        for name in sorted(os.listdir(self.rescue.at("out"))):
            if name.partition(".")[0] == str(number):
                out_abs = self.rescue.at("out", name)
                if not self._remove_shown(entry, out_abs):
                    self.keep(entry.path, out_abs, "it was written while yours was restored")

    def _move_obstacles(self, path: str) -> None:
        """Keep a file, or a link to elsewhere, if this path needs a folder."""
        parts = path.split("/")
        for depth in range(1, len(parts)):
            folder = "/".join(parts[:depth])
            folder_abs = os.path.join(self.git.cwd_abs, folder)
            mode = mode_of(folder_abs)
            if mode is not None and not stat.S_ISDIR(mode):
                self.keep(folder, folder_abs, f"`{path}` needs a folder there")
        os.makedirs(os.path.join(self.git.cwd_abs, *parts[:-1]), exist_ok=True)

    def _move_out(self, entry: StashedPath, number: int, saved_abs: str = "") -> str:
        """Move out what is in place; return its new path if it is somebody's, else ""."""
        path_abs = os.path.join(self.git.cwd_abs, entry.path)
        out_abs = self.rescue.at("out", f"{number}.{len(os.listdir(self.rescue.at('out')))}")
        self.step("take-out")
        try:
            move_aside(path_abs, out_abs)
        except (FileNotFoundError, NotADirectoryError):
            return ""
        if self._remove_shown(entry, out_abs):
            return ""
        is_copy = saved_abs and os.lstat(out_abs).st_mode == os.lstat(saved_abs).st_mode
        if is_copy and _is_file(out_abs) and read_file(out_abs) == read_file(saved_abs):
            os.unlink(out_abs)  # a copy of the person's own, from before it was moved
            return ""
        return out_abs

    def _remove_shown(self, entry: StashedPath, out_abs: str) -> bool:
        """Remove what was moved out if it is the isolated content; return whether it was."""
        if not entry.staged_digest or digest(out_abs) != entry.staged_digest:
            return False
        self._carry_mode(entry, out_abs)
        os.unlink(out_abs)
        return True

    def _carry_mode(self, entry: StashedPath, out_abs: str) -> None:
        """Copy a change of the execute bit to the person's file."""
        current_mode, staged_mode = os.lstat(out_abs).st_mode, entry.mode
        saved_abs = self.rescue.at("saved", entry.saved)
        if (
            not entry.saved
            or (current_mode ^ staged_mode) & 0o111 == 0
            or not os.path.isfile(saved_abs)
        ):
            return
        os.chmod(
            saved_abs, stat.S_IMODE(os.lstat(saved_abs).st_mode) & ~0o111 | current_mode & 0o111
        )
        self.notes.append(f"`{entry.path}`: its execute bit was changed in the meantime")

    def _restore_deletion(self, entry: StashedPath, theirs_abs: str, path_abs: str) -> None:
        """Restore a deletion, unless somebody else has written the file since."""
        if not theirs_abs:
            return
        if not self.recovering:
            why = f"you had deleted it, and it was changed {self._how(entry)}"
            self.keep(entry.path, theirs_abs, why)
            return
        # Long after a crash it may as well be the person's own new file: it stays.
        move_into_place(theirs_abs, path_abs)
        self.notes.append(f"`{entry.path}`: was deleted, and written since; it stays")

    def _how(self, entry: StashedPath) -> str:
        gate, writes = self.changed_by.get(entry.path, ("", False))
        if not gate:
            return "meanwhile"
        return f"by gate `{gate}`" if writes else f"while `{gate}` ran"

    def _put_back(self, entry: StashedPath, saved_abs: str, number: int) -> None:
        path_abs = os.path.join(self.git.cwd_abs, entry.path)
        for _attempt in range(_ATTEMPTS):
            self.step("put-back")
            try:
                move_into_place(saved_abs, path_abs, self.restored.at(entry.saved))
            except (FileExistsError, FileNotFoundError, NotADirectoryError):
                self._move_obstacles(entry.path)
                if again_abs := self._move_out(entry, number):
                    self.keep(entry.path, again_abs, "it was written while yours was restored")
            else:
                return
        raise StateError(f"`{entry.path}` is modified continuously; yours is in {saved_abs}")

    def can_merge(self, entry: StashedPath) -> bool:
        """Return whether what a gate has left in place merges with the person's version."""
        if not entry.saved:
            return True  # deleted, and to be deleted again
        path_abs = os.path.join(self.git.cwd_abs, entry.path)
        saved_abs = self.rescue.at("saved", entry.saved)
        if not (stat.S_ISREG(entry.mode) and _is_file(path_abs) and _is_file(saved_abs)):
            return False
        base = _checked_out_bytes(self.git, entry.blob, entry.path)
        merged_abs = self._merge_texts(saved_abs, base, path_abs) if base is not None else ""
        if merged_abs:
            os.unlink(merged_abs)
        return bool(merged_abs)

    def _merge(self, entry: StashedPath, theirs_abs: str, saved_abs: str) -> bool:
        """Merge both changes; False if they conflict."""
        if not all(_is_file(path_abs) for path_abs in (theirs_abs, saved_abs)):
            return False
        is_file = entry.blob and stat.S_ISREG(entry.mode)
        base = _checked_out_bytes(self.git, entry.blob, entry.path) if is_file else None
        gate, writes = self.changed_by.get(entry.path, ("", False))
        current = read_file(theirs_abs)
        # Only the beginning of what was shown: as a loss of power leaves it.
        if base is None or (not gate and base.startswith(current)):
            return False
        if not writes and current == _checked_out_bytes(self.git, f"HEAD:{entry.path}", entry.path):
            return False  # it was reset, and there is no change to merge
        merged_abs = self._merge_texts(saved_abs, base, theirs_abs)
        if not merged_abs:
            return False
        self.step("put-merged")
        try:
            path_abs = os.path.join(self.git.cwd_abs, entry.path)
            move_into_place(merged_abs, path_abs, self.restored.at(entry.saved))
        except OSError:
            return False
        why = f"changed {self._how(entry)}; the change is merged into your version"
        self.keep(entry.path, saved_abs, why, what="your previous version")
        os.unlink(theirs_abs)
        return True

    def _merge_texts(self, ours_abs: str, base: bytes, theirs_abs: str) -> str:
        """Merge the person's file and the changed one into a new file, with its mode.

        Return where that is; empty if they would conflict or are no texts.
        """
        merged_abs = self.rescue.at("merged")
        base_abs = f"{merged_abs}.base"
        remove_file(merged_abs)
        with open(base_abs, "wb") as file:
            file.write(base)
        completed = self.git.ask("merge-file", "-p", "-q", ours_abs, base_abs, theirs_abs)
        os.unlink(base_abs)
        if completed.exit_status < 0:
            raise GitError("git merge-file was killed")
        if completed.exit_status:
            return ""
        with open(merged_abs, "xb") as file:
            file.write(completed.stdout)
            os.fchmod(file.fileno(), stat.S_IMODE(os.lstat(ours_abs).st_mode))
            file.flush()
            os.fsync(file.fileno())
        return merged_abs


def _checked_out_bytes(git: Git, blob: str, path: str) -> bytes | None:
    """Return a blob as a checkout would write it; None if git does not have it (any more)."""
    completed = git.ask("cat-file", "--filters", f"--path={path}", blob)
    return None if completed.exit_status else completed.stdout


def _remove_empty_folders(root_abs: str, path: str, created: frozenset[str]) -> None:
    """Remove the empty folders that were created for isolated files."""
    folder = os.path.dirname(path)
    while folder in created:
        try:
            os.rmdir(os.path.join(root_abs, folder))
        except OSError:
            return
        folder = os.path.dirname(folder)


def _is_file(path_abs: str) -> bool:
    return stat.S_ISREG(os.lstat(path_abs).st_mode)


def _is_same(one_abs: str, other_abs: str) -> bool:
    try:
        return os.path.samestat(os.lstat(one_abs), os.lstat(other_abs))
    except OSError:
        return False


def prune_kept(repo: Repo) -> int:
    """Remove kept files older than a month, with their refs; return how many runs they were of.

    What cannot be removed stays.
    """
    kept_abs = f"{repo.state_abs}/kept"
    removed = 0
    try:
        for stamp in os.listdir(kept_abs):
            folder_abs = f"{kept_abs}/{stamp}"
            if time.time() - os.stat(folder_abs).st_mtime < KEPT_S:
                continue
            refs = ("for-each-ref", "--format=%(refname)", f"{KEPT_REFS}/{stamp}")
            for name in repo.git.lines(*refs):
                repo.git.ask("update-ref", "-d", name)
            remove_tree(folder_abs)
            removed += 1
    except OSError:
        return removed
    return removed
