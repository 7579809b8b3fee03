"""What an agent's tools do, by their names. Source: Claude Code 2.1.329."""

from __future__ import annotations

# They change no file. What a skill does, it does with other tools.
READING = (
    *("Read", "Grep", "Glob", "LS", "NotebookRead", "LSP", "WebFetch", "WebSearch", "ToolSearch"),
    *("ListMcpResourcesTool", "ReadMcpResourceTool", "AskUserQuestion", "ReportFindings", "Skill"),
    *("TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"),
    *("EnterPlanMode", "ExitPlanMode"),
)
