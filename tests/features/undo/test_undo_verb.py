"""`gitgates undo`: what it is asked for, by whom, and what it prints."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from agent_support import begin
from changes_support import by_agent, by_person, undo
from mcp.server.mcpserver.exceptions import ToolError
from template_support import copy_of

from gitgates.features.undo.tools import undo_turn
from gitgates.git.repo import find_repo
from gitgates.verbs.approval import new_token

if TYPE_CHECKING:
    from agent_support import Agent
    from conftest import Repo

pytestmark = pytest.mark.slow


@pytest.fixture
def worked() -> Repo:
    """A repository in which two sessions and a person have worked.

    1: s1, prompt 1, file a. 2: somebody, file p. 3: s1, prompt 2, a sub-agent, files a and b.
    4: s2, prompt 1, file c.
    """
    return copy_of(work)


def work(repo: Repo) -> None:
    for name in "abcp":
        repo.write(name, f"{name}\n")
    repo.commit_all("base")
    by_person(repo)
    repo.write("a", "a of s1\n")
    assert by_agent(repo, prompt_text="change a", what="sed a")
    repo.write("p", "p of a person\n")
    assert by_person(repo)
    repo.write("a", "a of s1, again\n")
    repo.write("b", "b of s1\n")
    assert by_agent(repo, prompt=2, agent="explorer", tool="Edit", what="a")
    repo.write("c", "c of s2\n")
    assert by_agent(repo, session="s2", what="sed c")


def _texts(repo: Repo) -> list[str]:
    return [(repo.path / name).read_text().removesuffix("\n") for name in "abcp"]


AGAIN, OF_S1, OF_S2, OF_P = "a of s1, again", "b of s1", "c of s2", "p of a person"


@pytest.mark.samples(6)
@pytest.mark.parametrize(
    ("args", "texts"),
    [
        (("3", "b"), [AGAIN, "b", OF_S2, OF_P]),
        (("1",), ["a", "b", OF_S2, OF_P]),
        (("--session", "s1", "--last"), ["a of s1", "b", OF_S2, OF_P]),
        (("--session", "s1", "--prompt", "2"), ["a of s1", "b", OF_S2, OF_P]),
        (("--agent", "explorer"), ["a of s1", "b", OF_S2, OF_P]),
        (("--prompt", "1"), [AGAIN, OF_S1, "c", OF_P]),
        (("--last",), [AGAIN, OF_S1, "c", OF_P]),
        (("4",), [AGAIN, OF_S1, "c", OF_P]),
        (("3",), ["a of s1", "b", OF_S2, OF_P]),
        (("2",), [AGAIN, OF_S1, OF_S2, "p"]),
        (("1", "."), ["a", "b", OF_S2, OF_P]),
        (("--session", "s1"), ["a", "b", OF_S2, OF_P]),
    ],
)
def test_what_is_undone_and_redone(worked: Repo, args: tuple[str, ...], texts: list[str]) -> None:
    before = _texts(worked)
    dry = undo(worked, *args, "--dry-run")
    assert dry.startswith("diff --git a/")
    assert _texts(worked) == before
    assert "to redo: gitgates redo" in undo(worked, *args)
    assert _texts(worked) == texts
    again = undo(worked, verb="redo").rpartition("; to undo again: gitgates undo ")[2]
    assert _texts(worked) == before
    back = undo(worked, again.strip()).rpartition("; to redo: gitgates undo ")[2]
    assert _texts(worked) == texts
    undo(worked, back.strip())
    assert _texts(worked) == before


WRONG = {
    ("99",): "there is no save point 99\n  For a list, see: gitgates undo",
    ("0",): "there is no save point 0",
    ("a b",): "got the path `a b`, but not what to undo\n  Put an ID in front of it, or --last: "
    "gitgates undo --last 'a b'",
    ("--last", "../x"): "../x: is outside the repository",
    ("3", "--last"): "an ID and --last exclude each other",
    ("--prompt", "1", "--turn"): "--prompt and --turn exclude each other",
    ("3", "--session", "s1"): "an ID and --session exclude each other",
    ("--prompt", "7"): "prompt 7 of session s2 has changed nothing\n  These have: 1",
    ("--session", "s"): "--session s means several sessions: s1, s2",
    ("--session", "none"): "there is nothing to undo of that session or agent",
    ("--turn",): "--turn: the calling session is not known",
}


def test_bad_input_is_named_and_changes_nothing(worked: Repo) -> None:
    before = _texts(worked)
    for args, said in WRONG.items():
        done = worked.gitgates("undo", *args)
        assert (done.returncode, done.stdout) == (64, b""), args
        assert said in done.stderr.decode()
        assert _texts(worked) == before, args


def test_what_is_undone_cannot_be_undone_again(worked: Repo) -> None:
    undo(worked, "4")
    done = worked.gitgates("undo", "4")
    assert done.returncode == 64
    assert b"save point 4 is already undone\n  To undo that: gitgates redo" in done.stderr
    undo(worked, verb="redo")
    done = worked.gitgates("redo")
    assert done.returncode == 64
    assert b"there is no undo to redo" in done.stderr
    undo(worked, "4")
    assert _texts(worked)[2] == "c"


def test_the_list_as_text_and_json(worked: Repo) -> None:
    lines = undo(worked).splitlines()
    assert lines[0].split() == ["ID", "when", "who", "prompt", "what", "changed"]
    assert [line.split()[0] for line in lines[1:]] == ["4", "3", "2", "1"]
    assert "session s1, prompt 2, explorer" in lines[2]
    assert "2 files, +2 −2" in lines[2]
    assert "somebody else" in lines[3]
    assert "change a" in lines[4]
    document = json.loads(undo(worked, "--format", "json"))
    assert document["version"] == 1
    first = document["points"][-1]
    known = {"id": 1, "by": "agent", "session": "s1", "prompt": 1, "prompt_text": "change a"}
    known |= {"tool": "Bash", "files": ["a"], "lines_added": 1, "lines_removed": 1, "undone": False}
    assert {name: first[name] for name in known} == known
    done = json.loads(undo(worked, "4", "--format", "json"))
    assert done == {"version": 1, "id": 5, "files": {"c": "changed"}, "notes": []}
    dry = json.loads(undo(worked, "1", "--dry-run", "--format", "json"))
    assert dry == {"version": 1, "dry_run": True, "files": {"a": "changed", "b": "changed"}}


def test_names_of_any_bytes_are_printed_safely(repo: Repo) -> None:
    by_person(repo)
    names = (b"not-\xff", b"\x1b[31mred", b"two\nlines", b"<script>")
    for name in names:
        with open(os.fsencode(repo.path) + b"/" + name, "wb") as file:
            file.write(b"\x1b[2J\xff\n")
    assert by_agent(repo, what="printf '\x1b[31m'", prompt_text="<script>alert(1)</script>\x1b[2J")
    assert "\x1b" not in undo(repo)
    document = json.loads(undo(repo, "--format", "json"))
    assert {os.fsencode(name) for name in document["points"][0]["files"]} == {*names}
    done = undo(repo, "1")
    assert "\x1b" not in done
    assert not any(os.path.lexists(os.fsencode(repo.path) + b"/" + name) for name in names)


def test_without_points_the_list_says_so(repo: Repo) -> None:
    done = repo.gitgates("undo")
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"there are no save points" in done.stderr
    assert json.loads(undo(repo, "--format", "json")) == {"version": 1, "points": []}


CONFIG = '[gates.check]\ncommand = "true"\n[hooks.Stop]\ngates = ["check"]\n'
AGENT_ENV = {"CLAUDECODE": "1"}


def _bash(agent: Agent, command: str, call_id: str, does: str = "") -> dict[str, Any]:
    """Have the agent run a shell command; return what the hook before it answered."""
    about: dict[str, Any] = {"tool_input": {"command": command}, "tool_use_id": call_id}
    answer = agent.pre("Bash", **about)
    assert agent.repo.ask("sh", "-c", does or command).returncode == 0
    agent.post("Bash", **about)
    return answer


def _as_given(agent: Agent, command: str) -> list[str]:
    """Return the words of a gitgates command as the hook before it has it run."""
    about: dict[str, Any] = {"tool_input": {"command": command}, "tool_use_id": command}
    answer = agent.pre("Bash", **about)["hookSpecificOutput"]
    return str(answer["updatedInput"]["command"]).split()[1:]


def test_an_agent_undoes_its_own_turn_only(repo: Repo) -> None:
    agent = begin(repo, CONFIG)
    _bash(agent, "echo 1 > first", "t1")
    agent.stop()
    agent.prompt()
    _bash(agent, "echo 2 > second", "t2")
    for command in ("gitgates undo 1", "gitgates undo --session s1"):
        done = repo.gitgates(*_as_given(agent, command), env=AGENT_ENV)
        assert (done.returncode, done.stdout) == (64, b""), command
        assert b"gitgates approve undo" in done.stderr
    assert b"gitgates approve undo" in repo.gitgates("redo", env=AGENT_ENV).stderr
    assert b"first" in repo.gitgates("undo", "1", "--dry-run", env=AGENT_ENV).stdout
    assert repo.gitgates("undo", "2", env=AGENT_ENV).returncode == 64  # in a script: whose is it?
    done = repo.gitgates(*_as_given(agent, "gitgates undo --turn"), env=AGENT_ENV)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (repo.path / "first").exists()
    assert not (repo.path / "second").exists()


def test_a_turn_that_has_changed_nothing_is_not_the_one_before(repo: Repo) -> None:
    agent = begin(repo, CONFIG)
    _bash(agent, "echo 1 > first", "t1")
    agent.stop()
    agent.prompt()
    done = repo.gitgates(*_as_given(agent, "gitgates undo --turn"), env=AGENT_ENV)
    assert done.returncode == 64
    assert b"prompt 2 of session s1 has changed nothing" in done.stderr
    assert (repo.path / "first").exists()


def test_a_person_approves_what_an_agent_undoes(repo: Repo) -> None:
    agent = begin(repo, CONFIG)
    _bash(agent, "echo 1 > first", "t1")
    agent.stop()
    agent.prompt()
    token = new_token(find_repo(str(repo.path), dict(os.environ)), "undo")
    done = repo.gitgates("undo", "1", "--token", "wrong", env=AGENT_ENV)
    assert (done.returncode, (repo.path / "first").exists()) == (64, True)
    done = repo.gitgates("undo", "1", "--token", token, env=AGENT_ENV)
    assert (done.returncode, (repo.path / "first").exists()) == (0, False)
    assert repo.gitgates("redo", "--token", token, env=AGENT_ENV).returncode == 64


def test_the_tool_undoes_the_turn(repo: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = begin(repo, CONFIG)
    _bash(agent, "echo 1 > 1; echo 2 > kept", "t1")
    given: dict[str, Any] = {"paths": ["1"]}
    answer = agent.pre("mcp__gitgates__undo_turn", tool_input=given)["hookSpecificOutput"]
    caller = answer["updatedInput"]["caller"]
    monkeypatch.chdir(repo.path)
    shown = anyio.run(lambda: undo_turn(["1"], dry_run=True, caller=caller))
    assert "-1" in shown
    assert (repo.path / "1").exists()
    assert "removed   1\n" in anyio.run(lambda: undo_turn(["1"], caller=caller))
    assert not (repo.path / "1").exists()
    assert (repo.path / "kept").exists()
    with pytest.raises(ToolError, match="the calling session is not known"):
        anyio.run(undo_turn)
