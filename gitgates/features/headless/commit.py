"""What a run has changed: as a tree, as commits, and kept under a ref if it has failed.

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

    from gitgates.features.headless.run_state import RunState
    from gitgates.git.repo import Git, Repo

FAILED_REFS = "refs/gitgates/failed"
_NAMES = ("diff-tree", "-r", "-z", "--name-only", "--no-renames")
_EACH = (
    *("--no-replace-objects", "log", "--stdin", "--ignore-missing", "--format=", "--root", "-c"),
    *("-z", "--name-only", "--no-renames", "--no-show-signature"),
)
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
        """Return how many lines were added and removed since a commit; of a binary file, none."""
        ask = ("diff", "--numstat", "--no-ext-diff", "--no-renames")
        lines = self.git.out(*ask, commit, self.tree).decode("utf-8", "replace").splitlines()
        counts = [field for line in lines for field in line.split("\t")[:2]]
        return sum(int(count) for count in counts if count.isdigit())


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


def paths_in_commits(repo: Repo, before: Iterable[str]) -> set[str]:
    """Return the paths that the commits of HEAD changed one by one, but not those of `before`.

    Of a merge, those that no parent has so. Raises: GitError.
    """
    revisions = "\n".join([repo.head, *(f"^{commit}" for commit in sorted(set(before)))])
    return set(repo.git.names(*_EACH, stdin=revisions.encode())) if repo.head else set()


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
    copy_index(staged.git.env["GIT_INDEX_FILE"], f"{repo.git_dir_abs}/index")


def hide_index(repo: Repo) -> None:
    """Have it be that of HEAD: the agent goes on, and git restores files from there."""
    repo.git.out("read-tree", *(("--reset", repo.head) if repo.head else ("--empty",)))


def is_of(git: Git, tip: str, run: str) -> bool:
    """Return whether a commit is the one of a run."""
    message = git.out("log", "-1", "--format=%B", tip).decode("utf-8", "replace")
    return f"Gitgates-Run: {run}" in message.splitlines()


def commit_tree(repo: Repo, tree: str, message: str, *parents: str) -> str:
    """Commit a tree without hooks; return the commit, which is on no branch."""
    options = [word for parent in dict.fromkeys(parents) for word in ("-p", parent)]
    content = message.encode("utf-8", "replace")
    return repo.git.out("commit-tree", tree, *options, stdin=content).decode().strip()


def keep_failed(repo: Repo, staged: Staged, state: RunState) -> str:
    """Commit the agent's work under a ref of ours; return the ref, empty if nothing changed.

    It has the commits of HEAD and of the branch of the run. Raises: GitError.
    """
    tips = [tip for tip in (repo.head, repo.git.resolve(state.ref or "HEAD")) if tip]
    if {*tips} <= {state.start} and not staged.paths_since(state.start):
        return ""
    message = f"Work of the failed headless run {state.run}"
    commit = commit_tree(repo, staged.tree, message, *tips)
    ref = f"{FAILED_REFS}/{state.run}"
    remove_file(f"{repo.common_dir_abs}/{ref}.lock")  # of a git that was killed; no other has it
    repo.git.out("update-ref", ref, commit)
    return ref


def commit_uncommitted(repo: Repo, folder_abs: str) -> str:
    """Commit the state of a working tree, and return that; index, tree and refs stay as they are.

    HEAD, if nothing differs from it. Raises: GitError.
    """
    index_abs = f"{folder_abs}/uncommitted.index"
    if os.path.exists(f"{repo.git_dir_abs}/index"):
        copy_index(f"{repo.git_dir_abs}/index", index_abs)
    staged = stage(repo, index_abs, ())
    if not staged.tree:
        raise GitError(staged.problem)
    if staged.tree == repo.git.resolve("HEAD^{tree}"):
        return repo.head
    return commit_tree(repo, staged.tree, "Uncommitted changes of before a headless run", repo.head)
