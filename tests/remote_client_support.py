"""A repository whose gates run on a server: what tests of the client share."""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable
from typing import Any

from conftest import Repo

from gitgates.core.types import Config, make_gate
from gitgates.features.remote.connection import Connection
from gitgates.features.remote.execution import RemoteCommand, RemoteExecution
from gitgates.features.remote.gates import RemoteEnd
from gitgates.features.remote.tree import input_root
from gitgates.git.repo import find_repo

ENV = {"PATH": "/usr/bin:/bin"}


@dataclasses.dataclass
class Client:
    """A repository whose gates run on a server."""

    repo: Repo
    connection: Connection | None = None  # that it shares with others
    said: list[str] = dataclasses.field(default_factory=list)
    output: bytes = b""
    most_bytes: int = Config().max_log_bytes
    on_output: Callable[[bytes], None] | None = None

    def run(
        self, server: Any, *argv: str, over: threading.Event | None = None, **fields: object
    ) -> RemoteEnd:
        """Run a command on a server, or on what has a URL."""
        url, instance = (server, "") if isinstance(server, str) else (server.url, server.instance)
        instance, cwd = fields.pop("instance", instance), str(fields.pop("cwd", "."))
        platform = fields.pop("platform", ())
        table = {"execution": url, "instance": instance, "platform": platform, "outputs": ()}
        env: dict[str, str] = fields.pop("env", ENV)  # type: ignore[assignment]
        for name in ("ca", "cert", "key", "netrc", "verdicts"):
            table[name] = str(fields.pop(name, ""))
        repo = find_repo(str(self.repo.path), dict(os.environ))
        is_over = over.is_set if over else lambda: False
        config = Config(tables={"remote": table}, max_log_bytes=self.most_bytes)
        execution = RemoteExecution(
            repo, config, self.said.append, is_over, connection=self.connection
        )
        gate = make_gate(name="gate", **{"timeout_s": 20.0, **fields})
        root = input_root(repo, str(self.repo.path), gate.reuse.inputs, ())
        self.output = b""
        command = RemoteCommand(argv, env, cwd, str(self.repo.path))
        return execution.run(gate, command, root, self.on_output or self._add)

    def sh(self, server: Any, text: str, **fields: object) -> RemoteEnd:
        return self.run(server, "/bin/sh", "-c", text, **fields)  # type: ignore[arg-type]

    def _add(self, data: bytes) -> None:
        self.output += data
