"""What git keeps beside the files of a worktree: the index, HEAD, branches, the stash.

Objects that only these refer to are copied, because the user's repository may lose them.
"""

from __future__ import annotations

import os

from gitgates.features.undo.private_git import SUBMODULE, PrivateGit, not_taken
from gitgates.git.repo import nul_split

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.git.repo import Repo

_REFS = ("refs/heads", "refs/stash")


def git_files(repo: Repo) -> tuple[Any, ...]:
    """Return what `lstat` says of the files that keep the index, HEAD and refs; and HEAD."""
    common_abs, git_dir_abs = repo.common_dir_abs, repo.git_dir_abs
    places = [f"{git_dir_abs}/index", f"{git_dir_abs}/HEAD", f"{common_abs}/packed-refs"]
    places += [f"{common_abs}/refs/stash", f"{common_abs}/logs/refs/stash"]
    places += [f"{common_abs}/reftable/tables.list"]
    folders = [f"{common_abs}/refs/heads"]
    for folder_abs in folders:  # grows during the iteration
        try:
            for entry in os.scandir(folder_abs):
                (folders if entry.is_dir(follow_symlinks=False) else places).append(entry.path)
        except OSError:
            continue
    facts = []
    for place_abs in sorted(places):
        try:
            now = os.lstat(place_abs)
        except OSError:
            continue
        facts.append((place_abs, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns))
    return (*facts, repo.head)


def git_fields(repo: Repo, private: PrivateGit, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a state about all but the files. Raises: GitError, OSError."""
    git, head = repo.git, repo.head
    branch, listed = git.ask_all(
        ("symbolic-ref", "--quiet", "HEAD"),
        ("for-each-ref", "--format=%(objectname) %(refname)", *_REFS),
    )
    refs = {}
    for line in os.fsdecode(listed.stdout).split("\n")[:-1]:
        commit, _, ref = line.partition(" ")
        refs[ref] = commit
    stash = []
    if refs.pop("refs/stash", ""):
        log = git.ask("log", "--walk-reflogs", "-z", "--format=%H %gs", "refs/stash", "--")
        stash = [entry.partition(" ")[::2] for entry in nul_split(log.stdout)]
    for commit, _message in stash:
        _keep_stash(repo, private, commit)
    index_abs, index, entries, staged = f"{repo.git_dir_abs}/index", "", "", ""
    if os.path.exists(index_abs):
        import hashlib

        listing = git.out("ls-files", "-z", "--stage", "-v")
        entries = hashlib.sha256(listing).hexdigest()[:40]
        index = known.get("index_blob", "") if entries == known.get("index_entries") else ""
        if not index:  # `git status` writes one that has the same entries
            with open(index_abs, "rb") as file:
                index = private.write_blob(file.read())
        if (index, head) == (known.get("index_blob"), known.get("head")):
            staged = known["staged"]
        elif ids := _staged(repo, head):
            staged = hashlib.sha256("\n".join(ids).encode()).hexdigest()[:40]
            private.write_pack(staged, ids)
    return {
        "head": head,
        "branch": os.fsdecode(branch.stdout).strip(),
        "refs": refs,
        "stash": stash,
        "index_blob": index,
        "index_entries": entries,
        "staged": staged,
    }


def _staged(repo: Repo, head: str) -> list[str]:
    """Return the ids of the blobs that the index has and HEAD does not, conflicts included."""
    if not head:
        entries = nul_split(repo.git.out("ls-files", "-z", "--stage"))
        pairs = [entry.split(" ")[:2] for entry in entries]
    else:
        ask = ("diff-index", "--cached", "-z", "--no-renames", "--ignore-submodules=all", head)
        fields = nul_split(repo.git.out(*ask))
        pairs = [field.split(" ")[1:4:2] for field in fields[::2]]
        unmerged = nul_split(repo.git.out("ls-files", "-z", "--unmerged"))
        pairs += [entry.split(" ")[:2] for entry in unmerged]
    return sorted({blob for mode, blob in pairs if mode != SUBMODULE and blob.strip("0")})


def branch_pack(commit: str) -> str:
    """Return the name of the pack that has the commits of a branch that HEAD does not have."""
    return f"branch-{commit}"


def keep_branches(repo: Repo) -> None:
    """Copy the commits that only other branches have: one may be deleted.

    Raises: GitError, StateError.
    """
    private, git = PrivateGit(repo), repo.git
    if not repo.head:
        return
    ask = ("for-each-ref", "--format=%(objectname)", "--no-merged", repo.head, "refs/heads")
    for commit in git.lines(*ask):
        if not private.has_pack(branch_pack(commit)):
            listed = ("rev-list", "--objects", "--no-object-names", commit, "--not", repo.head)
            ids = git.out(*listed, "--remotes").decode().split()
            try:
                private.write_pack(branch_pack(commit), ids)
            except OSError as error:
                raise not_taken(private, error) from error


def stash_pack(commit: str) -> str:
    """Return the name of the pack that has what a stash entry refers to."""
    return f"stash-{commit}"


def _keep_stash(repo: Repo, private: PrivateGit, commit: str) -> None:
    """Copy what a stash entry has beside the commit that it was made on."""
    if not private.has_pack(stash_pack(commit)):
        ask = ("rev-list", "--objects", "--no-object-names", commit, "--not", f"{commit}^1")
        private.write_pack(stash_pack(commit), repo.git.out(*ask).decode().split())
