"""Our hooks in others' settings: put in, updated, and out again byte for byte."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from config_support import without_guard, without_undo
from hypothesis import given
from hypothesis import strategies as st

from gitgates.core.errors import ConfigError
from gitgates.core.types import Config, Hook, make_gate
from gitgates.edit import blocks
from gitgates.edit.json_text import parse
from gitgates.hosts.agents.claude import HOST
from gitgates.hosts.agents.claude.settings import BARE, Settings
from gitgates.hosts.settings.base import Entry, is_our_command
from gitgates.hosts.settings.json_settings import agent_matcher, tool_matcher
from gitgates.setup.install import agent_needs, agents

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[3]
FILE = ".claude/settings.json"
CLIENT = Settings(HOST)
STOP = Entry("Stop", 315)
WRITE = Entry("PreToolUse", 5, "Edit|Write")
WANTED = (Entry("SessionStart", 5), WRITE, STOP)
GATE = make_gate(name="g", command="true", timeout_s=60)


def put(text: str | None, wanted: tuple[Entry, ...] = WANTED, command: str = BARE) -> str:
    after = agents.put(text, wanted, command, host=CLIENT, file=FILE)
    assert after is not None
    return after


def value(text: str) -> Any:
    return json.loads(text.removeprefix("\ufeff"))


def ours(text: str) -> dict[str, Any]:
    return {hook.event: hook for hook in CLIENT.read(text, FILE).our_hooks}


# What is written


def test_a_file_of_our_own_is_written_whole() -> None:
    assert (
        put(None, (STOP, WRITE))
        == """\
{
  "hooks": {
    "Stop": [
      {
        "hooks": [
          {
            "type": "command",
            "command": "gitgates agent-hook claude",
            "timeout": 315,
            "statusMessage": "gitgates: running the gates"
          }
        ]
      }
    ],
    "PreToolUse": [
      {
        "matcher": "Edit|Write",
        "hooks": [
          {
            "type": "command",
            "command": "gitgates agent-hook claude",
            "timeout": 5
          }
        ]
      }
    ]
  }
}
"""
    )


def test_it_takes_on_the_indentation_of_the_file() -> None:
    text = '{\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{"hooks": []}\n\t\t]\n\t},\n\t"model": "x"\n}\n'
    assert put(text, (WRITE,)) == (
        '{\n\t"hooks": {\n\t\t"Stop": [\n\t\t\t{"hooks": []}\n\t\t],\n'
        '\t\t"PreToolUse": [\n\t\t\t{\n\t\t\t\t"matcher": "Edit|Write",\n\t\t\t\t"hooks": [\n'
        '\t\t\t\t\t{\n\t\t\t\t\t\t"type": "command",\n'
        '\t\t\t\t\t\t"command": "gitgates agent-hook claude",\n\t\t\t\t\t\t"timeout": 5\n'
        '\t\t\t\t\t}\n\t\t\t\t]\n\t\t\t}\n\t\t]\n\t},\n\t"model": "x"\n}\n'
    )


def test_events_matchers_and_timeouts_are_those_that_are_needed() -> None:
    config = Config(
        gates=(GATE, GATE.changed(name="slow", timeout_s=100.5)),
        hooks=(
            Hook(name="Stop", gates=("g", "slow")),
            Hook(name="PostToolUse", gates=("g",), enabled_tools=("Edit", "mcp__serena__*")),
            Hook(name="PreToolUse", gates=("g",), enabled_tools=()),
            Hook(name="SubagentStop", gates=("g",), enabled_agents=("rust-engineer",)),
            Hook(name="SessionEnd", gates=("g",)),
            Hook(name="pre-commit", gates=("g",)),
        ),
    )
    assert agent_needs.entries(without_undo(config), "claude") == (
        Entry("SessionStart", 5),
        Entry("UserPromptSubmit", 5),
        Entry("PreToolUse", 5, "Edit|Write|NotebookEdit|Bash|PowerShell"),
        Entry("PostToolUse", 75, "^(Edit|mcp__serena__.*)$"),
        Entry("SubagentStart", 5),
        Entry("SubagentStop", 75, "^(.*:)?(rust\\-engineer)$"),
        Entry("Stop", 176),
        Entry("SessionEnd", 10),
    )


def test_the_page_names_the_events_that_are_written() -> None:
    page = (ROOT / "docs/how-to/agent-hooks.md").read_text()
    configured = tomllib.loads(page.split("```toml\n")[1].split("```")[0])["tool"]["gitgates"]
    assert configured["hooks"] == {"Stop": {"gates": ["test"]}}
    gate = GATE.changed(name="test", timeout_s=120)
    config = Config(gates=(gate,), hooks=(Hook(name="Stop", gates=("test",)),))
    wanted = agent_needs.entries(without_undo(config), "claude")
    beside = {one.event for one in wanted} - {"Stop"}
    assert beside == {"SessionStart", "UserPromptSubmit", "PreToolUse", "SubagentStart"}
    assert all(f"`{event}`" in page for event in beside)


def test_hooks_of_git_alone_need_the_guard() -> None:
    config = Config(gates=(GATE,), hooks=(Hook(name="pre-commit", gates=("g",)),))
    events = [one.event for one in agent_needs.entries(config, "claude")]
    assert {"PreToolUse", "Stop"} <= {*events}
    assert agent_needs.entries(without_guard(config), "claude") == ()
    assert agent_needs.entries(Config(gates=(GATE,)), "claude") == ()  # nothing runs by itself


# Matchers


@pytest.mark.parametrize(
    ("tools", "matcher"),
    [
        (None, None),
        (("*",), None),
        (("Edit", "*"), None),
        (("Edit",), "Edit"),
        (("Edit|Write", " Bash "), "Edit|Write|Bash"),
        (("mcp__a-b__c",), "mcp__a-b__c"),
        (("Edit", "mcp__serena__*"), "^(Edit|mcp__serena__.*)$"),
        (("a.b",), r"^(a\.b)$"),
        (("Note?ook",), "^(Note.ook)$"),
        (("!Read", "!Grep", "!Glob"), "^(?!(?:Read|Grep|Glob)$)"),
        (("!Read", "!Grep", "!Glob", "Edit", "Re*"), "^(?!(?:Grep|Glob)$)"),
        (("Edit|Read", "!Read", "!mcp__a__*"), "^(?!(?:mcp__a__.*)$)"),
        (("!Read", "Edit|Read"), None),
        (("!Read", "*"), None),
    ],
)
def test_the_matcher_of_tools(tools: tuple[str, ...] | None, matcher: str | None) -> None:
    assert tool_matcher(tools) == matcher


def test_what_is_left_out_slips_by_and_nothing_else() -> None:
    matcher = tool_matcher(("!Read", "!Grep", "!Glob"))
    fine = ("Edit", "Bash", "mcp__a__Read", "ReadMcpResource", "Agent", "read")
    assert all(re.search(matcher or "", name) for name in fine)
    assert not any(re.search(matcher or "", name) for name in ("Read", "Grep", "Glob"))


def test_the_matcher_of_agents_lets_those_of_plugins_through() -> None:
    matcher = agent_matcher(("reviewer", "rust-*"))
    fine = ("reviewer", "kit:reviewer", "rust-x", "kit:rust-x")
    assert all(re.search(matcher or "", name) for name in fine)
    assert not any(re.search(matcher or "", name) for name in ("", "my-reviewer", "reviewer:x"))
    assert agent_matcher(None) is None
    assert agent_matcher(("*",)) is None


# The mark of ownership


@pytest.mark.parametrize(
    ("command", "is_ours"),
    [
        ("gitgates agent-hook claude", True),
        ("  gitgates   agent-hook claude ", True),
        ("/opt/v/bin/gitgates agent-hook claude", True),
        ("'/my venv/bin/gitgates' agent-hook claude", True),
        ("bin/gitgates agent-hook claude", False),
        ("echo gitgates agent-hook claude", False),
        ("gitgates agent-hook claude || true", False),
        ("mytool --x gitgates", False),
        ("/opt/gitgates-x agent-hook claude", False),
        ("gitgates agent-hook", False),
        ("gitgates agent-hook claude 'unclosed", False),
        (7, False),
    ],
)
def test_a_hook_is_ours_by_its_whole_command(command: object, *, is_ours: bool) -> None:
    assert is_our_command(command, "claude") is is_ours


def test_what_merely_mentions_us_stays() -> None:
    foreign = {
        "hooks": {
            "Stop": [
                {"hooks": [{"type": "command", "command": "echo gitgates agent-hook claude"}]},
                {"hooks": [{"type": "prompt", "command": BARE}]},
                {"hooks": [{"type": "command", "command": BARE, "args": ["x"]}]},
                "gitgates agent-hook claude",
                {"hooks": {"command": BARE}},
            ]
        }
    }
    text = json.dumps(foreign, indent=4)
    assert CLIENT.remove(put(text), FILE) == text
    assert len(ours(put(text))) == len(WANTED)


def test_what_others_add_beside_ours_stays() -> None:
    text = put('{\n  "a": 1\n}\n')
    theirs = {"type": "command", "command": "theirs"}
    changed = value(text)
    changed["hooks"]["Stop"][0]["hooks"].append(theirs)
    changed["hooks"]["PreToolUse"].insert(0, {"hooks": [theirs]})
    changed["hooks"]["Notification"] = [{"hooks": [theirs]}]
    changed["hooks"]["SessionStart"][0]["note"] = "mine"
    left = CLIENT.remove(json.dumps(changed, indent=2), FILE)
    assert left is not None
    assert value(left) == {
        "a": 1,
        "hooks": {
            "SessionStart": [{"hooks": [], "note": "mine"}],
            "PreToolUse": [{"hooks": [theirs]}],
            "Stop": [{"hooks": [theirs]}],
            "Notification": [{"hooks": [theirs]}],
        },
    }


# Up to date


def test_a_changed_timeout_matcher_or_command_is_brought_up_to_date() -> None:
    before = '{\n  "model": "x"\n}\n'
    text = put(before, (STOP._replace(timeout_s=9), WRITE._replace(matcher=None)))
    again = put(text, WANTED, "/v/bin/gitgates agent-hook claude")
    assert again == put(before, WANTED, "/v/bin/gitgates agent-hook claude")
    assert CLIENT.remove(again, FILE) == before


def test_an_event_that_is_not_needed_any_more_goes() -> None:
    assert list(ours(put(put(None), (STOP,)))) == ["Stop"]


def test_what_is_current_stays_as_somebody_has_formatted_it() -> None:
    reformatted = json.dumps({"z": 1, **value(put("{}"))}, indent=7)
    assert put(reformatted) == reformatted


# Byte for byte

SHAPES = [
    "{}",
    "{}\n",
    "{\n}\n",
    "{ }",
    "\ufeff{}",
    "",
    "\n",
    "\ufeff",
    "\r\n",
    "\r",
    " \t",
    '{"hooks":{}}',
    '{"hooks": {"Stop": []}}',
    '{"hooks": {"Stop": [ ]}, "a": [1, 2]}',
    '{\n  "hooks": {\n  }\n}\n',
    '{\n  "hooks": {\n    "Stop": [\n    ]\n  }\n}',
    '{\r\n\t"a": {"b": "\\u00fc \\" }"},\r\n\t"hooks": {"Stop": [{"hooks": []}]}\r\n}\r\n',
    '{"a"\n:\n1\n,\n"hooks"\n:\n{"Stop"\n:\n[\n{}\n]\n}\n}',
    '   {\n      "a": 1   }   ',
    '{"a":1}',
    '{\n  "permissions": {"allow": []},\n  "hooks": {"Other": [7], "Stop": [{"matcher": ""}]}}',
]


@pytest.mark.parametrize("text", SHAPES)
def test_it_goes_in_once_and_out_without_a_trace(text: str) -> None:
    after = put(text)
    assert set(ours(after)) == {one.event for one in WANTED}
    assert put(after) == after
    assert CLIENT.remove(after, FILE) == text
    # Whatever was installed before, the result is the same.
    assert put(put(text, (STOP,), "/v/gitgates agent-hook claude")) == after


def test_a_file_of_our_own_goes_again() -> None:
    assert CLIENT.remove(put(None), FILE) is None
    # The client itself writes it anew, without a new line at its end.
    assert CLIENT.remove(json.dumps(value(put(None)), indent=2), FILE) is None


SPACES = st.text(alphabet=" \t\r\n", max_size=3)
KEYS = st.sampled_from(["a", "hooks", "Stop", "PreToolUse", "command", "ü", '"', "gitgates"])
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from(["", "x", BARE[:-1], "{", "]", ",", "\\", "\n", "\U0001f600"]),
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)
HANDLERS = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.sampled_from(["x", f"echo {BARE}"])}
)
GROUPS = st.fixed_dictionaries({"hooks": st.lists(HANDLERS, max_size=2)})
EVENTS = st.dictionaries(
    st.sampled_from(["Stop", "PreToolUse", "SessionEnd"]),
    st.lists(st.one_of(GROUPS, VALUES), max_size=3),
    max_size=3,
)
SETTINGS = st.dictionaries(KEYS.filter(lambda key: key != "hooks"), VALUES, max_size=3)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Settings, written in any way that JSON allows."""
    settings = draw(SETTINGS)
    if draw(st.booleans()):
        settings["hooks"] = draw(EVENTS)
    mark = draw(st.sampled_from(["", "\ufeff"]))
    indent = draw(st.sampled_from([None, 0, 2, 4, "\t", "wild"]))
    if indent != "wild":
        newline = draw(st.sampled_from(["\n", "\r\n"]))
        text = json.dumps(settings, indent=indent, ensure_ascii=draw(st.booleans()))
        return mark + text.replace("\n", newline) + draw(st.sampled_from(["", newline]))
    return mark + draw(SPACES) + _wild(settings, draw) + draw(SPACES)


