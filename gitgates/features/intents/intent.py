"""Records of intents, their settings, and the error for an intents file."""

from __future__ import annotations

from gitgates.config.load import table_of
from gitgates.core.errors import ConfigError, UsageError
from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config

# The words used in public repositories' files with this name.
ACTIVE = "IN_PROGRESS"
STATUSES = ("PENDING", ACTIVE, "BLOCKED", "COMPLETED", "CANCELLED")
TABLE = "intents"


class IntentsError(ConfigError):
    """The intents file has problems; the message lists all of them."""


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
    """A worktree's intents, in the file's order."""

    file: str  # relative to the root; it need not exist
    intents: tuple[Intent, ...] = ()

    def get(self, name: str) -> Intent | None:
        """Return the intent with an id; None if there is none."""
        return next((intent for intent in self.intents if intent.id == name), None)

    def find(self, name: str) -> Intent:
        """Return the intent with an id. Raises: UsageError if there is none."""
        if intent := self.get(name):
            return intent
        from gitgates.config.values import did_you_mean  # cold: only needed for a mistake
        from gitgates.core.clean import visible_line

        known_ids = tuple(intent.id for intent in self.intents)
        hint = did_you_mean(name, known_ids) or "To list all: gitgates intent list"
        raise UsageError(f"{self.file}: no intent `{visible_line(name)}`", hint)

    @property
    def active(self) -> tuple[Intent, ...]:
        """Return the intents that may be selected."""
        return tuple(intent for intent in self.intents if intent.is_active)


class IntentSettings(Record):
    """Where the intents are, and when agents need one."""

    file: str
    required: bool
    ask: tuple[str, ...]  # patterns of files for which a person is asked
    ttl_s: float  # how long a selection lasts without an event from its holder
    context_bytes: int  # the maximum size of an intent's context


def find_settings(config: Config) -> IntentSettings | None:
    """Return the settings for intents; None if there are none."""
    return table_of(config, TABLE, IntentSettings) if TABLE in config.tables else None


def settings_of(config: Config) -> IntentSettings:
    """Return the settings for intents. Raises: ConfigError if the configuration has none."""
    settings = find_settings(config)
    if settings is None:
        hint = "Add the table [tool.gitgates.intents] to pyproject.toml."
        raise ConfigError("intents are not configured here", hint)
    return settings
