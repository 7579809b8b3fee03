"""Private checkouts: a commit, a tree or an index checked out into a private folder.

Laid out by git, so filters, line endings, modes and links are as in any checkout; kept, so
that the next one writes only what differs. The user's files, index, refs and stash are not touched.
Why it is no linked worktree: docs/adr/0004-private-checkouts.md.

The repository that gates find in it is complete to look at, and nobody else's. It borrows the
user's objects, and has a copy of the refs and settings: `git log`, `git diff main` and `git status`
answer as they would in the user's own working tree, and whatever a gate does (commit, stash, reset,
fetch) stays in there. Everything but the objects is written anew each time.
"""

from __future__ import annotations

import os
import stat

from gitgates.core.errors import GitError, StateError
from gitgates.git.index import SETTINGS, copy_index, write_tree
from gitgates.git.object_store import quoted, reading_git, sources
from gitgates.git.repo import Repo
from gitgates.store.files import make_folder, open_state, read_or_empty, remove_tree
from gitgates.store.slots import prune_slots, take_slot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.git.repo import Git
    from gitgates.store.slots import Slot

_SETTINGS = (*SETTINGS, ("core.sparseCheckout", "false"))
_LAYOUT = r"^(core\.(autocrlf|eol|symlinks|filemode|attributesfile)|filter\.)"
# What names another repository, index or folder than the one that is meant.
_NOT_OURS = ("GIT_PREFIX", "GIT_IMPLICIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INTERNAL_SUPER_PREFIX")
# Of its repository. Later than what is included, so that these hold.
_OWN_CONFIG = """\
[core]
	bare = false
	hooksPath = /dev/null
	fsmonitor = false
	splitIndex = false
	untrackedCache = false
	sparseCheckout = false
[submodule]
	recurse = false
[gc]
	auto = 0
[maintenance]
	auto = false
"""
# Of one worktree only, or not for a gate to find.
_NOT_COPIED = (b"refs/bisect/", b"refs/worktree/", b"refs/rewritten/", b"refs/stash")


