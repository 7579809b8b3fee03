"""What a look has found, and within which limits."""

from __future__ import annotations

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


_FIRST_PATHS = 3  # of many, those that are named


class Limits(Record):
    """What is too large to be stored."""

    max_file: int = 100 << 20  # bytes of one file
    max_ignored: int = 1 << 30  # bytes of all ignored files together


DEFAULT = Limits()


class Look(Record):
    """What a working tree holds."""

    tree: str  # of tracked and untracked files, raw; the id tells every difference
    head: str = ""  # the commit that is checked out; empty before the first
    ignored: str = ""  # the tree of ignored files that cannot be made again; empty: none, not asked
    left_out: Mapping[str, str] = {}  # path, which may be a folder → why it is in no tree
    ignored_out: Mapping[str, str] = {}  # the same of ignored files
    dirty: tuple[str, ...] = ()  # submodules with uncommitted changes
    unseen: tuple[str, ...] = ()  # why the same trees may have different content
    modes: Mapping[str, int] = {}  # path → permissions, if they are not those of the umask
    folders: Mapping[str, int] = {}  # the same of folders; only if ignored files were asked for
    owners: Mapping[str, tuple[int, int]] = {}  # path → user, group: not those of the root
    umask: int = 0o022
    is_stashed: bool = False  # another run has stashed some of it: its gates see something else
    notes: tuple[str, ...] = ()  # what a person should know: that the memory was damaged

    @property
    def all_left_out(self) -> dict[str, str]:
        """Return path → why it is in no tree, for files that git ignores, too."""
        return {**self.left_out, **self.ignored_out}

    @property
    def is_whole(self) -> bool:
        """Return whether the same tree means that gates see the same content."""
        return not (self.unseen or self.left_out or self.is_stashed)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Texts about content that no tree holds. They change when that content does."""
        names = [f"`{path}`" for path in sorted(self.left_out)]
        text = ", ".join(names[:_FIRST_PATHS]) + (", …" if len(names) > _FIRST_PATHS else "")
        return (*self.unseen, f"left out: {text}") if names else self.unseen
