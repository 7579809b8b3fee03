"""What a command is about to destroy, by its words alone, as records that name where to look.

Whether that is there, and a commit has it, losses.py finds out.
"""

from __future__ import annotations

from gitgates.core.record import Record

# What a threat takes of a file, where git knows it.
UNSTAGED = "unstaged"  # what is in the file and not in the index
STAGED = "staged"  # what is in the index, and the file
INDEX = "index"  # what is in the index alone
UNTRACKED = "untracked"
IGNORED = "ignored"
FILES = (UNSTAGED, STAGED, UNTRACKED, IGNORED)  # whatever is in the file
# What else may be destroyed.
STASH, REFS, OBJECTS, HISTORY, COMMITS = "stash", "refs", "objects", "history", "commits"
WORKTREE = "worktree"  # another worktree, with its folder


class Threat(Record):
    """What one command is about to destroy."""

    words: tuple[str, ...]
    does: str  # what it does with it: a verb
    scope: str = "files"  # or one of the above
    takes: tuple[str, ...] = FILES
    # Of files: from where the command runs; of git, its pathspecs; (): the whole worktree. Else
    # the names of refs, or of stash entries; (): all.
    paths: tuple[str, ...] = ()
    is_git: bool = False  # the paths are pathspecs
    folder: str = ""  # of `git -C`, from where the command runs
    below: bool = True  # what is in folders, too
    names: tuple[str, ...] = ()  # only files with such a name, or in such a folder
    spares_git: bool = False  # of all that is below a folder, not `.git`
    copied_abs: str = ""  # only what is below this folder as well
    unless_rev: str = ""  # not if git takes this word for a revision
    follows: bool = False  # a link is followed: what it leads to is written
    edits: bool = False  # the file is changed, and not replaced
    dry_run: tuple[str, ...] = ()  # words for git that list what would be removed
    with_submodules: bool = False
