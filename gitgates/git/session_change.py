"""What a session itself changed between two points: without what it merged or pulled in."""

from __future__ import annotations

import os
import re
from itertools import zip_longest

from gitgates.git import authorship
from gitgates.git.attributes import Excuses, excuses
from gitgates.git.object_store import read_blobs, reading_git
from gitgates.types import Changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gitgates.git.authorship import Span
    from gitgates.git.run import Git

    Ids = tuple[bytes, bytes]

# Above so many files on a side, git compares only whole files to find what was renamed: it would
# compare each with each.
_RENAMES = ("-M", "-l400")
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none")
# A reformatting adds and removes empty lines, too.
_NO_SPACE = ("-w", "--ignore-blank-lines")
_NUMBERS = ("diff-tree", "-r", "-z", "--numstat", *_PLAIN, *_NO_SPACE)
_RAW = ("diff-tree", "-r", "-z", "--raw", "--no-abbrev", *_PLAIN)
_PATCH = ("diff-tree", "-r", "-p", "--full-index", "-U3", "--src-prefix=a/", "--dst-prefix=b/")
# `--numstat` calls binary what attributes call so; only a patch can be told not to.
_AS_TEXT = (
    "diff-tree",
    "-r",
    "-p",
    "--full-index",
    "-U0",
    *_PLAIN,
    *_NO_SPACE,
    "--text",
    "--no-renames",
)
_HUNKS = ("diff-tree", "-r", "-p", "--full-index", "-U0", "--diff-filter=MR", *_PLAIN, *_NO_SPACE)
# Neither the user's own attributes nor settings that a session can make say what is a text.
_SETTINGS = (("core.attributesFile", os.devnull), ("core.bigFileThreshold", "512m"))
_SUBMODULE = b"160000"
_MOST_BYTES = 50 << 20  # of a diff that a patch id is made of
_MOST_LINES = 50_000  # that are looked at for line ends alone
_LARGEST = 16 << 20  # bytes of all files that are looked at in that way, and of a notebook
_MOST_NOTEBOOKS = 32  # both sides of them
_MOST_ARGS = 64 << 10  # bytes of paths in one call


def changes(span: Span) -> tuple[Changed, ...]:
    """Return each file that differs, others' commits left out, sorted by path.

    Raises: GitError where one of the trees is not there.
    """
    git = _reading(span)
    trees = authorship.trees(span)
    found = tuple(_differences(git, trees))
    excused = excuses(git, span, (trees[0], tuple(one.path for one in found)))
    counted = _recounted(git, trees, (found, excused))
    told = (counted.get(one.path, one) for one in found)
    return tuple(
        sorted(
            one._replace(attribute=excused.said[one.path]) if one.path in excused.said else one
            for one in told
        )
    )


def patch_id(span: Span) -> str:
    """Return `git patch-id --stable` of the change; empty where there is none, or it is huge.

    White space is in none: a change that was only reformatted keeps its id.

    Raises: GitError where one of the trees is not there.
    """
    git = _reading(span)
    trees = authorship.trees(span)
    if trees[0] == trees[1] or _bytes(git, trees) > _MOST_BYTES:
        return ""
    diff = git.out(*_PATCH, *_PLAIN, "--no-renames", *trees)
    made = git.out("patch-id", "--stable", stdin=diff).split()
    return made[0].decode() if made else ""


def diff_text(span: Span, paths: tuple[str, ...]) -> bytes:
    """Return the change of some paths as a unified diff.

    Raises: GitError where one of the trees is not there.
    """
    git = _reading(span)
    trees = authorship.trees(span)
    was = {one.path: one.was for one in _differences(git, trees)}
    wanted = [(path, was[path]) for path in sorted(set(paths)) if path in was]
    parts = [
        git.out(*_PATCH, *_PLAIN, *_RENAMES, *trees, "--", *chunk) for chunk in _chunks(wanted)
    ]
    return b"".join(parts)


def _reading(span: Span) -> Git:
    git = reading_git(span.repo).with_settings(_SETTINGS)
    # How many lines of context; it is stronger than -U.
    env = {name: value for name, value in git.env.items() if name != "GIT_DIFF_OPTS"}
    return git._replace(env=env)


def _differences(git: Git, trees: tuple[str, str]) -> Iterator[Changed]:
    """Yield what git says of two trees: of all files first how they differ, then by how much."""
    if trees[0] == trees[1]:
        return
    fields = iter(git.out(*_NUMBERS, "--raw", "--no-abbrev", *_RENAMES, *trees, "--").split(b"\0"))
    found: dict[bytes, tuple[bytes, bytes]] = {}  # path → how, and its path before
    numbers: dict[bytes, tuple[bytes, bytes]] = {}  # path → lines added, and removed
    for field in fields:
        if field.startswith(b":"):
            was = next(fields)
            path = next(fields) if b" R" in field else was
            found[path] = field, was
        elif field:
            added, removed, path = field.split(b"\t", 2)
            if not path:  # a rename: both names follow
                path = (next(fields), next(fields))[1]
            numbers[path] = added, removed
    edited = _edited_lines(
        git, trees, {path: meta for path, (meta, _was) in found.items()}, numbers
    )
    for path, (meta, was) in found.items():
        # Where white space is all that differs, there are no numbers.
        one = _changed((path, was), meta, numbers.get(path, (b"0", b"0")))
        yield one._replace(edited=edited.get(path))


