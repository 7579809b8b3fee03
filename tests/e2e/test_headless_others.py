"""`gitgates headless` with the real clients of other agents."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import others
import pytest
from claude import Options, Run, Turn
from others import shell
from scene import Scene

CONFIG = """
[gates.test]
command = "grep good a.txt || { echo FAIL: $(cat a.txt); exit 1; }"
[hooks.headless]
gates = ["test"]
max_retries = 2
[headless]
"""
USED = 110  # tokens of an answer, by the scripted model


@pytest.fixture(params=others.ARGUMENTS)
def agent(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if not others.program(name).is_file():
        pytest.skip(f"there is no {others.program(name)}. Try: make e2e HOSTS={name}")
    return name


@pytest.fixture
def scene(agent: str, tmp_path: Path) -> Scene:
    arguments = f"agent_args = {json.dumps(others.ARGUMENTS[agent])}\n"
    found = Scene(tmp_path, "")
    found.repo.config(f'{CONFIG}agent = "{agent}"\n{arguments}')
    found.repo.git("config", "user.name", "Test")
    found.repo.git("config", "user.email", "test@example.invalid")
    found.repo.write("a.txt", "bad\n")
    found.commit()
    return found


def headless(scene: Scene, *turns: Turn) -> Run:
    command = ("gitgates", "headless", "make it good")
    # Kimi Code brings the Node.js that it needs.
    path = f"{scene.folder}/clients:{others.INSTALLED}/kimi/node_modules/.bin:{os.environ['PATH']}"
    env = {"PATH": path, "COPILOT_ALLOW_ALL": "true"}
    return scene.run(*turns, options=Options(command=command, env=env, limit_s=400.0))


def asked(run: Run) -> list[str]:
    """Return each request of the main conversation, as text."""
    return [json.dumps(r["body"]) for r in run.requests if r["kind"] == "main"]


def turns(scene: Scene) -> list[dict[str, Any]]:
    """Return what was recorded of each turn of the agent."""
    document = next((scene.path / ".git/gitgates/runs").glob("*/result.json"))
    found: list[dict[str, Any]] = json.loads(document.read_text())["headless"]["turns"]
    return found


def test_first_attempt_success(scene: Scene, agent: str) -> None:
    head = scene.repo.head()
    run = headless(scene, shell(agent, "echo good > a.txt"), "It is good.")
    assert run.end["exit_status"] == 0, run.said
    assert scene.repo.git("rev-parse", "HEAD^") == head
    body = scene.repo.git("log", "-1", "--format=%B")
    assert body.startswith("make it good\n\nIt is good.\n\nGitgates-Run: ")
    assert scene.repo.git("show", "--name-only", "--format=", "HEAD") == "a.txt"
    assert scene.repo.git("status", "--porcelain") == ""
    tokens = 2 * USED if agent in others.COUNTING else None
    assert [turn.get("tokens") for turn in turns(scene)] == [tokens]


def test_retries_exhausted(scene: Scene, agent: str) -> None:
    scene.repo.write("mine.txt", "mine\n")
    before, head = scene.repo.git("status", "--porcelain=v2"), scene.repo.head()
    tries = [t for n in range(3) for t in (shell(agent, f"echo wrong {n} > a.txt"), f"said {n}")]
    run = headless(scene, *tries)
    assert run.end["exit_status"] == 1, run.said
    assert "the gates still failed when no retry was left" in run.said
    assert (scene.repo.git("status", "--porcelain=v2"), scene.repo.head()) == (before, head)
    assert (scene.path / "a.txt").read_text() == "bad\n"
    kept = scene.repo.git("for-each-ref", "--format=%(refname)", "refs/gitgates/failed")
    assert scene.repo.git("show", f"{kept}:a.txt") == "wrong 2"
    requests = asked(run)
    assert len(requests) == 6
    for said in ("make it good", "said 0", "FAIL: wrong 0", "FAIL: wrong 1"):  # one conversation
        assert said in requests[4]
    tokens = 2 * USED if agent in others.COUNTING else None
    assert [(turn["text"][-6:], turn.get("tokens")) for turn in turns(scene)] == [
        (f"said {number}", tokens) for number in range(3)
    ]
    assert len({turn["session"] for turn in turns(scene)}) == 1
