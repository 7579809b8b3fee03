"""The latest observed runs of gates, with what each depended on.

KEY/TIME   one run of a gate; KEY is derived from the gate's definition, TIME is in ns
digests    what lstat(2) returned for files, and the digests of their bytes

Hooks load this. A damaged file, or one of another version, counts as no run.
"""

from __future__ import annotations

import os

from gitgates.core.record import Record
from gitgates.observed.unchanged import Dependencies
from gitgates.store.files import make_folder, read_cached, remove_file, replace_cached

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_VERSION = 1
_DIGESTS = "digests"
_MOST_RUNS = 8  # per gate, such as those on different branches
_MOST_GATES = 200


class ObservedRun(Record):
    """One run of a gate, which passed or cannot be reused."""

    time_s: float  # when it ended, since the epoch
    duration_s: float
    hook: str
    maker: str  # as in a Proof
    environment: Mapping[str, str]
    depends: Dependencies
    # For a gate reused by file: `PATH NUL STATE` for each file that passed, beside `depends`.
    files: frozenset[str]

    @property
    def why_not_again(self) -> str:
        """Why the gate need not be observed again soon; empty: it must."""
        is_huge = self.depends.unreusable and not self.depends.states
        return self.depends.spoilt or (self.depends.unreusable if is_huge else "")

    @property
    def is_reusable(self) -> bool:
        """Whether it passed, and everything that it depends on is known."""
        return not (self.depends.unreusable or self.depends.spoilt)


class ObservedRuns:
    """The runs of one gate, for one definition of it."""

    def __init__(self, folder_abs: str, key: str) -> None:
        self._folder_abs = f"{folder_abs}/{key}"

    def newest_first(self) -> Iterator[tuple[str, ObservedRun]]:
        """Yield the runs with their names."""
        for name in self._names():
            if run := _read(f"{self._folder_abs}/{name}"):
                yield name, run

    def add(self, run: ObservedRun) -> None:
        """Add a run; drop the oldest, and earlier ones that cannot be reused. Raises: OSError."""
        if not os.path.isdir(self._folder_abs):
            make_folder(self._folder_abs)
            _make_room(os.path.dirname(self._folder_abs))
        kept = 1
        for name, other in self.newest_first():
            kept += other.is_reusable
            if not other.is_reusable or kept > _MOST_RUNS:
                self.remove(name)
        fields = {**run._asdict(), "depends": run.depends[:]}
        value = (_VERSION, *fields.values())
        replace_cached(f"{self._folder_abs}/{int(run.time_s * 1e9):020}", value, sync=False)

    def remove(self, name: str) -> None:
        """Remove a run."""
        remove_file(f"{self._folder_abs}/{name}")

    def _names(self) -> list[str]:
        try:
            names = os.listdir(self._folder_abs)
        except OSError:
            return []
        return sorted((name for name in names if name.isdigit()), reverse=True)


def read_digests(folder_abs: str) -> dict[str, str]:
    """Return the stored digests."""
    version, digests = read_cached(f"{folder_abs}/{_DIGESTS}") or (0, {})
    return digests if version == _VERSION else {}


def keep_digests(folder_abs: str, digests: dict[str, str]) -> None:
    """Store digests for the next run. Raises: OSError."""
    make_folder(folder_abs)
    replace_cached(f"{folder_abs}/{_DIGESTS}", (_VERSION, digests), sync=False)


def _read(path_abs: str) -> ObservedRun | None:
    try:
        version, *fields = read_cached(path_abs) or (0,)
        if version != _VERSION:
            return None
        run = ObservedRun(*fields)
        return run._replace(depends=Dependencies(*run.depends))
    except (TypeError, ValueError):
        return None


def _make_room(folder_abs: str) -> None:
    """If there are too many gates, remove those that have not run for longest."""
    try:
        with os.scandir(folder_abs) as entries:
            folders = [entry for entry in entries if entry.is_dir(follow_symlinks=False)]
        oldest = sorted((entry.stat().st_mtime, entry.path) for entry in folders)[:-_MOST_GATES]
        for _time, path_abs in oldest:
            for name in os.listdir(path_abs):
                remove_file(f"{path_abs}/{name}")
            os.rmdir(path_abs)
    except OSError:
        return  # another run removes it, or writes to it: the next time
