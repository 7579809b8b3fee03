"""Ask git for an event's paths, and for those of the working tree.

Names are as git prints them: relative to the root, `/`-separated, each once, sorted. Links and
submodules are left out: no gate can read a submodule as a file, and a link's target is listed under
its own name. `Paths` are the existing and the deleted ones.
"""

from __future__ import annotations

import os
import stat

from gitgates.core.errors import GitError, UsageError
from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.git.index import full_status
from gitgates.git.repo import nul_split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from gitgates.core.types import Event, RefUpdate
    from gitgates.git.repo import Git, Repo

    Paths: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]

_BRANCH_CHECKOUT = "1"
# For sparse checkouts, `update-index --skip-worktree` and `--assume-unchanged`.
HIDES = "git has been told not to look at "
UNCOMMITTED = "something is not committed"
_REGULAR = (b"100644", b"100755", b"100664")
_ANY_REMOTE = ("--remotes",)
_DIFF = ("--raw", "-z", "--no-renames", "--no-ext-diff", "--no-relative", "--no-abbrev")
_STAGED = ("diff", "--cached", "--ignore-submodules=all", *_DIFF)


def with_paths(event: Event, repo: Repo) -> Event:
    """Return the event with its paths, if any."""
    if HOOK_POINTS[event.name].scope == "pushed":
        return _with_pushed(event, repo.git)
    if (paths := _paths_of(event, repo)) is None:
        return event
    return event._replace(paths=paths[0], deleted=paths[1])


def _paths_of(event: Event, repo: Repo) -> Paths | None:
    git = repo.git
    match HOOK_POINTS[event.name].scope:
        case "staged":
            merging = event.name == "pre-merge-commit"
            return staged_paths(repo, merging=merging)
        case "message" if event.message_file_abs:
            return (os.path.relpath(event.message_file_abs, repo.root_abs),), ()
        case "head":
            # Against the first parent.
            args = ("--root", "-r", "--no-commit-id", "--diff-merges=first-parent", *_DIFF)
            return _sorted(*raw_paths(git.out("diff-tree", *args, "HEAD")))
        case "merged":
            has_old = git.resolve("ORIG_HEAD")
            return range_paths(git, "ORIG_HEAD", "HEAD") if has_old else ((), ())
        case "two-commits":  # Source: githooks(5), post-checkout
            old, new, flag = (*event.argv, "", "", "")[:3]
            is_branch = flag == _BRANCH_CHECKOUT and old.strip("0")
            return range_paths(git, old, new) if is_branch else None
        case "caller":
            return changed_paths(git)
        case _:
            return None


def pushed_id(git: Git) -> str:
    """Return the pushed id; for a first push, the framework passes only the branch's name."""
    commit_id = git.env.get("PRE_COMMIT_TO_REF", "")
    branch = git.env.get("PRE_COMMIT_LOCAL_BRANCH", "")
    if commit_id or not branch:
        return commit_id
    return git.resolve(branch)


def pushed_commits(repo: Repo, refs: tuple[RefUpdate, ...]) -> dict[str, str]:
    """Return pushed id → commit, without ids that lead to none, such as a tree's tag."""
    head, commits = repo.head, dict[str, str]()
    for tip in dict.fromkeys(ref.local_id for ref in refs if _is_id(ref.local_id)):
        commits[tip] = tip if tip == head else repo.git.resolve(f"{tip}^{{commit}}")
    return commits


def difference(repo: Repo, commit: str) -> str:
    """Return how the working tree differs from a commit; empty if it does not.

    Git itself ignores files that are flagged in its index, and submodules if so configured.
    """
    if repo.head != commit:
        return "another commit is checked out"
    entries, is_whole = full_status(repo.as_stored.git, "--porcelain", "--untracked-files=normal")
    if not is_whole:
        return "a submodule cannot be looked at"
    if any(entries):
        return UNCOMMITTED
    flagged = unwatched(repo.git)
    more = f" and {len(flagged) - 1} more" if flagged[1:] else ""
    return f"{HIDES}`{flagged[0]}`{more}" if flagged else ""


def differs_unstaged(repo: Repo) -> bool:
    """Return whether the working tree differs from HEAD only in what can be hidden temporarily.

    That means unstaged changes to files, and untracked files.
    """
    entries, is_whole = full_status(
        repo.as_stored.git, "--porcelain=v2", "--untracked-files=normal"
    )
    hidable = (b"? ", b"1 .M N...", b"1 .D N...")
    return is_whole and all(e.startswith(hidable) for e in entries if e) and not unwatched(repo.git)


def not_checked_out(repo: Repo, paths: tuple[str, ...]) -> list[str]:
    """Return which paths are missing in the working tree by design: `skip-worktree`."""
    absent = [path for path in paths if not os.path.lexists(f"{repo.root_abs}/{path}")]
    flagged = {*unwatched(repo.git)} if absent else set[str]()
    return [path for path in absent if path in flagged]


