"""The guard alone, without the session around it, which costs several times as much."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
from typing import TYPE_CHECKING, Any

import pytest
from conftest import Repo

from gitgates.config.load import load
from gitgates.core.types import BLOCK, Verdict
from gitgates.drivers.call import Call
from gitgates.drivers.trust import find_repos
from gitgates.features.guard import places, policy
from gitgates.hosts import agent_host

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOUND = re.compile(r"gitgates: guard rule `(\w+)`: ")


def judged(answer: dict[str, Any]) -> str:
    """Return the answer to a tool call, and the rule: `deny no_verify`; empty for none."""
    own = answer.get("hookSpecificOutput", {})
    text = own.get("permissionDecisionReason", own.get("additionalContext", ""))
    found = FOUND.match(text)
    return f"{own.get('permissionDecision', 'warn')} {found[1]}" if found else text


def _said(verdict: Verdict) -> str:
    if not (found := FOUND.match(verdict.to_agent)):
        return verdict.to_agent
    answer = "ask" if verdict.ask else "deny" if verdict.level == BLOCK else "warn"
    return f"{answer} {found[1]}"


@contextlib.contextmanager
def places_known() -> Iterator[None]:
    """Follow the links on the way to what is guarded once, and not for each tool call."""
    known = functools.cache(places.resolved)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(places, "resolved", lambda found: known(tuple(found)))
        yield


class Guard:
    """What the guard says of tool calls; settings are those that a repository had at first."""

    def __init__(self, repo: Repo, config: str) -> None:
        self.repo = repo
        self.env: dict[str, str] = {}
        repo.config(config)
        self.load = functools.cache(load)
        assert self.load(str(repo.path))

    def says(self, tool: str, cwd: str = "", host: str = "claude", **tool_input: Any) -> str:
        """Return what it says of a tool call, as `judged` does."""
        event = agent_host(host).own_event("before-tool")
        payload = {
            "session_id": "s1",
            "cwd": cwd or str(self.repo.path),
            "hook_event_name": event,
            "tool_name": tool,
            "tool_input": tool_input,
            "tool_use_id": "t1",
        }
        return self._judge(json.dumps(payload).encode(), host)

    def _judge(self, raw: bytes, host: str) -> str:
        env = {**os.environ, **self.env}
        payload = agent_host(host).decode(raw, env)
        said = ""
        for repo in find_repos(payload, env):
            if config := self.load(repo.root_abs):
                call = Call(payload, repo, raw=raw)
                call.config = config
                said = said or _said(policy.decide(call, Verdict()))
        return said

    def shell(self, command: str, cwd: str = "") -> str:
        return self.says("Bash", cwd, command=command)

    def shells(self, commands: Iterable[str]) -> dict[str, str]:
        """Return what it says of each command; none of them changes what is guarded."""
        with places_known():
            return {command: self.shell(command) for command in commands}

    def write(self, path: str, tool: str = "Write") -> str:
        return self.says(tool, file_path=str(self.repo.path / path))