def _wild(item: Any, draw: st.DrawFn) -> str:
    def space() -> str:
        return draw(SPACES)

    if isinstance(item, dict):
        pairs = [
            f"{space()}{json.dumps(key)}{space()}:{space()}{_wild(inner, draw)}{space()}"
            for key, inner in item.items()
        ]
        return "{" + (",".join(pairs) or space()) + "}"
    if isinstance(item, list):
        parts = [space() + _wild(inner, draw) + space() for inner in item]
        return "[" + (",".join(parts) or space()) + "]"
    return json.dumps(item)


@given(documents())
def test_any_settings_come_back_byte_for_byte(text: str) -> None:
    after = put(text)
    assert put(after) == after
    assert CLIENT.remove(after, FILE) == text
    assert CLIENT.remove(text, FILE) == text
    wanted = value(text)
    found = value(after)
    for one in WANTED:
        assert found["hooks"][one.event].pop() == CLIENT.group_of(one, BARE)
    hooks = {key: item for key, item in found["hooks"].items() if item or key in _events(wanted)}
    assert {**found, "hooks": hooks} == {**wanted, "hooks": _events(wanted)}


def _events(settings: dict[str, Any]) -> dict[str, Any]:
    events: dict[str, Any] = settings.get("hooks", {})
    return events


