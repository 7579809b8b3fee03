"""Find out whom a command of ours speaks for: which session, and which agent of it.

An agent's PreToolUse has seen the shell command that it runs us in, and says whose it was; the
session in the environment comes second. Where two could be meant, neither is: never simply the
latest. A token that is handed in tells them apart: only one agent has got it.
"""

from __future__ import annotations

import os
import time

from gitgates.engine.command import ACTIVE
from gitgates.errors import StateError, UsageError
from gitgates.hosts import calling_session, is_called_by_agent
from gitgates.policies.evidence import fold
from gitgates.policies.tokens import digest_of
from gitgates.record import Record
from gitgates.review.called import MENTIONED, calls, fit, without_token
from gitgates.review.sessions import (
    find_named,
    list_sessions,
    name_of,
    names_session,
    said_of,
)
from gitgates.store.log import FOLDER, Journal, sessions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from gitgates.git.repo import Repo
    from gitgates.policies.evidence import Evidence, Fact, Seen

_RECENT_S = 600.0


class Call(Record):
    """A command of ours, as it was called."""

    argv: tuple[str, ...]  # the program, then its arguments, word for word
    session: str = ""  # that it names; empty: none
    agent: str = ""
    any_agent: bool = False  # which agent of a session it is makes no difference
    any_of_type: bool = False  # nor does it among agents of one type
    token: str = ""  # that it hands in; empty: none


class Caller(Record):
    """Whom a command speaks for."""

    session: str  # the name of its journal, without .jsonl
    journals: tuple[Journal, ...]  # that of this worktree first, which may not be there yet
    facts: tuple[tuple[Fact, ...], ...]  # of each of them
    agent: str = ""  # the sub-agent's id; empty: the main thread, or a person
    agent_type: str = ""
    seen_id: str = ""  # of the shell command that it was found in; empty: none has been seen
    is_certain: bool = False  # that command calls us so, and no other call of it was found yet
    by_agent: bool = False  # an agent runs it, or a gate or an opinion, and not a person

    @property
    def evidence(self) -> Evidence:
        """What the session's journal of this worktree says of reviews, and others of reviews.

        The content of one is the same in each worktree.
        """
        here, others = fold(self.facts[0]), [fact for facts in self.facts[1:] for fact in facts]
        return here.joined(fold(others)) if others else here

    @property
    def whole(self) -> Evidence:
        """What all of its journals say together: tokens and prompts are of the session."""
        facts = (fact for facts in self.facts for fact in facts)
        return fold(sorted(facts, key=_stamp))

    def again(self) -> Caller:
        """Return it with the facts that are there by now.

        Raises: StateError where a journal cannot be read.
        """
        return self._replace(facts=tuple(map(_read, self.journals)))


class _Candidate(Record):
    """A shell command that may be the one which we run in."""

    journal: Journal
    seen: Seen
    rank: int
    spent: bool  # we were found in it as often as it calls us so

    @property
    def whose(self) -> tuple[str, str]:
        return name_of(self.journal.path_abs), self.seen.agent

    @property
    def is_certain(self) -> bool:
        return self.rank > MENTIONED and not self.spent


def find_caller(repo: Repo, env: Mapping[str, str], call: Call) -> Caller:
    """Return whom a command speaks for; where nothing tells, the only session of this worktree.

    Where that is told by a shell command that was seen, it is noted that we were found in it.

    Raises: UsageError where nobody, or more than one, could be meant, and where an agent names
    another session; StateError where a journal cannot be read or written.
    """
    told = find_told(repo, env, call)
    if told:
        return told
    here = [name_of(path_abs) for path_abs in sessions(repo.state_abs)]
    if len(here) != 1:
        what = "more than one session has been here" if here else "no session has been here"
        raise UsageError(f"{what}: {repo.root_abs}", list_sessions(repo))
    return _caller(repo, here[0])._replace(agent=call.agent, by_agent=_is_of_agent(env))


def find_told(repo: Repo, env: Mapping[str, str], call: Call) -> Caller | None:
    """Return whom a command speaks for; None where nothing tells.

    Raises: as `find_caller`.
    """
    candidates = _candidates(repo, call, by_agent=_is_of_agent(env))
    found = _choose(_with_token(repo, candidates, call.token), env, call)
    if found:
        _note(found, call)
        session, agent = found.whose
        return _caller(repo, session)._replace(
            agent=agent,
            agent_type=found.seen.agent_type,
            seen_id=found.seen.id,
            is_certain=found.is_certain,
            by_agent=True,
        )
    session = _named(repo, env, call)
    if not session:
        return None
    return _caller(repo, session)._replace(agent=call.agent, by_agent=_is_of_agent(env))


def _is_of_agent(env: Mapping[str, str]) -> bool:
    """Tell whether the environment says that no person runs us: an agent does, or a run of ours."""
    return is_called_by_agent(env) or bool(env.get(ACTIVE))


