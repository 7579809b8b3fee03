"""Versions of files, from git's differences between trees."""

from __future__ import annotations

import os

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    from gitgates.git.repo import Git

RAW = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")


class Version(Record):
    """One version of a file."""

    mode: int  # as git has it: 0o100644, 0o100755, 0o120000, 0o160000
    blob: str  # the id; of a submodule, its commit


class Change(Record):
    """How a file differs."""

    before: Version | None  # None: it was not there
    after: Version | None


if TYPE_CHECKING:
    Changes: TypeAlias = dict[str, Change]
    Content: TypeAlias = tuple[str, Version | None]  # path, and a version of it


def read_change(meta: bytes) -> Change:
    """Return the change of a raw record."""
    old_mode, mode, old_id, object_id, _kind = meta.decode().split(" ")
    return Change(_version(old_mode[1:], old_id), _version(mode, object_id))


def read_changes(raw: bytes) -> Changes:
    """Return path → change of what `RAW` has printed of two trees."""
    fields = raw.split(b"\0")
    pairs = zip(fields[::2], fields[1::2], strict=False)
    return {os.fsdecode(name): read_change(meta) for meta, name in pairs}


def _version(mode: str, object_id: str) -> Version | None:
    number = int(mode, 8)
    return Version(mode=number, blob=object_id) if number else None


def contents_after(git: Git, base: str, commit: str) -> set[Content]:
    """Return what differs in a commit, with the versions there; `--root`: from its parent."""
    done = git.ask(*RAW, "--no-commit-id", base, commit, "--")
    raw = b"" if done.exit_status else done.stdout
    return {(path, change.after) for path, change in read_changes(raw).items()}


def new_contents(by_path: Mapping[str, Change]) -> set[Content]:
    """Return the files that changed in more than their mode, with what they are now."""
    return {
        (path, change.after)
        for path, change in by_path.items()
        if not (change.before and change.after and change.before.blob == change.after.blob)
    }
