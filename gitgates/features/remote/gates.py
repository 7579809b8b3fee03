"""The gates of a run that go to a server of the Remote Execution API, as commands to start here.

Such a gate is a child process like any other, which talks to the server: see worker.py. So limits,
^C and the capture of output are the same, and a run loads nothing of gRPC. What is asked is in a
file that the child reads as its input; it writes how the gate ended beside that.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import sys

from gitgates.core.record import Record
from gitgates.store.files import make_folder, open_state, read_state, remove_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from gitgates.core.types import Command, Ending, Gate, Step
    from gitgates.git.repo import Repo

_CHILD = "gitgates.features.remote.worker"
# Not from the folder that it is started in, which is the repository's.
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); __import__(sys.argv[2], fromlist=['main']).main()"
)
_ALWAYS = ("GITGATES_HOOK",)


class GateRequest(Record):
    """What the child is to have run: plain data, because it is another process."""

    root_abs: str  # the working tree, or private checkout, that the gate sees
    repo_abs: str  # the user's working tree
    table: Mapping[str, Any]  # `[tool.gitgates.remote]`
    gate: Mapping[str, Any]
    paths: tuple[str, ...]  # that it is given
    argv: tuple[str, ...]
    env: Mapping[str, str]  # of the gate there: only what is declared
    cwd: str  # relative to the root
    end_abs: str  # where to write how it ended


class ChildEnd(Record):
    """How a gate ended on the server, or why it did not run there."""

    status: str = "could-not-run"  # or passed, failed
    exit_status: int = 1
    reason: str = ""
    action: str = ""  # its digest, "HASH/SIZE"
    is_down: bool = False  # the server is of no use for other gates, either
    notes: tuple[str, ...] = ()  # for people
    output: bytes | None = None  # all of it, if what was written is to be forgotten


class RemoteGates:
    """Which gates may go to the server, how they are started, and how they ended."""

    def __init__(self, repo: Repo, table: Mapping[str, Any]) -> None:
        self._repo, self._table = repo, table
        self.place: str = table["execution"]
        self.jobs: int = table["jobs"]
        self.falls_back = table["fallback"] == "local"
        self._number = 0

    def may_run(self, step: Step) -> bool:
        """Return whether a gate may run there: it only looks at files, and at those only."""
        gate = step.gate
        here = gate.writes or gate.pass_hook_input or gate.baseline or gate.ratchet
        return bool(gate.remote and gate.command) and not here

    def command(self, step: Step, command: Command, root_abs: str, run_abs: str) -> Command:
        """Return what is started here in place of a command of a gate.

        Raises: OSError where nothing can be written to the folder of the run.
        """
        gate = step.gate
        self._number += 1
        folder_abs = f"{run_abs}/remote"
        request_abs = f"{folder_abs}/{os.getpid()}-{self._number}"
        request = GateRequest(
            root_abs=root_abs,
            repo_abs=self._repo.root_abs,
            table=dict(self._table),
            gate=gate._asdict(),
            paths=step.paths,
            argv=command.argv,
            env=declared_env(gate, command.env),
            cwd=os.path.relpath(command.cwd_abs, root_abs),
            end_abs=f"{request_abs}.end",
        )
        make_folder(folder_abs)
        with open(request_abs, "xb", opener=open_state) as file:
            marshal.dump(request._asdict(), file)
        home = os.path.abspath(f"{__file__}/../../../..")
        argv = (sys.executable, "-I", "-c", _START, home, _CHILD)
        env = {"GRPC_VERBOSITY": "NONE", **self._repo.env}  # it writes among the gate's output
        cwd_abs = self._repo.root_abs
        return command._replace(argv=argv, cwd_abs=cwd_abs, env=env, stdin_abs=request_abs)

    def end_of(self, command: Command, ending: Ending) -> ChildEnd:
        """Return how a gate ended whose child is gone, and remove the files of that."""
        request_abs = command.stdin_abs
        try:
            end = ChildEnd(**marshal.loads(read_state(f"{request_abs}.end") or b""))  # noqa: S302 - of our own child
        except (EOFError, OSError, TypeError, ValueError):
            how = f"signal {ending.signal}" if ending.signal else f"status {ending.exit_status}"
            end = ChildEnd(reason=f"its client ended early, with {how}")
        for path_abs in (request_abs, f"{request_abs}.end"):
            remove_file(path_abs)
        folder_abs = os.path.dirname(request_abs)
        with contextlib.suppress(OSError):  # the request of another gate, or a log
            os.rmdir(folder_abs)
            os.rmdir(os.path.dirname(folder_abs))
        return end


def declared_env(gate: Gate, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a gate that are declared: nothing else of the user's is sent."""
    names = {*_ALWAYS, *(name for name, _value in gate.env)}
    for name in gate.env_inputs:
        is_start = name.endswith("*")
        names |= {each for each in env if each.startswith(name[:-1])} if is_start else {name}
    return {name: env[name] for name in sorted(names) if name in env}
