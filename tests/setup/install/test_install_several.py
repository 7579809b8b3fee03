"""One configuration for several agents: installing, and what doctor and check say of each."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest
from conftest import Repo
from doctor_support import Said, examine

CONFIG = """
[gates.g]
command = "true"
[hooks.Stop]
gates = ["g"]
[hooks.PreCompact]
gates = ["g"]
"""
CODEX, CLAUDE = ".codex/hooks.json", ".claude/settings.json"
UNTRUSTED = "Codex does not trust these hooks, and does not run them"
CANNOT = "Codex cannot be blocked at PreCompact: its gates only warn there"


@pytest.fixture
def ready(repo: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A configured repository, a `gitgates` in the PATH, and an empty home."""
    repo.config(CONFIG)
    program = tmp_path / "bin/gitgates"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\ncat >/dev/null\n")
    program.chmod(0o755)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    return repo


def said(repo: Repo, *args: str, status: int = 0) -> str:
    done = repo.gitgates(*args)
    assert done.returncode == status, (done.stdout, done.stderr)
    return (done.stderr if status else done.stdout).decode()


def of_agents(repo: Repo) -> list[Said]:
    return [one for one in examine(repo) if one.check == "agent"]


def test_two_agents_get_the_same_gates_by_their_own_settings(ready: Repo) -> None:
    told = said(ready, "install-hooks", "--agent", "claude", "--agent", "codex")
    assert f"{CLAUDE}: gitgates hooks were added: SessionStart, UserPromptSubmit" in told
    assert f"{CODEX}: gitgates hooks were added: SessionStart, UserPromptSubmit" in told
    assert f"gitgates: {CANNOT}\n" in told
    assert "gitgates: Codex runs these hooks only once they are trusted\n" in told
    both = [json.loads((ready.path / file).read_text())["hooks"] for file in (CLAUDE, CODEX)]
    # Codex has no event for a tool that failed.
    assert [event for event in both[0] if event != "PostToolUseFailure"] == [*both[1]]
    said(ready, "uninstall-hooks", "--agent", "claude", "--agent", "codex")
    assert not (ready.path / CLAUDE).exists()
    assert not (ready.path / CODEX).parent.exists()


def test_those_that_are_here_are_listed_first(ready: Repo, tmp_path: Path) -> None:
    told = said(ready, "install-hooks", "--agent", "detected", status=64)
    assert "no coding agent found, neither a program nor a settings folder" in told
    program = tmp_path / "bin/codex"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (ready.path / ".claude").mkdir()
    told = said(ready, "install-hooks", "--agent", "detected")
    assert told.splitlines()[:2] == [
        f"Claude Code: {ready.path}/.claude is there",
        f"Codex: its program is {program}",
    ]
    assert (ready.path / CLAUDE).exists()
    assert (ready.path / CODEX).exists()


def test_nothing_is_written_where_it_is_only_shown(ready: Repo) -> None:
    told = said(ready, "install-hooks", "--agent", "codex", "--agent", "claude", "--print")
    assert "&& exec gitgates agent-hook codex || :" in told
    assert "&& exec gitgates agent-hook claude || :" in told
    assert not (ready.path / CODEX).exists()


def test_the_rules_stand_once_in_the_file_that_agents_read(ready: Repo) -> None:
    rules = ready.write("AGENTS.md", "# Mine\n")
    said(ready, "install-hooks", "--agent", "codex", "--agent", "claude", "--agents-md")
    first = rules.read_text()
    assert first.startswith("# Mine\n")
    assert first.count("When you want to stop, and files have changed") == 1
    assert "cannot-fix" in first
    said(ready, "install-hooks", "--agent", "codex", "--agents-md")
    assert rules.read_text() == first
    assert not (ready.path / "CLAUDE.md").exists()
    said(ready, "uninstall-hooks", "--agent", "claude")
    assert rules.read_text() == first  # Codex reads it
    said(ready, "uninstall-hooks", "--agent", "codex")
    assert rules.read_text() == "# Mine\n"


