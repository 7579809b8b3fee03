"""What the Remote Execution API demands of a client's messages, and servers seldom check.

Source: remote_execution.proto, the comments at `Digest`, `Directory`, `Action`, `Command` and
`Platform`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any

from gitgates.features.remote.protos import message


class Rules:
    """Checks what has been sent: blobs by their hashes."""

    def __init__(self, blobs: Mapping[str, bytes]) -> None:
        self._blobs = blobs
        self._directories: set[str] = set()

    def check_action(self, digest: Any) -> None:
        """Check an action with all that belongs to it."""
        action = self._message("Action", digest)
        command = self._message("Command", action.command_digest)
        assert command.arguments
        names = [each.name for each in command.environment_variables]
        _check_order(names)
        assert all(names)
        assert not any("=" in name for name in names)
        _check_order(command.output_paths)
        for path in command.output_paths:
            _check_path(path)
        assert not command.output_files
        assert not command.output_directories
        assert not command.working_directory
        properties = [(each.name, each.value) for each in action.platform.properties]
        _check_order(properties)
        assert action.platform == command.platform
        assert action.timeout.seconds > 0
        self._check_directory(action.input_root_digest)

    def _check_directory(self, digest: Any) -> None:
        if digest.hash in self._directories:
            return
        self._directories.add(digest.hash)
        found = self._message("Directory", digest)
        kinds = [[node.name for node in nodes] for nodes in _nodes(found)]
        for names in kinds:
            _check_order(names)
        all_names = [name for names in kinds for name in names]
        assert len(all_names) == len(set(all_names))
        for name in all_names:
            assert name not in ("", ".", "..")
            assert "/" not in name
            assert "\0" not in name
        assert all(link.target for link in found.symlinks)
        for file in found.files:
            self._blob(file.digest)
        for folder in found.directories:
            self._check_directory(folder.digest)

    def _message(self, name: str, digest: Any) -> Any:
        content = self._blob(digest)
        found = message(name).FromString(content)
        # Fields in order of their tags, each once, none that is unknown.
        found_again = type(found)()
        found_again.MergeFrom(found)
        found_again.DiscardUnknownFields()
        assert found_again.SerializeToString(deterministic=True) == content
        return found

    def _blob(self, digest: Any) -> bytes:
        assert re.fullmatch("[0-9a-f]{64}", digest.hash)
        if not digest.size_bytes:
            return b""  # which is always there
        content = self._blobs[digest.hash]
        assert len(content) == digest.size_bytes
        assert hashlib.sha256(content).hexdigest() == digest.hash
        return content


def _nodes(directory: Any) -> Iterable[Any]:
    return directory.files, directory.directories, directory.symlinks


def _check_order(values: Iterable[Any]) -> None:
    found = [*values]
    assert found == sorted(set(found))


def _check_path(path: str) -> None:
    assert path
    assert all(part not in ("", ".", "..") for part in path.split("/"))
