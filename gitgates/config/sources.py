"""The files of a configuration: the root's own, those of its members, and those that they extend.

Pure and cold: files and folders are requested by name, from the working tree or a commit.
"""

from __future__ import annotations

import os
from contextlib import suppress

from gitgates.config import LOCAL_FILE, OWN_FILE, PREFIXES, PYPROJECT
from gitgates.config.folders import expand, names_in
from gitgates.config.read import Document
from gitgates.config.requires import refuse_unmet
from gitgates.config.values import EXTENDS, MEMBERS, BadValue, ValueType, show
from gitgates.core.errors import ConfigError
from gitgates.core.limits import parse_toml
from gitgates.core.types import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from gitgates.config.folders import Subfolders

    # Path → content; None: the file was looked for, but does not exist.
    Raw: TypeAlias = Mapping[str, bytes | None]

_DEEPEST = 10  # files, each of which extends the next


def gather(raw: Raw, read: Callable[[list[str]], Raw], subfolders: Subfolders) -> Raw:
    """Return the root's files and those that they name. `read` returns several at once."""
    whole, missing = dict(raw), [""]

    def get(path: str) -> bytes | None:
        if path not in whole:
            missing.append(path)
        return whole.get(path)

    while missing:
        missing.clear()
        with suppress(ConfigError):  # the parser raises it again
            _Walk(get, subfolders).from_root()
        whole |= read(list(dict.fromkeys(missing)))
    return whole


def documents_in(raw: Raw) -> tuple[tuple[Document, ...], list[Problem]]:
    """Return the settings files, each after those that it extends, and problems between them.

    First come the root's files, then the members', and the local file last.

    Raises: ConfigError if a file is not TOML, is for another version, or if a folder has two.
    """
    walk = _Walk(raw.get, lambda folder: names_in(folder, raw))
    walk.from_root()
    return tuple(walk.documents), walk.problems


class _Walk:
    """Follows `members` and `extends`."""

    def __init__(self, get: Callable[[str], bytes | None], subfolders: Subfolders) -> None:
        self._get, self._subfolders = get, subfolders
        self.documents: list[Document] = []
        self.problems: list[Problem] = []

    def from_root(self) -> None:
        """Collect all documents."""
        local = self._document(LOCAL_FILE)
        if root := self._settings_of(""):
            if root.table.get("root") is False:
                hint = "Remove it, or run gitgates where the settings of the root are."
                self._add(root.location("root"), "is false, but this is the root", hint)
            self._take(root)
            members = _parsed(MEMBERS, root.table.get("members"))
            for folder in expand(members, self._subfolders):
                self._take_member(folder, root, is_named=folder in members)
        if local:
            self._refuse(local, ("root", "members", "extends"))
            self.documents.append(local)

    def _take_member(self, folder: str, root: Document, *, is_named: bool) -> None:
        document = self._settings_of(folder)
        members = root.location("members")
        if document is None:
            if is_named:
                message = f"does not exist, but `{members}` names that folder"
                hint = f"Create it with root = false, or [tool.gitgates] in {folder}/{PYPROJECT}."
                self._add(f"{folder}/{OWN_FILE}", message, hint)
            return
        if document.table.get("root") in (None, True):
            message = f"is a member (`{members}`), and must say that it is not a root"
            self._add(document.location(), message, "Add to it: root = false")
        self._refuse(document, ("members",))
        self._take(document)

    def _settings_of(self, folder: str) -> Document | None:
        """Return the settings of a folder, which are in one of two files."""
        paths = (os.path.join(folder, name) for name in (PYPROJECT, OWN_FILE))
        documents = [d for path in paths if (d := self._document(path, folder))]
        if len(documents) > 1:
            pyproject, other = documents
            raise ConfigError(
                f"{other.source}: settings are also in {pyproject.source}, [tool.gitgates]",
                f"Use one file: move the keys of {other.source} to {pyproject.source}, or vice "
                "versa.",
            )
        return documents[0] if documents else None

    def _take(self, document: Document, chain: tuple[str, ...] = ()) -> None:
        """Append a document, after those that it extends."""
        chain = (*chain, document.source)
        for at, entry in enumerate(_parsed(EXTENDS, document.table.get("extends"))):
            location = f"{document.location('extends')}[{at}]"
            path = os.path.normpath(os.path.join(os.path.dirname(document.source), entry))
            if {"..", ".git"} & {*path.split("/")}:
                hint = "Copy it into the repository, so that every change to it is a commit here."
                self._add(location, f"`{entry}` is not a file of the repository", hint)
            elif path in chain:
                circle = " → ".join(f"`{name}`" for name in (*chain[chain.index(path) :], path))
                self._add(location, f"is a cycle: {circle}", "Remove one of them.")
            elif len(chain) >= _DEEPEST:
                self._add(location, f"is more than {_DEEPEST} files deep", "Extend it directly.")
            elif not any((d.source, d.member) == (path, document.member) for d in self.documents):
                self._extend(path, document.member, location, chain)
        self.documents.append(document)

    def _extend(self, path: str, folder: str, location: str, chain: tuple[str, ...]) -> None:
        document = self._document(path, folder)
        if document is None:
            self._add(path, f"does not exist, or has no settings, but `{location}` names it")
            return
        self._refuse(document, ("root", "members"))
        self._take(document, chain)

    def _document(self, path: str, folder: str = "") -> Document | None:
        """Return a settings file; None if it does not exist, or has no table for gitgates."""
        content = self._get(path)
        name = os.path.basename(path)
        if content is None or (folder and name == PYPROJECT and b"gitgates" not in content):
            return None
        table: Any = _toml(content, path)
        prefix = PREFIXES.get(name, ())
        if prefix:
            tool = table.get("tool", {})
            table = tool.get("gitgates") if isinstance(tool, dict) else None
            if table is None:
                return None
            if not isinstance(table, dict):
                raise ConfigError(f"{path}: tool.gitgates: got {show(table)}, expected a table")
        document = Document(path, prefix, table, folder)
        refuse_unmet(document.location("requires"), table.get("requires"))
        return document

    def _refuse(self, document: Document, keys: tuple[str, ...]) -> None:
        for key in keys:
            if key in document.table:
                message = "is read only in the settings of the root"
                self._add(document.location(key), message, "Move it there, or remove it.")

    def _add(self, location: str, message: str, hint: str = "") -> None:
        self.problems.append(Problem(location, message, hint))


def _parsed(key: ValueType, value: object) -> tuple[str, ...]:
    """Return the entries of an array; empty if one is invalid, which the parser reports."""
    try:
        entries: Any = key.parse(value)
    except BadValue:
        return ()
    return tuple(entries)


def _toml(content: bytes, path: str) -> dict[str, Any]:
    try:
        text = content.decode("utf-8")
        if text.startswith("\ufeff"):
            # Accepting it would hide that no other reader of pyproject.toml takes the file.
            raise ConfigError(
                f"{path}: starts with a byte order mark, which TOML does not allow",
                "Save the file as UTF-8 without a byte order mark (BOM).",
            )
        return parse_toml(text)
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path}: byte {error.start + 1} is not UTF-8, which TOML requires",
            "Save the file as UTF-8.",
        ) from error
    except ValueError as error:  # also for a number with 5,000 digits
        hint = "Fix the TOML syntax there; gitgates uses no part of a file that it cannot parse."
        raise ConfigError(f"{path}: is not valid TOML: {error}", hint) from error
