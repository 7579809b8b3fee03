"""Private checkouts: a commit, a tree or an index laid out in a folder of our own.

Laid out by git, so that filters, line endings, modes and links are as in any checkout; kept, so
that the next one writes only what differs. The user's files, index, refs and stash are not touched.
Why it is no linked worktree: docs/adr/0004-private-checkouts.md.
"""

from __future__ import annotations

import os

from gitgates.errors import GitError, StateError
from gitgates.git.checkout_links import make_links
from gitgates.git.checkout_repository import Look, make_repository
from gitgates.git.object_store import reading_git, storing_git
from gitgates.git.repo import Repo
from gitgates.git.settings import layout_settings
from gitgates.record import Record
from gitgates.store.slots import Slot, prune_slots, take_slot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.run import Git

_VERSION = 1
# Of the user's settings, those that would make git trust what it should look at, or write more.
_SETTINGS = (
    ("core.trustctime", "true"),
    ("core.checkStat", "default"),
    ("core.ignoreStat", "false"),
    ("core.splitIndex", "false"),
    ("core.untrackedCache", "false"),
    ("core.sparseCheckout", "false"),
    ("index.sparse", "false"),
    ("submodule.recurse", "false"),
)
# What names another repository, index or folder than the one that is meant.
_NOT_OURS = ("GIT_PREFIX", "GIT_IMPLICIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INTERNAL_SUPER_PREFIX")


class Content(Record):
    """What is to be laid out."""

    tree: str
    commit: str  # empty: only a tree


class Checkout:
    """A folder that holds exactly one tree, for this process alone until `close`.

    The repository in it is found from the folder, so gates need no variable of git's.
    """

    def __init__(self, slot: Slot, content: Content, shown: tuple[Repo, tuple[str, ...]]) -> None:
        self.root_abs = slot.folder_abs
        self.tree = content.tree
        self.commit = content.commit
        self.repo, self.notes = shown  # of its own repository; what a person should know
        self._slot = slot

    def __enter__(self) -> Checkout:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave the folder to the next run."""
        self._slot.release()
        prune_slots(os.path.dirname(self.root_abs))


def lay_out(repo: Repo, treeish: str, link: tuple[str, ...] = ()) -> Checkout:
    """Lay out a commit, tag or tree, and link what git ignores, such as `.venv`, into it.

    `link`: names relative to the root; linked where the user has them, git ignores them and the
    tree has nothing there.

    Raises: GitError where there is no such tree or git cannot lay it out, StateError where nothing
    can be written, LockError where far too many are in use.
    """
    content = _resolve(reading_git(repo), treeish)
    slot = take_slot(f"{repo.state_abs}/checkouts")
    try:
        slot.note_use()
        inside = _git_inside(repo, slot)
        submodules = _fill(slot, inside, (content.tree, layout_settings(repo)))
        linked, notes = make_links(repo.git, slot.folder_abs, link)
        if submodules:
            notes.append(f"submodules are left empty: {', '.join(submodules)}")
        look = Look(content.commit, slot.index_abs, linked)
        own = make_repository(slot.folder_abs, repo, look)
        return Checkout(slot, content, (own, tuple(notes)))
    except OSError as error:
        slot.release()
        raise StateError(
            f"{slot.folder_abs}: a private checkout cannot be made: {error.strerror}"
        ) from error
    except BaseException:
        slot.release()
        raise


def lay_out_index(repo: Repo, index_abs: str, link: tuple[str, ...] = ()) -> Checkout:
    """Lay out what would be committed from an index. That index is only read.

    Raises: as `lay_out`; GitError, too, where the index has conflicts.
    """
    return lay_out(repo, index_tree(repo, index_abs), link)


def index_tree(repo: Repo, index_abs: str) -> str:
    """Return the tree that would be committed from an index, stored in our own object folder.

    Raises: GitError where the index has conflicts; StateError where nothing can be stored.
    """
    # git keeps in the index what it found out about trees, so it is given a copy.
    from gitgates.git.index import copy_index

    copy_abs = f"{repo.state_abs}/index-{os.getpid()}"
    try:
        git = storing_git(repo).with_settings(_SETTINGS)
        if os.path.exists(index_abs):
            copy_index(index_abs, copy_abs)
        copied = git._replace(env={**git.env, "GIT_INDEX_FILE": copy_abs})
        return copied.out("write-tree").decode().strip()
    except OSError as error:
        raise StateError(f"{copy_abs}: cannot be written: {error.strerror}") from error
    finally:
        if os.path.lexists(copy_abs):
            os.unlink(copy_abs)


def _resolve(git: Git, treeish: str) -> Content:
    found = []
    for kind in ("tree", "commit"):
        name = f"{treeish}^{{{kind}}}"
        done = git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", name)
        found.append("" if done.exit_status else done.stdout.decode().split()[-1])
    if not found[0]:
        raise GitError(f"`{treeish}` is no commit and no tree here", "See: git log --oneline --all")
    return Content(*found)


def _git_inside(repo: Repo, slot: Slot) -> Git:
    """Return the user's git, filters and all, with our folder as its working tree."""
    env = {name: value for name, value in repo.env.items() if name not in _NOT_OURS}
    env |= {
        "GIT_DIR": repo.git_dir_abs,
        "GIT_WORK_TREE": slot.folder_abs,
        "GIT_INDEX_FILE": slot.index_abs,
    }
    git = reading_git(repo._replace(env=env)).with_settings(_SETTINGS)
    return git._replace(cwd_abs=slot.folder_abs)


