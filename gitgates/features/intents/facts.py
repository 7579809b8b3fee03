"""The entries that intents write into a session's journal."""

from __future__ import annotations

from gitgates.core.record import LazyRecord
from gitgates.journal.journal import entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


@entry("intent-selected")
class IntentSelectedEntry(LazyRecord):
    """An agent has selected an intent."""

    agent: str  # the sub-agent's id; empty: the main agent
    intent: str  # its id


@entry("intent-context")
class IntentContextEntry(LazyRecord):
    """The context of the selected intent, before a compaction."""

    agent: str  # the sub-agent's id; empty: the main agent
    intent: str  # its id
    text: str  # which the agent gets again afterwards


@entry("intent-outside")
class IntentOutsideEntry(LazyRecord):
    """Changes were compared with the scopes."""

    agent: str  # the sub-agent's id; empty: the main agent
    paths: Sequence[str]  # the files outside all scopes, new since the last comparison
    t: float  # the time before the gates ran, which may change files


@entry("intent-sent-back")
class IntentEndEntry(LazyRecord):
    """An agent wanted to stop with changes outside the scope."""

    prompt: str  # the number of the person's prompt
    agent: str  # the sub-agent's id; empty: the main agent
    is_let_go: bool = False  # whether it was allowed to, not sent back
