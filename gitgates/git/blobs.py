"""Read many objects of git at once: one process for all, and not one for each."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gitgates.git.repo import Git

_MOST_BYTES = 32 << 20  # in memory at once, but for a single object
_MOST = 10_000  # objects, likewise


def read_blobs(git: Git, ids: Iterable[str]) -> Iterator[dict[str, bytes]]:
    """Yield the contents of blobs by id, some at a time; those that git does not have are left out.

    Source: git-cat-file(1), BATCH OUTPUT. Raises: GitError.
    """
    for some in _grouped(_sizes(git, ids)):
        output = git.out("cat-file", "--batch", "--buffer", stdin=_lines(some))
        contents: dict[str, bytes] = {}
        at = 0
        while at < len(output):
            end = output.index(b"\n", at)
            name, _kind, size = output[at:end].split(b" ")
            at = end + 1 + int(size)
            contents[name.decode()] = output[end + 1 : at]
            at += 1  # a newline
        yield contents


def _sizes(git: Git, ids: Iterable[str]) -> dict[str, int]:
    """Return the size of each blob that git has."""
    query = _lines(dict.fromkeys(ids))
    lines = git.out("cat-file", "--batch-check", "--buffer", stdin=query) if query else b""
    rows = [line.split(" ") for line in lines.decode().splitlines()]
    return {words[0]: int(words[2]) for words in rows if words[1] == "blob"}


def _grouped(sizes: dict[str, int]) -> Iterator[list[str]]:
    some: list[str] = []
    total = 0
    for name, size in sizes.items():
        if some and (total + size > _MOST_BYTES or len(some) >= _MOST):
            yield some
            some, total = [], 0
        some.append(name)
        total += size
    if some:
        yield some


def _lines(ids: Iterable[str]) -> bytes:
    return "".join([f"{name}\n" for name in ids]).encode()
