"""Where a run works, and what it makes there: a tree, then commits, which are kept if it fails.

It works in a linked worktree, outside the working tree and `.git`. The working tree that started it
is not written before the run has passed, and then only by git, as far as git can do so without
touching local changes; in_place.py has the other way. The index is our own, so nothing that the
agent sets in its index, such as `--assume-unchanged`, hides a file.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from gitgates.core.clean import first_few
from gitgates.core.errors import GitError, StateError
from gitgates.core.record import Record
from gitgates.features.headless import run_state
from gitgates.features.headless.turn import run_git
from gitgates.files.facts import stats_of
from gitgates.git.checkout import env_in
from gitgates.git.index import SETTINGS, copy_index, update_index
from gitgates.git.repo import find_repo, nul_ended, nul_split
from gitgates.store.files import make_folder, remove_file, remove_tree, replace_file
from gitgates.worktree.cache import cache_folder
from gitgates.worktree.locks import Lock
from gitgates.worktree.setup import set_up

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from gitgates.features.headless.run_state import RunState
    from gitgates.git.repo import Git, Repo
    from gitgates.worktree.setup import WorktreeSettings

BRANCHES = "gitgates/"  # prefix of the branches that nobody has named
MOST_NAMED = 10
_LOCK_S = 60.0  # after that, git runs without the lock
FAILED_REFS = "refs/gitgates/failed"
_NAMES = ("diff-tree", "-r", "-z", "--name-only", "--no-renames")
_EACH = (
    *("--no-replace-objects", "log", "--stdin", "--ignore-missing", "--format=", "--root", "-c"),
    *("-z", "--name-only", "--no-renames", "--no-show-signature"),
)
_LINK = "160000"  # mode of a tree's entry for another repository's commit


class Staged(Record):
    """What a run has made, as a tree: what gates check and what is committed."""

    git: Git  # with our index as GIT_INDEX_FILE
    head: str  # the commit that it differs from; before the first commit, the empty tree
    tree: str = ""
    problem: str = ""  # why git cannot hold all of it

    def paths_since(self, commit: str) -> set[str]:
        """Return the paths that differ from a commit, or from a tree."""
        return set(self.git.names(*_NAMES, commit, self.tree))

    def lines_since(self, commit: str) -> int:
        """Return how many lines were added and removed since a commit; binary files have none."""
        ask = ("diff", "--numstat", "--no-ext-diff", "--no-renames", commit, self.tree)
        counts = [field for line in self.git.lines(*ask) for field in line.split("\t")[:2]]
        return sum(int(count) for count in counts if count.isdigit())


def stage(repo: Repo, index_abs: str, known: Collection[str] = ()) -> Staged:
    """Stage what is in the working tree, except for ignored files and `known` ones.

    Something that git cannot hold, such as a nested repository, is a `problem`.
    """
    git = git_with(repo, index_abs)
    head = repo.head or git.out("hash-object", "-t", "tree", "--stdin").decode().strip()
    try:
        git.out("read-tree", "--reset", head)
        git.out("add", "-u")
        others = git.names("ls-files", "-z", "--others", "--exclude-standard")
        others = [path for path in others if path not in known]
        update_index(git, [path for path in others if not path.endswith("/")], "--add", "--replace")
        tree = git.out("write-tree").decode().strip()
        new = nul_split(git.out("diff-index", "--cached", "--raw", "-z", "--no-renames", head))
    except GitError as error:
        return Staged(git, head, problem=error.message)
    inner = [path for path in others if path.endswith("/")]
    metas = zip(new[::2], new[1::2], strict=False)
    inner += [path for meta, path in metas if meta.split(" ")[1] == _LINK]
    problem = f"a nested repository, which it cannot hold: {', '.join(inner)}" if inner else ""
    return Staged(git, head, tree, problem)


def git_with(repo: Repo, index_abs: str) -> Git:
    """Return git with another index, nothing of which it trusts unchecked."""
    git = repo.git._replace(env={**repo.env, "GIT_INDEX_FILE": index_abs})
    return git.with_settings((*SETTINGS, ("core.safecrlf", "false")))


def paths_in_commits(repo: Repo, before: Iterable[str]) -> set[str]:
    """Return all paths that any commit of HEAD changed, except for commits in `before`.

    For a merge, the paths that differ from every parent. Raises: GitError.
    """
    revisions = "\n".join([repo.head, *(f"^{commit}" for commit in sorted(set(before)))])
    return set(repo.git.names(*_EACH, stdin=revisions.encode())) if repo.head else set()


def others_in(git: Git) -> set[str]:
    """Return the files that are not in an index, ignored ones included."""
    return set(git.names("ls-files", "-z", "--others"))


def hidden_files(staged: Staged, start: str, known: Collection[str]) -> list[str]:
    """Return the files that a run has made and that git ignores by a rule that is also new."""
    git, hidden, rules = staged.git, list[str](), dict[str, list[str]]()
    ask = ("--no-literal-pathspecs", "check-ignore", "-v", "-z", "--stdin", "--no-index")
    fields = nul_split(git.ask(*ask, stdin=nul_ended(others_in(git).difference(known))).stdout)
    for source, pattern, path in zip(fields[::4], fields[2::4], fields[3::4], strict=True):
        if os.path.isabs(source) or not source.endswith(".gitignore"):
            continue  # such rules are put back, or are the user's own
        if source not in rules:
            before = git.ask("cat-file", "blob", f"{start}:{source}")
            rules[source] = os.fsdecode(before.stdout).splitlines()
        if pattern not in rules[source]:
            hidden.append(path)
    return sorted(hidden)


def is_of(git: Git, tip: str, run: str) -> bool:
    """Return whether a run made a commit."""
    message = git.out("log", "-1", "--format=%B", tip).decode("utf-8", "replace")
    return f"Gitgates-Run: {run}" in message.splitlines()


def commit_tree(repo: Repo, tree: str, message: str, *parents: str) -> str:
    """Commit a tree without hooks; return the commit, which is on no branch."""
    options = [word for parent in dict.fromkeys(parents) for word in ("-p", parent)]
    return repo.git.out("commit-tree", tree, *options, "-m", message).decode().strip()


def commit_uncommitted(repo: Repo, index_abs: str) -> str:
    """Commit a working tree's state and return the commit; index, tree and refs do not change.

    Returns HEAD if nothing differs from it. Raises: GitError.
    """
    staged = stage(repo, index_abs)
    if not staged.tree:
        raise GitError(staged.problem)
    if not staged.paths_since(repo.head):
        return repo.head
    return commit_tree(
        repo, staged.tree, "Uncommitted changes from before a headless run", repo.head
    )


class Ground:
    """A linked worktree for one run, on its own branch."""

    def __init__(self, home: Repo, state: RunState) -> None:
        self.home, self.state = home, state
        self.repo = self.opened() or home
        self.index_abs = f"{run_state.folder_of(home, state.run)}/index"
        self.known: Mapping[str, object] = {}  # files that are not the run's → their stat
        self.note_known(state.known)

    @property
    def git_dir_abs(self) -> str:
        """The git folder of the worktree, whose name is unique."""
        return f"{self.home.common_dir_abs}/worktrees/{os.path.basename(self.state.root_abs)}"

    def opened(self) -> Repo | None:
        """Return the worktree; None if git had not finished making it, or it is gone.

        Resets its `.git` file: an agent may have made its own repository there.
        """
        folder_abs, git_dir_abs = self.state.root_abs, self.git_dir_abs
        dot_git = f"{folder_abs}/.git"
        if not os.path.isdir(folder_abs) or not os.path.isfile(f"{git_dir_abs}/HEAD"):
            return None
        if os.path.isdir(dot_git) and not os.path.islink(dot_git):
            os.rename(dot_git, f"{git_dir_abs}/replaced-{len(os.listdir(git_dir_abs))}")
        replace_file(dot_git, f"gitdir: {git_dir_abs}\n".encode(), mode=0o644, sync=False)
        return find_repo(folder_abs, env_in(folder_abs, self.home))

    def make(self, settings: WorktreeSettings, say: Callable[[str], None]) -> None:
        """Add the worktree, and install what gates need there."""
        home, state, folder_abs = self.home, self.state, self.state.root_abs
        with _worktrees_lock(home):
            make_folder(os.path.dirname(folder_abs))
            how = ("-q", "--no-track", "-b", state.branch)
            home.git.out("worktree", "add", *how, folder_abs, state.start)
        self.repo = self.opened() or home
        log_abs = f"{run_state.folder_of(home, state.run)}/setup.log"
        set_up(settings, self.repo, home, log_abs=log_abs, say=say)
        self.begin()

    def begin(self, point: str = "") -> None:
        """Record what exists before the agent works, because it is not the run's."""
        copy_index(f"{self.git_dir_abs}/index", self.index_abs)
        self.note_known(others_in(git_with(self.repo, self.index_abs)))
        self.state = self.state._replace(known=sorted(self.known), point=point)
        run_state.write(self.home, self.state)

    # What the run has made

    def stage(self) -> Staged:
        """Stage the run's work. Raises: StateError if the agent removed our state; GitError."""
        if not run_state.is_there(self.home, self.state.run):
            raise StateError(f"{os.path.dirname(self.index_abs)}: was removed during the run")
        if self.opened() is None:
            raise GitError(f"{self.state.root_abs}: is no longer a worktree of the repository")
        for name in (f"{self.index_abs}.lock", f"{self.git_dir_abs}/index.lock"):
            remove_file(name)  # left by a git that ended with its turn
        return stage(self.repo, self.index_abs, self.known)

    def note_known(self, paths: Iterable[str]) -> None:
        """Count more files as not the run's, and record how all of them are now."""
        self.known = stats_of(self.repo.root_abs, {*self.known, *paths})

    def changed_others(self, staged: Staged) -> set[str]:
        """Return the files that the run has changed and that are not staged, such as ignored ones.

        They may be gone.
        """
        now = stats_of(self.repo.root_abs, others_in(staged.git) | self.known.keys())
        return {path for path in now.keys() | self.known if now.get(path) != self.known.get(path)}

    def hidden_note(self, staged: Staged) -> list[str]:
        """Return a note on files that the run's own ignore rules keep out of the commit."""
        hidden = hidden_files(staged, self.state.start, self.known)
        what = "not committed, because of ignore rules that the run has added"
        return [f"{what}: {first_few(hidden, MOST_NAMED)}"] if hidden else []

    def show_index(self, staged: Staged) -> None:
        """Make the worktree's index what will be committed, for gates and git's hooks."""
        copy_index(staged.git.env["GIT_INDEX_FILE"], f"{self.git_dir_abs}/index")

    def hide_index(self) -> None:
        """Reset the worktree's index to HEAD: the agent goes on, and git restores files from it."""
        head = self.repo.head
        self.repo.git.out("read-tree", *(("--reset", head) if head else ("--empty",)))

    def put_back(self) -> list[str]:
        """Put back what the run changed of what it shares with others; return notes."""
        return run_state.put_back(self.home, self.state, self.git_dir_abs)

    # Its end

    def take(self, log_abs: str, on_tick: Callable[[], None]) -> list[str]:
        """Merge the commit into the branch that is checked out at home; return notes.

        The worktree is removed; so is its branch, if it was ours and was merged.
        """
        home, state, branch, tip = self.home, self.state, self.state.branch, self.repo.head
        is_ours, why = branch.startswith(BRANCHES), ""
        if is_ours and (head_ref(home), home.head) != (state.home_ref, state.home_head):
            why = "HEAD is no longer where it was"
        elif is_ours:
            how = ("-q", "--ff-only", "--no-autostash", "--no-overwrite-ignore", state.ref)
            why = run_git(home, "merge", *how, log_abs=log_abs, on_tick=on_tick)
        self._remove()
        if why:
            # If it began with uncommitted changes, they would block a merge that contains them.
            is_in_the_way = home.git.resolve(f"{state.start}^") == state.home_head
            merge = f"{'git stash -u && ' if is_in_the_way else ''}git merge {branch}"
            return [f"the commit is on branch {branch}: {why}; to merge it: {merge}"]
        if is_ours:
            home.git.ask("update-ref", "-d", state.ref, tip)
        return []

    def leave(self) -> tuple[str, list[str]]:
        """Keep the work of a run that has not passed under a ref, and remove the rest.

        Returns the ref, if there is any work, and notes. The worktree stays if git could not hold
        all of it. Can be repeated. Raises: GitError, StateError, OSError.
        """
        ref, problem = self.keep()
        if problem:
            return ref, [f"not all of it could be committed: {problem}", self.left_note()]
        self._remove()
        self.home.git.ask("update-ref", "-d", self.state.ref)
        return ref, []

    def settle(self) -> tuple[str, list[str]]:
        """Do the same after a kill or a signal, but keep the branch of a run that had passed."""
        state, git = self.state, self.home.git
        tip = git.resolve(state.ref)
        if tip in ("", state.start) or not is_of(git, tip, state.run):
            return self.leave()
        self._remove()
        return "", [f"it had passed; its commit is on {state.branch}: git merge {state.branch}"]

    def keep(self) -> tuple[str, str]:
        """Keep all work under a ref, with the commits of HEAD and of the run's branch.

        Returns the ref, empty if nothing has changed, and what git could not hold.
        """
        git, state, problem = self.home.git, self.state, ""
        ref = f"{FAILED_REFS}/{state.run}"
        is_there = self.opened() is not None  # else it was never finished, or is already removed
        tip = (not is_there and git.resolve(ref)) or git.resolve(state.ref or "HEAD")
        try:
            if is_there:
                staged = self.stage()
                tips, problem = {self.repo.head, tip} - {""}, staged.problem
                if staged.tree and (tips - {state.start} or staged.paths_since(state.start)):
                    message = f"Work of the failed headless run {state.run}"
                    tip = commit_tree(self.repo, staged.tree, message, *sorted(tips))
            if tip in ("", state.start):
                return "", problem
            # A killed git left it; no other git uses this ref.
            remove_file(f"{self.home.common_dir_abs}/{ref}.lock")
            git.out("update-ref", ref, tip)
        except GitError as error:
            return "", error.message
        return ref, problem

    def left_note(self) -> str:
        """Return a note on how to remove a worktree that stays."""
        folder_abs = self.state.root_abs
        return f"{folder_abs} was kept; to remove it: git worktree remove --force {folder_abs}"

    def _remove(self) -> None:
        """Remove the worktree with everything in it. Raises: OSError.

        Without git, which removes no folder that it cannot read as a worktree.
        """
        with _worktrees_lock(self.home):
            for path_abs in (self.state.root_abs, self.git_dir_abs):
                if os.path.lexists(path_abs):
                    remove_tree(path_abs)

    def close(self) -> None:
        """Release the held objects, and forget the run."""
        run_state.let_go(self.home, self.state.run)
        run_state.forget(self.home, self.state.run)


def folder_for(repo: Repo, run: str) -> str:
    """Return where a run's worktree belongs. Raises: StateError."""
    return f"{cache_folder(repo)}/headless/{run}"


@contextmanager
def _worktrees_lock(repo: Repo) -> Iterator[None]:
    """Hold the lock for adding and removing linked worktrees of a repository.

    While git adds or removes one, other git commands that list all worktrees can fail: "failed to
    read .git/worktrees/NAME/commondir". Raises: StateError for any OSError.
    """
    lock = Lock(f"{repo.shared_state_abs}/worktrees")
    try:
        lock.acquire(alone=True, wait_s=_LOCK_S)
        yield
    except OSError as error:
        what = f"{error.filename}: cannot be changed: {error.strerror}"
        raise StateError(
            what, "The variable XDG_CACHE_HOME sets the folder for worktrees."
        ) from error
    finally:
        lock.release()


def head_ref(repo: Repo) -> str:
    """Return the ref that HEAD names; empty if it is detached."""
    return os.fsdecode(repo.git.ask("symbolic-ref", "-q", "HEAD").stdout).strip()