class Checkout:
    """A folder that holds exactly one tree, leased to this process until `close`.

    The repository in it is found from the folder, so gates need no variable of git's.
    """

    def __init__(self, repo: Repo, slot: Slot, notes: list[str]) -> None:
        self.root_abs = slot.folder_abs
        self.repo = repo  # its own
        self.notes = tuple(notes)  # what a person should know
        self._slot = slot

    def __enter__(self) -> Checkout:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the folder."""
        self._slot.release()
        prune_slots(os.path.dirname(self.root_abs))


def check_out(repo: Repo, treeish: str, link: tuple[str, ...] = ()) -> Checkout:
    """Check out a commit, tag or tree, and link ignored folders such as `.venv` into it.

    `link`: names relative to the root; linked where the user has them, git ignores them and the
    tree has nothing there.

    Raises: GitError where there is no such tree or git cannot lay it out, StateError where nothing
    can be written, LockError where far too many are in use.
    """
    git = reading_git(repo)
    commit = git.resolve(f"{treeish}^{{commit}}")
    tree = git.resolve(f"{treeish}^{{tree}}")
    if not tree:
        raise GitError(
            f"`{treeish}` is neither a commit nor a tree", "See: git log --oneline --all"
        )
    slot = take_slot(f"{repo.state_abs}/checkouts")
    try:
        submodules = _populate(slot, _git_inside(repo, slot), tree, _checkout_settings(repo))
        linked, notes = _make_links(repo, slot.folder_abs, link)
        if submodules:
            notes.append(f"submodules are not checked out: {', '.join(submodules)}")
        private_repo = _make_repository(repo, slot, commit, linked)
        return Checkout(private_repo, slot, notes)
    except BaseException as error:
        slot.release()
        if isinstance(error, OSError):
            why = f"{slot.folder_abs}: a private checkout cannot be created: {error.strerror}"
            raise StateError(why) from error
        raise


def check_out_index(repo: Repo, index_abs: str, link: tuple[str, ...] = ()) -> Checkout:
    """Check out what would be committed from an index, which is only read.

    Raises: as `check_out`; GitError, too, where the index has conflicts.
    """
    try:
        tree = write_tree(repo, index_abs)
    except OSError as error:
        raise StateError(f"{repo.state_abs}: cannot be written: {error.strerror}") from error
    return check_out(repo, tree, link)


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


def _populate(slot: Slot, git: Git, tree: str, settings: bytes) -> list[str]:
    """Make the folder equal to a tree; return its submodules."""
    match slot.state():
        case (2, str(previous), bytes(used)) if used == settings and _update(
            slot, git, previous, tree
        ):
            pass
        case _:
            slot.empty()
            make_folder(slot.folder_abs, exist_ok=False)
            _read_tree(git, tree)
    entries = git.names("ls-files", "--stage", "-z")
    submodules = [entry.partition("\t")[2] for entry in entries if entry.startswith("160000")]
    if not submodules:  # which git does not clean
        slot.end(2, tree, settings)  # 2: the version of this
    return submodules


def _update(slot: Slot, git: Git, previous_tree: str, tree: str) -> bool:
    """Remove what gates left, and write what differs; False if everything is to be written."""
    differs = git.ask("diff-tree", "-r", "-z", "--name-only", "--no-renames", previous_tree, tree)
    names = {name.rpartition(b"/")[2] for name in differs.stdout.split(b"\0")}
    # Other attributes: files that are the same to git are to be written in another way.
    if differs.exit_status or b".gitattributes" in names:
        return False
    slot.begin()
    try:
        git.out("clean", "-ffdxq")
        _read_tree(git, tree)
    except (GitError, OSError):
        return False
    return True


def _read_tree(git: Git, tree: str) -> None:
    alone = ("--no-recurse-submodules", "--no-sparse-checkout")
    git.out("read-tree", "--reset", "-u", *alone, tree)


def _checkout_settings(repo: Repo) -> bytes:
    """Return all settings that decide how git writes a file, as an opaque key."""
    git = repo.git
    # Exit status 1: nothing is set.
    settings = git.ask("config", "-z", "--get-regexp", _LAYOUT).stdout
    # The user's own attributes. Source: gitattributes(5).
    configured = git.ask("config", "--type=path", "--get", "core.attributesFile")
    config_abs = repo.env.get("XDG_CONFIG_HOME", "") or f"{repo.env.get('HOME', '')}/.config"
    usual = f"{config_abs}/git/attributes"
    attributes_file = (
        usual if configured.exit_status else os.fsdecode(configured.stdout).rstrip("\n")
    )
    files = (f"{repo.common_dir_abs}/info/attributes", os.path.join(repo.root_abs, attributes_file))
    return b"\0\0".join((settings, *map(read_or_empty, files)))


def _make_links(repo: Repo, folder_abs: str, names: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Link `names` of the user's root into `folder_abs`; return those linked, and messages.

    `names` are relative to the root. One that the user does not have is passed over in silence;
    one that git does not ignore, or that the tree has itself, is not linked, and that is said. A
    folder that ignores itself, by a `.gitignore` of its own, counts: uv and venv write such ones.

    Raises: OSError where nothing can be written.
    """
    linked: list[str] = []
    notes: list[str] = []
    plain = dict.fromkeys(os.path.normpath(name.strip("/")) for name in names)
    present = [name for name in plain if os.path.lexists(os.path.join(repo.root_abs, name))]
    # A name that leads out of the root is ignored by nobody.
    inside = [name for name in present if name != "." and name.split("/")[0] != ".."]
    ignored = set(repo.git.ignored(inside)) if inside else set()
    ignored |= _ignoring_themselves(repo, [name for name in inside if name not in ignored])
    for name in present:
        if name not in ignored:
            notes.append(f"`{name}` is not linked: git does not ignore it")
        elif _link(repo.root_abs, folder_abs, name):
            linked.append(name)
        else:
            notes.append(f"`{name}` is not linked: that path exists in the checked content")
    return linked, notes


def _ignoring_themselves(repo: Repo, names: list[str]) -> set[str]:
    """Return which folders have a `.gitignore` of their own that ignores any new file in them."""
    # Git refuses to look beyond a symbolic link.
    folders = [name for name in names if os.path.isfile(f"{repo.root_abs}/{name}/.gitignore")]
    folders = [name for name in folders if not os.path.islink(f"{repo.root_abs}/{name}")]
    ignored = repo.git.ignored(f"{name}/any" for name in folders)
    return {name.rpartition("/")[0] for name in ignored}


