"""A clone with committed hooks, on a machine without gitgates: who reads that, in real clients."""

from __future__ import annotations

import os
from pathlib import Path

import others
import pytest
from claude import Options, bash, write
from host_scene import HostScene, need
from scene import CHECK, STOP, Scene

from gitgates import __version__

MISSING = "gitgates is not installed here: none of the gates of this repository run."
HOW = f"uv tool install . (or: pipx install .) in a clone of gitgates {__version__}"
TO_PERSON = f"{MISSING} To install it: {HOW}"
TO_AGENT = f"{MISSING} Tell the person that nothing is checked, and ask whether to run: {HOW}"


def without_gitgates(scene: Scene) -> dict[str, str]:
    """Return a PATH without the folders that have our program."""
    folders = [f"{scene.folder}/clients", *os.environ["PATH"].split(os.pathsep)]
    return {"PATH": os.pathsep.join(one for one in folders if not Path(one, "gitgates").exists())}


def test_the_agent_and_the_person_are_told_and_nothing_is_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    work = (write(scene.at("bad.txt"), "x"), bash("echo done"), "first", "second")
    options = Options(env=without_gitgates(scene))
    run = scene.run(*work, prompts=("one", "two"), options=options)
    assert (run.turns, run.ends, scene.ran()) == (4, ["completed"] * 2, 0)
    assert TO_AGENT in run.told(0)
    assert run.told_ever().count(MISSING) == 1  # nothing at each tool call, or prompt
    assert [answer["systemMessage"] for answer in run.answers("SessionStart")] == [TO_PERSON]
    assert run.answers("Stop") == [{"systemMessage": TO_PERSON}] * 2
    assert run.person.count(TO_PERSON) == 2  # `-p` shows nothing of the start
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
    ended = [(hook.exit_status, hook.stderr) for event in events for hook in run.hooks(event)]
    assert len(ended) > len(events)
    assert set(ended) == {(0, "")}


@pytest.mark.nightly
def test_once_it_is_installed_the_same_hooks_run_the_gates(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    run = scene.run(write(scene.at("good.txt"), "x"), "end")
    assert (scene.ran(), run.person) == (1, "")
    assert MISSING not in run.told_ever()


@pytest.mark.nightly
def test_a_cloud_session_gets_the_hooks_of_git_as_it_begins(tmp_path: Path) -> None:
    hook = '[hooks.pre-commit]\ngates = ["check"]\n'
    scene = Scene(tmp_path, f"cloud_hooks = true\n{CHECK}{STOP}{hook}")
    assert not scene.at(".git/hooks/pre-commit").exists()
    who = "-c user.name=a -c user.email=a@example.org"
    commit = bash(f"touch bad.txt; git add -A; git {who} commit -qm bad; rm bad.txt")
    run = scene.run(commit, "end", options=Options(env={"CLAUDE_CODE_REMOTE": "true"}))
    assert "gitgates pre-commit: blocked by `check`" in run.told(1)
    assert scene.repo.git("log", "--format=%s").split() == ["all"]


@pytest.mark.parametrize("host", others.USUAL)
def test_agents_of_other_vendors_are_told(tmp_path: Path, host: str) -> None:
    need(host)
    scene = HostScene(tmp_path, host)
    how = Options(command=others.command(host, "go"), limit_s=120, env=without_gitgates(scene))
    run = scene.run(others.write(host, scene.at("bad.txt"), "x\n"), "end", options=how)
    assert not run.end["timed_out"], run.said
    assert scene.at("bad.txt").read_text() == "x\n"
    assert (run.turns, scene.ran()) == (2, 0)
    assert TO_AGENT in run.told_ever()
