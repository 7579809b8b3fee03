"""Private checkouts: commits and trees that gates run on, in folders that are kept for reuse.

They lie outside of the working tree and of `.git`. Each has what git has, and what `setup` has
installed. Before its next use, all that gates have left is removed, except inside of what is
installed.
"""

from __future__ import annotations

import os

from gitgates.core.errors import StateError
from gitgates.core.record import Record
from gitgates.git.checkout import Layout, resolve
from gitgates.proc.descendants import Descendants
from gitgates.store.slots import prune_slots, take_slot
from gitgates.worktree.cache import cache_folder
from gitgates.worktree.setup import WorktreeSettings, copy_ignored, install, setup_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from gitgates.git.repo import Repo
    from gitgates.store.slots import Slot

FOLDER = "checkouts"
CHECKOUT = "GITGATES_CHECKOUT"
_VERSION = 3  # of the state of a slot
_MOST_INSTALLED = 2000  # paths beside those of git, as arguments of one command


class _Content(Record):
    """What is in a folder."""

    tree: str = ""
    settings: bytes = b""  # by which git has written it
    installed: tuple[str, ...] = ()  # by `setup`
    key: str = ""  # as which
    size_bytes: int = 0


class Checkout:
    """A folder that holds exactly one tree, leased to this process until `close`.

    The repository in it is found from the folder, so gates need no variable of git's.
    """

    def __init__(self, repo: Repo, slot: Slot, notes: list[str]) -> None:
        self.root_abs = slot.folder_abs
        self.repo = repo  # its own, with the environment for gates
        self.notes = tuple(notes)  # what a person should know
        self._slot = slot

    def __enter__(self) -> Checkout:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the folder."""
        self._slot.release()
        prune_slots(os.path.dirname(self.root_abs))


def check_out(
    repo: Repo,
    treeish: str,
    settings: WorktreeSettings | None,
    say: Callable[[str], None] = lambda _text: None,
    *,
    limit_s: float = 0.0,
) -> Checkout:
    """Check out a commit, tag or tree, with what gates need there.

    `settings`: None if no gate runs; then what is installed stays as it is. `say`: told
    that something is being installed. `limit_s`: how long that may take, if there is
    such a limit.

    Raises: GitError if there is no such tree or git cannot lay it out; StateError if nothing
    can be written; LockError if far too many are in use; SetupError; Interrupted.
    """
    commit, tree = resolve(repo, treeish)
    slot = take_slot(f"{cache_folder(repo)}/{FOLDER}")
    try:
        making = _Making(repo, slot, settings=settings, say=say, limit_s=limit_s)
        return making.checkout(commit, tree)
    except BaseException as error:
        slot.release()
        if isinstance(error, OSError):
            why = f"{slot.folder_abs}: a private checkout cannot be created: {error.strerror}"
            raise StateError(why) from error
        raise


class _Making:
    """A private checkout that is being made."""

    def __init__(
        self,
        repo: Repo,
        slot: Slot,
        *,
        settings: WorktreeSettings | None,
        say: Callable[[str], None],
        limit_s: float,
    ) -> None:
        self._repo, self._slot, self._settings = repo, slot, settings or WorktreeSettings()
        self._is_kept = settings is None
        self._say, self._limit_s = say, limit_s
        self._layout = Layout(repo, slot)

    def checkout(self, commit: str, tree: str) -> Checkout:
        settings, layout = self._settings, self._layout
        if mark := self._slot.left_mark():
            Descendants(f"{CHECKOUT}={mark}").end()  # or it would go on to change what is here
        content = self._lay_out(tree)
        notes = [
            f"submodules are not checked out: {', '.join(names)}"
            for names in (layout.submodules(),)
            if names
        ]
        root_abs = self._slot.folder_abs
        is_whole = all(os.path.lexists(f"{root_abs}/{name}") for name in content.installed)
        copied, more = copy_ignored(self._repo, settings.copy, root_abs, layout.has)
        inputs = (*copied, *layout.entries(settings.inputs)) if settings.setup else ()
        key = content.key if self._is_kept else setup_key(settings, inputs)
        if content.installed and not (content.key == key and (is_whole or self._is_kept)):
            if not layout.update(tree, tree, copied):  # folders without write permission, say
                layout.fill(tree)
                copied, more = copy_ignored(self._repo, settings.copy, root_abs, layout.has)
            content = content._replace(installed=(), key="")
        self._slot.end(_VERSION, *content)
        private_repo = layout.open_repository(commit, copied)
        env = {**private_repo.env, CHECKOUT: self._slot.mark()}
        private_repo = private_repo._replace(env=env)
        if content.key != key:
            notes += self._install(content._replace(key=key), private_repo, copied)
            layout.open_repository(commit, copied)  # it may have changed that, too
        return Checkout(private_repo, self._slot, [*notes, *more])

    def _lay_out(self, tree: str) -> _Content:
        """Make the folder equal to a tree, except for what is installed there."""
        slot, layout = self._slot, self._layout
        match slot.state():
            case (version, str(tree_before), bytes(by), (*installed,), str(key), int(size)) if (
                version == _VERSION
            ):
                content = _Content(tree_before, by, tuple(map(str, installed)), key, size)
            case _:
                content = _Content()
        slot.begin()
        if content.settings != layout.settings or not layout.update(
            content.tree, tree, content.installed
        ):
            layout.fill(tree)
            content = _Content(size_bytes=_size(slot.folder_abs))
        return content._replace(tree=tree, settings=layout.settings)

    def _install(self, content: _Content, private_repo: Repo, copied: list[str]) -> list[str]:
        """Install what gates need; return notes."""
        slot, layout = self._slot, self._layout
        for text in self._settings.setup:
            self._say(f"private checkout: `{text}`")
        install(
            self._settings,
            slot.folder_abs,
            private_repo.env,
            log_abs=slot.log_abs,
            limit_s=self._limit_s,
        )
        changed = layout.changed()
        layout.put_back(content.tree)
        added = [name for name in layout.added() if name.rstrip("/") not in copied]
        installed = (*added, *changed)
        notes = []
        if changed:
            names = ", ".join(changed[:3]) + (", …" if len(changed) > 3 else "")  # noqa: PLR2004 - a few
            notes.append(f"`setup` has changed {names} in the private checkout: put back")
        if len(installed) > _MOST_INSTALLED:
            count = len(installed)
            notes.append(f"`setup` makes {count} files among those of git: it runs each time")
            return notes
        size = _size(slot.folder_abs)
        slot.end(_VERSION, *content._replace(installed=installed, size_bytes=size))
        return notes


def _size(folder_abs: str) -> int:
    """Return how many bytes the files in a folder take."""
    total, folders = 0, [folder_abs]
    while folders:
        for entry in os.scandir(folders.pop()):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            else:
                total += entry.stat(follow_symlinks=False).st_blocks * 512
    return total
