"""One settings file: where it stands, what it says, and how its places are named."""

from __future__ import annotations

import re

from gitgates.config.values import show
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class Document(Record):
    """One settings file, as TOML gave it."""

    source: str  # the file's name
    prefix: tuple[str, ...]  # the table that holds our keys
    table: dict[str, Any]

    def where(self, *path: str) -> str:
        """Name a place in this file, such as `pyproject.toml: tool.gitgates.gates.lint`."""
        keys = (*self.prefix, *path)
        dotted = ".".join(key if _BARE_KEY.fullmatch(key) else show(key) for key in keys)
        return f"{self.source}: {dotted}" if dotted else self.source


class Place(Record):
    """One table of a document."""

    document: Document
    path: tuple[str, ...] = ()

    def where(self, key: str) -> str:
        """Name a key of this table."""
        return self.document.where(*self.path, key)


class Settings(Record):
    """What one document, or several merged ones, set: record field → value."""

    document: Document
    top: dict[str, Any]
    gates: dict[str, dict[str, Any]]
    hooks: dict[str, dict[str, Any]]
    review: dict[str, Any] = {}
    origins: dict[tuple[str, ...], Document] = {}

    def where(self, section: str, name: str, field: str = "", key: str = "") -> str:
        """Name the place that set a field, in the file that did."""
        document = self.origins.get((section, name, field), self.document)
        return document.where(*(part for part in (section, name, key or field) if part))
