"""An agent's session, played event by event against the real entry, in process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from conftest import Repo

from gitgates.drivers import call
from gitgates.drivers.agent import respond
from gitgates.journal.entries import Session, fold
from gitgates.store.log import session_journal

if TYPE_CHECKING:
    from collections.abc import Iterator

COUNT = 'echo x >> "$COUNT_ABS"'  # what a gate starts with, so that its runs can be counted


class Agent:
    """One session of an agent in one repository."""

    def __init__(self, repo: Repo, session: str = "s1") -> None:
        self.repo = repo
        self.session = session
        self.count_abs = repo.path.parent / f"count-{session}"
        self.prompt_id = ""
        self.said: list[str] = []
        self._prompts = 0
        self._calls = 0
        self.calls: list[str] = []
        self.env: dict[str, str] = {}

    def payload(self, event: str, **fields: Any) -> bytes:
        known = {
            "session_id": self.session,
            "transcript_path": str(self.repo.path.parent / f"{self.session}.transcript"),
            "cwd": str(self.repo.path),
            "hook_event_name": event,
            "permission_mode": "default",
        }
        if self.prompt_id:
            known["prompt_id"] = self.prompt_id
        return json.dumps({**known, **fields}).encode()

    def send(self, event: str, **fields: Any) -> dict[str, Any]:
        """Return what an event is answered with; {} for nothing."""
        raw = self.payload(event, **fields)
        env = {**os.environ, "COUNT_ABS": str(self.count_abs), **self.env}
        answer = respond(raw, env, self.said.append)
        return json.loads(answer) if answer else {}

    def process(self, event: str, **fields: Any) -> subprocess.Popen[bytes]:
        """Send an event to a process of its own; do not wait for it."""
        child = subprocess.Popen(
            [sys.executable, "-m", "gitgates", "agent-hook", "claude"],
            cwd=self.repo.path,
            env={**os.environ, "COUNT_ABS": str(self.count_abs), **self.env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert child.stdin
        child.stdin.write(self.payload(event, **fields))
        child.stdin.close()
        child.stdin = None
        return child

    def start(self) -> dict[str, Any]:
        return self.send("SessionStart", source="startup")

    def prompt(self, text: str = "do it") -> dict[str, Any]:
        self._prompts += 1
        self.prompt_id = f"prompt-{self._prompts}"
        return self.send("UserPromptSubmit", prompt=text)

    def pre(self, tool: str = "Write", path: str = "a.py", **fields: Any) -> dict[str, Any]:
        return self._tool("PreToolUse", tool, path, fields)

    def post(self, tool: str = "Write", path: str = "a.py", **fields: Any) -> dict[str, Any]:
        return self._tool("PostToolUse", tool, path, fields)

    def _tool(self, event: str, tool: str, path: str, fields: dict[str, Any]) -> dict[str, Any]:
        self._calls += 1
        tool_input = {"file_path": str(self.repo.path / path)} if path else {"command": "true"}
        known = {"tool_name": tool, "tool_input": tool_input, "tool_use_id": f"t{self._calls}"}
        return self.send(event, **{**known, **fields})

    def write(self, name: str, content: str) -> None:
        """Write a file, as a tool would that we do not hear of."""
        self.repo.write(name, content)

    @contextmanager
    def call(self, command: str = "make all", **fields: Any) -> Iterator[None]:
        """Run a shell command, which does what is done meanwhile."""
        use = f"{self.session}-{len(self.calls)}"
        self.calls.append(command)
        known: dict[str, Any] = {"tool_input": {"command": command}, "tool_use_id": use, **fields}
        self.pre("Bash", **known)
        yield
        self.post("Bash", **known)

    def edit(self, name: str, content: str) -> None:
        """Write a file by a shell command."""
        with self.call():
            self.repo.write(name, content)

    def stop(self, *, again: bool = False, **fields: Any) -> dict[str, Any]:
        fields = {"last_assistant_message": "done", "background_tasks": [], **fields}
        return self.send("Stop", stop_hook_active=again, **fields)

    def sub_stop(
        self, agent: str = "worker", agent_id: str = "a1", **fields: Any
    ) -> dict[str, Any]:
        fields = {"stop_hook_active": False, "last_assistant_message": "done", **fields}
        return self.send("SubagentStop", agent_type=agent, agent_id=agent_id, **fields)

    def runs(self) -> int:
        """Return how often gates ran that count."""
        return len(self.count_abs.read_text().splitlines()) if self.count_abs.exists() else 0

    def facts(self) -> list[dict[str, Any]]:
        return session_journal(f"{self.repo.path}/.git/gitgates", self.session).read()

    def state(self) -> Session:
        return fold(self.facts())

    def outcomes(self) -> list[str]:
        return [one.outcome for one in self.state().rounds]


def begin(repo: Repo, config: str, session: str = "s1") -> Agent:
    """Return a session that has just begun in a repository with this configuration."""
    # In one process, each event begins when it comes.
    vars(call)["process_start_time"] = time.time
    repo.config(config)
    repo.write("seed.py", "seed = 1\n")
    repo.commit_all("first")
    agent = Agent(repo, session)
    agent.start()
    agent.prompt()
    return agent