def test_check_says_what_gates_cannot_do_where_our_hooks_are(ready: Repo) -> None:
    assert ready.gitgates("check").stderr == b""
    said(ready, "install-hooks", "--agent", "codex")
    done = ready.gitgates("check")
    assert (done.returncode, done.stderr.decode()) == (0, f"gitgates: {CANNOT}\n")
    assert json.loads(said(ready, "check", "--format", "json"))["warnings"] == [CANNOT]


def test_check_says_where_no_hook_of_git_is_run(ready: Repo) -> None:
    ready.config(f'{CONFIG}[hooks.pre-commit]\ngates = ["g"]\n')
    why = "git runs no hooks in the shell of Gemini CLI, so its commits are not gated"
    assert why not in said(ready, "install-hooks", "--agent", "qwen")
    told = said(ready, "install-hooks", "--agent", "gemini")
    assert f"gitgates: pre-commit: {why}\n" in told
    warnings = json.loads(said(ready, "check", "--format", "json"))["warnings"]
    assert f"pre-commit: {why}" in warnings
    ready.config(CONFIG)
    assert why not in said(ready, "check", "--format", "json")


def test_check_says_where_a_required_reviewer_cannot_be(ready: Repo) -> None:
    settings = '[hooks.Stop]\ngates = ["review"]\n[review]\nmode = "require"\n'
    ready.config(settings)
    said(ready, "install-hooks", "--agent", "codex", "--agent", "claude")
    told = ready.gitgates("check").stderr.decode()
    assert told.startswith("gitgates: Codex cannot tell an independent reviewer from the ag")
    assert told.count("\n") == 1


def trusted(repo: Repo) -> str:
    """Return what Codex keeps of hooks that a person has trusted."""
    found = ""
    for event, (group,) in json.loads((repo.path / CODEX).read_text())["hooks"].items():
        name = "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in event)[1:]
        hooks = [{"async": False, **group["hooks"][0]}]
        identity = {**group, "event_name": name, "hooks": hooks}
        told = json.dumps(identity, sort_keys=True, separators=(",", ":"))
        digest = hashlib.sha256(told.encode()).hexdigest()
        found += (
            f'[hooks.state."{repo.path}/{CODEX}:{name}:0:0"]\ntrusted_hash = "sha256:{digest}"\n'
        )
    return found


@pytest.mark.slow
def test_a_linked_worktree_has_the_hooks_of_the_main_one(ready: Repo, tmp_path: Path) -> None:
    ready.commit_all("start")
    ready.git("worktree", "add", "-q", str(tmp_path / "linked"))
    linked = Repo(tmp_path / "linked")
    told = said(linked, "install-hooks", "--agent", "codex")
    assert f"Codex runs the hooks of {ready.path}/{CODEX} in all worktrees\n" in told
    differ = f"Codex runs the hooks of {ready.path}/{CODEX} instead, and that file differs"
    assert of_agents(linked)[0].what == differ
    said(ready, "install-hooks", "--agent", "codex")
    state = tmp_path / "home/.codex/config.toml"
    state.parent.mkdir()
    state.write_text(trusted(ready))
    assert [one.what for one in of_agents(linked)] == [CANNOT]


def test_each_agent_is_permitted_commands_in_its_own_words(ready: Repo) -> None:
    ready.config('[hooks.Stop]\ngates = ["review"]\n')
    told = said(ready, "install-hooks", "--agent", "claude", "--agent", "codex")
    permitted = [line.partition("permissions: ")[2] for line in told.splitlines()]
    assert [*filter(None, permitted)] == ["Bash(gitgates review:*)", "gitgates review"]


def test_what_lets_our_commands_write_in_a_sandbox_is_told(ready: Repo) -> None:
    told = said(ready, "install-hooks", "--agent", "codex")
    assert f"  To allow it: codex --add-dir {ready.path}/.git/gitgates\n" in told
    assert "sandbox" not in said(ready, "install-hooks", "--agent", "claude")


