"""The settings of OpenHands: it understands several forms, and reads one file only."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from doctor_support import examine

from gitgates.core.errors import ConfigError
from gitgates.hosts import agent_settings
from gitgates.hosts.settings.base import Entry
from gitgates.setup.install import agents

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Repo

FILE = ".openhands/hooks.json"
COMMAND = "gitgates agent-hook openhands"
CONFIG = """
[gates.g]
command = "true"
[hooks.Stop]
gates = ["g"]
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"Stop": []}', "the event `Stop` is next to `hooks`, not in it"),
        ('{"pre_tool_use": []}', "the event `pre_tool_use` is next to `hooks`, not in it"),
        ('{"hooks": {"stop": []}}', "the event `stop` is in lower case"),
    ],
)
def test_events_in_another_form_would_be_lost_beside_ours(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        agents.put(text, (Entry("Stop", 5),), COMMAND, host=agent_settings("openhands"), file=FILE)
    assert raised.value.message == f"{FILE}: {said}"
    assert "in `hooks`" in raised.value.hint


def test_a_pattern_names_the_tool_that_the_client_knows() -> None:
    settings = agent_settings("openhands")
    assert settings.matcher("before-tool", ("Read",), None) == "Read|file_editor"
    edits = settings.matcher("before-tool", ("Edit", "Bash"), None)
    assert edits == "Edit|file_editor|apply_patch|Bash|terminal"
    assert settings.matcher("before-tool", ("!file_editor.view",), None) is None
    without = settings.matcher("before-tool", ("!file_editor.view", "!glob"), None)
    assert without == "^(?!(?:glob)$).*"


def test_the_file_of_a_project_hides_a_persons_own(
    repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    repo.config(CONFIG)
    assert repo.gitgates("install-hooks", "--agent", "openhands", "--scope", "user").returncode == 0
    assert json.loads((home / FILE).read_text())["hooks"]["Stop"]
    passed_over = f"OpenHands reads {repo.path}/{FILE}, not {home}/{FILE}"
    repo.write(FILE, "{}")
    found = {(one.severity, one.what) for one in examine(repo)}
    assert ("problem", passed_over) in found
    done = repo.gitgates("install-hooks", "--agent", "openhands")
    assert f"gitgates: {passed_over}\n" in done.stdout.decode()
    found = {(one.severity, one.what) for one in examine(repo)}
    assert ("note", passed_over) in found
