"""The entry that the trace writes into a session's journal."""

from __future__ import annotations

from gitgates.core.record import LazyRecord
from gitgates.session.journal import entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


@entry("trace")
class TraceEntry(LazyRecord):
    """The changes of a tool call were recorded in the ledger of the trace."""

    key: str  # identifies the event
    paths: Sequence[str] = ()  # the files that an editing tool has named and written
    tree: str = ""  # the snapshot after a shell command
    head: str = ""  # the commit that was checked out
    taken: float = 0.0  # when that snapshot was taken
