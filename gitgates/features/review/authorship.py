"""Record which files the session's own tools wrote, as far as that is known.

A shell command may have written anything while it ran, unless it is known to read: there is a
snapshot before and after it. A tool that is not known may have written anything since the snapshot
before it. A file that an editing tool has written is the session's, with all that is in it.
"""

from __future__ import annotations

from gitgates.core.lifecycle import ENDINGS
from gitgates.core.types import BLOCK
from gitgates.features.review import config as review_config
from gitgates.session.facts import (
    RestEntry,
    SnapshotEntry,
    ToolBackgroundEntry,
    ToolRefusedEntry,
)
from gitgates.session.journal import of_kind
from gitgates.session.recorder import may_write
from gitgates.session.start import record_base
from gitgates.session.writers import find_last_snapshot, is_shell_running, own_files_now
from gitgates.store.files import length_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from gitgates.core.agent_types import Payload
    from gitgates.core.types import Verdict
    from gitgates.session.call import Call


needs = review_config.review_needs
follows_writers = review_config.is_review_on
hears_all_writers = review_config.hears_all_writers
always = True  # a command that was refused has written nothing


def decide(call: Call, so_far: Verdict) -> Verdict:
    """Record a snapshot at the end of a turn, and the session's own files in it.

    Before gates run, which may take minutes: what is written meanwhile belongs to the next turn.
    """
    payload = call.payload
    if payload.tool_kind == "shell":
        _record_command(call, so_far)
    elif so_far.final:
        return so_far
    elif payload.kind == "prompt":
        if call.session.base and not payload.automatic:
            call.snapshot_fields["own"] = own_files_now(call)
    elif review_config.asks_for_review(call) and (call.ends_work or payload.mode == "plan"):
        record_now(call)
    return so_far


def _record_command(call: Call, so_far: Verdict) -> None:
    """Record a snapshot before and after a shell command that may write."""
    if so_far.level >= BLOCK:
        call.record(ToolRefusedEntry(call.key))
    elif call.session.base and may_write(call.payload):
        record_now(call)
        if call.kind == "before-tool" and _goes_on(call.payload):
            call.record(ToolBackgroundEntry(call.key))


def _may_run_on(call: Call) -> bool:
    """Return whether a shell command may go on while the agent does something else.

    At the end of a turn, the host says which ones do.
    """
    if call.kind in ENDINGS:
        return is_shell_running(call)
    last = find_last_snapshot(call.entries)
    since = call.entries[max(last, 0) :]
    return bool(of_kind(since, ToolBackgroundEntry)) or any(fact.get("running") for fact in since)


def _goes_on(payload: Payload) -> bool:
    """Return whether a command is started in the background, by the tool or by the shell."""
    plain = payload.command.replace("&&", "").replace(">&", "").replace("&>", "")
    return payload.tool_input.get("run_in_background") is True or "&" in plain


def record_now(call: Call) -> None:
    """Record a snapshot, and the session's own files in it.

    Raises: GitError if git fails.
    """
    record_base(call)
    if not call.snapshot.tree:
        return
    length, running = length_of(call.payload.transcript_abs), _may_run_on(call)
    snapshot = SnapshotEntry(
        tree=call.snapshot.tree,
        head=call.snapshot.head,
        own=own_files_now(call),
        transcript=length,
        running=running,
    )
    call.record(snapshot)


def idle_entry(call: Call) -> tuple[RestEntry, ...]:
    """Return the entry that the agent is idle from now on: later changes are others'.

    A server that it left running does not count as its work.
    """
    is_end = call.payload.kind == "turn-end"  # the end of a sub-agent does not make the agent idle
    if not is_end or not call.snapshot.tree or call.agents_at_work:
        return ()
    length = length_of(call.payload.transcript_abs)
    return (RestEntry(call.snapshot.tree, length),)