def unwatched(git: Git) -> list[str]:
    """Return the files that git was told to treat as unchanged."""
    entries = git.out("ls-files", "-v", "-z")
    if entries.count(b"\0H ") + entries.startswith(b"H ") == entries.count(b"\0"):
        return []
    return [entry[2:] for entry in nul_split(entries) if entry[0] != "H"]


def staged_paths(repo: Repo, *, merging: bool) -> Paths:
    """Return what the index being committed adds, copies, modifies or renames, and deletes.

    In a merge, only what differs from every parent, as in git's own combined diff. What one side
    brings unchanged was checked when it was committed.
    """
    git = repo.git
    files, deleted = raw_paths(git.out(*_STAGED))
    for parent in merged_commits(repo, merging=merging):
        other_files, other_deleted = raw_paths(git.out(*_STAGED, parent))
        files &= other_files
        deleted &= other_deleted
    return _sorted(files, deleted)


def changed_paths(git: Git) -> Paths:
    """Return what differs from HEAD in the working tree: staged, unstaged and untracked."""
    # Before the first commit: the empty tree.
    head = git.resolve("HEAD") or git.out("hash-object", "-t", "tree", "--stdin").decode().strip()
    differences, others = git.out_all(
        ("diff", "--ignore-submodules=all", *_DIFF, head),
        ("ls-files", "-z", "--others", "--exclude-standard", "--full-name"),
    )
    (tracked, deleted), untracked = raw_paths(differences), nul_split(others)
    # `git diff HEAD` lists an intent-to-add file too; an embedded repository ends in a slash.
    new = {name for name in untracked if not name.endswith("/")}
    files = _existing_files(git.cwd_abs, tracked | new)
    return _sorted(files, deleted - files)


def tracked_paths(git: Git) -> tuple[str, ...]:
    """Return every tracked file that exists."""
    entries = git.out("ls-files", "-z", "--stage").split(b"\0")
    names = {
        os.fsdecode(name)
        for mode_name in entries
        if mode_name[:6] in _REGULAR and (name := mode_name.partition(b"\t")[2])
    }
    return tuple(sorted(_existing_files(git.cwd_abs, names)))


def list_others(repo: Repo) -> list[str]:
    """Return what is neither tracked nor ignored; a repository of its own: with a slash."""
    return repo.git.names("ls-files", "-z", "--others", "--exclude-standard")


def list_changed(repo: Repo) -> list[str]:
    """Return what differs from HEAD, staged or not."""
    args = ("status", "--porcelain=v2", "-z", "--untracked-files=no", "--no-renames")
    # The path follows 8 fields, and in a conflict 10. Source: git-status(1).
    lines = repo.git.names(*args, "--ignore-submodules=none")
    return [line.split(" ", 8 if line[0] == "1" else 10)[-1] for line in lines if line[0] in "1u"]


def range_paths(git: Git, old: str, new: str) -> Paths:
    """Return existing and deleted paths that differ between two commits.

    Raises: GitError if one of them is not a commit.
    """
    for name in (old, new):
        if not git.resolve(f"{name}^{{commit}}"):
            raise GitError(f"`{name}` is not a commit here", "See: git log --oneline --all")
    return _sorted(*raw_paths(git.out("diff", *_DIFF, old, new, "--")))


def branch_paths(git: Git, base: str, tip: str) -> Paths:
    """Return existing and deleted paths that a branch changes, since its merge base with `base`.

    Raises: GitError if one of them is not a commit, or they have no common one.
    """
    return range_paths(git, branch_base(git, base, tip), tip)


def branch_base(git: Git, base: str, tip: str) -> str:
    """Return the merge base of a branch; `base` itself if git knows none. Raises: as above."""
    common = git.ask("merge-base", base, tip)
    if common.exit_status == 1:
        raise GitError(
            f"`{base}` and `{tip}` have no common commit here",
            "In a shallow clone: git fetch --unshallow",
        )
    return common.stdout.decode().strip() or base


def tree_paths(git: Git, old: str, new: str) -> Paths:
    """Return existing and deleted paths that differ between two trees.

    Raises: GitError if one of them does not exist.
    """
    return _sorted(*raw_paths(git.out("diff-tree", "-r", *_DIFF, old, new, "--")))


def known_to(refs: tuple[RefUpdate, ...], remote: str, git: Git) -> tuple[str, ...]:
    """Return the revisions that a remote is known to have.

    For an unknown remote (a new one, or one named by its URL), returns _ANY_REMOTE, because what
    other remotes have is not new.
    """
    remote_ids = [ref.remote_id for ref in refs if ref.remote_id.strip("0")]
    is_known = any(git.resolve(f"{commit_id}^{{commit}}") for commit_id in remote_ids)
    if is_known or git.out("for-each-ref", "--count=1", f"refs/remotes/{remote}"):
        return (*remote_ids, f"--remotes={remote}")
    return _ANY_REMOTE


