"""What every coding agent's host keeps to, whichever it is.

tests/payloads/HOST.json holds payloads that were recorded from its client (paths, ids and times
replaced), each with what it means.
"""

from __future__ import annotations

import contextlib
import json
import os
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from claude_support import damaged
from payload_support import row_of

from gitgates.config.load import load
from gitgates.core.agent_types import Payload
from gitgates.core.lifecycle import HOOK_OF
from gitgates.core.types import ALLOW, BLOCK, STOP, WARN, Verdict
from gitgates.drivers.agent import respond
from gitgates.engine.plan.hooks import matches_tool
from gitgates.hosts import AGENTS, agent_host, agent_settings
from gitgates.hosts.agent import BadPayload
from gitgates.hosts.settings.base import split
from gitgates.setup.install import agent_needs, agents

if TYPE_CHECKING:
    from conftest import Repo

    from gitgates.hosts.settings.base import Entry

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


def raw(payload: dict[str, Any]) -> bytes:
    return json.dumps(payload).encode()


def meaning(name: str, payload: dict[str, Any]) -> dict[str, Any]:
    """Return what the host understands, but for what is as usual or what no fixture tells."""
    found = agent_host(name).decode(raw(payload), {})
    assert found.host == name
    usual = row_of(Payload())
    said = {
        field: value
        for field, value in row_of(found).items()
        if value != usual[field] and field not in UNSAID
    }
    document: dict[str, Any] = json.loads(json.dumps(said))
    return document


@pytest.mark.parametrize("name", OTHERS)
def test_what_each_recorded_payload_means(name: str) -> None:
    found = [{**one, "means": meaning(name, one["payload"])} for one in recorded(name)]
    assert found == recorded(name)
    kinds = {one["means"].get("kind", "") for one in found}
    assert {"before-tool", "after-tool", "turn-end"} <= kinds


def assert_holds_out(name: str, payload: dict[str, Any]) -> None:
    host = agent_host(name)
    for one in damaged(payload):
        found = host.decode(raw(one), {})
        assert host.encode(found, Verdict()) == b"", one


@pytest.mark.parametrize("name", OTHERS)
def test_a_damaged_payload_is_decoded_or_refused(name: str) -> None:
    """The largest of each event: the others have fewer fields of the same."""
    by_size = sorted((one["payload"] for one in recorded(name)), key=lambda one: len(str(one)))
    largest = {agent_host(name).decode(raw(payload), {}).event: payload for payload in by_size}
    for payload in largest.values():
        assert_holds_out(name, payload)


@pytest.mark.thorough
@pytest.mark.parametrize("name", OTHERS)
def test_each_payload_is_decoded_or_refused_if_damaged(name: str) -> None:
    for one in recorded(name):
        assert_holds_out(name, one["payload"])


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"3", b"\xff", b"[" * 100_000])
def test_what_is_no_object_is_refused(data: bytes) -> None:
    refused = []
    for name in AGENTS:
        with contextlib.suppress(BadPayload):
            agent_host(name).decode(data, {})
            continue
        refused.append(name)
    assert refused == [*AGENTS]


@pytest.mark.parametrize("name", AGENTS)
def test_every_verdict_is_one_object_or_nothing(name: str) -> None:
    host = agent_host(name)
    for event, level in product(host.PROTOCOL.events, (ALLOW, WARN, BLOCK, STOP)):
        kind, can = host.PROTOCOL.events[event]
        payload = Payload(host=name, event=HOOK_OF[kind], kind=kind, can=can)
        answer = host.encode(payload, Verdict(level, to_agent="\udcff\u2028 why", to_person="who"))
        said = json.loads(answer) if answer else {}
        assert answer.isascii()
        lets_go = level == STOP and can.stop and kind in host.PROTOCOL.answers.silent_stops
        refuses = level >= BLOCK and (can.block or can.deny)
        blocks = refuses and not lets_go and kind not in host.PROTOCOL.answers.only_tells
        is_block = blocks or (level == STOP and "continue" in said)
        assert host.is_block(0, answer) == is_block, (event, level)
        assert ("why" in str(said)) or not (blocks and level == BLOCK), event
        assert host.encode(payload, Verdict()) == b""


def test_the_tools_of_the_configuration_are_those_of_the_agent() -> None:
    for name in AGENTS:
        host = agent_host(name)
        for tool in host.TOOLS.names["writes"][:1]:
            assert matches_tool(("Edit", "Write"), tool, host.other_names_of(tool)), name
        for tool in host.TOOLS.names["shell"][:1]:
            others = host.other_names_of(tool)
            assert matches_tool(("Bash",), tool, others), name
            assert not matches_tool(("Edit", "Write"), tool, others), name


