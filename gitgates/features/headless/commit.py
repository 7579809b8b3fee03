"""Commit what a run has changed, and nothing else of the working tree.

The commit is prepared in an index of its own. A file that had uncommitted changes before the run is
committed without them, by a three-way merge; where that conflicts, the file is `mixed`, and only a
person can separate the changes.
"""

from __future__ import annotations

import os
import stat
import tempfile

from gitgates.core.errors import GitError
from gitgates.core.record import Record
from gitgates.features.headless import history
from gitgates.features.headless.history import own_commits, sum_lines
from gitgates.git.index import update_index
from gitgates.git.repo import nul_ended
from gitgates.store.files import make_folder, remove_file, replace_file
from gitgates.worktree.checkpoint import compare, copy_file, mode_at
from gitgates.worktree.rollback import restore_index, roll_back

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Git, Repo
    from gitgates.worktree.checkpoint import Checkpoint

_WHOLE = ("--binary", "--full-index", "--no-ext-diff", "--no-color", "--no-renames")
AS_PATCH = ("diff-tree", "-p", *_WHOLE)
FAILED_REFS = "refs/gitgates/failed"
PATCH = "work.patch"  # in the folder of a run: its work, without uncommitted changes of before


class Prepared(Record):
    """An index, apart from the user's, with what is to be committed."""

    git: Git  # with this index as GIT_INDEX_FILE
    paths: tuple[str, ...]  # changed by the run
    mixed: tuple[str, ...]  # of these: with earlier changes that cannot be separated
    tree: str  # its id: what gates check, and what is committed

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs from HEAD: the agent has committed by itself, or done nothing."""
        return self.tree == self.git.resolve("HEAD^{tree}")


def prepare(
    point: Checkpoint, repo: Repo, *, whole: bool = False, name: str = "commit.index"
) -> Prepared:
    """Prepare the index of the commit. `whole`: with the earlier changes of changed files.

    Raises: GitError if git cannot read what the run has written.
    """
    git, head = _own_index(point, repo, name), repo.head
    git.out("read-tree", *(("--reset", head) if head else ("--empty",)))
    difference = compare(point, repo)
    # What the agent has committed may differ from the working tree, which the gates check.
    paths = sorted({*difference.paths, *committed_paths(git, point.head, head)})
    unknown = set(paths).difference(difference.changed, difference.added, point.paths)
    missing = {path for path in unknown if not mode_at(os.path.join(repo.root_abs, path))}
    removed = missing.union(difference.deleted, difference.untracked)
    present = [path for path in paths if path not in removed and path not in unknown]
    mine = [path for path in present if whole or path not in point.dirty]
    both = [path for path in present if not whole and path in point.dirty]
    update_index(git, sorted(removed), "--force-remove")
    update_index(git, mine, "--add", "--replace")
    mixed = tuple(path for path in both if not _add_without_earlier(point, repo, git, path))
    # Gates see those as they are; they are never committed.
    update_index(git, mixed, "--add", "--replace")
    return Prepared(git, tuple(paths), mixed, git.out("write-tree").decode().strip())


def committed_paths(git: Git, old: str, new: str) -> list[str]:
    """Return the paths that differ between two commits; `old` may be empty for none."""
    if old == new:
        return []
    if not old:
        return git.names("ls-tree", "-r", "-z", "--name-only", "--full-tree", new)
    return git.names("diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new or _none(git))


def written(before: Prepared, after: Prepared, *, fixers: bool) -> list[str]:
    """Return what was written between two calls of `prepare`, and must be checked again.

    New files are, where gates are there to write files; else they are reports, and not committed.
    """
    ask = ("diff-tree", "-r", "-z", "--name-only", "--no-renames")
    only = () if fixers else ("--diff-filter=a",)
    return before.git.names(*ask, *only, before.tree, after.tree)


def changed_lines(point: Checkpoint, repo: Repo) -> int:
    """Return how many lines the run has added and removed: each commit of its own, and the rest.

    At least what differs from before the run: a merge brings lines that no such commit has.
    """
    git = prepare(point, repo, whole=True).git
    ask = ("diff", "--cached", "--numstat", "--no-ext-diff")

    def differing_from(commit: str) -> int:
        return sum_lines(git.out(*ask, commit or _none(git)).decode("utf-8", "replace"))

    in_commits = history.lines_in_commits(own_commits(point, repo), git)
    return max(differing_from(point.head), in_commits + differing_from(repo.head))


def _none(git: Git) -> str:
    """Return the tree that holds nothing."""
    return git.out("hash-object", "-t", "tree", "--stdin").decode().strip()


def _own_index(point: Checkpoint, repo: Repo, name: str) -> Git:
    """Return git with an index of the run's, a copy of the user's, whose times save reading."""
    index_abs = f"{point.folder_abs}/{name}"
    users_abs = f"{repo.git_dir_abs}/index"
    remove_file(index_abs)
    remove_file(f"{index_abs}.lock")  # of a git that was killed with an earlier call
    if os.path.exists(users_abs):
        from shutil import copy2

        copy2(users_abs, index_abs)
    return repo.git._replace(env={**repo.env, "GIT_INDEX_FILE": index_abs})


def _add_without_earlier(point: Checkpoint, repo: Repo, git: Git, path: str) -> bool:
    """Stage a file without the changes from before the run; return False if they conflict."""
    entry = git.out("ls-files", "-z", "--stage", "--", path).decode("utf-8", "surrogateescape")
    earlier = _earlier(point, git, path)
    if not entry or earlier is None:
        return False  # HEAD has no such file, or it was a link
    mode, ours = entry.split(" ")[:2]
    base = git.out("hash-object", "-w", "--stdin", f"--path={path}", stdin=earlier).decode().strip()
    users = git._replace(env={**git.env, "GIT_INDEX_FILE": f"{point.folder_abs}/index"})
    if users.resolve(f":0:{path}") not in (base, git.resolve(f"{point.head}:{path}")):
        return False  # what was staged would be lost
    now = git.out("hash-object", "-w", f"--path={path}", "--", path)
    merged = _merge(git, ours, base, now.decode().strip())
    if merged is None:
        return False
    blob = git.out("hash-object", "-w", "--stdin", stdin=merged).decode().strip()
    is_executable = os.access(os.path.join(repo.root_abs, path), os.X_OK)
    mode = ("100755" if is_executable else "100644") if mode.startswith("100") else mode
    git.out("update-index", "--cacheinfo", f"{mode},{blob},{path}")
    return True


def _earlier(point: Checkpoint, git: Git, path: str) -> bytes | None:
    """Return what a file held before the run, as it was on the disk; None where there was none."""
    saved = point.paths.get(path)
    if saved is None or not stat.S_ISREG(saved.mode):
        return None
    try:
        with open(f"{point.folder_abs}/files/{saved.digest}", "rb") as file:
            return file.read()
    except FileNotFoundError:
        return git.out("cat-file", "blob", saved.digest)


def _merge(git: Git, ours: str, base: str, theirs: str) -> bytes | None:
    """Return the three-way merge of three blobs; None if it conflicts."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for name, blob in (("ours", ours), ("base", base), ("theirs", theirs)):
            files.append(f"{folder}/{name}")
            with open(files[-1], "wb") as file:
                file.write(git.out("cat-file", "blob", blob))
        merged = git.ask("merge-file", "-p", "-q", *files)
    return None if merged.exit_status else merged.stdout


