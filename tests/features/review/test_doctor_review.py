"""The doctor looks whether there is a reviewer where one may be asked for."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from conftest import Repo
from doctor_support import Said, examine

pytestmark = pytest.mark.slow  # each asks the doctor, who starts what is installed

SETTINGS = ".claude/settings.json"
AGENT = ".claude/agents/reviewer.md"
INSTALL = "gitgates install-hooks --agent claude"
CONFIG = '[hooks.Stop]\ngates = ["review"]\n'
REQUIRED = CONFIG + '[review]\nmode = "require"\n'
DEFINE = "define it in .claude/agents, or name another in [tool.gitgates.review] reviewer"


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real gitgates, as it stands here, in the PATH."""
    path = tmp_path / "bin/gitgates"
    path.parent.mkdir()
    source = Path(__file__).resolve().parents[3]
    path.write_text(
        f"#!/bin/sh\nPYTHONPATH='{source}' exec '{sys.executable}' -m gitgates \"$@\"\n"
    )
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{path.parent}:/usr/local/bin:/usr/bin:/bin")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)


def install(repo: Repo, config: str, *args: str) -> None:
    repo.config(config)
    done = repo.gitgates("install-hooks", "--agent", "claude", *args)
    assert done.returncode == 0, done.stderr


def agents(repo: Repo) -> list[Said]:
    return [one for one in examine(repo) if one.check == "agent"]


def missing(name: str, severity: str = "note", mend: str = INSTALL) -> Said:
    what = f"Claude Code has no agent `{name}`, so nobody can give its decision"
    return Said(severity, "agent", SETTINGS, what, mend)


def test_installed_nothing_is_wrong(repo: Repo) -> None:
    install(repo, REQUIRED)
    assert agents(repo) == []


@pytest.mark.samples(1)
@pytest.mark.parametrize(
    ("config", "severity"),
    [(CONFIG, "note"), (REQUIRED, "problem"), (f'{CONFIG}[review]\nprefix = ""\n', "")],
)
def test_a_reviewer_that_is_gone(repo: Repo, config: str, severity: str) -> None:
    install(repo, config)
    (repo.path / AGENT).unlink()
    assert agents(repo) == ([missing("reviewer", severity)] if severity else [])


def test_an_agent_of_ones_own_will_do_wherever_it_is(repo: Repo, tmp_path: Path) -> None:
    install(repo, REQUIRED)
    (repo.path / AGENT).unlink()
    repo.write(".claude/agents/x.md", "---\r\ndescription: d\r\nname: reviewer\r\n---\r\nHi\r\n")
    assert agents(repo) == []
    (repo.path / ".claude/agents/x.md").unlink()
    repo.write(".claude/agents/reviewer.md", "name: reviewer\n")  # no head: no agent to the client
    assert agents(repo) == [missing("reviewer", "problem")]
    home = tmp_path / "mine"
    (home / "agents").mkdir(parents=True)
    (home / "agents/x.md").write_text("---\nname: reviewer\n---\n")
    found = [one for one in examine(repo, CLAUDE_CONFIG_DIR=str(home)) if one.check == "agent"]
    assert found == []


def test_an_agent_is_known_by_its_files_name_where_none_of_ours_could_be(repo: Repo) -> None:
    repo.config(REQUIRED)
    assert repo.gitgates("install-hooks", "--agent", "opencode").returncode == 0
    (found,) = [one for one in agents(repo) if one.severity == "problem"]
    assert found.what.startswith(
        "opencode has no agent `reviewer`, so nobody can give its decision"
    )
    repo.write(".opencode/agents/reviewer.md", "Look.\n")
    assert [one for one in agents(repo) if one.severity == "problem"] == []


def test_the_reviewer_of_a_plugin(repo: Repo) -> None:
    install(repo, CONFIG + '[review]\nreviewer = "kit:checker"\n')
    assert agents(repo) == [missing("kit:checker", mend=DEFINE)]
    settings = json.loads((repo.path / SETTINGS).read_text())
    repo.write(SETTINGS, json.dumps({**settings, "enabledPlugins": {"kit@market": True}}))
    assert agents(repo) == []


def test_our_plugin_has_it(repo: Repo) -> None:
    repo.config(REQUIRED)
    repo.write(SETTINGS, json.dumps({"enabledPlugins": {"gitgates@gitgates": True}}))
    assert agents(repo) == []
    repo.config(REQUIRED + 'reviewer = "checker"\n')
    gone = missing("checker", "problem", DEFINE)
    assert agents(repo) == [gone._replace(where="plugin gitgates@gitgates")]


def test_files_of_another_version_are_told_of(repo: Repo) -> None:
    install(repo, CONFIG)
    repo.config(CONFIG + '[review]\nreviewer_model = "sonnet"\n')
    what = "is out of date"
    assert agents(repo) == [Said("note", "agent", AGENT, what, INSTALL)]


def test_where_our_hooks_are_not_installed_nothing_is_said_of_it(repo: Repo) -> None:
    repo.config(REQUIRED)
    (said,) = agents(repo)
    assert "no coding agent runs the gates" in said.what


def test_a_matcher_that_lets_tools_slip_by(repo: Repo) -> None:
    install(repo, CONFIG)
    settings = json.loads((repo.path / SETTINGS).read_text())
    settings["hooks"]["PreToolUse"][0]["matcher"] = "Bash"
    repo.write(SETTINGS, json.dumps(settings))
    what = "its matcher at PreToolUse is `Bash`, where install-hooks writes "
    what += "`^(?!(?:Read|Grep|Glob)$)`"
    assert agents(repo) == [Said("problem", "agent", SETTINGS, what, INSTALL)]


def test_a_review_alone_is_proved_like_any_gate(repo: Repo) -> None:
    install(repo, CONFIG)
    done = repo.gitgates("doctor", "--prove", "--format", "json")
    found = json.loads(done.stdout)["findings"]
    proofs = [(f["severity"], f["where"], f["what"]) for f in found if f["check"] == "proof"]
    assert proofs == [("ok", SETTINGS, "proved: Stop is blocked if a gate fails")]
