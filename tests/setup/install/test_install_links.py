"""What is written into a repository stays in it: links that lead out are refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from conftest import Repo

CONFIG = """
[gates.g]
command = "true"
[hooks.pre-commit]
gates = ["g"]
[hooks.Stop]
gates = ["g", "review"]
"""
pytestmark = pytest.mark.slow  # some processes each
AGENT = ("--agent", "claude", "--claude-md")


def everything(folder: Path) -> dict[str, bytes]:
    """Return all files but our own state."""
    files = {str(path): path for path in folder.rglob("*") if path.is_file()}
    return {name: path.read_bytes() for name, path in files.items() if "/gitgates/" not in name}


@pytest.fixture(name="ready")
def _ready(repo: Repo) -> Repo:
    repo.config(CONFIG)
    return repo


@pytest.mark.parametrize(
    ("link", "args"),
    [
        ("CLAUDE.md", AGENT),
        (".claude", AGENT),
        (".claude/settings.json", AGENT),
        (".claude/settings.local.json", (*AGENT, "--scope", "local")),
        (".claude/agents", AGENT),
        (".claude/commands", AGENT),
        ("hooks", ()),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_link_that_leads_out_is_refused(ready: Repo, link: str, args: tuple[str, ...]) -> None:
    outside = ready.path.parent / "outside"
    outside.mkdir()
    target = outside
    if "." in Path(link).name[1:]:
        target = outside / "mine"
        target.write_text("{}" if link.endswith("json") else "repos: []\n")
    if link == "hooks":
        ready.git("config", "core.hooksPath", "hooks")
    path = ready.path / link
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(os.path.relpath(target, path.parent))
    before = everything(ready.path.parent)
    done = ready.gitgates("install-hooks", *args)
    assert (done.returncode, done.stdout) == (73, b"")
    said = (
        f"gitgates: {path} is a link to {target}, which is not a file of this repository: nothing"
    )
    assert done.stderr.decode().startswith(said)
    assert everything(ready.path.parent) == before


def test_nor_is_anything_taken_out_through_one(ready: Repo) -> None:
    assert ready.gitgates("install-hooks", *AGENT).returncode == 0
    outside = ready.path.parent / "outside"
    (ready.path / ".claude").rename(outside)
    (ready.path / ".claude").symlink_to("../outside")
    before = everything(ready.path.parent)
    done = ready.gitgates("uninstall-hooks", "--agent", "claude")
    assert (done.returncode, done.stdout) == (73, b"")
    assert f"{ready.path}/.claude is a link to {outside}".encode() in done.stderr
    assert everything(ready.path.parent) == before


@pytest.mark.parametrize("verb", ["init", "convert"])
def test_the_configuration_is_not_written_through_one(repo: Repo, verb: str) -> None:
    outside = repo.path.parent / "mine.toml"
    outside.write_text("[project]\n")
    (repo.path / "pyproject.toml").symlink_to("../mine.toml")
    repo.write("Makefile", "lint:\n\ttrue\n")
    repo.write("lefthook.yml", "pre-commit: {jobs: [{name: a, run: x}]}\n")
    done = repo.gitgates(verb)
    assert done.returncode == 78
    assert f"{repo.path}/pyproject.toml is a link to {outside}".encode() in done.stderr
    assert outside.read_text() == "[project]\n"


def test_a_link_into_git_s_own_folder_is_refused(ready: Repo) -> None:
    (ready.path / "CLAUDE.md").symlink_to(".git/config")
    done = ready.gitgates("install-hooks", *AGENT)
    assert done.returncode == 73
    assert b"CLAUDE.md is a link to " in done.stderr


def test_a_link_inside_stays_one(ready: Repo) -> None:
    ready.write("AGENTS.md", "# Mine\n")
    (ready.path / "CLAUDE.md").symlink_to("AGENTS.md")
    assert ready.gitgates("install-hooks", *AGENT).returncode == 0
    assert (ready.path / "CLAUDE.md").readlink() == Path("AGENTS.md")
    assert "gitgates" in (ready.path / "AGENTS.md").read_text()
    assert ready.gitgates("uninstall-hooks", "--agent", "claude").returncode == 0
    assert (ready.path / "AGENTS.md").read_text() == "# Mine\n"


def test_a_persons_own_settings_may_be_a_link(ready: Repo, tmp_path: Path) -> None:
    folder = tmp_path / "dotfiles"
    folder.mkdir()
    Path(os.environ["HOME"], ".claude").symlink_to(folder)
    done = ready.gitgates("install-hooks", "--agent", "claude", "--scope", "user")
    assert done.returncode == 0, done.stderr
    assert (folder / "settings.json").exists()
