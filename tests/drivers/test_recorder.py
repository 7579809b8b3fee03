"""Whose a change is: what tool calls have changed, and what somebody else has meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from agent_support import Agent
from payload_support import payload_with

from gitgates.core.agent_types import BackgroundTask
from gitgates.drivers import recorder
from gitgates.drivers.call import Call
from gitgates.drivers.recorder import may_write, observe
from gitgates.files import points
from gitgates.files.look import TimeOver
from gitgates.files.memory import Memory, time_over
from gitgates.git.repo import find_repo
from gitgates.journal.entries import Beginning
from gitgates.proc import call
from gitgates.proc.parents import Program

if TYPE_CHECKING:
    from conftest import Repo

EVENTS = {"before-tool": "PreToolUse", "after-tool": "PostToolUse", "turn-end": "Stop"}
WRITE = {"tool": "Bash", "tool_kind": "shell", "command": "make"}


class Session:
    """A session's events, in which only the recorder is asked."""

    def __init__(self, repo: Repo, name: str = "s") -> None:
        self.repo, self.name = repo, name
        self.found = find_repo(str(repo.path), dict(os.environ))
        self.turns = 0

    def call(self, kind: str, **fields: Any) -> Call:
        event = EVENTS.get(kind, kind)
        known: Any = {"host": "claude", "kind": kind, "event": event, "session": self.name}
        return Call(payload_with(**{**known, **fields}), self.found)

    def event(self, kind: str, **fields: Any) -> None:
        observe(self.call(kind, **fields))

    def pre(self, use: str = "t1", **fields: Any) -> None:
        self.event("before-tool", **{**WRITE, "tool_use_id": use, **fields})

    def post(self, use: str = "t1", **fields: Any) -> None:
        self.event("after-tool", **{**WRITE, "tool_use_id": use, **fields})

    def changed(self) -> list[tuple[str, str]]:
        """Return who has made each change since the first point."""
        return [(p.author.kind, p.author.name) for p in points.points(self.found)[1:]]


@pytest.fixture
def session(repo: Repo) -> Session:
    repo.write("a", "1\n")
    repo.commit_all("base")
    session = Session(repo)
    observe(session.call("session-start"), always=True)
    return session


def test_a_calls_change_is_its_sessions_and_others_are_somebody_elses(session: Session) -> None:
    session.repo.write("a", "person\n")
    session.pre()
    session.repo.write("a", "agent\n")
    session.post()
    session.repo.write("a", "person, again\n")
    session.pre("t2")
    session.post("t2")
    assert session.changed() == [("person", ""), ("session", "s"), ("person", "")]
    (_first, _person, own, _again) = points.points(session.found)
    assert (own.facts.tool, own.facts.what) == ("Bash", "make")


def test_a_call_of_another_session_is_under_way(session: Session) -> None:
    other = Session(session.repo, "other")
    session.pre()
    session.repo.write("a", "by the first one\n")
    other.pre("o1")
    assert session.changed() == [("session", "s")]


def test_a_refused_call_is_over_when_its_agent_does_something_else(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "_PARALLEL_S", 0.0)
    session.pre()
    session.repo.write("a", "person\n")
    session.pre("t2", agent_id="another agent")
    session.repo.write("a", "2\n")
    session.event("before-tool", tool="Read", tool_kind="reads", tool_use_id="t3")
    session.post("t2", agent_id="another agent")
    session.repo.write("a", "3\n")
    session.pre("t4")
    assert session.changed() == [("session", "s"), ("session", "s"), ("person", "")]


@pytest.mark.parametrize("kind", ["turn-end", "prompt", "session-end"])
def test_a_refused_call_is_over_with_the_turn(session: Session, kind: str) -> None:
    session.pre()
    session.event(kind)
    session.repo.write("a", "person\n")
    session.pre("t2")
    assert session.changed() == [("person", "")]


def test_a_call_of_a_sub_agent_outlasts_a_turn_that_it_is_said_to_outlast(session: Session) -> None:
    session.pre(agent_id="w1")
    session.event("turn-end", background=(BackgroundTask("subagent", "running"),))
    session.repo.write("a", "agent\n")
    session.pre("t2")
    assert session.changed() == [("session", "s")]


def test_what_another_session_does_in_a_call_is_both_of_theirs(session: Session) -> None:
    other = Session(session.repo, "other")
    session.pre()
    other.pre("o1")
    session.repo.write("a", "agent\n")
    other.post("o1")
    (_first, point) = points.points(session.found)
    assert (point.author.name, point.facts.beside) == ("other", ("s",))


def test_a_call_that_we_refuse_is_over(session: Session) -> None:
    call = session.call("before-tool", **WRITE, tool_use_id="t1")
    observe(call)
    recorder.close_refused(call)
    session.repo.write("a", "person\n")
    session.pre("t2")
    assert session.changed() == [("person", "")]


def test_a_call_whose_client_is_gone_is_over(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "who_started", lambda: Program(os.getpid(), 0))
    session.pre()
    session.repo.write("a", "person\n")
    Session(session.repo, "other").pre("o1")
    assert session.changed() == [("person", "")]


def test_a_client_without_failures_may_have_failed(session: Session) -> None:
    """Of it, what is found when the call is over is the call's: nobody knows if it was refused."""
    session.pre()
    with recorder._Calls(session.found) as calls:  # noqa: SLF001 - a client that there is none of here
        calls.open["t1"] = calls.open["t1"]._replace(tells_failures=False)
    session.repo.write("a", "agent\n")
    session.event("turn-end")
    assert session.changed() == [("session", "s")]


