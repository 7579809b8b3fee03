"""The entries that intents write into a session's journal."""

from __future__ import annotations

from gitgates.core.record import LazyRecord
from gitgates.session.journal import entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


@entry("intent-selected")
class IntentSelectedEntry(LazyRecord):
    """An agent has selected an intent."""

    agent: str  # the sub-agent's id; empty: the main thread
    intent: str  # its id
    tree: str | None = None  # what changes are compared with from now on, if they were not before
    head: str = ""  # the commit that was checked out


@entry("intent-context")
class IntentContextEntry(LazyRecord):
    """The context of the held intent, as it was before a compaction."""

    agent: str  # the sub-agent's id; empty: the main thread
    intent: str  # its id
    text: str  # what the agent is told again


@entry("intent-write")
class IntentWriteEntry(LazyRecord):
    """A tool that names its files may write them."""

    paths: Sequence[str]  # of the files


@entry("intent-point")
class IntentPointEntry(LazyRecord):
    """Changes were compared with the scopes up to this content."""

    tree: str  # the snapshot
    head: str  # the commit that was checked out
    t: float  # before gates ran, which may change files


@entry("intent-outside")
class IntentOutsideEntry(LazyRecord):
    """Changes outside any scope were found."""

    agent: str  # the sub-agent's id; empty: the main thread
    tree: str  # what was there before them
    paths: Sequence[str]  # of the files


@entry("intent-sent-back")
class IntentSentBackEntry(LazyRecord):
    """An agent was sent back for changes outside the scope."""

    prompt: str  # the number of the person's prompt
    agent: str  # the sub-agent's id; empty: the main thread


@entry("intent-let-go")
class IntentLetGoEntry(LazyRecord):
    """An agent was let go with changes outside the scope."""

    agent: str  # the sub-agent's id; empty: the main thread
