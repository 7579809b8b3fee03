"""What there would be without a session's work: the two trees that its change lies between.

Where no commit has come or gone, these are the snapshots themselves. Otherwise what others have
committed, and the session has merged, pulled or rebased onto, is merged into the first one, so that
it is on both sides; and what the session has committed to a branch that it has left again is put on
top of the second one, so that a mere checkout hides nothing.

In doubt, a commit is the session's: one review too many can be answered, one too few is not seen.
"""

from __future__ import annotations

import os
from itertools import groupby

from gitgates.errors import GitError
from gitgates.git import merge_tree as threeway
from gitgates.git import reflog
from gitgates.git.paths import merge_heads
from gitgates.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import TypeAlias

    from gitgates.git.merge_tree import Work
    from gitgates.git.repo import Repo
    from gitgates.git.run import Git
    from gitgates.types import Point

    # id → its parents; parents come before their children
    History: TypeAlias = dict[str, tuple[str, ...]]

# What is merged one by one; anything beyond counts as the session's.
_MOST_TIPS = 16
_MOST_CHAINS = 50


class Span(Record):
    """Two points of one worktree."""

    repo: Repo
    start: Point
    now: Point
    # The git folders of other worktrees that the same session has worked in: commits of theirs
    # are its own. Of any other worktree that was there at the start they are somebody else's.
    also: tuple[str, ...] = ()
    # When the session had nothing to do, from and until. What others did then is in `start`, file
    # by file; so is what they committed then, where it is not the session's own work.
    idle: tuple[tuple[float, float], ...] = ()


class _Past(Record):
    """What is known of the commits since the start."""

    work: Work
    span: Span
    moves: tuple[reflog.Entry, ...]  # of this worktree's HEAD
    own: frozenset[str]  # commits made here, as far as logs tell, also while the session was idle
    in_turn: frozenset[str]  # of them, those while it was not
    brought: frozenset[str]  # commits that came here, made or not, while it was idle
    is_told: bool  # that these are all
    tips: tuple[str, ...]  # what is checked out, and what is just being merged into it


def trees(span: Span) -> tuple[str, str]:
    """Return the trees before and after what the session itself has done.

    Where the commits are gone, or nothing can be stored, these are the snapshots: then what others
    have done counts, too.
    """
    seen = span.start.tree, span.now.tree
    if not span.start.head or not span.now.head:
        return seen
    try:
        past = _look_back(span)
        if past.tips == (span.start.head,) and not past.own:
            return seen
        return _tell_apart(past)
    except (GitError, OSError):
        return seen


def _look_back(span: Span) -> _Past:
    repo, start = span.repo, span.start
    logs = [reflog.read(folder) for folder in (repo.git_dir_abs, *span.also)]
    if not logs[0] and start.head != span.now.head:
        logs[0] = reflog.ask(span.repo.git)
    recent = [reflog.since(log, start) for log in logs]
    objects_abs = f"{repo.common_dir_abs}/objects"
    busy = [tuple(one for one in log if not _is_idle(one.stamp, span)) for log in recent]
    own, in_turn = (
        frozenset[str]().union(*(reflog.made_in(log, objects_abs, start) for log in logs_of))
        for logs_of in (recent, busy)
    )
    work = threeway.begin(repo)
    is_told = bool(logs[0]) and all(map(reflog.are_known, recent))
    return _Past(
        work=work,
        span=span,
        moves=recent[0],
        own=own,
        in_turn=in_turn,
        brought=_brought(span, recent[0]),
        is_told=is_told,
        # What is being merged is in the working tree before there is a commit.
        tips=(span.now.head, *merge_heads(repo)),
    )


