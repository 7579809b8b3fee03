"""Find the lines of a file that an agent's editing tools wrote; others wrote the rest.

Their payloads say what they have put in. A block of lines that differs, and has none of those, was
changed by somebody else. Where most of what the tools wrote no longer exists, as after a
formatter of the editor, nothing is separated: all of it counts as the agent's.
"""

from __future__ import annotations

from gitgates.core.errors import GitError
from gitgates.git.object_store import read_blobs, reading_git, storing_git
from gitgates.session.facts import GatesWroteEntry, WroteEntry
from gitgates.session.journal import is_a
from gitgates.session.start import line_marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from gitgates.git.repo import Git
    from gitgates.session.call import Call
    from gitgates.session.journal import Fact

_FOUND = 0.8  # the part of the lines that an agent has put in which must still be there
_RAW = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")


class EditedLines:
    """The lines that editing tools added to one file and removed, by digest."""

    def __init__(self) -> None:
        self.new: set[int] = set()
        self.old: set[int] = set()
        self.are_known = True
        self.removes = False  # all lines that are gone were removed by a tool

    def add(self, fact: Fact) -> None:
        """Add one edit, which may replace what an earlier one has put in."""
        if "new" not in fact:
            self.are_known = False
            return
        new, old = set(fact["new"]), set(fact["old"])
        self.removes = self.removes or fact.get("whole") is True
        self.old |= old - self.new
        self.new = (self.new - old) | new


def split_writes(
    call: Call, written: list[str], since: Sequence[Fact]
) -> tuple[list[str] | None, list[list[str]]]:
    """Return the session's files since its last snapshot, and what others wrote in these.

    `written` are those files, `since` the entries of the journal from that snapshot on. None in
    place of the files: no other file has changed. A write is a path, the content without it, and
    with it.
    """
    edited: dict[str, EditedLines] = {}
    for fact in since:
        if is_a(fact, WroteEntry):
            edited.setdefault(str(fact["path"]), EditedLines()).add(fact)
        for path in fact.get("paths", ()) if is_a(fact, GatesWroteEntry) else ():
            edited.setdefault(str(path), EditedLines()).are_known = False
    try:
        git = reading_git(call.repo)
        changed = _changed(git, str(since[0]["tree"]), call.snapshot.tree)
        comparable = {
            path: lines for path, lines in edited.items() if lines.are_known and path in written
        }
        writes = [
            [path, before, changed[path][1]]
            for path, lines in comparable.items()
            if path in changed and (before := _without(call, git, changed[path], lines))
        ]
    except (GitError, OSError):
        return written, []
    return (written if changed.keys() - set(written) else None), writes


def _changed(git: Git, before: str, after: str) -> dict[str, tuple[str, str]]:
    fields = git.names(*_RAW, before, after)
    return {
        path: (meta.split(" ")[2], meta.split(" ")[3])
        for meta, path in zip(fields[0::2], fields[1::2], strict=True)
    }


def _without(call: Call, git: Git, ids: tuple[str, str], lines: EditedLines) -> str:
    """Return the id of a content without the lines of others; empty if there are none."""
    blobs = read_blobs(git, [blob_id for blob_id in ids if blob_id.strip("0")])
    before, after = (blobs.get(blob_id, b"") for blob_id in ids)
    if ids[1] not in blobs or (ids[0].strip("0") and ids[0] not in blobs):
        return ""
    text = own_part(before, after, lines)
    if text == after:
        return ""
    return storing_git(call.repo).out("hash-object", "-w", "--stdin", stdin=text).decode().strip()


def own_part(before: bytes, after: bytes, lines: EditedLines) -> bytes:
    """Return a content with the changes of editing tools alone; all of it, if that is uncertain."""
    from difflib import SequenceMatcher  # cold: only where a file that was edited has changed

    old, new = (content.splitlines(keepends=True) for content in (before, after))
    marks = [(line_marks(line.decode("utf-8", "replace")) or [0])[0] for line in new]
    old_marks = [(line_marks(line.decode("utf-8", "replace")) or [0])[0] for line in old]
    pairs_of_marks = ((lines.new, marks), (lines.old, old_marks))
    if any(
        len(digests.intersection(present)) < _FOUND * len(digests)
        for digests, present in pairs_of_marks
    ):
        return after
    kept_lines: list[bytes] = []
    for tag, start, end, other, other_end in SequenceMatcher(
        None, old, new, autojunk=False
    ).get_opcodes():
        is_own = (
            lines.new.intersection(marks[other:other_end])
            or lines.old.intersection(old_marks[start:end])
            or (lines.removes and start < end)
        )
        if tag == "equal" or not is_own:
            kept_lines += old[start:end]
        else:
            pairs = zip(new[other:other_end], marks[other:other_end], strict=True)
            kept_lines += [line for line, mark in pairs if mark in lines.new]
    return b"".join(kept_lines)
