"""Read and atomically replace a file that belongs to the user."""

from __future__ import annotations

import os
from contextlib import suppress

from gitgates.core.errors import ConfigError, StateError
from gitgates.store.files import link_out, read_regular, replace_file, sync_folder


def read(path_abs: str) -> str | None:
    """Return a file's text without any conversion; None if the file does not exist.

    Raises: ConfigError if it cannot be read, or is not valid UTF-8.
    """
    try:
        return read_regular(path_abs).decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{path_abs}: is not valid UTF-8: byte {error.start}: {error.reason}",
            "Save it as UTF-8; it was not changed.",
        ) from error
    except OSError as error:
        why = error.strerror or str(error)
        why = why if why.startswith("is ") else f"cannot be read: {why}"
        raise ConfigError(f"{path_abs}: {why}", "Check it; it was not changed.") from error


def content(path_abs: str) -> bytes:
    """Return a file's bytes; none if it cannot be read."""
    try:
        return read_regular(path_abs)
    except OSError:
        return b""


def display_path(path_abs: str, root_abs: str) -> str:
    """Return a path for display: relative to the root if it is below it."""
    path = os.path.relpath(path_abs, root_abs)
    return path_abs if path.startswith("..") else path


def require_inside(root_abs: str, *paths_abs: str) -> None:
    """Refuse to write through links that lead out of a repository.

    Raises: StateError.
    """
    for path_abs in paths_abs:
        if link := link_out(path_abs, root_abs):
            raise StateError(
                f"{link}, which is not a file of this repository: nothing was changed",
                "Replace it with a file or folder of the repository, and try again.",
            )


def replace(path_abs: str, before: str | None, after: str | None) -> None:
    """Replace a file's text `before`; keep its mode, and a link to it. None: no file.

    Raises: StateError if it cannot be written, or no longer has that text.
    """
    target_abs = os.path.realpath(path_abs)
    try:
        if after is None:
            _require_unchanged(path_abs, before)
            os.unlink(target_abs)
            return
        os.makedirs(os.path.dirname(target_abs), exist_ok=True)
        content = after.encode()
        replace_file(
            target_abs, content, mode=None, check=lambda: _require_unchanged(path_abs, before)
        )
        sync_folder(os.path.dirname(target_abs))
    except OSError as error:
        raise StateError(
            f"{path_abs}: cannot be written: {error.strerror}", "Nothing was changed."
        ) from error


def remove_empty(folder_abs: str) -> None:
    """Remove a folder if it is empty; a link to one stays."""
    if not os.path.islink(folder_abs):
        with suppress(OSError):  # it is not empty
            os.rmdir(folder_abs)


def _require_unchanged(path_abs: str, before: str | None) -> None:
    if read(path_abs) != before:
        raise StateError(
            f"{path_abs}: was modified by another process just now; not overwritten",
            "Try again.",
        )
