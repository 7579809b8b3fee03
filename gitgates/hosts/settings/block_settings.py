"""A coding agent's settings as TOML, with the hooks in a block between two comments. Pure.

Each hook is a table in the array `hooks`. The block is removed byte for byte, and only if it
contains nothing but our hooks: clients also write into these files. If a client has dropped our
comments, our hooks are recognised by their commands.
"""

from __future__ import annotations

import json
from typing import Any

from gitgates.core.errors import ConfigError
from gitgates.edit import blocks
from gitgates.hosts.settings.base import Entry, HookSettings, InstalledHook
from gitgates.hosts.settings.json_settings import AgentSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_KEY = "hooks"


class BlockSettings(AgentSettings):
    """Settings for a client that reads TOML."""

    def add(
        self, text: str | None, entries: tuple[Entry, ...], command: str, file: str
    ) -> str | None:
        """Return the text with the hooks in a block at its end. `text`: None if there is no file.

        Raises: ConfigError if the text cannot be parsed, or its meaning would change.
        """
        tables = [(self.own_event(entry.event), self.table_of(entry, command)) for entry in entries]
        if text is not None:
            self.others(self.load(text, file), file)
        if not tables:
            return text
        scope = "" if "project" in self.host.FILES.settings else " --scope user"
        by = f"gitgates install-hooks --agent {self.host.NAME}{scope}"
        after = self.append(text, tables, file, by)
        if after is None:
            raise ConfigError(
                f"{file}: cannot add hooks to its `{_KEY}`",
                f"Add them by hand; nothing was changed:\n{self.lines_of(tables)}",
            )
        return after

    def remove(self, text: str, file: str) -> str | None:
        """Return the text without the block; None if the file was created for it.

        Raises: ConfigError if the text cannot be parsed, the block contains something else, or
        one of our hooks is outside it.
        """
        expected = self.others(self.load(text, file), file)
        rest = blocks.without(text, file)
        remaining = self.load(rest or "", file)
        is_removed = not any(self.is_ours(hook) for _event, hook in self.handlers(remaining, file))
        if not (is_removed and self.others(remaining, file) == expected):
            raise ConfigError(
                f"{file}: the block between the gitgates comments contains other settings, or "
                "a gitgates hook is outside it",
                "Move other settings out of the block by hand, and remove the hooks that run "
                f"`gitgates agent-hook {self.host.NAME}`; the file was not changed.",
            )
        return rest

    def read(self, text: str, file: str, _scope: str = "") -> HookSettings:
        """Parse a settings file.

        Raises: ConfigError as `add`.
        """
        tables = self.handlers(self.load(text, file), file)
        return HookSettings(tuple(self.installed(event, table) for event, table in tables))

    def installed(self, event: str, table: dict[str, Any]) -> InstalledHook:
        """Return the hook in a table."""
        matcher = table.get(self.host.SETTINGS.fields.get("matcher", "matcher"))
        if isinstance(matcher, str):
            before, after = self.host.SETTINGS.expression.split("{}")
            matcher = matcher.removeprefix(before).removesuffix(after)
        return self.hook_of(event, {}, {**table, "type": "command", "matcher": matcher})

    def is_ours(self, table: dict[str, Any]) -> bool:
        """Return whether a hook's table is gitgates'."""
        return self._is_removable({**table, "type": "command"})

    def table_of(self, entry: Entry, command: str) -> dict[str, Any]:
        """Return a hook's table."""
        fields, event = self.host.SETTINGS.fields, self.own_event(entry.event)
        hook = self.group_of(entry, command)["hooks"][0]
        name = {fields["name"]: f"gitgates {event}"} if "name" in fields else {}
        event_ = {fields["event"]: event} if "event" in fields else {}
        matcher = self.host.SETTINGS.expression.format(entry.matcher)
        match = {fields.get("matcher", "matcher"): matcher} if entry.matcher is not None else {}
        hook.pop("type")
        return {**name, **event_, **match, **hook}

    # What depends on the format

    def load(self, text: str, file: str) -> dict[str, Any]:
        """Parse the settings. Raises: ConfigError."""
        return blocks.load_toml(text, file)

    def handlers(self, settings: dict[str, Any], file: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each hook: its event, and its table.

        Raises: ConfigError if the settings have another shape.
        """
        tables = settings.get(_KEY, [])
        if not (isinstance(tables, list) and all(isinstance(table, dict) for table in tables)):
            raise ConfigError(f"{file}: `{_KEY}` is not an array of tables", "Fix it first.")
        for table in tables:
            yield str(table.get(self.host.SETTINGS.fields["event"], "")), table

    def others(self, settings: dict[str, Any], file: str) -> dict[str, Any]:
        """Return the settings without gitgates hooks and empty lists of hooks.

        Raises: ConfigError as `handlers`.
        """
        foreign = [
            table for _event, table in self.handlers(settings, file) if not self.is_ours(table)
        ]
        rest = {key: value for key, value in settings.items() if key != _KEY}
        return {**rest, _KEY: foreign} if foreign else rest

    def append(
        self, text: str | None, tables: list[tuple[str, dict[str, Any]]], file: str, by: str
    ) -> str | None:
        """Return the text with these hooks in a block; None if its meaning would change."""
        return blocks.append_toml(text, self.lines_of(tables), file, by)

    def lines_of(self, tables: list[tuple[str, dict[str, Any]]]) -> str:
        """Return hooks as lines."""
        return "".join(
            f"[[{_KEY}]]\n"
            + "".join(
                f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in table.items()
            )
            for _event, table in tables
        )


Settings = BlockSettings
