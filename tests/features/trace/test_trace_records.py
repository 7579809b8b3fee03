"""What is recorded of the files that an agent writes."""

from __future__ import annotations

import os
import time
from hashlib import sha256
from typing import Any

import pytest
from agent_support import Agent, begin
from conftest import Repo

from gitgates.features.intents.lease import acquire, holder_of
from gitgates.features.trace import ledger
from gitgates.features.trace import policy as trace
from gitgates.features.trace.blame import BlamedBlock, blame
from gitgates.features.trace.ledger import verify
from gitgates.git.repo import find_repo

# Without save points, which start more processes than the trace, and are of another feature.
OFF = "[undo]\nenabled = false\n"
ON = f'[trace]\nmode = "on"\n{OFF}'


def records(repo: Repo) -> list[dict[str, Any]]:
    found = verify(f"{repo.path}/.git")
    assert found.problems == ()
    return [*ledger.records(f"{repo.path}/.git")]


def files(repo: Repo) -> list[tuple[str, str, list[str]]]:
    """Return of each file of each record: operation, path, and the lines of its blocks."""
    return [
        (file["operation"], file["path"], [span(one) for one in file["blocks"]])
        for record in records(repo)
        for file in record["files"]
    ]


def span(block: dict[str, Any]) -> str:
    return "+".join(map(str, block["old"])) + " " + "+".join(map(str, block["new"]))


def digest(text: str | bytes) -> str:
    return sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def write(agent: Agent, path: str, content: str | bytes, tool: str = "Write", **who: str) -> Any:
    """Have the agent write a file with a tool that names it."""
    use = f"w{time.monotonic_ns()}"
    agent.pre(tool, path, tool_use_id=use, **who)
    agent.repo.write(path, content)
    return agent.post(tool, path, tool_use_id=use, **who)


def shell(agent: Agent, command: str, event: str = "PostToolUse", *, heard: bool = True) -> None:
    """Have the agent run a shell command."""
    use = f"s{time.monotonic_ns()}"
    asked = {"tool_input": {"command": command}, "tool_use_id": use}
    if heard:
        agent.pre("Bash", "", **asked)
    agent.repo.ask("sh", "-c", command)
    agent.post("Bash", "", hook_event_name=event, **asked)


def blame_of(repo: Repo, path: str) -> list[BlamedBlock]:
    opened = find_repo(str(repo.path), dict(os.environ))
    return blame(opened, records(repo), path)


def test_a_record_of_a_written_file(repo: Repo) -> None:
    agent = begin(repo, ON)
    head = repo.git("rev-parse", "HEAD")
    who = {"agent_id": "a1", "agent_type": "worker"}
    assert write(agent, "b.py", "one\ntwo\n", **who) == {}
    [record] = records(repo)
    content = digest("one\ntwo\n")
    block = {"old": [1, 0], "new": [1, 2], "sha256": content}
    blob = repo.git("hash-object", "b.py")
    made = {"path": "b.py", "operation": "create", "kind": "text", "lines": 2, "blocks": [block]}
    soon = time.gmtime(time.time() + 1)  # the clock of `gmtime` alone may be a little behind
    assert record.pop("time") <= time.strftime("%Y-%m-%dT%H:%M:%S.999Z", soon)
    assert len(record.pop("id")) == 36
    assert len(record.pop("sha256")) == 64
    assert record.pop("tool_use").startswith("w")
    assert len(record.pop("point")) == 40
    assert record == {
        "v": 2,
        "session": "s1",
        "agent": "a1",
        "agent_type": "worker",
        "intent": "",
        "tool": "Write",
        "commit": head,
        "files": [{**made, "before": "", "after": content, "blob": blob}],
        "n": 1,
        "prev": "",
    }


def test_blocks_are_what_one_call_has_changed(repo: Repo) -> None:
    agent = begin(repo, ON)
    lines = [f"line {number}" for number in range(1, 11)]
    repo.write("a.py", "\n".join(lines) + "\n")  # by a person
    lines[2] = "    changed"
    lines[6:8] = []
    lines.append("more")
    write(agent, "a.py", "\n".join(lines) + "\n", "Edit")
    assert files(repo) == [("edit", "a.py", ["3+1 3+1", "7+2 7+0", "11+0 9+1"])]
    blocks = records(repo)[0]["files"][0]["blocks"]
    assert blocks[0] == {
        "old": [3, 1],
        "new": [3, 1],
        "sha256": digest("    changed\n"),
    }
    assert blocks[1] == {"old": [7, 2], "new": [7, 0]}


