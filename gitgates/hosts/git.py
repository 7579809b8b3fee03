"""Git, or `gitgates run`, as a host: a hook's arguments and input in, its exit status out.

Source: githooks(5).
"""

from __future__ import annotations

import os
import posixpath

from gitgates.core.errors import GitError
from gitgates.core.lifecycle import HOOK_POINTS
from gitgates.core.types import BLOCK, Decision, Event, RefUpdate

_MESSAGE_FILE = "COMMIT_EDITMSG"
_HEX = b"0123456789abcdef"
_ID_LENGTHS = (40, 64)  # SHA-1, SHA-256
_FIELDS = 4
_SHOWN = 200  # bytes of an invalid line


def decode(hook: str, argv: tuple[str, ...], stdin: bytes, root_abs: str) -> Event:
    """Return the event of a git hook. Its paths are determined later."""
    point = HOOK_POINTS[hook]
    is_push = point.scope == "pushed"
    message = argv[0] if point.scope == "message" and argv else ""
    return Event(
        host="git",
        name=hook,
        root_abs=root_abs,
        refs=tuple(ref for ref in decode_refs(stdin) if ref.has_code) if is_push else (),
        argv=argv,
        stdin=stdin,
        message_file_abs=posixpath.join(root_abs, message) if message else "",
    )


def decode_refs(stdin: bytes) -> tuple[RefUpdate, ...]:
    """Read pre-push's lines: local ref, local id, remote ref, remote id.

    The local ref is as it was typed, and may contain spaces (`HEAD^{/two words}`).

    Raises: GitError if a line is invalid, because its commits could not be checked.
    """
    lines = stdin.split(b"\n")  # splitlines would split at characters that branch names may contain
    return tuple(map(_ref_update, lines if lines[-1] else lines[:-1]))


def _ref_update(line: bytes) -> RefUpdate:
    fields = line.rsplit(b" ", _FIELDS - 1)
    is_whole = len(fields) == _FIELDS and fields[2] and all(map(_is_id, fields[1::2]))
    if b"\0" in line or not is_whole:
        more = "…" if len(line) > _SHOWN else ""
        raise GitError(
            f"pre-push: git gave the line {os.fsdecode(line[:_SHOWN])!r}{more}; expected"
            " `LOCAL-REF LOCAL-ID REMOTE-REF REMOTE-ID`",
            "The pushed commits cannot be checked, so nothing is pushed. Push a branch by name.",
        )
    return RefUpdate(*map(os.fsdecode, fields))


def _is_id(field: bytes) -> bool:
    return len(field) in _ID_LENGTHS and not field.strip(_HEX)


def decode_by_hand(
    hook: str, paths: tuple[str, ...], deleted: tuple[str, ...], places: tuple[str, str]
) -> Event:
    """Return the event of a hook that is run by hand. `places`: the root and its git folder.

    `deleted`: paths that no longer exist. A hook that checks a commit message gets the only path
    in `paths`, or else the message of the last commit.
    """
    root_abs, git_dir_abs = places
    event = Event(host="manual", name=hook, root_abs=root_abs, paths=paths, deleted=deleted)
    if HOOK_POINTS[hook].scope != "message":
        return event
    last = posixpath.relpath(posixpath.join(git_dir_abs, _MESSAGE_FILE), root_abs)
    message = paths[0] if len(paths) == 1 else last
    message_abs = posixpath.normpath(posixpath.join(root_abs, message))
    return event._replace(
        paths=(message,), deleted=(), argv=(message_abs,), message_file_abs=message_abs
    )


def encode(decision: Decision | None) -> int:
    """Return the exit status: 1 if the decision blocks, whatever a gate's status was."""
    return 1 if decision and decision.verdict >= BLOCK else 0