# Its settings


def wanted(repo: Repo, name: str) -> tuple[Any, ...]:
    repo.config(CONFIG)
    config = load(str(repo.path))
    assert config
    return agent_needs.entries(config, name)


def foreign(name: str) -> tuple[str, list[str | None]]:
    """Return the kind of an agent's settings, and what may be in such a file before us."""
    bases = type(agent_settings(name)).__mro__
    return next((one.__name__, FOREIGN[one.__name__]) for one in bases if one.__name__ in FOREIGN)


def assert_put_in_and_taken_out(
    name: str, entries: tuple[Entry, ...], texts: list[str | None]
) -> None:
    settings = agent_settings(name)
    command, _missing = agents.start(name, "project", {"PATH": "/nowhere"})
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


FIRST = [*{foreign(name)[0]: name for name in reversed(OTHERS)}.values()]  # one of each kind


@pytest.mark.parametrize("name", OTHERS)
def test_hooks_are_put_in_and_taken_out_byte_for_byte(repo: Repo, name: str) -> None:
    texts = foreign(name)[1] if name in FIRST else foreign(name)[1][-1:]
    entries = wanted(repo, name)
    assert_put_in_and_taken_out(name, entries, [None, *texts])
    for entry in entries:
        if entry.event == HOOK_OF["after-tool"] and entry.matcher:
            reads = agent_host(name).TOOLS.names["reads"]
            assert any(tool.partition(".")[0] in entry.matcher for tool in reads)
            assert split((entry.matcher,))


@pytest.mark.thorough
@pytest.mark.parametrize("name", OTHERS)
def test_each_text_comes_back_byte_for_byte(repo: Repo, name: str) -> None:
    assert_put_in_and_taken_out(name, wanted(repo, name), [*foreign(name)[1]])


OFF: list[tuple[str, str, bool | None]] = [
    ("claude", '{"disableAllHooks": true}', True),
    ("claude", '{"disableAllHooks": false}', False),
    ("claude", "{}", None),
    ("codex", '{"": true}', None),
    ("gemini", '{"hooksConfig": {"enabled": false}}', True),
    ("gemini", '{"hooksConfig": {"enabled": true}}', False),
    ("gemini", '{"hooksConfig": []}', None),
    ("qwen", '{"disableAllHooks": true}', True),
    ("droid", '{"hooksDisabled": true}', True),
]


def test_what_switches_all_hooks_off() -> None:
    assert [
        (name, text, agent_settings(name).read(text, "settings").off) for name, text, _off in OFF
    ] == OFF


TRUSTED = {
    '{"/a/repo": "TRUST_FOLDER"}': True,
    '{"/a": "TRUST_FOLDER", "/a/repo": "DO_NOT_TRUST"}': False,
    '{"/a": "DO_NOT_TRUST", "/a/other": "TRUST_PARENT"}': True,
    '{"/a/rep": "TRUST_FOLDER"}': None,
    "{": None,
    "[]": None,
}


def test_the_longest_rule_of_gemini_says_whether_a_folder_is_trusted() -> None:
    settings, file = agent_settings("gemini"), "/a/repo/.gemini/settings.json"
    assert {text: settings.is_trusted(text, file, "") for text in TRUSTED} == TRUSTED


# Its events, answered


@pytest.mark.parametrize("name", AGENTS)
def test_a_sample_of_an_event_is_understood_as_it(name: str) -> None:
    """Which doctor proves with, and the test after this."""
    host = agent_host(name)
    for kind in host.PROTOCOL.provable:
        payload = host.decode(raw(host.sample(kind, "/repo", "s1", "/repo/a.txt")), {})
        assert (payload.kind, payload.event, payload.unread) == (kind, HOOK_OF[kind], "")
        assert (payload.cwd_abs, payload.session) == ("/repo", "s1"), kind
        if kind in ("before-tool", "after-tool"):
            assert payload.tool.paths == ("/repo/a.txt",), kind
            assert matches_tool(("Edit", "Write"), payload.tool.name, payload.tool.other_names), (
                kind
            )


# Whose protocols differ most, first: in the others, the same is what they mean and answer.
DIFFERENT = ("cursor", "vibe", "gemini")


@pytest.mark.samples(len(DIFFERENT))
@pytest.mark.parametrize("name", [*DIFFERENT, *(one for one in AGENTS if one not in DIFFERENT)])
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
