"""`gitgates explain` tells what policies say of an agent's stop now, as the hook then says it."""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest
from agent_support import COUNT, Agent, begin
from conftest import Repo
from review_support import LINES

from gitgates.cli.explain import command as explain
from gitgates.core.errors import UsageError

CONFIG = f"""
[gates.check]
command = '{COUNT}; test -e fine'
[gates.docs]
command = "true"
files = ["*.md"]
[hooks.Stop]
gates = ["check", "docs", "review"]
[hooks.PostToolUse]
gates = ["check"]
"""


@pytest.fixture(name="agent")
def _agent(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> Agent:
    monkeypatch.chdir(repo.path)
    return begin(repo, CONFIG)


@pytest.fixture(name="run")
def _run(capfd: pytest.CaptureFixture[str]) -> Any:
    def run(*args: str) -> str:
        assert explain([*args], standalone_mode=False) == 0
        return capfd.readouterr().out

    return run


def policies(run: Any, *args: str) -> str:
    text: str = run("Stop", *args)
    return text.partition("Stop in session s1, now:\n")[2]


def test_the_words_are_those_of_the_hook(agent: Agent, run: Any) -> None:
    agent.write("fine", "")
    with agent.call():
        agent.write("a.py", LINES)
    told, document = policies(run), json.loads(run("Stop", "--format", "json"))
    reason = agent.stop()["reason"]
    first, *more = reason.splitlines(keepends=True)
    shown = "".join([first, *textwrap.indent("".join(more), "    ").splitlines(keepends=True)])
    assert told == f"  gates: would run check\n  review: block: {shown}\n"
    said = {one["name"]: one for one in document["policies"]}
    assert (document["session"], said["review"]["to_agent"]) == ("s1", reason)
    assert [one["verdict"] for one in document["policies"]][-2:] == ["block", "block"]
    assert agent.outcomes()[-2:] == ["passed", "blocked"]


def test_the_plan_is_that_of_the_session(agent: Agent, run: Any) -> None:
    agent.write("a.md", "a\n")
    agent.repo.git("add", "-A")
    agent.repo.commit()
    plan = run("Stop").splitlines()
    assert plan[0] == "Stop: 3 gates, sequence; on 1 path: a.md"
    assert plan[-1] == "  gates: would run check, docs"
    assert run("Stop", "--all-files").startswith("Stop: 3 gates, sequence; on 3 paths: ")


def test_nothing_is_run_or_written(agent: Agent, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITGATES_SKIP", "docs")
    monkeypatch.setenv("COUNT_ABS", str(agent.count_abs))
    with agent.call():
        agent.write("a.py", LINES)
    ran, state = agent.runs(), agent.repo.path / ".git/gitgates"
    before, known = agent.facts(), {path.name for path in state.iterdir()}
    assert policies(run).startswith("  gates: would run check\n  review: block: ")
    assert agent.facts() == before
    assert agent.runs() == ran
    assert {path.name for path in state.iterdir()} - known <= {"config.marshal", "index", "objects"}


def test_unchanged_and_passed(agent: Agent, run: Any) -> None:
    why = "nothing has changed since the session began"
    assert policies(run) == f"  gates: none would run: {why}\n"
    agent.write("fine", "")
    assert agent.stop() == {}
    assert policies(run) == "  gates: none would run: they passed on the same content\n"


def test_all_are_skipped(agent: Agent, run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITGATES_SKIP", "docs,check")
    agent.write("a.md", "a\n")
    assert policies(run) == "  gates: all would be skipped\n"


def test_a_gate_that_cannot_run(agent: Agent, run: Any) -> None:
    agent.repo.config('[gates.check]\n[hooks.Stop]\ngates = ["check"]\n')
    said = policies(run).splitlines()
    assert said[0] == "  gates: would run check; `check` would stop it: gate `check` has no command"


def test_of_which_session(agent: Agent, run: Any) -> None:
    other = Agent(agent.repo, "s2")
    other.start()
    several = "the answer depends on the session: there are several sessions: "
    assert run("Stop").endswith(f"\n\n{several}{agent.repo.path}. Specify one: --session ID\n")
    document = json.loads(run("Stop", "--format", "json"))
    assert (document["session"], document["policies"]) == (None, [])
    assert document["not_asked"].startswith(several)
    assert policies(run, "--session", "s1")
    with pytest.raises(UsageError, match="session `s3` has no journal here"):
        run("Stop", "--session", "s3")


def test_what_only_the_event_tells(agent: Agent, run: Any) -> None:
    said = run("PostToolUse", "--session", agent.session)
    assert said.endswith("\n\nthe answer depends on the tool, the prompt or the sub-agent\n")
