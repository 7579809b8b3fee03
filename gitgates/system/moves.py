"""Move files without ever writing over something, and without changing a byte of them."""

from __future__ import annotations

import errno
import os
import stat

_OTHER_FILE_SYSTEM = (errno.EXDEV, errno.EPERM, errno.ENOTSUP, errno.EMLINK)


def move_aside(source_abs: str, target_abs: str) -> None:
    """Move a file, link or folder to a new name that nothing has.

    On one file system this is a rename, so that the inode, its times and its other names stay; to
    another one the content is copied and synced first.

    Raises: OSError where it cannot be moved; then the source is still there.
    """
    try:
        os.rename(source_abs, target_abs)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        _copy(source_abs, target_abs)
        os.unlink(source_abs)


def place(source_abs: str, target_abs: str) -> None:
    """Give a file or link its place; the source is gone afterwards.

    Raises: FileExistsError where somebody put something there first; then nothing has changed.
    """
    try:
        os.link(source_abs, target_abs, follow_symlinks=False)
    except FileExistsError:
        raise
    except OSError as error:
        if stat.S_ISDIR(os.lstat(source_abs).st_mode):
            _place_folder(source_abs, target_abs)
            return
        if error.errno not in _OTHER_FILE_SYSTEM:
            raise
        _copy(source_abs, target_abs)
    os.unlink(source_abs)


def _place_folder(source_abs: str, target_abs: str) -> None:
    # A folder has one name only. rename(2) replaces nothing but an empty folder.
    if os.path.lexists(target_abs):
        raise FileExistsError(errno.EEXIST, "exists", target_abs)
    os.rename(source_abs, target_abs)


def _copy(source_abs: str, target_abs: str) -> None:
    """Copy a file or link to a name that nothing has, with its mode and times, and sync it."""
    found = os.lstat(source_abs)
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(source_abs), target_abs)
        return
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EXDEV, "is no file and lies on another file system", source_abs)
    fd = os.open(target_abs, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with open(source_abs, "rb", buffering=0) as source:
            while data := source.read(1 << 20):
                while data:
                    data = data[os.write(fd, data) :]
        os.fchmod(fd, stat.S_IMODE(found.st_mode))
        os.utime(target_abs, ns=(found.st_atime_ns, found.st_mtime_ns))
        os.fsync(fd)
    except OSError:
        os.unlink(target_abs)
        raise
    finally:
        os.close(fd)


def sync_folder(folder_abs: str) -> None:
    """Make the names in a folder survive a loss of power."""
    fd = os.open(folder_abs, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
