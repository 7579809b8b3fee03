"""Write one settings file so that it is either the old one or the new one, never half of each."""

from __future__ import annotations

import os
import stat

from gitgates.errors import ConfigError
from gitgates.store.files import link_out

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
        _replace(path_abs, edit.after)
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


def _replace(path_abs: str, content: bytes) -> None:
    mode = _mode(path_abs)
    temporary = f"{path_abs}.{os.getpid()}.tmp"
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with open(fd, "wb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path_abs)
    except BaseException:
        os.unlink(temporary)
        raise


def _mode(path_abs: str) -> int | None:
    """Return the mode of a file that may be written; None where there is none."""
    try:
        # Replacing needs only the folder's permission; a file that is read-only is meant so.
        os.close(os.open(path_abs, os.O_WRONLY | os.O_CLOEXEC))
        return stat.S_IMODE(os.stat(path_abs).st_mode)
    except FileNotFoundError:
        return None
