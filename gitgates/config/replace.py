"""Write one settings file so that it is either the old one or the new one, never half of each."""

from __future__ import annotations

import os

from gitgates.errors import ConfigError
from gitgates.store.files import link_out, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.config.edit import Edit


def save(root_abs: str, edit: Edit) -> None:
    """Write an edit to its file. Its mode stays; a symbolic link stays and its target changes.

    Raises: ConfigError where the file cannot be written, or is not what it was any more.
    """
    path_abs = os.path.join(root_abs, edit.file)
    if link := link_out(path_abs, root_abs):
        raise ConfigError(
            f"{link}, which is no file of this repository: nothing was written",
            "Put a file of the repository in its place, and do the same again.",
        )
    path_abs = os.path.realpath(path_abs)
    try:
        if _read(path_abs) != edit.before:
            raise ConfigError(
                f"{edit.file}: was changed by somebody else meanwhile; nothing was written",
                "Run the command again.",
            )
        _require_writable(path_abs)
        replace_file(path_abs, edit.after, mode=None)
    except OSError as error:
        raise ConfigError(
            f"{edit.file}: cannot be written: {error.strerror or error}",
            f"Look at it with: ls -ld {path_abs}",
        ) from error


def _read(path_abs: str) -> bytes | None:
    try:
        with open(path_abs, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _require_writable(path_abs: str) -> None:
    """Refuse a read-only file, which is meant so; replacing needs only the folder's permission."""
    try:
        os.close(os.open(path_abs, os.O_WRONLY | os.O_CLOEXEC))
    except FileNotFoundError:
        return
