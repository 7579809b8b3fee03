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

    agent: str  # the sub-agent's id; empty: the main agent
    intent: str  # its id
    begins: bool = False  # what was changed before, without an intent, does not count


@entry("intent-context")
class IntentContextEntry(LazyRecord):
    """The context of the selected intent, before a compaction."""

    agent: str  # the sub-agent's id; empty: the main agent
    intent: str  # its id
    text: str  # the context, which the agent gets again


@entry("intent-write")
class IntentWriteEntry(LazyRecord):
    """A tool call that names its files was allowed to write them."""

    paths: Sequence[str]  # the files


@entry("intent-point")
class IntentPointEntry(LazyRecord):
    """Changes up to then were compared with the scopes."""

    t: float  # the time before the gates ran, which may change files


@entry("intent-outside")
class IntentOutsideEntry(LazyRecord):
    """Changes outside of all scopes were found."""

    agent: str  # the sub-agent's id; empty: the main agent
    paths: Sequence[str]  # the files


@entry("intent-sent-back")
class IntentSentBackEntry(LazyRecord):
    """An agent was blocked from stopping because of changes outside of the scope."""

    prompt: str  # the number of the person's prompt
    agent: str  # the sub-agent's id; empty: the main agent


@entry("intent-let-go")
class IntentLetGoEntry(LazyRecord):
    """An agent was allowed to stop with changes outside of the scope."""

    agent: str  # the sub-agent's id; empty: the main agent
