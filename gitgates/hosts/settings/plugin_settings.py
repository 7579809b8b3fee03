"""The plugin for an agent that runs no commands: a file that gitgates owns. Pure.

Its first line names gitgates and has the digest of the rest; another line has the events and the
command. If somebody edits the file, gitgates neither replaces nor removes it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from importlib.resources import files

from gitgates.core.errors import ConfigError
from gitgates.core.lifecycle import HOOK_OF
from gitgates.core.limits import parse_json
from gitgates.hosts.settings.base import Entry, HookSettings, InstalledHook, is_our_command
from gitgates.hosts.settings.json_settings import AgentSettings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MARK = "// Written by `gitgates install-hooks --agent {}`, which keeps it up to date; digest: "
_HEAD = re.compile(rf"\A{_MARK.format('[a-z]+')}([0-9a-f]+)\n")
_CONFIG = re.compile(r"^const CONFIG = (.*)$", re.MULTILINE)


class PluginSettings(AgentSettings):
    """The plugin as a coding agent's settings."""

    @property
    def AGENT_PATH(self) -> re.Pattern[str]:  # type: ignore[override]  # noqa: N802 - as above it
        """The files in a repository that define a sub-agent."""
        return re.compile(rf"(?:^|/){re.escape(self.host.FILES.folder)}/agents?/.+\.md$")

    def add(self, text: str | None, entries: tuple[Entry, ...], command: str, file: str) -> str:
        """Return the plugin's text.

        Raises: ConfigError if there is another file.
        """
        if text is not None:
            raise ConfigError(
                f"{file}: already exists, was not created by gitgates, and is left unchanged",
                "Rename it, and try again.",
            )
        hooks = {self.own_event(entry.event): _hook_of(entry) for entry in entries}
        return self._text({"host": self.host.NAME, "command": shlex.split(command), "hooks": hooks})

    def remove(self, text: str, file: str) -> str | None:
        """Return None for the gitgates plugin, and any other text unchanged.

        Raises: ConfigError if somebody has edited the plugin.
        """
        if _is_changed(text):
            raise ConfigError(
                f"{file}: was edited after gitgates wrote it; left unchanged",
                "Remove it, or move your changes elsewhere, and try again.",
            )
        return None if _HEAD.match(_plain(text)) else text

    def is_same(self, text: str | None, after: str | None, _file: str) -> bool:
        """Return whether a text equals the changed one."""
        return text is not None and after is not None and _plain(text) == after

    def read(self, text: str, _file: str, _scope: str = "") -> HookSettings:
        """Return the plugin's hooks; none if gitgates did not write it."""
        text, fix = _plain(text), f"gitgates install-hooks --agent {self.host.NAME}"
        line = _CONFIG.search(text) if _HEAD.match(text) else None
        if line is None:
            return HookSettings()
        changed = "the plugin was edited after gitgates wrote it; remove it first"
        loose = changed if _is_changed(text) else ""
        try:
            config = parse_json(line[1])
            hooks = tuple(self._read_hook(config, event, loose) for event in config["hooks"])
            is_current = bool(loose) or self._text(config) == text
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            return HookSettings(troubles={"cannot be read": f"remove it; then: {fix}"})
        what = "was written by another version of gitgates"
        return HookSettings(hooks, troubles={} if is_current else {what: fix})

    def _read_hook(self, config: dict[str, Any], event: str, loose: str) -> InstalledHook:
        command, hook = shlex.join(config["command"]), config["hooks"][event]
        kind = self.host.PROTOCOL.events[event][0] if event in self.host.PROTOCOL.events else ""
        return InstalledHook(
            event=HOOK_OF.get(kind, event),
            command=command,
            timeout_s=float(hook["timeout"]),
            matcher=hook.get("matcher"),
            is_ours=is_our_command(command, self.host.NAME),
            loose=loose,
        )

    def _text(self, config: dict[str, Any]) -> str:
        packaged = files("gitgates").joinpath("plugin/opencode/gitgates.js").read_text("utf-8")
        line = f"const CONFIG = {json.dumps(config)}"
        text = packaged.replace("const CONFIG = {}", line, 1)
        return f"{_MARK.format(self.host.NAME)}{_digest(text)}\n{text}"


Settings = PluginSettings


def _hook_of(entry: Entry) -> dict[str, Any]:
    matcher = {} if entry.matcher is None else {"matcher": entry.matcher}
    return {"timeout": entry.timeout_s, **matcher}


def _is_changed(text: str) -> bool:
    marked = _HEAD.match(_plain(text))
    return bool(marked and marked[1] != _digest(_plain(text)[marked.end() :]))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n")  # a checkout may change line endings