# Refused


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n  // why\n  "a": 1}', ":2:3: is not valid JSON: "),
        ('{"a": 1,}', ":1:"),
        ('{"a": NaN}', ": is not valid JSON: NaN is not a JSON value"),
        ('{"a": 1 "b"}', ":1:9: is not valid JSON: "),
        ('{"a": 1', ":1:8: is not valid JSON: "),
        ('{"a": 1}\n{}', ":2:1: is not valid JSON: Extra data"),
        ('{"a": "x\ny"}', ":1:9: is not valid JSON: Invalid control character at"),
        ('{"a": 1, "\\u0061": 2}', ': is not valid JSON: duplicate key "a"'),
        ('{"a": ' + "1" * 5_000 + "}", ": is not valid JSON: Exceeds the limit"),
        ("[" * 300 + "]" * 300, ": is not valid JSON: it is nested deeper than 200 levels"),
        ("[" * 90_000 + "]" * 90_000, ":1:201: is not valid JSON: nested deeper than 200 levels"),
        ("[]", ": the file is an array, expected an object"),
        ("null", ": the file is null, expected an object"),
        ('\ufeff"x"', ": the file is a string, expected an object"),
        ('{"hooks": []}', ": `hooks` is an array, expected an object"),
        ('{"hooks": null}', ": `hooks` is null, expected an object"),
        ('{"hooks": {"\\ud800": {}}}', ": `hooks.?` is an object, expected an array"),
        ('{"hooks": {"Stop": {}}}', ": `hooks.Stop` is an object, expected an array"),
    ],
)
def test_what_is_no_settings_is_refused(text: str, said: str) -> None:
    attempts: list[Callable[[], object]] = [lambda: put(text), lambda: CLIENT.remove(text, FILE)]
    for attempt in attempts:
        with pytest.raises(ConfigError) as caught:
            attempt()
        assert f"{FILE}{said}" in caught.value.message
        assert caught.value.hint == "Fix it first; nothing was changed."


