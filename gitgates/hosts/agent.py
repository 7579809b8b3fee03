"""What all hosts of coding agents share: one JSON object in, one object or nothing out. Pure.

Most clients use the protocol of Claude Code, with other names and with fewer features. Therefore,
the fields that are read here have Claude Code's names: a host renames its own (`rename`), and
declares the form of its answers.

Reading is tolerant: a field that is missing or has another type counts as absent, and only input
that is no JSON object is refused. Each answer has the exit status 0, because most clients take 2 as
"block", and everything else as "the hook is broken, go on".
"""

from __future__ import annotations

import os
import sys

from gitgates.core.agent_types import AgentFacts, Channels, Payload, Prompt, ToolUse, TurnEnd
from gitgates.core.lean_json import dumps, loads
from gitgates.core.lifecycle import HOOK_OF
from gitgates.core.record import Record, lazy
from gitgates.core.types import BLOCK, STOP
from gitgates.hosts.capabilities import cut, express, reaches_agent
from gitgates.hosts.payload import edits_in, path_of, tables_in, tasks_in, text_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from gitgates.core.agent_types import Replacement, ToolKind
    from gitgates.core.lifecycle import EventKind
    from gitgates.core.types import Level, Verdict

_BOM = b"\xef\xbb\xbf"
_HOOK_OUTPUT = "hookSpecificOutput"
_EXIT_BLOCK = 2
_SESSION_ELSEWHERE = ("conversation_id", "trajectory_id")  # fields of unknown agents
# Tool names that several clients use → the equivalent tools of Claude Code.
_OTHER_NAMES = {
    "apply_patch": ("Edit", "Write", "MultiEdit"),
    "bash": ("Bash",),
    "edit": ("Edit", "MultiEdit"),
    "glob": ("Glob",),
    "grep": ("Grep",),
    "grep_search": ("Grep",),
    "list_directory": ("LS",),
    "read_file": ("Read",),
    "run_shell_command": ("Bash",),
    "skill": ("Skill",),
    "task": ("Agent", "Task"),
    "terminal": ("Bash",),
    "write_file": ("Write",),
}
_MCP = "mcp"  # the prefix of the names of servers' tools


class BadPayload(Exception):
    """The input is not one of the host's payloads."""


class Environment(Record):
    """The environment variables that a client sets or reads."""

    # (name, who sets it, what it does): the ones that gitgates reads, for the documentation
    documented: tuple[tuple[str, str, str], ...] = ()
    project: str = ""  # tells hooks the folder in which the session was started
    cloud: str = ""  # is `true` in a session on the vendor's machines
    secrets: tuple[str, ...] = ()  # its credentials, which a gate gets only if it names them
    of_a_session: tuple[str, ...] = ()  # must not be passed to another agent


class Answers(Record):
    """The form of a client's answers."""

    # "permission": `permissionDecision` in `hookSpecificOutput`; else the value of `decision`.
    denies: str = "permission"  # a tool call
    blocks: str = "block"  # everything else
    tells: str = "own"  # text for the agent is in `hookSpecificOutput`; "top": next to it
    # Events at which a decision has no effect, or hides a tool's output: a text has the reason.
    only_tells: tuple[EventKind, ...] = ()
    # Events at which an empty answer stops the agent, and `continue: false` does not.
    silent_stops: tuple[EventKind, ...] = ()
    person: str = "systemMessage"  # the field for text to the person; empty: there is none
    changes: str = ""  # the field in `hookSpecificOutput` for a tool's new input; empty: none


class Protocol(Record):
    """A client's events, and the form of the answers."""

    # The client's events → their kinds, and the answers that are possible.
    events: dict[str, tuple[EventKind, Channels]] = {}
    ignored: tuple[str, ...] = ()  # events at which gitgates does nothing
    tells_start: bool = True  # False: not always, so the first tool call may begin a session
    tells_prompts: bool = True  # False: not always; the event after a turn's end begins a new one
    tells_edits: bool = True  # False: maybe too late, so all changes count
    repeats: bool = True  # whether an event may come twice, if two settings files call gitgates
    returns_reason: bool = False  # whether the reason of a block comes back as a prompt
    hands_tokens: bool = True  # whether a starting sub-agent gets a text that nobody else sees
    provable: tuple[EventKind, ...] = ("turn-end", "before-tool")  # can block; by importance
    cannot: dict[EventKind, str] = {}  # what an answer cannot do, for people
    answers: Answers = Answers()