@pytest.mark.parametrize("saved", ["", "[undo]\nenabled = true\n"])
def test_hashes_are_of_what_a_formatter_has_left(repo: Repo, saved: str) -> None:
    gate = '[gates.format]\ncommand = "sed -i.tmp s/one/ONE/ a.py; rm a.py.tmp"\nwrites = true\n'
    hook = '[hooks.PostToolUse]\nenabled_tools = ["Write"]\ngates = ["format"]\n'
    agent = begin(repo, f"{gate}{hook}{ON.replace(OFF, saved) if saved else ON}")
    assert "a.py" in str(write(agent, "a.py", "one\n"))
    [record] = records(repo)
    assert [file["after"] for file in record["files"]] == [digest("ONE\n")]
    [block] = blame_of(repo, "a.py")
    assert block.writer[:2] == (record, "recorded")


def test_what_changes_nothing_leaves_no_record(repo: Repo) -> None:
    agent = begin(repo, ON)
    write(agent, "seed.py", "seed = 1\n")
    shell(agent, "true")
    shell(agent, "cat seed.py")
    assert records(repo) == []


def test_a_second_delivery_leaves_one_record(repo: Repo) -> None:
    agent = begin(repo, ON)
    repo.write("a.py", "a\n")
    for _ in range(2):
        agent.post("Write", "a.py", tool_use_id="t1")
    assert len(records(repo)) == 1


def test_without_an_event_before_a_tool_what_was_there_at_the_start_counts(repo: Repo) -> None:
    agent = begin(repo, ON)
    repo.write("a.py", "a\n")
    agent.post("Write", "a.py")
    assert files(repo) == [("create", "a.py", ["1+0 1+1"])]


def test_a_call_that_is_refused_keeps_nothing(repo: Repo) -> None:
    gate = '[gates.no]\ncommand = "false"\n[hooks.PreToolUse]\ngates = ["no"]\n'
    agent = begin(repo, f"{gate}{ON}")
    agent.pre("Write", "a.py")
    assert not (repo.path / ".git/gitgates/trace").exists()


def test_a_tool_that_failed_leaves_no_record(repo: Repo) -> None:
    agent = begin(repo, ON)
    agent.post("Edit", "seed.py", hook_event_name="PostToolUseFailure")
    assert records(repo) == []


def test_shell_commands_are_told_by_what_they_changed(repo: Repo) -> None:
    agent = begin(repo, ON)
    shell(agent, "echo a > a.py; rm seed.py; printf 'x\\0y' > b.bin; ln -s a.py link")
    shell(agent, "git mv -f a.py sub.py 2>/dev/null || mv a.py sub.py; echo b >> sub.py; false")
    found = files(repo)
    assert found == [
        ("create", "a.py", ["1+0 1+1"]),
        ("create", "b.bin", []),
        ("create", "link", []),
        ("delete", "seed.py", ["1+1 1+0"]),
        ("rename", "sub.py", ["2+0 2+1"]),
    ]
    kinds = [file["kind"] for file in records(repo)[0]["files"]]
    assert kinds == ["text", "binary", "link", "text"]


def test_a_command_that_undoes_what_a_tool_has_written(repo: Repo) -> None:
    agent = begin(repo, ON)
    write(agent, "a.py", "a\n")
    shell(agent, "python3 -c pass; rm a.py")
    write(agent, "seed.py", "seed = 2\n", "Edit")
    shell(agent, "git checkout -q seed.py")
    shell(agent, "true")
    assert files(repo) == [
        ("create", "a.py", ["1+0 1+1"]),
        ("delete", "a.py", ["1+1 1+0"]),
        ("edit", "seed.py", ["1+1 1+1"]),
        ("edit", "seed.py", ["1+1 1+1"]),
    ]


def test_a_renamed_file_knows_its_name_before(repo: Repo) -> None:
    agent = begin(repo, ON)
    text = "".join(f"line {number}\n" for number in range(20))
    repo.write("a.py", text)
    agent.prompt()
    shell(agent, "mv a.py b.py; echo more >> b.py")
    [file] = records(repo)[0]["files"]
    assert (file["operation"], file["was"], file["path"]) == ("rename", "a.py", "b.py")
    assert (file["before"], [span(one) for one in file["blocks"]]) == (
        digest(text),
        ["21+0 21+1"],
    )


def test_a_command_that_failed_may_have_written(repo: Repo) -> None:
    agent = begin(repo, ON)
    shell(agent, "echo a > a.py; false", "PostToolUseFailure")
    assert files(repo) == [("create", "a.py", ["1+0 1+1"])]


def test_a_command_is_not_given_what_others_wrote(repo: Repo) -> None:
    agent, other = begin(repo, ON), Agent(repo, "s2")
    write(agent, "a.py", "a\n")  # between its commands
    write(other, "b.py", "b\n")  # by another session
    past = repo.write("person.py", "by a person\n")
    time.sleep(0.06)  # times of files are not exact: the command begins later
    assert past.exists()
    shell(agent, "echo c > c.py")
    assert [record["session"] for record in records(repo)] == ["s1", "s2", "s1"]
    assert files(repo)[2:] == [("create", "c.py", ["1+0 1+1"])]


