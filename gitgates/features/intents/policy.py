"""The policy on intents: no writing before one is selected, none outside its scope.

`gatekeeper.py` decides before a tool is used. What a shell command has changed is compared with
the scope afterwards: in `changes.py` and, at a commit, in `commit.py`. `lease.py` keeps who has
selected what.
"""

from __future__ import annotations

from gitgates.core.policy import Need

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Config, Verdict
    from gitgates.drivers.call import Call
    from gitgates.git.repo import Repo

_NAME = "intents"
_SNAPSHOT_S = 15.0  # in a large repository
_ANY: tuple[EventKind, ...] = (
    *("session-start", "prompt", "subagent-start", "subagent-end"),
    *("turn-end", "before-compact", "session-end", "before-commit"),
)
_AFTER: tuple[EventKind, ...] = ("after-tool", "tool-failed")
_TOOLS: tuple[EventKind, ...] = ("before-tool", *_AFTER)


def needs(config: Config) -> tuple[Need, ...]:
    """Return the needed events: around tools that may write, ends, commits."""
    if _NAME not in config.tables:
        return ()
    return (
        Need(kind="before-tool", tools=(), tool_kinds=("ours",)),
        *(Need(kind=k, tools=(), but_reads=True, more_s=_SNAPSHOT_S) for k in _TOOLS),
        *(Need(kind=kind, more_s=_SNAPSHOT_S) for kind in _ANY),
    )


def follows_writers(config: Config) -> bool:
    """Return whether this policy asks for a session's own changes."""
    return _NAME in config.tables


# Added to the reason if `fails_closed` applies.
WAY_OUT = (
    "If intents are required, nothing may be written while this cannot be decided. Do not "
    "try to bypass it: tell the person, who can fix it; or remove `required` from "
    "[tool.gitgates.intents] and run `gitgates approve rules`; or restart the agent with "
    "GITGATES=0, without gates and guard."
)


def fails_closed(config: Config) -> bool:
    """Return whether a tool is refused if this policy itself fails."""
    return bool(config.tables.get(_NAME, {}).get("required"))


def person_verbs(_call: Call) -> tuple[tuple[str, ...], ...]:
    """Return the verbs that an agent may not run, which widen an intent's scope."""
    return (("intent", "approve-scope"),)


def guarded_files(call: Call) -> tuple[tuple[str, str], ...]:
    """Return the intents file."""
    return (("intents_file", _file_abs(call)),)


def watched_files(call: Call) -> dict[str, str]:
    """Return the intents file, whose changes are reported to the person."""
    return {_NAME: _file_abs(call)}


def _file_abs(call: Call) -> str:
    return f"{call.repo.root_abs}/{call.config.tables[_NAME]['file']}"


def unapproved(call: Call, changed: list[str]) -> list[str]:
    """Return the message for the person about a changed intents file that does not apply."""
    if _NAME not in changed:
        return []
    from gitgates.features.intents import approved

    intents = approved.intents_in_force(call)
    if not approved.is_unapproved(call.repo, call.config, intents):
        return []
    return [approved.describe_unapproved(intents.file).removeprefix("gitgates: ")]


def rules_at(repo: Repo, config: Config, head: str) -> dict[str, Any]:
    """Return the intents with which a session begins at a commit, for its rules."""
    from gitgates.features.intents import approved  # once in a session

    return approved.rules_at(repo, config, head)


def approve(repo: Repo, config: Config) -> str:
    """Make the file's current intents apply; return the file.

    Raises: IntentsError, StateError.
    """
    from gitgates.features.intents.approved import approve_intents  # for a verb

    approve_intents(repo, config)
    return str(config.tables[_NAME]["file"])


def labels(call: Call) -> dict[str, str]:
    """Return the intent selected by the agent, for the trace."""
    # only needed if there are intents
    from gitgates.features.intents.lease import held_by, holder_of, read_leases

    holder = holder_of(call.payload.session, call.payload.agent.id)
    lease = held_by(read_leases(call.repo.shared_state_abs), holder)
    return {"intent": lease.intent} if lease else {}


def decide(call: Any, so_far: Verdict) -> Verdict:  # noqa: ANN401 - of an agent, or of git
    """Judge a tool or changes; give the agent its intent's context; renew its lease."""
    # Each kind of event imports only what it needs.
    if call.kind == "before-tool":
        from gitgates.features.intents.gatekeeper import decide_tool

        return decide_tool(call, so_far)
    if call.kind == "before-commit":
        from gitgates.hosts import is_called_by_agent

        if not is_called_by_agent(call.env):
            return so_far
        from gitgates.features.intents.commit import decide_commit

        return so_far.joined(decide_commit(call))
    if call.kind in ("session-start", "subagent-start", "before-compact"):
        from gitgates.features.intents.context import decide_context

        return so_far.joined(decide_context(call))
    is_plain = call.kind in _AFTER and call.payload.tool.kind != "shell"
    if is_plain or call.kind == "prompt":
        from gitgates.features.intents.gatekeeper import renewed_leases

        renewed_leases(call)
        return so_far
    from gitgates.features.intents.changes import decide_changes

    return so_far.joined(decide_changes(call))
