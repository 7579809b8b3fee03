"""Compare and merge the texts that met in one place."""

from __future__ import annotations

import os
import stat

from gitgates.errors import GitError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.run import Git
    from gitgates.store.rescue import Entry


class Contents:
    """What files and blobs hold, as a checkout would write them."""

    def __init__(self, git: Git) -> None:
        self._git = git

    def blob(self, entry: Entry) -> bytes | None:
        """Return what was shown; None where it was no file or git does not have it any more."""
        if not entry.blob or not stat.S_ISREG(entry.mark[3]):
            return None
        try:
            return self._git.out("cat-file", "--filters", f"--path={entry.path}", entry.blob)
        except GitError:
            return None

    def is_blob(self, path_abs: str, entry: Entry) -> bool:
        """Tell whether a file or link holds what was shown."""
        mode = os.lstat(path_abs).st_mode
        if stat.S_IFMT(mode) != stat.S_IFMT(entry.mark[3]):
            return False
        if stat.S_ISLNK(mode):
            link = self._git.ask("cat-file", "blob", entry.blob)
            return not link.exit_status and link.stdout == os.fsencode(os.readlink(path_abs))
        return stat.S_ISREG(mode) and _content(path_abs) == self.blob(entry)

    def is_head(self, path_abs: str, entry: Entry) -> bool:
        """Tell whether a file is as in HEAD: then it was reset, and there is no change to merge."""
        name = f"HEAD:{entry.path}"
        head = self._git.ask("cat-file", "--filters", f"--path={entry.path}", name)
        return not head.exit_status and head.stdout == _content(path_abs)

    def are_same(self, one_abs: str, other_abs: str) -> bool:
        """Tell whether two are files of the same bytes and mode."""
        one, other = os.lstat(one_abs), os.lstat(other_abs)
        if one.st_mode != other.st_mode or not stat.S_ISREG(one.st_mode):
            return False
        return one.st_size == other.st_size and _content(one_abs) == _content(other_abs)


def fingerprint(path_abs: str) -> int:
    """Return a number that stands, in this process, for the content of a file or link."""
    mode = os.lstat(path_abs).st_mode
    if stat.S_ISLNK(mode):
        return hash(("link", os.readlink(path_abs)))
    return hash(_content(path_abs)) if stat.S_ISREG(mode) else hash(("other", mode))


def digest(path_abs: str) -> str:
    """Return size and checksum of a file or link; empty where it cannot be read, or is neither."""
    import zlib  # only a run that hides something pays for it

    try:
        mode = os.lstat(path_abs).st_mode
        if stat.S_ISLNK(mode):
            content = os.fsencode(os.readlink(path_abs))
        elif stat.S_ISREG(mode):
            content = _content(path_abs)
        else:
            return ""
    except OSError:
        return ""  # git could not read it either
    return f"{len(content)} bytes, CRC-32 {zlib.crc32(content):08x}"


def is_torn(path_abs: str, base: bytes) -> bool:
    """Tell whether a file is only the beginning of what was shown, as a loss of power leaves it."""
    mode = os.lstat(path_abs).st_mode
    return stat.S_ISREG(mode) and base.startswith(_content(path_abs))


def merge(git: Git, texts: tuple[str, bytes, str], merged_abs: str) -> bool:
    """Write the merge of (the person's file, what was shown, the changed file) to a new file.

    Its mode is the person's. False, and no file, where it would conflict or they are no texts.
    """
    ours_abs, base, theirs_abs = texts
    modes = [os.lstat(path).st_mode for path in (ours_abs, theirs_abs)]
    if not all(stat.S_ISREG(mode) for mode in modes):
        return False
    base_abs = f"{merged_abs}.base"
    with open(base_abs, "wb") as file:
        file.write(base)
    done = git.ask("merge-file", "-p", "-q", ours_abs, base_abs, theirs_abs)
    os.unlink(base_abs)
    if done.exit_status < 0:
        raise GitError("git merge-file was killed")
    if done.exit_status:
        return False
    with open(merged_abs, "xb") as file:
        file.write(done.stdout)
        os.fchmod(file.fileno(), stat.S_IMODE(modes[0]))
        file.flush()
        os.fsync(file.fileno())
    return True


def _content(path_abs: str) -> bytes:
    with open(path_abs, "rb") as file:
        return file.read()