def _fill(slot: Slot, git: Git, wanted: tuple[str, bytes]) -> tuple[str, ...]:
    """Make the folder hold the wanted tree and nothing else; return its submodules."""
    state = slot.state()
    if not (state and _can_update(slot, git, state, wanted) and _update(slot, git, wanted[0])):
        slot.empty()
        os.makedirs(slot.folder_abs, mode=0o700)
        _read_tree(git, wanted[0])
    submodules = _submodules(git)
    slot.end((_VERSION, *wanted, submodules))
    return submodules


def _can_update(slot: Slot, git: Git, state: tuple[object, ...], wanted: tuple[str, bytes]) -> bool:
    """Tell whether writing what differs gives the same as writing everything."""
    if len(state) != 4 or state[0] != _VERSION or state[2] != wanted[1]:  # noqa: PLR2004 - see `_fill`
        return False
    _version, tree, _settings, submodules = state
    if not isinstance(tree, str) or not isinstance(submodules, tuple):
        return False
    if any(_holds_something(os.path.join(slot.folder_abs, path)) for path in submodules):
        return False  # git cleans no submodule
    if tree == wanted[0]:
        return True
    # Other attributes: files that are the same to git are to be written in another way.
    done = git.ask("diff-tree", "-r", "-z", "--name-only", "--no-renames", tree, wanted[0])
    names = done.stdout.split(b"\0")
    return not done.exit_status and not any(
        name.rpartition(b"/")[2] == b".gitattributes" for name in names
    )


def _update(slot: Slot, git: Git, tree: str) -> bool:
    """Remove what gates left, and write what differs; False where git could not."""
    slot.begin()
    try:
        git.out("clean", "-ffdxq")
        _read_tree(git, tree)
    except (GitError, OSError):
        return False
    return True


def _read_tree(git: Git, tree: str) -> None:
    git.out(
        *("read-tree", "--reset", "-u", "--no-recurse-submodules", "--no-sparse-checkout"),
        tree,
    )


def _submodules(git: Git) -> tuple[str, ...]:
    listed = git.out("ls-files", "--stage", "-z").split(b"\0")
    links = [entry for entry in listed if entry.startswith(b"160000")]
    return tuple(os.fsdecode(entry.partition(b"\t")[2]) for entry in links)


def _holds_something(folder_abs: str) -> bool:
    try:
        return bool(os.listdir(folder_abs))
    except FileNotFoundError:
        return False
    except OSError:
        return True
