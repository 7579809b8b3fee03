"""What differs between trees of the memory, and what one author has changed.

Changes from a point to the next are its author's. But what came from commits that existed before,
by a checkout, merge, pull or cherry-pick, is nobody's, and so is a file as a branch or a stash had
it at the first point. In doubt it is the author's: then one question too many is asked.
"""

from __future__ import annotations

import os
from itertools import pairwise

from gitgates.core.record import Record, lazy
from gitgates.files.memory import Memory
from gitgates.files.versions import RAW, Change, Version, new_contents, read_change

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from gitgates.files.points import Author, Point
    from gitgates.files.versions import Changes, Content
    from gitgates.git.repo import Repo

FOREVER_S = float("inf")


def changes(repo: Repo, before: str, after: str) -> Changes:
    """Return path → change between two trees; an empty id stands for an empty tree.

    Raises: GitError if one does not exist.
    """
    memory = Memory(repo)
    return _changes_of(memory, [(before, after)])[0]


def changes_to(repo: Repo, point: Point, before: Point | None) -> Changes:
    """Return path → change that a point records, ignored files included. Raises: GitError."""
    return _changes_to(Memory(repo), [(before, point)], ignored=True)[0] if before else {}


def changed_by(repo: Repo, points: Iterable[Point], is_author: Callable[[Author], bool]) -> Changes:
    """Return path → what an author has made of a file: before its first change, after its last.

    `points` are those of one worktree, the oldest first. Changes that were reverted, by anybody,
    are left out. Ignored files count, too.

    Raises: GitError.
    """
    return History(repo, [*points], lambda point: is_author(point.author)).changes()


def made_of(
    repo: Repo, points: Sequence[Point], is_author: Callable[[Author], bool], paths: Collection[str]
) -> Changes:
    """Return what an author has made of some files, as `changed_by`, whatever their origin.

    Raises: GitError.
    """
    pairs = _pairs(points)
    every = _changes_to(Memory(repo), pairs, ignored=True)
    stretches = [
        Stretch(
            point.time_s, is_author(point.author), {p: by_path[p] for p in paths if p in by_path}
        )
        for (_before, point), by_path in zip(pairs, every, strict=True)
    ]
    return fold(stretches, has_branches=False)[0]


def _pairs(points: Sequence[Point]) -> list[tuple[Point, Point]]:
    """Return each point with the one before it, if that is known."""
    return [(before, point) for before, point in pairwise(points) if point.parent == before.id]


class Stretch(Record):
    """What changed from one point to the next."""

    time_s: float
    is_own: bool  # whether it is the author's in question
    changes: Mapping[str, Change]
    brought: Collection[str] = ()  # the paths that came with other commits
    older: Collection[str] = ()  # those that are as a branch or a stash had them at first


class History:
    """What an author has changed, by the points of one worktree, the oldest first.

    Commits since `began_s`, when the author began, may be its own; what branches and stashes had at
    the first point is not. None: commits since the point before each change may be; what stashes
    had before the first change is not.
    All but the constructor is computed once, and raises GitError.
    """

    def __init__(
        self,
        repo: Repo,
        points: Sequence[Point],
        is_own: Callable[[Point], bool],
        *,
        began_s: float | None = None,
        ignored: bool = True,
    ) -> None:
        self._repo, self._points, self._is_own = repo, points, is_own
        self._began_s, self._ignored = began_s, ignored

    @lazy
    def stretches(self) -> tuple[Stretch, ...]:
        """Return what has changed from each point to the next."""
        memory = Memory(self._repo)
        pairs = _pairs(self._points)
        stretches: list[Stretch] = []
        older = None
        for (before, point), by_path in zip(
            pairs, _changes_to(memory, pairs, ignored=self._ignored), strict=True
        ):
            stretch = Stretch(point.time_s, self._is_own(point), by_path)
            if stretch.is_own and by_path:
                from gitgates.files import origins  # many sessions have changed nothing

                has_begun = self._began_s is not None
                first = self._points[0] if has_begun else before
                older = older or origins.Older(self._repo, first, branches=has_begun)
                contents = {(path, change.after) for path, change in by_path.items()}
                brought = contents & origins.brought(self._repo, before, point, self._began_s)
                earlier = older.of(new_contents(by_path) - brought)
                stretch = stretch._replace(brought=_paths(brought), older=_paths(earlier))
            stretches.append(stretch)
        return tuple(stretches)

    def changes(self, since_s: float = 0.0, until_s: float = FOREVER_S) -> Changes:
        """Return path → what the author has made of a file in a time, as `changed_by`."""
        stretches = [s for s in self.stretches if since_s < s.time_s <= until_s]
        by_path, away = fold(stretches, has_branches=self._began_s is not None)
        if away:
            from gitgates.files import origins  # seldom needed

            contents = {(path, by_path[path].after) for path in away}
            for path, _version in contents - origins.on_branches(
                self._repo, self._points[-1], contents
            ):
                del by_path[path]
        return by_path