def keep_failed(point: Checkpoint, repo: Repo) -> str:
    """Commit the agent's work under a gitgates ref; return the ref, empty if nothing changed.

    Raises: GitError.
    """
    prepared = prepare(point, repo, whole=True)
    git, head = prepared.git, repo.head
    if not prepared.paths and head == point.head:
        return ""
    parents = ("-p", head) if head else ()
    message = f"Work of the failed headless run {point.run}".encode()
    commit = git.out("commit-tree", prepared.tree, *parents, stdin=message).decode().strip()
    ref = f"{FAILED_REFS}/{point.run}"
    remove_file(f"{repo.common_dir_abs}/{ref}.lock")  # likewise; no other run has this ref
    git.out("update-ref", ref, commit)
    run_abs = f"{repo.state_abs}/runs/{point.run}"
    if point.dirty.intersection(prepared.paths) and os.path.isdir(run_abs):
        patch = git.out(*AS_PATCH, _tree_before(point, repo, prepared.paths), commit)
        replace_file(f"{run_abs}/{PATCH}", patch)
    return ref


def _tree_before(point: Checkpoint, repo: Repo, paths: tuple[str, ...]) -> str:
    """Return the tree of before the run, where `paths` are as they were on the disk."""
    git = _own_index(point, repo, "before.index")
    git.out("read-tree", *(("--reset", point.head) if point.head else ("--empty",)))
    dirty = sorted(point.dirty.intersection(paths))
    update_index(git, [path for path in dirty if path not in point.paths], "--force-remove")
    for path in dirty:
        if saved := point.paths.get(path):
            is_link = stat.S_ISLNK(saved.mode)
            content = os.fsencode(saved.digest) if is_link else _earlier(point, git, path) or b""
            filters = "--no-filters" if is_link else f"--path={path}"
            how = ("hash-object", "-w", "--stdin", filters)
            blob = git.out(*how, stdin=content).decode().strip()
            mode = "120000" if is_link else "100755" if saved.mode & 0o100 else "100644"
            git.out("update-index", "--add", "--replace", "--cacheinfo", f"{mode},{blob},{path}")
    return git.out("write-tree").decode().strip()


