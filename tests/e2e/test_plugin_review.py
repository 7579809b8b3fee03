"""What the client makes of the reviewer and of its command, from the plugin and from settings."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from claude import Options, Turn, agent, bash, read, write
from others import Call
from scene import Scene

from gitgates.hosts.settings.json_settings import tool_matcher

PLUGIN = Path(__file__).resolve().parents[2] / "gitgates/plugin/claude"
CONFIG = '[hooks.Stop]\ngates = ["review"]\n'
EVENTS = ("UserPromptExpansion", "PostToolUse", "SubagentStart", "SubagentStop")


def record(scene: Scene, *events: str, matcher: str | None = None) -> None:
    """Have the client tell of these events, and of no others."""
    hook = {"type": "command", "command": f"(cat; echo) >> '{scene.folder}/heard'", "timeout": 30}
    group = {"hooks": [hook]} | ({"matcher": matcher} if matcher else {})
    settings = {"hooks": {event: [group] for event in events}}
    (scene.path / ".claude").mkdir(exist_ok=True)
    (scene.path / ".claude/settings.json").write_text(json.dumps(settings))


def heard(scene: Scene, event: str) -> list[dict[str, Any]]:
    lines = (scene.folder / "heard").read_text().splitlines()
    found = [json.loads(line) for line in lines if line.strip()]
    return [one for one in found if one["hook_event_name"] == event]


def tools_of_agent(kind: str, requests: list[dict[str, Any]]) -> set[str]:
    asked = [request["body"] for request in requests if request["kind"] == kind]
    return {tool["name"] for body in asked for tool in body["tools"]}


@pytest.mark.samples(1)
@pytest.mark.parametrize("from_plugin", [True, False], ids=["plugin", "settings"])
def test_the_command_the_skill_and_the_agent_have_these_names(
    tmp_path: Path, *, from_plugin: bool
) -> None:
    scene = Scene(tmp_path, CONFIG)  # which writes the files
    plugin = tmp_path / "plugin"
    if from_plugin:
        shutil.rmtree(scene.path / ".claude")
        shutil.copytree(PLUGIN, plugin, ignore=shutil.ignore_patterns("hooks"))
    record(scene, *EVENTS)
    name = "gitgates:reviewer" if from_plugin else "reviewer"
    turns: tuple[Turn, ...] = (
        "typed",
        Call("Skill", {"skill": "gitgates:review", "args": "now"}),
        agent("look", name),
        "done",
    )
    run = scene.run(
        *turns,
        prompts=("/gitgates:review the parser", "go"),
        agents={"look": ["COMPLETE"]},
        options=Options(arguments=("--plugin-dir", str(plugin)) if from_plugin else ()),
    )
    (typed,) = heard(scene, "UserPromptExpansion")
    assert (typed["command_name"], typed["command_args"]) == ("gitgates:review", "the parser")
    assert "What the person wants looked at: the parser" in run.told(0)
    skills = [one for one in heard(scene, "PostToolUse") if one["tool_name"] == "Skill"]
    assert [one["tool_input"]["skill"] for one in skills] == ["gitgates:review"]
    assert "What the person wants looked at: now" in run.told(2)
    assert f"`{name}`" in run.told(0)
    started = [one["agent_type"] for one in heard(scene, "SubagentStart")]
    ended = [one["agent_type"] for one in heard(scene, "SubagentStop")]
    assert (started, ended) == ([name], [name])
    # Of the four that it may have; this client has searching in its shell.
    assert tools_of_agent("agent look", run.requests) == {"Read", "Bash"}
    assert "written by `gitgates install-hooks" not in json.dumps(run.requests)


def test_all_tools_but_those_that_read_are_heard(tmp_path: Path) -> None:
    scene = Scene(tmp_path, CONFIG)
    matcher = tool_matcher(("!Read", "!Grep", "!Glob"))
    record(scene, "PreToolUse", matcher=matcher)
    scene.run(
        read(scene.at("seed.txt")),
        write(scene.at("a.txt"), "a\n"),
        bash("true"),
        agent("look"),
        "done",
        agents={"look": ["ok"]},
    )
    tools = [one["tool_name"] for one in heard(scene, "PreToolUse")]
    assert tools == ["Write", "Bash", "Agent"]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("prompt", "asked"), [("go", ["reviewer"]), ("/gitgates:review", [])], ids=["loose", "typed"]
)
def test_who_types_the_command_is_not_asked_for_each_of_the_reviewers(
    tmp_path: Path, prompt: str, asked: list[str]
) -> None:
    """What the command allows holds for the sub-agent, too, as long as that turn lasts."""
    scene = Scene(tmp_path, CONFIG)
    record(scene, "PreToolUse", "PermissionRequest")
    scene.run(
        agent("look", "reviewer"),
        "done",
        prompts=(prompt,),
        agents={"look": [bash("git log -1"), bash("gitgates review status"), "COMPLETE"]},
        options=Options(mode="default"),
    )
    seen = [one["tool_name"] for one in heard(scene, "PreToolUse")]
    assert seen == ["Agent", "Bash", "Bash"]
    assert [one["agent_type"] for one in heard(scene, "PermissionRequest")] == asked