class Tools(Record):
    """A client's tools."""

    names: dict[ToolKind, tuple[str, ...]] = {}
    older: dict[str, ToolKind] = {}  # former names: understood, but not installed
    # Other names for a tool in patterns of the configuration, in addition to `_OTHER_NAMES`.
    other_names: dict[str, tuple[str, ...]] = {}
    path_fields: tuple[str, ...] = ("file_path", "path")  # the file, in `tool_input`
    patch_field: str = ""  # a patch in `tool_input`, instead of single edits; empty: none
    server_prefix: str = "mcp__gitgates__"  # of the tool names of gitgates' own server


class Files(Record):
    """Where a client looks for its files."""

    folder: str = ""  # a project's, with settings, agents and skills
    home: str = ""  # a person's, below HOME; empty: the same name
    home_variable: str = ""  # the variable that names a person's folder
    home_parent_variable: str = ""  # the variable that names its parent, instead of HOME
    settings: dict[str, str] = {}  # scope → the settings file in these folders
    start_only: tuple[str, ...] = ()  # scopes that are read only in the folder where it is started
    older_settings: str = ""  # its `hooks` count at events for which the settings have none
    agents: tuple[str, ...] = ()  # the files that define a sub-agent `{}`
    skills: tuple[str, ...] = ()  # the files that define a skill


class HookTimes(Record):
    """How long a client waits for a hook."""

    per_second: int = 1  # the timeout's units in a second
    usual_s: float = 60.0  # the default timeout
    most_s: dict[EventKind, int] = {}  # how long the client waits at most


class SettingsFormat(Record):
    """The format of a client's settings, and how it reads them."""

    module: str = "gitgates.hosts.settings.json_settings"  # which adds and removes the hooks
    # Agents that also run the hooks in a project's settings: (name, a variable that its hooks have,
    # a variable that only hooks of its own settings have).
    run_by: tuple[tuple[str, str, str], ...] = ()
    is_shared: bool = False  # whether unknown agents also run the hooks
    events_at: tuple[str, ...] = ("hooks",)  # the path of keys to the events
    head: dict[str, Any] = {}  # other keys that a new file needs
    handler: dict[str, Any] = {}  # other keys that each hook needs
    hides: bool = False  # whether a project's settings replace a person's own
    runs_once: bool = False  # whether the same command in two files runs once
    flat: bool = False  # whether an event's list contains hooks without groups
    fields: dict[str, str] = {}  # without groups: the names of `event`, `matcher` and `name`
    whole: bool = False  # whether a matcher must match a tool's whole name
    expression: str = "{}"  # the form of a matcher
    by_shell: bool = False  # whether a POSIX shell, or fish, is known to run its commands
    guarded: bool = False  # whether a missing or failing program counts as a refusal
    times: HookTimes = HookTimes()


class DisableSwitch(Record):
    """What disables all hooks of a client."""

    key: str = ""  # in the settings; `a.b` is in a table
    value: str = "true"  # the value that disables them
    former: tuple[str, ...] = ()  # the key's other names
    files: tuple[str, ...] = ()  # a project's other files that may contain it
    own_files: tuple[str, ...] = ()  # files in a person's folder that may contain it
    mention: str = ""  # changes to those files are guarded if they contain it; empty: all are
    words: tuple[tuple[str, ...], ...] = ()  # consecutive patterns in a command that starts it
    variables: tuple[str, ...] = ()  # set for that command, with any value


