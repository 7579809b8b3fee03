"""What the hosts of coding agents have in common: one JSON object in, one, or nothing, out. Pure.

Most clients have taken over the protocol of Claude Code, and differ in names and in what they
understand. So the fields that are read here have its names: a host renames its own (`rename`), and
says in which form it takes an answer.

Reading is tolerant: a field that is missing or of another type counts as not said, and only what is
no JSON object at all is refused. Whatever is answered goes with exit status 0, because most clients
take 2 for "block", and everything else for "the hook is broken, go on".
"""

from __future__ import annotations

import os
import sys

from gitgates.core.agent_types import Channels, Payload
from gitgates.core.lean_json import dumps, loads
from gitgates.core.lifecycle import HOOK_OF
from gitgates.core.record import lazy
from gitgates.core.types import BLOCK, STOP
from gitgates.hosts.capabilities import cut, express, reaches_agent
from gitgates.hosts.payload import edits_in, path_of, tasks_in, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from gitgates.core.agent_types import Replacement, ToolCall, ToolKind
    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Level, Verdict

_BOM = b"\xef\xbb\xbf"
_OWN = "hookSpecificOutput"
_EXIT_BLOCK = 2
_SESSION_ELSEWHERE = ("conversation_id", "trajectory_id")  # fields of agents that we do not know
_MCP = "mcp"  # how the names of tools of servers begin


class BadPayload(Exception):
    """The input is not a payload of the host."""


