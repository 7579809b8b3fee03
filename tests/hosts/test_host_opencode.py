"""The plugin for opencode and Kilo, under plain node with a client and a program that are ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from gitgates.core.errors import ConfigError
from gitgates.features.review.weakened import find_in_agent_settings
from gitgates.hosts import agent_settings
from gitgates.hosts.settings.base import Entry
from gitgates.setup.install import agents

DRIVER = Path(__file__).resolve().parents[1] / "client/plugin_driver.mjs"
NODE = shutil.which("node") or ""
EVENTS = ("SessionStart", "UserPromptSubmit", "SubagentStart", "PreToolUse", "PostToolUse", "Stop")
ALL = tuple(Entry(event, 20) for event in EVENTS)
WRITES = (Entry("PreToolUse", 20, "write|edit"),)
# Keeps what it is told, and answers what is in a file of the event's name.
PROGRAM = """#!/bin/sh
read -r payload
printf '%s\\n' "$payload" >> told
event=${payload#*'"hook_event_name":"'}
cat "answers/${event%%'"'*}" 2>/dev/null
"""
HANGS = """#!/bin/sh
(sleep 30; echo late) > alive &
wait
"""
needs_node = pytest.mark.skipif(not NODE, reason="there is no node, which runs the plugin")
TURN = {"message": {"id": "msg_0", "agent": "plan", "model": {"modelID": "m"}}}


def typed(text: str) -> dict[str, Any]:
    part = {"id": "prt_123456789012abc", "type": "text", "text": text}
    return {**TURN, "parts": [part]}


def prompt(text: str, session: str = "s1") -> list[Any]:
    return ["chat.message", {"sessionID": session}, typed(text)]


def event(kind: str, session: str = "s1") -> list[Any]:
    return ["event", {"event": {"type": kind, "properties": {"sessionID": session}}}]


def created(session: str) -> list[Any]:
    properties = {"sessionID": session, "info": {"id": session}}
    return ["event", {"event": {"type": "session.created", "properties": properties}}]


def before(tool: str, args: dict[str, Any], session: str = "s1") -> list[Any]:
    call = {"tool": tool, "sessionID": session, "callID": "c1"}
    return ["tool.execute.before", call, {"args": args}]


def after(tool: str, args: dict[str, Any]) -> list[Any]:
    call = {"tool": tool, "sessionID": "s1", "callID": "c1", "args": args}
    return ["tool.execute.after", call, {"output": "done"}]


class Client:
    """A folder with a plugin, and what stands for opencode and for gitgates."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program(PROGRAM)
        (folder / "answers").mkdir()

    def program(self, text: str) -> None:
        file = self.folder / "gitgates"
        file.write_text(text)
        file.chmod(0o755)

    def answer(self, of: str, **said: Any) -> None:
        (self.folder / "answers" / of).write_text(json.dumps(said))

    def plugin(self, *entries: Entry, name: str = "one", host: str = "opencode") -> Path:
        command = f"{self.folder}/gitgates agent-hook {host}"
        text = agent_settings(host).add(None, entries, command, "")
        file = self.folder / f"{name}.mjs"
        file.write_text(text or "")
        return file

    def run(
        self, *steps: list[Any], plugins: tuple[Path, ...] = (), once: bool = False
    ) -> tuple[list[Any], list[Any], str]:
        """Return what became of each step, what the client was asked, and what was said."""
        job = {"sub": {"child": "s1", "grandchild": "child"}, "run": steps}
        words = [*map(str, plugins or (self.plugin(*ALL),)), *(["run"] if once else [])]
        done = subprocess.run(
            [NODE, str(DRIVER), json.dumps(job), *words],
            cwd=self.folder,
            capture_output=True,
            text=True,
            check=True,
        )
        found = json.loads(done.stdout)
        return found["seen"], found["asked"], done.stderr

    def told(self) -> list[dict[str, Any]]:
        """Return the payloads so far, without what is the same in all or differs each time."""
        file = self.folder / "told"
        lines = file.read_text().splitlines() if file.exists() else []
        found = [json.loads(line) for line in lines]
        assert len({one.pop("event_id") for one in found}) == len(found)
        assert {one.pop("cwd") for one in found} <= {os.path.realpath(self.folder)}
        return found


@pytest.fixture
def client(tmp_path: Path) -> Client:
    return Client(tmp_path)


@needs_node
@pytest.mark.samples(1)
@pytest.mark.parametrize("host", ["kilo", "opencode"])
def test_it_is_javascript(client: Client, host: str) -> None:
    subprocess.run([NODE, "--check", client.plugin(*ALL, host=host)], check=True)


@needs_node
def test_a_tool_is_refused_or_changed_and_what_it_said_has_more(client: Client) -> None:
    client.answer("PreToolUse", decision="block", reason="NO")
    client.answer("PostToolUse", additionalContext="LOOK")
    write = {"filePath": "a.txt", "content": "x"}
    seen, _asked, _said = client.run(before("write", write), after("write", write))
    assert seen == ["NO", {"output": "done\n\nLOOK"}]
    call = {"tool_name": "write", "tool_input": write, "tool_use_id": "c1", "session_id": "s1"}
    assert client.told() == [
        {"hook_event_name": "PreToolUse", **call},
        {"hook_event_name": "PostToolUse", **call},
    ]
    client.answer("PreToolUse", hookSpecificOutput={"updatedInput": {"command": "new"}})
    seen, _asked, _said = client.run(before("bash", {"command": "old", "workdir": "/"}))
    assert seen == [{"args": {"command": "new", "workdir": "/"}}]


@needs_node
@pytest.mark.samples(2)
@pytest.mark.parametrize(
    ("program", "once"), [("", False), ("#!/no/such\n", True), ("", True), ("#!/no/such\n", False)]
)
def test_where_gitgates_is_missing_that_is_said(
    client: Client, program: str, *, once: bool
) -> None:
    plugin = client.plugin(*ALL)
    client.program(program)
    if not program:
        (client.folder / "gitgates").unlink()
    missing = "gitgates is not installed here: none of the gates of this repository run. "
    how = "uv tool install . (or: pipx install .) in a clone of gitgates"
    steps = [created("s1"), prompt("go"), before("edit", {}), after("edit", {})]
    steps += [event("session.idle")]
    seen, asked, said = client.run(*steps, plugins=(plugin,), once=once)
    *_typed, added = seen[1]["parts"]
    ask = f"{missing}Tell the person that nothing is checked, and ask whether to run: {how}"
    assert added["text"] == ask
    assert seen[2:] == [{"args": {}}, {"output": "done"}, None]
    told = [text for _toast, text in asked] + said.splitlines()
    assert told == [f"{missing}To install it: {how}"] * 2


@needs_node
def test_what_no_gate_is_for_starts_nothing(client: Client) -> None:
    client.answer("PreToolUse", decision="block", reason="NO")
    steps = [
        *(
            created("s1"),
            prompt("go"),
            before("bash", {}),
            before("rewrite", {}),
            after("edit", {}),
        ),
        *(event("session.idle"), before("edit", {})),
    ]
    seen, asked, _said = client.run(*steps, plugins=(client.plugin(*WRITES),))
    assert (seen[-1], asked) == ("NO", [])
    assert [one["tool_name"] for one in client.told()] == ["edit"]


@pytest.mark.samples(1)
@needs_node
@pytest.mark.parametrize(
    ("patterns", "asked_of"),
    [
        (("Edit",), ["edit", "apply_patch"]),
        (("!Read", "!bash"), ["edit", "apply_patch", "gitgates_x"]),
        (("gitgates_*",), ["gitgates_x"]),
        (None, ["edit", "apply_patch", "read", "bash", "gitgates_x"]),
    ],
)
def test_a_matcher_lets_through_what_the_patterns_name(
    client: Client, patterns: tuple[str, ...] | None, asked_of: list[str]
) -> None:
    matcher = agent_settings("opencode").matcher("before-tool", patterns, None)
    plugin = client.plugin(Entry("PreToolUse", 20, matcher))
    tools = ["edit", "apply_patch", "read", "bash", "gitgates_x"]
    client.run(*(before(tool, {}) for tool in tools), plugins=(plugin,))
    assert [one["tool_name"] for one in client.told()] == asked_of


@needs_node
def test_a_turn_from_its_prompt_to_its_end(client: Client) -> None:
    client.answer("SessionStart", additionalContext="RULES")
    client.answer("UserPromptSubmit", additionalContext="MORE")
    client.answer("Stop", decision="block", reason="FIX", systemMessage="person")
    spoken = ["experimental.text.complete", {"sessionID": "s1"}, {"text": "done"}]
    steps = [created("s1"), prompt("go"), spoken, event("session.idle"), event("session.idle")]
    seen, asked, _said = client.run(*steps)
    *_typed, added = seen[1]["parts"]
    assert added == {
        "id": "prt_12345678" + "9012" + "z" * 14,
        "messageID": "msg_0",
        "sessionID": "s1",
        "type": "text",
        "synthetic": True,
        "text": "RULES\n\nMORE",
    }
    body = {"agent": "plan", "model": {"modelID": "m"}, "parts": [{"type": "text", "text": "FIX"}]}
    assert asked == [["toast", "person"], ["prompt", "s1", body]] * 2
    said = {"session_id": "s1"}
    assert client.told() == [
        {"hook_event_name": "SessionStart", "source": "startup", **said},
        {"hook_event_name": "UserPromptSubmit", "prompt": "go", **said},
        *(
            {"hook_event_name": "Stop", "stop_hook_active": again, **last, **said}
            for again, last in ((False, {"last_assistant_message": "done"}), (True, {}))
        ),
    ]


@needs_node
def test_a_turn_that_was_interrupted_has_no_end(client: Client) -> None:
    idle, wrong = event("session.idle"), event("session.error")
    client.run(prompt("go"), wrong, idle, idle, prompt("go on"), idle, idle)
    found = [one["hook_event_name"] for one in client.told()]
    assert found == ["SessionStart", "UserPromptSubmit", "UserPromptSubmit", "Stop"]
    assert client.told()[0]["source"] == "resume"


@needs_node
def test_an_end_is_none_where_the_person_has_gone_on_meanwhile(client: Client) -> None:
    client.answer("Stop", decision="block", reason="FIX")
    _name, idle = event("session.idle")
    _seen, asked, _said = client.run(prompt("go"), ["&event", idle], prompt("another"))
    assert asked == []
    assert {one["hook_event_name"] for one in client.told()[1:]} == {"UserPromptSubmit", "Stop"}


@needs_node
def test_a_sub_agent_works_in_the_session_of_its_agent(client: Client) -> None:
    client.answer("SubagentStart", additionalContext="TOKEN")
    shell = ["shell.env", {"sessionID": "grandchild"}, {"env": {}}]
    steps = [created("grandchild"), prompt("do", "grandchild"), before("bash", {}, "grandchild")]
    seen, asked, _said = client.run(*steps, shell, event("session.idle", "grandchild"))
    assert [part["text"] for part in seen[1]["parts"]] == ["do", "TOKEN"]
    assert (seen[3], asked) == ({"env": {"GITGATES_SESSION": "s1"}}, [])
    who = {"session_id": "s1", "agent_id": "grandchild", "agent_type": "plan"}
    call = {"tool_name": "bash", "tool_input": {}, "tool_use_id": "c1"}
    assert client.told() == [
        {"hook_event_name": "SubagentStart", **who},
        {"hook_event_name": "PreToolUse", **who, **call},
    ]


@pytest.mark.samples(1)
@needs_node
@pytest.mark.parametrize(
    "program",
    [
        "#!/bin/sh\necho hello\n",
        "#!/bin/sh\n",
        "#!/bin/sh\necho null; exit 3\n",
    ],
    ids=["no JSON", "silent", "null"],
)
@pytest.mark.parametrize("once", [False, True], ids=["", "run"])
def test_whatever_is_wrong_nothing_happens(client: Client, program: str, *, once: bool) -> None:
    client.program(program)
    steps = [
        *(created("s1"), prompt("go"), before("write", {"a": 1}), after("write", {"a": 1})),
        *(event("session.idle"), event("session.error", ""), ["event", {}], ["chat.message"]),
        *(["tool.execute.before"], ["tool.execute.after"], ["shell.env", {}, {"env": {}}]),
    ]
    seen, asked, said = client.run(*steps, once=once)
    parts = [None, typed("go"), {"args": {"a": 1}}, {"output": "done"}]
    assert seen == [*parts, *[None] * 6, {"env": {}}]
    assert (asked, said) == ([], "")


def hanging(client: Client, program: str) -> Path:
    client.program(program)
    file = client.plugin(Entry("Stop", 20))
    file.write_text(file.read_text().replace('"timeout": 20', '"timeout": 0.3'))
    return file


@needs_node
def test_what_takes_too_long_is_killed_with_all_that_it_started(client: Client) -> None:
    os.mkfifo(client.folder / "alive")
    reader = os.open(client.folder / "alive", os.O_RDONLY | os.O_NONBLOCK)
    steps, file = (prompt("go"), event("session.idle")), hanging(client, HANGS)
    _seen, asked, _said = client.run(*steps, plugins=(file,))
    os.set_blocking(reader, True)
    assert (os.read(reader, 10), asked) == (b"", [])
    os.close(reader)


@needs_node
def test_an_answer_counts_though_somebody_keeps_the_output_open(client: Client) -> None:
    answer = json.dumps({"decision": "block", "reason": "not yet"})
    file = hanging(client, f"#!/bin/sh\nsleep 30 &\necho '{answer}'\n")
    _seen, asked, _said = client.run(prompt("go"), event("session.idle"), plugins=(file,))
    assert "not yet" in json.dumps(asked)


@pytest.mark.thorough
@needs_node
def test_run_does_not_wait_for_ever_either(client: Client) -> None:
    steps, file = (prompt("go"), event("session.idle")), hanging(client, "#!/bin/sh\nexec sleep 30")
    _seen, asked, said = client.run(*steps, plugins=(file,), once=True)
    assert (asked, said) == ([], "")


@needs_node
def test_two_files_are_one_plugin_that_asks_for_both(client: Client) -> None:
    plugins = client.plugin(Entry("Stop", 20), *WRITES, name="user"), client.plugin(*ALL)
    client.answer("Stop", decision="block", reason="FIX")
    steps = prompt("go"), before("write", {}), before("bash", {}), event("session.idle")
    _seen, asked, _said = client.run(*steps, plugins=plugins)
    found = [one["hook_event_name"] for one in client.told()]
    assert found == ["SessionStart", "UserPromptSubmit", "PreToolUse", "PreToolUse", "Stop"]
    assert len(asked) == 1


@needs_node
def test_run_ends_with_a_turn_and_says_why_it_should_not(client: Client) -> None:
    client.answer("Stop", decision="block", reason="FIX")
    steps = prompt("go"), event("session.idle"), event("session.idle")
    _seen, asked, said = client.run(*steps, once=True)
    assert (asked, said) == ([], "FIX\n")
    kilo = (client.plugin(*ALL, host="kilo"),)
    _seen, asked, said = client.run(*steps, plugins=kilo, once=True)
    assert ([name for name, *_rest in asked], said) == (["prompt"], "FIX\n")


# The file


def put(text: str | None) -> str | None:
    command, host = "gitgates agent-hook opencode", agent_settings("opencode")
    return agents.put(text, ALL, command, host=host, file="gitgates.js")


def test_a_file_that_is_not_ours_is_left_alone() -> None:
    settings = agent_settings("opencode")
    for text in ("", "export const Mine = async () => ({})\n"):
        assert settings.read(text, "").hooks == ()
        assert settings.remove(text, "") == text
        with pytest.raises(
            ConfigError, match=r"^gitgates.js: .* not created by gitgates, and is left"
        ):
            put(text)


def test_a_file_that_somebody_has_changed_is_left_alone() -> None:
    text, settings = put(None), agent_settings("opencode")
    assert text
    changed = text.replace("await run(", "({}) || await run(")
    loose = {one.loose for one in settings.read(changed, "").our_hooks}
    assert loose == {"the plugin was edited after gitgates wrote it; remove it first"}
    path = ".opencode/plugins/gitgates.js"
    found = find_in_agent_settings(path, text.encode(), changed.encode())
    gone = [one.detail for one in found]
    assert gone == [f"{event}: `gitgates agent-hook opencode` was removed" for event in EVENTS]
    for do in (put, lambda text: settings.remove(text, "gitgates.js")):
        with pytest.raises(ConfigError, match=r"^gitgates.js: was edited after gitgates wrote"):
            do(changed)
    crlf = text.replace("\n", "\r\n")  # as a checkout may have it
    assert (put(crlf), settings.remove(crlf, "")) == (crlf, None)


def test_a_file_of_another_version_is_brought_up_to_date(monkeypatch: pytest.MonkeyPatch) -> None:
    text, settings = put(None), agent_settings("opencode")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "read_text", lambda *_args: "const CONFIG = {}\n")
        older = put(None)
    assert older
    assert len(settings.read(older, "").our_hooks) == len(ALL)
    assert [*settings.read(older, "").troubles] == ["was written by another version of gitgates"]
    assert put(older) == text
    assert settings.read(text or "", "").troubles == {}
