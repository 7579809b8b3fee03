"""A coding agent's settings as YAML, in which `hooks` has a list for each event. Pure.

If an event already has a list, our hook is added at its end, in a block of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gitgates.core.errors import ConfigError
from gitgates.edit import blocks
from gitgates.hosts.settings.block_settings import BlockSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

_KEY = "hooks"


class YamlSettings(BlockSettings):
    """Settings for a client that reads YAML."""

    def load(self, text: str, file: str) -> dict[str, Any]:
        """Parse the settings. Raises: ConfigError."""
        settings = blocks.load_yaml(text, file)
        if not isinstance(settings, dict | None):
            raise ConfigError(f"{file}: is not a mapping", "Fix it first; it was not changed.")
        return settings or {}

    def handlers(self, settings: dict[str, Any], file: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each hook: its event, and its table.

        Raises: ConfigError if the settings have another shape.
        """
        events = settings.get(_KEY)
        if not isinstance(events, dict | None):
            raise ConfigError(f"{file}: `{_KEY}` is not a mapping", "Fix it first.")
        for event, tables in (events or {}).items():
            for table in tables if isinstance(tables, list) else ():
                if isinstance(table, dict):
                    yield str(event), table

    def others(self, settings: dict[str, Any], file: str) -> dict[str, Any]:
        """Return the settings without gitgates hooks and empty lists of hooks.

        Raises: ConfigError as `handlers`.
        """
        our_tables = [
            table for _event, table in self.handlers(settings, file) if self.is_ours(table)
        ]
        events = settings.get(_KEY) or {}
        foreign = {
            event: [table for table in tables if table not in our_tables]
            if isinstance(tables, list)
            else tables
            for event, tables in events.items()
        }
        remaining = {event: tables for event, tables in foreign.items() if tables not in ([], None)}
        rest = {key: value for key, value in settings.items() if key != _KEY}
        return {**rest, _KEY: remaining} if remaining else rest

    def append(
        self, text: str | None, tables: list[tuple[str, dict[str, Any]]], file: str, by: str
    ) -> str | None:
        """Return the text with these hooks in blocks; None if its meaning would change."""
        settings = self.load(text or "", file)
        existing = settings.get(_KEY) or {}
        rest = {event: [table] for event, table in tables if event not in existing}
        additions: list[tuple[tuple[str, ...], dict[str, Any]]] = [
            ((_KEY, event), {event: [table]}) for event, table in tables if event in existing
        ]
        if rest:  # first, because what follows a list's last item would become part of its block
            additions.insert(0, ((_KEY,) if _KEY in settings else (), rest))
        for path, adds in additions:
            text = blocks.append_yaml(text, path, {_KEY: adds}, file=file, command=by)
            if text is None:
                return None
        return text

    def lines_of(self, tables: list[tuple[str, dict[str, Any]]]) -> str:
        """Return hooks as lines."""
        return blocks.yaml_lines({_KEY: {event: [table] for event, table in tables}})


Settings = YamlSettings
