"""Git as a host: arguments and standard input of a hook in, exit status and text out.

Source: githooks(5).
"""

from __future__ import annotations

import posixpath

from gitgates.lifecycle import HOOK_POINTS
from gitgates.types import BLOCK, Decision, Event, Outcome, RefUpdate

_REF_FIELDS = 4


def decode(hook: str, argv: tuple[str, ...], stdin: bytes, root_abs: str) -> Event:
    """Return the event of one firing of a git hook. What it is about in paths is asked later."""
    point = HOOK_POINTS[hook]
    message = argv[0] if point.scope == "message" and argv else ""
    return Event(
        host="git",
        name=hook,
        root_abs=root_abs,
        refs=decode_refs(stdin) if point.scope == "pushed" else (),
        argv=argv,
        stdin=stdin,
        message_file_abs=posixpath.join(root_abs, message) if message else "",
    )


def decode_refs(stdin: bytes) -> tuple[RefUpdate, ...]:
    """Read pre-push's lines: local ref, local id, remote ref, remote id."""
    lines = [line.split(" ") for line in stdin.decode("utf-8", "surrogateescape").splitlines()]
    return tuple(RefUpdate(*line) for line in lines if len(line) == _REF_FIELDS)


def encode(decision: Decision, text: bytes) -> Outcome:
    """Return what git receives: 1 blocks, whatever a gate's own exit status was."""
    return Outcome(exit_status=1 if decision.verdict >= BLOCK else 0, stderr=text)
