"""What git keeps beside the files of a worktree: the index, HEAD, branches, the stash.

files.kept   of one worktree: what this was based on, and what was held then

The user's repository may lose the objects: `git reset`, `reflog expire` and `gc --prune=now` in one
line remove what no ref names. So they are held by links to its files, which cost nothing.
If there can be no links, new commits are copied. `refs/held/WORKTREE` names what points name, so
that pruning keeps it.
"""

from __future__ import annotations

import os
import time

from gitgates.core.record import Record
from gitgates.files.facts import identity
from gitgates.git.index import cached_tree, copy_index
from gitgates.git.repo import nul_split
from gitgates.store.files import (
    make_folder,
    read_cached,
    read_or_empty,
    remove_file,
    replace_cached,
    replace_file,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gitgates.files.memory import Memory
    from gitgates.git.repo import Repo

_VERSION = 3
# What git keeps of a command that waits to be continued. Source: refs.c, sequencer.c.
WAITING = (
    *("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "SQUASH_MSG"),
    *("rebase-merge", "rebase-apply", "sequencer"),
)
_OF_REFS = ("packed-refs", "refs/stash", "logs/refs/stash", "reftable/tables.list", "shallow")
_LARGEST = 1 << 16  # bytes of one such file


class State(Record):
    """What a worktree held at one moment, beside the content of its files."""

    head: str = ""
    branch: str = ""  # the ref that HEAD names; empty if it is detached
    refs: Mapping[str, str] = {}  # branch → commit
    stash: tuple[tuple[str, str], ...] = ()  # commit and message of each entry, the newest first
    index_blob: str = ""  # with the bytes of the index; empty: there is none
    entries: str = ""  # a digest of what it has, without what `lstat` said
    staged: str = ""  # a tree with the objects that it names; empty: none
    waiting: Mapping[str, str] = {}  # file of a command that waits to be continued → content
    # What a look has found:
    umask: int = 0o022
    modes: Mapping[str, int] = {}  # path → permissions that are not those of the umask
    folders: Mapping[str, int] = {}  # the same of folders
    owners: Mapping[str, tuple[int, int]] = {}  # path → user, group: not those of the root
    left_out: Mapping[str, str] = {}  # path → why it is in no tree; ignored files included
    unseen: tuple[str, ...] = ()  # why the same trees may have different content


def read_git_state(memory: Memory) -> State:
    """Return git's part of the state, and hold what it names.

    Raises: GitError, TimeOver, OSError.
    """
    cache_abs = f"{memory.repo.state_abs}/files.kept"
    cached = read_cached(cache_abs)
    key = _VERSION, memory.identity()
    is_known = isinstance(cached, tuple) and cached[:2] == key
    files, plain, linked, held = cached[2:] if is_known else ((), (), {}, [])
    now = _git_files(memory.repo)
    if plain and now == files:
        return State(*plain)
    all_linked = link_objects(memory, linked)
    state = _read(memory, State(*plain) if plain else State())
    tips = [state.head, *state.refs.values(), *(commit for commit, _message in state.stash)]
    new = [tip for tip in dict.fromkeys(tips) if tip and tip not in held]
    if new:
        hold_commits(memory, new, copied=not all_linked)
    replace_cached(
        cache_abs, (*key, now, tuple(state), linked, list({*tips, *held} - {""})), sync=False
    )
    return state


def _read(memory: Memory, before: State) -> State:
    repo, git = memory.repo, memory.users_git()
    # Of these, HEAD has no commit before the first, and names nothing if it is detached.
    name, commit, heads, log = git.ask_all(
        ("symbolic-ref", "--quiet", "HEAD"),
        ("rev-parse", "--verify", "--quiet", "HEAD"),
        ("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/stash"),
        ("log", "--walk-reflogs", "-z", "--format=%H %gs", "refs/stash", "--"),
    )
    lines = os.fsdecode(heads.stdout).split("\n")[:-1]
    refs = {ref: tip for ref, _, tip in (line.rpartition(" ") for line in lines)}
    entries = [entry.partition(" ") for entry in nul_split(log.stdout)]
    if (tip := refs.pop("refs/stash", "")) and not entries:
        entries = [(tip, "", "")]  # its log may have been expired
    state = before._replace(
        head=commit.stdout.decode().strip(),
        branch=os.fsdecode(name.stdout).strip(),
        refs=refs,
        stash=tuple((stashed, message) for stashed, _, message in entries),
        waiting=read_waiting(repo.git_dir_abs),
    )
    index_abs = f"{repo.git_dir_abs}/index"
    if not os.path.exists(index_abs):
        return state._replace(index_blob="", entries="", staged="")
    import hashlib  # only if something has changed

    listing = git.out("ls-files", "-z", "--stage", "-v")
    digest = hashlib.sha256(listing).hexdigest()[:40]
    if digest == before.entries and before.index_blob:
        return state  # `git status` writes one with the same entries
    with open(index_abs, "rb") as file:
        content = file.read()
    staged = _staged(memory, content, listing)
    return state._replace(index_blob=memory.write("blob", content), entries=digest, staged=staged)


def read_waiting(git_dir_abs: str) -> dict[str, str]:
    """Return file → content, for an unfinished git command."""
    waiting = dict[str, str]()
    for name in WAITING:
        to_visit = [name]
        while to_visit:
            place = to_visit.pop()
            path_abs = f"{git_dir_abs}/{place}"
            if os.path.isdir(path_abs):
                to_visit += sorted(f"{place}/{each}" for each in os.listdir(path_abs))
            elif os.path.isfile(path_abs) and os.path.getsize(path_abs) <= _LARGEST:
                waiting[place] = os.fsdecode(read_or_empty(path_abs))
    return waiting


def _staged(memory: Memory, index: bytes, listing: bytes) -> str:
    """Return a tree that names all objects of the index."""
    stage = len("H 100644 ") + len(memory.nothing) + 1
    entries = listing.split(b"\0")[:-1]
    unmerged = [entry.split(b" ") for entry in entries if entry[stage : stage + 1] != b"0"]
    if unmerged:
        # Those in conflict are in no tree: each by its own name, beside no others.
        blobs = {fields[2].decode() for fields in unmerged}
        return memory.write_tree([("100644", blob, blob) for blob in sorted(blobs)])
    if tree := cached_tree(index):
        return tree
    copy_abs = f"{memory.repo.state_abs}/files.index.{os.getpid()}"
    try:
        copy_index(f"{memory.repo.git_dir_abs}/index", copy_abs)
        written = memory.users_git(copy_abs).ask("write-tree")
        return "" if written.exit_status else written.stdout.decode().strip()
    finally:
        remove_file(copy_abs)


def _git_files(repo: Repo) -> tuple[tuple[object, ...], ...]:
    """Return what `stat` says about the files behind `State`."""
    common_abs, git_dir_abs = repo.common_dir_abs, repo.git_dir_abs
    places = [f"{git_dir_abs}/{name}" for name in ("index", "HEAD", *WAITING)]
    places += [f"{common_abs}/{name}" for name in _OF_REFS]
    folders = [f"{common_abs}/refs/heads"]
    for folder_abs in folders:  # grows during the iteration
        try:
            for entry in os.scandir(folder_abs):
                (folders if entry.is_dir(follow_symlinks=False) else places).append(entry.path)
        except OSError:
            continue
    return tuple((place, *identity(place)) for place in sorted(places))


_SETTLED_NS = 2_000_000_000
_ATTEMPTS = 20  # a `gc` removes folder after folder
_OF_PACKS = (".pack", ".rev", ".promisor", ".mtimes", ".idx")
_PREFIX = 2  # of an id: the name of a folder with loose objects
_HEX = frozenset("0123456789abcdef")


def link_objects(memory: Memory, linked_mtimes: dict[str, int]) -> bool:
    """Link what the user's object folder has and ours lacks; return whether that was possible.

    `linked_mtimes` is folder → mtime when it was looked at last; it is brought up to date.

    Raises: OSError, FileNotFoundError if a `gc` beside it does not end.
    """
    for _attempt in range(_ATTEMPTS):
        try:
            return _link_all(memory, linked_mtimes)
        except FileNotFoundError:  # packed just now; that pack may have been missed
            continue
    return _link_all(memory, linked_mtimes)


def _link_all(memory: Memory, linked_mtimes: dict[str, int]) -> bool:
    users_abs, own_abs = memory.users_objects_abs, f"{memory.folder_abs}/objects"
    began_ns, all_linked = time.time_ns(), True
    for entry in os.scandir(users_abs):
        is_loose = len(entry.name) == _PREFIX and _HEX.issuperset(entry.name)
        if not (is_loose or entry.name == "pack"):
            continue
        mtime_ns = os.stat(entry.path).st_mtime_ns
        if linked_mtimes.get(entry.name) == mtime_ns:
            continue
        make_folder(f"{own_abs}/{entry.name}")
        names = (
            list(filter(_HEX.issuperset, os.listdir(entry.path)))
            if is_loose
            else _packs(entry.path)
        )
        linked = [_link(f"{entry.path}/{name}", f"{own_abs}/{entry.name}/{name}") for name in names]
        is_linked = all(linked)
        all_linked = all_linked and is_linked
        if is_linked and mtime_ns < began_ns - _SETTLED_NS:
            linked_mtimes[entry.name] = mtime_ns
    return all_linked


def _packs(folder_abs: str) -> list[str]:
    """Return the pack files, a pack's index last: git looks for that."""
    names = os.listdir(folder_abs)
    packs = {name.removesuffix(".idx") for name in names if name.endswith(".idx")}
    files = [n for n in names if n.rpartition(".")[0] in packs and n.endswith(_OF_PACKS)]
    return sorted(files, key=lambda name: name.endswith(".idx"))


def _link(source_abs: str, target_abs: str) -> bool:
    try:
        os.link(source_abs, target_abs)
    except FileExistsError:
        return True
    except FileNotFoundError:
        raise
    except OSError:
        return False
    return True


def hold_commits(memory: Memory, commits: Iterable[str], *, copied: bool) -> None:
    """Make pruning keep commits with all that they need. `copied`: they could not be linked.

    Raises: OSError, GitError.
    """
    before = memory.read_ref(memory.held_ref)
    new = list(dict.fromkeys(commits))
    if copied and new:
        # What HEAD had at first is taken to stay.
        lines = [*new, f"^{before or new[0]}"]
        stdin = "".join(f"{line}\n" for line in lines).encode()
        folder_abs = f"{memory.folder_abs}/objects/pack"
        make_folder(folder_abs)
        memory.ask("pack-objects", "--revs", "-q", f"{folder_abs}/pack", stdin=stdin)
    share_shallow(memory)
    if new:
        name_commits(memory, [*([before] if before else []), *new])


def name_commits(memory: Memory, commits: list[str]) -> None:
    """Make the ref of what is held name only these commits. Raises: OSError."""
    held = memory.write_commit(
        memory.write_tree([]), commits, name="gitgates", message="held", time_s=0.0
    )
    memory.write_ref(memory.held_ref, held)


def share_shallow(memory: Memory, cuts: Iterable[str] | None = None) -> None:
    """Tell git where the history of the user's commits ends, and that of points. Raises: OSError.

    `cuts`: points that no longer have parents; None: unchanged.
    """
    cuts_abs, shallow_abs = f"{memory.folder_abs}/cuts", f"{memory.folder_abs}/shallow"
    own_cuts = read_or_empty(cuts_abs)
    if cuts is not None:
        own_cuts = b"".join([b"%s\n" % cut.encode() for cut in cuts])
        replace_file(cuts_abs, own_cuts)
    users = read_or_empty(f"{memory.repo.common_dir_abs}/shallow")
    lines = {*own_cuts.splitlines(keepends=True), *users.splitlines(keepends=True)}
    if (content := b"".join(sorted(lines))) != read_or_empty(shallow_abs):
        if content:
            replace_file(shallow_abs, content)
        else:
            os.unlink(shallow_abs)
