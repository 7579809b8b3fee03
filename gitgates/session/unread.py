"""Report an event of an unknown agent to the person, once per session.

Some agents run the hooks of others' settings, with payloads of their own. What cannot be read is
neither checked nor guarded; that is said, kept in the session's journal, and found by doctor.
"""

from __future__ import annotations

from gitgates.config.load import load
from gitgates.core.errors import ConfigError, GitgatesError
from gitgates.core.types import WARN, Verdict
from gitgates.session.facts import UnreadEntry
from gitgates.session.journal import fact_of, of_kind
from gitgates.session.trust import find_repos
from gitgates.store.log import session_journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gitgates.core.agent_types import Payload


def warning_once(
    payload: Payload, title: str, env: Mapping[str, str], say: Callable[[str], None]
) -> Verdict:
    """Return the message for the person about a payload from the hooks of an agent.

    Nothing if that was reported in this session, or if nothing is configured.
    """
    text = (
        f"gitgates: {payload.unread} is unknown to {title}, whose hooks sent it: it is neither "
        "checked nor guarded. If another agent runs these hooks, install its own: gitgates doctor"
    )
    say(text)
    try:
        repo = find_repos(payload, env)[0]
        if not _is_configured(repo.root_abs):
            return Verdict()
        journal = session_journal(repo.state_abs, payload.session)
        if of_kind(journal.read(), UnreadEntry):
            return Verdict()
        journal.append(fact_of(UnreadEntry(text)))
    except (GitgatesError, OSError) as error:
        say(str(error))
        return Verdict()
    return Verdict(WARN, to_person=text)


def _is_configured(root_abs: str) -> bool:
    try:
        return load(root_abs) is not None
    except ConfigError:
        return True
