"""Authorship: which of the files that differ between two points a session has itself changed.

A file counts as the session's, unless what is there now is as in a commit that was merged, pulled,
rebased onto or checked out, and no commit made here has touched it. So a file that both have
changed counts, with all of it. The answer is given as the two trees that the change lies between:
what others have done is in the first one, too. So is what was committed on another branch, or
stashed, before the session began: the same content of a file, or a commit that makes the same
change once more.

The reflog of HEAD tells which commits were made here. The name of the author tells nothing: a
person's own commits of yesterday, merged in, are not the session's, but a colleague's that the
session rebases are.

In doubt, a commit is the session's: one review too many can be answered, one too few is not seen.
"""

from __future__ import annotations

import os
from itertools import groupby

from gitgates.core.errors import GitError
from gitgates.core.record import Record
from gitgates.git.object_store import reading_git, storing_git
from gitgates.git.paths import merge_heads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from typing import TypeAlias

    from gitgates.core.agent_types import Point
    from gitgates.git.repo import Git, Repo

    File: TypeAlias = tuple[bytes, bytes]  # mode and object id; zeros: not there

_RAW = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
_MOST_BYTES = 4 << 20  # of a log, the end: some 20,000 entries
_MOVES = ("checkout: moving ", "reset: moving ", "clone: ", "initial pull", "Branch: ")
_STEPS = ("(start)", "(finish)", "(abort)", "rebase finished")
_FORWARD = ("fast-forward", "updating head")
_SWITCH = "checkout: moving from "
_GONE = b"000000"
_PICKS = ("cherry-pick", "commit (cherry-pick)", "rebase", "am: ")
_MOST_OLDER = 300  # commits that are looked through for the origin of a content
_MOST_BRANCHES = 16  # that were abandoned with work on them


class ReflogEntry(Record):
    """One entry of the reflog."""

    new: str  # the commit that it came to
    stamp: int  # seconds since the epoch; whoever commits can set it
    message: str


class Span(Record):
    """Two points of one worktree."""

    repo: Repo
    start: Point
    now: Point
    # The git folders of other worktrees that the same session has worked in: commits of theirs
    # are its own. Of any other worktree that was there at the start they are somebody else's.
    also: tuple[str, ...] = ()
    # When the session had nothing to do, from and until. What others did then is in `start`, file
    # by file; so is what they committed then, if it is not the session's own work.
    idle: tuple[tuple[float, float], ...] = ()
    stashes: tuple[str, ...] = ()  # that were there when the session began

    def is_idle(self, stamp: int) -> bool:
        """Return whether the session was idle then; not at the very ends."""
        return any(int(began) < stamp < int(ended) for began, ended in self.idle)


def trees(span: Span) -> tuple[str, str]:
    """Return the trees before and after the session's own changes.

    Where no commit was added or removed, these are the snapshots. So they are where the commits no
    longer exist, or nothing can be stored: then what others have done counts, too.
    """
    snapshots = span.start.tree, span.now.tree
    if not span.start.head or not span.now.head:
        return snapshots
    try:
        return _exclude_others(span)
    except (GitError, OSError):
        return snapshots


def _exclude_others(span: Span) -> tuple[str, str]:
    repo, start, now = span.repo, span.start, span.now
    git = reading_git(repo)
    logs = [read_reflog(folder) for folder in (repo.git_dir_abs, *span.also)]
    recent = [entries_since(log, start) for log in logs]
    entries = [entry for log in recent for entry in log]
    own_commits = {entry.new for entry in entries if makes_commit(entry.message)}
    if own_commits:  # in the second before the start, too
        since = ("rev-list", "--ignore-missing", f"^{start.head}", "--stdin")
        own_commits &= set(git.out(*since, stdin=_lines(own_commits)).decode().split())
    tips = (now.head, *merge_heads(repo))  # what is being merged is there before its commit
    differ = start.tree != now.tree
    older = _older_commits(git, span, entries, own_commits) if differ else OlderCommits()
    if tips == (start.head,) and not (own_commits or older.all or span.stashes):
        return start.tree, now.tree
    picked = _picked(git, older.all, entries, own_commits)
    own_commits -= picked
    history = git.lines("rev-list", *tips, f"^{start.head}") if set(tips) != {start.head} else []
    unknown = set(history) - own_commits - picked
    elsewhere = _commits_without_reflog(span, unknown, recent[0]) if unknown else set()
    touched = _files_changed_in(git, own_commits | elsewhere) | _files_changed_by_head(
        git, span, recent[0]
    )
    differs = {path: file for path, _was, file in changes_between(git, start.tree, now.tree)}
    others: set[tuple[bytes, File]] = set()
    if not touched.issuperset(differs):
        switched = last_switch(recent[0]) not in ("", start.head)
        others = _files_of_others(git, span, tips, has_switched=switched)
    older_files = _files_in(git, older.pushed)
    if older_files:
        older_files -= _files_in(git, own_commits)
    older_files |= _files_in(git, older.before) | _files_in_stashes(git, span.stashes)
    foreign = {
        path: file
        for path, file in differs.items()
        if (path, file) in older_files or ((path, file) in others and path not in touched)
    }
    busy = [entry for entry in entries if not span.is_idle(entry.stamp)]
    abandoned = (own_commits & {entry.new for entry in busy}).difference(history)
    before = with_files(repo, start.tree, foreign) if foreign else start.tree
    return before, _with_abandoned_branches(git, span, abandoned)


