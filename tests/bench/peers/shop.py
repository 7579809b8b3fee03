"""A repository of the project with one peer, and what can happen in it."""

from __future__ import annotations

import copy
import json
import shutil
from typing import TYPE_CHECKING

import project
from clock import Clock, Wrong
from peers import GITGATES, HUSKY, NO_HOOK, Gate, Peer

if TYPE_CHECKING:
    from pathlib import Path

_CACHES = (".mypy_cache", ".ruff_cache", ".pytest_cache")


class Shop:
    """The project, with the hook of one peer."""

    def __init__(self, clock: Clock, peer: Peer, folder: Path, gates: list[Gate]) -> None:
        self.clock, self.peer, self.folder, self.gates = clock, peer, folder, gates
        folder.mkdir(parents=True)
        self.git("init", "-q")
        project.write(folder)
        self.git("add", ".")
        self.git("commit", "-qm", "project")
        peer.set_up(clock, folder, gates, parallel=True)
        self.git("add", ".")
        self.git("commit", "-qnm", "hook", "--allow-empty")

    def git(self, *argv: str, fails: bool = False) -> str:
        """Run git here; return what it printed."""
        return self.clock.run("git", *argv, cwd=self.folder, fails=fails).strip()

    @property
    def names(self) -> tuple[str, ...]:
        """The gates' names."""
        return tuple(gate.name for gate in self.gates)

    def stage(self, number: int) -> None:
        """Change one file, and stage it."""
        project.change(self.folder, number)
        self.git("add", ".")

    def warm(self) -> None:
        """Let the tools that keep caches see the content, as a run a minute ago has."""
        self.clock.run("mypy", cwd=self.folder)
        self.clock.run("ruff", "check", cwd=self.folder)

    def run_hook(self) -> None:
        """Let gitgates run the gates once; of the others, only their tools remember anything."""
        if self.peer.name == GITGATES:
            said = self.clock.run("sh", "-c", self.peer.hook(), cwd=self.folder)
            self.peer.must_pass(self.gates, said)
        elif self.peer.name != NO_HOOK:
            self.warm()

    def stop(self, session: str) -> None:
        """Let an agent stop, which only gitgates has a hook for."""
        if self.peer.name != GITGATES:
            self.run_hook()
            return
        answer = tell_agent(self.clock, self.folder, "Stop", session)
        if '"block"' in answer:
            raise Wrong(f"the agent may not stop: {answer}")

    def take_caches_of(self, other: Shop) -> None:
        """Let the tools remember what they do of the same content elsewhere."""
        if other is not self:
            for name in filter(lambda name: (other.folder / name).exists(), _CACHES):
                shutil.copytree(other.folder / name, self.folder / name)

    def second(self) -> Shop:
        """Return a second worktree of it."""
        second = copy.copy(self)
        second.folder = self.folder.with_name(f"{self.folder.name}-2")
        self.git("worktree", "add", "-q", "-b", "second", str(second.folder))
        if self.peer.name == HUSKY:
            self.peer.install(self.clock, second.folder)
        second.take_caches_of(self)
        return second

    def forget(self) -> None:
        """Remove all that the tools and gitgates remember."""
        for name in _CACHES:
            shutil.rmtree(self.folder / name, ignore_errors=True)
        if self.peer.name == GITGATES:
            shutil.rmtree(self.folder / ".git/gitgates/proofs", ignore_errors=True)

    def must_be_committed(self, message: str) -> None:
        """Raise Wrong unless the newest commit is that one, with a change, and nothing is left."""
        subject = self.git("log", "-1", "--format=%s")
        changed = self.git("diff", "--name-only", "HEAD~1", "HEAD")
        if (subject, changed) != (message, project.CHANGED) or self.git("diff", "--cached"):
            raise Wrong(f"{self.peer.name}: not committed: {message}; {subject}: {changed}")

    def must_refuse(self) -> None:
        """Raise Wrong if a change that breaks a gate can be committed."""
        if self.peer.name == NO_HOOK:
            return
        whole = list(project.BREAKS.values())
        # It ends at the first that fails, and says little of it: one at a time, then.
        for breaks in [[one] for one in whole] if self.peer.name == HUSKY else [whole]:
            with (self.folder / project.CHANGED).open("a") as file:
                file.write("".join(breaks))
            self.git("add", ".")
            self.peer.must_fail(self.gates, self.git("commit", "-m", "broken", fails=True))
            self.git("reset", "-q", "--hard")


def tell_agent(clock: Clock, folder: Path, event: str, session: str) -> str:
    """Send an event of Claude Code to gitgates; return the answer."""
    payload = {"session_id": session, "cwd": str(folder), "hook_event_name": event}
    own: dict[str, dict[str, object]] = {
        "Stop": {"stop_hook_active": False},
        "SessionStart": {"source": "startup"},
    }
    raw = json.dumps({**payload, **own.get(event, {})})
    return clock.run(GITGATES, "agent-hook", "claude", cwd=folder, stdin=raw)
