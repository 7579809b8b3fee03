"""The records of intents, their settings, and the error of a file of them."""

from __future__ import annotations

from gitgates.config.load import table_of
from gitgates.core.errors import ConfigError, UsageError
from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config

# The words that files of this name in public repositories use.
ACTIVE = "IN_PROGRESS"
STATUSES = ("PENDING", ACTIVE, "BLOCKED", "COMPLETED", "CANCELLED")
TABLE = "intents"


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

    def find(self, name: str) -> Intent:
        """Return the intent with an id. Raises: UsageError if there is none."""
        if intent := self.get(name):
            return intent
        from gitgates.config.values import did_you_mean  # cold: only a mistake needs them
        from gitgates.core.clean import visible_line

        known_ids = tuple(intent.id for intent in self.intents)
        hint = did_you_mean(name, known_ids) or "To list all: gitgates intent list"
        raise UsageError(f"{self.file}: no intent `{visible_line(name)}`", hint)

    @property
    def active(self) -> tuple[Intent, ...]:
        """Return those that may be selected."""
        return tuple(intent for intent in self.intents if intent.is_active)


class IntentSettings(Record):
    """Where the intents are, and what agents need one for."""

    file: str
    required: bool
    ask: tuple[str, ...]  # patterns of what a person is asked about
    ttl_s: float  # how long a selection holds without an event of its holder
    context_bytes: int  # the maximum size of an intent's context


def find_settings(config: Config) -> IntentSettings | None:
    """Return the settings of intents; None if there are none."""
    return table_of(config, TABLE, IntentSettings) if TABLE in config.tables else None


def settings_of(config: Config) -> IntentSettings:
    """Return the settings of intents. Raises: ConfigError if the configuration has none."""
    settings = find_settings(config)
    if settings is None:
        hint = "Add the table [tool.gitgates.intents] to pyproject.toml."
        raise ConfigError("intents are not configured here", hint)
    return settings
