"""Our hooks as blocks of lines in settings that are not valid JSON: TOML, and YAML."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

import pytest

from gitgates.config.load import load
from gitgates.core.errors import ConfigError
from gitgates.hosts import agent_host, agent_settings
from gitgates.hosts.settings.base import Entry
from gitgates.setup.install import agent_needs, agents

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Repo

    from gitgates.hosts.settings.json_settings import AgentSettings

FILE = "hooks.toml"
COMMAND = "gitgates agent-hook vibe"
ENTRIES = (Entry("PreToolUse", 15, "edit|bash"), Entry("Stop", 75))
BLOCK = """\
# gitgates: this block is written by `gitgates install-hooks --agent vibe`
[[hooks]]
name = "gitgates pre_tool"
type = "pre_tool"
match = "re:edit|bash"
command = "gitgates agent-hook vibe"
timeout = 15
[[hooks]]
name = "gitgates post_agent"
type = "post_agent"
command = "gitgates agent-hook vibe"
timeout = 75
# gitgates: the block ends here
"""
THEIRS = '[[hooks]]\nname = "mine"\ntype = "pre_tool"\ncommand = "true"\n'


@pytest.fixture
def vibe() -> AgentSettings:
    return agent_settings("vibe")


def put(text: str | None, vibe: AgentSettings) -> str:
    found = agents.put(text, ENTRIES, COMMAND, host=vibe, file=FILE)
    assert found is not None
    return found


def test_a_file_of_our_own_is_a_block(vibe: AgentSettings) -> None:
    assert put(None, vibe) == BLOCK
    assert vibe.remove(BLOCK, FILE) is None


def test_what_was_there_stays_and_is_read(vibe: AgentSettings) -> None:
    after = put(THEIRS, vibe)
    assert after == THEIRS + BLOCK
    found = vibe.read(after, FILE).hooks
    assert [(one.event, one.matcher, one.timeout_s, one.is_ours) for one in found] == [
        ("PreToolUse", None, 60, False),
        ("PreToolUse", "edit|bash", 15, True),
        ("Stop", None, 75, True),
    ]
    assert put(THEIRS, vibe) == put(after, vibe)
    assert vibe.remove(after, FILE) == THEIRS


def test_what_was_written_behind_our_block_stays(vibe: AgentSettings) -> None:
    assert vibe.remove(BLOCK + THEIRS, FILE) == THEIRS
    assert put(BLOCK.replace("75", "5") + THEIRS, vibe) == THEIRS + BLOCK


@pytest.mark.parametrize(
    ("agent", "matches"),
    [
        ("vibe", re.fullmatch),
        ("openhands", re.fullmatch),
        ("hermes", re.fullmatch),
        ("kimi", re.search),
    ],
)
def test_a_tool_that_is_left_out_leaves_all_others(agent: str, matches: Any) -> None:
    host = agent_host(agent)
    reads, writes = host.TOOLS.names["reads"][1:], host.TOOLS.names["writes"][0]
    for patterns in (("!glob", *(f"!{name}" for name in reads)), ("Edit", writes)):
        matcher = agent_settings(agent).matcher("before-tool", patterns, None)
        assert matcher
        expression = host.SETTINGS.expression.format(matcher).removeprefix("re:")
        assert matches(expression, writes)  # which is how the client does it
        assert not any(matches(expression, name) for name in ("glob", *reads))


def test_the_first_tool_call_stands_for_the_start_of_a_session(repo: Repo) -> None:
    repo.config(
        '[gates.g]\ncommand = "true"\n[hooks.PreToolUse]\ngates = ["g"]\nenabled_tools = ["Read"]\n'
    )
    config = load(str(repo.path))
    assert config
    (entry,) = (one for one in agent_needs.entries(config, "vibe") if one.event == "PreToolUse")
    assert entry.matcher is None  # all tools


def test_a_command_is_quoted(vibe: AgentSettings) -> None:
    command = "'/my \"venv\\é/bin/gitgates' agent-hook vibe"
    after = agents.put(None, ENTRIES, command, host=vibe, file=FILE)
    assert {one["command"] for one in tomllib.loads(after or "")["hooks"]} == {command}


@pytest.mark.parametrize("text", ["hooks = []", 'hooks = [{ name = "x" }]\n', "[hooks.a]\n"])
def test_hooks_that_cannot_be_added_to_are_refused(vibe: AgentSettings, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        put(text, vibe)
    assert str(raised.value).startswith(f"{FILE}: ")
    if "array" not in raised.value.message:
        assert '[[hooks]]\nname = "gitgates pre_tool"\n' in raised.value.hint


@pytest.mark.parametrize("text", ["hooks = 3", "hooks = [1]", "hooks = ", "[[hooks]"])
def test_settings_that_say_something_else_are_refused(vibe: AgentSettings, text: str) -> None:
    for ask in (vibe.read, vibe.remove):
        with pytest.raises(ConfigError, match=FILE):
            ask(text, FILE)


@pytest.mark.parametrize(
    "text",
    [
        BLOCK.replace("[[hooks]]", f"{THEIRS}[[hooks]]", 1),  # theirs in our block
        BLOCK.replace("timeout = 75\n", "timeout = 75\n[theirs]\nx = 1\n"),
        "\n".join(line for line in BLOCK.splitlines() if not line.startswith("#")),
        f"hooks = [{{ command = '{COMMAND}' }}]",
    ],
)
def test_a_block_that_is_not_ours_alone_is_left_alone(vibe: AgentSettings, text: str) -> None:
    with pytest.raises(ConfigError) as raised:
        vibe.remove(text, FILE)
    assert f"remove the hooks that run `{COMMAND}`" in raised.value.hint
    assert vibe.read(text, FILE).our_hooks


def test_half_a_block_is_left_alone(vibe: AgentSettings) -> None:
    with pytest.raises(ConfigError, match="the end of the gitgates block is unknown"):
        vibe.remove(BLOCK.rpartition("#")[0], FILE)


# YAML


YAML_FILE = "config.yaml"
HERMES = "'/my bin/gitgates' agent-hook hermes"
THEIR_YAML = """\
model: m
hooks:   # mine
  output_spill:
    max: 3
  pre_tool_call:
  - command: guard --now
    matcher: terminal
