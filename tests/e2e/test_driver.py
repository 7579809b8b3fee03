"""The driver itself: small sh hooks, and what the real client makes of their answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from claude import Client, Options, Turn, after, agent, bash, edit, read, write


class Folder:
    """A folder with hooks in sh, and a client to be started in it."""

    def __init__(self, path: Path) -> None:
        self.client = Client(path)
        self.path = path / "work"
        (self.path / ".claude").mkdir(parents=True)

    def hook(self, event: str, command: str) -> None:
        file = self.path / ".claude/settings.json"
        settings = json.loads(file.read_text()) if file.exists() else {"hooks": {}}
        handler = {"type": "command", "command": command, "timeout": 10}
        settings["hooks"][event] = [{"hooks": [handler]}]
        file.write_text(json.dumps(settings))


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


@pytest.mark.nightly
def test_a_turn_of_text_ends_the_session(folder: Folder) -> None:
    run = folder.client.run(["all done"], cwd=folder.path)
    assert (run.end["exit_status"], run.end["timed_out"], run.turns) == (0, False, 1)
    assert [r["result"] for r in run.results] == ["all done"]
    assert "go" in run.told(0)
    assert run.ends == ["completed"]


def test_tools_are_called_and_their_results_are_told(folder: Folder) -> None:
    file = folder.path / "a.txt"
    look: Turn = (read(file), bash("echo $((20+3))"))
    turns = [write(file, "one\n"), edit(file, "one", "two"), look, "end"]
    run = folder.client.run(turns, cwd=folder.path)
    assert file.read_text() == "two\n"
    assert "created" in run.told(1)
    assert "two" in run.told(3)
    assert "23" in run.told(3)
    assert run.end["turns_left"] == {}


def test_a_stop_hook_that_blocks_once_reaches_the_model(folder: Folder) -> None:
    said = json.dumps({"decision": "block", "reason": "NOT-YET", "systemMessage": "FOR-A-PERSON"})
    (folder.path / "said").write_text(said)
    folder.hook("Stop", "cat said 2>/dev/null; rm -f said")
    run = folder.client.run(["first", "second"], cwd=folder.path)
    assert "Stop hook feedback:\nNOT-YET" in run.told(1)
    assert run.results[-1]["result"] == "second"
    assert run.answers("Stop")[0]["reason"] == "NOT-YET"
    assert len(run.hooks("Stop")) == 2
    assert "FOR-A-PERSON" in run.person
    assert "FOR-A-PERSON" not in run.told_ever()


@pytest.mark.nightly
def test_prompts_follow_one_another(folder: Folder) -> None:
    run = folder.client.run(
        [bash("sleep 0.2"), "first", "second"], cwd=folder.path, prompts=("one", "two")
    )
    assert [r["result"] for r in run.results] == ["first", "second"]
    assert "two" not in run.told(1)
    assert "two" in run.told(2)


@pytest.mark.nightly
def test_a_session_is_gone_on_with(folder: Folder) -> None:
    first = folder.client.run(["mark this"], cwd=folder.path)
    again = folder.client.run(["end"], cwd=folder.path, options=Options(resume=first.session))
    assert again.session == first.session
    assert "go" in again.told(0)
    assert len(again.asked()[0]) > len(first.asked()[0])


@pytest.mark.nightly
def test_a_sub_agent_has_its_own_turns_and_is_blocked_by_itself(folder: Folder) -> None:
    (folder.path / "said").write_text('{"decision": "block", "reason": "LOOK-AGAIN"}')
    folder.hook("SubagentStop", "cat said 2>/dev/null; rm -f said")
    run = folder.client.run(
        [agent("WORD"), "end"], cwd=folder.path, agents={"WORD": ["first look", "second look"]}
    )
    assert "LOOK-AGAIN" in run.told(1, "agent WORD")
    assert "LOOK-AGAIN" not in run.told_ever()
    assert "second look" in run.told(1)


@pytest.mark.nightly
def test_a_background_agent_outlives_a_stop(folder: Folder) -> None:
    folder.hook("Stop", "cat >> stops")
    run = folder.client.run(
        [agent("WORD", background=True), "waiting", "after it"],
        cwd=folder.path,
        agents={"WORD": [after(0.5, "report", main_turns=2)]},
    )
    stops = [json.loads(s) for s in (folder.path / "stops").read_text().splitlines()]
    assert [len(stop["background_tasks"]) for stop in stops] == [1, 0]
    assert run.end["turns_left"] == {}


@pytest.mark.nightly
def test_compacting_is_told_apart(folder: Folder) -> None:
    run = folder.client.run(["one", "two"], cwd=folder.path, prompts=("a", "/compact", "b"))
    assert len(run.asked("compact")) == 1
    assert run.turns == 2


def test_the_client_sees_nothing_of_ours_and_no_network(folder: Folder) -> None:
    reach = "bash -c 'exec 3<>/dev/tcp/192.0.2.1/80' 2>&1; env | cut -d= -f1 | tr '\\n' ' '"
    run = folder.client.run([bash(reach), "end"], cwd=folder.path)
    if run.end["alone"]:
        assert "Network is unreachable" in run.told(1)
    assert "PYTEST_CURRENT_TEST" not in run.told(1)
    assert {r["path"].partition("?")[0] for r in run.requests} == {"/v1/messages"}


@pytest.mark.nightly
def test_without_a_namespace_proxies_lead_nowhere(folder: Folder) -> None:
    run = folder.client.run(
        [bash("echo $https_proxy"), "end"], cwd=folder.path, options=Options(proxies=True)
    )
    assert "http://127.0.0.1:9" in run.told(1)
    assert not run.end["alone"]


def test_a_client_that_takes_too_long_is_ended_with_all_it_started(folder: Folder) -> None:
    run = folder.client.run(
        [bash("setsid sleep 300 & sleep 300"), "end"], cwd=folder.path, options=Options(limit_s=1.5)
    )
    assert run.end["timed_out"]
    assert run.end["took_s"] < 10
