"""What the real client writes is traced, as it is after formatters."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from claude import agent, bash, edit, read, write
from scene import Scene

ON = '[trace]\nmode = "on"\n'
# Indents each file that a tool has written by four more.
FORMAT = """
[gates.format]
command = "for f in \\"$@\\"; do sed 's/^  *//; s/^/    /' $f > ../new; cat ../new > $f; done"
pass_files = true
writes = true
[hooks.PostToolUse]
enabled_tools = ["Edit", "Write"]
gates = ["format"]
"""


def records(scene: Scene) -> list[dict[str, Any]]:
    verified = scene.repo.gitgates("trace", "verify")
    assert verified.returncode == 0, verified.stdout
    shown = scene.repo.gitgates("trace", "show", "--format", "json")
    found: list[dict[str, Any]] = json.loads(shown.stdout)["records"]
    return found


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def test_writes_and_shell_commands_are_traced(tmp_path: Path) -> None:
    scene = Scene(tmp_path, FORMAT + ON)
    file = scene.at("a.py")
    run = scene.run(
        write(file, "one = 1\ntwo = 2\n"),
        read(file),
        edit(file, "two = 2", "two = 2\nthree = 3"),
        bash("echo shell >> a.py; echo more > sub.txt; rm seed.txt"),
        bash("git status; cat a.py"),
        bash("mv sub.txt moved.txt; exit 3"),
        "end",
    )
    found = records(scene)
    assert [one["tool"] for one in found] == ["Write", "Edit", "Bash", "Bash"]
    assert {one["session"] for one in found} == {run.session}
    assert [[f"{f['operation']} {f['path']}" for f in one["files"]] for one in found] == [
        ["create a.py"],
        ["edit a.py"],
        ["edit a.py", "delete seed.txt", "create sub.txt"],
        ["rename moved.txt"],
    ]
    formatted = "    one = 1\n    two = 2\n"
    assert found[0]["files"][0]["after"] == digest(formatted)
    [block] = found[1]["files"][0]["blocks"]
    assert (block["old"], block["new"]) == ([3, 0], [3, 1])
    assert block["sha256"] == digest("    three = 3\n")
    assert found[2]["files"][0]["before"] == digest(formatted + "    three = 3\n")
    shown = scene.repo.gitgates("trace", "blame", "a.py", "--format", "json").stdout
    blame = [(f"{b['start']}-{b['end']}", b["tool"]) for b in json.loads(shown)["blocks"]]
    assert blame == [("1-2", "Write"), ("3-3", "Edit"), ("4-4", "Bash")]


def test_each_sub_agent_is_a_writer_of_its_own(tmp_path: Path) -> None:
    scene = Scene(tmp_path, ON)
    scene.run(
        (agent("ONE"), agent("TWO")),
        write(scene.at("main.py"), "main\n"),
        "end",
        agents={
            "ONE": [write(scene.at("one.py"), "one\n"), bash("echo 1 > one.txt"), "done"],
            "TWO": [write(scene.at("two.py"), "two\n"), "done"],
        },
    )
    found = records(scene)
    by_file = {file["path"]: one for one in found for file in one["files"]}
    assert set(by_file) == {"main.py", "one.py", "two.py", "one.txt"}
    writers = {path: (one["agent"], one["agent_type"]) for path, one in by_file.items()}
    assert writers["main.py"] == ("", "")
    assert writers["one.py"] == writers["one.txt"] != writers["two.py"]
    assert {kind for _agent, kind in writers.values()} == {"", "general-purpose"}
    assert [one["n"] for one in found] == [1, 2, 3, 4]


@pytest.mark.nightly
def test_a_tool_that_is_refused_leaves_nothing(tmp_path: Path) -> None:
    refuse = '[gates.no]\ncommand = "false"\n[hooks.PreToolUse]\ngates = ["no"]\n'
    scene = Scene(tmp_path, refuse + ON)
    scene.run(write(scene.at("a.py"), "a\n"), "end")
    assert not scene.at("a.py").exists()
    assert not (scene.path / ".git/gitgates/trace").exists()


@pytest.mark.nightly
def test_what_is_written_for_an_intent_says_so(tmp_path: Path) -> None:
    scene = Scene(tmp_path, "[intents]\nrequired = true\n")
    one = '{id: INT-001, title: Numbers, status: IN_PROGRESS, owned_scope: ["*.py", "*.txt"]}'
    scene.repo.write(".orchestration/active_intents.yaml", f"active_intents: [{one}]\n")
    scene.commit()
    scene.run(
        write(scene.at("refused.py"), "too early\n"),
        bash("gitgates intent select INT-001"),
        write(scene.at("a.py"), "one\n"),
        bash("echo two > b.txt"),
        "end",
    )
    found = [(one["intent"], one["tool"], one["files"][0]["path"]) for one in records(scene)]
    assert found == [("INT-001", "Write", "a.py"), ("INT-001", "Bash", "b.txt")]
    shown = scene.repo.gitgates("trace", "show", "--intent", "INT-001").stdout.decode()
    assert [line.split()[-1] for line in shown.splitlines()] == ["a.py", "b.txt"]
