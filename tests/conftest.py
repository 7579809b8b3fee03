"""What every test stands on: a home of its own, and real repositories."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

from gitgates.install.shim import render

# How long an example takes says how busy the machine is, and nothing of the code.
settings.register_profile("busy", deadline=None)
settings.load_profile("busy")

SRC = Path(__file__).resolve().parents[1]
DURATION = re.compile(rb"\d+\.\d\d s")


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path_factory.mktemp("home")
    config = home / "gitconfig"
    config.write_text(
        "[user]\n\tname = Test\n\temail = test@example.invalid\n"
        "[init]\n\tdefaultBranch = main\n[advice]\n\tdetachedHead = false\n"
        '[protocol "file"]\n\tallow = always\n'
    )
    for name in list(os.environ):
        if name.startswith(("CLAUDE", "GIT_", "GITGATES", "PRE_COMMIT", "SKIP", "VIRTUAL_ENV")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_EDITOR", "true")
    bin_dir = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", f"{bin_dir}{os.pathsep}{os.environ['PATH']}")


class Repo:
    """A real repository in a temporary folder."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def init(cls, path: Path) -> Repo:
        path.mkdir(parents=True, exist_ok=True)
        subprocess.run(["git", "init", "-q", str(path)], check=True)
        return cls(path)

    def ask(
        self, *args: str, env: dict[str, str] | None = None, stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program in the working tree; return what it answered."""
        return subprocess.run(
            args,
            cwd=self.path,
            env={**os.environ, **(env or {})},
            input=stdin,
            capture_output=True,
            check=False,
            timeout=60,
        )

    def git(self, *args: str, env: dict[str, str] | None = None) -> str:
        """Run git; fail the test where it fails."""
        done = self.ask("git", *args, env=env)
        assert done.returncode == 0, (args, done.stdout, done.stderr)
        return done.stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def gitgates(
        self, *args: str, env: dict[str, str] | None = None, stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run gitgates in the working tree."""
        return self.ask(sys.executable, "-m", "gitgates", *args, env=env, stdin=stdin)

    def write(self, name: str, content: str | bytes = "") -> Path:
        """Write a file of the working tree."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def config(self, text: str) -> None:
        """Write [tool.gitgates]; `text` names its tables without that prefix."""
        whole = re.sub(r"(?m)^\[", "[tool.gitgates.", text)
        self.write("pyproject.toml", f"[tool.gitgates]\n{whole}")

    def shim(self, *hooks: str) -> None:
        """Put our shim into the hooks folder, as install-hooks does."""
        folder = self.path / self.git("rev-parse", "--git-path", "hooks")
        folder.mkdir(exist_ok=True)
        for hook in hooks:
            path = folder / hook
            path.write_bytes(render(hook))
            path.chmod(0o755)

    def commit(self, message: str = "change", *args: str) -> subprocess.CompletedProcess[bytes]:
        """Commit what is staged; return what git answered."""
        return self.ask("git", "commit", "-m", message, *args)

    def commit_all(self, message: str) -> None:
        """Stage everything and commit it."""
        self.git("add", ".")
        self.git("commit", "-qm", message)

    def add_origin(self) -> None:
        """Make a remote of that name, and push main to it."""
        self.git("init", "-q", "--bare", "../origin.git")
        self.git("remote", "add", "origin", "../origin.git")
        self.git("push", "-q", "origin", "main")

    def head(self) -> str:
        """Return the id of HEAD."""
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def repo(tmp_path: Path) -> Repo:
    return Repo.init(tmp_path / "repo")


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder $OUT, outside of the repository, where gates write what they were given."""
    folder = tmp_path / "out"
    folder.mkdir()
    monkeypatch.setenv("OUT", str(folder))
    return folder


def timeless(output: bytes) -> str:
    """Return output with each duration replaced, so that it can be compared whole."""
    return DURATION.sub(b"0.00 s", output).decode("utf-8", "replace")
