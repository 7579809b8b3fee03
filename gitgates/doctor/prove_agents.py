"""Show that what Claude Code's settings start blocks, on its payloads."""

from __future__ import annotations

import json
import os

from gitgates.doctor.claude_sources import sources
from gitgates.doctor.findings import Finding
from gitgates.doctor.throwaway import GATE, Throwaway
from gitgates.install import agents

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.doctor.claude_sources import Source
    from gitgates.doctor.findings import Subject
    from gitgates.doctor.throwaway import Answered

# What can be blocked, and what the client says of it beside the usual.
_WRITE = {"tool_name": "Write", "tool_use_id": "toolu_doctor"}
_STOP = {"stop_hook_active": False, "last_assistant_message": "done", "background_tasks": []}
_AGENT = {"agent_id": "doctor", "agent_type": "doctor"}
_EXIT_BLOCK = 2
_PROVABLE: dict[str, dict[str, Any]] = {
    "Stop": _STOP,
    "SubagentStop": {**_STOP, **_AGENT},
    "PostToolUse": {**_WRITE, "tool_response": {"type": "create"}},
    "PreToolUse": _WRITE,
    "UserPromptSubmit": {"prompt": "go"},
    "UserPromptExpansion": {"prompt": "/go", "command_name": "go", "command_args": ""},
    "PreCompact": {"trigger": "manual", "custom_instructions": None},
}


def prove_agents(subject: Subject, looked: list[Finding]) -> list[Finding]:
    """Try our program at an event of each settings file that starts it; return a finding for each.

    It runs in our own environment, not in the `env` of the settings, and a program that is not ours
    is not started: a repository that was cloned may have brought either. `looked`: what looking has
    found; a block proves nothing where the client does not run our hook, or does not wait for it.
    """
    config, env = subject.config, subject.repo.env
    found = sources(subject.repo, env)
    gated = [hook.name for hook in config.hooks if hook.gates] if config else []
    tried = [_try(source, gated, env) for source in found if source.heard]
    if not any(one.check == "agent" and one.severity == "problem" for one in looked):
        return tried
    return [_in_doubt(one) if one.severity == "ok" else one for one in tried]


def _in_doubt(proved: Finding) -> Finding:
    what = proved.what.removeprefix("proved: ")
    return proved._replace(severity="note", what=f"{what}, once the problems above are mended")


def _try(source: Source, gated: list[str], env: Mapping[str, str]) -> Finding:
    """Try the event that most hangs on: one that has gates."""
    heard = {one.event: one.command for one in source.heard if one.event in _PROVABLE}
    order = [event for event in _PROVABLE if event in heard]
    fine = Finding(severity="ok", check="proof", where=source.where, what="")
    if not order:
        return fine._replace(severity="note", what="calls us at no event that can be blocked")
    event = next((event for event in order if event in gated), "" if gated else order[0])
    if not event:
        what = "calls us at no event that has gates and can be blocked: nothing to prove"
        return fine._replace(severity="note", what=what)
    wrong = fine._replace(severity="problem", mend="gitgates doctor")
    program = agents.program_of(heard[event])
    if program is not None and not agents.is_known(program, env):
        return wrong._replace(what=f"not tried: {program} is not the gitgates of this machine")
    passed = _trial(heard[event], event, env, passes=True)
    failed = _trial(heard[event], event, env, passes=False)
    if _is_block(passed):
        return wrong._replace(what=f"{event} is blocked where the gates pass")
    why = failed.trouble or failed.last_line or _first_words(failed.stdout)
    if not _is_block(failed):
        return wrong._replace(what=f"{event} goes through where a gate fails: it answers {why}")
    if GATE not in failed.stdout.decode("utf-8", "replace"):
        return wrong._replace(what=f"{event} is blocked, but not for its gate: it answers {why}")
    return fine._replace(what=f"proved: {event} is blocked where a gate fails")


def _trial(command: str, event: str, env: Mapping[str, str], *, passes: bool) -> Answered:
    """Begin a session, change a file, and let the event happen."""
    with Throwaway(event, env, passes=passes) as repo:
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
            "hook_event_name": event,
            **_PROVABLE[event],
        }
        if "tool_name" in payload:
            file_abs = os.path.join(repo.root_abs, "work")
            payload["tool_input"] = {"file_path": file_abs, "content": "done\n"}
        return repo.run(command, json.dumps(payload).encode())


def _is_block(said: Answered) -> bool:
    """Tell whether the client would block for this answer, whoever it is from."""
    if said.exit_status == _EXIT_BLOCK:
        return True
    try:
        answer = json.loads(said.stdout)
    except ValueError:
        return False
    if not isinstance(answer, dict):
        return False
    own = answer.get("hookSpecificOutput")
    denies = isinstance(own, dict) and own.get("permissionDecision") == "deny"
    return denies or answer.get("decision") == "block" or answer.get("continue") is False


def _first_words(stdout: bytes) -> str:
    longest = 80
    return (
        repr(stdout.decode("utf-8", "replace").strip()[:longest]) if stdout.strip() else "nothing"
    )
