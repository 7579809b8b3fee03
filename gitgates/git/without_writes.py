"""Take writes of others out of a tree: what a session has not written itself is not its change.

A write is known by the content of a file before and after it. Where the file has been changed
since, the lines that the write changed are put back that nobody has touched since.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from gitgates.git.authorship import changes_between, with_files
from gitgates.git.object_store import read_blobs, reading_git, storing_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.agent_types import Write
    from gitgates.git.repo import Git, Repo

_NONE = b"0"
_BLOBS = (b"100644", b"100755")


def without_writes(repo: Repo, start: str, now: str, writes: Iterable[Write]) -> str:
    """Return the tree `now` without writes that came after the tree `start`, in order.

    Where `start` has the content that a write produced, it has those before it, too.

    Raises: GitError where a tree does not exist; OSError where nothing can be stored.
    """
    by_path: dict[bytes, list[Write]] = {}
    for write in writes:
        by_path.setdefault(os.fsencode(write.path), []).append(write)
    git = reading_git(repo)
    replaced: dict[bytes, tuple[bytes, bytes]] = {}
    for path, old_file, file in changes_between(git, start, now) if by_path else ():
        if path not in by_path:
            continue
        old, content = _id(old_file), _id(file)
        path_writes = by_path[path]
        matching = [at for at, write in enumerate(path_writes) if write.after == old]
        for write in reversed(path_writes[matching[-1] + 1 :] if matching else path_writes):
            content = write.before if content == write.after else _undone(repo, git, write, content)
        if content != _id(file):
            mode = file[0] if file[0] in _BLOBS else old_file[0]
            removal = b"000000", _NONE * len(file[1])
            replaced[path] = (
                (mode if mode in _BLOBS else _BLOBS[0], content.encode()) if content else removal
            )
    return with_files(repo, now, replaced) if replaced else now


def _id(file: tuple[bytes, bytes]) -> str:
    return file[1].decode() if file[0] in _BLOBS else ""


def _undone(repo: Repo, git: Git, write: Write, content: str) -> str:
    """Return the id of a content without a write that others have built upon."""
    ids = [blob_id for blob_id in (write.before, write.after, content) if blob_id]
    blobs = {"": b"", **read_blobs(git, ids)}
    if not content or not {write.before, write.after, content}.issubset(blobs):
        return content  # it is huge
    before, after, now = (blobs[blob_id] for blob_id in (write.before, write.after, content))
    text = b"".join(undo(_lines(before), _lines(after), _lines(now)))
    if text == blobs[content]:
        return content
    stored = storing_git(repo).out("hash-object", "-w", "--stdin", stdin=text)
    return stored.decode().strip() if text or write.before else ""


def _lines(content: bytes) -> list[bytes]:
    return content.splitlines(keepends=True)


def undo(before: list[bytes], after: list[bytes], now: list[bytes]) -> list[bytes]:
    """Return the lines `now` with those put back that were changed from `before` to `after`.

    Lines that are others by now than `after` stay.
    """
    place: dict[int, int] = {}  # line of `after` → the same one in `now`
    for tag, start, end, other, _end in _compare(after, now):
        if tag == "equal":
            place |= {at: other + at - start for at in range(start, end)}
    slots = [[line] for line in (*now, b"")]  # what is there instead of each line, and at the end
    slots[-1] = []
    for tag, old, old_end, new, new_end in _compare(before, after):
        if tag != "equal":
            _put_back(slots, before[old:old_end], range(new, new_end), place)
    return [line for lines in slots for line in lines]


def _compare(old: list[bytes], new: list[bytes]) -> Sequence[tuple[str, int, int, int, int]]:
    from difflib import SequenceMatcher  # cold: only where gates have written

    return SequenceMatcher(None, old, new, autojunk=False).get_opcodes()


def _put_back(
    slots: list[list[bytes]], lines: list[bytes], written: range, place: dict[int, int]
) -> None:
    """Put lines back in place of those that were `written`, as far as they are still there."""
    first = written.start
    if len(lines) == len(written):  # each for itself
        for at, line in zip(written, lines, strict=True):
            if at in place:
                slots[place[at]] = [line]
    elif written and all(at in place for at in written):
        for at in written:
            slots[place[at]] = []
        slots[place[first]] = lines
    elif not written and (first == 0 or {first - 1, first} & place.keys()):
        at = place.get(first, place.get(first - 1, -1) + 1)
        slots[at] = [*lines, *slots[at]]
