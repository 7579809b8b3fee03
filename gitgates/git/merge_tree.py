"""Merge trees without a working tree, in git's way, into our own object folder."""

from __future__ import annotations

import os

from gitgates.git.object_store import reading_git, storing_git
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import TypeAlias

    from gitgates.git.repo import Repo
    from gitgates.git.run import Git

    Entry: TypeAlias = tuple[bytes, bytes]  # mode and object id; zeros: not there

# The same commits each time, so that merging again stores nothing new.
_NOBODY = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "gitgates"), ("EMAIL", "gitgates"), ("DATE", "@1 +0000"))
}
_HOW = ("-z", "--name-only", "--no-messages", "--allow-unrelated-histories")
_MERGE = ("merge-tree", "--write-tree", *_HOW)
_RAW = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
_NONE = (b"000000", b"0" * 40)
_IDS = (40, 64)  # digits, of SHA-1 and of SHA-256


class Work(Record):
    """Git, to read with and to store with."""

    repo: Repo
    git: Git  # sees our objects
    storing: Git  # stores among them


def begin(repo: Repo) -> Work:
    """Return what merging needs.

    Raises: OSError where our object folder cannot be made.
    """
    git = storing_git(repo)
    return Work(repo, reading_git(repo), git._replace(env={**git.env, **_NOBODY}))


def commit(work: Work, tree: str, *parents: str) -> str:
    """Return a commit of a tree, which no branch knows of.

    Raises: GitError where one of them is not there.
    """
    args = [word for parent in parents for word in ("-p", parent)]
    return work.storing.out("commit-tree", *args, "-m", "gitgates", tree).decode().strip()


def merge(work: Work, ours: str, theirs: str) -> tuple[str, bool]:
    """Return the tree that two commits merge to, and whether without a conflict.

    Files that conflict are taken as they are in `theirs`: git's marks are nobody's work. Git below
    2.38 cannot merge so; then each file that `theirs` has changed is taken as it is there.

    Raises: GitError where a commit is not there.
    """
    done = work.storing.ask(*_MERGE, ours, theirs)
    tree, *conflicts = done.stdout.split(b"\0")
    name = tree.decode("ascii", "replace")
    if done.exit_status == 0 and len(name) in _IDS:
        return name, True
    if done.exit_status == 1 and len(name) in _IDS:
        paths = {path for path in conflicts if path}
        there = {path: entry for path, entry in _entries(work, theirs) if path in paths}
        return _put(work, name, {path: there.get(path, _NONE) for path in paths}), False
    return _merge_by_file(work, ours, theirs), False


def take_over(work: Work, onto: str, spans: Iterable[tuple[str, str, tuple[str, ...]]]) -> str:
    """Return a tree with what has changed in spans of time on top, file by file.

    `spans` are the trees before and after each, and files that are left out. A file that is
    another one in the tree than it was before stays as it is there: whoever changed it first has
    not seen the rest. So it stays, too, where a span only brings such a file back.

    Raises: GitError where a tree is not there.
    """
    taken: dict[bytes, Entry] = {}
    others: dict[bytes, set[Entry]] = {}  # what such files were like before
    for before, after, left_out in spans:
        kept = set(map(os.fsencode, left_out))
        differs = set(_names(work, before, onto)) if before != onto else set()
        changes = list(_changes(work, before, after))
        own = {
            path: was
            for path, was, _is_now in changes
            if path in kept or (was != taken[path] if path in taken else path in differs)
        }
        for path, was in own.items():
            others.setdefault(path, set()).add(was)
        # Under another name it is the same file.
        moved = {own[path][1] for path, _was, is_now in changes if path in own and _is_gone(is_now)}
        for path, was, is_now in changes:
            is_renamed = _is_gone(was) and is_now[1] in moved
            if path not in own and not is_renamed and is_now not in others.get(path, ()):
                taken[path] = is_now
    return _put(work, onto, taken) if taken else onto


def replay(work: Work, onto: str, change: tuple[str, str]) -> tuple[str, bool]:
    """Return a tree with the change from one tree to another on top, and whether that went well.

    Raises: GitError where a tree is not there.
    """
    before, after = change
    if onto == before:
        return after, True
    if after in (before, onto):
        return onto, True
    base = commit(work, before)
    return merge(work, commit(work, onto, base), commit(work, after, base))


def trees_of(git: Git, *commits: str) -> list[str]:
    """Return the tree of each commit.

    Raises: GitError where one is not there.
    """
    return git.lines("rev-parse", *(f"{one}^{{tree}}" for one in commits))


def _merge_by_file(work: Work, ours: str, theirs: str) -> str:
    asked = work.git.ask("merge-base", ours, theirs)
    empty = work.git.out("hash-object", "-t", "tree", "--stdin").decode().strip()
    base = empty if asked.exit_status else asked.stdout.split()[0].decode()
    changed = {path: is_now for path, _was, is_now in _changes(work, base, theirs)}
    return _put(work, f"{ours}^{{tree}}", changed)


def _changes(work: Work, before: str, after: str) -> Iterator[tuple[bytes, Entry, Entry]]:
    """Yield each file that differs, as it was and as it is."""
    fields = work.git.out(*_RAW, before, after).split(b"\0")
    for meta, path in zip(fields[0::2], fields[1::2], strict=False):
        old_mode, mode, old_id, object_id, _status = meta[1:].split(b" ")
        yield path, (old_mode, old_id), (mode, object_id)


def _is_gone(entry: Entry) -> bool:
    return entry[0] == _NONE[0]


def _names(work: Work, before: str, after: str) -> list[bytes]:
    return work.git.out(*_RAW, before, after).split(b"\0")[1::2]


def _entries(work: Work, tree: str) -> Iterator[tuple[bytes, Entry]]:
    for line in work.git.out("ls-tree", "-r", "-z", tree).split(b"\0")[:-1]:
        meta, _tab, path = line.partition(b"\t")
        mode, _kind, object_id = meta.split(b" ")
        yield path, (mode, object_id)


def _put(work: Work, tree: str, files: Mapping[bytes, Entry]) -> str:
    """Return a tree with other files in it; a mode of zeros takes one out."""
    lines = [
        b"%s %s\t%s\0" % (mode.replace(b"000000", b"0"), object_id, path)
        for path, (mode, object_id) in files.items()
    ]
    index_abs = f"{work.repo.state_abs}/merge.index.{os.getpid()}"
    git = work.storing._replace(env={**work.storing.env, "GIT_INDEX_FILE": index_abs})
    try:
        git.out("read-tree", tree)
        git.out("update-index", "-z", "--index-info", stdin=b"".join(lines))
        return git.out("write-tree").decode().strip()
    finally:
        if os.path.exists(index_abs):
            os.unlink(index_abs)
