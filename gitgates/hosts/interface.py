"""What the module of a coding agent offers, and its module for settings. For type checkers only."""

from __future__ import annotations

from typing import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Mapping, Sequence

    from gitgates.agent_types import Channels, Payload, ToolCall, ToolKind
    from gitgates.hosts.settings import Entry, HookSettings
    from gitgates.lifecycle import EventKind
    from gitgates.types import Verdict


class AgentHost(Protocol):
    """What such a module offers."""

    TITLE: str  # as people know it
    SETTINGS: str  # the module that is its `AgentSettings`; it may be this one
    SERVERS: str  # the module that is its `AgentServers`; empty: it has none
    EVENTS: dict[str, tuple[EventKind, Channels]]  # its names for them
    TOOL_NAMES: dict[ToolKind, tuple[str, ...]]
    SECRETS: tuple[str, ...]  # variables of its own that no gate gets unless it asks for them
    OF_A_SESSION: tuple[str, ...]  # variables that another agent must not be started with

    def session_of(self, env: Mapping[str, str]) -> str:
        """Return the session of the agent that runs a command; empty if none does."""

    def is_caller(self, env: Mapping[str, str]) -> bool:
        """Return whether such an agent runs a command, and not a person."""

    def decode(self, data: bytes, env: Mapping[str, str]) -> Payload:
        """Parse a payload.

        Raises: BadPayload where it is none.
        """

    def encode(self, payload: Payload, verdict: Verdict) -> bytes:
        """Return what the agent's client receives, or nothing."""

    FOLDER: str  # of a project, that settings, agents and skills are in
    RULES_FILE: str  # of a project, which each session reads

    def home(self, env: Mapping[str, str]) -> str:
        """Return the folder of a person's own; empty if there is none."""

    def folders_of(self, root_abs: str, env: Mapping[str, str]) -> list[str]:
        """Return the folders that agents and skills are defined in."""

    def plugin_of(self, env: Mapping[str, str]) -> str:
        """Return the folder of the plugin that has started us; empty if none has."""

    def settings_files(self, root_abs: str, env: Mapping[str, str]) -> dict[str, str]:
        """Return the settings that a project, or a person, may have: scope → file."""

    def agent_files(self, name: str, folders: Iterable[str]) -> list[str]:
        """Return the files that define a sub-agent."""

    def skill_files(self, name: str, folders: Iterable[str]) -> list[str]:
        """Return the files that define a skill."""

    def calls_in(self, line: bytes) -> Sequence[ToolCall]:
        """Return the calls of tools in one line of a transcript."""

    def conversation_start_in(self, head: bytes) -> float:
        """Return when the conversation of a transcript began; 0 if that is not told."""


class AgentServers(Protocol):
    """What its module for servers of the Model Context Protocol offers."""

    FILE: str  # of a project, that they are registered in
    OTHER_SCOPES: str  # what a person types for another scope than that of the project

    def add(self, text: str | None, program: str, file: str) -> str:
        """Return the text with our server. None: no file.

        Raises: ConfigError if that cannot be.
        """

    def remove(self, text: str, file: str) -> str | None:
        """Return the text without our server; None if the file was made for it.

        Raises: ConfigError if the text cannot be read.
        """


class AgentSettings(Protocol):
    """What its module for settings offers: installing, and trying what is installed."""

    MANAGED: str  # the settings of a machine
    LOUDER: tuple[str, ...]  # scopes; those that count most last
    OFF: str  # the key that switches all hooks off
    SETTINGS_PATH: re.Pattern[str]  # of files in a repository that hooks may stand in
    AGENT_PATH: re.Pattern[str]  # and of those that define a sub-agent
    TAKE_PLUGIN_OUT: str  # what a person does for that

    def add(
        self, text: str | None, wanted: tuple[Entry, ...], command: str, file: str
    ) -> str | None:
        """Return the text with our hooks appended. None: no file.

        Raises: ConfigError if the text cannot be read.
        """

    def remove(self, text: str, file: str) -> str | None:
        """Return the text without our hooks; None if the file was made for them.

        Raises: ConfigError as `add`.
        """

    def read(self, text: str, file: str, scope: str = "") -> HookSettings:
        """Parse a settings file.

        Raises: ConfigError as `add`.
        """

    def plugin(self) -> HookSettings:
        """Return what our plugin says."""

    def matcher(
        self, kind: EventKind, tools: tuple[str, ...] | None, agents: tuple[str, ...] | None
    ) -> str | None:
        """Return what an event's hook is to be called for, in the agent's words; None: all."""

    AGENTS: str  # the folder of sub-agents, beside the settings; empty: there are none

    def review_files(self, reviewer: str, model: str) -> dict[str, str]:
        """Return the files for reviews: path beside the settings → text."""

    def may_define(self, reviewer: str) -> bool:
        """Return whether a file of ours can be that sub-agent."""

    def agent_name(self, text: str) -> str:
        """Return the name of the sub-agent that a file defines; empty if none."""

    PROVABLE: tuple[str, ...]  # events that can be blocked, which most hangs on first

    def hook_environment(self, root_abs: str) -> dict[str, str]:
        """Return the variables of hooks where a session is started in a folder."""

    def sample(self, event: str, root_abs: str, session: str, file: str = "") -> bytes:
        """Return the payload of an event in a session that is begun in a folder."""

    def is_block(self, exit_status: int | None, stdout: bytes) -> bool:
        """Return whether the client would block for this answer, whoever it is from."""
