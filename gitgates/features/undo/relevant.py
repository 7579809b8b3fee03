"""Whether a shell command may be one that destroys something: most are not, and not parsed."""

from __future__ import annotations

from gitgates.core.guarded import setting_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config

# Programs that may destroy what no commit holds.
_NAMES = frozenset(
    (
        *("rm", "rmdir", "shred", "unlink", "find", "mv", "cp", "install", "ln", "rsync", "tee"),
        *("dd", "sponge", "truncate", "sed", "gsed", "perl", "ruby", "gawk", "awk", "sort"),
        *("curl", "srm", "tar", "wget", "zip"),
    )
)
# What git may do without destroying anything, as its first word; all else is looked at.
_HARMLESS = frozenset(
    (
        *("add", "blame", "commit", "describe", "diff", "fetch", "grep", "log", "ls-files"),
        *("ls-remote", "push", "remote", "rev-list", "rev-parse", "shortlog", "show", "status"),
    )
)
_TO_NOWHERE = (">&1", ">&2", "> /dev/null", ">/dev/null")
_JOINTS = str.maketrans(dict.fromkeys(";&|()`\n\"'{}=<$", " ") | {"\\": ""})


def may_matter(command: str, config: Config) -> bool:
    """Return whether `answer` has to be asked about a command, which loads the parser."""
    if setting_of(config, "destructive") != "off":
        return True
    if setting_of(config, "lost_work") == "off":
        return False
    for redirect in _TO_NOWHERE:
        command = command.replace(redirect, " ")
    words = [word.rpartition("/")[2] for word in command.translate(_JOINTS).split()]
    verbs = [after for word, after in zip(words, [*words[1:], ""], strict=False) if word == "git"]
    return ">" in command or not _NAMES.isdisjoint(words) or not _HARMLESS.issuperset(verbs)
