"""Our call in a shell script of somebody's, such as husky's `.husky/pre-commit`. Pure."""

from __future__ import annotations

import re

from gitgates.install import marked
from gitgates.lifecycle import HOOK_POINTS

# What follows an unconditional end of a script is never run, and a heredoc may swallow it.
_ENDS = re.compile(r"^(exit|exec)\b|<<", re.MULTILINE)
_COMMENTS = re.compile(r"(?:#[^\n]*\n)*")
# The script's last command is its status no more, and where that is `a && b`, -e lets it fail.
_FAILED = "[ $? -eq 0 ] || exit 1\n"
# What git says on standard input can be read once only, so that the script is given it again.
_TWICE = """\
gitgates_refs=$(cat)
if [ "$gitgates_refs" ]; then
{call} <<REFS || exit
$gitgates_refs
REFS
exec <<REFS
$gitgates_refs
REFS
fi
"""


def call(manager: str, hook: str) -> str:
    """Return the command that runs the gates of a hook."""
    return f'gitgates git-hook --via={manager} {hook} "$@"'


def lines(manager: str, hook: str) -> str:
    """Return it for a script whose other commands may need the same standard input."""
    if HOOK_POINTS[hook].reads_stdin:
        return _TWICE.format(call=call(manager, hook))
    return f"{call(manager, hook)}\n"


def put(text: str, manager: str, hook: str, command: str) -> str | None:
    """Return a script with our call: at its end, where what is committed is as it will be.

    Where git says something on standard input: at its beginning. None: it cannot go there.
    """
    if "\r" in text:
        return None
    ours = lines(manager, hook)
    if HOOK_POINTS[hook].reads_stdin:
        comments = _COMMENTS.match(text)
        return marked.insert(text, comments.end() if comments else 0, marked.block(command, ours))
    if _ENDS.search(text) or text.rstrip("\n").endswith("\\"):
        return None
    return marked.insert(text, len(text), marked.block(command, _FAILED + ours))
