"""Compare an agent's commit with the scope of the intents that its session holds.

A git hook has no session; the environment tells whose commit it is. A person's is not compared.
"""

from __future__ import annotations

from gitgates.core.types import BLOCK, Verdict
from gitgates.features.intents.approved import intents_of_session
from gitgates.features.intents.gatekeeper import join_paths
from gitgates.features.intents.intent import settings_of
from gitgates.features.intents.lease import read_leases
from gitgates.features.intents.scope import is_in_scope
from gitgates.git.object_store import reading_git
from gitgates.git.paths import staged_paths
from gitgates.hosts import calling_session
from gitgates.store.log import file_name, session_journal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.drivers.git import HookCall
    from gitgates.git.repo import Repo

_NAMES = ("-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-relative")


def decide_commit(call: HookCall) -> Verdict:
    """Refuse an agent's commit with files outside the scope of its session's intents."""
    repo, session = call.repo, calling_session(call.env)
    held_ids = [
        lease.intent
        for lease in read_leases(repo.shared_state_abs).values()
        if lease.holder.session == file_name(session) or not session  # the variable is missing
    ]
    if not held_ids and not settings_of(call.config).required:
        return Verdict()
    intents = intents_of_session(repo, call.config, session and file_name(session))
    scopes = [intent for intent in intents.active if intent.id in held_ids]
    staged, deleted = staged_paths(repo, merging=call.event.name == "pre-merge-commit")
    outside = [
        path
        for path in sorted((*staged, *deleted))
        if not any(is_in_scope(intents, i, path, ignore_case=repo.ignores_case) for i in scopes)
    ]
    outside = _changed_in_session(repo, session, outside)
    if not outside:
        return Verdict()
    scope = (
        f"the scope of {' and '.join(held_ids)}" if scopes else "any scope: no intent is selected"
    )
    text = f"gitgates: these files are outside {scope}: {join_paths(outside)}. "
    return Verdict(BLOCK, to_agent=f"{text}Remove them from the commit: git restore --staged FILE")


def _changed_in_session(repo: Repo, session: str, paths: list[str]) -> list[str]:
    """Return the files that differ from those at session start."""
    if not paths:
        return []
    from gitgates.journal.entries import fold  # only a commit that may be refused pays for it

    base = fold(session_journal(repo.state_abs, session).read()).beginning.tree
    git = reading_git(repo)
    if not base or git.ask("cat-file", "-e", base).exit_status:
        return paths
    # As arguments, the paths might exceed a limit.
    changed = set(git.names("diff", "--cached", *_NAMES, base, "--"))
    return [path for path in paths if path in changed]
