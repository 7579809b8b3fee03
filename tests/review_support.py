"""The verbs of `gitgates review`, called by hand and by an agent."""

from __future__ import annotations

import hashlib
import json
import shlex
import subprocess
from typing import Any

from agent_support import Agent
from conftest import Repo

from gitgates.features.review.facts import Evidence, fold
from gitgates.store.log import session_journal

CONFIG = """
[gates.check]
command = "true"
[review]
generated = ["made/"]
[hooks.Stop]
gates = ["check", "review"]
"""
TOKEN = "0123456789abcdef"
LINES = "".join(f"line = {number}\n" for number in range(64))
CHANGE = """\
change:     significant: 64.1 weighted lines (threshold 40), 1.1 weighted files (threshold 5)
  lines  files  added  removed  path       why
     64      1    +64       -0  a.py       code, weight 1
    0.1    0.1     +1       -0  README.md  documentation, weight 0.1
      0      0     +1       -0  made/x     left out: generated or vendored
weakened:   none
"""
KEPT = "at a stop:  the agent would be blocked from stopping: "


def change(repo: Repo) -> None:
    repo.write("a.py", LINES)
    repo.write("README.md", "hello\n")
    repo.write("made/x", "x\n")


def review(
    repo: Repo, *args: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    return repo.gitgates("review", *args, env=env)


def said(repo: Repo, *args: str, status: int = 0, **named: Any) -> str:
    """Return what a verb says on standard output, and nothing on the other."""
    done = review(repo, *args, **named)
    assert (done.returncode, done.stderr) == (status, b""), done.stdout
    return done.stdout.decode()


def refused(repo: Repo, *args: str, status: int = 64, **named: Any) -> str:
    done = review(repo, *args, **named)
    assert (done.returncode, done.stdout) == (status, b"")
    return done.stderr.decode()


def document(repo: Repo, *args: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said(repo, "status", "--format", "json", *args))
    return found


def evidence(agent: Agent) -> Evidence:
    return fold(agent.facts())


def journal(agent: Agent, *facts: dict[str, Any]) -> None:
    session_journal(f"{agent.repo.path}/.git/gitgates", agent.session).append(*facts)


def run_by_agent(
    agent: Agent, *args: str, agent_id: str = "", agent_type: str = "", **env: str
) -> tuple[int, str]:
    """Run a verb as an agent's client does: after PreToolUse, as that has rewritten it.

    Return status and output.
    """
    who = {"agent_id": agent_id, "agent_type": agent_type} if agent_id else {}
    line = shlex.join(("gitgates", *args))
    own = agent.pre("Bash", tool_input={"command": line}, **who)["hookSpecificOutput"]
    assert "permissionDecision" not in own
    done = agent.repo.gitgates(*shlex.split(own["updatedInput"]["command"])[1:], env=env or None)
    return done.returncode, (done.stdout + done.stderr).decode()


def hand_token(agent: Agent, agent_id: str = "r1") -> None:
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    journal(agent, {"what": "token", "agent": agent_id, "digest": digest})


def without_ids(text: str, agent: Agent) -> str:
    """Return a text with the ids of messages left out."""
    known = evidence(agent)
    ids = [one.message for one in known.markers] + [one.message for one in known.decisions]
    for one in filter(None, ids):
        text = text.replace(one, "ID")
    return text