class AgentHost:
    """A coding agent: its names, its protocol, and its files.

    A host is a module with a subclass of this class, and the subclass's instance, `HOST`.
    """

    NAME = ""  # in commands
    TITLE = ""  # for people
    TESTED = ""  # the client's version in our tests
    DOCUMENT = ""  # the source for its events and answers, if no client was tested
    PROGRAMS: tuple[str, ...] = ()  # its program, and its packages on npm and PyPI
    # Options, their values, or `option=value`, with which it never asks for permission.
    AUTO_APPROVE_OPTIONS: tuple[str, ...] = ()
    HAS_E2E_TESTS = False  # whether `make e2e` has tests with its client
    NO_GIT_HOOKS = ""  # what it means that git runs no hooks in its shell, for people
    SERVERS = ""  # the module that is its `AgentServers`; empty: it has none
    ENVIRONMENT = Environment()
    PROTOCOL = Protocol()
    TOOLS = Tools()
    FILES = Files()
    SETTINGS = SettingsFormat()
    OFF = DisableSwitch()

    @lazy
    def tools(self) -> dict[str, ToolKind]:
        """Return the kinds of all tools, by their names."""
        names = {name: kind for kind, names in self.TOOLS.names.items() for name in names}
        return {**names, **self.TOOLS.older}

    def other_names_of(self, tool: str) -> tuple[str, ...]:
        """Return the other names that patterns of the configuration may call a tool by."""
        usual = _OTHER_NAMES.get(tool, ()) if tool in self.tools else ()
        return self.TOOLS.other_names.get(tool, usual)

    def has(self, kind: EventKind) -> bool:
        """Return whether it has an event."""
        return any(event_kind == kind for event_kind, _can in self.PROTOCOL.events.values())

    # Who runs a command, and where files are.

    def home(self, env: Mapping[str, str]) -> str:
        """Return the folder of a person's own; empty if there is none.

        A relative HOME counts as not set: it would mean another folder to each program.
        """
        homes = (env.get(name, "") for name in (self.FILES.home_parent_variable, "HOME"))
        parent = next(filter(os.path.isabs, homes), "")
        return env.get(self.FILES.home_variable) or (
            f"{parent}/{self.FILES.home or self.FILES.folder}" if parent else ""
        )

    def scopes(self, root_abs: str, env: Mapping[str, str]) -> dict[str, str]:
        """Return the folders with settings, agents and skills: scope → folder, nearest first."""
        user_folder = self.home(env)
        folders = {"user": os.path.abspath(user_folder) if user_folder else ""}
        by_scope = {
            scope: folders.get(scope, f"{root_abs}/{self.FILES.folder}")
            for scope in self.FILES.settings
        }
        return {scope: folder for scope, folder in by_scope.items() if folder}

    def settings_files(self, root_abs: str, env: Mapping[str, str]) -> dict[str, str]:
        """Return the possible settings files: scope → file, nearest first."""
        folders = self.scopes(root_abs, env)
        return {
            scope: f"{folder}/{self.FILES.settings[scope]}" for scope, folder in folders.items()
        }

    def switch_files(self, root_abs: str, env: Mapping[str, str]) -> dict[str, str]:
        """Return the files besides the settings that may disable all hooks: file → scope."""
        user_folder = self.home(env)
        project_files = {f"{root_abs}/{file}": "project" for file in self.OFF.files}
        return {
            **project_files,
            **{f"{user_folder}/{file}": "user" for file in self.OFF.own_files if user_folder},
        }

    def may_be_off(self, content: bytes) -> bool:
        """Return whether a file mentions what disables all hooks, and must be parsed."""
        names = (
            name.rpartition(".")[2].encode() for name in (self.OFF.key, *self.OFF.former) if name
        )
        return any(name in content for name in names)

    def runs_without_hooks(self, words: Sequence[str], env: Iterable[str]) -> bool:
        """Return whether a command starts the client without hooks, or disables them permanently.

        `words`: the arguments of its program; `env`: the variables that are set for it.
        """
        from fnmatch import fnmatchcase  # few commands start an agent

        if any(name in self.OFF.variables for name in env):
            return True
        split = [
            part for word in words for part in (word.split("=", 1) if word[:2] == "--" else [word])
        ]
        return any(
            all(map(fnmatchcase, split[at : at + len(row)], row))
            for row in self.OFF.words
            for at in range(len(split) - len(row) + 1)
        )

    def folders_of(self, root_abs: str, env: Mapping[str, str]) -> list[str]:
        """Return the folders that may define agents and skills."""
        projects = dict.fromkeys((root_abs, env.get(self.ENVIRONMENT.project) or root_abs))
        user_folder = self.home(env)
        return [
            *(f"{folder}/{self.FILES.folder}" for folder in projects),
            *([user_folder] if user_folder else []),
        ]

    def plugin_of(self, _env: Mapping[str, str]) -> str:
        """Return the folder of the plugin that started gitgates; empty if none did."""
        return ""

    def agent_files(self, name: str, folders: Iterable[str]) -> list[str]:
        """Return the files that may define a sub-agent in some folders."""
        return [f"{folder}/{file.format(name)}" for folder in folders for file in self.FILES.agents]

    def skill_files(self, name: str, folders: Iterable[str]) -> list[str]:
        """Return the files that may define a skill, or a command with that name."""
        return [f"{folder}/{file.format(name)}" for folder in folders for file in self.FILES.skills]

    def conversation_start_in(self, _head: bytes) -> float:
        """Return when a transcript's conversation began, in seconds since the epoch; 0: unknown."""
        return 0.0

    # Payloads.

    def rename(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields and values that `decode` knows.

        `hook_event_name` stays the client's. `event_id` distinguishes equal payloads.
        """
        return fields

    def decode(self, data: bytes, env: Mapping[str, str]) -> Payload:
        """Parse a payload.

        Raises: BadPayload if it is not a valid JSON object.
        """
        fields = _table_of(data)
        if guest := self.guest_of(fields, env):
            __import__(guest)
            other: AgentHost = sys.modules[guest].HOST
            if other.is_speaking(fields, env):
                return other.payload_of(other.rename(fields), env)
        payload = self.payload_of(self.rename(fields), env)
        is_asked = self.SETTINGS.is_shared or not payload.event
        if unread := self.unread_in(fields, payload) if is_asked else "":
            sessions = (text_of(fields, name) for name in _SESSION_ELSEWHERE)
            session = payload.session or next(filter(None, sessions), "")
            return payload._replace(unread=unread, session=session)
        return payload

    def guest_of(self, _fields: dict[str, Any], _env: Mapping[str, str]) -> str:
        """Return the module of the agent that may have run these settings' hook, or ""."""
        return ""

    def is_speaking(self, _fields: dict[str, Any], _env: Mapping[str, str]) -> bool:
        """Return whether this agent sent a payload through another agent's settings."""
        return False

    def unread_in(self, fields: dict[str, Any], payload: Payload) -> str:
        """Return the part of a payload that this host does not know; empty: none."""
        event, inside = text_of(fields, "hook_event_name"), fields.get("tool_input")
        if event in self.PROTOCOL.ignored:
            return ""
        if event not in self.PROTOCOL.events and not payload.kind:
            return f"the event `{event}`" if event else "an event without a name"
        if not payload.session and any(name in fields for name in _SESSION_ELSEWHERE):
            return f"an event `{event}` without a session"
        is_foreign = payload.tool.kind == "other" and not payload.tool.name.startswith(_MCP)
        runs = is_foreign and isinstance(inside, dict) and "command" in inside
        return f"the tool `{payload.tool.name}`" if runs else ""

    def payload_of(self, fields: dict[str, Any], env: Mapping[str, str]) -> Payload:
        """Return the payload with these fields."""
        tool_input = fields.get("tool_input")
        inside = tool_input if isinstance(tool_input, dict) else {}
        response = fields.get("tool_response")
        event = text_of(fields, "hook_event_name")
        kind, can = self.PROTOCOL.events.get(event, ("", Channels()))
        tool = text_of(fields, "tool_name")
        tool_kind = self.tool_kind_of(tool, fields)
        use = ToolUse(
            name=tool,
            other_names=self.other_names_of(tool),
            kind=tool_kind,
            id=text_of(fields, "tool_use_id"),
            paths=self.paths_in(inside),
            command=text_of(inside, "command") if tool_kind != "writes" else "",
            input=inside if tool_kind in ("shell", "ours") else {},
            edits=self.edits_in(inside),
            failed=isinstance(response, dict) and response.get("success") is False,
            skill=text_of(inside, "skill") or text_of(fields, "command_name"),
        )
        return Payload(
            host=self.NAME,
            event=HOOK_OF.get(kind, event),
            kind=kind,
            can=can,
            session=text_of(fields, "session_id"),
            event_id=text_of(fields, "event_id"),
            cwd_abs=path_of(fields, "cwd"),
            project_abs=env.get(self.ENVIRONMENT.project, ""),
            transcript_abs=path_of(fields, "transcript_path"),
            tool=self._with_calls(use, fields, env) if kind == "after-batch" else use,
            agent=AgentFacts(
                id=text_of(fields, "agent_id"),
                type=text_of(fields, "agent_type"),
                mode=text_of(fields, "permission_mode"),
            ),
            prompt=Prompt(
                id=text_of(fields, "prompt_id"),
                text=text_of(fields, "prompt"),
                source=text_of(fields, "source"),
            ),
            ending=TurnEnd(
                message=text_of(fields, "last_assistant_message"),
                again=fields.get("stop_hook_active") is True,
                background=tasks_in(fields.get("background_tasks")),
            ),
        )

    def _with_calls(self, use: ToolUse, fields: dict[str, Any], env: Mapping[str, str]) -> ToolUse:
        """Return the tools of an agent's step, with the files that they wrote."""
        calls = tuple(
            self.payload_of({**call, "hook_event_name": ""}, env).tool
            for call in tables_in(fields.get("tool_calls"))
        )
        paths = [path for call in calls if call.kind == "writes" for path in call.paths]
        return use._replace(
            id=calls[0].id if calls else "", calls=calls, paths=tuple(dict.fromkeys(paths))
        )

    def paths_in(self, tool_input: dict[str, Any]) -> tuple[str, ...]:
        """Return a tool's files."""
        paths = [path for name in self.TOOLS.path_fields if (path := path_of(tool_input, name))]
        if patch := path_of(tool_input, self.TOOLS.patch_field):
            from gitgates.hosts.patch import paths_of  # few models write patches

            paths += paths_of(patch)
        return tuple(paths)

    def edits_in(self, tool_input: dict[str, Any]) -> tuple[Replacement, ...]:
        """Return a tool's edits, in order."""
        patch = text_of(tool_input, self.TOOLS.patch_field)
        if not patch:
            return edits_in(tool_input)
        from gitgates.hosts.patch import edits_of

        return edits_of(patch)

    def tool_kind_of(self, tool: str, _fields: Mapping[str, Any]) -> ToolKind:
        """Return what a tool may do."""
        if tool.startswith(self.TOOLS.server_prefix):
            return "ours"
        return self.tools.get(tool, "other" if tool else "")

    # Answers.

    def encode(self, payload: Payload, verdict: Verdict) -> bytes:
        """Return the answer to the client: one JSON object, or nothing."""
        if verdict.replayed_answer is not None:
            return verdict.replayed_answer.encode("ascii", "replace")
        level, _why = express(payload, verdict.level)
        to_agent, person = cut(verdict.to_agent), cut(verdict.to_person)
        reason = to_agent or person or "gitgates refused this."
        body: dict[str, Any] = {}
        if level == STOP and payload.kind in self.PROTOCOL.answers.silent_stops:
            person = person or reason
        elif level == STOP:
            body |= {"continue": False, "stopReason": person or reason}
        if permission := _permission(payload, verdict, level):
            body |= self.decided(payload.kind, permission, reason)
        elif level == BLOCK:
            body |= self.blocked(payload.kind, reason)
        elif to_agent and reaches_agent(payload.can, level):
            body |= self.agent_message(payload.kind, to_agent)
        elif to_agent and level != STOP and verdict.level:
            person = person or to_agent  # otherwise nobody would see it
        changes = self._changes(payload, verdict) if level < BLOCK else {}
        if output := {**body.pop(_HOOK_OUTPUT, {}), **changes}:
            body[_HOOK_OUTPUT] = {"hookEventName": self.own_event(payload.kind), **output}
        if person and (self.PROTOCOL.answers.person or not body):
            body |= self.person_message(payload, person)
        return dumps(body).encode("ascii") if body else b""

    def person_message(self, payload: Payload, person: str) -> dict[str, Any]:
        """Return the answer with a text for the person."""
        if self.PROTOCOL.answers.person:
            return {self.PROTOCOL.answers.person: person}
        # If there is no field for the person, the agent tells them.
        return self.agent_message(payload.kind, person) if payload.can.context else {}

    def own_event(self, kind: EventKind) -> str:
        """Return the client's name of an event."""
        return next(
            event
            for event, (event_kind, _can) in self.PROTOCOL.events.items()
            if event_kind == kind
        )

    def decided(self, _kind: EventKind, permission: str, reason: str) -> dict[str, Any]:
        """Return the answer with a decision, "deny" or "ask", on a tool call."""
        return _decision(self.PROTOCOL.answers.denies, permission, reason)

    def blocked(self, kind: EventKind, reason: str) -> dict[str, Any]:
        """Return the answer with a block, other than one that denies a tool call."""
        if kind in self.PROTOCOL.answers.only_tells:
            return self.agent_message(kind, reason)
        return _decision(self.PROTOCOL.answers.blocks, "deny", reason)

    def agent_message(self, _kind: EventKind, text: str) -> dict[str, Any]:
        """Return the answer with a text for the agent."""
        message = {"additionalContext": text}
        return {_HOOK_OUTPUT: message} if self.PROTOCOL.answers.tells == "own" else message

    def _changes(self, payload: Payload, verdict: Verdict) -> dict[str, Any]:
        """Return the answer that replaces a tool's whole input.

        Without a decision, so the client asks for permission as usual.
        """
        overrides = {"command": verdict.command, "caller": verdict.caller}
        changed = {name: text for name, text in overrides.items() if text}
        whole = {**payload.tool.input, **changed}
        return (
            {self.PROTOCOL.answers.changes: whole}
            if changed and self.PROTOCOL.answers.changes
            else {}
        )

    def is_block(self, exit_status: int | None, stdout: bytes) -> bool:
        """Return whether a hook's answer blocks an event that can be blocked."""
        if exit_status == _EXIT_BLOCK:
            return True
        try:
            answer = loads(stdout)
        except (ValueError, RecursionError):
            return False
        if not isinstance(answer, dict):
            return False
        output = answer.get(_HOOK_OUTPUT)
        words = {self.PROTOCOL.answers.denies, self.PROTOCOL.answers.blocks}
        denies = isinstance(output, dict) and output.get("permissionDecision") == "deny"
        stops = answer.get("continue") is False
        return ("permission" in words and denies) or stops or answer.get("decision") in words

    def sample(
        self, kind: EventKind, root_abs: str, session: str, file: str = ""
    ) -> dict[str, Any]:
        """Return a sample payload of an event in a session in a folder; `file`: in it."""
        edit = {**self.edit_sample(file), "tool_use_id": f"gitgates-doctor-{session}"}
        more: dict[str, dict[str, Any]] = {
            "turn-end": {"stop_hook_active": False, "last_assistant_message": "done"},
            "before-tool": edit,
            "prompt": {"prompt": "go"},
        }
        more["subagent-end"] = {**more["turn-end"], "agent_id": "doctor", "agent_type": "doctor"}
        more["task-end"] = {"task_id": "1", "task_subject": "doctor"}
        more["teammate-idle"] = {"teammate_name": "doctor", "team_name": "doctor"}
        more["after-tool"] = {**more["before-tool"], "tool_response": {}}
        return {
            "session_id": session,
            "cwd": root_abs,
            "hook_event_name": self.own_event(kind),
            "source": "startup",
            **more.get(kind, {}),
        }

    def edit_sample(self, path_abs: str) -> dict[str, Any]:
        """Return the fields of a sample call of a tool that writes a file."""
        tool = self.TOOLS.names["writes"][0]
        field = self.TOOLS.path_fields[0]
        return {"tool_name": tool, "tool_input": {field: path_abs, "content": "done\n"}}


def _decision(form: str, permission: str, reason: str) -> dict[str, Any]:
    if form == "permission":
        return {
            _HOOK_OUTPUT: {"permissionDecision": permission, "permissionDecisionReason": reason}
        }
    return {"decision": form, "reason": reason}


def _permission(payload: Payload, verdict: Verdict, level: Level) -> str:
    """Return the decision on a tool call; empty: none."""
    if level >= BLOCK and payload.can.deny:
        return "deny"
    return "ask" if level < BLOCK and verdict.ask and payload.can.ask else ""


def _table_of(data: bytes) -> dict[str, Any]:
    if not data.strip():
        raise BadPayload("no input on standard input")
    try:
        fields = loads(data.removeprefix(_BOM).decode("utf-8", "surrogateescape"))
    except (ValueError, RecursionError) as error:
        raise BadPayload(f"not valid JSON: {error}") from None
    if not isinstance(fields, dict):
        raise BadPayload(f"expected a JSON object, not {type(fields).__name__}")
    return fields