tail: [1, 2]  # kept"""
OUR_YAML = """\
model: m
hooks:   # mine
  output_spill:
    max: 3
  pre_tool_call:
  - command: guard --now
    matcher: terminal
  # gitgates: this block is written by `gitgates install-hooks --agent hermes --scope user`
  - matcher: ^(?!(?:read_file)$).*
    command: "'/my bin/gitgates' agent-hook hermes"
    timeout: 15
  # gitgates: the block ends here
  # gitgates: this block is written by `gitgates install-hooks --agent hermes --scope user`
  pre_verify:
  - command: "'/my bin/gitgates' agent-hook hermes"
    timeout: 75
  # gitgates: the block ends here
tail: [1, 2]  # kept"""


def test_each_event_of_yaml_gets_our_hook_at_its_end() -> None:
    hermes = agent_settings("hermes")
    entries = (Entry("PreToolUse", 15, "^(?!(?:read_file)$).*"), Entry("Stop", 75))
    after = agents.put(THEIR_YAML, entries, HERMES, host=hermes, file=YAML_FILE)
    assert after == OUR_YAML
    found = hermes.read(after, YAML_FILE)
    assert [(one.event, one.is_ours) for one in found.hooks] == [
        ("PreToolUse", False),
        ("PreToolUse", True),
        ("Stop", True),
    ]
    assert hermes.remove(after, YAML_FILE) == THEIR_YAML


