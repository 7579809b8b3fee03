"""Commit what a run has changed, and nothing else of the working tree.

The commit is prepared in an index of its own. A file that had uncommitted changes before the run is
committed without them, by a three-way merge; where that conflicts, the file is `mixed`, and only a
person can separate the changes.
"""

from __future__ import annotations

import os
import tempfile

from gitgates.errors import GitError
from gitgates.git.repo import nul_ended
from gitgates.record import Record
from gitgates.store.files import remove_file
from gitgates.worktree.checkpoint import compare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Git, Repo
    from gitgates.worktree.checkpoint import Checkpoint

FAILED_REFS = "refs/gitgates/failed"


class Prepared(Record):
    """An index, apart from the user's, with what is to be committed."""

    git: Git  # with this index as GIT_INDEX_FILE
    paths: tuple[str, ...]  # changed by the run
    mixed: tuple[str, ...]  # of these: with earlier changes that cannot be separated
    tree: str  # its id: what gates check, and what is committed
    is_empty: bool  # nothing differs from HEAD: the agent has committed by itself, or done nothing


def prepare(point: Checkpoint, repo: Repo, *, whole: bool = False) -> Prepared:
    """Prepare the index of the commit. `whole`: with the earlier changes of changed files.

    Raises: GitError if git cannot read what the run has written.
    """
    git = _own_index(point, repo)
    head = _head(git)
    git.out("read-tree", *(("--reset", head) if head else ("--empty",)))
    difference = compare(point, repo)
    mine = set(difference.paths) if whole else set(difference.paths) - point.dirty
    removed = [*difference.gone, *difference.untracked]
    git.out("update-index", "--force-remove", "-z", "--stdin", stdin=nul_ended(removed))
    written = sorted(mine.difference(removed))
    git.out("update-index", "--add", "--replace", "-z", "--stdin", stdin=nul_ended(written))
    both = sorted(set(difference.paths) - mine - set(removed))
    mixed = tuple(path for path in both if not _add_without_earlier(point, repo, git, path))
    # Gates see those as they are; nobody commits them.
    git.out("update-index", "--add", "--replace", "-z", "--stdin", stdin=nul_ended(mixed))
    tree = git.out("write-tree").decode().strip()
    is_empty = bool(head) and tree == git.out("rev-parse", f"{head}^{{tree}}").decode().strip()
    return Prepared(git, difference.paths, mixed, tree, is_empty)


def _own_index(point: Checkpoint, repo: Repo) -> Git:
    """Return git with a copy of the user's index, whose file times save reading the files."""
    index_abs = f"{point.folder_abs}/commit.index"
    users_abs = f"{repo.git_dir_abs}/index"
    remove_file(index_abs)
    if os.path.exists(users_abs):
        from shutil import copy2

        copy2(users_abs, index_abs)
    return repo.git._replace(env={**repo.env, "GIT_INDEX_FILE": index_abs})


def _head(git: Git) -> str:
    return git.ask("rev-parse", "--verify", "--quiet", "HEAD").stdout.decode().strip()


def _add_without_earlier(point: Checkpoint, repo: Repo, git: Git, path: str) -> bool:
    """Stage a file without the changes from before the run; return False if they conflict."""
    listed = git.out("ls-files", "-z", "--stage", "--", path).decode("utf-8", "surrogateescape")
    saved_abs = (
        f"{point.folder_abs}/files/{point.paths[path].digest}" if path in point.paths else ""
    )
    if not listed or not os.path.isfile(saved_abs):
        return False  # HEAD has no such file, or it was a link
    mode, ours = listed.split(" ")[:2]
    with open(saved_abs, "rb") as file:
        base = git.out("hash-object", "-w", "--stdin", f"--path={path}", stdin=file.read())
    now = git.out("hash-object", "-w", f"--path={path}", "--", path)
    merged = _merge(git, ours, base.decode().strip(), now.decode().strip())
    if merged is None:
        return False
    blob = git.out("hash-object", "-w", "--stdin", stdin=merged).decode().strip()
    is_executable = os.access(os.path.join(repo.root_abs, path), os.X_OK)
    mode = ("100755" if is_executable else "100644") if mode.startswith("100") else mode
    git.out("update-index", "--cacheinfo", f"{mode},{blob},{path}")
    return True


def _merge(git: Git, ours: str, base: str, theirs: str) -> bytes | None:
    """Return the three-way merge of three blobs; None if it conflicts."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, blob in (("ours", ours), ("base", base), ("theirs", theirs)):
            files.append(f"{folder}/{name}")
            with open(files[-1], "wb") as file:
                file.write(git.out("cat-file", "blob", blob))
        done = git.ask("merge-file", "-p", "-q", *files)
    return None if done.exit_status else done.stdout


def keep_failed(point: Checkpoint, repo: Repo) -> str:
    """Commit the agent's work under a ref of ours; return the ref, empty if nothing changed.

    Raises: GitError.
    """
    prepared = prepare(point, repo, whole=True)
    git, head = prepared.git, _head(prepared.git)
    if not prepared.paths and head == point.head:
        return ""
    tree = git.out("write-tree").decode().strip()
    parents = ("-p", head) if head else ()
    message = f"Work of the failed headless run {point.run}".encode()
    made = git.out("commit-tree", tree, *parents, stdin=message).decode().strip()
    ref = f"{FAILED_REFS}/{point.run}"
    git.out("update-ref", ref, made)
    return ref


def changed_lines(point: Checkpoint, repo: Repo) -> int:
    """Count the lines that the run has added and removed."""
    git = prepare(point, repo, whole=True).git
    base = point.head or git.out("hash-object", "-t", "tree", "--stdin").decode().strip()
    total = 0
    for line in git.lines("diff", "--cached", "--numstat", "--no-ext-diff", base):
        added, removed = line.split("\t")[:2]
        total += int(added if added != "-" else 0) + int(removed if removed != "-" else 0)
    return total


def follow_commit(repo: Repo, prepared: Prepared) -> None:
    """Update the committed paths in the user's index; what else is staged stays staged.

    Raises: GitError.
    """
    git = repo.git
    if not os.path.exists(f"{repo.git_dir_abs}/index"):
        git.out("read-tree", "HEAD")  # the run has removed it
    ask = ("reset", "-q", "--pathspec-from-file=-", "--pathspec-file-nul")
    if prepared.paths:
        done = git.ask(*ask, stdin=nul_ended(prepared.paths))
        if done.exit_status:
            raise GitError(f"the index does not follow the commit: {os.fsdecode(done.stderr)}")
