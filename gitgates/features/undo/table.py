"""A table of commands, with what they remove or overwrite.

For a command that it lacks, there is still the save point before it. If in doubt, a command affects
its whole folder.
"""

from __future__ import annotations

from gitgates.core.guarded import setting_of
from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config

REMOVES, OVERWRITES, EDITS, DISCARDS = "removes", "overwrites", "edits", "discards"
# What a git command destroys, in a worktree or elsewhere.
TRACKED, UNTRACKED, IGNORED, NESTED = "tracked", "untracked", "ignored", "nested"
BROUGHT = "brought"  # files that git ignores here, but that another commit has
INDEX, REFS, OBJECTS, MODULES, HISTORY = "index", "refs", "objects", "modules", "history"
# Which words a row affects; anything else: the values of these options. Values of options that are
# not in `valued` count as words, too: most of them name no file.
ALL, LAST, GOALS, SEARCH, OUTPUT = "all", "last", "goals", "search", "of="
WORKTREE = ""  # no words: the whole worktree
EVER = "ever"


class Row(Record):
    """One or several commands, and what they destroy with some of their options."""

    commands: str  # with `|` between them
    does: str
    about: str = ALL
    needs: str = ""  # one of these must be given; `-ff`: `-f` twice; `--`: a path in the worktree
    unless: str = ""  # none of these may be given
    valued: str = ""  # options that take a value
    deep: str = ""  # options that make it affect folders' contents, too; or EVER
    takes: tuple[str, ...] = ()  # what a git command destroys

    def has(self, head: str) -> bool:
        """Return whether the row is for a command such as `rm` or `git stash drop`."""
        return head in self.commands.split("|")


_COPIED = "-t -S --target-directory --suffix"
_DELETING = "--del --delete --delete-after --delete-before --delete-delay --delete-during"
ROWS = (
    Row("rm|shred|srm|unlink", REMOVES, deep="-r -R --recursive"),
    Row("find", REMOVES, SEARCH, needs="-delete", deep=EVER),
    Row("tar", REMOVES, needs="--remove-files", deep=EVER),
    Row("zip", REMOVES, needs="-m --move", deep=EVER),
    Row("rsync", REMOVES, ALL, "--remove-source-files", "-n", deep=EVER),
    Row("rsync", REMOVES, LAST, f"{_DELETING} --delete-excluded", "-n", deep=EVER),
    Row("mv", REMOVES, needs="/dev/null", deep=EVER),
    Row("cp|mv", OVERWRITES, GOALS, unless="-b --backup -n --no-clobber", valued=_COPIED),
    Row("install", OVERWRITES, GOALS, unless="-b --backup", valued=f"{_COPIED} -m -o -g --mode"),
    Row("ln", OVERWRITES, GOALS, needs="-f --force", unless="-b --backup", valued=_COPIED),
    Row("tee|sponge", OVERWRITES, unless="-a --append"),
    Row("truncate", OVERWRITES),
    Row("dd", OVERWRITES, OUTPUT),
    Row("curl|git archive|sort", OVERWRITES, "-o --output", valued="-o --output"),
    Row("wget", OVERWRITES, "-O --output-document", valued="-O --output-document"),
    Row("sed|gsed", EDITS, needs="-i --in-place"),
    Row("perl|ruby", EDITS, needs="-i"),
    Row("awk|gawk", EDITS, needs="-i=inplace --include=inplace", valued="-i -F -f -v --include"),
    Row("git worktree remove", REMOVES, needs="-f --force", deep=EVER),
    Row("git clean", REMOVES, unless="-n -X", valued="-e --exclude", takes=(UNTRACKED,)),
    Row("git clean", REMOVES, ALL, "-x -X", "-n", valued="-e --exclude", takes=(IGNORED,)),
    Row("git clean", REMOVES, ALL, "-ff", "-n", valued="-e --exclude", takes=(NESTED,)),
    Row("git rm", REMOVES, needs="-f --force", unless="-n --cached", takes=(TRACKED, MODULES)),
    Row("git reset", DISCARDS, WORKTREE, needs="--hard --merge", takes=(TRACKED,)),
    Row("git reset", DISCARDS, WORKTREE, unless="--soft", takes=(INDEX,)),
    Row("git restore", DISCARDS, WORKTREE, needs="-W --worktree", takes=(TRACKED,)),
    Row("git restore", DISCARDS, WORKTREE, unless="-S --staged", takes=(TRACKED,)),
    Row("git restore", DISCARDS, WORKTREE, needs="-S --staged", takes=(INDEX,)),
    Row("git checkout", DISCARDS, WORKTREE, "--", "-p -b -B --patch --orphan", takes=(TRACKED,)),
    Row(
        "git checkout|git checkout-index|git mv|git switch",
        *(DISCARDS, WORKTREE, "-f --force --discard-changes"),
        takes=(TRACKED,),
    ),
    Row("git read-tree", DISCARDS, WORKTREE, needs="--reset", takes=(TRACKED,)),
    Row(
        "git am|git cherry-pick|git merge|git rebase|git revert",
        *(DISCARDS, WORKTREE, "--abort --skip"),
        takes=(TRACKED,),
    ),
    Row(
        "git am|git checkout|git cherry-pick|git merge|git pull|git read-tree|git rebase|git reset"
        "|git restore|git revert|git stash|git switch",
        *(DISCARDS, WORKTREE),
        takes=(BROUGHT,),
    ),
    Row("git submodule foreach", DISCARDS, WORKTREE, takes=(MODULES,)),
    Row("git submodule", DISCARDS, WORKTREE, needs="-f --force", takes=(MODULES,)),
    Row("git branch", DISCARDS, needs="-D -M -C -f --force", takes=(REFS,)),
    Row("git switch", DISCARDS, needs="-C", takes=(REFS,)),
    Row("git tag|git update-ref", DISCARDS, needs="-d --delete --stdin", takes=(REFS,)),
    Row("git filter-branch|git stash drop|git stash clear|git stash pop", DISCARDS, takes=(REFS,)),
    Row("git gc", DISCARDS, needs="--prune", takes=(OBJECTS,)),
    Row("git prune|git reflog expire|git reflog delete", DISCARDS, unless="-n", takes=(OBJECTS,)),
    Row("git filter-repo", DISCARDS, takes=(HISTORY,)),
)
_PROGRAMS = frozenset(name for row in ROWS for name in row.commands.split("|"))
# Git verbs that destroy nothing; all others are examined, because they may be aliases.
_HARMLESS = frozenset(
    (
        *("add", "blame", "commit", "describe", "diff", "fetch", "grep", "log", "ls-files"),
        *("ls-remote", "push", "remote", "rev-list", "rev-parse", "shortlog", "show", "status"),
    )
)
_TO_NOWHERE = (">&1", ">&2", "> /dev/null", ">/dev/null")
_JOINTS = str.maketrans(dict.fromkeys(";&|()`\n\"'{}=<$", " ") | {"\\": ""})


def may_matter(command: str, config: Config) -> bool:
    """Return whether `answer`, which loads the parser, must look at a command."""
    if setting_of(config, "destructive") != "off":
        return True
    if setting_of(config, "lost_work") == "off":
        return False
    for redirect in _TO_NOWHERE:
        command = command.replace(redirect, " ")
    words = [word.rpartition("/")[2] for word in command.translate(_JOINTS).split()]
    verbs = [after for word, after in zip(words, [*words[1:], ""], strict=False) if word == "git"]
    return ">" in command or not _PROGRAMS.isdisjoint(words) or not _HARMLESS.issuperset(verbs)
