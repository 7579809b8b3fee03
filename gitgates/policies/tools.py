"""What an agent's tools do, by their names. Source: Claude Code 2.1.329."""

from __future__ import annotations

# They change no file. What a skill does, it does with other tools.
READING = (
    *("Read", "Grep", "Glob", "LS", "NotebookRead", "LSP", "WebFetch", "WebSearch", "ToolSearch"),
    *("ListMcpResourcesTool", "ReadMcpResourceTool", "AskUserQuestion", "ReportFindings", "Skill"),
    *("TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"),
    *("EnterPlanMode", "ExitPlanMode", "ScheduleWakeup", "CronCreate", "CronDelete", "CronList"),
)
# They write the file that they name, and no other.
WRITING = ("Edit", "Write", "NotebookEdit", "MultiEdit")
SHELLS = ("Bash", "PowerShell")
# What a sub-agent does, it does with other tools.
AGENTS = ("Agent", "Task")
