"""What the hosts of coding agents have in common: one JSON object in, one, or nothing, out. Pure.

Most clients have taken over the protocol of Claude Code, and differ in names and in what they
understand. So the fields that are read here have its names: a host renames its own (`rename`), and
says in which form it takes an answer.

Reading is tolerant: a field that is missing or of another type counts as absent, and only what is
not a JSON object at all is refused. Each answer has the exit status 0, because most clients take 2
for "block", and everything else for "the hook is broken, go on".
"""

from __future__ import annotations

import os
import sys

from gitgates.core.agent_types import Channels, Payload
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
_SESSION_ELSEWHERE = ("conversation_id", "trajectory_id")  # fields of agents that we do not know
# Names of tools that several clients have → the tools of Claude Code that do the same.
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
_MCP = "mcp"  # how the names of tools of servers begin


class BadPayload(Exception):
    """The input is not a payload of the host."""


class Environment(Record):
    """The variables of the environment that a client sets, or heeds."""

    # (name, who sets it, what it does): those that we read, for the documentation
    documented: tuple[tuple[str, str, str], ...] = ()
    project: str = ""  # of a hook: the folder that the session was started in
    cloud: str = ""  # is `true` in a session on the vendor's machines
    secrets: tuple[str, ...] = ()  # its own, which no gate gets unless it asks for them
    of_a_session: tuple[str, ...] = ()  # those that another agent must not be started with


class Protocol(Record):
    """The events of a client, and the form of the answers to them."""

    # Its events → what each is, and what it can be answered with.
    events: dict[str, tuple[EventKind, Channels]] = {}
    ignored: tuple[str, ...] = ()  # its others, which we do nothing at
    tells_start: bool = True  # False: not always, so that the first tool may begin a session
    tells_prompts: bool = True  # False: not always; a turn begins with what comes after its end
    tells_edits: bool = True  # False: maybe too late, so that whatever has changed counts
    repeats: bool = True  # whether one event may come twice: if two settings files call us
    returns_reason: bool = False  # True: the reason of a block comes back as a prompt
    hands_tokens: bool = True  # whether a sub-agent, as it starts, gets a text nobody else sees
    provable: tuple[EventKind, ...] = ("turn-end", "before-tool")  # can be blocked; by importance
    cannot: dict[EventKind, str] = {}  # what an answer of it cannot do, for people
    # "permission": `permissionDecision` of `hookSpecificOutput`; else the word in `decision`.
    denies: str = "permission"  # a tool call
    blocks: str = "block"  # everything else
    tells: str = "own"  # where text for the agent is: "own", `hookSpecificOutput`; "top": beside it
    # Events at which a decision has no effect, or hides what a tool said: text tells the reason.
    only_tells: tuple[EventKind, ...] = ()
    # Events that a stop ends by saying nothing: `continue: false` would not.
    silent_stops: tuple[EventKind, ...] = ()
    person: str = "systemMessage"  # the field with text for the person; empty: there is none
    changes: str = ""  # the field of `hookSpecificOutput` with a tool's new input; empty: none


class Tools(Record):
    """The tools of a client."""

    names: dict[ToolKind, tuple[str, ...]] = {}
    older: dict[str, ToolKind] = {}  # which are installed for no more, but understood
    # The names that patterns of the configuration may call a tool by, beside its own; those of
    # `_OTHER_NAMES` need not be repeated.
    other_names: dict[str, tuple[str, ...]] = {}
    path_fields: tuple[str, ...] = ("file_path", "path")  # of `tool_input`, with a tool's file
    patch_field: str = ""  # of `tool_input`, with a patch in place of single edits; empty: none
    server_prefix: str = "mcp__gitgates__"  # how the names of the tools of our own server begin


class Files(Record):
    """Where a client looks for its files."""

    folder: str = ""  # of a project, that settings, agents and skills are in
    home: str = ""  # the same of a person's own, below HOME; empty: of the same name
    home_variable: str = ""  # which names that folder
    home_parent_variable: str = ""  # which names the folder that it is in, instead of HOME
    settings: dict[str, str] = {}  # scope → the settings in these folders
    start_only: tuple[str, ...] = ()  # scopes that are read where it is started, and not above
    older_settings: str = ""  # beside them; its `hooks` count at events for which those have none
    agents: tuple[str, ...] = ()  # what defines a sub-agent `{}` there
    skills: tuple[str, ...] = ()  # what defines a skill


