"""The interface of a module for an agent's servers. For type checkers only."""

from __future__ import annotations

from typing import Protocol


class AgentServers(Protocol):
    """A module that registers servers of the Model Context Protocol."""

    FILE: str  # the project's file with the servers
    OTHER_SCOPES: str  # the command for other scopes than the project

    def add(self, text: str | None, program: str, file: str) -> str:
        """Return the text with the server. `text`: None if there is no file.

        Raises: ConfigError if the server cannot be added.
        """

    def remove(self, text: str, file: str) -> str | None:
        """Return the text without the server; None if the file was created for it.

        Raises: ConfigError if the text cannot be parsed.
        """
