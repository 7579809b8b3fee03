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

    Where `start` has the content that one of them left, it has those before it, too.

    Raises: GitError where a tree does not exist; OSError where nothing can be stored.
    """
    found: dict[bytes, list[Write]] = {}
    for one in writes:
        found.setdefault(os.fsencode(one.path), []).append(one)
    git = reading_git(repo)
    taken: dict[bytes, tuple[bytes, bytes]] = {}
    for path, was, file in changes_between(git, start, now) if found else ():
        if path not in found:
            continue
        old, content = _id(was), _id(file)
        kept = found[path]
        known = [at for at, one in enumerate(kept) if one.after == old]
        for one in reversed(kept[known[-1] + 1 :] if known else kept):
            content = one.before if content == one.after else _undone(repo, git, one, content)
        if content != _id(file):
            mode = file[0] if file[0] in _BLOBS else was[0]
            gone = b"000000", _NONE * len(file[1])
            taken[path] = (
                (mode if mode in _BLOBS else _BLOBS[0], content.encode()) if content else gone
            )
    return with_files(repo, now, taken) if taken else now


def _id(file: tuple[bytes, bytes]) -> str:
    return file[1].decode() if file[0] in _BLOBS else ""


def _undone(repo: Repo, git: Git, write: Write, content: str) -> str:
    """Return the id of a content without a write that others have built upon."""
    ids = [one for one in (write.before, write.after, content) if one]
    blobs = {"": b"", **read_blobs(git, ids)}
    if not content or not {write.before, write.after, content}.issubset(blobs):
        return content  # it is huge
    before, after, now = (blobs[one] for one in (write.before, write.after, content))
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
    found = [[line] for line in (*now, b"")]  # what is there instead of each line, and at the end
    found[-1] = []
    for tag, old, old_end, new, new_end in _compare(before, after):
        if tag != "equal":
            _put_back(found, before[old:old_end], range(new, new_end), place)
    return [line for lines in found for line in lines]


def _compare(one: list[bytes], other: list[bytes]) -> Sequence[tuple[str, int, int, int, int]]:
    from difflib import SequenceMatcher  # cold: only where gates have written

    return SequenceMatcher(None, one, other, autojunk=False).get_opcodes()


def _put_back(
    found: list[list[bytes]], lines: list[bytes], written: range, place: dict[int, int]
) -> None:
    """Put lines back in place of those that were `written`, as far as they are still there."""
    first = written.start
    if len(lines) == len(written):  # each for itself
        for at, line in zip(written, lines, strict=True):
            if at in place:
                found[place[at]] = [line]
    elif written and all(at in place for at in written):
        for at in written:
            found[place[at]] = []
        found[place[first]] = lines
    elif not written and (first == 0 or {first - 1, first} & place.keys()):
        at = place.get(first, place.get(first - 1, -1) + 1)
        found[at] = [*lines, *found[at]]
