"""What a run has changed: as a tree, as commits, and kept under a ref where it has failed.

The index is one of ours: what the agent has set in its own, such as `--assume-unchanged`, hides
nothing.
"""

from __future__ import annotations

import os

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
_ASIDE = ".gitgates-agent"  # beside the index, while gates see another one
_LINK = "160000"  # of a tree: a commit, of another repository


class Staged(Record):
    """The tree of what a run has made: what gates check, and what is committed."""

    git: Git  # with our index as GIT_INDEX_FILE
    head: str  # the commit that it differs from; the empty tree before the first
    tree: str = ""
    problem: str = ""  # why git cannot hold all of it

    def paths_since(self, commit: str) -> set[str]:
        """Return the paths that differ from a commit, or from a tree."""
        return set(self.git.names(*_NAMES, commit, self.tree))

    def lines_since(self, commit: str) -> int:
        """Return how many lines were added and removed since a commit."""
        ask = ("diff", "--numstat", "--no-ext-diff", "--no-renames")
        return _sum_lines(self.git.out(*ask, commit, self.tree))


def stage(repo: Repo, index_abs: str, known: Collection[str]) -> Staged:
    """Stage what is in the working tree, but for ignored files and `known` ones.

    What git cannot hold, such as a repository within, is a `problem`.
    """
    git = git_with(repo, index_abs)
    head = repo.head or git.out("hash-object", "-t", "tree", "--stdin").decode().strip()
    try:
        git.out("read-tree", "--reset", head)
        git.out("add", "-u")
        ask = ("ls-files", "-z", "--others", "--exclude-standard")
        others = [path for path in git.names(*ask) if path not in known]
        update_index(git, [path for path in others if not path.endswith("/")], "--add", "--replace")
        tree = git.out("write-tree").decode().strip()
    except GitError as error:
        return Staged(git, head, problem=error.message)
    inner = [path for path in others if path.endswith("/")]
    new = nul_split(git.out("diff-index", "--cached", "--raw", "-z", "--no-renames", head))
    metas = zip(new[::2], new[1::2], strict=False)
    inner += [path for meta, path in metas if meta.split(" ")[1] == _LINK]
    problem = f"a repository within, which it cannot hold: {', '.join(inner)}" if inner else ""
    return Staged(git, head, tree, problem)


def git_with(repo: Repo, index_abs: str) -> Git:
    """Return git with another index, of which it trusts nothing that could be wrong."""
    git = repo.git._replace(env={**repo.env, "GIT_INDEX_FILE": index_abs})
    return git.with_settings((*SETTINGS, ("core.safecrlf", "false")))


def in_commits(repo: Repo, before: Iterable[str]) -> tuple[set[str], int]:
    """Return the paths, and how many lines, that the commits of HEAD changed one by one.

    Only those that `before` did not lead to. Of a merge, the paths that no parent has so, and no
    lines. Raises: GitError.
    """
    revisions = [repo.head, *(f"^{commit}" for commit in sorted(set(before)))]
    ask = ("--no-replace-objects", "rev-list", "--ignore-missing", "--stdin")
    made_here = repo.git.out(*ask, stdin="\n".join(revisions).encode()) if repo.head else b""
    if not made_here:
        return set(), 0
    paths = nul_split(
        repo.git.out(*_EACH, "-c", "-z", "--name-only", "--no-renames", stdin=made_here)
    )
    numstat = repo.git.out(*_EACH, "--numstat", "--no-renames", "--no-ext-diff", stdin=made_here)
    return set(paths), _sum_lines(numstat)


def _sum_lines(numstat: bytes) -> int:
    """Return the sum of all lines that `--numstat` names; a binary file has none."""
    lines = numstat.decode("utf-8", "replace").splitlines()
    counts = [field for line in lines for field in line.split("\t")[:2]]
    return sum(int(count) for count in counts if count.isdigit())


def others_in(git: Git) -> set[str]:
    """Return the files that an index does not have, whether git ignores them or not."""
    return set(git.names("ls-files", "-z", "--others"))


def hidden_files(staged: Staged, start: str, known: Collection[str]) -> list[str]:
    """Return the files that a run has made, and that git ignores by a rule that is new as well."""
    git = staged.git
    ignored = nul_ended(sorted(others_in(git).difference(known)))
    ask = ("--no-literal-pathspecs", "check-ignore", "-v", "-z", "--stdin", "--no-index")
    fields = nul_split(git.ask(*ask, stdin=ignored).stdout) if ignored else []
    hidden, rules = list[str](), dict[str, list[str]]()
    for source, pattern, path in zip(fields[::4], fields[2::4], fields[3::4], strict=True):
        if not source.endswith(".gitignore") or os.path.isabs(source):
            continue  # it is put back, or the user's own
        if source not in rules:
            before = git.ask("cat-file", "blob", f"{start}:{source}")
            rules[source] = os.fsdecode(before.stdout).splitlines()
        if pattern not in rules[source]:
            hidden.append(path)
    return hidden


def show_index(repo: Repo, staged: Staged) -> None:
    """Have the index of the worktree be what is committed, for gates and git's hooks."""
    index_abs = f"{repo.git_dir_abs}/index"
    keep_index(repo)  # of a run that was killed
    if os.path.exists(index_abs):
        copy_index(index_abs, f"{index_abs}{_ASIDE}")
    copy_index(staged.git.env["GIT_INDEX_FILE"], index_abs)


def put_index_back(repo: Repo) -> None:
    """Have it be what the agent has left: it may go on, and git restores files from there."""
    index_abs = f"{repo.git_dir_abs}/index"
    if os.path.exists(f"{index_abs}{_ASIDE}"):
        os.rename(f"{index_abs}{_ASIDE}", index_abs)
    else:
        remove_file(index_abs)


def keep_index(repo: Repo) -> None:
    """Have it stay as it is shown."""
    remove_file(f"{repo.git_dir_abs}/index{_ASIDE}")


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
    staged = stage(repo, index_abs, ())
    if not staged.tree:
        raise GitError(staged.problem)
    if staged.tree == repo.git.resolve("HEAD^{tree}"):
        return repo.head
    return commit_tree(repo, staged.tree, "Uncommitted changes of before a headless run")
