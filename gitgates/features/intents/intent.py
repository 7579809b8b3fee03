"""The records of intents, and the error of a file of them."""

from __future__ import annotations

from gitgates.core.errors import ConfigError
from gitgates.core.record import Record

# The words that files of this name in public repositories use.
ACTIVE = "IN_PROGRESS"
STATUSES = ("PENDING", ACTIVE, "BLOCKED", "COMPLETED", "CANCELLED")


class IntentsError(ConfigError):
    """The intents file has problems; all of them are in the message."""


class Intent(Record):
    """One piece of work: what it may change, and when it is done."""

    id: str
    title: str
    status: str  # one of STATUSES
    owned_scope: tuple[str, ...]  # patterns as in gitignore(5), relative to the root
    constraints: tuple[str, ...] = ()
    acceptance_criteria: tuple[str, ...] = ()
    priority: str = "normal"
    notes: str = ""

    @property
    def is_active(self) -> bool:
        """Return whether an agent may select it."""
        return self.status == ACTIVE


class Intents(Record):
    """The intents of one worktree, in the order of the file."""

    file: str  # relative to the root, whether it is there or not
    intents: tuple[Intent, ...] = ()

    def get(self, name: str) -> Intent | None:
        """Return the intent with an id; None if there is none."""
        return next((intent for intent in self.intents if intent.id == name), None)

    @property
    def active(self) -> tuple[Intent, ...]:
        """Return those that may be selected."""
        return tuple(intent for intent in self.intents if intent.is_active)
