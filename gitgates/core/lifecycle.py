"""Every hook of every host: which host fires it, its subject, its kind.

Source: githooks(5) of git 2.39 to 2.54; for an agent's events, `hosts/`. Data only.
"""

from __future__ import annotations

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal, TypeAlias

    # What an event is, whatever its host calls it.
    EventKind: TypeAlias = Literal[
        "before-commit",
        "before-push",
        "other",  # another git hook, or one run by hand: gates are all that it is about
        "session-start",
        "prompt",
        "prompt-expansion",
        "before-tool",
        "after-tool",
        "tool-failed",
        "after-batch",
        "subagent-start",
        "subagent-end",
        "task-end",
        "teammate-idle",
        "turn-end",
        "turn-failed",
        "before-compact",
        "after-compact",
        "session-end",
        "",  # no event that gates can be run at
    ]
    # Where the paths of an event come from: the index being committed, the message file, the
    # pushed ranges, the two commits named in the arguments, HEAD's own change, what a merge
    # brought, what the caller names, or nowhere.
    Scope: TypeAlias = Literal[
        "staged", "message", "pushed", "two-commits", "head", "merged", "caller", "none"
    ]

# Ends of an agent's work.
ENDINGS: tuple[EventKind, ...] = ("turn-end", "subagent-end")
# Events whose gates check all that has changed, and whose failures go back for a number of times.
RETRIED: tuple[EventKind, ...] = (*ENDINGS, "task-end", "teammate-idle")
# What gates take here, an agent waits for: it wants to stop, or has written a file.
GATES_OWN_TIME: tuple[EventKind, ...] = (*RETRIED, "after-tool", "after-batch")
TOOL_EVENTS: tuple[EventKind, ...] = ("before-tool", "after-tool", "tool-failed")


class HookPoint(Record):
    """One lifecycle point of a host."""

    name: str
    host: str  # git, agent, any
    scope: Scope = "none"
    reads_stdin: bool = False  # only then is standard input read: elsewhere it may be a terminal
    client: bool = True  # git: runs where people work, so that install-hooks can install it
    framework: bool = False  # a stage of the pre-commit framework too
    can_block: bool = True  # of git; what an agent's event can be answered with: `EVENTS` of hosts
    kind: EventKind = "other"


GIT_HOOKS: tuple[HookPoint, ...] = (
    HookPoint("applypatch-msg", "git", "message"),
    HookPoint("pre-applypatch", "git"),
    HookPoint("post-applypatch", "git", can_block=False),
    HookPoint("pre-commit", "git", "staged", framework=True, kind="before-commit"),
    HookPoint("pre-merge-commit", "git", "staged", framework=True, kind="before-commit"),
    HookPoint("prepare-commit-msg", "git", "message", framework=True),
    HookPoint("commit-msg", "git", "message", framework=True),
    HookPoint("post-commit", "git", "head", framework=True, can_block=False),
    HookPoint("pre-rebase", "git", framework=True),
    HookPoint("post-checkout", "git", "two-commits", framework=True, can_block=False),
    HookPoint("post-merge", "git", "merged", framework=True, can_block=False),
    HookPoint("pre-push", "git", "pushed", reads_stdin=True, framework=True, kind="before-push"),
    HookPoint("post-rewrite", "git", reads_stdin=True, framework=True, can_block=False),
    HookPoint("reference-transaction", "git", reads_stdin=True),
    HookPoint("post-index-change", "git", can_block=False),
    HookPoint("pre-auto-gc", "git"),
    HookPoint("sendemail-validate", "git"),
    HookPoint("p4-changelist", "git", "message"),
    HookPoint("p4-prepare-changelist", "git", "message"),
    HookPoint("p4-post-changelist", "git", can_block=False),
    HookPoint("p4-pre-submit", "git"),
    # fsmonitor-watchman answers a protocol on stdout, so that it can never be a gate's place.
    HookPoint("fsmonitor-watchman", "git", client=False),
    HookPoint("pre-receive", "git", reads_stdin=True, client=False),
    HookPoint("update", "git", client=False),
    HookPoint("proc-receive", "git", reads_stdin=True, client=False),
    HookPoint("post-receive", "git", reads_stdin=True, client=False, can_block=False),
    HookPoint("post-update", "git", client=False, can_block=False),
    HookPoint("push-to-checkout", "git", client=False),
)

# The words of the configuration for the events of a coding agent, whichever it is.
AGENT_HOOKS: tuple[HookPoint, ...] = (
    HookPoint("SessionStart", "agent", kind="session-start"),
    HookPoint("UserPromptSubmit", "agent", kind="prompt"),
    HookPoint("UserPromptExpansion", "agent", kind="prompt-expansion"),
    HookPoint("PreToolUse", "agent", kind="before-tool"),
    HookPoint("PostToolUse", "agent", kind="after-tool"),
    HookPoint("PostToolUseFailure", "agent", kind="tool-failed"),
    HookPoint("PostToolBatch", "agent", kind="after-batch"),
    HookPoint("SubagentStart", "agent", kind="subagent-start"),
    HookPoint("SubagentStop", "agent", kind="subagent-end"),
    HookPoint("TaskCompleted", "agent", kind="task-end"),
    HookPoint("TeammateIdle", "agent", kind="teammate-idle"),
    HookPoint("Stop", "agent", kind="turn-end"),
    HookPoint("StopFailure", "agent", kind="turn-failed"),
    HookPoint("PreCompact", "agent", kind="before-compact"),
    HookPoint("PostCompact", "agent", kind="after-compact"),
    HookPoint("SessionEnd", "agent", kind="session-end"),
)
HOOK_OF: dict[EventKind, str] = {point.kind: point.name for point in AGENT_HOOKS}
AGENT_KINDS = tuple(HOOK_OF)
GIT_KINDS: tuple[EventKind, ...] = ("before-commit", "before-push", "other")
ENDING_HOOKS = tuple(HOOK_OF[kind] for kind in ENDINGS)
RETRY_HOOKS = (
    *(HOOK_OF[kind] for kind in RETRIED),
    "headless",
)  # whose failures go back to an agent

HOOK_POINTS: dict[str, HookPoint] = {
    **{point.name: point for point in GIT_HOOKS},
    **{point.name: point for point in AGENT_HOOKS},
    "headless": HookPoint("headless", "any", "caller"),
    "manual": HookPoint("manual", "any", "caller", framework=True),
}

# A commit is being made, and its index says what it is.
OF_A_COMMIT = (
    *("pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg"),
    *("applypatch-msg", "pre-applypatch"),
)
# Git runs these instead of the other; without gates of its own, such a hook runs the other's.
STANDS_IN_FOR = {"pre-merge-commit": "pre-commit"}
# The hook that was there before ours lies beside it, under its name with this at the end.
KEPT_SUFFIX = ".before-gitgates"


def kind_of(hook: str) -> EventKind:
    """Return the event kind of a hook; "" for an unknown one."""
    point = HOOK_POINTS.get(hook)
    return point.kind if point else ""
