"""The entry that the trace writes into a session's journal."""

from __future__ import annotations

from gitgates.core.record import LazyRecord
from gitgates.session.journal import entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


@entry("trace")
class TraceEntry(LazyRecord):
    """What a tool call has changed was recorded in the ledger of the trace."""

    key: str  # of the event
    paths: Sequence[str] = ()  # that a tool for editing has named, and written
    tree: str = ""  # what a shell command has left
    head: str = ""  # the commit that was checked out
    taken: float = 0.0  # when that was looked at
