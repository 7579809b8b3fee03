"""Put back git's own state: stash entries, branches, HEAD, the index, unfinished commands.

What others have changed since stays, and is reported.
"""

from __future__ import annotations

import os
import time

from gitgates.core.clean import first_few
from gitgates.core.record import Record
from gitgates.files.git_state import WAITING, read_waiting
from gitgates.files.memory import Memory
from gitgates.git.repo import nul_split
from gitgates.store.files import make_folder, remove_file, replace_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import TypeVar

    from gitgates.features.undo.moments import Moment, Moments
    from gitgates.files.points import Point
    from gitgates.git.repo import Repo

    _Value = TypeVar("_Value")

UNDONE_REFS = "refs/gitgates/undone"
_SHOWN = 12  # digits of a commit
_MOST_NAMED = 5
_WITH_HEAD = ("rebase-merge", "rebase-apply", "sequencer")


class Wish(Record):
    """What an undo puts back besides files."""

    with_index: bool = False
    with_branch: bool = False  # HEAD, and the branches that were moved


class GitBack:
    """What points have changed in git's own state, and how to put it back."""

    def __init__(self, moments: Moments, undone: list[Point], wish: Wish) -> None:
        self._moments = moments
        self._repo: Repo = moments.repo
        self._wish = wish
        self._memory = Memory(moments.repo)
        newest = sorted(undone, key=lambda point: -point.number)
        self._steps = [(moments.before(point), moments.of(point)) for point in newest]

    def _before(
        self,
        now: Mapping[str, _Value],
        of: Callable[[Moment], Mapping[str, _Value]],
        but: Collection[str] = (),
    ) -> tuple[dict[str, _Value], set[str]]:
        """Return name → value after the undo, and the names that others have changed since.

        `of` returns a moment's values; `but`: more names that others have changed.
        """
        wanted, others = dict(now), set[str]()
        for before, after in self._steps:
            old, new = of(before), of(after)
            for name in (name for name in {*old, *new} if old.get(name) != new.get(name)):
                if name not in but and wanted.get(name) == new.get(name):
                    wanted.pop(name, None)
                    wanted |= {name: old[name]} if name in old else {}
                elif name in but or wanted.get(name) != old.get(name):
                    others.add(name)
        return wanted, others

    # Stash entries and branches

    def stash(self) -> list[str]:
        """Store missing stash entries again. None is removed."""
        git, gone, notes = self._repo.git, dict[str, str](), list[str]()
        for before, after in self._steps:
            left = {commit for commit, _message in after.state.stash}
            gone |= {commit: text for commit, text in before.state.stash if commit not in left}
        listed = git.ask("log", "--walk-reflogs", "--format=%H", "refs/stash", "--")
        present = listed.stdout.decode().split()
        for commit, message in reversed(gone.items()):
            if commit not in present:
                self._bring([commit])
                git.out("stash", "store", "--message", message, commit)
                notes.append(f"the stash entry is back: {message}")
        return notes

    def branches(self) -> list[str]:
        """Restore missing branches; on request, move the others back as well.

        Branches that others have moved since stay, and so do those that other worktrees have
        checked out.
        """
        ask = ("for-each-ref", "--format=%(refname) %(objectname) %(worktreepath)", "refs/heads")
        present, used, notes = dict[str, str](), dict[str, str](), list[str]()
        for ref, commit, used_abs in (line.split(" ", 2) for line in self._repo.git.lines(*ask)):
            present[ref], used[ref] = commit, used_abs or self._repo.root_abs
        wanted, others = self._before(present, lambda moment: moment.state.refs)
        for ref, commit in wanted.items():
            name, now = ref.removeprefix("refs/heads/"), present.get(ref, "")
            if ref in others:
                self._bring([self._steps[-1][0].state.refs.get(ref, "")])
                left = self._steps[0][1].state.refs.get(ref, "")
                commits = self._commits_between(left, now) if left else ""
                what = f" has new commits ({commits})" if commits else " was moved"
                notes.append(f"`{name}`{what} since, and stays at {now[:_SHOWN]}")
            elif now != commit:
                self._bring([commit])
                notes += self._move(ref, commit, now, used.get(ref, ""))
        return notes

    def _move(self, ref: str, commit: str, now: str, used_abs: str) -> list[str]:
        """Restore a branch, or on request move it back; return notes."""
        git, name = self._repo.git, ref.removeprefix("refs/heads/")
        if not now:
            git.out("update-ref", ref, commit, "0" * len(commit))
            return [f"the branch `{name}` is back at {commit[:_SHOWN]}"]
        if not self._wish.with_branch:
            commits = self._commits_between(commit, now)
            return [f"`{name}` keeps {commits}; to move it back: --branch"] if commits else []
        if os.path.realpath(used_abs) != os.path.realpath(self._repo.root_abs):
            return [f"`{name}` stays: it is checked out in {used_abs}"]
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        kept = f"{UNDONE_REFS}/{stamp}-{now[:_SHOWN]}/{name}"
        git.out("update-ref", kept, now)
        git.out("update-ref", "-m", "gitgates undo", ref, commit, now)
        return [f"`{name}` is back at {commit[:_SHOWN]}; {now[:_SHOWN]} is in {kept}"]

    def _commits_between(self, old: str, new: str) -> str:
        """Return a branch's new commits as text; empty if there are none."""
        git = self._repo.git
        log = git.ask("log", "--format=%h %s", "--max-count=6", f"{old}..{new}", "--")
        lines = os.fsdecode(log.stdout).splitlines()
        shown = [f"“{line}”" for line in lines[:_MOST_NAMED]]
        return ", ".join([*shown, *(["…"] if lines[_MOST_NAMED:] else [])])

    def head(self) -> list[str]:
        """Move HEAD back, on request."""
        git = self._repo.git
        present = os.fsdecode(git.ask("symbolic-ref", "--quiet", "HEAD").stdout).strip()
        present = present or self._repo.head
        wanted, others = self._before({"": present}, _head)
        if others:
            return ["HEAD was moved since, and stays"]
        if (place := wanted.get("", "")) in (present, ""):
            return []
        shown = place.removeprefix("refs/heads/") if "/" in place else place[:_SHOWN]
        if not self._wish.with_branch:
            return [f"HEAD was at {shown}; to go back to it: --branch"]
        if "/" in place:
            git.out("symbolic-ref", "-m", "gitgates undo", "HEAD", place)
        else:
            self._bring([place])
            git.out("update-ref", "--no-deref", "-m", "gitgates undo", "HEAD", place)
        return [f"HEAD is at {shown} again"]

    # Unfinished git commands

    def waiting(self) -> list[str]:
        """Restore or remove git's state of a merge: otherwise the next commit would differ."""
        now = read_waiting(self._repo.git_dir_abs)
        wanted, _others = self._before(now, lambda moment: moment.state.waiting)
        changed = [name for name in {**now, **wanted} if now.get(name) != wanted.get(name)]
        if not changed:
            return []
        if not self._wish.with_branch and any(name.startswith(_WITH_HEAD) for name in changed):
            what = "begun" if len(now) > len(wanted) else "ended"
            return [f"a rebase or similar command was {what}; to undo that: --branch"]
        for name in changed:
            path_abs = f"{self._repo.git_dir_abs}/{name}"
            if name in wanted:
                make_folder(os.path.dirname(path_abs))
                replace_file(path_abs, os.fsencode(wanted[name]))
            else:
                remove_file(path_abs)
        for name in _WITH_HEAD:
            if not any(each.startswith(name) for each in wanted):
                _remove_folder(f"{self._repo.git_dir_abs}/{name}")
        names = sorted({name.partition("/")[0] for name in changed} & {*WAITING})
        return [f"put back for an unfinished git command: {', '.join(names)}"]

    # The index

    def index(self) -> list[str]:
        """Put back the changed index entries, on request."""
        if all(before.state.entries == after.state.entries for before, after in self._steps):
            return []
        if not self._wish.with_index:
            return ["the index is left as it is; to put it back: --index"]
        git = self._repo.git
        now = _by_path(nul_split(git.out("ls-files", "--stage", "-z")))
        committed = self._committed_since()
        wanted, others = self._before(now, self._entries, but=committed)
        self._bring(
            self._memory.reading.resolve(f"{m.point.id}:staged") for m, _after in self._steps
        )
        lines = list[str]()
        for path in (path for path in {**now, **wanted} if now.get(path) != wanted.get(path)):
            lines += [f"0 {self._memory.nothing}\t{path}\0"]
            lines += [f"{entry}\t{path}\0" for entry in wanted.get(path, ())]
        if lines:
            git.out("update-index", "-z", "--index-info", stdin=os.fsencode("".join(lines)))
        if not others:
            return []
        names = first_few(sorted(others), _MOST_NAMED)
        return [f"in the index, these were changed since, and stay: {names}"]

    def _committed_since(self) -> set[str]:
        """Return the files that others have committed since, which stay in the index."""
        before, after = self._steps[-1][0].point.head, self._steps[0][1].point.head
        if not after or self._repo.head in (after, before):
            return set()
        ask = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", after, "HEAD")
        return {*nul_split(self._repo.git.ask(*ask).stdout)}

    def _entries(self, moment: Moment) -> Mapping[str, tuple[str, ...]]:
        """Return path → entries of a saved index."""
        if not moment.state.index_blob:
            return {}
        copy_abs = f"{self._repo.state_abs}/undo.index"
        content = self._memory.reading.out("cat-file", "blob", moment.state.index_blob)
        replace_file(copy_abs, content, sync=False)
        try:
            git = self._repo.git
            git = git._replace(env={**git.env, "GIT_INDEX_FILE": copy_abs})
            return _by_path(nul_split(git.out("ls-files", "--stage", "-z")))
        finally:
            remove_file(copy_abs)

    # Objects

    def _bring(self, names: Iterable[str]) -> None:
        """Copy commits or trees, with all that they need, to the user's repository."""
        git = self._repo.git
        missing = [
            name
            for name in dict.fromkeys(filter(None, names))
            if git.ask("rev-list", "--objects", name, "--not", "--all", "--quiet").exit_status
        ]
        if missing:
            heads = git.out("for-each-ref", "--format=^%(objectname)", "refs/heads").decode()
            stdin = "".join(f"{name}\n" for name in (*missing, *heads.split())).encode()
            pack = self._memory.reading.out("pack-objects", "--stdout", "-q", "--revs", stdin=stdin)
            git.out("unpack-objects", "-q", stdin=pack)


def _head(moment: Moment) -> dict[str, str]:
    return {"": moment.state.branch or moment.point.head}


def _by_path(lines: Iterable[str]) -> dict[str, tuple[str, ...]]:
    by_path: dict[str, tuple[str, ...]] = {}
    for line in lines:
        meta, _, path = line.partition("\t")
        by_path[path] = (*by_path.get(path, ()), meta)
    return by_path


def _remove_folder(folder_abs: str) -> None:
    """Remove empty folders that git's state has left."""
    for above, _folders, _names in os.walk(folder_abs, topdown=False):
        try:
            os.rmdir(above)
        except OSError:
            return
