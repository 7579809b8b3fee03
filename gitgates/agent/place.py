"""Where an agent's event happens: the repository, the files that it is about, the journal."""

from __future__ import annotations

import os
import time

from gitgates.agent.ground import absolute, find_grounds
from gitgates.errors import GitError
from gitgates.git.repo import Git, Repo, find_repo
from gitgates.proc.alarm import process_began, set_alarm
from gitgates.record import Record
from gitgates.store.log import session_journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.agent_types import Payload
    from gitgates.store.log import Journal


class Place(Record):
    """What the handling of one event works with."""

    payload: Payload
    raw: bytes  # the payload as it came, for gates that ask for it
    repo: Repo
    git: Git
    env: Mapping[str, str]
    journal: Journal
    began: float  # when our process did, by the wall clock
    say: Callable[[str], None] = lambda _text: None  # to whoever reads the host's debug log


# Before the host gives up.
_ANSWER_S = 1.0
_ALMOST = 0.9
_START_S = 1.0  # the most that our own start may have taken of it


def find_places(
    payload: Payload, raw: bytes, env: Mapping[str, str], say: Callable[[str], None]
) -> list[Place]:
    """Return where an event happens, and where the session was started if that is elsewhere.

    Raises: GitError where that is in no repository that may be looked at.
    """
    return [
        _place(repo, payload, raw, env)._replace(say=say) for repo in find_grounds(payload, env)
    ]


def _place(repo: Repo, payload: Payload, raw: bytes, env: Mapping[str, str]) -> Place:
    git = repo.git
    journal = session_journal(repo.state_abs, payload.session)
    return Place(payload, raw, repo, git, env, journal, process_began())


def end_within(place: Place, limit_s: float) -> None:
    """See to it that the handling of an event ends before its host gives up, and hears of it."""
    gone_s = min(time.time() - place.began, _START_S)
    set_alarm(max(limit_s - _ANSWER_S, limit_s * _ALMOST) - gone_s)


def is_elsewhere(place: Place) -> bool:
    """Tell whether the agent itself is in another repository or worktree than its event."""
    if not os.path.isdir(place.payload.cwd_abs):
        return False
    try:
        return find_repo(place.payload.cwd_abs, place.env).git_dir_abs != place.repo.git_dir_abs
    except GitError:
        return True


def note(place: Place, text: str) -> None:
    """Say what went wrong, and keep it in the journal where that is possible."""
    place.say(text)
    try:
        place.journal.append({"what": "note", "text": text})
    except OSError as error:
        place.say(f"{place.journal.path_abs}: cannot be written: {error.strerror}")


def edited_paths(place: Place) -> tuple[str, ...] | None:
    """Return the files that a tool works on, from the root; None where it names none.

    Links are followed: what is written through one is another file. What lies outside of the
    repository is left out, and so is what is no file, unless the tool may be about to write it.
    """
    if not place.payload.paths:
        return None
    root_abs = os.path.realpath(place.repo.root_abs)
    found = []
    for path in place.payload.paths:
        path_abs = absolute(path, place.payload.cwd_abs)
        if place.payload.kind != "before-tool" and not os.path.isfile(path_abs):
            continue
        relative = os.path.relpath(path_abs, root_abs)
        if relative != ".." and not relative.startswith("../"):
            found.append(relative)
    return tuple(dict.fromkeys(found))
