"""VS Code's agent mode as a host: it has no settings of its own, and runs other clients' hooks.

It runs the hooks in Claude Code's settings and in `.github/hooks/*.json`, one after the other, and
ignores their matchers. Its payloads differ from those clients'. The agents that it starts as
processes (Copilot CLI, Claude Code, Codex) send their own payloads.

Source: microsoft/vscode-copilot-chat 31acd00a of 2026-03-29 (`chatHookService.ts`,
`toolCallingLoop.ts`, `toolNames.ts`) and, where it has gone to, microsoft/vscode (04dc7dc6,
09ebb65e, `extensions/copilot`), where fields are in snake case; and the documentation of VS Code of
2026-02 to 2026-10 ("Agent hooks", "Legacy Local hooks reference"), where some are in camel case. No
client was driven.
"""

from __future__ import annotations

from gitgates.core.agent_types import Channels
from gitgates.hosts import agent
from gitgates.hosts.payload import tables_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.core.lifecycle import EventKind

# Names in camel case → names in all hosts: in payloads, and in tool input.
_FIELDS = {
    "hookEventName": "hook_event_name",
    "sessionId": "session_id",
    "transcriptPath": "transcript_path",
    "toolName": "tool_name",
    "toolInput": "tool_input",
    "toolUseId": "tool_use_id",
    "toolResponse": "tool_response",
    "stopHookActive": "stop_hook_active",
    "agentId": "agent_id",
    "agentType": "agent_type",
}
_INPUT = {
    "filePath": "file_path",
    "dirPath": "file_path",
    "oldString": "old_string",
    "newString": "new_string",
    "replacements": "edits",
}
_FILES = "files"
_SERVER = "mcp_gitgates_"
# Fields of Copilot CLI, whose payloads are otherwise alike.
_OF_OTHERS = (
    *("initial_prompt", "tool_result", "stop_reason", "parent_agent_id", "agent_name", "agentName"),
    *("permission_mode", "reason"),
)
_OTHERS_HOOK = "COPILOT_PROJECT_DIR"