def test_what_runs_in_the_background_is_its_sessions_as_long_as_it_runs(session: Session) -> None:
    given: Any = {"tool_input": {"run_in_background": True}}
    session.pre(**given)
    session.post(**given)
    session.repo.write("a", "agent\n")
    session.event("turn-end", background=(BackgroundTask("shell", "running"),))
    session.pre("t2")
    session.post("t2")
    session.event("turn-end", background=(BackgroundTask("shell", "completed"),))
    session.repo.write("a", "person\n")
    session.pre("t3")
    assert session.changed() == [("session", "s"), ("person", "")]


def test_what_the_shell_leaves_running_is_its_sessions_until_the_turn_ends(
    session: Session,
) -> None:
    for command in ("make &", "(sleep 1; rm a) & echo"):
        session.pre(command=command)
        session.post(command=command)
        assert [*recorder.read_calls(session.found)] == ["t1"], command
        session.event("turn-end")
        assert not recorder.read_calls(session.found)
    session.pre(command="make 2>&1 && curl 'x?a&b'")
    session.post(command="make 2>&1 && curl 'x?a&b'")
    assert not recorder.read_calls(session.found)


def test_what_gates_write_is_theirs(session: Session) -> None:
    call = session.call("after-tool", **WRITE, tool_use_id="t1")
    observe(call)
    session.repo.write("a", "fixed\n")
    recorder.record_gates(call, ["format"])
    assert session.changed() == [("gate", "format")]


def test_who_asks_again_gets_the_same(session: Session) -> None:
    session.repo.write("a", "2\n")
    call = session.call("before-tool", **WRITE, tool_use_id="t1")
    assert observe(call).point
    assert observe(call, always=True) is observe(call)


def test_a_look_that_takes_too_long_says_so_to_each_who_asks(session: Session) -> None:
    call = session.call("before-tool", **WRITE, tool_use_id="t1")
    call.until_s = time.monotonic()
    for _ in range(2):
        with pytest.raises(TimeOver):
            observe(call)
    session.repo.write("a", "agent\n")
    session.post()
    assert session.changed() == [("session", "s")]


def test_what_is_not_known_to_read_only_may_write() -> None:
    for kind, command, writes in (
        *(("reads", "", False), ("harmless", "", False), ("ours", "", False)),
        *(("writes", "", True), ("other", "", True), ("shell", "", True)),
        *(("shell", "cat a", False), ("shell", "cat a > b", True), ("agent", "", False)),
    ):
        payload = payload_with(host="claude", tool="x", tool_kind=kind, command=command)
        assert may_write(payload) is writes, (kind, command)


def test_a_first_look_goes_on_without_the_session(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.write("a", "1\n")
    monkeypatch.setattr(recorder, "_AT_START_S", 0.0)
    session = Session(repo)
    assert not recorder.begin(session.call("session-start")).look
    until_s = time.monotonic() + 20.0
    while not points.points(session.found) and time.monotonic() < until_s:
        time.sleep(0.02)
    assert len(points.points(session.found)) == 1


def test_a_session_does_not_wait_for_the_first_look_at_a_large_repository(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.config('[gates.no]\ncommand = "false"\n[hooks.Stop]\ngates = ["no"]\n')
    repo.write("seed.py", "seed = 1\n")
    repo.commit_all("first")
    repo.write("a.py", "by a person\n")
    agent = Agent(repo)
    started = list[str]()
    monkeypatch.setattr(call, "start_unattended", lambda code, _env: started.append(code))
    with monkeypatch.context() as patched:
        patched.setattr(recorder, "_AT_START_S", 0.0)
        agent.start()
    assert (len(started), agent.state().beginning.tree) == (1, "")

    def late(*_args: object, **_limits: object) -> None:
        raise time_over(str(repo.path))

    with monkeypatch.context() as patched:
        patched.setattr(recorder, "look_and_record", late)
        agent.prompt()
        assert agent.pre("Read", "seed.py") == {}
    assert agent.state().beginning == Beginning()
    agent.pre("Read", "seed.py")
    assert agent.stop() == {}
    agent.edit("b.py", "by the agent\n")
    assert agent.state().beginning.tree
    assert agent.stop()["decision"] == "block"


@pytest.mark.parametrize("is_on", [True, False])
def test_old_points_are_removed_where_save_points_are_off(
    repo: Repo, monkeypatch: pytest.MonkeyPatch, *, is_on: bool
) -> None:
    session = Session(repo)
    month_ago_s = time.time() - 30 * 24 * 3600
    with monkeypatch.context() as patched:
        patched.setattr(points, "time", SimpleNamespace(time=lambda: month_ago_s))
        observe(session.call("session-start"), always=True)
        for text in ("1\n", "2\n"):
            repo.write("a", text)
            session.pre()
    folder_abs = Memory(session.found).folder_abs
    Path(folder_abs, "pruned").touch()
    os.utime(f"{folder_abs}/pruned", (0, 0))
    repo.write("a", "3\n")
    call = session.call("before-tool", **WRITE, tool_use_id="t2")
    call.config = call.config._replace(tables={"undo": {"enabled": is_on}})
    observe(call)
    numbers = [point.number for point in points.points(session.found)]
    assert numbers == ([0, 1, 2, 3] if is_on else [3])  # undo removes them by its own limits
