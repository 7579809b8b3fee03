"""Identify the session and the agent that run a gitgates command.

An agent's shell command `gitgates VERB …` is rewritten, before it runs, to `gitgates VERB
--caller=NONCE …`, and the session's journal keeps whose nonce it is. Without one, the environment
names the session: a command inside a script belongs to its session, but to no certain agent.
If two sessions are possible, neither is taken: never simply the latest.
"""

from __future__ import annotations

import os
import time

from gitgates.core.clean import plain_line
from gitgates.core.errors import StateError, UsageError
from gitgates.core.record import lazy
from gitgates.engine.plan.command import ACTIVE
from gitgates.hosts import DEFAULT_AGENT, calling_session, is_called_by_agent
from gitgates.journal.entries import TIMELINE, CallerEntry, EventEntry
from gitgates.journal.journal import of_kind
from gitgates.store.log import FOLDER, Journal, file_name, read_lines, sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo
    from gitgates.journal.journal import Fact

_SHOWN = 8
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400
_PROMPT_SHOWN = 60


class Caller:
    """The session and the agent that run a command.

    `certain`: the journal's entry about this very command, if there is one.
    """

    def __init__(
        self, repo: Repo, session: str, *, agent: str, is_agent: bool, certain: Fact | None = None
    ) -> None:
        fact = certain or {}
        self.session = session  # the name of its journal, without .jsonl
        self.agent = str(fact.get("agent", agent))  # its id; empty: the main thread, or a person
        self.agent_type = str(fact.get("agent_type", ""))
        self.is_certain = certain is not None
        self.by_agent = is_agent or self.is_certain  # or by a run of ours, and not by a person
        path_abs, *others_abs = (
            f"{state_abs}/{FOLDER}/{session}.jsonl" for state_abs in repo.states_abs
        )
        # That of this worktree first, which may not be there yet.
        self.journals = (
            Journal(path_abs),
            *(Journal(other_abs) for other_abs in others_abs if os.path.exists(other_abs)),
        )

    @property
    def host(self) -> str:
        """The agent's host, as `agent-hook` names it."""
        events = of_kind(reversed(self.facts[0]), EventEntry)
        return str(next(iter(events), {}).get("host", DEFAULT_AGENT))

    @lazy
    def facts(self) -> tuple[list[Fact], ...]:
        """Return the entries of each journal, read once.

        Raises: StateError if one cannot be read.
        """
        return tuple(map(_read, self.journals))


def find_caller(
    repo: Repo, env: Mapping[str, str], *, session: str = "", agent: str = "", nonce: str = ""
) -> Caller:
    """Return the caller of a command; if unknown, the only session of this worktree.

    `session` and `agent` are what it names, `nonce` what it was given before it ran.

    Raises: UsageError if there is no such session, or several, or an agent names another;
    StateError if a journal cannot be read.
    """
    caller = identify(repo, env, session=session, agent=agent, nonce=nonce)
    if caller:
        return caller
    names = [name_of(path_abs) for path_abs in sessions(repo.state_abs)]
    if len(names) != 1:
        what = "there are several sessions" if names else "no sessions found"
        raise UsageError(f"{what}: {repo.root_abs}", _list_sessions(repo))
    return Caller(repo, names[0], agent=agent, is_agent=_is_agent(env))


def identify(
    repo: Repo, env: Mapping[str, str], *, session: str = "", agent: str = "", nonce: str = ""
) -> Caller | None:
    """Return the caller of a command; None if unknown.

    Raises: as `find_caller`.
    """
    current, certain = _find_nonce(repo, nonce) if nonce else ("", None)
    current = current or calling_session(env)
    if not (session or current):
        return None
    name = _find_session(repo, session or current)
    is_another_agent = certain and agent not in ("", certain.get("agent", ""))
    if current and (is_another_agent or not _is_session(current, name)):
        options = (("session", session), ("agent", agent))
        specified = ", ".join(f"--{what} {value}" for what, value in options if value)
        raise UsageError(
            f"this command is run by an agent of session {current}, and may only act for that "
            f"session, not for {specified}",
            f"Omit {specified}, or ask a person to run it in a terminal outside the agent.",
        )
    return Caller(repo, name, agent=agent, is_agent=_is_agent(env), certain=certain)


def _is_agent(env: Mapping[str, str]) -> bool:
    """Return whether the environment shows that an agent, or a run of ours, calls us."""
    return is_called_by_agent(env) or bool(env.get(ACTIVE))


def _find_nonce(repo: Repo, nonce: str) -> tuple[str, Fact | None]:
    """Return the session of a nonce, and its journal entry."""
    for path_abs in (path for state_abs in repo.states_abs for path in sessions(state_abs)):
        try:
            if nonce.encode("utf-8", "replace") not in read_lines(path_abs):
                continue
            facts = Journal(path_abs).read()
        except OSError:
            continue  # an unreadable one cannot be the caller's
        for fact in of_kind(facts, CallerEntry):
            if fact.get("nonce") == nonce:
                return name_of(path_abs), fact
    return "", None


def _read(journal: Journal) -> list[Fact]:
    try:
        return journal.read()
    except OSError as error:
        raise StateError(f"{journal.path_abs}: cannot be read: {error.strerror}") from error


# The sessions that have been in a repository, as a person names and is shown them.


def name_of(path_abs: str) -> str:
    """Return the name of a journal's session, which is that of its file."""
    return path_abs.rpartition("/")[2].removesuffix(".jsonl")


def _is_session(session_id: str, session: str) -> bool:
    """Return whether an id is that of a session, or of its file."""
    return session in (session_id, file_name(session_id))


def _find_session(repo: Repo, session_id: str) -> str:
    """Return the session with an id.

    Raises: UsageError if it has no journal in this repository.
    """
    for state_abs in repo.states_abs:
        for path_abs in reversed(sessions(state_abs)):
            if _is_session(session_id, name_of(path_abs)):
                return name_of(path_abs)
    raise UsageError(
        f"session `{plain_line(session_id)}` has no journal here", _list_sessions(repo)
    )


def _list_sessions(repo: Repo) -> str:
    """Return a hint that lists the sessions, the newest first."""
    paths = [path for state_abs in repo.states_abs for path in sessions(state_abs)]
    newest = {name_of(path): path for path in sorted(paths, key=_changed)}
    if not newest:
        return "Are the agent's hooks installed? gitgates install-hooks --agent claude"
    lines = [_line(name, path) for name, path in reversed(newest.items())]
    more = [f"and {len(lines) - _SHOWN} older ones"] if len(lines) > _SHOWN else []
    return "\n  ".join(["Specify one: --session ID", *lines[:_SHOWN], *more])


def _changed(path_abs: str) -> float:
    try:
        return os.stat(path_abs).st_mtime
    except OSError:
        return 0.0


def _line(name: str, path_abs: str) -> str:
    when = ago(_changed(path_abs), time.time())
    try:
        requests = TIMELINE.fold(Journal(path_abs).read()).requests
    except OSError as error:
        return f"{name}  {when}  (cannot be read: {error.strerror})"
    prompt = plain_line(requests[-1], _PROMPT_SHOWN) if requests else ""
    return f"{name}  {when}  {prompt}".rstrip()


def ago(stamp: float, now: float) -> str:
    """Return how long ago something was."""
    gone_s = now - stamp
    for unit_s, name in ((_DAY_S, "day"), (_HOUR_S, "hour"), (_MINUTE_S, "minute")):
        if gone_s >= unit_s:
            number = int(gone_s // unit_s)
            return f"{number} {name}{'' if number == 1 else 's'} ago"
    return "just now"
