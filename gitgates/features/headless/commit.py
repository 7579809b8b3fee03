"""What a run has changed: as a tree, as commits, and kept under a ref where it has failed.

The index is one of ours: what the agent has set in its own, such as `--assume-unchanged`, hides
nothing.
"""

from __future__ import annotations

import os
import tempfile

from gitgates.core.errors import GitError
from gitgates.core.record import Record
from gitgates.git.index import SETTINGS, copy_index, update_index
from gitgates.git.repo import nul_ended, nul_split
from gitgates.store.files import remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from gitgates.git.repo import Git, Repo

FAILED_REFS = "refs/gitgates/failed"
_NAMES = ("diff-tree", "-r", "-z", "--name-only", "--no-renames")
_EACH = ("--no-replace-objects", "diff-tree", "--stdin", "-r", "--root", "--no-commit-id")
_EMPTY = ("hash-object", "-t", "tree", "--stdin")
_LINK = "160000"  # of a tree: a commit, of another repository


class Staged(Record):
    """The tree of what a run has made: what gates check, and what is committed."""

    git: Git  # with our index as GIT_INDEX_FILE
    tree: str = ""
    problem: str = ""  # why git cannot hold all of it

    def paths_since(self, commit: str, *, added: bool = True) -> set[str]:
        """Return the paths that differ from a commit, or from a tree."""
        only = () if added else ("--diff-filter=a",)
        return set(self.git.names(*_NAMES, *only, commit or _nothing(self.git), self.tree))

    def lines_since(self, commit: str) -> int:
        """Return how many lines were added and removed since a commit."""
        ask = ("diff", "--numstat", "--no-ext-diff", "--no-renames")
        return _sum_lines(self.git.out(*ask, commit or _nothing(self.git), self.tree))


def stage(repo: Repo, index_abs: str, known: Collection[str]) -> Staged:
    """Stage what is in the working tree, but for ignored files and `known` ones.

    What git cannot hold, such as a repository within, is a `problem`.
    """
    for name in (f"{index_abs}.lock", f"{repo.git_dir_abs}/index.lock"):
        remove_file(name)  # of a git that has ended with its turn
    git = git_with(repo, index_abs)
    try:
        git.out("read-tree", *(("--reset", repo.head) if repo.head else ("--empty",)))
        git.out("add", "-u")
        ask = ("ls-files", "-z", "--others", "--exclude-standard")
        others = [path for path in git.names(*ask) if path not in known]
        update_index(git, [path for path in others if not path.endswith("/")], "--add", "--replace")
        tree = git.out("write-tree").decode().strip()
    except GitError as error:
        return Staged(git, problem=error.message)
    inner = [path for path in others if path.endswith("/")]
    how = ("--cached", "--raw", "-z", "--no-renames")
    new = nul_split(git.out("diff-index", *how, repo.head or _nothing(git)))
    metas = zip(new[::2], new[1::2], strict=False)
    inner += [path for meta, path in metas if meta.split(" ")[1] == _LINK]
    problem = f"a repository within, which it cannot hold: {', '.join(inner)}" if inner else ""
    return Staged(git, tree, problem)


def git_with(repo: Repo, index_abs: str) -> Git:
    """Return git with another index, of which it trusts nothing that could be wrong."""
    git = repo.git._replace(env={**repo.env, "GIT_INDEX_FILE": index_abs})
    return git.with_settings((*SETTINGS, ("core.safecrlf", "false")))


def own_commits(repo: Repo, before: Iterable[str]) -> list[str]:
    """Return the commits in the history of HEAD that `before` did not lead to. Raises: GitError."""
    revisions = "".join([f"{repo.head}\n", *(f"^{commit}\n" for commit in sorted(set(before)))])
    ask = ("--no-replace-objects", "rev-list", "--ignore-missing", "--stdin")
    return repo.git.out(*ask, stdin=revisions.encode()).decode().split() if repo.head else []


def paths_in_commits(commits: list[str], git: Git) -> set[str]:
    """Return each path that one of the commits changed; of a merge: that no parent has so."""
    ask = (*_EACH, "-c", "-z", "--name-only", "--no-renames")
    return set(nul_split(git.out(*ask, stdin=_lines(commits)))) if commits else set()