class SettingsFormat(Record):
    """The form of a client's settings, and how it reads them."""

    module: str = "gitgates.hosts.settings.json_settings"  # which puts our hooks into them
    # Agents that run the hooks of those of a project, too: (its name, a variable that its hooks
    # have, one that only those of its own settings have).
    run_by: tuple[tuple[str, str, str], ...] = ()
    is_shared: bool = False  # whether agents that we do not know run them, too
    events_at: tuple[str, ...] = ("hooks",)  # the keys that the events are below
    head: dict[str, Any] = {}  # what else a new file needs
    handler: dict[str, Any] = {}  # and each hook
    hides: bool = False  # whether those of a project are read instead of a person's own
    runs_once: bool = False  # whether the same command in two files is run once
    flat: bool = False  # whether hooks stand in the list of an event themselves, without groups
    fields: dict[str, str] = {}  # if hooks have no groups: what `event`, `matcher`, `name` are
    whole: bool = False  # whether a matcher has to match the whole name of a tool
    expression: str = "{}"  # and how a matcher stands there
    by_shell: bool = False  # whether it is known that a POSIX shell, or fish, runs its commands
    guarded: bool = False  # whether a program that is missing, or fails, is taken for a refusal
    per_second: int = 1  # in which unit timeouts are
    usual_s: float = 60.0  # the timeout if none is given
    most_s: dict[EventKind, int] = {}  # what the client waits at most, whatever is said


class DisableSwitch(Record):
    """What switches all hooks of a client off."""

    key: str = ""  # of the settings, `a.b` for one in a table
    value: str = "true"  # by which it does
    former: tuple[str, ...] = ()  # its other names
    files: tuple[str, ...] = ()  # others of a project that it may stand in
    own_files: tuple[str, ...] = ()  # the same of a person's own, in their folder
    mention: str = ""  # what a change of those files is about that is guarded; empty: any
    words: tuple[tuple[str, ...], ...] = ()  # in a command that starts it: patterns in a row
    variables: tuple[str, ...] = ()  # for that command; any value


