"""Move files without ever writing over something, and without changing a byte of them."""

from __future__ import annotations

import errno
import os
import stat

from gitgates.store.files import sync_folder

# A file system without hard links, a file of somebody else's (fs.protected_hardlinks), too many.
_NO_LINK = (errno.EPERM, errno.ENOTSUP, errno.EMLINK)


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
        if error.errno in _NO_LINK:  # which is also what a folder answers
            _rename_to_free(source_abs, target_abs)
            return
        if error.errno != errno.EXDEV:
            raise
        _copy(source_abs, target_abs)
    os.unlink(source_abs)


def _rename_to_free(source_abs: str, target_abs: str) -> None:
    # The second best: between the look and the rename lies a moment.
    if os.path.lexists(target_abs):
        raise FileExistsError(errno.EEXIST, "exists", target_abs)
    os.rename(source_abs, target_abs)


def part_of(target_abs: str) -> str:
    """Return the name that a copy has until it is whole."""
    folder, name = os.path.split(target_abs)
    return os.path.join(folder, f".{name[:200]}.gitgates-part")


def _copy(source_abs: str, target_abs: str) -> None:
    """Copy a file or link to a name that nothing has, with its mode and times, and sync it.

    Under that name it is whole from the first moment: half a copy, left by a kill, could be taken
    for somebody's text.
    """
    found = os.lstat(source_abs)
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(source_abs), target_abs)
        return
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EXDEV, "is no file and lies on another file system", source_abs)
    part_abs = part_of(target_abs)
    try:
        _copy_content(source_abs, part_abs, found)
        try:
            os.link(part_abs, target_abs)
        except OSError as error:
            if error.errno not in _NO_LINK:
                raise
            _rename_to_free(part_abs, target_abs)
        sync_folder(os.path.dirname(target_abs))
    finally:
        if os.path.lexists(part_abs):
            os.unlink(part_abs)


def _copy_content(source_abs: str, part_abs: str, found: os.stat_result) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    fd = os.open(part_abs, flags, 0o600)
    try:
        with open(source_abs, "rb", buffering=0) as source:
            while data := source.read(1 << 20):
                while data:
                    data = data[os.write(fd, data) :]
        os.fchmod(fd, stat.S_IMODE(found.st_mode))
        os.utime(part_abs, ns=(found.st_atime_ns, found.st_mtime_ns))
        os.fsync(fd)
    finally:
        os.close(fd)