class AgentHost:
    """A coding agent: its words, its protocol, and where its files are.

    A host is a module with a subclass of this, and an instance of that, `HOST`.
    """

    NAME = ""  # as `agent-hook` names it
    TITLE = ""  # as people know it
    TESTED = ""  # the version of its client that our tests were run with
    PROGRAMS: tuple[str, ...] = ()  # its program, and the packages of npm and PyPI that have it
    # Options, their values, or `option=value`, with which it asks nobody before it does anything.
    UNASKED: tuple[str, ...] = ()
    DRIVEN = False  # whether `make e2e` has tests with its client
    # (name, who sets it, what it does): the variables that we read, for the documentation
    VARIABLES: tuple[tuple[str, str, str], ...] = ()
    SESSION = ""  # the variable of a command with the session of the agent that runs it
    CALLER: tuple[str, ...] = ()  # those that tell that an agent runs a command
    PROJECT = ""  # the variable of a hook with the folder that the session was started in
    # Agents that run the hooks of this one's settings of a project, too: (its name, a variable that
    # its hooks have, one that only those of its own settings have).
    RUN_BY: tuple[tuple[str, str, str], ...] = ()
    IS_SHARED = False  # whether agents that we do not know run them, too
    SECRETS: tuple[str, ...] = ()  # variables of its own that no gate gets unless it asks for them
    OF_A_SESSION: tuple[str, ...] = ()  # those that another agent must not be started with

    # Its events → what each is, and what it can be answered with.
    EVENTS: dict[str, tuple[EventKind, Channels]] = {}
    NO_EVENTS: tuple[str, ...] = ()  # its others, which we do nothing at
    TELLS_PROMPTS = True  # False: not always; then a turn begins with what comes after its end
    TELLS_EDITS = True  # False: maybe too late, so that an edit counts as soon as it is announced
    REPEATS = True  # whether it may deliver one event twice: where two settings files call us
    RETURNS_REASON = False  # True: the reason of a block comes back as a prompt
    HANDS_TOKENS = True  # whether a sub-agent, as it starts, gets a text that nobody else sees
    PROVABLE: tuple[EventKind, ...] = ("turn-end", "before-tool")  # can be blocked; most important
    CANNOT: dict[EventKind, str] = {}  # what an answer of it cannot do, for people
    NO_GIT_HOOKS = ""  # where git runs no hooks in its shell, what that means, for people

    TOOL_NAMES: dict[ToolKind, tuple[str, ...]] = {}
    OLDER_TOOLS: dict[str, ToolKind] = {}  # which are installed for no more, but understood
    # The names that patterns of the configuration may call a tool by, beside its own.
    OTHER_NAMES: dict[str, tuple[str, ...]] = {}
    PATH_FIELDS: tuple[str, ...] = ("file_path", "path")  # of `tool_input`, with a tool's file
    OURS = "mcp__gitgates__"  # how the names of the tools of our own server begin

    # The form of its answers. "permission": `permissionDecision` of `hookSpecificOutput`; else the
    # word that stands in `decision`.
    DENIES = "permission"  # a tool call
    BLOCKS = "block"  # everything else
    TELLS = "own"  # where text for the agent stands: "own", `hookSpecificOutput`; "top": beside it
    # Events at which a decision has no effect, or hides what a tool said: text tells the reason.
    ONLY_TELLS: tuple[EventKind, ...] = ()
    # Events that a stop ends by saying nothing: `continue: false` would not.
    SILENT_STOPS: tuple[EventKind, ...] = ()
    PERSON = "systemMessage"  # the field with text for the person; empty: there is none
    CHANGES = ""  # the field of `hookSpecificOutput` with a tool's new input; empty: none

    FOLDER = ""  # of a project, that settings, agents and skills are in
    HOME = ""  # the same of a person's own, below HOME; empty: of the same name
    HOME_VARIABLE = ""  # which names that folder
    HOME_PARENT_VARIABLE = ""  # which names the folder that it is in, instead of HOME
    RULES_FILE = "AGENTS.md"  # of a project, which each session reads
    FILES: dict[str, str] = {}  # scope → the settings in these folders
    AGENT_FILES: tuple[str, ...] = ()  # what defines a sub-agent `{}` there
    SKILL_FILES: tuple[str, ...] = ()  # what defines a skill
    SETTINGS = "gitgates.hosts.settings.json_settings"  # the module that puts our hooks into them
    SERVERS = ""  # the module that is its `AgentServers`; empty: it has none
    TRUST = ""  # what a person has to do before the client runs our hooks; empty: nothing
    OLDER_FILE = ""  # beside them; of its `hooks`, those count at whose event they have none
    EVENTS_AT: tuple[str, ...] = ("hooks",)  # the keys of the settings that the events are below
    HEAD: dict[str, Any] = {}  # what else a file that is made anew needs
    HANDLER: dict[str, Any] = {}  # and each hook
    HIDES = False  # whether the settings of a project are read instead of a person's own
    RUNS_ONCE = False  # whether the same command in two files is run once
    FIELDS: dict[str, str] = {}  # where hooks are no groups: what `event`, `matcher`, `name` are
    WHOLE = False  # whether a matcher has to match the whole name of a tool
    EXPRESSION = "{}"  # and how a matcher stands there
    GUARDED = False  # whether a program that is missing, or fails, is taken for a refusal
    PER_SECOND = 1  # in which unit timeouts are
    USUAL_S = 60.0  # the timeout where none is said
    MOST_S: dict[EventKind, int] = {}  # what the client waits at most, whatever is said
    # What switches all hooks off.
    OFF = ""  # the key of the settings, `a.b` for one in a table
    OFF_IS = "true"  # the value by which it does
    FORMER_OFF: tuple[str, ...] = ()  # its other names
    SWITCHES: tuple[str, ...] = ()  # other files of a project that it may stand in
    OWN_SWITCHES: tuple[str, ...] = ()  # the same of a person's own, in their folder
    SWITCH_MENTION = ""  # what a change of those files is about that is guarded; empty: any
    OFF_WORDS: tuple[tuple[str, ...], ...] = ()  # in a command that starts it: patterns in a row
    OFF_VARIABLES: tuple[str, ...] = ()  # for that command; any value

    @lazy
    def tools(self) -> dict[str, ToolKind]:
        """Return the kinds of all tools, by their names."""
        names = {name: kind for kind, names in self.TOOL_NAMES.items() for name in names}
        return {**names, **self.OLDER_TOOLS}

    def has(self, kind: EventKind) -> bool:
        """Return whether it has an event."""
        return any(one == kind for one, _can in self.EVENTS.values())

    # Who runs a command, and where files are.

    def session_of(self, env: Mapping[str, str]) -> str:
        """Return the session of the agent that runs a command; empty if none does."""
        return env.get(self.SESSION, "")

    def is_caller(self, env: Mapping[str, str]) -> bool:
        """Return whether such an agent runs a command, and not a person."""
        return any(env.get(name) for name in (self.SESSION, *self.CALLER))

    def home(self, env: Mapping[str, str]) -> str:
        """Return the folder of a person's own; empty if there is none.

        A relative HOME counts as not set: each program would take it for another folder.
        """
        homes = (env.get(name, "") for name in (self.HOME_PARENT_VARIABLE, "HOME"))
        own = next(filter(os.path.isabs, homes), "")
        return env.get(self.HOME_VARIABLE) or (f"{own}/{self.HOME or self.FOLDER}" if own else "")

    def scopes(self, root_abs: str, env: Mapping[str, str]) -> dict[str, str]:
        """Return the folders of settings, agents and skills: scope → one, nearest first."""
        own = self.home(env)
        folders = {"user": os.path.abspath(own) if own else ""}
        found = {scope: folders.get(scope, f"{root_abs}/{self.FOLDER}") for scope in self.FILES}
        return {scope: folder for scope, folder in found.items() if folder}

    def settings_files(self, root_abs: str, env: Mapping[str, str]) -> dict[str, str]:
        """Return the settings that there may be: scope → file, nearest first."""
        folders = self.scopes(root_abs, env)
        return {scope: f"{folder}/{self.FILES[scope]}" for scope, folder in folders.items()}

    def switch_files(self, root_abs: str, env: Mapping[str, str]) -> dict[str, str]:
        """Return the files that may switch all hooks off, beside the settings: file → its scope."""
        own = self.home(env)
        found = {f"{root_abs}/{file}": "project" for file in self.SWITCHES}
        return {**found, **{f"{own}/{file}": "user" for file in self.OWN_SWITCHES if own}}

    def may_be_off(self, content: bytes) -> bool:
        """Return whether a file speaks of what switches all hooks off: then it is to be parsed."""
        names = (name.rpartition(".")[2].encode() for name in (self.OFF, *self.FORMER_OFF) if name)
        return any(name in content for name in names)

    def runs_without_hooks(self, words: Sequence[str], env: Iterable[str]) -> bool:
        """Return whether a command starts the client without hooks, or switches them off for good.

        `words`: behind the name of its program; `env`: the variables that are set for it.
        """
        from fnmatch import fnmatchcase  # few commands start an agent

        if any(name in self.OFF_VARIABLES for name in env):
            return True
        split = [
            part for word in words for part in (word.split("=", 1) if word[:2] == "--" else [word])
        ]
        return any(
            all(map(fnmatchcase, split[at : at + len(row)], row))
            for row in self.OFF_WORDS
            for at in range(len(split) - len(row) + 1)
        )

    def folders_of(self, root_abs: str, env: Mapping[str, str]) -> list[str]:
        """Return the folders that agents and skills are defined in."""
        projects = dict.fromkeys((root_abs, env.get(self.PROJECT) or root_abs))
        own = self.home(env)
        return [*(f"{folder}/{self.FOLDER}" for folder in projects), *([own] if own else [])]

    def plugin_of(self, _env: Mapping[str, str]) -> str:
        """Return the folder of the plugin that has started us; empty if none has."""
        return ""

    def agent_files(self, name: str, folders: Iterable[str]) -> list[str]:
        """Return the files that define a sub-agent, in folders of a project or a person's own."""
        return [f"{folder}/{file.format(name)}" for folder in folders for file in self.AGENT_FILES]

    def skill_files(self, name: str, folders: Iterable[str]) -> list[str]:
        """Return the files that define a skill, or a command of that name."""
        return [f"{folder}/{file.format(name)}" for folder in folders for file in self.SKILL_FILES]

    def trust_file(self, _env: Mapping[str, str]) -> str:
        """Return the file in which the client keeps what is trusted; empty if that is not known."""
        return ""

    def is_trusted(self, _text: str, _settings_abs: str) -> bool | None:
        """Return whether, by that file, a project's hooks are run; None: that is not known."""
        return None

    # Its transcripts.

    def calls_in(self, _line: bytes) -> Sequence[ToolCall]:
        """Return the calls of tools in one line of a transcript."""
        from gitgates.core.agent_types import ToolCall  # few read a transcript

        return [ToolCall()]  # of nobody knows what

    def conversation_start_in(self, _head: bytes) -> float:
        """Return when the conversation of a transcript began, since the epoch; 0: not told."""
        return 0.0

    # Its payloads.

    def rename(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields, and of values, that `decode` knows.

        `hook_event_name` stays the client's. `event_id` tells it from later ones that say the same.
        """
        return found

    def decode(self, data: bytes, env: Mapping[str, str]) -> Payload:
        """Parse a payload.

        Raises: BadPayload where it is not valid JSON object.
        """
        found = _table_of(data)
        if guest := self.guest_of(found, env):
            __import__(guest)
            other: AgentHost = sys.modules[guest].HOST
            if other.is_speaking(found, env):
                return other.payload_of(other.rename(found), env)
        payload = self.payload_of(self.rename(found), env)
        if unread := self._unread(found, payload) if self.IS_SHARED else "":
            named = (text_of(found, name) for name in _SESSION_ELSEWHERE)
            session = payload.session or next(filter(None, named), "")
            return payload._replace(unread=unread, session=session)
        return payload

    def guest_of(self, _found: dict[str, Any], _env: Mapping[str, str]) -> str:
        """Return the module of the agent that may have sent a payload by these settings, or ""."""
        return ""

    def is_speaking(self, _found: dict[str, Any], _env: Mapping[str, str]) -> bool:
        """Return whether a payload that came by another agent's settings is of this one."""
        return False

    def _unread(self, found: dict[str, Any], payload: Payload) -> str:
        """Return what of a payload is in no words of this host; empty: nothing."""
        event, inside = text_of(found, "hook_event_name"), found.get("tool_input")
        if event in self.NO_EVENTS:
            return ""
        if event not in self.EVENTS and not payload.kind:
            return f"the event `{event}`" if event else ""
        if not payload.session and any(name in found for name in _SESSION_ELSEWHERE):
            return f"an event `{event}` of no session"
        is_foreign = payload.tool_kind == "other" and not payload.tool.startswith(_MCP)
        runs = is_foreign and isinstance(inside, dict) and "command" in inside
        return f"the tool `{payload.tool}`" if runs else ""

    def payload_of(self, found: dict[str, Any], env: Mapping[str, str]) -> Payload:
        """Return what a payload with these fields says."""
        tool_input = found.get("tool_input")
        inside = tool_input if isinstance(tool_input, dict) else {}
        response = found.get("tool_response")
        event = text_of(found, "hook_event_name")
        kind, can = self.EVENTS.get(event, ("", Channels()))
        tool = text_of(found, "tool_name")
        tool_kind = self._tool_kind(tool)
        return Payload(
            host=self.NAME,
            event=HOOK_OF.get(kind, event),
            kind=kind,
            can=can,
            session=text_of(found, "session_id"),
            prompt_id=text_of(found, "prompt_id"),
            event_id=text_of(found, "event_id"),
            cwd_abs=path_of(found, "cwd"),
            project_abs=env.get(self.PROJECT, ""),
            agent_id=text_of(found, "agent_id"),
            agent_type=text_of(found, "agent_type"),
            mode=text_of(found, "permission_mode"),
            tool=tool,
            tool_names=self.OTHER_NAMES.get(tool, ()),
            tool_kind=tool_kind,
            tool_use_id=text_of(found, "tool_use_id"),
            paths=self.paths_in(inside),
            command=text_of(inside, "command") if tool_kind != "writes" else "",
            tool_input=inside if tool_kind in ("shell", "ours") else {},
            edits=self.edits_in(inside),
            failed=isinstance(response, dict) and response.get("success") is False,
            skill=text_of(inside, "skill") or text_of(found, "command_name"),
            prompt=text_of(found, "prompt"),
            source=text_of(found, "source"),
            last_message=text_of(found, "last_assistant_message"),
            transcript_abs=path_of(found, "transcript_path"),
            again=found.get("stop_hook_active") is True,
            background=tasks_in(found.get("background_tasks")),
        )

    def paths_in(self, tool_input: dict[str, Any]) -> tuple[str, ...]:
        """Return the files that a tool works on."""
        return tuple(path for name in self.PATH_FIELDS if (path := path_of(tool_input, name)))

    def edits_in(self, tool_input: dict[str, Any]) -> tuple[Replacement, ...]:
        """Return what a tool does to a file, in order."""
        return edits_in(tool_input)

    def _tool_kind(self, tool: str) -> ToolKind:
        if tool.startswith(self.OURS):
            return "ours"
        return self.tools.get(tool, "other" if tool else "")

    # Its answers.

    def encode(self, payload: Payload, verdict: Verdict) -> bytes:
        """Return what the client receives: one JSON object, or nothing."""
        if verdict.as_before is not None:
            return verdict.as_before.encode("ascii", "replace")
        level, _why = express(payload, verdict.level)
        to_agent, person = cut(verdict.to_agent), cut(verdict.to_person)
        reason = to_agent or person or "gitgates refused this."
        body: dict[str, Any] = {}
        if level == STOP and payload.kind in self.SILENT_STOPS:
            person = person or reason
        elif level == STOP:
            body |= {"continue": False, "stopReason": person or reason}
        if permission := _permission(payload, verdict, level):
            body |= _decision(self.DENIES, permission, reason)
        elif level == BLOCK:
            body |= self.blocked(payload.kind, reason)
        elif to_agent and reaches_agent(payload.can, level):
            body |= self.told(payload.kind, to_agent)
        elif to_agent and level != STOP and verdict.level:
            person = person or to_agent  # nobody else would hear of it
        changes = self._changes(payload, verdict) if level < BLOCK else {}
        if own := {**body.pop(_OWN, {}), **changes}:
            body[_OWN] = {"hookEventName": self.own_event(payload.kind), **own}
        if person and (self.PERSON or not body):
            body |= self._said(payload, person)
        return dumps(body).encode("ascii") if body else b""

    def _said(self, payload: Payload, person: str) -> dict[str, Any]:
        if self.PERSON:
            return {self.PERSON: person}
        return self.told(payload.kind, person) if payload.can.context else {}  # or nobody hears it

    def own_event(self, kind: EventKind) -> str:
        """Return the client's name of an event."""
        return next(event for event, (one, _can) in self.EVENTS.items() if one == kind)

    def blocked(self, kind: EventKind, reason: str) -> dict[str, Any]:
        """Return the form of a block, where no tool call is denied."""
        if kind in self.ONLY_TELLS:
            return self.told(kind, reason)
        return _decision(self.BLOCKS, "deny", reason)

    def told(self, _kind: EventKind, text: str) -> dict[str, Any]:
        """Return the form of a text for the agent."""
        said = {"additionalContext": text}
        return {_OWN: said} if self.TELLS == "own" else said

    def _changes(self, payload: Payload, verdict: Verdict) -> dict[str, Any]:
        """Return what changes a tool's input.

        Without a decision, so that its permission is asked for as ever. It replaces all of it.
        """
        said = {"command": verdict.command, "caller": verdict.caller}
        changed = {name: text for name, text in said.items() if text}
        whole = {**payload.tool_input, **changed}
        return {self.CHANGES: whole} if changed and self.CHANGES else {}

    def is_block(self, exit_status: int | None, stdout: bytes) -> bool:
        """Return whether an answer, whoever it is from, blocks an event that can be blocked."""
        if exit_status == _EXIT_BLOCK:
            return True
        try:
            answer = loads(stdout)
        except (ValueError, RecursionError):
            return False
        if not isinstance(answer, dict):
            return False
        own = answer.get(_OWN)
        words = {self.DENIES, self.BLOCKS}
        denies = isinstance(own, dict) and own.get("permissionDecision") == "deny"
        stops = answer.get("continue") is False
        return ("permission" in words and denies) or stops or answer.get("decision") in words

    def sample(
        self, kind: EventKind, root_abs: str, session: str, file: str = ""
    ) -> dict[str, Any]:
        """Return the payload of an event in a session that is begun in a folder, about its file."""
        edit = {**self.edit_sample(file), "tool_use_id": f"gitgates-doctor-{session}"}
        more: dict[str, dict[str, Any]] = {
            "turn-end": {"stop_hook_active": False, "last_assistant_message": "done"},
            "before-tool": edit,
            "prompt": {"prompt": "go"},
        }
        more["subagent-end"] = {**more["turn-end"], "agent_id": "doctor", "agent_type": "doctor"}
        more["after-tool"] = {**more["before-tool"], "tool_response": {}}
        return {
            "session_id": session,
            "cwd": root_abs,
            "hook_event_name": self.own_event(kind),
            "source": "startup",
            **more.get(kind, {}),
        }

    def edit_sample(self, path_abs: str) -> dict[str, Any]:
        """Return the call of a tool that writes a file, as a payload has it."""
        tool = self.TOOL_NAMES["writes"][0]
        field = self.PATH_FIELDS[0]
        return {"tool_name": tool, "tool_input": {field: path_abs, "content": "done\n"}}


def _decision(form: str, permission: str, reason: str) -> dict[str, Any]:
    if form == "permission":
        return {_OWN: {"permissionDecision": permission, "permissionDecisionReason": reason}}
    return {"decision": form, "reason": reason}


def _permission(payload: Payload, verdict: Verdict, level: Level) -> str:
    """Return what is decided of a tool call; empty: nothing."""
    if level >= BLOCK and payload.can.deny:
        return "deny"
    return "ask" if level < BLOCK and verdict.ask and payload.can.ask else ""


def _table_of(data: bytes) -> dict[str, Any]:
    if not data.strip():
        raise BadPayload("nothing came on standard input")
    try:
        found = loads(data.removeprefix(_BOM).decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise BadPayload(f"no JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadPayload(f"a JSON object was expected, not {type(found).__name__}")
    return found