def _files_of_others(
    git: Git, span: Span, tips: Collection[str], *, has_switched: bool
) -> set[tuple[bytes, File]]:
    """Return the files that others' commits changed, with their content there.

    Where another branch was checked out, that is all in which it differs from the start.
    """
    files: set[tuple[bytes, File]] = set()
    for tip in tips:
        base = span.start.head
        joined = git.ask("merge-base", base, tip)
        if not has_switched and not joined.exit_status:
            base = joined.stdout.split()[0].decode()
        files.update((path, file) for path, _was, file in changes_between(git, base, tip))
    return files


class OlderCommits(Record):
    """Commits that the start of a span has not, and that are not the session's; the newest."""

    before: tuple[str, ...] = ()  # made before it
    pushed: tuple[str, ...] = ()  # others have pushed them since; the session's work may be in them

    @property
    def all(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.before, *self.pushed)


def _older_commits(
    git: Git, span: Span, entries: Iterable[ReflogEntry], own_commits: Collection[str]
) -> OlderCommits:
    start = span.start
    # A branch that was checked out and rebased has the older commits no more.
    visited = {entry.new for entry in entries if not makes_commit(entry.message)}.difference(
        own_commits
    )
    options = ("--no-merges", "--no-commit-header", "--format=%H %ct", f"--max-count={_MOST_OLDER}")
    refs = ("--ignore-missing", f"^{start.head}", "--branches", "--remotes", "--tags", "--stdin")
    listing = git.ask("rev-list", *options, *refs, stdin=_lines(visited))
    lines = (line.split(" ") for line in listing.stdout.decode().splitlines())
    commits = [(commit, int(stamp)) for commit, stamp in lines if commit not in own_commits]
    late = [commit for commit, stamp in commits if stamp >= int(start.stamp)]
    remote = ("rev-list", f"--max-count={_MOST_OLDER}", "--remotes", "--not", start.head)
    on_remote = set(git.lines(*remote)) if late else set()
    return OlderCommits(
        before=tuple(commit for commit, stamp in commits if stamp < int(start.stamp)),
        pushed=tuple(commit for commit in late if commit in on_remote),
    )


def _picked(
    git: Git, older: Collection[str], entries: Iterable[ReflogEntry], own_commits: Collection[str]
) -> set[str]:
    """Return the commits of the session that repeat an older one: the same change, elsewhere."""
    picks = {entry.new for entry in entries if entry.message.startswith(_PICKS)}.intersection(
        own_commits
    )
    if not (picks and older):
        return set()
    older_patches = {patch for patch, _commit in _patch_ids(git, older)}
    return {commit for patch, commit in _patch_ids(git, picks) if patch in older_patches}


def _patch_ids(git: Git, commits: Iterable[str]) -> list[tuple[str, str]]:
    args = ("diff-tree", "--stdin", "-r", "-p", "--root", "--no-ext-diff", "--no-textconv")
    patches = git.out(*args, stdin=_lines(commits))
    lines = git.out("patch-id", "--stable", stdin=patches).decode().splitlines()
    return [(patch, commit) for patch, commit in (line.split(" ") for line in lines)]


def _files_in(git: Git, commits: Collection[str]) -> set[tuple[bytes, File]]:
    """Return the files that commits changed, with their content there."""
    if not commits:
        return set()
    args = (*_RAW, "--stdin", "--root", "--no-commit-id")
    return set(_parsed(git.out(*args, stdin=_lines(commits))))


def _files_in_stashes(git: Git, stashes: Iterable[str]) -> set[tuple[bytes, File]]:
    """Return the files that were stashed, untracked ones included, with their content there."""
    files: set[tuple[bytes, File]] = set()
    for stash in stashes:
        # A third parent has the untracked files.
        for args in ((f"{stash}^1", stash), ("--root", "--no-commit-id", f"{stash}^3")):
            diff = git.ask(*_RAW, *args)
            if not diff.exit_status:
                files.update(_parsed(diff.stdout))
    return files