def _brought(span: Span, moves: tuple[reflog.Entry, ...]) -> frozenset[str]:
    """Return the commits that moves of HEAD have brought while the session was idle.

    Each row of moves counts as one: a rebase of the person's makes hundreds.
    """
    found: set[str] = set()
    before = span.start.head
    for is_idle, row in groupby(moves, lambda move: _is_idle(move.stamp, span)):
        *_, last = row
        if is_idle and last.new != before:
            args = ("--ignore-missing", last.new, "--not", before)
            found.update(span.repo.git.lines("rev-list", *args))
        before = last.new
    return frozenset(found)


def _is_idle(stamp: int, span: Span) -> bool:
    """Tell whether a move was made while the session had nothing to do; not at its very ends."""
    return any(int(begin) < stamp < int(end) for begin, end in span.idle)


def _tell_apart(past: _Past) -> tuple[str, str]:
    anchor = _anchor(past)
    history = _history(past.work.git, past.tips, anchor.head)
    own = _own(past, history)
    gone = _gone(past, anchor, past.own - history.keys())
    before = _with_others(past.work, anchor, (history, own | past.brought))
    if before != anchor.tree:
        before = _without(past.work, before, gone)
    left = {one: parents for one, parents in gone.items() if one in past.in_turn}
    return before, _with_left_behind(past, left)


def _anchor(past: _Past) -> Point:
    """Return the start; or, where another branch has been checked out since, how that began there.

    What was not committed at the start went along. Where it is the session that has made that
    branch, it began at the start all the same.
    """
    git, start = past.work.git, past.span.start
    switched = reflog.last_switch(past.moves)
    if not switched or switched == start.head:
        return start
    if not git.ask("merge-base", "--is-ancestor", start.head, past.span.now.head).exit_status:
        return start
    history = _history(git, (switched,), start.head)
    if (_own(past, history) | past.brought) & history.keys():
        return start
    was, there = threeway.trees_of(git, start.head, switched)
    tree, _is_clean = threeway.replay(past.work, there, (was, start.tree))
    return start._replace(tree=tree, head=switched)


def _history(git: Git, tips: tuple[str, ...], after: str) -> History:
    """Return the commits that lead to `tips` and were not there before."""
    if set(tips) == {after}:
        return {}
    listed = git.lines("rev-list", "--parents", "--topo-order", "--reverse", *tips, f"^{after}")
    return {one: tuple(parents) for one, *parents in map(str.split, listed)}


def _own(past: _Past, history: History) -> frozenset[str]:
    """Return the commits that the session has made.

    The log of its HEAD tells. What has come over from elsewhere is its own, too, where it was
    committed since the start, as in a worktree that it made by a shell command; not what comes from
    a remote or from a worktree that was there before, nor what it rebases onto. Where no log tells,
    the committer must.
    """
    unknown = history.keys() - past.own
    made = _committed_since(past, unknown) if unknown else frozenset[str]()
    if made and past.is_told:
        names = "".join(f"{one}\n" for one in made).encode()
        others = ("--ignore-missing", "--not", "--remotes", *reflog.rebased_onto(past.moves))
        local = past.work.git.out("rev-list", *others, "--not", "--stdin", stdin=names)
        made = made.intersection(local.decode().split()) - _made_beside(past.span)
    return past.own | made


def _committed_since(past: _Past, commits: Collection[str]) -> frozenset[str]:
    """Return those of some commits that were committed since the start.

    Where no log tells what was made here, under the user's name alone.
    """
    git, start = past.work.git, past.span.start
    asked = git.ask("var", "GIT_COMMITTER_IDENT")
    if asked.exit_status and not past.is_told:
        return frozenset(commits)
    us = os.fsdecode(asked.stdout).rpartition("<")[2].partition(">")[0]
    names = "".join(f"{one}\n" for one in commits).encode()
    shown = ("--no-commit-header", "--no-walk=unsorted", "--stdin", "--format=%H %ct %ce")
    listed = os.fsdecode(git.out("rev-list", *shown, stdin=names)).splitlines()
    told = [line.split(" ", 2) for line in listed]
    entries = [
        reflog.Entry(new=one, stamp=int(stamp), message="commit")
        for one, stamp, who in told
        if int(stamp) >= int(start.stamp) - 1 and (past.is_told or who == us)
    ]
    return reflog.made_in(tuple(entries), f"{past.span.repo.common_dir_abs}/objects", start)


