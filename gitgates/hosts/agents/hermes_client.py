"""Hermes' command line without a terminal: `hermes chat --quiet --query`.

Source: `hermes chat --help` and the output of hermes-agent 0.19, recorded from the client.
"""

from __future__ import annotations

from itertools import dropwhile

from gitgates.hosts.headless import UNREADABLE, Start, Turn, shortened

AUTO_APPROVE_OPTIONS = ("--yolo",)
TOTALS: tuple[str, ...] = ()
_SESSION = "session_id: "
_REFUSED = "HTTP "  # with the status, if the model's service has refused a request
# The session is named on standard error.
_MERGED = ("/bin/sh", "-c", 'exec "$@" 2>&1', "sh")

_NOTICES = ("⚠", "↻")  # for example, that it has resumed; before the answer


def start(prompt: str, session: str, more: tuple[str, ...]) -> Start:
    """Return how to start a turn; the prompt can only be an argument."""
    resume = ("--resume", session) if session else ()
    argv = ("hermes", "chat", "--quiet", *resume, *more, f"--query={prompt}")
    return Start((*_MERGED, *argv))


def read(output: bytes) -> Turn:
    """Parse the client's output: the answer, and a line with the session; it names no tokens."""
    lines = output.decode("utf-8", "replace").splitlines()
    sessions = [line.removeprefix(_SESSION) for line in lines if line.startswith(_SESSION)]
    answer = dropwhile(_is_notice, (line for line in lines if not line.startswith(_SESSION)))
    text = "\n".join(answer)
    last = text.rstrip().rpartition("\n")[2]
    error = last if last.startswith(_REFUSED) else ""
    return Turn(
        session=sessions[-1].strip() if sessions else "",
        text=shortened(text),
        error=error if sessions else UNREADABLE,
    )


def _is_notice(line: str) -> bool:
    return not line.strip() or line.strip().startswith(_NOTICES)