def test_a_command_that_changes_what_was_written_before(repo: Repo) -> None:
    agent, other = begin(repo, ON), Agent(repo, "s2")
    write(agent, "a.py", "one\ntwo\n")
    shell(agent, "echo three >> a.py")
    write(other, "seed.py", "seed = 1\nmore = 2\n")
    shell(agent, "sed -i.tmp s/seed/SEED/ seed.py; rm seed.py.tmp")
    assert files(repo) == [
        ("create", "a.py", ["1+0 1+2"]),
        ("edit", "a.py", ["3+0 3+1"]),
        ("edit", "seed.py", ["2+0 2+1"]),
        ("edit", "seed.py", ["1+1 1+1"]),
    ]


def test_what_is_written_while_a_command_is_recorded(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent, other = begin(repo, ON), Agent(repo, "s2")
    agent.pre("Bash", "", tool_use_id="long")
    record = vars(trace)["_trace"]

    def record_late(*args: Any) -> None:
        monkeypatch.undo()
        write(other, "b.py", "b\n")
        record(*args)

    monkeypatch.setattr(trace, "_trace", record_late)
    shell(agent, "echo a > a.py")
    agent.post("Bash", "", tool_use_id="long")
    assert files(repo) == [
        ("create", "b.py", ["1+0 1+1"]),
        ("create", "a.py", ["1+0 1+1"]),
    ]


def test_a_call_that_another_ones_event_interrupts(repo: Repo) -> None:
    agent, other = begin(repo, ON), Agent(repo, "s2")
    agent.pre("Write", "a.py", tool_use_id="t1", agent_id="w1", agent_type="worker")
    repo.write("a.py", "a\n")
    other.pre("Write", "b.py", tool_use_id="t2")
    agent.post("Write", "a.py", tool_use_id="t1", agent_id="w1", agent_type="worker")
    [record] = records(repo)
    assert [record[name] for name in ("session", "agent_type", "tool")] == ["s1", "worker", "Write"]
    assert files(repo) == [("create", "a.py", ["1+0 1+1"])]


def test_calls_of_sub_agents_at_once_are_told_apart_by_the_files_they_name(repo: Repo) -> None:
    agent = begin(repo, ON)
    for who in ("w1", "w2"):
        agent.pre("Write", f"{who}.py", tool_use_id=who, agent_id=who, agent_type="worker")
    for who in ("w1", "w2"):
        repo.write(f"{who}.py", "a\n")
    for who in ("w1", "w2"):
        agent.post("Write", f"{who}.py", tool_use_id=who, agent_id=who, agent_type="worker")
    found = {(one["agent"], *(file["path"] for file in one["files"])) for one in records(repo)}
    assert found == {("w1", "w1.py"), ("w2", "w2.py")}


def test_an_ignored_file_is_traced_where_a_tool_names_it(repo: Repo) -> None:
    repo.write(".gitignore", "*.env\n")
    agent = begin(repo, ON)
    write(agent, "my.env", "A=1\n")
    shell(agent, "echo B=2 > their.env")
    assert files(repo) == [("create", "my.env", ["1+0 1+1"])]


def test_two_agents_that_write_one_file_at_once(repo: Repo) -> None:
    agent, other = begin(repo, ON), Agent(repo, "s2")
    for one, use in ((agent, "t1"), (other, "t2")):
        one.pre("Edit", "seed.py", tool_use_id=use)
    repo.write("seed.py", "first\nseed = 1\n")
    agent.post("Edit", "seed.py", tool_use_id="t1")
    repo.write("seed.py", "first\nseed = 1\nlast\n")
    other.post("Edit", "seed.py", tool_use_id="t2")
    spans = [("edit", "seed.py", ["1+0 1+1"]), ("edit", "seed.py", ["3+0 3+1"])]
    assert files(repo) == spans


def test_a_record_has_the_intent_of_its_agent(repo: Repo) -> None:
    listed = "active_intents: [{id: INT-001, title: t, status: IN_PROGRESS, owned_scope: [a.py]}]"
    repo.write(".orchestration/active_intents.yaml", listed)
    agent = begin(repo, "[intents]\n")
    git_dir_abs = f"{repo.path}/.git"
    state_abs, holder = f"{git_dir_abs}/gitgates", holder_of("s1", "a1")
    acquire(state_abs, "INT-001", holder, ttl_s=60.0, git_dir_abs=git_dir_abs)
    write(agent, "a.py", "a\n", agent_id="a1")
    write(agent, "b.py", "b\n")
    found = [(record["agent"], record["intent"]) for record in records(repo)]
    assert found == [("a1", "INT-001"), ("", "")]
    [line] = ledger.recent(f"{repo.path}/.git", {"intent": "INT-001"}, 9)
    assert line[20:] == " s1/a1 Write: create a.py"


def test_each_change_is_recorded_once_by_all_sessions(repo: Repo) -> None:
    agent, other = begin(repo, ON), Agent(repo, "s2")
    other.start()
    shell(agent, "mv seed.py moved.py; echo a > a.py; echo b > b.py")
    shell(agent, "rm b.py")
    before = files(repo)
    shell(other, "echo own > own.py", heard=False)
    assert files(repo)[len(before) :] == [("create", "own.py", ["1+0 1+1"])]


def test_what_a_command_checks_out_is_not_its_own(repo: Repo) -> None:
    agent = begin(repo, ON)
    repo.git("worktree", "add", "-q", "-b", "other", "../linked")
    there = Repo(repo.path.parent / "linked")
    there.write("theirs.py", "x\n")
    there.git("add", ".")
    there.git("commit", "-qm", "theirs", env={"GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z"})
    shell(agent, "git merge -q other; echo own > own.py")
    assert files(repo) == [("create", "own.py", ["1+0 1+1"])]


def test_outside_of_the_repository_nothing_is_traced(repo: Repo) -> None:
    agent = begin(repo, ON)
    write(agent, "../outside.py", "a\n")
    write(agent, ".git/gitgates/x", "a\n")
    assert records(repo) == []
    (repo.path / "inside.py").symlink_to("seed.py")
    (repo.path / "leads-out.py").symlink_to("../outside.py")
    agent.prompt()
    write(agent, "inside.py", "b\n")
    write(agent, "leads-out.py", "c\n")
    assert files(repo) == [("edit", "seed.py", ["1+1 1+1"])]


def test_huge_and_binary_files(repo: Repo) -> None:
    agent = begin(repo, ON)
    write(agent, "huge.txt", b"x\n" * (1 << 20))
    write(agent, "b.bin", b"\0")
    write(agent, "b.bin", b"text\n")
    huge, binary, text = [record["files"][0] for record in records(repo)]
    assert (huge["kind"], huge["after"], huge["blocks"]) == ("huge", "", [])
    assert (binary["kind"], binary["after"], binary["blocks"]) == ("binary", digest(b"\0"), [])
    assert (text["before"], text["after"]) == (digest(b"\0"), digest(b"text\n"))


@pytest.mark.slow
def test_a_command_that_changes_very_many_files(repo: Repo) -> None:
    agent = begin(repo, ON)
    shell(agent, "for i in $(seq 103); do echo $i > f$i; done")
    [record] = records(repo)
    assert (len(record["files"]), record["more"]) == (100, 3)


def test_worktrees_share_the_ledger(repo: Repo) -> None:
    agent = begin(repo, ON)
    repo.git("worktree", "add", "-q", "../linked")
    there = Agent(Repo(repo.path.parent / "linked"), "s2")
    write(agent, "a.py", "a\n")
    write(there, "a.py", "b\n")
    assert [record["session"] for record in records(repo)] == ["s1", "s2"]


@pytest.mark.parametrize(
    "config", ['[trace]\nmode = "off"\n', "[hooks.Stop]\ngates = []\n", '[trace]\nmode = "auto"\n']
)
def test_it_can_be_off(repo: Repo, config: str) -> None:
    write(begin(repo, config), "a.py", "a\n")
    assert not (repo.path / ".git/gitgates/trace").exists()


def test_a_ledger_that_cannot_be_written_stops_nobody(repo: Repo) -> None:
    agent = begin(repo, ON)
    write(agent, "a.py", "a\n")
    path = f"{repo.path}/.git/gitgates/trace/ledger.jsonl"
    os.unlink(path)
    os.mkdir(path)
    said = write(agent, "a.py", "b\n")
    assert "the changes of this tool call are not traced" in said["systemMessage"]
    assert "decision" not in said


def test_no_content_and_no_prompt_is_stored(repo: Repo) -> None:
    agent = begin(repo, ON)
    agent.prompt("SECRET-PROMPT")
    write(agent, "a.py", "SECRET-CONTENT\n")
    shell(agent, "TOKEN=SECRET-VALUE; echo SECRET-CONTENT > b.py")
    agent.pre("Write", "a.py")
    for folder, _folders, names in os.walk(repo.path / ".git/gitgates/trace"):
        for name in names:
            with open(f"{folder}/{name}", "rb") as file:
                assert b"SECRET" not in file.read()