class VSCode(agent.AgentHost):
    """VS Code's agent mode, if its own window runs the agent."""

    NAME = "vscode"
    TITLE = "VS Code"
    DOCUMENT = (
        "the source of its extension (`extensions/copilot` of microsoft/vscode), and "
        "code.visualstudio.com/docs/agents/reference/hooks-reference, 2026-07"
    )
    PROTOCOL = agent.Protocol(
        events={
            "SessionStart": ("session-start", Channels(context=True)),
            "UserPromptSubmit": (
                "prompt",
                Channels(block=True, stop=True, context=True, reason_to_person=True),
            ),
            "PreToolUse": ("before-tool", Channels(deny=True, ask=True, stop=True, context=True)),
            "PostToolUse": ("after-tool", Channels(block=True, stop=True, context=True)),
            "SubagentStart": ("subagent-start", Channels(context=True)),
            "SubagentStop": ("subagent-end", Channels(block=True, stop=True)),
            "Stop": ("turn-end", Channels(block=True, stop=True)),
            "PreCompact": ("before-compact", Channels()),
        },
        answers=agent.Answers(changes="updatedInput", only_tells=()),
    )
    TOOLS = agent.Tools(
        names={
            "writes": (
                *("create_file", "replace_string_in_file", "multi_replace_string_in_file"),
                *("insert_edit_into_file", "apply_patch", "edit_notebook_file", "create_directory"),
                *("create_new_jupyter_notebook", "create_new_workspace", "edit_files"),
            ),
            "reads": (
                *("read_file", "list_dir", "grep_search", "file_search", "semantic_search"),
                *("search_workspace_symbols", "view_image", "get_errors", "get_changed_files"),
                *("read_project_structure", "test_search", "get_search_view_results"),
                *("copilot_getNotebookSummary", "read_notebook_cell_output", "test_failure"),
                "testFailure",
            ),
            "shell": (
                *("run_in_terminal", "create_and_run_task", "run_task", "run_notebook_cell"),
                *("send_to_terminal", "runTests"),
            ),
            "agent": ("runSubagent", "search_subagent", "explore_subagent", "execution_subagent"),
            "skill": ("skill",),
            "report": (),
            "ours": (f"{_SERVER}*",),
            "harmless": (
                *("manage_todo_list", "vscode_askQuestions", "fetch_webpage", "github_repo"),
                *("get_terminal_output", "terminal_selection", "terminal_last_command"),
                *("get_task_output", "tool_search", "get_vscode_api", "get_project_setup_info"),
                *("kill_terminal", "github_text_search", "switch_agent", "session_store_sql"),
                *("vscode_get_confirmation", "vscode_get_confirmation_with_options"),
                *("vscode_get_terminal_confirmation", "vscode_reviewPlan"),
                *("resolve_memory_file_uri", "open_browser_page", "navigate_page", "read_page"),
                *("click_element", "screenshot_page", "hover_element", "drag_element"),
                *("type_in_page", "handle_dialog"),
            ),
        },
        older={  # the names in its documentation
            "createFile": "writes",
            "editFiles": "writes",
            "runTerminalCommand": "shell",
        },
        other_names={
            "create_file": ("Write",),
            "createFile": ("Write",),
            "replace_string_in_file": ("Edit",),
            "multi_replace_string_in_file": ("Edit", "MultiEdit"),
            "insert_edit_into_file": ("Edit",),
            "editFiles": ("Edit",),
            "edit_notebook_file": ("NotebookEdit",),
            "run_in_terminal": ("Bash",),
            "runTerminalCommand": ("Bash",),
            "file_search": ("Glob",),
            "runSubagent": ("Agent", "Task"),
        },
        patch_field="input",
        server_prefix=_SERVER,
    )
    FILES = agent.Files(folder=".github")
    SETTINGS = agent.SettingsFormat(times=agent.HookTimes(usual_s=30.0))
    OFF = agent.DisableSwitch(
        files=(".vscode/settings.json",),  # chat.useHooks, chat.hookFilesLocations
        mention="chat.",
    )

    def is_speaking(self, fields: Mapping[str, Any], env: Mapping[str, str]) -> bool:
        """Return whether this agent sent a payload through another agent's settings."""
        if "hookEventName" in fields and "hook_event_name" not in fields:
            return True
        is_like = isinstance(fields.get("timestamp"), str) and "hook_event_name" in fields
        has_more = "transcript_path" in fields or "tool_use_id" in fields
        others = env.get(_OTHERS_HOOK) or any(name in fields for name in _OF_OTHERS)
        return is_like and has_more and not others

    def rename(self, fields: dict[str, Any]) -> dict[str, Any]:
        """Return a payload with the names of fields and values that `decode` knows."""
        fields = _renamed(fields, _FIELDS)
        tool_input = fields.get("tool_input")
        if isinstance(tool_input, dict):
            inside = _renamed(tool_input, _INPUT)
            if isinstance(inside.get("edits"), list):
                inside["edits"] = [_renamed(edit, _INPUT) for edit in tables_in(inside["edits"])]
            task = inside.get("task")
            if isinstance(task, dict):  # create_and_run_task
                inside.setdefault("command", _command_of(task))
            fields["tool_input"] = inside
        if fields.get("source") == "new":
            fields["source"] = "startup"
        # Both payloads of one event have the same id.
        return {**fields, "event_id": str(fields.get("timestamp") or "")}

    def paths_in(self, tool_input: dict[str, Any]) -> tuple[str, ...]:
        """Return a tool's files."""
        tables = [tool_input, *tables_in(tool_input.get("edits"))]
        paths = [path for table in tables for path in super(VSCode, self).paths_in(table)]
        files = tool_input.get(_FILES)
        names: list[object] = files if isinstance(files, list) else []
        return tuple(dict.fromkeys((*paths, *(name for name in names if isinstance(name, str)))))

    def blocked(self, kind: EventKind, reason: str) -> dict[str, Any]:
        """Return the answer with a block, in both forms that versions read."""
        answer = super().blocked(kind, reason)
        if kind == "prompt":
            answer |= {"continue": False, "stopReason": reason}
        if kind in ("turn-end", "subagent-end"):
            answer["hookSpecificOutput"] = {"decision": "block", "reason": reason}
        return answer

    def edit_sample(self, path_abs: str) -> dict[str, Any]:
        """Return the fields of a sample call of a tool that writes a file."""
        return {
            "tool_name": "create_file",
            "tool_input": {"filePath": path_abs, "content": "done\n"},
        }


def _renamed(table: dict[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a table with other names; a name that already exists is kept."""
    renamed = {name: value for name, value in table.items() if name not in names}
    for name, other in names.items():
        if name in table:
            renamed.setdefault(other, table[name])
    return renamed


def _command_of(task: dict[str, Any]) -> str:
    args = task.get("args")
    words = [task.get("command"), *(args if isinstance(args, list) else ())]
    return " ".join(word for word in words if isinstance(word, str))


HOST = VSCode()