def _strictly(text: str) -> Any:
    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(found)) < len(found):
            raise ValueError
        return dict(found)

    def constant(_name: str) -> None:
        raise ValueError

    return json.loads(text, object_pairs_hook=pairs, parse_constant=constant)


@given(st.text(alphabet='{}[]",:01-.eE \\untrf\n\ta', max_size=12))
def test_it_reads_what_json_is_and_nothing_else(text: str) -> None:
    try:
        wanted = _strictly(text)
    except ValueError:
        with pytest.raises(ConfigError):
            parse(text, FILE)
        return
    assert parse(text, FILE).value == wanted


# CLAUDE.md

RULES = "gitgates checks the work.\n- Stop: test\n"
END = "<!-- gitgates: end -->"
BLOCK = f"{blocks.RULES}\n{RULES}{END}"
MD = "CLAUDE.md"


def put_rules(text: str | None, rules: str = RULES) -> str:
    return blocks.put_rules(text, rules, MD)


def test_the_rules_make_a_file_of_their_own() -> None:
    text = put_rules(None)
    assert text == f"{BLOCK}\n"
    assert put_rules(text) == text
    assert blocks.without(text, MD) is None


@given(st.text(alphabet="a#\n\r\ufeff ", max_size=12))
def test_any_text_around_the_rules_stays(text: str) -> None:
    after = put_rules(text)
    assert after.startswith(text)
    assert put_rules(after) == after
    assert blocks.without(after, MD) == text
    assert blocks.without(text, MD) == text


def test_the_rules_are_renewed_where_they_stand() -> None:
    text = f"# Mine\n\n{BLOCK}\n\nMore of mine.\n"
    assert put_rules(text, "new") == text.replace(RULES, "new\n")
    assert blocks.without(text, MD) == "# Mine\n\n\nMore of mine.\n"


@pytest.mark.parametrize(
    "text",
    [
        f"{blocks.RULES}\n",
        f"{END}\n",
        f"{blocks.RULES}\nMine.\n{BLOCK}\n",
        f"{BLOCK}\nMine.\n{END}\n",
        f"{END}\n{blocks.RULES}\n",
    ],
)
def test_half_a_block_is_left_alone(text: str) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: put_rules(text),
        lambda: blocks.without(text, MD),
    ]
    for attempt in attempts:
        with pytest.raises(ConfigError, match="the end of the gitgates block is unknown"):
            attempt()


def test_a_text_that_mentions_the_marks_has_no_block() -> None:
    text = f"Between `{blocks.RULES}` and `{END}` stands the block.\n"
    assert blocks.without(text, MD) == text
