"""Kimi Code, which tells of an edit while it goes on: maybe after the end of the turn."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from gitgates.drivers.agent import respond

if TYPE_CHECKING:
    from conftest import Repo

REVIEW = '[hooks.Stop]\ngates = ["review"]\n'


def test_an_edit_that_is_not_told_of_is_weighed(repo: Repo) -> None:
    repo.config(REVIEW)

    def ask(event: str, **more: Any) -> str:
        known = {"session_id": "s", "cwd": str(repo.path), "hook_event_name": event}
        raw = json.dumps({**known, **more}).encode()
        said: list[str] = []
        answer = respond(raw, os.environ, said.append, "kimi")
        assert said == []
        return answer.decode()

    ask("SessionStart", source="startup")
    ask("UserPromptSubmit", prompt=[{"type": "text", "text": "go"}])
    work = repo.write("a.py", "".join(f"a{number} = {number}\n" for number in range(200)))
    call = {"tool_name": "Write", "tool_call_id": "c1", "tool_input": {"path": str(work)}}
    ask("PreToolUse", **call)
    assert "Have the change reviewed" in ask("Stop", stop_hook_active=False)
