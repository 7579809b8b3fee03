"""A repository whose gates run on a server: what tests of the client share."""

from __future__ import annotations

import dataclasses
import os
import threading

from conftest import Repo

from gitgates.core.types import Config, Gate
from gitgates.features.remote.execution import RemoteCommand, RemoteEnd, RemoteExecution
from gitgates.features.remote.tree import input_root
from gitgates.git.repo import find_repo

ENV = {"PATH": "/usr/bin:/bin"}


@dataclasses.dataclass
class Client:
    """A repository whose gates run on a server."""

    repo: Repo
    said: list[str] = dataclasses.field(default_factory=list)
    output: bytes = b""

    def run(
        self, url: str, *argv: str, over: threading.Event | None = None, **fields: object
    ) -> RemoteEnd:
        instance, cwd = str(fields.pop("instance", "")), str(fields.pop("cwd", "."))
        table = {"execution": url, "instance": instance, "platform": (), "outputs": ()}
        table |= dict.fromkeys(("ca", "cert", "key"), "")
        repo = find_repo(str(self.repo.path), dict(os.environ))
        is_over = over.is_set if over else lambda: False
        server = RemoteExecution(repo, Config(tables={"remote": table}), self.said.append, is_over)
        gate = Gate(name="gate", **{"timeout_s": 20.0, **fields})  # type: ignore[arg-type]
        root = input_root(repo, str(self.repo.path), gate.inputs, ())
        self.output = b""
        return server.run(gate, RemoteCommand(argv, ENV, cwd, str(self.repo.path)), root, self._add)

    def sh(self, url: str, text: str, **fields: object) -> RemoteEnd:
        return self.run(url, "/bin/sh", "-c", text, **fields)  # type: ignore[arg-type]

    def _add(self, data: bytes) -> None:
        self.output += data