def test_hooks_of_a_person_are_to_be_trusted_as_well(ready: Repo) -> None:
    told = said(ready, "install-hooks", "--agent", "codex", "--scope", "user")
    assert "gitgates: Codex runs these hooks only once they are trusted\n" in told
    assert of_agents(ready)[0].what == UNTRUSTED


def test_a_key_for_which_the_file_is_ignored_is_told(ready: Repo) -> None:
    ready.write(CODEX, '{"$schema": "x"}\n')
    why = "has the key `$schema`: Codex ignores the file"
    assert f"gitgates: {CODEX}: {why}\n" in said(ready, "install-hooks", "--agent", "codex")
    assert ("problem", CODEX, why) in [(o.severity, o.where, o.what) for o in of_agents(ready)]


@pytest.mark.slow
def test_doctor_tells_whether_hooks_are_trusted(ready: Repo, tmp_path: Path) -> None:
    said(ready, "install-hooks", "--agent", "codex")
    assert [(one.severity, one.what) for one in of_agents(ready)] == [
        ("problem", UNTRUSTED),
        ("note", CANNOT),
    ]
    state = tmp_path / "home/.codex/config.toml"
    state.parent.mkdir()
    state.write_text(trusted(ready))
    assert [one.what for one in of_agents(ready)] == [CANNOT]
    ready.config(CONFIG.replace("[hooks.Stop]", "timeout = 600\n[hooks.Stop]"))
    said(ready, "install-hooks", "--agent", "codex")
    assert [one.what for one in of_agents(ready)] == [UNTRUSTED, CANNOT]  # they are others now
    state.write_text("no TOML")
    assert "only once they are trusted" in of_agents(ready)[0].what


@pytest.mark.slow
def test_doctor_says_where_an_agent_runs_the_hooks_of_another(ready: Repo) -> None:
    (ready.path / ".github/workflows").mkdir(parents=True)
    said(ready, "install-hooks", "--agent", "claude")
    said(ready, "install-hooks", "--agent", "copilot")
    assert [one.what for one in of_agents(ready)] == [
        "Copilot CLI runs these hooks only once they are trusted",
        "Copilot CLI cannot be blocked at PreCompact: its gates only warn there",
    ]
    ready.write(".github/copilot/settings.json", '{"disableAllHooks": true}')
    assert [one.where for one in of_agents(ready) if one.severity == "problem"] == [
        ".github/copilot/settings.json"
    ]
    (ready.path / ".github/copilot/settings.json").unlink()
    ready.write(".claude/settings.local.json", '{"disableAllHooks": true}')
    assert ".claude/settings.local.json" in [
        one.where for one in of_agents(ready) if "Copilot CLI runs no hooks" in one.what
    ]
    (ready.path / ".claude/settings.local.json").unlink()
    (ready.path / ".github/copilot").rmdir()
    said(ready, "uninstall-hooks", "--agent", "copilot")
    assert [one.name for one in (ready.path / ".github").iterdir()] == ["workflows"]


@pytest.mark.slow
def test_doctor_says_what_switches_hooks_of_gemini_off(ready: Repo) -> None:
    said(ready, "install-hooks", "--agent", "gemini")
    file = ready.path / ".gemini/settings.json"
    settings = json.loads(file.read_text())
    ours = settings["hooks"]["AfterTool"][0]["hooks"][0]["command"]

    def problems(switches: object) -> list[str]:
        file.write_text(json.dumps({**settings, "hooksConfig": switches}))
        return [one.what for one in of_agents(ready) if one.severity == "problem"]

    off = "`hooksConfig.enabled` is false: Gemini CLI runs no hooks"
    listed = "`hooksConfig.disabled` lists them: Gemini CLI does not run the gitgates hooks"
    assert problems({"enabled": True, "disabled": ["lint"]}) == []
    assert problems({"enabled": False, "disabled": [ours]}) == [off, listed]
    assert problems({"disabled": ["lint", ours]}) == [listed]
    assert problems([]) == problems({"disabled": ours}) == []


