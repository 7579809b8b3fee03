"""What every coding agent's host keeps to, whichever it is.

tests/payloads/HOST.json holds payloads that were recorded from its client (paths, ids and times
replaced), each with what it means.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from claude_support import damaged

from gitgates.config.load import load
from gitgates.core.agent_types import Payload
from gitgates.core.lifecycle import HOOK_OF
from gitgates.core.types import ALLOW, BLOCK, STOP, WARN, Verdict
from gitgates.engine.hooks import matches_tool
from gitgates.hosts import AGENTS, agent_host, agent_settings
from gitgates.hosts.agent import BadPayload
from gitgates.hosts.settings.base import split
from gitgates.session.driver import respond
from gitgates.setup.install import agents

if TYPE_CHECKING:
    from collections.abc import Iterator

    from conftest import Repo

    from gitgates.core.types import Level

PAYLOADS = Path(__file__).resolve().parents[1] / "payloads"
OTHERS = [name for name in AGENTS if name != "claude"]  # which has tests of its own
UNSAID = ("host", "can", "transcript_abs", "tool_input")  # what a fixture does not tell
CONFIG = """
[gates.check]
command = "test ! -e bad.txt || { echo BAD-IS-THERE; exit 1; }"
[hooks.UserPromptSubmit]
gates = ["check"]
[hooks.PreToolUse]
enabled_tools = ["Edit", "Write"]
gates = ["check"]
[hooks.PostToolUse]
enabled_tools = ["Edit", "Write"]
gates = ["check"]
[hooks.Stop]
gates = ["check"]
"""
# What may be in settings before us, by the format of the file.
FOREIGN: dict[str, list[str | None]] = {
    "PluginSettings": [],  # a whole file, that is ours or is left alone
    "AgentSettings": ["", "{}", '{\r\n\t"theirs": {"a": [1]}\r\n}', '\ufeff{"x": 1}\n'],
    "OpenHandsSettings": ["", "{}", '{"hooks": {"SessionEnd": []},\r\n "x": [1]}'],
    "YamlSettings": [
        *("", "# mine", "a: b\r\nc:\r\n  - d", "hooks:\n  pre_verify:\n  - command: x\nz: 1\n"),
        "hooks:\n  output_spill:\n    max: 3\n  pre_tool_call:\n    - {command: x}",
    ],
    "BlockSettings": ["", "# mine", 'a = "b"\r\n[t]\r\n', "[[hooks]]\ntimeout = 3\n\n\n[x]\ny = 1"],
}


def recorded(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((PAYLOADS / f"{name}.json").read_text("utf-8"))
    return found


def cases() -> Iterator[Any]:
    for name in OTHERS:
        for number, one in enumerate(recorded(name)):
            event = one["means"].get("event", "unknown")
            yield pytest.param(name, one, id=f"{name}-{number}-{event}")


def raw(payload: dict[str, Any]) -> bytes:
    return json.dumps(payload).encode()


@pytest.mark.parametrize(("name", "one"), [*cases()])
def test_what_a_recorded_payload_means(name: str, one: dict[str, Any]) -> None:
    payload = agent_host(name).decode(raw(one["payload"]), {})
    usual = Payload()._asdict()
    said = {
        field: value
        for field, value in payload._asdict().items()
        if value != usual[field] and field not in UNSAID
    }
    assert json.loads(json.dumps(said)) == one["means"]
    assert payload.host == name


@pytest.mark.parametrize("name", OTHERS)
def test_each_event_is_recorded_or_known_not_to_be(name: str) -> None:
    kinds = {one["means"].get("kind", "") for one in recorded(name)}
    assert {"before-tool", "after-tool", "turn-end"} <= kinds


@pytest.mark.parametrize(("name", "one"), [*cases()])
def test_a_damaged_payload_is_decoded_or_refused(name: str, one: dict[str, Any]) -> None:
    host = agent_host(name)
    for payload in damaged(one["payload"]):
        found = host.decode(raw(payload), {})
        assert host.encode(found, Verdict()) == b""


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"3", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_refused(name: str, data: bytes) -> None:
    with pytest.raises(BadPayload):
        agent_host(name).decode(data, {})


@pytest.mark.parametrize("level", [ALLOW, WARN, BLOCK, STOP])
@pytest.mark.parametrize("name", AGENTS)
def test_every_verdict_is_one_object_or_nothing(name: str, level: Level) -> None:
    host = agent_host(name)
    for event, (kind, can) in host.PROTOCOL.events.items():
        payload = Payload(host=name, event=HOOK_OF[kind], kind=kind, can=can)
        answer = host.encode(payload, Verdict(level, to_agent="\udcff\u2028 why", to_person="who"))
        said = json.loads(answer) if answer else {}
        assert answer.isascii()
        lets_go = level == STOP and can.stop and kind in host.PROTOCOL.silent_stops
        refuses = level >= BLOCK and (can.block or can.deny)
        blocks = refuses and not lets_go and kind not in host.PROTOCOL.only_tells
        assert host.is_block(0, answer) == (blocks or (level == STOP and "continue" in said)), event
        assert ("why" in str(said)) or not (blocks and level == BLOCK), event
        assert host.encode(payload, Verdict()) == b""


@pytest.mark.parametrize("name", AGENTS)
def test_the_tools_of_the_configuration_are_those_of_the_agent(name: str) -> None:
    host = agent_host(name)
    for tool in host.TOOLS.names["writes"][:1]:
        assert matches_tool(("Edit", "Write"), tool, host.other_names_of(tool))
    for tool in host.TOOLS.names["shell"][:1]:
        others = host.other_names_of(tool)
        assert matches_tool(("Bash",), tool, others)
        assert not matches_tool(("Edit", "Write"), tool, others)


# Its settings


def wanted(repo: Repo, name: str) -> tuple[Any, ...]:
    repo.config(CONFIG)
    config = load(str(repo.path))
    assert config
    return agents.entries(config, name)


@pytest.mark.parametrize("name", OTHERS)
def test_hooks_are_put_in_and_taken_out_byte_for_byte(repo: Repo, name: str) -> None:
    settings, entries = agent_settings(name), wanted(repo, name)
    command, _missing = agents.start(name, "project", {"PATH": "/nowhere"})
    texts: list[str | None] = [None]
    first = agents.put(None, entries, command, host=settings, file="settings")
    assert first
    texts += next(
        FOREIGN[one.__name__] for one in type(settings).__mro__ if one.__name__ in FOREIGN
    )
    for text in texts:
        after = agents.put(text, entries, command, host=settings, file="settings")
        assert after
        found = settings.read(after, "settings").our_hooks
        assert sorted(one.event for one in found) == sorted(one.event for one in entries)
        for one in found:
            entry = next(entry for entry in entries if entry.event == one.event)
            assert one.timeout_s == entry.timeout_s
            assert one.matcher == entry.matcher
            assert agents.program_of(one.command, name) is None
        assert agents.put(after, entries, command, host=settings, file="settings") == after
        assert settings.remove(after, "settings") == text
        fewer = agents.put(after, entries[:1], command, host=settings, file="settings")
        assert fewer
        assert [one.event for one in settings.read(fewer, "settings").our_hooks] == [
            entries[0].event
        ]


@pytest.mark.parametrize("name", OTHERS)
def test_a_matcher_names_the_tools_of_the_agent(repo: Repo, name: str) -> None:
    for entry in wanted(repo, name):
        if entry.event == HOOK_OF["after-tool"] and entry.matcher:
            assert agent_host(name).TOOLS.names["writes"][0] in entry.matcher
            assert split((entry.matcher,))


@pytest.mark.parametrize(
    ("name", "text", "off"),
    [
        ("claude", '{"disableAllHooks": true}', True),
        ("claude", '{"disableAllHooks": false}', False),
        ("claude", "{}", None),
        ("codex", '{"": true}', None),
        ("gemini", '{"hooksConfig": {"enabled": false}}', True),
        ("gemini", '{"hooksConfig": {"enabled": true}}', False),
        ("gemini", '{"hooksConfig": []}', None),
        ("qwen", '{"disableAllHooks": true}', True),
        ("droid", '{"hooksDisabled": true}', True),
    ],
)
def test_what_switches_all_hooks_off(name: str, text: str, *, off: bool | None) -> None:
    assert agent_settings(name).read(text, "settings").off is off


@pytest.mark.parametrize(
    ("text", "trusted"),
    [
        ('{"/a/repo": "TRUST_FOLDER"}', True),
        ('{"/a": "TRUST_FOLDER", "/a/repo": "DO_NOT_TRUST"}', False),
        ('{"/a": "DO_NOT_TRUST", "/a/other": "TRUST_PARENT"}', True),
        ('{"/a/rep": "TRUST_FOLDER"}', None),
        ("{", None),
        ("[]", None),
    ],
)
def test_the_longest_rule_of_gemini_says_whether_a_folder_is_trusted(
    text: str, *, trusted: bool | None
) -> None:
    file = "/a/repo/.gemini/settings.json"
    assert agent_settings("gemini").is_trusted(text, file, "") is trusted


# Its events, answered


@pytest.mark.parametrize("name", AGENTS)
def test_a_gate_that_fails_blocks_what_can_be_blocked(repo: Repo, name: str) -> None:
    repo.config(CONFIG)
    host = agent_host(name)
    env = {
        **os.environ,
        **({host.ENVIRONMENT.project: str(repo.path)} if host.ENVIRONMENT.project else {}),
    }
    said: list[str] = []

    def ask(kind: str, session: str, file: str = "") -> bytes:
        path = str(repo.path / file) if file else ""
        sample = host.sample(kind, str(repo.path), session, path)  # type: ignore[arg-type]
        return respond(raw(sample), env, said.append, name)

    for kind in host.PROTOCOL.provable:
        if HOOK_OF[kind] not in ("UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"):
            continue
        for is_bad in (False, True):
            (repo.path / "bad.txt").unlink(missing_ok=True)
            session = f"{kind}-{is_bad}"
            first = "session-start" if host.has("session-start") else "before-tool"
            if first != kind:
                ask(first, session, "a.txt")
            repo.write("a.txt", f"{session}\n")
            if is_bad:
                repo.write("bad.txt", "x\n")
            answer = ask(kind, session, "a.txt")
            assert host.is_block(0, answer) is is_bad, (kind, answer, said)
            assert (b"BAD-IS-THERE" in answer) is is_bad
    assert said == []
