"""Tell the person, once per session, what no policy can: nothing, or not all, is checked. Cold.

The repository is gone; GITGATES=0 is set; or a payload is unknown to us: some agents run the hooks
in other agents' settings, with payloads of their own. A note in the session's journal says that the
person has been told, and `doctor` finds those about payloads.
"""

from __future__ import annotations

import os

from gitgates.config.load import load
from gitgates.core.errors import GitgatesError
from gitgates.core.types import WARN, Verdict
from gitgates.drivers.tampering import OFF, digests_in, required_gates
from gitgates.drivers.trust import find_repos
from gitgates.hosts import agent_host
from gitgates.journal.entries import NoteEntry
from gitgates.journal.journal import fact_of, of_kind
from gitgates.store.log import session_journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.core.agent_types import Payload
    from gitgates.journal.journal import Fact

_UNREAD, _SWITCHED_OFF, _LOST = "unread", "switched-off", "lost"


def answer_switched_off(
    raw: bytes, env: Mapping[str, str], say: Callable[[str], None], host: str
) -> bytes:
    """Return the message at a stop if GITGATES=0 was set during the session."""
    try:
        payload = agent_host(host).decode(raw, env)
        if payload.kind != "turn-end":
            return b""
        repo = find_repos(payload, env)[0]
        journal = session_journal(repo.state_abs, payload.session)
        facts = journal.read()
        config = load(repo.root_abs) if facts else None
        was_told = _told(facts, _SWITCHED_OFF) or any(digests_in(fact).get(OFF) for fact in facts)
        required = required_gates(config) if config and not was_told else ""
        if not required:
            return b""
        text = (
            f"gitgates: GITGATES=0 is set, and was not at the start of this session: {required} "
            "did not run"
        )
        journal.append(fact_of(NoteEntry(text, _SWITCHED_OFF)))
    except (GitgatesError, OSError, ValueError) as error:
        say(str(error))
        return b""
    return agent_host(payload.host).encode(payload, Verdict(WARN, to_person=text))


def answer_lost(payload: Payload, why: str) -> Verdict:
    """Return the message at a stop, once, if the repository is gone."""
    folder = payload.cwd_abs
    while folder not in ("", "/"):
        journal = session_journal(f"{folder}/.git/gitgates", payload.session)
        # A file is of a worktree, whose journal was in what is gone, or of a bare repository.
        facts = journal.read() if os.path.isdir(f"{folder}/.git") else []
        if facts and not _told(facts, _LOST):
            text = f"gitgates: nothing is checked from now on: {why}"
            journal.append(fact_of(NoteEntry(text, _LOST)))
            return Verdict(WARN, to_person=text)
        folder = os.path.dirname(folder)
    return Verdict()


def warning_once(
    payload: Payload, title: str, env: Mapping[str, str], say: Callable[[str], None]
) -> Verdict:
    """Return the message for the person about a payload from an agent's hooks.

    Nothing if that was reported in this session, or if nothing is configured.
    """
    text = (
        f"gitgates: {payload.unread} is unknown to {title}, whose hooks sent it: it is neither "
        "checked nor guarded. If another agent runs these hooks, install its own: gitgates doctor"
    )
    say(text)
    try:
        repo = find_repos(payload, env)[0]
        if load(repo.root_abs) is None:
            return Verdict()
        journal = session_journal(repo.state_abs, payload.session)
        if _told(journal.read(), _UNREAD):
            return Verdict()
        journal.append(fact_of(NoteEntry(text, _UNREAD)))
    except (GitgatesError, OSError) as error:
        say(str(error))
        return Verdict()
    return Verdict(WARN, to_person=text)


def unread_in(facts: list[Fact]) -> list[str]:
    """Return what the person was told about payloads that cannot be read."""
    return _told(facts, _UNREAD)


def _told(facts: list[Fact], about: str) -> list[str]:
    notes = of_kind(facts, NoteEntry)
    return [str(note["text"]) for note in notes if note.get("about") == about]
