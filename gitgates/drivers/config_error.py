"""Decide events while the configuration cannot be read.

An agent whose session may have caused the error cannot stop before it is fixed, within bounds; and
nothing keeps it from fixing it. Otherwise the person, who may be editing that file, is told.
"""

from __future__ import annotations

import os

from gitgates.config import FILES, LOCAL_FILE
from gitgates.config.load import files_of
from gitgates.core.lifecycle import ENDINGS
from gitgates.core.types import BLOCK, WARN, Verdict
from gitgates.drivers.breaker import BLOCKED, Attempt, rule
from gitgates.drivers.writers import own_history
from gitgates.git.object_store import reading_git

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.drivers.call import Call

_GATES = "the configuration"


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Decide an event of a repository whose configuration cannot be read."""
    payload, message = call.payload, str(call.config_error)
    if payload.kind in ENDINGS and payload.agent.mode != "plan":
        is_summary = payload.kind == "subagent-end" and not payload.agent.type
        return so_far if is_summary else so_far.joined(_decide_ending(call, message))
    files = tuple(_files(call))
    if payload.kind == "after-tool" and any(path.endswith(files) for path in payload.tool.paths):
        text = f"The gitgates configuration has an error.\n\n{message}"
        return so_far.joined(Verdict(WARN, to_agent=text))
    return so_far


def _decide_ending(call: Call, message: str) -> Verdict:
    payload = call.payload
    if call.session.beginning.tree and call.is_unchanged:
        return Verdict()
    if _is_unrelated_to_session(call):
        # What an earlier turn has caused, it was sent back for.
        text = "gitgates checked nothing; the configuration error was not caused by this turn"
        return Verdict(WARN, to_person=f"{text}. {message}")
    broken = (("configuration", "failed"),)
    attempt = Attempt(call.prompt, payload.agent.id, _GATES, BLOCK, broken)
    # With no configuration to ask, these are the defaults.
    most = call.config.breaker
    ruling = rule(call.session, attempt, call.hook, blocks=call.blocks, breaker=most)
    entry = call.round(_GATES, ruling.outcome, statuses=broken)
    if ruling.outcome != BLOCKED:
        text = f"gitgates checked nothing; the agent was allowed to stop {ruling.how}. {message}"
        return Verdict(WARN, to_person=text, entries=(entry,))
    text = (
        "The gate configuration could not be read, so nothing was checked (attempt"
        f" {ruling.attempt} of {call.hook.attempts}).\n\n{message}\n\n"
        "Fix that part of the file, then run: gitgates check\n"
        "If somebody else is editing it right now, do not touch the file, and end your turn "
        "again: after the last attempt you may stop, and the person is told."
    )
    return Verdict(BLOCK, to_agent=text, entries=(entry,))


def _is_unrelated_to_session(call: Call) -> bool:
    """Return whether the session is known not to have changed the configuration.

    Either its tools have not, or the files are as they were when it began.
    """
    if history := own_history(call):
        return _files(call).isdisjoint(history.changes())
    base, now = call.session.beginning.tree, call.snapshot.tree
    if not (base and now) or os.path.exists(f"{call.repo.root_abs}/{LOCAL_FILE}"):
        return False  # git may ignore that one: then it is in no snapshot
    compared = reading_git(call.repo).ask("diff-tree", "--quiet", base, now, "--", *_files(call))
    return compared.exit_status == 0


def _files(call: Call) -> set[str]:
    """Return the files that may have caused the error."""
    return files_of(call.config_error) if call.config_error else {*FILES}
