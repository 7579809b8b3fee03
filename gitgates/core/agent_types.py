"""The records of an agent's events, and of what its session changed. No git hook loads them.

Whatever an agent does not report is empty.
"""

from __future__ import annotations

from gitgates.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Literal, TypeAlias

    from gitgates.core.lifecycle import EventKind

    # What a tool may do. An agent, and a skill, do it with other tools; "harmless" ones touch no
    # file; "report" hands over findings; "ours" is one of `gitgates mcp`;
    # "other" is one that nothing is known of; "": no tool.
    ToolKind: TypeAlias = Literal[
        "writes", "reads", "shell", "agent", "skill", "report", "ours", "harmless", "other", ""
    ]

# Tools of these kinds change no file by themselves.
UNCHANGING: tuple[ToolKind, ...] = ("reads", "skill", "report", "harmless")


class BackgroundTask(Record):
    """Something that an agent left running in the background."""

    kind: str  # subagent, shell, …
    status: str


class Channels(Record):
    """The kinds of answer that an agent's event accepts. Each accepts a message to the person."""

    deny: bool = False  # refuse a tool call, before it is made
    ask: bool = False  # have the person permit one
    block: bool = False  # refuse, or keep the agent at work, and give a reason
    stop: bool = False  # end the agent's turn
    context: bool = False  # tell the agent something without refusing anything
    reason_to_person: bool = False  # the reason of a block reaches the person alone


class Replacement(Record):
    """One text that a tool replaces by another."""

    new: str
    old: str = ""
    everywhere: bool = False  # False: in one place
    whole: bool = False  # in place of all that is in the file


class ToolUse(Record):
    """The use of a tool that an agent's event is about; for a step of the agent, all of them."""

    name: str = ""  # in the host's word, which patterns of the configuration are about
    other_names: tuple[str, ...] = ()  # which patterns may use as well
    kind: ToolKind = ""
    id: str = ""
    paths: tuple[str, ...] = ()  # that the tool writes or reads, as the agent names them
    command: str = ""  # of a shell tool
    input: Mapping[str, object] = {}  # of a shell, or ours: all of it, as the host sent it
    edits: tuple[Replacement, ...] = ()  # what it does to a file, in order
    failed: bool = False  # the tool says so itself
    skill: str = ""  # that a tool has loaded, or that the person has typed as a command
    calls: tuple[ToolUse, ...] = ()  # of a step of the agent: all of its tools


class AgentFacts(Record):
    """Which agent of a session an event comes from, and what it may do."""

    id: str = ""  # only inside of a sub-agent
    type: str = ""
    mode: str = ""  # default, plan, acceptEdits, …
    attended: bool = True  # False: nobody is there to permit anything


class Prompt(Record):
    """The prompt that an event belongs to, or hands over."""

    id: str = ""
    text: str = ""
    source: str = ""  # session-start: startup, resume, …; prompt: who wrote it
    automatic: bool = False  # the host or the agent wrote it, not the person
    scheduled: tuple[str, ...] = ()  # prompts that the host will submit later, by itself


class TurnEnd(Record):
    """How an agent wants to end its work."""

    message: str = ""  # what the agent said last
    again: bool = False  # this stop follows one that was blocked, by whomever
    background: tuple[BackgroundTask, ...] = ()


class Payload(Record):
    """The decoded payload of an agent's event. Missing fields are empty."""

    host: str = ""  # as `gitgates agent-hook` names it
    event: str = ""  # the configuration's hook; the host's word if it is none of them
    kind: EventKind = ""
    can: Channels = Channels()
    session: str = ""
    event_id: str = ""  # that no later event of the session has; empty: not told
    cwd_abs: str = ""
    project_abs: str = ""  # where the session was started; empty: not told
    transcript_abs: str = ""
    unread: str = ""  # what of it is in no words that we know: another agent's, or a newer client's
    tool: ToolUse = ToolUse()
    agent: AgentFacts = AgentFacts()
    prompt: Prompt = Prompt()
    ending: TurnEnd = TurnEnd()


class WorktreeState(Record):
    """The state of the worktree at one moment of a session."""

    tree: str  # a snapshot
    head: str = ""  # the commit that was checked out; empty: none yet, or not known
    stamp: float = 0.0  # when, since the epoch


class FileDifference(Record):
    """How one file differs between two points, according to git."""

    path: str
    status: str  # A, M, D, T; R: renamed
    was: str = ""  # its path before, if it was renamed
    added: int = 0  # lines; what differs in white space alone is in neither number
    removed: int = 0
    binary: bool = False
    submodule: bool = False
    same_content: bool = False  # only its name, or its mode, is another
    attribute: str = ""  # of .gitattributes, by which it is not written by hand
