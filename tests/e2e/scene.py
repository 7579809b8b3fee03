"""A repository with gates, an agent in it, and what came of that."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from claude import Client, Options, Run, Turn
from conftest import Repo

COMMAND = "gitgates agent-hook claude"
# Fails while bad.txt is there; leaves a line outside of the repository each time that it runs.
CHECK = """
[gates.check]
description = "Nothing bad is there"
command = "echo check >> ../ran; test ! -e bad.txt || { echo BAD-IS-THERE; exit 1; }"
"""
UNGUARDED = "[guard]\nenabled = false\n"  # where the agent does what the guard refuses
STOP = '[hooks.Stop]\ngates = ["check"]\n'


class Scene:
    """A repository in `folder`/repo, with what `config` says, and hooks for that."""

    def __init__(self, folder: Path, config: str = CHECK + STOP, *, git: bool = True) -> None:
        self.folder = folder
        self.client = Client(folder)
        path = folder / "repo"
        path.mkdir()
        self.repo = Repo.init(path) if git else Repo(path)
        self.path = path
        if config:
            self.repo.config(config)
        if config and git:
            self.install()
        else:  # where there is nothing to install for, they may be there all the same
            self.add_hook(COMMAND, "SessionStart", "UserPromptSubmit", "Stop")
        self.repo.write("seed.txt", "seed\n")
        self.commit()

    def install(self) -> None:
        """Have install-hooks put into the settings what the configuration needs."""
        done = self.repo.gitgates("install-hooks", "--agent", "claude")
        assert done.returncode == 0, done.stderr

    def add_hook(self, command: str, *events: str) -> None:
        """Put another hook beside those that are there, as somebody else would."""
        file = self.path / ".claude/settings.json"
        settings = json.loads(file.read_text()) if file.exists() else {"hooks": {}}
        handler = {"type": "command", "command": command, "timeout": 30}
        for event in events:
            settings["hooks"].setdefault(event, []).append({"hooks": [handler]})
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(settings, indent=1))

    def commit(self) -> None:
        """Commit everything that is there."""
        if (self.path / ".git").exists():
            self.repo.git("add", "-A")
            self.repo.git("commit", "-q", "-m", "all")

    def run(
        self,
        *turns: Turn,
        prompts: tuple[str, ...] = ("go",),
        agents: dict[str, list[Turn]] | None = None,
        cwd: Path | None = None,
        options: Options = Options(),  # noqa: B008 - it cannot be changed
    ) -> Run:
        """Let the agent work."""
        return self.client.run(
            list(turns), prompts=prompts, agents=agents, cwd=cwd or self.path, options=options
        )

    def at(self, name: str) -> Path:
        """Return where a file of the repository is."""
        return self.path / name

    def ran(self, gate: str = "check") -> int:
        """Return how often a gate has run."""
        file = self.folder / "ran"
        return file.read_text().splitlines().count(gate) if file.exists() else 0

    def journal(self, session: str, git_dir: str = ".git") -> list[dict[str, Any]]:
        """Return the facts of a session that are in its journal, without a torn last line."""
        file = self.path / git_dir / "gitgates/sessions" / f"{session}.jsonl"
        found = []
        for line in file.read_text(errors="replace").splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                continue
        return found

    def type_of_agent(self, name: str) -> None:
        """Define a type of sub-agent, and commit it."""
        text = f"---\nname: {name}\ndescription: does things\n---\nDo things.\n"
        self.repo.write(f".claude/agents/{name}.md", text)
        self.commit()


def gitgates_abs() -> str:
    """Return where the program is that hooks find by its name."""
    found = shutil.which("gitgates")
    assert found
    return found