def _parsed(raw: bytes) -> list[tuple[bytes, File]]:
    """Return path and content after the change, of raw records."""
    fields = raw.split(b"\0")
    metas = [meta[1:].split(b" ") for meta in fields[0:-1:2]]
    return [
        (path, (mode, object_id))
        for (_old, mode, _old_id, object_id, _status), path in zip(metas, fields[1::2], strict=True)
    ]


def _commits_without_reflog(
    span: Span, unknown: Collection[str], entries: Iterable[ReflogEntry]
) -> set[str]:
    """Return the session's commits that are in no reflog.

    Those that were committed since the start, as in a worktree that it made by a shell command; not
    what comes from a remote or from a worktree that existed before, nor what it rebases onto.
    """
    git = span.repo.git
    options = ("--no-commit-header", "--no-walk=unsorted", "--stdin", "--format=%H %ct")
    lines = git.out("rev-list", *options, stdin=_lines(unknown)).decode().splitlines()
    commits = (line.split(" ") for line in lines)
    recent = {commit for commit, stamp in commits if int(stamp) >= int(span.start.stamp)}
    if not recent:
        return recent
    steps = ((entry.new, entry.message.partition(": ")[0]) for entry in entries)
    rebased = {new for new, step in steps if step.endswith("(start)")}
    onto = ("--ignore-missing", "--not", "--remotes", *rebased)
    local = git.out("rev-list", *onto, "--not", "--stdin", stdin=_lines(recent))
    return recent.intersection(local.decode().split()) - _commits_in_other_worktrees(span)


def _commits_in_other_worktrees(span: Span) -> set[str]:
    """Return the commits made in other worktrees that were there when the session began."""
    folders = {os.path.dirname(state_abs) for state_abs in span.repo.states_abs[1:]}
    logs = [read_reflog(folder) for folder in folders.difference(span.also)]
    older = [log for log in logs if log and log[0].stamp < int(span.start.stamp)]
    return {entry.new for log in older for entry in entries_since(log, span.start)}


def _files_changed_by_head(git: Git, span: Span, entries: Iterable[ReflogEntry]) -> set[bytes]:
    """Return the files that movements of HEAD changed while the session was idle.

    Where they are not the session's work, they are in the tree of the start. Each row of entries
    counts as one: a rebase of the person's makes hundreds.
    """
    paths: set[bytes] = set()
    before = span.start.head
    for is_idle, row in groupby(entries, lambda entry: span.is_idle(entry.stamp)):
        *_, last = row
        if is_idle and last.new != before:
            paths.update(path for path, _was, _file in changes_between(git, before, last.new))
        before = last.new
    return paths


def _files_changed_in(git: Git, commits: Collection[str]) -> set[bytes]:
    """Return the files that commits changed; of a merge, those that differ from each parent."""
    if not commits:
        return set()
    output = ("--format=", "--name-only", "-z", "--root", "--no-renames", "--diff-merges=combined")
    plain = ("--no-ext-diff", "--no-relative", "--ignore-submodules=none")
    args = ("log", "--no-walk=unsorted", "--ignore-missing", "--stdin", *output, *plain)
    return {name.lstrip(b"\n") for name in git.out(*args, stdin=_lines(commits)).split(b"\0")}


def _with_abandoned_branches(git: Git, span: Span, abandoned: Collection[str]) -> str:
    """Return the current tree with the session's commits on branches that it has abandoned.

    A mere checkout is to hide nothing. Commits that no branch has any more have been amended,
    rebased or dropped: nothing is taken over from them.
    """
    tree, head = span.now.tree, span.now.head
    if not abandoned:
        return tree
    parents = git.out("rev-list", "--parents", "--branches", "--not", head, span.start.head)
    on_branches = [line.split() for line in parents.decode().splitlines()]
    parents_by_commit = {commit: above for commit, *above in on_branches if commit in abandoned}
    inner = {parent for above in parents_by_commit.values() for parent in above}
    touched = _files_changed_in(git, parents_by_commit)
    spans = []
    for tip in [commit for commit in parents_by_commit if commit not in inner][-_MOST_BRANCHES:]:
        joined = git.ask("merge-base", head, tip)
        if not joined.exit_status:
            base = joined.stdout.split()[0].decode()
            names = {path for path, _was, _file in changes_between(git, base, tip)}
            spans.append((base, tip, tuple(map(os.fsdecode, names - touched))))
    return with_changes(span.repo, tree, spans)


