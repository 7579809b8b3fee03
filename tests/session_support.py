"""Sessions that have begun, at a tenth of what beginning one costs."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import agent_support
import pytest
from agent_support import Agent
from click.testing import CliRunner
from conftest import Repo

from gitgates.cli import main
from gitgates.core.errors import GitgatesError
from gitgates.drivers import call

if TYPE_CHECKING:
    from collections.abc import Mapping

# What tests/features/undo/ is about; it takes half the time of most events.
NO_UNDO = "[undo]\nenabled = false\n"
# Each test has its own; as paths, they stand in the journal.
MEMORY = ".local/state/gitgates/files"  # in the home folder
_OF_THE_TEST = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "GIT_CONFIG_GLOBAL", "OUT")
_OF_PYTEST = "PYTEST_"

_seen: set[object] = set()
_prepared: dict[object, _Prepared] = {}


class _Prepared(NamedTuple):
    """A repository in which a session has begun, and where that was."""

    path: Path
    parent: str
    home: str


def begin(
    repo: Repo, config: str, session: str = "s1", files: Mapping[str, str] | None = None
) -> Agent:
    """Begin a session without save points; in a new repository, from a copy where there is one.

    `files`: path → content, of the first commit.
    """
    text = config if "[undo]" in config else config + NO_UNDO
    files = files or {}
    key = (text, session, *sorted(files.items()), *_environment()) if _is_new(repo) else None
    if prepared := _prepared.get(key):
        return _copied(prepared, repo, session)
    for name, content in files.items():
        repo.write(name, content)
    agent = agent_support.begin(repo, text, session)
    if key in _seen:
        _prepared[key] = _copy_of(repo)
    elif key:
        _seen.add(key)
    return agent


def as_person(repo: Repo, *args: str) -> str:
    """Run a verb as a person does in a terminal: test_approve.py has real ones."""
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(repo.path)
        patched.setattr(os, "isatty", lambda _fd: True)
        done = CliRunner().invoke(main, args, standalone_mode=False)
    if isinstance(done.exception, GitgatesError):
        return str(done.exception)
    assert (done.exception, done.return_value or 0) == (None, 0), done.output
    return done.output


def _environment() -> list[tuple[str, str]]:
    """Return what a session may depend on, besides the paths that each test has of its own."""
    names = os.listdir(os.environ["HOME"])
    git = Path(os.environ["GIT_CONFIG_GLOBAL"]).read_text()
    variables = [
        (name, value)
        for name, value in os.environ.items()
        if name not in _OF_THE_TEST and not name.startswith(_OF_PYTEST)
    ]
    return sorted([*variables, ("HOME", ",".join(sorted(names))), ("GIT_CONFIG_GLOBAL", git)])


def _is_new(repo: Repo) -> bool:
    git, blank = repo.path / ".git", Repo.blank / ".git"
    folders = ("", "hooks", "info", "objects", "refs/heads")
    return (
        not any(one.is_dir() for one in Path(os.environ["HOME"]).iterdir())
        and os.listdir(repo.path) == [".git"]
        and all(sorted(os.listdir(git / one)) == sorted(os.listdir(blank / one)) for one in folders)
        and all(
            (git / one).read_bytes() == (blank / one).read_bytes() for one in ("config", "HEAD")
        )
    )


def _copy_of(repo: Repo) -> _Prepared:
    path = Path(tempfile.mkdtemp(dir=Repo.blank.parent)) / "repo"
    shutil.copytree(repo.path, path, symlinks=True)
    if (memory := Path(os.environ["HOME"]) / MEMORY).exists():
        shutil.copytree(memory, path.parent / MEMORY)
    return _Prepared(path, str(repo.path.parent), os.environ["HOME"])


def _copied(prepared: _Prepared, repo: Repo, session: str) -> Agent:
    shutil.copytree(prepared.path, repo.path, symlinks=True, dirs_exist_ok=True)
    journal = repo.path / f".git/gitgates/sessions/{session}.jsonl"
    home = Path(os.environ["HOME"])
    if (memory := prepared.path.parent / MEMORY).exists():
        shutil.copytree(memory, home / MEMORY)
    pairs = (prepared.parent, str(repo.path.parent)), (prepared.home, str(home))
    named = (repo.path / ".git/gitgates/files.at", *(home / MEMORY).glob("*/of"))
    for file in (journal, *(one for one in named if one.exists())):
        text = file.read_text()
        for then, now in pairs:
            text = text.replace(f"{then}/", f"{now}/")
        file.write_text(text)
    vars(call)["process_start_time"] = time.time
    agent = Agent(repo, session)
    vars(agent).update(prompt_id="prompt-1", _prompts=1)
    return agent