def _edited_lines(
    git: Git,
    trees: tuple[str, str],
    found: dict[bytes, bytes],
    numbers: dict[bytes, tuple[bytes, bytes]],
) -> dict[bytes, int]:
    """Return path → lines that were edited, where the line ends alone may differ, or outputs.

    `found`: path → how it differs; `numbers`: path → lines added, and removed.
    """
    edited: dict[bytes, int] = {}
    notebooks = {path: found[path] for path in numbers if path.endswith(b".ipynb")}
    if notebooks:
        edited = _edited_in_notebooks(git, notebooks)
    # A line that is wrapped or joined is removed and added; where nothing is, none was.
    candidates = {
        path: _object_ids(found[path])
        for path, both in numbers.items()
        if path not in edited and found[path][-1:] != b"A" and min(_lines(both)) > 0
    }
    lines = sum(max(_lines(numbers[path])) for path in candidates)
    if not candidates or lines > _MOST_LINES or _size_of(git, candidates.values()) > _LARGEST:
        return edited
    patch = git.out(*_HUNKS, *_RENAMES, *trees, "--")
    counts = dict(_edited_in_patch(patch))
    fewer = {
        path: counts[ids]
        for path, ids in candidates.items()
        if ids in counts and counts[ids] < max(_lines(numbers[path]))
    }
    return edited | fewer


def _object_ids(meta: bytes) -> bytes:
    """Return `OLD..NEW`, as a patch names both objects."""
    return b"..".join(meta.split(b" ")[2:4])


def _lines(numbers: tuple[bytes, bytes]) -> tuple[int, int]:
    added, removed = numbers
    return (0, 0) if added == b"-" else (int(added), int(removed))


def _edited_in_patch(patch: bytes) -> Iterator[tuple[bytes, int]]:
    """Yield of each file in a patch without context its objects, and how many lines were edited."""
    for part in re.split(rb"^diff --git ", patch, flags=re.MULTILINE)[1:]:
        head, *hunks = re.split(rb"^@@ .*\n", part, flags=re.MULTILINE)
        index = re.search(rb"^index (\S+)", head, re.MULTILINE)
        if index:
            sides = [_edited_in_hunk(hunk.split(b"\n")) for hunk in hunks]
            yield index[1], max(map(sum, zip(*sides, strict=True)), default=0)


def _edited_in_hunk(lines: list[bytes]) -> tuple[int, int]:
    """Return how many lines of each side lie between the first and the last difference."""
    old, new = (
        _squeezed([line[1:] for line in lines if line[:1] == sign]) for sign in (b"-", b"+")
    )
    one, other = b"".join(old), b"".join(new)
    start = _common(one, other)
    end = _common(one[start:][::-1], other[start:][::-1])
    return _between(old, start, len(one) - end), _between(new, start, len(other) - end)


def _common(one: bytes, other: bytes) -> int:
    """Return how many bytes both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (left, right) in pairs if left != right), min(len(one), len(other)))


def _squeezed(lines: list[bytes]) -> list[bytes]:
    """Return the lines without white space, and without commas that end a list which is wrapped."""
    bare = [b"".join(line.split()) for line in lines]
    return [
        line.removesuffix(b",") if after[:1] in (b")", b"]", b"}") else line
        for line, after in zip_longest(bare, bare[1:], fillvalue=b"")
    ]


def _between(lines: list[bytes], start: int, end: int) -> int:
    """Return how many of the lines have a part between two offsets in all of them joined."""
    count = at = 0
    for line in lines:
        count += at < end and at + len(line) > start and start < end
        at += len(line)
    return count


def _edited_in_notebooks(git: Git, notebooks: dict[bytes, bytes]) -> dict[bytes, int]:
    """Return path → lines of the cells' sources that differ; damaged notebooks are left out."""
    from collections import Counter  # seldom needed

    sides = {path: _object_ids(meta).decode().split("..") for path, meta in notebooks.items()}
    names = [one for both in sides.values() for one in both if one.strip("0")]
    contents = read_blobs(git, names, _LARGEST) if len(names) <= _MOST_NOTEBOOKS else {}
    found = {}
    for path, both in sides.items():
        empty = [b'{"cells": []}' if not one.strip("0") else contents.get(one) for one in both]
        old, new = (_sources(content) for content in empty)
        if old is not None and new is not None:
            gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
            found[path] = max(gone.total(), come.total())
    return found