def with_changes(repo: Repo, onto: str, spans: Iterable[tuple[str, str, tuple[str, ...]]]) -> str:
    """Return a tree with the changes of some spans applied, file by file.

    `spans` are the trees before and after each, and files that are left out. A file that is
    another one in the tree than it was before is left unchanged there: whoever changed it first has
    not seen the rest. So it stays, too, where a span only brings such a file back.

    Raises: GitError where a tree does not exist; OSError where nothing can be stored.
    """
    git = reading_git(repo)
    applied: dict[bytes, File] = {}
    others: dict[bytes, set[File]] = {}  # what such files were like before
    for before, after, left_out in spans:
        excluded = set(map(os.fsencode, left_out))
        differs = {path for path, _was, _file in changes_between(git, before, onto)}
        changes = changes_between(git, before, after)
        diverged = {
            path: old
            for path, old, _file in changes
            if path in excluded or (old != applied[path] if path in applied else path in differs)
        }
        for path, old in diverged.items():
            others.setdefault(path, set()).add(old)
        # Under another name it is the same file.
        moved = {
            diverged[path][1]
            for path, _was, file in changes
            if path in diverged and file[0] == _GONE
        }
        for path, old, file in changes:
            is_renamed = old[0] == _GONE and file[1] in moved
            if path not in diverged and not is_renamed and file not in others.get(path, ()):
                applied[path] = file
    return with_files(repo, onto, applied) if applied else onto


def changes_between(git: Git, before: str, after: str) -> list[tuple[bytes, File, File]]:
    """Return each file that differs, before and after."""
    if before == after:
        return []
    fields = git.out(*_RAW, before, after).split(b"\0")
    metas = [meta[1:].split(b" ") for meta in fields[0:-1:2]]
    return [
        (path, (old_mode, old_id), (mode, object_id))
        for (old_mode, mode, old_id, object_id, _status), path in zip(
            metas, fields[1::2], strict=True
        )
    ]


def with_files(repo: Repo, tree: str, files: Mapping[bytes, File]) -> str:
    """Return a tree with some entries replaced; a mode of zeros removes one."""
    lines = [
        b"%s %s\t%s\0" % (mode.replace(_GONE, b"0"), object_id, path)
        for path, (mode, object_id) in files.items()
    ]
    index_abs = f"{repo.state_abs}/authorship.index.{os.getpid()}"
    git = storing_git(repo)
    git = git._replace(env={**git.env, "GIT_INDEX_FILE": index_abs})
    try:
        git.out("read-tree", tree)
        git.out("update-index", "-z", "--index-info", stdin=b"".join(lines))
        return git.out("write-tree").decode().strip()
    finally:
        if os.path.exists(index_abs):
            os.unlink(index_abs)


def _lines(commits: Iterable[str]) -> bytes:
    return "".join(f"{commit}\n" for commit in commits).encode()


def read_reflog(git_dir_abs: str) -> tuple[ReflogEntry, ...]:
    """Return the entries of a worktree, the oldest first; none if git keeps no log."""
    try:
        with open(f"{git_dir_abs}/logs/HEAD", "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(max(0, size - _MOST_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return ()
    parsed = (_entry(os.fsdecode(line)) for line in lines)
    return tuple(entry for entry in parsed if entry)


def entries_since(entries: tuple[ReflogEntry, ...], start: Point) -> tuple[ReflogEntry, ...]:
    """Return the entries since a point, and maybe some of the second before.

    Told by the time, and by where HEAD was: a commit can be given any time, so the first one
    of the session might look old.
    """
    by_time = by_place = len(entries)
    for at, entry in enumerate(entries):
        if entry.new == start.head:
            by_place = at + 1
        if entry.stamp >= int(start.stamp) - 1 and by_time == len(entries):
            by_time = at
    return entries[min(by_time, by_place) :]


def makes_commit(message: str) -> bool:
    """Return whether an entry made a commit, and did not move to an existing one.

    What is not known makes one: to ask for one review too many is better than to hide something.
    """
    action, _colon, rest = message.partition(": ")
    if message.startswith(_MOVES) or action.endswith(_STEPS):
        return False
    # The rest may be the subject of a commit; not of these.
    is_joining = action.startswith(("merge", "pull", "rebase", "cherry-pick"))
    return not (is_joining and rest.lower() in _FORWARD)


def last_switch(entries: tuple[ReflogEntry, ...]) -> str:
    """Return the commit that another branch was last checked out at; empty if none was."""
    switches = [entry.new for entry in entries if entry.message.startswith(_SWITCH)]
    return switches[-1] if switches else ""


def _entry(line: str) -> ReflogEntry | None:
    """Parse a line: `OLD NEW NAME <EMAIL> TIME ZONE TAB MESSAGE`."""
    who, _tab, message = line.partition("\t")
    words = who.split(" ")
    if len(words) < 4 or not words[-2].isdigit():  # noqa: PLR2004 - two ids, a time, a zone
        return None
    return ReflogEntry(new=words[1], stamp=int(words[-2]), message=message)
