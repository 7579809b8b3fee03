"""A repository to install hooks into, and programs run in it, far from the real home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import conftest
import forked
import yaml

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent
GATE = '[tool.gitgates.gates.g]\ncommand = "true"\n'
STATE = (  # what uninstall-hooks says at its end
    "gitgates: its own state remains in {}\n  To remove it: gitgates uninstall-hooks --purge\n"
)
FOREIGN = b"#!/bin/sh\necho foreign ran\n"


class Repo(NamedTuple):
    path: Path
    env: dict[str, str]

    def run(
        self, *argv: str | Path, stdin: str = "", **more: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            argv,
            cwd=self.path,
            env={**self.env, **more},
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )

    def git(self, *args: str | Path, **more: str) -> str:
        done = self.run("git", *args, **more)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def gitgates(self, *args: str, **more: str) -> tuple[int, str, str]:
        done = forked.run(args, str(self.path), {**self.env, **more}, b"")
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def configure(self, *hooks: str, gate: str = GATE) -> None:
        # These tests are about the working tree, also before a push.
        keep = {"pre-push": 'unstaged = "keep"\n'}
        tables = [
            f'[tool.gitgates.hooks.{hook}]\ngates = ["g"]\n{keep.get(hook, "")}' for hook in hooks
        ]
        (self.path / "pyproject.toml").write_text(gate + "".join(tables))
        self.git("add", "pyproject.toml")  # what judges a commit is staged

    def write(self, name: str, content: str | bytes, mode: int = 0o644) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        path.chmod(mode)
        return path

    def commit(self, name: str, content: str = "x\n") -> subprocess.CompletedProcess[str]:
        self.write(name, content)
        self.git("add", name)
        return self.run("git", "commit", "-q", "-m", f"add {name}")

    def hook(self, name: str) -> Path:
        return self.path / ".git/hooks" / name

    def keep(self, name: str, content: bytes = FOREIGN, mode: int = 0o755) -> Path:
        return self.write(f".git/hooks/{name}", content, mode)

    def hooks(self, folder: str = ".git/hooks") -> list[str]:
        return sorted(name for name in os.listdir(self.path / folder) if "sample" not in name)


def make_repo(path: Path, home: Path) -> Repo:
    """Make an empty repository at `path`; nothing of it reaches the real home."""
    home.mkdir(parents=True, exist_ok=True)
    ours = ("GIT", "PRE_COMMIT", "PREK", "SKIP", "VIRTUAL_ENV")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    env |= {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_CACHE_HOME": str(home / ".cache"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
    }
    conftest.Repo.init(path)
    return Repo(path, env)


def add_printed_lines(repo: Repo, out: str) -> list[str]:
    """Add the lines that `install-hooks --via` has printed, as a person does; return the files."""
    files = []
    for part in out.split("Add to ")[1:]:
        head, _, rest = part.partition(":\n\n")
        file, _, place = head.partition(", ")
        lines = rest.partition("\n\n")[0] + "\n"
        path = repo.path / file
        before = path.read_text() if path.exists() else ""
        if file.endswith((".yml", ".yaml")) and before:
            after = yaml.safe_dump(_merged(yaml.safe_load(before), yaml.safe_load(lines)))
        elif file.endswith(".json"):
            settings = json.loads(before)
            hooks = settings["simple-git-hooks"] if file == "package.json" else settings
            added = json.loads(f"{{{lines.rstrip().removesuffix(',')}}}")
            hooks |= {hook: call.replace("…", hooks.get(hook, "")) for hook, call in added.items()}
            after = json.dumps(settings)
        else:
            after = lines + before if "beginning" in place else before + lines
        repo.write(file, after)
        files.append(file)
    return files


def _merged(base: Any, more: Any) -> Any:
    if isinstance(base, dict) and isinstance(more, dict):
        both = {key: _merged(base[key], more[key]) for key in base.keys() & more.keys()}
        return {**base, **more, **both}
    if isinstance(base, dict) and isinstance(more, list):  # an item of `repos`
        return {**base, "repos": [*base["repos"], *more]}
    return [*base, *more]
