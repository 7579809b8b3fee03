"""Show that the hooks in Claude Code's settings block: as they stand there, on its payloads."""

from __future__ import annotations

import json
import os

from gitgates.doctor.claude_sources import sources
from gitgates.doctor.finding import Finding
from gitgates.doctor.throwaway import GATE, Throwaway, Trial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.doctor.attempt import Answered
    from gitgates.doctor.claude_sources import Source
    from gitgates.system.roots import Roots
    from gitgates.types import Config

# What can be blocked, and what the client says of it beside the usual.
_WRITE = {"tool_name": "Write", "tool_use_id": "toolu_doctor"}
_STOP = {"stop_hook_active": False, "last_assistant_message": "done", "background_tasks": []}
_AGENT = {"agent_id": "doctor", "agent_type": "doctor"}
_PROVABLE: dict[str, dict[str, Any]] = {
    "Stop": _STOP,
    "SubagentStop": {**_STOP, **_AGENT},
    "PostToolUse": {**_WRITE, "tool_response": {"type": "create"}},
    "PreToolUse": _WRITE,
    "UserPromptSubmit": {"prompt": "go"},
    "UserPromptExpansion": {"prompt": "/go", "command_name": "go", "command_args": ""},
    "PreCompact": {"trigger": "manual", "custom_instructions": None},
}


def prove_agents(config: Config | None, roots: Roots, env: Mapping[str, str]) -> list[Finding]:
    """Try the hook of each settings file that has one of ours; return one finding for each."""
    found = sources(roots, env)
    theirs = {**env}
    for source in reversed(found):  # the nearest settings count most
        table = source.settings.get("env")
        theirs |= {k: str(v) for k, v in table.items()} if isinstance(table, dict) else {}
    gated = [hook.name for hook in config.hooks if hook.gates] if config else []
    return [_try(source, gated, theirs) for source in found if source.heard]


def _try(source: Source, gated: list[str], env: Mapping[str, str]) -> Finding:
    """Try the event that most hangs on: one that has gates, where there is one."""
    heard = {one.event: one.command for one in source.heard if one.event in _PROVABLE}
    order = [event for event in _PROVABLE if event in heard]
    fine = Finding(severity="ok", check="proof", where=source.where, what="")
    if not order:
        return fine._replace(severity="note", what="calls us at no event that can be blocked")
    event = next((event for event in order if event in gated), order[0])
    wrong = fine._replace(severity="problem", mend="gitgates doctor")
    passed = _trial(heard[event], Trial(event, True, env))
    failed = _trial(heard[event], Trial(event, False, env))
    if _is_block(passed):
        return wrong._replace(what=f"{event} is blocked where the gates pass")
    if not _is_block(failed):
        why = failed.trouble or failed.last_line or _first_words(failed.stdout)
        return wrong._replace(what=f"{event} goes through where a gate fails: it answers {why}")
    return fine._replace(what=f"proved: {event} is blocked where a gate fails")


def _trial(command: str, trial: Trial) -> Answered:
    """Begin a session, change a file, and let the event happen."""
    with Throwaway(trial) as repo:
        usual = {
            "session_id": "gitgates-doctor",
            "transcript_path": os.path.join(os.path.dirname(repo.root_abs), "none.jsonl"),
            "cwd": repo.root_abs,
        }
        begin = {**usual, "hook_event_name": "SessionStart", "source": "startup"}
        repo.run(command, json.dumps(begin).encode())
        repo.write("work", "done\n")
        payload = {
            **usual,
            "prompt_id": "gitgates-doctor-prompt",
            "permission_mode": "default",
            "hook_event_name": trial.hook,
            **_PROVABLE[trial.hook],
        }
        if "tool_name" in payload:
            file_abs = os.path.join(repo.root_abs, "work")
            payload["tool_input"] = {"file_path": file_abs, "content": "done\n"}
        return repo.run(command, json.dumps(payload).encode())


def _is_block(said: Answered) -> bool:
    """Tell whether the client would block for this answer, and whether it is for our gate."""
    try:
        answer = json.loads(said.stdout)
    except ValueError:
        return False
    if not isinstance(answer, dict) or GATE not in said.stdout.decode("utf-8", "replace"):
        return False
    own = answer.get("hookSpecificOutput")
    denies = isinstance(own, dict) and own.get("permissionDecision") == "deny"
    return denies or answer.get("decision") == "block" or answer.get("continue") is False


def _first_words(stdout: bytes) -> str:
    longest = 80
    return (
        repr(stdout.decode("utf-8", "replace").strip()[:longest]) if stdout.strip() else "nothing"
    )
