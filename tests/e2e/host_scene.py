"""A scene for the other agents: the same repository, with hooks of one of them or of several."""

from __future__ import annotations

from pathlib import Path

import others
import pytest
from claude import Options, Run, Turn
from scene import CHECK, STOP, Scene

from gitgates.hosts import AGENTS


def need(host: str) -> None:
    """Skip a test where an agent's client does not exist, or we know no such agent yet."""
    if host not in AGENTS:
        pytest.skip(f"there are no hooks for {host} yet")
    if not others.program(host).is_file():  # it may be a folder that an attempt has left
        pytest.skip(f"there is no {others.program(host)}. Try: make e2e HOSTS={host}")


class HostScene(Scene):
    """A repository with hooks for agents; `run` starts the first of them."""

    def __init__(self, folder: Path, *hosts: str, config: str = CHECK + STOP) -> None:
        self.hosts = hosts
        super().__init__(folder, config)

    def install(self) -> None:
        """Have install-hooks put in place what these agents need."""
        named = [word for host in self.hosts for word in ("--agent", host)]
        if not AGENTS[self.hosts[0]].settings:
            named += ["--scope", "user"]  # it has no settings of a project
        home = {"HOME": str(self.client.home)}
        done = self.repo.gitgates("install-hooks", *named, env=home)
        assert done.returncode == 0, done.stderr

    def session(
        self,
        *turns: Turn,
        host: str = "",
        prompt: str = "go",
        agents: dict[str, list[Turn]] | None = None,
    ) -> Run:
        """Let an agent work on one prompt, to its end."""
        how = Options(command=others.command(host or self.hosts[0], prompt), limit_s=120)
        run = self.run(*turns, agents=agents, options=how)
        assert not run.end["timed_out"], run.said
        return run
