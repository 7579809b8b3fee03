"""`requires`: settings for other versions of gitgates are refused, before anything else is said."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from claude_support import fire, recorded
from conftest import Repo

from gitgates import __version__
from gitgates.config import requires
from gitgates.config.load import load
from gitgates.core.errors import ConfigError

NEWER = 'requires = ">=99.1"\nfrobnicate = true\njobs = "all"\n'
REFUSED = f"requires: gitgates >=99.1 is required, and this is gitgates {__version__}"


VERSIONS = [
    (">=0.2", "0.2", True),
    (">=0.2", "0.2.0", True),
    (">=0.2.0", "0.2", True),
    (">=0.2", "0.10", True),
    (">=0.2", "0.1.9", False),
    (">0.2", "0.2.0", False),
    (">0.2", "0.2.1", True),
    ("<1", "0.99.7", True),
    ("<1", "1.0", False),
    ("<=1.0", "1", True),
    ("<=1.0", "1.0.1", False),
    ("==0.2", "0.2.0", True),
    ("==0.2", "0.2.1", False),
    ("!=0.2.3", "0.2.3", False),
    ("!=0.2.3", "0.2.4", True),
    (">=0.2,!=0.2.3,<1", "0.2.2", True),
    (">=0.2,!=0.2.3,<1", "0.2.3", False),
    (">=0.2,!=0.2.3,<1", "1.0.0", False),
    (">=0.3", "0.3.0rc1", True),
    (">=0.3", "0.3.0.dev4+g1234", True),
    ("", "0.1", True),
]


def test_which_versions_are_met() -> None:
    assert [
        (wanted, version, requires.is_met(wanted, version)) for wanted, version, _met in VERSIONS
    ] == VERSIONS


@pytest.mark.parametrize("file", ["pyproject.toml", "gitgates.toml", "gitgates.local.toml"])
def test_one_clear_message(tmp_path: Path, file: str) -> None:
    table = "[tool.gitgates]\n" if file == "pyproject.toml" else ""
    (tmp_path / file).write_text(table + NEWER)
    with pytest.raises(ConfigError) as caught:
        load(str(tmp_path))
    place = f"{file}: {'tool.gitgates.' if table else ''}"
    assert caught.value.message == f"{place}{REFUSED}"
    assert caught.value.hint == f"To install it: {requires.install_command('>=99.1')}"


@pytest.mark.parametrize("file", ["web/gitgates.toml", "shared.toml"])
def test_files_that_others_lead_to_are_asked_too(tmp_path: Path, file: str) -> None:
    files = {
        "gitgates.toml": "members = ['web']\nextends = ['shared.toml']\n",
        "shared.toml": "",
        "web/gitgates.toml": "root = false\n",
        file: NEWER,
    }
    (tmp_path / "web").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(str(tmp_path))
    assert caught.value.message == f"{file}: {REFUSED}"


def test_it_comes_before_the_report_of_two_files(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.gitgates]\n")
    (tmp_path / "gitgates.toml").write_text(NEWER)
    with pytest.raises(ConfigError, match=r"gitgates\.toml: requires: gitgates >=99\.1"):
        load(str(tmp_path))


def test_a_requirement_that_cannot_be_read_is_reported_with_the_rest(tmp_path: Path) -> None:
    (tmp_path / "gitgates.toml").write_text('requires = "0.2"\njobs = "all"\n')
    with pytest.raises(ConfigError) as caught:
        load(str(tmp_path))
    first, second = caught.value.message.splitlines()
    assert first.startswith('gitgates.toml: requires: got "0.2", expected version comparisons')
    assert second.startswith("gitgates.toml: jobs: ")


def test_a_met_one_is_no_reason_to_read_again(tmp_path: Path) -> None:
    (tmp_path / "gitgates.toml").write_text('requires = ">= 0.0.1, < 99"\n')
    cache = tmp_path / "state/config.marshal"
    first = load(str(tmp_path), str(cache))
    assert first
    assert cache.exists()
    assert load(str(tmp_path), str(cache)) == first


def test_one_that_is_not_met_is_refused_each_time(tmp_path: Path) -> None:
    (tmp_path / "gitgates.toml").write_text(NEWER)
    cache = tmp_path / "state/config.marshal"
    for _time in (1, 2):
        with pytest.raises(ConfigError):
            load(str(tmp_path), str(cache))
    assert not cache.exists()


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("uv-receipt.toml", "uv tool install 'gitgates>=0.2'"),
        ("pipx_metadata.json", "pipx install --force 'gitgates>=0.2'"),
        ("bin/pip", "{0} -m pip install 'gitgates>=0.2'"),
        ("bin/other", "uv pip install --python {0} 'gitgates>=0.2'"),
    ],
)
def test_command_to_install_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str, command: str
) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / file).touch()
    python = str(tmp_path / "bin/python")
    monkeypatch.setattr(sys, "executable", python)
    assert requires.install_command(">=0.2") == command.format(python)


def test_a_hook_of_git_refuses(repo: Repo) -> None:
    repo.write("gitgates.toml", NEWER)
    repo.shim("pre-commit")
    repo.git("add", ".")
    done = repo.commit()
    assert done.returncode
    assert f"gitgates.toml: {REFUSED}" in done.stderr.decode()
    assert f"To install it: {requires.install_command('>=99.1')}\n" in done.stderr.decode()
    assert b"frobnicate" not in done.stderr
    assert repo.gitgates("git-hook", ".git/hooks/pre-commit", "pre-commit").returncode == 78
    assert repo.gitgates("run").returncode == 78
    checked = repo.gitgates("check", "--format", "json")
    assert checked.returncode == 78
    assert json.loads(checked.stdout)["problems"][0]["message"] == f"gitgates.toml: {REFUSED}"


def test_the_person_at_an_agent_is_told(repo: Repo) -> None:
    repo.write("gitgates.toml", NEWER)
    repo.commit_all("for another version")
    fire(repo, recorded(repo, "SessionStart"))  # which fails where its status is not 0
    repo.write("a.py")
    answer = fire(repo, recorded(repo, "Stop"))
    assert "decision" not in answer  # the session has not caused it
    assert f"gitgates.toml: {REFUSED}" in answer["systemMessage"]
