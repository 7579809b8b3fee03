"""What the module of an agent's servers offers. For type checkers only."""

from __future__ import annotations

from typing import Protocol


class AgentServers(Protocol):
    """What its module for servers of the Model Context Protocol offers."""

    FILE: str  # of a project, that they are registered in
    OTHER_SCOPES: str  # what a person types for another scope than that of the project

    def add(self, text: str | None, program: str, file: str) -> str:
        """Return the text with the server. None: no file.

        Raises: ConfigError if that cannot be.
        """

    def remove(self, text: str, file: str) -> str | None:
        """Return the text without the server; None if the file was created for it.

        Raises: ConfigError if the text cannot be read.
        """