def _link(source_abs: str, root_abs: str, name: str) -> bool:
    """Create one link; False if the path is taken, or its folder is missing."""
    folder_abs = root_abs
    for part in name.split("/")[:-1]:
        folder_abs = os.path.join(folder_abs, part)
        if not os.path.lexists(folder_abs):
            os.mkdir(folder_abs)
        elif not stat.S_ISDIR(os.lstat(folder_abs).st_mode):
            return False
    try:
        os.symlink(os.path.join(source_abs, name), os.path.join(root_abs, name))
    except FileExistsError:
        return False
    return True


def _make_repository(repo: Repo, slot: Slot, commit: str, ignored: list[str]) -> Repo:
    """Create or replace the repository of a private checkout.

    `commit`: what HEAD is; empty: what it is for the user. `ignored`: names of links in it.

    Raises: GitError where git does not tell what it needs; OSError where it cannot be written.
    """
    git = repo.git
    git_dir_abs = f"{slot.folder_abs}/.git"
    if os.path.isdir(git_dir_abs) and not os.path.islink(git_dir_abs):
        remove_tree(git_dir_abs)
    elif os.path.lexists(git_dir_abs):
        os.unlink(git_dir_abs)
    for folder in ("objects/info", "refs/heads", "refs/tags", "info"):
        os.makedirs(f"{git_dir_abs}/{folder}")
    texts = {
        "objects/info/alternates": _lines(sources(repo)),
        "packed-refs": _refs(git),
        "config": _config(repo),
        "info/exclude": _exclude(repo, ignored),
        "info/attributes": read_or_empty(f"{repo.common_dir_abs}/info/attributes"),
        "info/grafts": read_or_empty(f"{repo.common_dir_abs}/info/grafts"),
        "shallow": read_or_empty(f"{repo.common_dir_abs}/shallow"),
    }
    for name, text in texts.items():
        if text:
            _write(f"{git_dir_abs}/{name}", text)
    copy_index(slot.index_abs, f"{git_dir_abs}/index")
    # Last: without it, this is not a repository.
    _write(f"{git_dir_abs}/HEAD", _lines([_head(git, commit)]))
    return Repo(slot.folder_abs, git_dir_abs, git_dir_abs, repo.env)


def _head(git: Git, commit: str) -> str:
    """Return HEAD: as the user's, branch and all, unless another commit is laid out."""
    current = git.resolve("HEAD")
    if commit and commit != current:
        return commit
    branch = os.fsdecode(git.ask("symbolic-ref", "--quiet", "HEAD").stdout).rstrip("\n")
    return f"ref: {branch}" if branch else current


def _refs(git: Git) -> bytes:
    refs = git.ask("for-each-ref", "--format=%(objectname) %(refname)").stdout
    copied = [
        line for line in refs.splitlines() if not line.partition(b" ")[2].startswith(_NOT_COPIED)
    ]
    return b"".join(line + b"\n" for line in copied)


def _config(repo: Repo) -> bytes:
    """Return the settings: the user's by inclusion, so filters and remotes are the same."""
    form = repo.object_format
    if form == "sha1":
        head = "[core]\n\trepositoryformatversion = 0\n"
    else:
        head = f"[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = {form}\n"
    included = [f"{repo.common_dir_abs}/config", f"{repo.git_dir_abs}/config.worktree"]
    paths = "".join(f"\tpath = {quoted(path)}\n" for path in included if os.path.exists(path))
    return os.fsencode(f"{head}[include]\n{paths}{_OWN_CONFIG}")


def _exclude(repo: Repo, ignored: list[str]) -> bytes:
    """Return what is ignored: `.venv/` in the user's rules does not mean a link of that name."""
    escaped = ("".join(f"\\{c}" if c in "*?[\\ " else c for c in name) for name in ignored)
    lines = [f"/{name}" for name in escaped]
    return read_or_empty(f"{repo.common_dir_abs}/info/exclude") + b"\n" + _lines(lines)


def _lines(lines: list[str]) -> bytes:
    return b"".join(os.fsencode(line) + b"\n" for line in lines)


def _write(path_abs: str, text: bytes) -> None:
    with open(path_abs, "wb", opener=open_state) as file:
        file.write(text)