@pytest.mark.slow
def test_one_agent_is_proved(ready: Repo) -> None:
    said(ready, "install-hooks", "--agent", "codex", "--agent", "claude")
    done = ready.gitgates("doctor", "--prove", "codex").stdout.decode()
    # The program of this test answers nothing.
    assert f"problem  {CODEX}: Stop goes through although a gate fails: it answers nothing" in done
    assert f"{CLAUDE}: Stop" not in done
    assert "Missing" not in done
    said(ready, "uninstall-hooks", "--agent", "codex")
    done = ready.gitgates("doctor", "--prove", "codex").stdout.decode()
    assert "Codex has no gitgates hooks here: nothing to prove" in done
    done = ready.gitgates("doctor", "--prove", "nobody").stderr.decode()
    assert "'nobody' is not one of 'all', 'claude', 'codex'" in done


def test_hooks_of_others_that_ours_would_silence_are_moved_first(ready: Repo) -> None:
    theirs = '{"x": 1, "hooks": {"Stop": [{"hooks": []}], "PreToolUse": []}}\n'
    older = ready.write(".factory/settings.json", theirs)
    assert said(ready, "install-hooks", "--agent", "droid", status=78) == (
        "gitgates: .factory/settings.json: has hooks at Stop, which Droid no longer runs if "
        ".factory/hooks.json has some at the same event"
        "\n"
        "  Move its `hooks` to .factory/hooks.json first; nothing was changed.\n"
    )
    assert older.read_text() == theirs
    moved = ready.write(".factory/hooks.json", '{"Stop": [{"hooks": [{"command": "say hi"}]}]}\n')
    before = moved.read_bytes()
    said(ready, "install-hooks", "--agent", "droid")
    assert [*json.loads(moved.read_text())][:2] == ["Stop", "SessionStart"]
    said(ready, "uninstall-hooks", "--agent", "droid")
    assert (moved.read_bytes(), older.read_text()) == (before, theirs)


def test_an_agent_is_detected_by_a_folder_without_plugins(ready: Repo) -> None:
    folder = ready.write(".opencode/agents/a.md", "").parent.parent
    told = said(ready, "install-hooks", "--agent", "detected")
    assert told.startswith(f"opencode: {folder} is there\n")


def test_of_two_files_the_broken_one_is_named(ready: Repo) -> None:
    ready.write(".factory/settings.json", "{}\n")
    ready.write(".factory/hooks.json", "[]\n")
    told = said(ready, "install-hooks", "--agent", "droid", status=78)
    assert told.startswith("gitgates: .factory/hooks.json: the file is an array, expected")


@pytest.mark.parametrize(
    ("agent", "where"),
    [("claude", " in the scope project or local"), ("vibe", " in the scope project"), ("kimi", "")],
)
def test_the_scopes_that_an_agent_has_are_named(ready: Repo, agent: str, where: str) -> None:
    told = said(ready, "install-hooks", "--agent", agent, "--scope", "user")
    assert f"\n  If other repositories need more, install there{where}\n" in told


def test_without_a_home_the_scope_that_an_agent_has_is_named(
    ready: Repo, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    told = said(ready, "install-hooks", "--agent", "codex", "--scope", "user", status=73)
    assert told.endswith("Set it, or use another scope: --scope project\n")
    said(ready, "install-hooks", "--agent", "codex")
    assert of_agents(ready)[0].what == "Codex runs these hooks only once they are trusted"


@pytest.mark.nightly
@pytest.mark.slow
def test_what_is_wrong_with_one_agent_casts_no_doubt_on_another(
    ready: Repo, tmp_path: Path
) -> None:
    (tmp_path / "bin/gitgates").unlink()
    (tmp_path / "bin/gitgates").symlink_to(Path(sys.executable).parent / "gitgates")
    said(ready, "install-hooks", "--agent", "codex", "--agent", "claude")
    done = ready.gitgates("doctor", "--prove", "--format", "json")
    proofs = [one for one in json.loads(done.stdout)["findings"] if one["check"] == "proof"]
    assert [(one["severity"], one["where"]) for one in proofs] == [("ok", CLAUDE), ("note", CODEX)]