def _sources(content: bytes | None) -> list[str] | None:
    """Return the lines of a notebook's cells, without white space; None where it is none."""
    import json  # seldom needed

    if content is None:
        return None
    try:
        cells = json.loads(content)["cells"]
        text = "\n".join("".join(cell["source"]) for cell in cells)
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    lines = ("".join(line.split()) for line in text.split("\n"))
    return [line for line in lines if line]


def _size_of(git: Git, pairs: Iterable[bytes]) -> int:
    """Return how many bytes objects have together; `pairs`: `OLD..NEW`."""
    names = {one for pair in pairs for one in pair.split(b"..") if one.strip(b"0")}
    asked = b"".join(one + b"\n" for one in sorted(names))
    sizes = git.out("cat-file", "--batch-check=%(objectsize)", stdin=asked).splitlines()
    # A submodule's commit is not here: `… missing`.
    return sum(int(size) for size in sizes if size.isdigit())


def _changed(names: tuple[bytes, bytes], meta: bytes, numbers: tuple[bytes, bytes]) -> Changed:
    old_mode, mode, old_id, object_id, status = meta[1:].split(b" ")
    path, was = names
    binary = numbers[0] == b"-"
    return Changed(
        path=os.fsdecode(path),
        status=status[:1].decode(),
        was=os.fsdecode(was) if status.startswith(b"R") else "",
        added=0 if binary else int(numbers[0]),
        removed=0 if binary else int(numbers[1]),
        binary=binary,
        submodule=_SUBMODULE in (old_mode, mode),
        same_content=old_id == object_id,
    )


def _recounted(
    git: Git, trees: tuple[str, str], known: tuple[tuple[Changed, ...], Excuses]
) -> dict[str, Changed]:
    """Return the files that only attributes of no worth call binary, with their lines counted."""
    found, excused = known
    doubtful = {one.path: one for one in found if one.binary and one.path in excused.doubtful}
    counted = {path: one._replace(binary=False) for path, one in doubtful.items()}
    for chunk in _chunks([(path, "") for path in doubtful]):
        names = _by_objects(_ids(git, trees, chunk))
        for meta, (added, removed) in _count(git.out(*_AS_TEXT, *trees, "--", *chunk)):
            for path in names.get(meta, ()):
                one = counted[path]
                more = max(one.added, added), max(one.removed, removed)
                counted[path] = one._replace(added=more[0], removed=more[1])
    return counted


def _count(patch: bytes) -> Iterator[tuple[bytes, tuple[int, int]]]:
    """Yield of each file in a patch without context what it was and is, and the lines of both."""
    meta, added, removed = b"", 0, 0
    for line in patch.split(b"\n"):
        if line.startswith(b"diff --git ") and meta:
            yield meta, (added, removed)
            meta, added, removed = b"", 0, 0
        elif line.startswith(b"index "):
            meta = line.split(b" ")[1]
        elif line.startswith(b"@@ "):
            _at, old, new = line.split(b" ")[:3]
            removed += _size(old)
            added += _size(new)
    if meta:
        yield meta, (added, removed)


def _size(part: bytes) -> int:
    """Return how many lines a side of a hunk has: `-12,3` has three, `+12` has one."""
    _start, comma, size = part.partition(b",")
    return int(size) if comma else 1


def _by_objects(ids: Iterable[Ids]) -> dict[bytes, list[str]]:
    """Return objects → paths. A patch shows one that became a link as two: gone, and new."""
    found: dict[bytes, list[str]] = {}
    for path, meta in ids:
        old, new = meta.split(b"..")
        none = b"0" * len(old)
        for pair in {(old, new), (old, none), (none, new)}:
            found.setdefault(b"..".join(pair), []).append(os.fsdecode(path))
    return found


def _ids(git: Git, trees: tuple[str, str], paths: Iterable[str] = ()) -> Iterator[Ids]:
    """Yield each path that differs with `OLD..NEW`, its objects as a patch names them."""
    fields = git.out(*_RAW, "--no-renames", *trees, "--", *paths).split(b"\0")
    for meta, path in zip(fields[0::2], fields[1::2], strict=False):
        yield path, b"..".join(meta.split(b" ")[2:4])


def _bytes(git: Git, trees: tuple[str, str]) -> int:
    """Return how large the files are that differ: the diff is hardly larger."""
    return _size_of(git, (meta for _path, meta in _ids(git, trees)))


def _chunks(paths: Iterable[tuple[str, str]]) -> Iterator[list[str]]:
    """Yield paths, both names of a renamed file together, as many as fit into one call."""
    chunk: list[str] = []
    size = 0
    for names in paths:
        known = [name for name in names if name]
        length = sum(len(os.fsencode(name)) + 1 for name in known)
        if chunk and size + length > _MOST_ARGS:
            yield chunk
            chunk, size = [], 0
        chunk += known
        size += length
    if chunk:
        yield chunk