def _with_pushed(event: Event, git: Git) -> Event:
    """Return a push with the paths that its new commits change.

    A new branch is compared with the remote's known branches; a forced push, with what both sides
    have. A path that a pushed tip no longer has is deleted.
    """
    remote = event.argv[0] if event.argv else ""
    edges = known_to(event.refs, remote, git) if event.refs else ()
    files: set[str] = set()
    deleted: set[str] = set()
    for tip in sorted({ref.local_id for ref in event.refs}):
        touched = git.names(
            *("log", "--format=", "--name-only", "-z", "--no-renames", "--diff-merges=combined"),
            *("--no-ext-diff", "--no-relative", "--ignore-missing", "--ignore-submodules=all"),
            *(tip, "--not", *edges),
        )
        names = {name.lstrip("\n") for name in touched}
        entries = git.out("ls-tree", "-r", "-z", "--full-tree", tip).split(b"\0")
        modes = {os.fsdecode(e.partition(b"\t")[2]): e[:6] for e in entries}
        files |= {name for name in names if modes.get(name) in _REGULAR}
        deleted |= names - modes.keys()
    if edges == _ANY_REMOTE:
        what = "the push is compared with the branches of other remotes"
        if not git.out("for-each-ref", "--count=1", "refs/remotes"):
            what = "each pushed commit counts as new"
        note = f"no branches of `{remote}` are known here yet: {what}"
        event = event._replace(note="; ".join(filter(None, (event.note, note))))
    paths = _sorted(files, deleted)
    return event._replace(paths=paths[0], deleted=paths[1])


def raw_paths(raw: bytes) -> tuple[set[str], set[str]]:
    """Return the regular files and the deletions in a raw diff.

    Its format is `:oldmode newmode oldid newid status NUL path NUL …`.
    """
    fields = raw.split(b"\0")
    pairs = list(zip(fields[0::2], fields[1::2], strict=False))
    files = {os.fsdecode(path) for meta, path in pairs if meta[8:14] in _REGULAR}
    deleted = {os.fsdecode(path) for meta, path in pairs if meta[-1:] == b"D"}
    return files, deleted


def _sorted(files: set[str], deleted: set[str]) -> Paths:
    return tuple(sorted(files)), tuple(sorted(deleted))


def merged_commits(repo: Repo, *, merging: bool) -> list[str]:
    """Return the commits that are being merged into HEAD.

    `merging`: during `git merge` itself, which names them in the environment before it writes
    MERGE_HEAD.
    """
    if merging:
        return [name.removeprefix("GITHEAD_") for name in repo.env if name.startswith("GITHEAD_")]
    return merge_heads(repo)


def merge_heads(repo: Repo) -> list[str]:
    """Return the commits that are being merged into HEAD."""
    try:
        with open(f"{repo.git_dir_abs}/MERGE_HEAD", encoding="ascii") as file:
            return file.read().split()
    except OSError:
        return []


def _existing_files(root_abs: str, names: set[str]) -> set[str]:
    return {name for name in names if _is_file(f"{root_abs}/{name}")}


def _is_file(path_abs: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path_abs).st_mode)
    except OSError:
        return False


def _is_id(text: str) -> bool:
    return bool(text.strip("0"))


def pushed(refs: tuple[RefUpdate, ...], remote: str, git: Git) -> tuple[str, ...]:
    """Return the revisions that a push adds to a remote; nothing if it adds no commit."""
    tips = [
        git.resolve(f"{ref.local_id}^{{commit}}")
        for ref in refs
        if ref.local_id.strip("0") and ref.has_code
    ]
    commit_ids = [tip for tip in dict.fromkeys(tips) if tip]
    edges = known_to(refs, remote, git)
    return ("--ignore-missing", *commit_ids, "--not", *edges) if commit_ids else ()


def unpushed(git: Git) -> tuple[str, ...]:
    """Return the revisions from the current branch's upstream to HEAD.

    Without an upstream, those that no remote has. Nothing before the first commit.
    """
    if not git.resolve("HEAD"):
        return ()
    upstream = git.resolve("@{upstream}^{commit}")
    return ("HEAD", "--not", upstream or "--remotes")


def range_of(git: Git, text: str) -> tuple[str, ...]:
    """Return the revisions of a range from the command line.

    Raises: UsageError if it is not one.
    """
    warn = ("-c", "core.warnAmbiguousRefs=true")
    parsed = git.ask(*warn, "rev-parse", "--revs-only", "--end-of-options", text)
    if b"is ambiguous" in parsed.stderr:
        # Git would take the tag, whose name anybody who pushes can choose.
        what = f"`{text}`: {os.fsdecode(parsed.stderr).strip().removeprefix('warning: ')}"
        raise UsageError(what, "Remove the tag of that name, or write refs/remotes/… in full.")
    revisions = tuple(line for line in parsed.stdout.decode().split() if not line.startswith("--"))
    ids = [revision.lstrip("^") for revision in revisions]
    if (
        parsed.exit_status
        or not ids
        or not all(git.resolve(f"{commit_id}^{{commit}}") for commit_id in ids)
    ):
        raise UsageError(f"`{text}` is not a range of commits", "For example: origin/main..HEAD")
    return revisions
