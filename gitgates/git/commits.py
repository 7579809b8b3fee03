"""A range's commits, and what they change, with one call of git for all of them."""

from __future__ import annotations

import hashlib
import re

from gitgates.core.record import Record
from gitgates.git.paths import raw_paths

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeAlias

    from gitgates.git.repo import Git

    Pair: TypeAlias = tuple[str, str]  # two trees; the first is empty for none
    Blob: TypeAlias = tuple[bytes, bytes]  # a path; its mode and blob

_FIELDS = ("%H", "%T", "%P", "%s")
_LOG = ("log", "-z", "--reverse", "--topo-order", "--no-show-signature", "--encoding=UTF-8")
_PLAIN = ("-r", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv")
_PATHS = ("-z", "--raw", "--no-abbrev", "--ignore-submodules=all")
_PATCH = (
    *("-p", "-U3", "--full-index", "--src-prefix=a/", "--dst-prefix=b/"),
    *("--ignore-submodules=none", "--submodule=short"),  # whatever .gitmodules says
)
# A hunk's place in its file, and the blobs, except for binary files, where only the blobs say what
# has changed.
_PLACES = re.compile(rb"^(?:@@ .*|index [0-9a-f.]+(?: \d+)?\n(?!Binary))", re.MULTILINE)


class Commit(Record):
    """One commit, and the paths that it changes against each of its parents."""

    id: str
    tree: str
    parents: tuple[str, ...]  # their trees; for the first commit, one empty entry
    paths: tuple[str, ...]
    deleted: tuple[str, ...]
    subject: str


def list_commits(git: Git, *revisions: str) -> list[Commit]:
    """Return commits, parents first. `revisions` as git-log(1) takes them.

    Raises: GitError if they name no commit.
    """
    fields = git.out(*_LOG, f"--format={'%x00'.join(_FIELDS)}", *revisions, "--").split(b"\0")[:-1]
    rows = [
        tuple(field.decode("utf-8", "replace") for field in fields[at : at + len(_FIELDS)])
        for at in range(0, len(fields), len(_FIELDS))
    ]
    trees = trees_of(git, (parent for row in rows for parent in row[2].split()))
    parents = {row[0]: tuple(trees.get(p, "") for p in row[2].split() or ("",)) for row in rows}
    pairs = [(parent, tree) for id_, tree, *_ in rows for parent in parents[id_]]
    raw = _differences(git, pairs, _PATHS)
    commits = []
    for id_, tree, _parents, subject in rows:
        # For a merge: what differs from every parent, as before it was committed.
        sides = [raw_paths(raw[parent, tree]) for parent in parents[id_]]
        paths, deleted = (
            tuple(sorted(set.intersection(*sets))) for sets in zip(*sides, strict=True)
        )
        commits.append(Commit(id_, tree, parents[id_], paths, deleted, subject))
    return commits


def trees_of(git: Git, names: Iterable[str]) -> dict[str, str]:
    """Return the tree of each commit or tree that exists; other names are left out."""
    unique = list(dict.fromkeys(names))
    query = "".join(f"{name}^{{tree}}\n" for name in unique).encode()
    output = git.out("cat-file", "--batch-check=%(objectname)", stdin=query) if unique else b""
    lines = output.decode("utf-8", "replace").splitlines()
    return {name: line for name, line in zip(unique, lines, strict=True) if " " not in line}


def patch_digests(git: Git, pairs: Iterable[Pair]) -> dict[Pair, str]:
    """Return a digest of each patch between two trees; none if it is empty, or a tree is missing.

    Like a patch id, it covers the lines, with context, but not their numbers. White space counts.
    """
    pairs = list(pairs)
    available = trees_of(git, (tree for pair in pairs for tree in pair if tree)).keys() | {""}
    patches = _differences(git, (pair for pair in pairs if available >= {*pair}), _PATCH)
    return {
        pair: hashlib.sha256(_PLACES.sub(b"@@", patch)).hexdigest()
        for pair, patch in patches.items()
        if patch
    }


def changed_blobs(git: Git, pairs: Iterable[Pair]) -> dict[Pair, set[Blob]]:
    """Return what differs between two trees; none if a tree is missing.

    For each path, that is its mode and blob in the second tree; nothing for a removed path.
    """
    pairs = list(pairs)
    available = trees_of(git, (tree for pair in pairs for tree in pair if tree)).keys() | {""}
    diffs = _differences(git, (pair for pair in pairs if available >= {*pair}), _PATHS)
    return {pair: _blobs(raw) for pair, raw in diffs.items()}


def _blobs(raw: bytes) -> set[Blob]:
    """Read `--raw -z`: `:OLD-MODE MODE OLD-BLOB BLOB STATUS`, the path. Source: git-diff(1)."""
    fields = raw.split(b"\0")
    entries = [
        (meta.split(b" "), path) for meta, path in zip(fields[::2], fields[1::2], strict=False)
    ]
    return {(path, meta[1] + meta[3]) for meta, path in entries if meta[4] != b"D"}


def _differences(git: Git, pairs: Iterable[Pair], form: tuple[str, ...]) -> dict[Pair, bytes]:
    """Return what `git diff-tree` prints of each pair of trees, all in one process."""
    unique = list(dict.fromkeys(pairs))
    if not unique:
        return {}
    # Git knows it even if it is not stored.
    empty = git.out("hash-object", "-t", "tree", "--stdin").decode().strip()
    heads = [f"{old or empty} {new}\n".encode() for old, new in unique]
    printed = git.out("diff-tree", "--stdin", *_PLAIN, *form, stdin=b"".join(heads))
    diffs, at = {}, 0
    for number, pair in enumerate(unique):
        begin = at + len(heads[number])
        is_last = number + 1 == len(heads)
        # No patch can hold the id of the tree that it leads to.
        at = len(printed) if is_last else printed.index(heads[number + 1], begin)
        diffs[pair] = printed[begin:at]
    return diffs