def test_each_hook_of_yaml_is_trusted_by_its_event_and_command() -> None:
    hermes = agent_settings("hermes")
    approvals = [{"event": event, "command": HERMES} for event in ("pre_tool_call", "pre_verify")]

    def trusted(known: object, text: str = OUR_YAML) -> bool | None:
        return hermes.is_trusted(json.dumps(known), "", text)

    assert trusted({"approvals": approvals}) is True
    assert trusted({"approvals": approvals[1:]}) is False
    assert trusted({"approvals": []}, f"hooks_auto_accept: true\n{OUR_YAML}") is True
    unknown: list[object] = [{}, [], {"approvals": [3]}]
    assert [trusted(one) for one in unknown] == [None] * 3
    assert hermes.is_trusted("", "", OUR_YAML) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hooks: {}", "cannot add hooks to its `hooks`"),
        ("hooks:\n  pre_verify: [{command: x}]\n", "cannot add hooks to its `hooks`"),
        ("hooks: 3", "`hooks` is not a mapping"),
        ("- a", "is not a mapping"),
        ("a: [", "is not valid YAML"),
        (
            "hooks:\n  pre_verify:\n  - command: gitgates agent-hook hermes\n",
            "is outside it",
        ),
    ],
)
def test_yaml_that_cannot_be_added_to_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        agents.put(
            text, (Entry("Stop", 75),), HERMES, host=agent_settings("hermes"), file=YAML_FILE
        )
    assert raised.value.message.startswith(YAML_FILE)
    assert said in raised.value.message
    if "cannot be added" in said:
        assert "hooks:\n  pre_verify:\n  - command: " in raised.value.hint


# Scopes


def ask(repo: Repo, *args: str) -> tuple[int, Any]:
    done = repo.gitgates(*args, env={"PATH": "/usr/bin:/bin"})
    return done.returncode, (done.stdout + done.stderr).decode()


def test_a_scope_that_an_agent_has_not(repo: Repo) -> None:
    repo.config('[gates.g]\ncommand = "true"\n[hooks.Stop]\ngates = ["g"]\n')
    refusal = (
        "gitgates: Mistral Vibe has no settings for the scope local\n"
        "  Use another scope: --scope project | user\n"
    )
    for verb in ("install-hooks", "uninstall-hooks"):
        assert ask(repo, verb, "--agent", "vibe", "--scope", "local") == (64, refusal)


def test_an_agent_with_settings_of_a_person_only(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KIMI_CODE_HOME", str(tmp_path / "kimi"))
    repo.config('[gates.g]\ncommand = "true"\n[hooks.Stop]\ngates = ["g"]\n')
    refusal = (
        "gitgates: Kimi Code has no settings for the scope project, only user settings\n"
        "  Use another scope: --scope user\n"
    )
    assert ask(repo, "install-hooks", "--agent", "kimi") == (64, refusal)
    mine = tmp_path / "kimi/config.toml"
    mine.parent.mkdir()
    theirs = '# a comment\ndefault_model = "m"\n[models.m]\nprovider = "p"'
    mine.write_text(theirs)
    for tools, timeout_s in (('["Edit"]', 1000), ('["Bash"]', 10)):
        repo.config(
            f'[gates.g]\ncommand = "true"\ntimeout = {timeout_s}\n[hooks.Stop]\ngates = ["g"]\n'
            f'[hooks.PostToolUse]\nenabled_tools = {tools}\ngates = ["g"]\n'
        )
        status, said = ask(repo, "install-hooks", "--agent", "kimi", "--scope", "user")
        assert status == 0, said
    found = {one["event"]: one for one in tomllib.loads(mine.read_text())["hooks"]}
    assert found["Stop"]["timeout"] == 600
    # Ours is an expression already, because of the tools that read.
    assert found["PreToolUse"]["matcher"] == "^(^(?!(?:Read|Grep|Glob)$).*)$"
    assert found["PostToolUse"]["matcher"] == "^(^(?!(?:Read|Grep|Glob)$).*)$"
    assert "scope project" not in said
    status, said = ask(repo, "uninstall-hooks", "--agent", "kimi", "--scope", "user")
    assert (status, mine.read_text()) == (0, theirs)


def test_a_detected_agent_without_the_scope_is_left_out(repo: Repo) -> None:
    repo.config('[gates.g]\ncommand = "true"\n[hooks.Stop]\ngates = ["g"]\n')
    for folder in (".vibe", ".claude"):
        (repo.path / folder).mkdir()
    status, said = ask(repo, "install-hooks", "--agent", "detected", "--scope", "local")
    assert status == 0, said
    assert (
        f"Mistral Vibe: {repo.path}/.vibe is there\n"
        "gitgates: Mistral Vibe has no settings for the scope local: skipped\n"
        "  Install there as well:"
        " gitgates install-hooks --agent vibe --scope user\n"
    ) in said
    assert (repo.path / ".claude/settings.local.json").exists()
    assert [*(repo.path / ".vibe").iterdir()] == []
