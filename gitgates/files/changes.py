"""What differs between trees of the memory, and what one author has changed.

Changes from a point to the next are its author's. But what came from commits that existed before,
by a checkout, merge, pull or cherry-pick, is nobody's, and so is a file as a branch or a stash had
it at the first point. In doubt it is the author's: then one question too many is asked.
"""

from __future__ import annotations

import os
from itertools import pairwise

from gitgates.core.errors import StateError
from gitgates.core.record import Record, lazy
from gitgates.files.git_state import State
from gitgates.files.memory import Memory
from gitgates.files.points import state_of
from gitgates.git.object_store import reading_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from gitgates.files.points import Author, Point
    from gitgates.git.repo import Git, Repo

RAW = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
FOREVER_S = float("inf")
_MOST_COMMITS = 1000
_MOST_TIPS = 50
_MOST_BRANCHES = 500
_MOST_ASKED = 100_000  # files on branches: a second or two of git
_CLOCK_S = 2  # that git's clock, in whole seconds, may be behind ours, or be set back


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
        older: list[str] | None = None
        for (before, point), by_path in zip(
            pairs, _changes_to(memory, pairs, ignored=self._ignored), strict=True
        ):
            stretch = Stretch(point.time_s, self._is_own(point), by_path)
            if stretch.is_own and by_path:
                has_begun = self._began_s is not None
                first = self._points[0] if has_begun else before
                if older is None:
                    older = _older_tips(self._repo, first, branches=has_begun)
                contents = {(path, change.after) for path, change in by_path.items()}
                brought = contents & _brought(self._repo, before, point, self._began_s)
                new = new_contents(by_path) - brought
                # Of many files, only the first tips count.
                earlier = found_at(memory.reading, older[: _MOST_ASKED // max(len(new), 1)], new)
                stretch = stretch._replace(brought=_paths(brought), older=_paths(earlier))
            stretches.append(stretch)
        return tuple(stretches)

    def changes(self, since_s: float = 0.0, until_s: float = FOREVER_S) -> Changes:
        """Return path → what the author has made of a file in a time, as `changed_by`."""
        stretches = [s for s in self.stretches if since_s < s.time_s <= until_s]
        by_path, away = fold(stretches, has_branches=self._began_s is not None)
        if away:
            contents = {(path, by_path[path].after) for path in away}
            for path, _version in contents - _on_branches(self._repo, self._points[-1], contents):
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
    with Storing(memory):
        before = index.replaced({path: _entry(each.before) for path, each in by_path.items()})
        after = index.replaced({path: _entry(each.after) for path, each in by_path.items()})
    return before, after


def _entry(version: Version | None) -> str:
    return f"{version.mode:o} {version.blob}" if version else ""


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


def _older_tips(repo: Repo, point: Point, *, branches: bool) -> list[str]:
    """Return the stashes that existed at a point, and the branches, if these count, too."""
    state = _state(repo, point)
    stashes = [tip for commit, _message in state.stash for tip in (commit, f"{commit}^3")]
    heads = (point.head, *state.refs.values()) if branches else ()
    return list(filter(None, dict.fromkeys((*heads, *stashes))))[:_MOST_TIPS]


def _on_branches(repo: Repo, point: Point, contents: Collection[Content]) -> set[Content]:
    """Return which versions of files are on a branch at a point; missing files count as such.

    If there are too many to ask about, all are.
    """
    tips = {*_state(repo, point).refs.values()}
    if len(tips) > _MOST_BRANCHES or len(tips) * len(contents) > _MOST_ASKED:
        return {*contents}
    removals = {content for content in contents if content[1] is None}
    return removals | found_at(Memory(repo).reading, tips, contents)


def in_tree(repo: Repo, tree: str, by_path: Changes) -> set[str]:
    """Return the files that are in a tree as they are after their changes.

    Raises: GitError if the tree does not exist.
    """
    git = reading_git(repo)
    git.out("cat-file", "-e", f"{tree}^{{tree}}")
    return {path for path, _version in found_at(git, [tree], new_contents(by_path))}


def _state(repo: Repo, point: Point) -> State:
    try:
        return state_of(repo, point)
    except StateError:
        return State()


def found_at(git: Git, tips: Iterable[str], contents: Iterable[Content]) -> set[Content]:
    """Return which versions of files are in one of these commits or trees.

    Git reads names one per line: a name with line ends is in none. Raises: GitError.
    """
    asked = [
        (tip, content)
        for content in contents
        if content[1] is not None and "\n" not in content[0]
        for tip in tips
    ]
    if not asked:
        return set()
    names = "".join(f"{tip}:{path}\n" for tip, (path, _version) in asked)
    stdin = names.encode("utf-8", "surrogateescape")
    answer = git.out("cat-file", "--batch-check=%(objectname)", "--buffer", stdin=stdin)
    return {
        content
        for (_tip, content), blob in zip(
            asked, answer.decode("utf-8", "replace").splitlines(), strict=True
        )
        if content[1] is not None and content[1].blob == blob
    }


def _brought(repo: Repo, before: Point, point: Point, began_s: float | None) -> set[Content]:
    """Return the files that commits have brought which existed before, with their versions.

    Those since `began_s` existed only if they are on a remote. None: since the point before.
    """
    git = Memory(repo).reading
    contents: set[Content] = set()
    if not point.head or point.head == before.head:
        return contents
    tips, picked = _old_commits(repo, before, point, began_s)
    for tip in tips[:_MOST_TIPS]:
        base = before.head
        if base and _is_ancestor(git, base, point.head):
            base = git.ask("merge-base", base, tip).stdout.decode().split("\n")[0]
        contents |= contents_after(git, base or "--root", tip)
    for commit in picked:
        contents |= contents_after(git, "--root", commit)
    return contents


def _is_ancestor(git: Git, base: str, tip: str) -> bool:
    return not git.ask("merge-base", "--is-ancestor", base, tip).exit_status


def _old_commits(
    repo: Repo, before: Point, point: Point, began_s: float | None
) -> tuple[list[str], list[str]]:
    """Return the newest commits of HEAD that existed before; and those that repeat an older one."""
    git = Memory(repo).reading
    ask = ("rev-list", "--no-commit-header", "--format=%H %ct %at %P")
    bounds = [point.head, *([f"^{before.head}"] if before.head else [])]
    log = git.ask(*ask, f"--max-count={_MOST_COMMITS}", *bounds, "--")
    now_s = int(before.time_s) - _CLOCK_S
    since = now_s if began_s is None else min(now_s, int(began_s) - _CLOCK_S)
    commits = [line.split(" ") for line in log.stdout.decode().splitlines()]
    recent = [commit for commit, committed, *_rest in commits if since <= int(committed) < now_s]
    pushed = _pushed(repo, recent) if recent else set[str]()
    made, parents = set[str](), set[str]()
    picked, other_commits = list[str](), list[str]()
    for commit, committed, written, *above in commits:
        if int(committed) < since or commit in pushed:
            other_commits.append(commit)
            continue
        made.add(commit)
        parents.update(above)
        if int(written) < since:
            picked.append(commit)
    old = [commit for commit in other_commits if commit in parents] + [
        *(parents - made - {*other_commits})
    ]
    if point.head not in made:
        old = [point.head]
    # An amended commit, or one that was rebased, has its own work in it.
    is_on_top = before.head and _is_ancestor(git, before.head, point.head)
    return [commit for commit in old if commit != before.head], picked if is_on_top else []


def _pushed(repo: Repo, commits: Collection[str]) -> set[str]:
    """Return which commits are on a remote, as far as this repository knows."""
    stdin = "".join(f"{commit}\n" for commit in commits).encode()
    ask = ("rev-list", "--ignore-missing", "--not", "--remotes", "--not", "--stdin")
    return {*commits} - {*repo.git.ask(*ask, stdin=stdin).stdout.decode().split()}