def _candidates(repo: Repo, call: Call, *, by_agent: bool) -> list[_Candidate]:
    """Return the commands that could be ours. One that only mentions us counts for agents."""
    now = time.time()
    args = call.argv[1:]
    found = []
    for state_abs in repo.states_abs:
        for path_abs in sessions(state_abs):
            facts = _recent_facts(path_abs, now)
            for seen in fold(facts).commands:
                rank = 0 if seen.over or now - seen.stamp > _RECENT_S else fit(seen.text, args)
                if rank > MENTIONED or (rank and by_agent):
                    times = sum(_is_use(fact, seen, call) for fact in facts)
                    spent = times >= calls(seen.text, args)
                    found.append(_Candidate(Journal(path_abs), seen, rank, spent))
    return found


def _recent_facts(path_abs: str, now: float) -> list[Fact]:
    """Return the facts of a journal that somebody has written to lately.

    One that cannot be read is nobody's who could be meant.
    """
    try:
        if now - os.stat(path_abs).st_mtime > _RECENT_S:
            return []
        return Journal(path_abs).read()
    except OSError:
        return []


def _is_use(fact: Fact, seen: Seen, call: Call) -> bool:
    return (
        fact.get("what") == "command-used"
        and fact.get("id") == seen.id
        and fact.get("call") == _digest(call)
    )


def _digest(call: Call) -> str:
    """Return what stands for the arguments, but for a token: a command is compared without it."""
    return digest_of("\0".join(without_token(call.argv[1:])))[:16]


def _with_token(repo: Repo, candidates: list[_Candidate], token: str) -> list[_Candidate]:
    """Return the commands of the agent that a token was handed to; all, where none is."""
    fresh = [one for one in candidates if not one.spent]
    if not token or len(fresh) == 1:
        return candidates
    digest = digest_of(token)
    holders = {
        (session, handed.agent)
        for session in {one.whose[0] for one in fresh}
        for handed in _caller(repo, session).whole.tokens
        if handed.digest == digest
    }
    return [one for one in fresh if one.whose in holders] or candidates


def _choose(candidates: list[_Candidate], env: Mapping[str, str], call: Call) -> _Candidate | None:
    """Return the one command that we run in; None where none was seen.

    Raises: UsageError where there are more, or where it is not of the session that is named.
    """
    inherited = calling_session(env)
    candidates = [
        one
        for one in candidates
        # What is less than certain does not go before the environment.
        if one.is_certain or not inherited or names_session(inherited, one.whose[0])
    ]
    own = [one for one in candidates if _is_named(one, call)]
    if candidates and not own:
        strange = [one for one in candidates if one.is_certain]
        if strange:
            raise _speaks_for_another(strange[0].whose[0], call)
        return None
    fresh = [one for one in own if not one.spent]
    best = max((one.rank for one in fresh), default=0)
    pool = [one for one in fresh if one.rank == best] or own
    of_env = [one for one in pool if names_session(inherited, one.whose[0])]
    pool = of_env or pool
    if len({_what_matters(one, call) for one in pool}) > 1:
        if not fresh:
            return None  # they have been told apart before; this may be anybody
        raise _more_than_one(list(dict.fromkeys(one.whose for one in pool)), call)
    return pool[-1] if pool else None


def _what_matters(one: _Candidate, call: Call) -> tuple[str, ...]:
    session, agent = one.whose
    if call.any_agent:
        return (session,)
    return (session, one.seen.agent_type) if call.any_of_type else (session, agent)


def _more_than_one(whose: list[tuple[str, str]], call: Call) -> UsageError:
    named = "; ".join(f"session {session}, {said_of(agent)}" for session, agent in whose)
    sessions_of = {session for session, _ in whose}
    session = sessions_of.pop() if len(sessions_of) == 1 else "ID"
    naming = "" if call.session else f"with --session {session}, or "
    return UsageError(
        f"more than one agent is running this very command: {named}",
        f"Nothing was done. Run it again {naming}in other words, such as another text: "
        "what no other agent runs is yours.",
    )


def _is_named(one: _Candidate, call: Call) -> bool:
    session, agent = one.whose
    return (not call.session or names_session(call.session, session)) and (
        not call.agent or call.agent == agent
    )


def _speaks_for_another(session: str, call: Call) -> UsageError:
    named = ", ".join(
        f"--{what} {value}"
        for what, value in (("session", call.session), ("agent", call.agent))
        if value
    )
    return UsageError(
        f"this command is run by an agent of session {session}, and an agent speaks only for "
        f"itself: {named} is somebody else",
        f"Leave {named} out, or have a person run it, in a terminal outside of the agent.",
    )


def _note(found: _Candidate, call: Call) -> None:
    fact = {"what": "command-used", "id": found.seen.id, "call": _digest(call)}
    try:
        found.journal.append(fact)
    except OSError as error:
        path_abs = found.journal.path_abs
        raise StateError(f"{path_abs}: cannot be written: {error.strerror}") from error


def _named(repo: Repo, env: Mapping[str, str], call: Call) -> str:
    """Return the session that is named, by an option or by the environment; empty for none."""
    inherited = calling_session(env)
    if not call.session:
        return find_named(repo, inherited) if inherited else ""
    named = find_named(repo, call.session)
    if inherited and not names_session(inherited, named):
        raise _speaks_for_another(inherited, call)
    return named


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


def _stamp(fact: Fact) -> float:
    stamp = fact.get("t", 0.0)
    return float(stamp) if isinstance(stamp, int | float) else 0.0