def keep_and_roll_back(point: Checkpoint, repo: Repo) -> tuple[str, list[str]]:
    """Keep the agent's work, then roll back; return the ref of that work, and notes.

    If git cannot keep it, as on a full disk, its files are moved into `kept`, for a month.

    Raises: as `roll_back`.
    """
    try:
        ref, why = keep_failed(point, repo), ""
    except GitError as error:
        ref, why = "", error.message
    notes = roll_back(point, repo)
    replaced_abs = f"{point.folder_abs}/replaced"
    if why and os.path.isdir(replaced_abs):
        kept_abs = f"{repo.state_abs}/kept/{point.run}-replaced"
        make_folder(os.path.dirname(kept_abs))
        os.rename(replaced_abs, kept_abs)
        notes.append(f"the agent's work could not be committed: {why}; its files are in {kept_abs}")
    return ref, notes


def follow_commit(point: Checkpoint, repo: Repo) -> list[str]:
    """Restore the index from before the run, except for what was committed; return notes.

    What else was staged stays staged, and what an agent has staged beside is not any more.
    """
    git = repo.git
    paths = committed_paths(git, point.head, repo.head)
    try:
        restore_index(point, repo)
        ask = ("reset", "-q", "--pathspec-from-file=-", "--pathspec-file-nul")
        if paths:
            git.out(*ask, stdin=nul_ended(paths))
    except (OSError, GitError) as error:
        why = str(error).partition("\n")[0]
        return [f"the index does not match the commit: {why}; to fix it: git reset"]
    return []


def take_back(point: Checkpoint, repo: Repo, ref: str) -> list[str]:
    """Move HEAD and its branch back to before the run; return notes.

    The working tree stays, and so has what the commits had; they are kept under a ref of ours.
    `ref` is the branch of the run; empty where HEAD was detached. Raises: GitError, OSError.
    """
    git, head = repo.git, repo.head
    if head == point.head and git.ask("symbolic-ref", "-q", "HEAD").stdout.decode().strip() == ref:
        return []
    kept_ref, why = f"{FAILED_REFS}/{point.run}", ("-m", "gitgates headless --no-commit")
    git.out("update-ref", kept_ref, head)
    if ref:
        git.out("symbolic-ref", *why, "HEAD", ref)
    if point.head:
        git.out("update-ref", *why, *(() if ref else ("--no-deref",)), "HEAD", point.head)
    else:
        git.out("update-ref", "-d", ref)
    restore_index(point, repo)
    undone = "the agent had committed; with --no-commit, its commits were undone"
    return [f"{undone}, and kept as {kept_ref}"]


def keep_earlier(point: Checkpoint, repo: Repo) -> list[str]:
    """Keep uncommitted content from before the run that no longer exists; return notes."""
    notes: list[str] = []
    earlier = point.dirty & point.paths.keys()
    changed = compare(point, repo).paths if earlier else ()
    for path in sorted(earlier.intersection(changed)):
        saved_abs = f"{point.folder_abs}/files/{point.paths[path].digest}"
        is_link = stat.S_ISLNK(point.paths[path].mode)
        if is_link or os.path.isfile(saved_abs):
            kept_abs = f"{repo.state_abs}/kept/{point.run}/{path}"
            make_folder(os.path.dirname(kept_abs))
            remove_file(kept_abs)
            if is_link:
                os.symlink(point.paths[path].digest, kept_abs)
            else:
                copy_file(saved_abs, kept_abs)
            notes.append(f"`{path}` had uncommitted changes; its previous content is in {kept_abs}")
    return notes
