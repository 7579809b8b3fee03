"""Settings that a team has committed, where gitgates is not installed: that is said, and how."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from case_support import mixed
from conftest import Repo

from gitgates import __version__
from gitgates.core.lifecycle import HOOK_OF
from gitgates.hosts import AGENTS, agent_host, agent_settings
from gitgates.hosts.settings.base import Entry, bare, is_our_command, unguarded
from gitgates.setup.install import agents

MISSING = "gitgates is not installed here: none of the gates of this repository run."
HOW = f"uv tool install . (or: pipx install .) in a clone of gitgates {__version__}"
TO_PERSON = f"{MISSING} To install it: {HOW}"
TO_AGENT = f"{MISSING} Tell the person that nothing is checked, and ask whether to run: {HOW}"
BY_SHELL = [name for name in AGENTS if agent_host(name).SETTINGS.by_shell]
SHELLS = [name for name in ("sh", "dash", "bash", "zsh", "fish") if shutil.which(name)]
CONFIG = '[gates.g]\ncommand = "true"\n[hooks.Stop]\ngates = ["g"]\n'


def command_at(name: str, kind: Any) -> str:
    """Return the command of a hook in the settings of a project."""
    command, _missing = agents.start(name, "project", {"PATH": "/nowhere"})
    group = agent_settings(name).group_of(Entry(HOOK_OF[kind], 5), command)
    return str(group["hooks"][0]["command"])


def run(command: str, folder: Path, shell: str = "sh") -> subprocess.CompletedProcess[str]:
    """Run a command with the programs of a folder alone."""
    return subprocess.run(
        [shutil.which(shell) or shell, "-c", command],
        env={"PATH": str(folder), "HOME": str(folder)},
        input="{}",
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.samples(len(BY_SHELL))
@pytest.mark.parametrize(("name", "shell"), mixed(BY_SHELL, SHELLS))
def test_the_agent_and_the_person_are_told(tmp_path: Path, name: str, shell: str) -> None:
    host = agent_host(name)
    beginning: Any = "session-start" if host.has("session-start") else "prompt"
    for kind, texts in {beginning: {TO_PERSON, TO_AGENT}, "turn-end": {TO_PERSON}}.items():
        done = run(command_at(name, kind), tmp_path, shell)
        assert (done.returncode, done.stderr) == (0, "")
        answer = json.loads(done.stdout)
        own = answer.pop("hookSpecificOutput", {})
        assert {*own.values(), *answer.values()} - {host.own_event(kind)} == texts
        assert not host.is_block(done.returncode, done.stdout.encode())
    for kind in ("before-tool", "after-tool"):
        done = run(command_at(name, kind), tmp_path, shell)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.samples(len(BY_SHELL))
@pytest.mark.parametrize(("name", "shell"), mixed(BY_SHELL, SHELLS))
def test_what_gitgates_answers_is_all_that_is_said(tmp_path: Path, name: str, shell: str) -> None:
    program = tmp_path / "gitgates"
    program.write_text('#!/bin/sh\nread -r line\necho "$* got $line"\nexit 7\n')
    program.chmod(0o755)
    for kind in ("session-start", "turn-end", "before-tool"):
        done = run(command_at(name, kind), tmp_path, shell)
        assert (done.stdout, done.stderr) == (f"agent-hook {name} got {{}}\n", "")
        # Some clients take a failure for a refusal.
        assert done.returncode == (0 if agent_host(name).SETTINGS.guarded else 7)


@pytest.mark.parametrize("name", BY_SHELL)
def test_all_of_it_is_ours_and_nothing_more(name: str) -> None:
    for kind in ("session-start", "turn-end", "before-tool"):
        command = command_at(name, kind)
        assert unguarded(command) == bare(name)
        assert is_our_command(command, name)
        for more in ("; true", " || true", " && rm x", "'; rm 'x"):
            assert not is_our_command(command + more, name)
        assert not is_our_command(command.replace("echo '", "rm '"), name) or "echo" not in command
        assert not is_our_command(command.replace(f"hook {name}", "hook other"), name)


def test_older_forms_are_replaced_and_another_version_is_left(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.config(CONFIG)
    monkeypatch.setenv("PATH", os.environ["PATH"])
    install = ("install-hooks", "--agent", "claude")
    file = repo.path / ".claude/settings.json"
    assert repo.gitgates(*install).returncode == 0
    now = file.read_text()
    settings = json.loads(now)
    for groups in settings["hooks"].values():
        groups[0]["hooks"][0]["command"] = bare("claude")  # of the first versions
    file.write_text(json.dumps(settings, indent=2) + "\n")
    assert b"gitgates hooks were updated" in repo.gitgates(*install).stdout
    assert file.read_text() == now
    # Persons with other versions do not change it in turns.
    other = now.replace(f"gitgates {__version__}", "gitgates 9.8.7")
    assert other != now
    file.write_text(other)
    assert b"already up to date" in repo.gitgates(*install).stdout
    assert file.read_text() == other
    assert b"removed" in repo.gitgates("uninstall-hooks", "--agent", "claude").stdout
    assert not file.exists()
