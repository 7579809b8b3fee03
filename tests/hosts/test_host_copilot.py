"""What is Copilot CLI's alone: two events of one time, its sub-agents, its trust, its refusals."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import forked
import pytest

from gitgates.drivers.agent import respond
from gitgates.hosts import agent_host, agent_settings
from gitgates.hosts.agents.copilot_settings import CopilotSettings
from gitgates.hosts.settings.base import bare, guarded, is_our_command

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Repo

HOST = agent_host("copilot")
GATES = """
[gates.check]
command = "test ! -e bad.txt || { echo BAD-IS-THERE; exit 1; }"
[hooks.PreToolUse]
enabled_tools = ["Bash"]
gates = ["check"]
[hooks.Stop]
gates = ["check"]
max_retries = 1
"""
TIME = "2026-11-22T10:00:00.000Z"
SUBAGENT = {"session_id": "sub", "agent_id": "sub", "agent_type": "x", "parent_agent_id": "s"}


def tell(repo: Repo, event: str, **fields: Any) -> dict[str, Any]:
    """Return the answer to an event."""
    base = {"hook_event_name": event, "session_id": "s", "timestamp": TIME, "cwd": str(repo.path)}
    env = {**os.environ, "COPILOT_PROJECT_DIR": str(repo.path)}
    answer = respond(json.dumps({**base, **fields}).encode(), env, print, "copilot")
    found: dict[str, Any] = json.loads(answer or b"{}")
    return found


def shell(repo: Repo, command: str, **fields: Any) -> bool:
    """Return whether a command is denied."""
    said = tell(repo, "PreToolUse", tool_name="Bash", tool_input={"command": command}, **fields)
    return "permissionDecision" in said.get("hookSpecificOutput", {})


def test_the_guard_keeps_what_may_switch_its_hooks_off(repo: Repo) -> None:
    repo.config(GATES)
    write = "echo '{\"disableAllHooks\": true}' > "
    for file in HOST.OFF.files:
        assert shell(repo, write + file), file
        path = f"{repo.path}/{file}"
        said = tell(repo, "PreToolUse", tool_name="Write", tool_input={"path": path})
        assert "agent_settings" in str(said), file
    assert not shell(repo, f"{write}.github/other.json")


def test_two_commands_of_one_time_are_two_events(repo: Repo) -> None:
    repo.config(GATES)
    assert not shell(repo, "one")
    repo.write("bad.txt", "x")
    assert shell(repo, "two")
    assert not shell(repo, "one")  # which was answered before
    assert shell(repo, "one", timestamp="2026-11-22T10:00:00.001Z")


def test_what_happens_in_a_subagent_is_of_the_session_and_ends_no_turn(repo: Repo) -> None:
    repo.config(GATES)
    tell(repo, "SessionStart", source="new")
    repo.write("bad.txt", "x")
    assert tell(repo, "Stop", **SUBAGENT) == {}
    assert tell(repo, "UserPromptSubmit", prompt="work", **SUBAGENT) == {}
    assert shell(repo, "one", **SUBAGENT)
    journals = (repo.path / ".git/gitgates/sessions").glob("*.jsonl")
    assert [one.name for one in journals] == ["s.jsonl"]
    assert tell(repo, "Stop")["decision"] == "block"


@pytest.mark.samples(1)
@pytest.mark.parametrize("returned", ["{}", "{}\n{}", "{}\nAnother's reason.", "Another's.\n{}"])
def test_a_stop_has_new_attempts_after_a_prompt_and_none_after_its_own_reason(
    repo: Repo, returned: str
) -> None:
    repo.config(GATES)
    tell(repo, "SessionStart", source="new")
    times = (f"2026-11-22T10:00:{second:02}.000Z" for second in range(60))

    def stop(*, again: bool) -> str:
        said = tell(repo, "Stop", timestamp=next(times), stop_hook_active=again)
        return str(said.get("reason", ""))

    for prompt in ("go", "and more"):
        tell(repo, "UserPromptSubmit", timestamp=next(times), prompt=prompt)
        repo.write("bad.txt", prompt)
        reason = stop(again=False)
        assert "BAD-IS-THERE" in reason
        tell(
            repo, "UserPromptSubmit", timestamp=next(times), prompt=returned.format(reason, reason)
        )
        assert not stop(again=True)


@pytest.mark.parametrize(
    ("text", "is_trusted"),
    [
        ("", None),
        ("// one\n// two\n{}", False),
        ('// one\n{"trustedFolders": ["/a/repo"]}', True),
        ('{"trustedFolders": ["/a/"]}', True),
        ('{"trusted_folders": ["/a/repo/"]}', True),
        ('{"trustedFolders": ["/a/rep", "/a/repo/sub", 3, null]}', False),
        ('{"trustedFolders": 3}', None),
        ("[]", None),
    ],
)
def test_trust(text: str, *, is_trusted: bool | None) -> None:
    settings = agent_settings("copilot")
    assert settings.is_trusted(text, "/a/repo/.github/hooks/gitgates.json", "") is is_trusted
    assert settings.is_trusted(text, "/home/me/.copilot/hooks/gitgates.json", "") is True


def test_a_matcher_that_leaves_tools_out_fits_the_others_whole() -> None:
    found = CopilotSettings(HOST).matcher("before-tool", ("!Read",), None)
    assert found == "^(?!(?:Read)$).*"


@pytest.mark.parametrize(
    ("path", "is_settings"),
    [
        (".github/hooks/gitgates.json", True),
        ("sub/.github/hooks/deep/theirs.json", True),
        (".github/copilot/settings.json", True),
        (".github/hooks/README.md", False),
        (".github/dependabot.json", False),
    ],
)
def test_where_hooks_may_stand(path: str, *, is_settings: bool) -> None:
    assert bool(CopilotSettings.SETTINGS_PATH.search(path)) is is_settings


@pytest.mark.parametrize(
    "program",
    ["#!/bin/sh\nkill -9 $$\n", "#!/bin/sh\nexit 3\n", "#!/gone/python\n", None],
    ids=["killed", "fails", "without its interpreter", "missing"],
)
def test_whatever_befalls_our_program_the_hook_ends_well(
    tmp_path: Path, program: str | None
) -> None:
    if program:
        (tmp_path / "gitgates").write_text(program)
        (tmp_path / "gitgates").chmod(0o755)
    command = guarded(bare("copilot"), always=True)
    assert is_our_command(command, "copilot")
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(["/bin/sh", "-c", command], env=env, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")


# It runs the hooks of another agent's settings, too.

BLOCKED = b'"decision": "block"'


@pytest.fixture
def both(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository with hooks for both, and a gate that fails."""
    for name in ("COPILOT_PROJECT_DIR", "COPILOT_HOOK_DIR", "COPILOT_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    repo.config(GATES)
    for scope in ("claude", "copilot"):
        done = repo.gitgates("install-hooks", "--agent", scope)
        assert done.returncode == 0, done.stderr
    repo.write("bad.txt", "x")
    return repo


def started(repo: Repo, agent: str, *variables: str) -> bytes:
    """Return the answer to a stop, as the client hears it from one entry."""
    stop = {"hook_event_name": "Stop", "session_id": f"s{agent}{len(variables)}"}
    payload = json.dumps({**stop, "timestamp": TIME, "cwd": str(repo.path)}).encode()
    env = {**os.environ, **dict.fromkeys(variables, str(repo.path))}
    done = forked.run(("agent-hook", agent), str(repo.path), env, payload, hosts=True)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def test_of_two_files_of_hooks_one_answers(both: Repo) -> None:
    assert BLOCKED in started(both, "copilot", "COPILOT_PROJECT_DIR", "COPILOT_HOOK_DIR")
    assert started(both, "claude", "COPILOT_PROJECT_DIR") == b""
    assert BLOCKED in started(both, "claude")
    journals = (both.path / ".git/gitgates/sessions").glob("*.jsonl")
    assert sorted(one.stem for one in journals) == ["sclaude0", "scopilot2"]


@pytest.mark.samples(2)
@pytest.mark.parametrize("text", [None, "", "{", '{"hooks": {}}', "off", b"\xff"])
def test_without_hooks_of_its_own_those_of_the_other_answer(
    both: Repo, text: str | bytes | None
) -> None:
    settings = both.path / ".github/hooks/gitgates.json"
    if text == "off":
        text = settings.read_text().replace("{", '{"disableAllHooks": true, ', 1)
    settings.unlink()
    if text is not None:
        both.write(".github/hooks/gitgates.json", text)
    assert BLOCKED in started(both, "claude", "COPILOT_PROJECT_DIR")


def test_hooks_of_a_person_count_as_its_own(both: Repo, tmp_path: Path) -> None:
    settings = both.path / ".github/hooks/gitgates.json"
    (tmp_path / ".copilot/hooks").mkdir(parents=True)
    settings.rename(tmp_path / ".copilot/hooks/gitgates.json")
    assert started(both, "claude", "COPILOT_PROJECT_DIR") == b""
