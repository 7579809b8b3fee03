"""A person, a script or CI as the host: `gitgates run`."""

from __future__ import annotations

import posixpath

from gitgates.lifecycle import HOOK_POINTS
from gitgates.types import BLOCK, Decision, Event

_MESSAGE_FILE = "COMMIT_EDITMSG"


def decode(
    hook: str, paths: tuple[str, ...], gone: tuple[str, ...], places: tuple[str, str]
) -> Event:
    """Return the event of a hook run by hand. `places` are the root and its git folder.

    `gone` are paths that are deleted. Where the hook is about a commit message, that is the one
    path named, or else the message of the commit made last.
    """
    root_abs, git_dir_abs = places
    event = Event(host="manual", name=hook, root_abs=root_abs, paths=paths, gone=gone)
    if HOOK_POINTS[hook].scope != "message":
        return event
    last = posixpath.relpath(posixpath.join(git_dir_abs, _MESSAGE_FILE), root_abs)
    message = paths[0] if len(paths) == 1 else last
    message_abs = posixpath.normpath(posixpath.join(root_abs, message))
    return event._replace(
        paths=(message,), gone=(), argv=(message_abs,), message_file_abs=message_abs
    )


def encode(decision: Decision) -> int:
    """Return the exit status."""
    return 1 if decision.verdict >= BLOCK else 0
