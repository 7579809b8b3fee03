"""Claude Code as tests play it: recorded payloads, its schema of answers, its way to run a hook.

The payloads were recorded from Claude Code 2.1.329; /REPO stands for the repository.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import forked

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Repo

SRC = Path(__file__).resolve().parents[1]
RECORDED: list[tuple[str, dict[str, Any]]] = json.loads(
    (SRC / "tests/claude_payloads.json").read_text("utf-8")
)
NAMES = [f"{number}-{name}".replace(" ", "-") for number, (name, _) in enumerate(RECORDED)]
EVENTS = sorted({payload["hook_event_name"] for _name, payload in RECORDED})
HOOK = (sys.executable, "-m", "gitgates", "agent-hook", "claude")
GUARD_S = 60.0  # a hook that takes longer hangs

# What stands in a payload in place of what should.
OTHERS: tuple[object, ...] = (None, 7, ["x"], {"x": 1}, True, "x", "a\0b", "\ud800")

# Of each event, what may stand in `hookSpecificOutput` beside its name; and who knows `decision`.
_CONTEXT: dict[str, type] = {"additionalContext": str}
_OWN: dict[str, dict[str, type]] = {
    **dict.fromkeys(("SessionStart", "SubagentStart", "UserPromptSubmit"), _CONTEXT),
    **dict.fromkeys(("UserPromptExpansion", "PostToolUse", "PostToolUseFailure"), _CONTEXT),
    "PostToolBatch": _CONTEXT,
    "PreToolUse": {**_CONTEXT, "permissionDecision": str, "permissionDecisionReason": str},
}
_DECIDES = (
    *("UserPromptSubmit", "UserPromptExpansion", "PostToolUse", "Stop", "SubagentStop"),
    *("TaskCompleted", "TeammateIdle"),
)
_COMMON = {"continue": bool, "stopReason": str, "systemMessage": str, "decision": str}
_LONGEST = 10_000


def answer_of(event: str, raw: bytes) -> dict[str, Any]:
    """Return an answer; fail the test where the client would not take it whole."""
    if not raw:
        return {}
    answer = json.loads(raw)
    assert isinstance(answer, dict)
    assert answer, "an object that says nothing"
    own = answer.get("hookSpecificOutput")
    common = {**_COMMON, "reason": str, "hookSpecificOutput": dict}
    _check(answer, common)
    assert answer.get("continue", False) is False
    assert ("continue" in answer) == ("stopReason" in answer)
    assert answer.get("decision", "block") == "block"
    assert ("decision" in answer) == bool(answer.get("reason"))
    assert "decision" not in answer or event in (*_DECIDES, "PreCompact")
    if own is not None:
        assert own.pop("hookEventName") == event
        assert own, "an object that says nothing"
        _check(own, _OWN.get(event, {}))
        assert own.get("permissionDecision", "deny") == "deny"
        assert ("permissionDecision" in own) == bool(own.get("permissionDecisionReason"))
    return answer


def _check(table: dict[str, Any], known: dict[str, type]) -> None:
    for key, value in table.items():
        assert type(value) is known.get(key), key
        assert value != ""
        assert not isinstance(value, str) or len(value.encode("utf-16-le")) // 2 <= _LONGEST


def recorded(repo: Repo, event: str, tool: str = "", **changes: Any) -> dict[str, Any]:
    """Return the first recorded payload of an event and a tool, as if it had been in `repo`."""
    payload = next(
        payload
        for _name, payload in RECORDED
        if payload["hook_event_name"] == event and payload.get("tool_name", "") == tool
    )
    return {**placed(payload, repo.path), "session_id": "s", "prompt_id": "p", **changes}


def placed(payload: dict[str, Any], root: Path) -> dict[str, Any]:
    """Return a payload as if `root` had been the place where it was recorded."""
    text = json.dumps(payload).replace('"/REPO', json.dumps(str(root))[:-1])
    found: dict[str, Any] = json.loads(text)
    return found


def damaged(payload: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a payload with each field missing, and with each of another type, one at a time."""
    for field, value in payload.items():
        yield {name: kept for name, kept in payload.items() if name != field}
        for other in OTHERS:
            yield {**payload, field: other}
        if isinstance(value, dict) and field != "tool_response":
            for inner in damaged(value):
                yield {**payload, field: inner}
        if isinstance(value, list) and value and isinstance(value[0], dict):
            for inner in damaged(value[0]):
                yield {**payload, field: [inner, *value[1:]]}


def start(repo: Repo, payload: dict[str, Any] | bytes, **env: str) -> subprocess.Popen[bytes]:
    """Start a hook as the client does; its input is all there."""
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    with tempfile.TemporaryFile() as file:
        file.write(raw)
        file.seek(0)
        return subprocess.Popen(
            HOOK,
            cwd=repo.path,
            env={**os.environ, "PYTHONPATH": str(SRC), **env},
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )


def end(process: subprocess.Popen[bytes]) -> tuple[bytes, str]:
    """Read all that a hook says, as the client does; fail the test if it is not status 0."""
    out, err = process.communicate(timeout=GUARD_S)
    assert process.returncode == 0, err
    return out, err.decode("utf-8", "replace")


def fire(repo: Repo, payload: dict[str, Any] | bytes, **env: str) -> dict[str, Any]:
    """Run a hook in a forked process; return its answer, which the client would take."""
    raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    done = forked.run(HOOK[3:], str(repo.path), {**os.environ, **env}, raw, hosts=True)
    assert done.returncode == 0, done.stderr
    assert b"internal error" not in done.stderr
    out = done.stdout
    return answer_of(payload["hook_event_name"] if isinstance(payload, dict) else "", out)


def journal(repo: Repo, session: str = "s") -> list[dict[str, Any]]:
    """Return the facts of a session; fail the test where a line is torn."""
    path = repo.path / ".git/gitgates/sessions" / f"{session}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def facts(repo: Repo, what: str, session: str = "s") -> list[dict[str, Any]]:
    """Return the facts of one kind."""
    return [fact for fact in journal(repo, session) if fact["what"] == what]


def ask(repo: Repo, verb: str, *args: str, status: int = 0) -> str:
    """Run `install-hooks` or `uninstall-hooks` for the agent; return what it said."""
    done = repo.gitgates(f"{verb}-hooks", "--agent", "claude", *args)
    assert done.returncode == status, (done.stdout, done.stderr)
    return (done.stderr if status else done.stdout).decode()