class AgentHost:
    """A coding agent: its words, its protocol, and where its files are.

    A host is a module with a subclass of this, and an instance of that, `HOST`.
    """

    NAME = ""  # as `agent-hook` names it
    TITLE = ""  # as people know it
    TESTED = ""  # the version of its client that our tests were run with
    DOCUMENT = ""  # what its events and answers are taken from, if no client was driven
    PROGRAMS: tuple[str, ...] = ()  # its program, and the packages of npm and PyPI that have it
    # Options, their values, or `option=value`, with which it asks nobody before it does anything.
    AUTO_APPROVE_OPTIONS: tuple[str, ...] = ()
    HAS_E2E_TESTS = False  # whether `make e2e` has tests with its client
    NO_GIT_HOOKS = ""  # if git runs no hooks in its shell, what that means, for people
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

        A relative HOME counts as not set: each program would take it for another folder.
        """
        homes = (env.get(name, "") for name in (self.FILES.home_parent_variable, "HOME"))
        parent = next(filter(os.path.isabs, homes), "")
        return env.get(self.FILES.home_variable) or (
            f"{parent}/{self.FILES.home or self.FILES.folder}" if parent else ""
        )

    def scopes(self, root_abs: str, env: Mapping[str, str]) -> dict[str, str]:
        """Return the folders of settings, agents and skills: scope → one, nearest first."""
        user_folder = self.home(env)
        folders = {"user": os.path.abspath(user_folder) if user_folder else ""}
        by_scope = {
            scope: folders.get(scope, f"{root_abs}/{self.FILES.folder}")
            for scope in self.FILES.settings
        }
        return {scope: folder for scope, folder in by_scope.items() if folder}

    def settings_files(self, root_abs: str, env: Mapping[str, str]) -> dict[str, str]:
        """Return the settings that there may be: scope → file, nearest first."""
        folders = self.scopes(root_abs, env)
        return {
            scope: f"{folder}/{self.FILES.settings[scope]}" for scope, folder in folders.items()
        }

    def switch_files(self, root_abs: str, env: Mapping[str, str]) -> dict[str, str]:
        """Return the files that may switch all hooks off, beside the settings: file → its scope."""
        user_folder = self.home(env)
        project_files = {f"{root_abs}/{file}": "project" for file in self.OFF.files}
        return {
            **project_files,
            **{f"{user_folder}/{file}": "user" for file in self.OFF.own_files if user_folder},
        }

    def may_be_off(self, content: bytes) -> bool:
        """Return whether a file speaks of what switches all hooks off: then it is to be parsed."""
        names = (
            name.rpartition(".")[2].encode() for name in (self.OFF.key, *self.OFF.former) if name
        )
        return any(name in content for name in names)

    def runs_without_hooks(self, words: Sequence[str], env: Iterable[str]) -> bool:
        """Return whether a command starts the client without hooks, or switches them off for good.

        `words`: behind the name of its program; `env`: the variables that are set for it.
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
        """Return the folders that agents and skills are defined in."""
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
        """Return the files that define a sub-agent, in folders of a project or a person's own."""
        return [f"{folder}/{file.format(name)}" for folder in folders for file in self.FILES.agents]

    def skill_files(self, name: str, folders: Iterable[str]) -> list[str]:
        """Return the files that define a skill, or a command of that name."""
        return [f"{folder}/{file.format(name)}" for folder in folders for file in self.FILES.skills]

    def conversation_start_in(self, _head: bytes) -> float:
        """Return when the conversation of a transcript began, since the epoch; 0: unknown."""
        return 0.0

    # Its payloads.

    def rename(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields, and of values, that `decode` knows.

        `hook_event_name` stays the client's. `event_id` tells it from later ones that say the same.
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
        """Return the module of the agent that may have sent a payload by these settings, or ""."""
        return ""

    def is_speaking(self, _fields: dict[str, Any], _env: Mapping[str, str]) -> bool:
        """Return whether a payload that came through another agent's settings is from this one."""
        return False

    def unread_in(self, fields: dict[str, Any], payload: Payload) -> str:
        """Return which part of a payload this host does not know; empty: none."""
        event, inside = text_of(fields, "hook_event_name"), fields.get("tool_input")
        if event in self.PROTOCOL.ignored:
            return ""
        if event not in self.PROTOCOL.events and not payload.kind:
            return f"the event `{event}`" if event else "an event without a name"
        if not payload.session and any(name in fields for name in _SESSION_ELSEWHERE):
            return f"an event `{event}` without a session"
        is_foreign = payload.tool_kind == "other" and not payload.tool.startswith(_MCP)
        runs = is_foreign and isinstance(inside, dict) and "command" in inside
        return f"the tool `{payload.tool}`" if runs else ""

    def payload_of(self, fields: dict[str, Any], env: Mapping[str, str]) -> Payload:
        """Return what a payload with these fields says."""
        tool_input = fields.get("tool_input")
        inside = tool_input if isinstance(tool_input, dict) else {}
        response = fields.get("tool_response")
        event = text_of(fields, "hook_event_name")
        kind, can = self.PROTOCOL.events.get(event, ("", Channels()))
        tool = text_of(fields, "tool_name")
        tool_kind = self.tool_kind_of(tool, fields)
        payload = Payload(
            host=self.NAME,
            event=HOOK_OF.get(kind, event),
            kind=kind,
            can=can,
            session=text_of(fields, "session_id"),
            prompt_id=text_of(fields, "prompt_id"),
            event_id=text_of(fields, "event_id"),
            cwd_abs=path_of(fields, "cwd"),
            project_abs=env.get(self.ENVIRONMENT.project, ""),
            agent_id=text_of(fields, "agent_id"),
            agent_type=text_of(fields, "agent_type"),
            mode=text_of(fields, "permission_mode"),
            tool=tool,
            tool_names=self.other_names_of(tool),
            tool_kind=tool_kind,
            tool_use_id=text_of(fields, "tool_use_id"),
            paths=self.paths_in(inside),
            command=text_of(inside, "command") if tool_kind != "writes" else "",
            tool_input=inside if tool_kind in ("shell", "ours") else {},
            edits=self.edits_in(inside),
            failed=isinstance(response, dict) and response.get("success") is False,
            skill=text_of(inside, "skill") or text_of(fields, "command_name"),
            prompt=text_of(fields, "prompt"),
            source=text_of(fields, "source"),
            last_message=text_of(fields, "last_assistant_message"),
            transcript_abs=path_of(fields, "transcript_path"),
            again=fields.get("stop_hook_active") is True,
            background=tasks_in(fields.get("background_tasks")),
        )
        return self._with_calls(payload, fields, env) if kind == "after-batch" else payload

    def _with_calls(
        self, payload: Payload, fields: dict[str, Any], env: Mapping[str, str]
    ) -> Payload:
        """Return the payload of a step of the agent, with its tools, and the files they wrote."""
        calls = tuple(
            self.payload_of({**call, "hook_event_name": ""}, env)
            for call in tables_in(fields.get("tool_calls"))
        )
        paths = [path for call in calls if call.tool_kind == "writes" for path in call.paths]
        return payload._replace(
            tool_use_id=calls[0].tool_use_id if calls else "",
            calls=calls,
            paths=tuple(dict.fromkeys(paths)),
        )

    def paths_in(self, tool_input: dict[str, Any]) -> tuple[str, ...]:
        """Return the files that a tool works on."""
        paths = [path for name in self.TOOLS.path_fields if (path := path_of(tool_input, name))]
        if patch := path_of(tool_input, self.TOOLS.patch_field):
            from gitgates.hosts.patch import paths_of  # few models write such

            paths += paths_of(patch)
        return tuple(paths)

    def edits_in(self, tool_input: dict[str, Any]) -> tuple[Replacement, ...]:
        """Return what a tool does to a file, in order."""
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

    # Its answers.

    def encode(self, payload: Payload, verdict: Verdict) -> bytes:
        """Return what the client receives: one JSON object, or nothing."""
        if verdict.replayed_answer is not None:
            return verdict.replayed_answer.encode("ascii", "replace")
        level, _why = express(payload, verdict.level)
        to_agent, person = cut(verdict.to_agent), cut(verdict.to_person)
        reason = to_agent or person or "gitgates refused this."
        body: dict[str, Any] = {}
        if level == STOP and payload.kind in self.PROTOCOL.silent_stops:
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
            person = person or to_agent  # otherwise it would reach nobody
        changes = self._changes(payload, verdict) if level < BLOCK else {}
        if output := {**body.pop(_HOOK_OUTPUT, {}), **changes}:
            body[_HOOK_OUTPUT] = {"hookEventName": self.own_event(payload.kind), **output}
        if person and (self.PROTOCOL.person or not body):
            body |= self.person_message(payload, person)
        return dumps(body).encode("ascii") if body else b""

    def person_message(self, payload: Payload, person: str) -> dict[str, Any]:
        """Return the form of a text for the person."""
        if self.PROTOCOL.person:
            return {self.PROTOCOL.person: person}
        # Without a field for the person, the agent passes it on.
        return self.agent_message(payload.kind, person) if payload.can.context else {}

    def own_event(self, kind: EventKind) -> str:
        """Return the client's name of an event."""
        return next(
            event
            for event, (event_kind, _can) in self.PROTOCOL.events.items()
            if event_kind == kind
        )

    def decided(self, _kind: EventKind, permission: str, reason: str) -> dict[str, Any]:
        """Return the form of a decision, "deny" or "ask", on a tool call."""
        return _decision(self.PROTOCOL.denies, permission, reason)

    def blocked(self, kind: EventKind, reason: str) -> dict[str, Any]:
        """Return the form of a block that denies no tool call."""
        if kind in self.PROTOCOL.only_tells:
            return self.agent_message(kind, reason)
        return _decision(self.PROTOCOL.blocks, "deny", reason)

    def agent_message(self, _kind: EventKind, text: str) -> dict[str, Any]:
        """Return the form of a text for the agent."""
        message = {"additionalContext": text}
        return {_HOOK_OUTPUT: message} if self.PROTOCOL.tells == "own" else message

    def _changes(self, payload: Payload, verdict: Verdict) -> dict[str, Any]:
        """Return what changes a tool's input.

        Without a decision, so its permission is asked for as ever. It replaces all of it.
        """
        overrides = {"command": verdict.command, "caller": verdict.caller}
        changed = {name: text for name, text in overrides.items() if text}
        whole = {**payload.tool_input, **changed}
        return {self.PROTOCOL.changes: whole} if changed and self.PROTOCOL.changes else {}

    def is_block(self, exit_status: int | None, stdout: bytes) -> bool:
        """Return whether an answer of any hook blocks an event that can be blocked."""
        if exit_status == _EXIT_BLOCK:
            return True
        try:
            answer = loads(stdout)
        except (ValueError, RecursionError):
            return False
        if not isinstance(answer, dict):
            return False
        output = answer.get(_HOOK_OUTPUT)
        words = {self.PROTOCOL.denies, self.PROTOCOL.blocks}
        denies = isinstance(output, dict) and output.get("permissionDecision") == "deny"
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
        """Return the call of a tool that writes a file, as a payload has it."""
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
    """Return what is decided of a tool call; empty: nothing."""
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
