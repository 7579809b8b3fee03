"""Find out for which session, and which agent of it, a command of ours speaks.

An agent's shell command `gitgates VERB …` is rewritten, before it runs, to `gitgates VERB
--caller=NONCE …`, and the session's journal keeps whose the nonce is. Without one, the session that
the environment names is meant: a command inside a script is its session's, and no certain agent's.
Where two sessions could be meant, neither is: never simply the latest.
"""

from __future__ import annotations

import os
import time

from gitgates.clean import plain_line
from gitgates.engine.command import ACTIVE
from gitgates.errors import StateError, UsageError
from gitgates.hosts import calling_session, is_called_by_agent
from gitgates.policies.evidence import fold
from gitgates.record import Record
from gitgates.store.log import FOLDER, Journal, file_name, read_lines, sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo
    from gitgates.policies.session import Fact

_SHOWN = 8
_MINUTE_S, _HOUR_S, _DAY_S = 60, 3600, 86400
_PROMPT_SHOWN = 60


class Caller(Record):
    """Whom a command speaks for."""

    session: str  # the name of its journal, without .jsonl
    journals: tuple[Journal, ...]  # that of this worktree first, which may not be there yet
    facts: tuple[tuple[Fact, ...], ...]  # of each of them
    agent: str = ""  # the sub-agent's id; empty: the main thread, or a person
    agent_type: str = ""
    is_certain: bool = False  # the command itself says which agent it is of
    by_agent: bool = False  # an agent runs it, or a gate or an opinion, and not a person

    def again(self) -> Caller:
        """Return it with the facts that are there by now.

        Raises: StateError where a journal cannot be read.
        """
        return self._replace(facts=tuple(map(_read, self.journals)))


def find_caller(
    repo: Repo, env: Mapping[str, str], *, session: str = "", agent: str = "", nonce: str = ""
) -> Caller:
    """Return whom a command speaks for; where nothing tells, the only session of this worktree.

    `session` and `agent` are what it names, `nonce` what it was given before it ran.

    Raises: UsageError where nobody, or more than one, could be meant, and where an agent names
    another; StateError where a journal cannot be read.
    """
    told = identify(repo, env, session=session, agent=agent, nonce=nonce)
    if told:
        return told
    here = [name_of(path_abs) for path_abs in sessions(repo.state_abs)]
    if len(here) != 1:
        what = "more than one session has been here" if here else "no session has been here"
        raise UsageError(f"{what}: {repo.root_abs}", _list_sessions(repo))
    return _caller(repo, here[0])._replace(agent=agent, by_agent=_is_of_agent(env))


def identify(
    repo: Repo, env: Mapping[str, str], *, session: str = "", agent: str = "", nonce: str = ""
) -> Caller | None:
    """Return whom a command speaks for; None if nothing tells.

    Raises: as `find_caller`.
    """
    found = _find_nonce(repo, nonce) if nonce else None
    if found:
        own, fact = found
        is_named = not session or _is_session(session, own)
        if not is_named or agent not in ("", fact["agent"]):
            raise _speaks_for_another(own, session, agent)
        return _caller(repo, own)._replace(
            agent=str(fact["agent"]),
            agent_type=str(fact.get("agent_type", "")),
            is_certain=True,
            by_agent=True,
        )
    inherited = calling_session(env)
    if not (session or inherited):
        return None
    named = _find_session(repo, session or inherited)
    if inherited and not _is_session(inherited, named):
        raise _speaks_for_another(inherited, session, agent)
    return _caller(repo, named)._replace(agent=agent, by_agent=_is_of_agent(env))


def _is_of_agent(env: Mapping[str, str]) -> bool:
    """Return whether the environment shows that an agent, or a run of ours, calls us."""
    return is_called_by_agent(env) or bool(env.get(ACTIVE))


def _find_nonce(repo: Repo, nonce: str) -> tuple[str, Fact] | None:
    """Return the session that a nonce is of, and what its journal keeps of it."""
    for path_abs in (path for state_abs in repo.states_abs for path in sessions(state_abs)):
        try:
            if nonce.encode("utf-8", "replace") not in read_lines(path_abs):
                continue
            facts = Journal(path_abs).read()
        except OSError:
            continue  # one that cannot be read is nobody's who could be meant
        for fact in facts:
            if fact.get("what") == "caller" and fact.get("nonce") == nonce:
                return name_of(path_abs), {"agent": "", **fact}
    return None


def _speaks_for_another(own: str, session: str, agent: str) -> UsageError:
    given = (("session", session), ("agent", agent))
    named = ", ".join(f"--{what} {value}" for what, value in given if value)
    return UsageError(
        f"this command is run by an agent of session {own}, and an agent speaks only for "
        f"itself: {named} is somebody else",
        f"Leave {named} out, or have a person run it, in a terminal outside of the agent.",
    )


def _caller(repo: Repo, session: str) -> Caller:
    paths = [f"{state_abs}/{FOLDER}/{session}.jsonl" for state_abs in repo.states_abs]
    there = [paths[0], *(path for path in paths[1:] if os.path.exists(path))]
    journals = tuple(map(Journal, there))
    return Caller(session=session, journals=journals, facts=tuple(map(_read, journals)))


def _read(journal: Journal) -> tuple[Fact, ...]:
    try:
        return tuple(journal.read())
    except OSError as error:
        raise StateError(f"{journal.path_abs}: cannot be read: {error.strerror}") from error


# The sessions that have been in a repository, as a person names and is shown them.


def name_of(path_abs: str) -> str:
    """Return the name of the session that a journal is of: its file's."""
    return path_abs.rpartition("/")[2].removesuffix(".jsonl")


def agent_label(agent: str) -> str:
    """Return what an agent of a session is called."""
    return f"agent {agent}" if agent else "main thread"


def _is_session(said: str, session: str) -> bool:
    """Return whether an id means a session: by its own id, or by its file's name."""
    return session in (said, file_name(said))


def _find_session(repo: Repo, said: str) -> str:
    """Return the session that an id means.

    Raises: UsageError where it has no journal in this repository.
    """
    for state_abs in repo.states_abs:
        for path_abs in reversed(sessions(state_abs)):
            if _is_session(said, name_of(path_abs)):
                return name_of(path_abs)
    raise UsageError(f"session `{plain_line(said)}` has no journal here", _list_sessions(repo))


def _list_sessions(repo: Repo) -> str:
    """Return the sessions that may be named, the newest first: a hint for a person."""
    paths = [path for state_abs in repo.states_abs for path in sessions(state_abs)]
    newest = {name_of(path): path for path in sorted(paths, key=_changed)}
    if not newest:
        return "Is the agent's hook installed? gitgates install-hooks --agent claude"
    lines = [_line(name, path) for name, path in reversed(newest.items())]
    more = [f"and {len(lines) - _SHOWN} older ones"] if len(lines) > _SHOWN else []
    return "\n  ".join(["Name one of them: --session ID", *lines[:_SHOWN], *more])


def _changed(path_abs: str) -> float:
    try:
        return os.stat(path_abs).st_mtime
    except OSError:
        return 0.0


def _line(name: str, path_abs: str) -> str:
    when = ago(_changed(path_abs), time.time())
    try:
        requests = fold(Journal(path_abs).read()).requests
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
