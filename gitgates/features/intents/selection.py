"""Select and release an intent, for a verb or a tool that knows who asks."""

from __future__ import annotations

from gitgates.core.errors import LockError, StateError, UsageError
from gitgates.features.intents import lease as leases_of
from gitgates.features.intents.approved import intents_of_session
from gitgates.features.intents.facts import IntentSelectedEntry
from gitgates.features.intents.file import settings_of
from gitgates.features.intents.gatekeeper import describe_active
from gitgates.features.intents.lease import Holder, acquire, read_leases
from gitgates.features.intents.session_context import context_of
from gitgates.session.journal import fact_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.types import Config
    from gitgates.features.intents.lease import Leases
    from gitgates.git.repo import Repo
    from gitgates.store.log import Journal

_OWN_SESSION = (
    "Your own session holds it. If this is your work, stop, and tell the session to run "
    "`gitgates intent release` before it starts a sub-agent for it."
)


def select(repo: Repo, config: Config, name: str, *, holder: Holder, journal: Journal) -> str:
    """Let a holder acquire an intent; return the message, with the context of the intent.

    What it has held before is released. `journal`: of its session, in this worktree.

    Raises: UsageError if that intent cannot be selected; LockError if another holder has it;
    ConfigError, GitError, StateError.
    """
    settings = settings_of(config)
    intents = intents_of_session(repo, config, holder.session)
    leases = read_leases(repo.shared_state_abs)
    intent = intents.get(name)
    if intent is None or not intent.is_active:
        why = f"{intent.id} is {intent.status}" if intent else f"{intents.file}: no such intent"
        raise UsageError(f"{why}; it cannot be selected", describe_active(intents, leases, holder))
    lease = acquire(
        *(repo.shared_state_abs, intent.id, holder),
        ttl_s=settings.ttl_s,
        git_dir_abs=repo.git_dir_abs,
    )
    if lease.holder != holder:
        others = describe_active(intents, read_leases(repo.shared_state_abs), holder)
        hint = (
            f"The lease is extended while its holder works. Wait, or select another one:\n{others}"
        )
        if lease.holder == Holder(holder.session):
            hint += f"\n{_OWN_SESSION}"
        raise LockError(f"{intent.id} is {lease.holding}", hint)
    begins = not settings.required and not _is_judged(repo, leases, holder)
    _note(journal, IntentSelectedEntry(holder.agent, intent.id, begins))
    lines = [f"{intent.id} is held by {holder} now."]
    if lease.former:
        lines.append(f"It was taken over from {lease.former}, whose lease had expired.")
    return "\n".join([*lines, context_of(repo, config, intent, settings.context_bytes)])


def release(repo: Repo, holder: Holder) -> str:
    """Release the intent that a holder has, or has lost; return its id.

    Raises: UsageError if it has none; StateError, LockError.
    """
    lease = leases_of.release(repo.shared_state_abs, holder)
    if lease is None:
        raise UsageError(
            f"{holder} holds no intent", "To see who holds which: gitgates intent status"
        )
    return lease.intent


def _is_judged(repo: Repo, leases: Leases, holder: Holder) -> bool:
    """Return whether what a session changes in this worktree is compared with a scope already."""
    return any(
        lease.is_live
        and lease.holder.session == holder.session
        and lease.git_dir_abs == repo.git_dir_abs
        for lease in leases.values()
    )


def _note(journal: Journal, selected: IntentSelectedEntry) -> None:
    try:
        journal.append(fact_of(selected))
    except OSError as error:
        raise StateError(f"{journal.path_abs}: cannot be written: {error.strerror}") from error