def lines_in_commits(commits: list[str], git: Git) -> int:
    """Return how many lines the commits added and removed, each by itself, without merges."""
    ask = (*_EACH, "--numstat", "--no-renames", "--no-ext-diff")
    return _sum_lines(git.out(*ask, stdin=_lines(commits)))


def _sum_lines(numstat: bytes) -> int:
    """Return the sum of all lines that `--numstat` names; a binary file has none."""
    lines = numstat.decode("utf-8", "replace").splitlines()
    counts = [field for line in lines for field in line.split("\t")[:2]]
    return sum(int(count) for count in counts if count.isdigit())


def _lines(commits: list[str]) -> bytes:
    return "".join(f"{commit}\n" for commit in commits).encode()


def _nothing(git: Git) -> str:
    """Return the tree that holds nothing."""
    return git.out(*_EMPTY).decode().strip()


def others_in(git: Git) -> set[str]:
    """Return the files that an index does not have, whether git ignores them or not."""
    return set(git.names("ls-files", "-z", "--others"))


def hidden_files(repo: Repo, staged: Staged, start: str, known: Collection[str]) -> list[str]:
    """Return files that only ignore rules hide which the run has made."""
    ignored = sorted(others_in(staged.git).difference(known))
    if not ignored or not start:
        return []
    with tempfile.TemporaryDirectory() as folder_abs:
        tree_abs = f"{folder_abs}/tree"
        os.mkdir(tree_abs)
        places = {"GIT_DIR": repo.git_dir_abs, "GIT_WORK_TREE": tree_abs}
        env = {**repo.env, **places, "GIT_INDEX_FILE": f"{folder_abs}/index"}
        git = repo.git._replace(env=env, cwd_abs=tree_abs)
        git.out("read-tree", start)
        rules = [path for path in git.names("ls-files", "-z") if path.endswith(".gitignore")]
        git.out("checkout-index", "-f", "-z", "--stdin", stdin=nul_ended(rules))
        before = set(git.ignored(ignored, "--no-index"))
    return [path for path in ignored if path not in before]


def show_index(repo: Repo, staged: Staged) -> None:
    """Have the index of the worktree be what is committed, for gates and git's hooks."""
    copy_index(staged.git.env["GIT_INDEX_FILE"], f"{repo.git_dir_abs}/index")


def commit_tree(repo: Repo, tree: str, message: str) -> str:
    """Commit a tree on top of HEAD, without hooks; return the commit, which is on no branch."""
    parents = ("-p", repo.head) if repo.head else ()
    content = message.encode("utf-8", "replace")
    return repo.git.out("commit-tree", tree, *parents, stdin=content).decode().strip()


def keep_failed(repo: Repo, staged: Staged, run: str, start: str) -> str:
    """Commit the agent's work under a ref of ours; return the ref, empty if nothing changed.

    Raises: GitError.
    """
    if repo.head == start and not staged.paths_since(start):
        return ""
    commit = commit_tree(repo, staged.tree, f"Work of the failed headless run {run}")
    ref = f"{FAILED_REFS}/{run}"
    remove_file(f"{repo.common_dir_abs}/{ref}.lock")  # of a git that was killed; no other has it
    repo.git.out("update-ref", ref, commit)
    return ref


def commit_uncommitted(repo: Repo, folder_abs: str) -> str:
    """Commit the state of a working tree, and return that; index, tree and refs stay as they are.

    HEAD, where nothing differs from it. Raises: GitError.
    """
    index_abs = f"{folder_abs}/uncommitted.index"
    if os.path.exists(f"{repo.git_dir_abs}/index"):
        copy_index(f"{repo.git_dir_abs}/index", index_abs)
    git = git_with(repo, index_abs)
    git.out("add", "-A")
    tree = git.out("write-tree").decode().strip()
    if tree == git.resolve("HEAD^{tree}"):
        return repo.head
    return commit_tree(repo, tree, "Uncommitted changes of before a headless run")