def _paths(contents: Iterable[Content]) -> frozenset[str]:
    return frozenset(path for path, _version in contents)


def fold(stretches: Iterable[Stretch], *, has_branches: bool = True) -> tuple[Changes, set[str]]:
    """Return what the author has made of files, and the files that differ again by now. Pure.

    Of these, the author's version is on a branch that was left, or it is gone. `has_branches`:
    also of one that the author itself has put back.
    """
    by_path, away, undone = dict[str, Change](), set[str](), set[str]()
    for stretch in stretches:
        if not stretch.is_own:
            _follow(stretch.changes, by_path, undone)
            continue
        for path, change in stretch.changes.items():
            first = by_path.get(path, change)
            if path in stretch.brought:
                if path in by_path and change.after != first.after:
                    away.add(path)
                elif path in by_path:
                    away.discard(path)
                continue
            away.discard(path)
            undone.discard(path)
            is_back = change.after == first.before
            if is_back and has_branches and first.after is not None and path in by_path:
                away.add(path)
            elif is_back or path in stretch.older:
                by_path.pop(path, None)
            else:
                by_path[path] = Change(first.before, change.after)
    return {path: by_path[path] for path in by_path if path not in undone}, away - undone


def _follow(theirs: Mapping[str, Change], by_path: Changes, undone: set[str]) -> None:
    """Note which of the author's changes somebody else has reverted, restored, or renamed."""
    added = {change.after: path for path, change in theirs.items() if change.before is None}
    for path, change in theirs.items():
        authors = by_path.get(path)
        if authors is None:
            continue
        if change.after is None and change.before == authors.after and authors.after in added:
            by_path[path] = Change(authors.before, None)
            by_path[added[authors.after]] = Change(None, authors.after)
        elif change.after == authors.before:
            undone.add(path)
        elif change.after == authors.after:
            undone.discard(path)
    for path in [path for path, change in by_path.items() if change.before == change.after]:
        del by_path[path]


def _changes_to(
    memory: Memory, pairs: Sequence[tuple[Point, Point]], *, ignored: bool
) -> list[Changes]:
    """Return what each point records, since the one before it."""
    by_pair = _changes_of(memory, [(before.tree, point.tree) for before, point in pairs])
    if not ignored:
        return by_pair
    beside = _changes_of(memory, [(before.ignored, point.ignored) for before, point in pairs])
    for by_path, others in zip(by_pair, beside, strict=True):
        for path, other in others.items():
            change = by_path.get(path)
            # One that is ignored now, or not any more, is in the other tree with what it was.
            merged = Change(
                before=(change and change.before) or other.before,
                after=(change and change.after) or other.after,
            )
            if merged.before != merged.after:
                by_path[path] = merged
            else:
                by_path.pop(path, None)
    return by_pair


def _changes_of(memory: Memory, pairs: Sequence[tuple[str, str]]) -> list[Changes]:
    """Return what differs between the trees of each pair; an empty id stands for an empty tree."""
    by_pair = [dict[str, Change]() for _pair in pairs]
    differing = [at for at, (before, after) in enumerate(pairs) if before != after]
    if not differing:
        return by_pair
    empty = memory.write_tree([]) if any("" in pairs[at] for at in differing) else ""
    lines = [" ".join(tree or empty for tree in pairs[at]) for at in differing]
    output = memory.reading.out(
        *RAW, "--stdin", stdin="".join(f"{line}\n" for line in lines).encode()
    )
    by_path, remaining = dict[str, Change](), iter(differing)
    fields = output.split(b"\0")
    for field, name in zip(fields[::2], fields[1::2], strict=False):
        *heads, meta = field.split(b"\n")  # a line with the trees is before the first of each pair
        for _head in heads:
            by_path = by_pair[next(remaining)]
        by_path[os.fsdecode(name)] = read_change(meta)
    return by_pair


def trees_of(repo: Repo, by_path: Changes) -> tuple[str, str]:
    """Return two trees: of the last look, with some files as before changes, and as after them.

    Raises: GitError, TimeOver; StateError if they cannot be stored.
    """
    from gitgates.files.facts import LookFacts  # only if something has changed
    from gitgates.files.index import Index
    from gitgates.files.memory import NO_DEADLINE, Storing

    memory = Memory(repo)
    settings = LookFacts(f"{repo.state_abs}/files.facts").settings
    index = Index(memory, settings, NO_DEADLINE)
    sides = ({path: change[at] for path, change in by_path.items()} for at in (0, 1))
    with Storing(memory):
        before, after = (index.replaced(_lines(memory, side)) for side in sides)
    return before, after


def _lines(memory: Memory, side: Mapping[str, Version | None]) -> bytes:
    return os.fsencode(
        "".join(
            f"{each.mode:o} {each.blob}\t{path}\0" if each else f"0 {memory.nothing}\t{path}\0"
            for path, each in side.items()
        )
    )