def _made_beside(span: Span) -> frozenset[str]:
    """Return the commits made in other worktrees that were there when the session began."""
    repo = span.repo
    folders = {os.path.dirname(state_abs) for state_abs in repo.states_abs[1:]}
    logs = [reflog.read(folder) for folder in folders.difference(span.also)]
    older = [log for log in logs if log and log[0].stamp < int(span.start.stamp)]
    return frozenset(entry.new for log in older for entry in reflog.since(log, span.start))


def _with_others(work: Work, anchor: Point, known: tuple[History, frozenset[str]]) -> str:
    """Return the tree of the start with what others have done since."""
    history, own = known
    after_own: set[str] = set()
    for one, parents in history.items():
        if one in own or not after_own.isdisjoint(parents):
            after_own.add(one)
    apart = {one: history[one] for one in history if one not in after_own}
    inner = {parent for parents in apart.values() for parent in parents}
    tips = [one for one in apart if one not in inner][-_MOST_TIPS:]
    tree = anchor.tree
    head = threeway.commit(work, tree, anchor.head) if tips else ""
    for tip in tips:
        tree, _is_clean = threeway.merge(work, head, tip)
        head = threeway.commit(work, tree, head, tip) if tip != tips[-1] else ""
    # What others have built on the session's commits is taken over without those.
    onward = {one: history[one] for one in history if one in after_own and one not in own}
    for change in _chains(work.git, onward):
        merged, is_clean = threeway.replay(work, tree, change)
        tree = merged if is_clean else tree
    return tree


def _gone(past: _Past, anchor: Point, elsewhere: frozenset[str]) -> History:
    """Return the session's commits that do not lead to what is checked out now."""
    if not elsewhere:
        return {}
    starts = (past.span.start.head, anchor.head, past.span.now.head)
    args = ("--ignore-missing", *sorted(elsewhere), "--not", *starts)
    listed = past.work.git.lines("rev-list", "--parents", "--topo-order", "--reverse", *args)
    found = {one: tuple(parents) for one, *parents in map(str.split, listed)}
    return {one: found[one] for one in found if one in elsewhere}


def _without(work: Work, tree: str, gone: History) -> str:
    """Return a tree without the session's commits that others have taken over under other names.

    As where a branch was squashed into main on the server, and main was pulled. Of what was
    amended or rebased there is nothing in it.
    """
    for before, after in reversed(_chains(work.git, gone)):
        merged, is_clean = threeway.replay(work, tree, (after, before))
        tree = merged if is_clean else tree
    return tree


def _with_left_behind(past: _Past, gone: History) -> str:
    """Return the tree of now with what the session has committed to branches that it has left.

    Commits that no branch has any more have been amended, rebased or given up.
    """
    tree = past.span.now.tree
    if not gone:
        return tree
    git = past.work.git
    kept = set(git.lines("rev-list", "--branches", "--not", past.span.now.head))
    for change in _chains(git, {one: gone[one] for one in gone if one in kept}):
        merged, is_clean = threeway.replay(past.work, tree, change)
        # What does not fit into what is there now is there in another form.
        tree = merged if is_clean else threeway.take_over(past.work, tree, ((*change, ()),))
    return tree


def _chains(git: Git, history: History) -> list[tuple[str, str]]:
    """Return the trees before and after each row of commits that follow one another.

    What a merge brings is not its own.
    """
    began: dict[str, str] = {}
    for one, parents in history.items():
        if len(parents) == 1:
            began[one] = began.pop(parents[0], parents[0])
    pairs = list(began.items())[-_MOST_CHAINS:]
    found = threeway.trees_of(git, *(one for after, before in pairs for one in (before, after)))
    return list(zip(found[0::2], found[1::2], strict=True))
