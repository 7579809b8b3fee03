"""Record what gates that write have made of files, for those who weigh what a session has changed.

What a formatter of ours rewrites is neither the agent's work nor the person's.
"""

from __future__ import annotations

import os

from gitgates.core.errors import GitgatesError
from gitgates.core.lifecycle import RETRIED
from gitgates.git.object_store import reading_git, storing_git
from gitgates.session.needs import are_writers_followed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from gitgates.core.types import Decision, Plan
    from gitgates.git.repo import Repo
    from gitgates.session.call import Call


class FilesBefore:
    """The content of files before gates run that may write them."""

    def __init__(self, call: Call, plan: Plan) -> None:
        self._call = call
        self._writing = {
            step.gate.name for step in plan.steps if step.gate.writes and not step.skip
        }
        self._tree = ""
        self._ids: dict[str, str] = {}
        if not (self._writing and are_writers_followed(call)):
            return
        if call.kind in RETRIED:
            self._tree = call.snapshot.tree
        else:
            self._ids = _stored(call.repo, call.edited_paths or ())

    def writes_in(self, decision: Decision) -> list[list[str]]:
        """Return each file that those gates have changed, with its ids before and after."""
        if not (self._tree or self._ids):
            return []
        ran = [v.result for v in decision.visits if v.result.gate in self._writing]
        paths = [path for result in ran for path in result.changed_paths]
        try:
            if self._tree and any(result.duration_s for result in ran):
                paths += _made_since(self._call.repo, self._tree)
            if not paths:
                return []
            before = self._ids or _in_tree(self._call.repo, self._tree, paths)
            after = _stored(self._call.repo, paths)
        except (GitgatesError, OSError):
            return []  # then the changes count, as unknown ones do
        compared = [path for path in sorted(set(paths)) if self._tree or path in before]
        writes = [[path, before.get(path, ""), after.get(path, "")] for path in compared]
        return [write for write in writes if write[1] != write[2]]


def _made_since(repo: Repo, tree: str) -> list[str]:
    """Return the files that were not there in a snapshot. Raises: GitgatesError."""
    from gitgates.files.stored import look_as_stored  # only after a gate that writes, at an end

    names = ("diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter=A")
    return reading_git(repo).names(*names, tree, look_as_stored(repo).tree)


def _stored(repo: Repo, paths: Iterable[str]) -> dict[str, str]:
    """Store files as a snapshot would; return path → id, without links and odd names.

    Raises: GitError, OSError.
    """
    files = [
        path
        for path in paths
        if "\n" not in path
        and os.path.isfile(f"{repo.root_abs}/{path}")
        and not os.path.islink(f"{repo.root_abs}/{path}")
    ]
    if not files:
        return {}
    stdin = b"".join(os.fsencode(path) + b"\n" for path in files)
    ids = storing_git(repo).out("hash-object", "-w", "--stdin-paths", stdin=stdin)
    return dict(zip(files, ids.decode().split(), strict=True))


def _in_tree(repo: Repo, tree: str, paths: list[str]) -> dict[str, str]:
    """Return path → id of files in a tree. Raises: GitError."""
    ids = {}
    for line in reading_git(repo).names("ls-tree", "-r", "-z", tree, "--", *paths) if tree else ():
        meta, _tab, path = line.partition("\t")
        ids[path] = meta.split(" ")[2]
    return ids
