"""What ends all hooks of an agent: the guard refuses it, doctor finds it, a stop tells of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import Repo
from doctor_support import examine
from guard_support import Guard

from gitgates.drivers.agent import respond
from gitgates.hosts import AGENTS, agent_host

CONFIG = '[gates.check]\ncommand = "true"\n[hooks.Stop]\ngates = ["check"]\n'
# agent → files of a project that switch its hooks off, and what stands there then
FILES = {
    "claude": [(".claude/settings.local.json", '{"disableAllHooks": true}')],
    "codex": [
        (".codex/config.toml", "[features]\nhooks = false\n"),
        (".codex/config.toml", "[features]\ncodex_hooks = false\n"),
        (".codex/config.toml", "features.hooks = false\n"),
    ],
    "copilot": [(".github/copilot/settings.json", '{"disableAllHooks": true}')],
    "gemini": [(".gemini/settings.json", '{"hooksConfig": {"enabled": false}}')],
    "qwen": [(".qwen/settings.json", '{"disableAllHooks": true}')],
    "droid": [
        (".factory/hooks.json", '{"hooksDisabled": true}'),
        (".factory/settings.json", '{"hooks": {"hooksDisabled": true}}'),
    ],
}
HARMLESS = {"codex": "[features]\nhooks = true\nweb = false\n"}
COMMANDS = (
    "codex features disable hooks",
    "codex features disable codex_hooks",
    "codex --disable hooks exec x",
    "codex exec --disable=hooks x",
    "codex -c features.hooks=false exec x",
    "codex --config=features.codex_hooks=false",
    "codex exec -cfeatures.hooks=false x",
    "codex exec -c 'features={hooks=false}' x",
    "claude --safe-mode -p x",
    "claude -p --bare x",
    "claude -p --settings '{\"disableAllHooks\": true}' x",
    "claude -p --setting-sources=user x",
    "CLAUDE_CODE_SIMPLE=1 claude -p x",
    "export CLAUDE_CODE_SAFE_MODE=1; claude -p x",
    "qwen --safe-mode -p x",
    "qwen --bare -p x",
    "QWEN_CODE_SAFE_MODE=1 qwen -p x",
    "env QWEN_CODE_SIMPLE=1 qwen -p x",
    "opencode --pure run x",
    "OPENCODE_DISABLE_PROJECT_CONFIG=1 opencode run x",
    "kilo run --pure x",
    "hermes --safe-mode -z x",
    "HERMES_SAFE_MODE=1 hermes -z x",
)
FINE = (
    "codex features list",
    "codex features enable hooks",
    "codex --disable web_search exec x",
    "codex exec 'why does codex --disable hooks end them?'",
    "codex -c model=x exec x",
    "claude --settings other.json -p x",
    "claude --setting-sources user,project -p x",
    "qwen -p 'what is --safe-mode?'",
    "echo codex features disable hooks",
    "opencode run x",
)
# One of each agent, then the others.
CASES = [(name, *files[0]) for name, files in FILES.items()]
CASES += [(name, *one) for name, files in FILES.items() for one in files[1:]]


def tell(repo: Repo, agent: str, event: str, **fields: Any) -> dict[str, Any]:
    host = agent_host(agent)
    payload = {"session_id": "s", "cwd": str(repo.path), "hook_event_name": event, **fields}
    said = respond(json.dumps(payload).encode(), {}, lambda _text: None, host.NAME)
    return json.loads(said) if said else {}


def test_a_command_that_runs_an_agent_without_hooks_is_refused(repo: Repo) -> None:
    guard = Guard(repo, CONFIG)
    assert guard.shells(COMMANDS) == dict.fromkeys(COMMANDS, "deny agent_settings")
    assert guard.shells(FINE) == dict.fromkeys(FINE, "")


def test_the_file_is_guarded_in_its_agent(repo: Repo) -> None:
    guard = Guard(repo, CONFIG)
    for name, file, text in CASES:
        host = agent_host(name)
        command = f"printf '{text}' > {file}"
        shell = host.TOOLS.names["shell"][0]
        assert guard.says(shell, host=name, command=command) == "deny agent_settings", file
        edit = host.edit_sample(f"{repo.path}/{file}")
        said = guard.says(edit["tool_name"], host=name, **edit["tool_input"])
        assert said == "deny agent_settings", file


@pytest.mark.slow
@pytest.mark.samples(len(FILES))
@pytest.mark.parametrize(("name", "file", "text"), CASES)
def test_the_doctor_names_the_file(repo: Repo, name: str, file: str, text: str) -> None:
    repo.config(CONFIG)
    assert repo.gitgates("install-hooks", "--agent", name).returncode == 0
    path = repo.path / file
    if path.exists():  # with our hooks
        text = json.dumps(json.loads(path.read_text()) | json.loads(text))
    repo.write(file, text)
    host = agent_host(name)
    (found,) = [one for one in examine(repo) if f"`{host.OFF.key}` is {host.OFF.value}" in one.what]
    assert (found.severity, found.where) == ("problem", file)


@pytest.mark.samples(2)
@pytest.mark.parametrize(("name", "file", "text"), CASES)
def test_a_stop_tells_of_the_file_once(repo: Repo, name: str, file: str, text: str) -> None:
    repo.config(CONFIG)
    host = agent_host(name)
    tell(repo, name, host.own_event("session-start"), source="startup")
    repo.write(file, HARMLESS.get(name, "{}"))
    stop = host.own_event("turn-end")
    assert "switched off" not in str(tell(repo, name, stop, turn_id="1", prompt_id="1"))
    repo.write(file, text)
    said = tell(repo, name, stop, turn_id="2", prompt_id="2")
    assert "have changed, or are switched off, since this session began" in str(said)
    assert "switched off" not in str(tell(repo, name, stop, turn_id="3", prompt_id="3"))


def test_a_persons_own_switch_of_codex_is_found(
    repo: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.config(CONFIG)
    home = repo.path.parent / "codex-home"
    home.mkdir()
    monkeypatch.setenv("CODEX_HOME", str(home))
    assert repo.gitgates("install-hooks", "--agent", "codex").returncode == 0
    (home / "config.toml").write_text("[features]\nhooks = false\n")
    (found,) = [one for one in examine(repo) if "features.hooks" in one.what]
    assert found.where == str(home / "config.toml")


def test_each_switch_of_a_file_is_tried_here() -> None:
    assert {name for name in AGENTS if agent_host(name).OFF.key} == {*FILES}
    programs = {word for command in COMMANDS for word in command.split()}
    assert {name for name in AGENTS if agent_host(name).OFF.words} <= programs
